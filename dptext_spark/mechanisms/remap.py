"""Bayes remap: each output y becomes the word r(y) that is nearest, on average, to the possible inputs.

Source: Chatzikokolakis, ElSalamouny and Palamidessi 2017, "Efficient Utility Improvement for Location Privacy", PoPETs 2017 (4),
there for places. Formula: r(y) = argmax_z Σ_w π(w)·P(y|w)·s(w, z) over the mechanism's outputs z, ties to the lower id. Let m(y)
= Σ_w π(w)·P(y|w)·x(w). If s is the cosine, x(w) are unit vectors and r(y) is the word of the largest inner product with m(y). If
s is minus the squared Euclidean distance, r(y) is the word nearest to m(y)/Σ_w π(w)·P(y|w). The weights π are the lexicon's
public prior over the words that the policy draws. Words that it keeps, such as stop words, count for nothing. Guarantee: that of
P. r depends on public data only, so that to release r(y) in place of y is post-processing. Deviations: an output that no drawn
word leads to becomes the word nearest to itself. Only a uniform draw for an unknown word meets such an output. The prior is
public; another one gives another r, and that is another release.

One table serves all levels of importance, P then being Σ_k share_k·P_k with the shares of the settings. A table for each level
would reveal the level of a word, and the level depends on the text.

The table r is computed in float64 in a fixed order of additions, so that every processor finds the same one.
A library first sums up laws by distance. If that leaves two words too close to separate, they are summed up
again in the fixed order.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dptext_spark.arrays import F32, F64, Ids
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import Metric, squared_lengths
from dptext_spark.mechanisms.base import TOTAL, Laws, Mechanism, Quantiles, RemapSummary, Sampler, Summary
from dptext_spark.mechanisms.largest_scores import Points, largest_scores
from dptext_spark.mechanisms.matrices import in_threads
from dptext_spark.mechanisms.parameters import choice
from dptext_spark.mechanisms.samplers import table as sampler_tables
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler, ExponentialSummary
from dptext_spark.mechanisms.samplers.ordering import OrderingSummary
from dptext_spark.mechanisms.samplers.table import RemappedSampler, RemappedTable, TableSampler, TableSummary
from dptext_spark.runtime.jit import Int, compiled

Remap = Literal["none", "bayes"]
TOGETHER = 128  # outputs whose columns are held at once, by each thread
TOLERANCE = 1e-7  # relative: scores of a library's sums differ only above it
SENTENCE = " A fixed, public table then replaces each draw (Bayes remap). It depends on no text, so it reveals nothing more."


def remap_choice() -> Any:
    """Declare the parameter `remap`."""
    return choice(
        Remap,
        "none",
        "Word released for a draw. `none`: the drawn word. `bayes`: the word nearest on average to its possible originals, by "
        "the lexicon's public prior. The guarantee stays, because a fixed table maps draws to words.",
        sparse=True,
    )


@runtime_checkable
class ExactColumns(Protocol):
    """P(u|w) output by output, as exactly as a remap needs it."""

    def precise(self, outputs: Ids) -> F64:
        """Return P(u|w) of some outputs u over all words w: float64[n, V], within 1e-9 (relative) of :meth:`fixed`."""

    def fixed(self, output: int) -> F64:
        """Return P(output|w) over all words w, the same bits on every processor: float64[V]."""


@dataclass(frozen=True)
class Remappable(Mechanism):
    """A mechanism with a law, whose outputs can be replaced.

    Each declares `remap: Remap = remap_choice()` as its last parameter.
    """

    @property
    @abstractmethod
    def similarity(self) -> Metric:
        """The measure that r makes largest: the cosine, or minus the squared Euclidean distance."""

    @property
    def without_remap(self) -> Mechanism:
        """The same mechanism, whose draws are released as they are."""
        return replace(self, remap="none")  # type: ignore[call-arg]  # a field of each

    def remapped(self, sampler: Sampler, table: Ids, prior: str) -> RemappedSampler:
        """Return the sampler that releases table[y] for each draw y of `sampler`, with the figures of the released words.

        Args:
            sampler: of :attr:`without_remap`.
            table: int32[V], r.
            prior: the name of the prior that r was chosen by.
        """
        return remapped(sampler, table, prior)


def remap_of(mechanism: Mechanism) -> str:
    """Return how a mechanism treats its draws: `none`, or `bayes`."""
    return str(getattr(mechanism, "remap", "none"))


def released(mechanism: Remappable, sampler: Any, lexicon: Lexicon) -> Any:
    """Return the compiled sampler: `sampler` itself, or with its outputs replaced."""
    return released_together([mechanism], [sampler], [1.0], lexicon)[0]


def released_together(
    mechanisms: Sequence[Mechanism], samplers: Sequence[Sampler], shares: Sequence[float], lexicon: Lexicon
) -> tuple[Sampler, ...]:
    """Return the samplers of levels of importance, all with one table, or as they are where none is remapped.

    Args:
        mechanisms: of the levels.
        samplers: of their laws P.
        shares: of the words, which each level draws; public.
        lexicon: whose vectors and prior decide.
    """
    first = mechanisms[0]
    if remap_of(first) == "none":
        return tuple(samplers)
    assert isinstance(first, Remappable)
    whole = float(sum(shares))
    laws = [(share / whole, sampler) for share, sampler in zip(shares, samplers, strict=True)]
    table = bayes_remap(laws, lexicon, first.similarity)
    pairs: Any = zip(mechanisms, samplers, strict=True)
    return tuple(mechanism.remapped(sampler, table, lexicon.prior.name) for mechanism, sampler in pairs)


def require_one_remap(mechanisms: Sequence[Mechanism]) -> None:
    """Refuse levels of importance of which one is remapped and another is not, or by another similarity.

    Raises:
        SettingsError: naming the level.
    """
    first = mechanisms[0]
    for number, other in enumerate(mechanisms):
        if remap_of(other) != remap_of(first):
            raise SettingsError(
                f"importance.levels[{number}]: remap {remap_of(other)} differs from {remap_of(first)} of levels[0]. Choose "
                "the same for all levels: one table for each would reveal the level of a word."
            )
        if remap_of(first) == "none":
            continue
        assert isinstance(first, Remappable)
        assert isinstance(other, Remappable)
        if other.similarity != first.similarity:
            raise SettingsError(
                f"importance.levels[{number}]: its remap uses {other.similarity}, but that of levels[0] uses "
                f"{first.similarity}. Choose mechanisms with one similarity, because all levels share one table."
            )


class Moments(NamedTuple):
    """The possible inputs of outputs.

    Attributes:
        sums: float64[V, d], Σ_w π(w)·P(y|w)·x(w) of each output y.
        weight: float64[V], Σ_w π(w)·P(y|w); 0 where nothing that is drawn leads to y.
    """

    sums: F64
    weight: F64


def bayes_remap(laws: Sequence[tuple[float, Sampler]], lexicon: Lexicon, similarity: Metric) -> Ids:
    """Return r, int32[V]: what each output becomes.

    Args:
        laws: (share, sampler) of each law P_k; the shares sum to 1.
        lexicon: whose vectors and prior of drawn words decide.
        similarity: what is made largest.
    """
    cosine = similarity == "cosine"
    points, bias = _points(lexicon.vectors, cosine)
    prior = lexicon.drawn_prior
    words, size = points.shape
    moments = Moments(np.zeros((words, size)), np.zeros(words))
    able = np.zeros(words, np.bool_)
    columns: list[tuple[float, ExactColumns]] = []
    read: Laws | None = None
    for share, sampler in laws:
        if isinstance(sampler, TableSampler):
            read = sampler_tables.laws_of(sampler.cells)
            _add_laws(read, share * prior, points, moments)
            able[read.ids] = True
        else:
            exact_columns: Any = sampler.law_columns()
            assert isinstance(exact_columns, ExactColumns)
            columns.append((share, exact_columns))
            possible = _possible(sampler)
            able[possible] = True
            # Alone, a word that SanText+ keeps comes of itself only: it is nearest to itself.
            alone = len(laws) == 1 and isinstance(sampler, ExponentialSampler)
            outputs = np.asarray(sampler.outputs, np.int32) if alone else possible  # type: ignore[attr-defined]
            _add_columns(exact_columns, outputs, share * prior, points, moments)
    queries = _queries(moments, points, cosine)
    allowed = np.flatnonzero(able).astype(np.int32)
    if not columns:
        guesses = None if read is None else _inputs_by_output(read, words)
        return largest_scores(queries, Points(points, bias, allowed), guesses=guesses).point
    # Of equal vectors the lowest id wins, whatever the sums are.
    allowed = _distinct(points, allowed)
    best = largest_scores(queries, Points(points, bias, allowed), tolerance=TOLERANCE)
    table: Ids = best.point.copy()
    unsure = np.flatnonzero(best.unsure & (moments.weight > 0)).astype(np.int32)
    if len(unsure):
        again = _in_order(laws, unsure, prior, points, moments)
        exact = largest_scores(_queries(again, points[unsure], cosine), Points(points, bias, allowed))
        table[unsure] = exact.point
    return table


def _points(vectors: F32, cosine: bool) -> tuple[F64, F64]:
    """Return (float64[V, d], the vectors, of length 1 for cosines; float64[V], a summand for inner products)."""
    squares, points = np.asarray(squared_lengths(vectors), np.float64), vectors.astype(np.float64)
    if not cosine:
        return points, -0.5 * squares
    points /= np.where(squares > 0, np.sqrt(squares), 1.0)[:, None]
    return points, np.zeros(len(points))


def _queries(moments: Moments, points: F64, cosine: bool) -> F64:
    """Compute the points that r is nearest to, float64[n, d]: the mean, for cosines its direction; with no input the word.

    The sums are overwritten with the result.
    """
    alone = moments.weight <= 0
    scale = np.asarray(np.sqrt(squared_lengths(moments.sums)) if cosine else moments.weight, np.float64)
    queries = moments.sums
    queries /= np.where(scale > 0, scale, 1.0)[:, None]
    queries[alone] = points[alone]
    return queries


@compiled
def _add_rows(
    starts: Any, ids: Any, weight: Any, prior: Any, points: Any, first: Int, last: Int, sums: Any, total: Any
) -> None:
    """Add the laws of all words, word by word: coordinates first..last of sums float64[V, d], and total float64[V]."""
    for w in range(starts.shape[0] - 1):
        if prior[w] <= 0.0:
            continue
        for e in range(starts[w], starts[w + 1]):
            share, y = prior[w] * (np.float64(weight[e]) / 9223372036854775808.0), ids[e]
            if first == 0:
                total[y] += share
            for k in range(first, last):
                sums[y, k] += share * points[w, k]


def _add_laws(laws: Laws, prior: F64, points: F64, moments: Moments) -> None:
    """Add the laws of all words. Each thread takes some coordinates, so the order of additions is fixed."""

    def add(some: Ids) -> None:
        _add_rows(
            laws.starts, laws.ids, laws.weight, prior, points, int(some[0]), int(some[-1]) + 1, moments.sums, moments.weight
        )  # fmt: skip

    size = points.shape[1]
    in_threads(add, np.arange(size, dtype=np.int32), -(-size // (os.cpu_count() or 1)))


def _add_columns(columns: ExactColumns, outputs: Ids, prior: F64, points: F64, moments: Moments) -> None:
    """Add the moments of the inputs of some outputs, by matrix products."""

    def add(some: Ids) -> None:
        leads = columns.precise(some)
        leads *= prior
        moments.sums[some] += leads @ points
        moments.weight[some] += leads.sum(axis=1)

    in_threads(add, outputs, TOGETHER)


@compiled
def _sum_up(leads: Any, points: Any, sums: Any) -> float:
    """Add leads[w]·points[w] to sums float64[d], in the order of the words; return the sum of leads."""
    total = 0.0
    for w in range(points.shape[0]):
        total += leads[w]
        for k in range(points.shape[1]):
            sums[k] += leads[w] * points[w, k]
    return total


def _in_order(
    laws: Sequence[tuple[float, Sampler]], outputs: Ids, prior: F64, points: F64, approximate: Moments
) -> Moments:
    """Sum up the inputs of some outputs, every sum in one fixed order: law by law, word by word."""
    moments = Moments(np.zeros((len(outputs), points.shape[1])), np.zeros(len(outputs)))
    tables = [
        _columns_of_rows(sampler_tables.laws_of(sampler.cells), outputs)
        if isinstance(sampler, TableSampler)
        else None
        for _, sampler in laws
    ]

    def add(some: Ids) -> None:
        for row in some:
            for (share, sampler), table in zip(laws, tables, strict=True):
                if table is None:
                    columns: Any = sampler.law_columns()
                    leads = columns.fixed(int(outputs[row]))
                else:
                    leads = table[row]
                moments.weight[row] += _sum_up(share * prior * leads, points, moments.sums[row])

    in_threads(add, np.arange(len(outputs), dtype=np.int32), 1)
    # What a library took for 0 stays 0, so that which outputs nothing leads to is settled once.
    return moments._replace(weight=np.where(approximate.weight[outputs] > 0, moments.weight, 0.0))


def _columns_of_rows(laws: Laws, outputs: Ids) -> F64:
    """Return P(outputs[i]|w) over all words w, read off rows: float64[n, V]."""
    place = np.full(max(int(laws.ids.max()), int(outputs.max())) + 1, -1, np.int64)
    place[outputs] = np.arange(len(outputs))
    column = place[laws.ids]
    probability = np.zeros((len(outputs), len(laws.starts) - 1))
    listed = column >= 0
    probability[column[listed], laws.owners[listed]] = laws.weight[listed] / float(TOTAL)
    return probability


def _inputs_by_output(laws: Laws, words: int) -> tuple[Any, Ids]:
    """Return (starts int64[V + 1], ids): for each output its likely inputs, by distance."""
    order = np.argsort(laws.ids, kind="stable")
    ends = np.cumsum(np.bincount(laws.ids, minlength=words))
    return np.append(0, ends), laws.owners[order].astype(np.int32)


def _distinct(points: F64, allowed: Ids) -> Ids:
    """Return the lowest id of each vector among some ids, ascending."""
    rows = np.ascontiguousarray(points[allowed]) + 0.0  # no negative zero
    keys = rows.view(np.dtype((np.void, rows.shape[1] * 8))).reshape(-1)
    return np.sort(allowed[np.unique(keys, return_index=True)[1]])


def _possible(sampler: Sampler) -> Ids:
    """Return the possible outputs, ascending."""
    if isinstance(sampler, ExponentialSampler) and not sampler.keeps:
        return np.asarray(sampler.outputs, np.int32)
    return np.arange(sampler.summary.words or 0, dtype=np.int32)


def remapped(sampler: Sampler, table: Ids, prior: str) -> RemappedSampler:
    """Build the sampler that releases table[y] for each draw y of any mechanism, with the figures of the released words."""
    promised = replace(sampler.guarantee, sentence=sampler.guarantee.sentence + SENTENCE)
    if isinstance(sampler, TableSampler):
        drawn = sampler_tables.laws_of(sampler.cells)
        merged_laws = sampler_tables.merged(drawn, table)
        possible = np.flatnonzero(np.bincount(drawn.ids, minlength=len(table))).astype(np.int32)
        summary: Summary = _of_table(sampler.summary, merged_laws)
        remapped_sampler = RemappedTable(
            sampler, table, promised, summary, sampler_tables.relabelled(sampler.cells, table), sampler_tables.groups_of(drawn)
        )  # fmt: skip
    else:
        possible = _possible(sampler)
        remapped_sampler = RemappedSampler(sampler, table, promised, sampler.summary)  # type: ignore[assignment]
        summary = _of_formula(remapped_sampler)
    outputs = len(np.unique(table[possible]))
    replaced = int((table[possible] != possible).sum())
    remap = RemapSummary(prior=prior, outputs_before=len(possible), replaced=replaced, outputs=outputs)
    if isinstance(sampler, ExponentialSampler):
        remap = replace(remap, drawable=len(sampler.outputs))
    if isinstance(sampler, ExponentialSampler) and sampler.keeps:
        remap = replace(remap, telling=len(telling(sampler, table)))
    return replace(
        remapped_sampler,
        summary=replace(summary, outputs=outputs if summary.outputs is not None else None, remap=remap),
    )


def bits_told(laws: Iterable[Laws], words: int) -> tuple[float, float]:
    """Compute how many bits a draw reveals about its word, if all words are equally likely.

    If n(u) words can become u, a draw u rules out all others: log2(V / n(u)) bits, at any ε. In all it reveals I(w; u).

    Returns:
        (the bits by what a draw rules out, the bits in all): means over the draws.
    """
    behind, drawn, sure = np.zeros(words, np.int64), np.zeros(words), 0.0
    for some in laws:
        probability = some.weight[some.weight > 0] / float(TOTAL)
        behind += np.bincount(some.ids, minlength=words)
        drawn += np.bincount(some.ids[some.weight > 0], weights=probability, minlength=words)
        sure += float((probability * np.log2(probability)).sum())
    possible = drawn > 0
    of_draws = drawn[possible] / words
    ruled_out = float((of_draws * np.log2(words / behind[possible])).sum())
    return ruled_out, sure / words - float((of_draws * np.log2(of_draws)).sum())


def telling(sampler: ExponentialSampler, table: Ids) -> Ids:
    """Return SanText+'s words that are not sensitive and come of themselves alone, ascending: their release names them."""
    words = np.arange(len(table), dtype=np.int32)
    alone = np.setdiff1d(words, sampler.outputs)
    behind = np.bincount(table, minlength=len(table))
    # Of words that are not sensitive each comes out of itself; one that nothing else becomes is the only one behind its output.
    return np.asarray(alone[behind[table[alone]] == 1], np.int32)


def _of_table(summary: TableSummary, found: Laws) -> TableSummary:
    """Return the figures of output sets that a remap changes: groups stay those of P."""
    words = len(found.starts) - 1
    behind = np.bincount(found.ids, minlength=words)
    reachable = behind[behind > 0]
    ruled_out, told = bits_told([found], words)
    return replace(
        summary,
        set_size=Quantiles.of(np.diff(found.starts)),
        inputs_per_output=Quantiles.of(reachable),
        one_input_share=float((reachable == 1).mean()),
        ruled_out_bits=ruled_out,
        told_bits=told,
    )


def _of_formula(made: RemappedSampler) -> Summary:
    """Return the figures of a law over the whole lexicon, or along lists, that a remap changes."""
    summary = made.summary
    if isinstance(summary, OrderingSummary):
        return replace(summary, unchanged_mid_list=None, unchanged_list_end=None)
    assert isinstance(summary, ExponentialSummary)
    assert isinstance(made.inner, ExponentialSampler)
    unchanged = made.unchanged(np.asarray(made.inner.outputs, np.int32))
    assert unchanged is not None
    return replace(summary, unchanged=Quantiles.of(unchanged[0]))
