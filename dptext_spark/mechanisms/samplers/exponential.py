"""Laws over a whole lexicon: P(u|w) = exp(-ε·min(d(w,u), γ)/2) / Z(w) for every output u, d the Euclidean distance.

V weights a word are too many to store and too many to compute in a batch. Stored is an alias row over the
nearest outputs (the head). It holds their probabilities as far as they exceed that of the farthest of the
head. One more outcome, the tail, takes the rest. In the tail, an output is proposed uniformly and accepted
with probability exp(-ε·(max(min(d, γ), D) - D)/2), D the distance of the head's farthest. This compares a
64-bit number with an integer that the sampler and the law compute alike. After a stated number of rejections
the word itself (or the nearest output) comes out. Its part of the head is smaller by just that, and the
tail's probability greater. So the cap changes nothing.

Deviation: γ is at most (2/ε)·ln 2^40, so that no weight is so small that its rounding matters. A distance that is cut off
is a metric still, and the bound on the loss only becomes smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64, I64, U64, Ids
from dptext_spark.guarantee import SENSITIVE, Guarantee
from dptext_spark.mechanisms.base import DECIDES, TOTAL, Law, Laws, Quantiles, Sampler, Summary
from dptext_spark.mechanisms.elementary import exponential, exponentials
from dptext_spark.mechanisms.matrices import in_threads, products, squared_distances, squared_pairs
from dptext_spark.mechanisms.samplers.exponential_rows import (
    ExponentialRows,
    Tail,
    add_tails,
    compile_rows,
    head_of,
    propose,
)
from dptext_spark.mechanisms.samplers.table import draw_all, laws_of
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import compiled

DEEPEST = 40 * math.log(2.0)  # -ln of the smallest weight beside that of distance 0
MOST_BYTES = 1 << 29  # of alias rows and vectors
LEAST_SLOTS, MOST_SLOTS = 16, 512
TOGETHER = 32  # words whose distances are taken together
# Of the squares of two vectors: a squared distance below it is taken from the vectors themselves.
CANCELLED = 1e-3


@dataclass(frozen=True, kw_only=True)
class ExponentialSummary(Summary):
    """Figures of a law over the whole lexicon.

    Attributes:
        cut_off_distance: γ; None where it is infinite.
        head: outputs of a word that are drawn from its row.
        unchanged: P(w|w) over the words.
        most_rounds: of rejection, that a draw may take.
    """

    cut_off_distance: float | None = None
    head: int | None = None
    unchanged: Quantiles | None = None
    most_rounds: int | None = None


@dataclass(frozen=True, eq=False)
class ExponentialSampler(Sampler):
    """Sampler of a law over the whole lexicon.

    Attributes:
        cells: uint64[V, 2^m, 2], alias rows over ids, where V is the tail.
        vectors: float32[V, d].
        outputs: int32[n], the ids that can come out, ascending.
        level: float64[V], D.
        surely: uint64[V], numbers that accept a proposal at any distance.
        rounds: int32[V], proposals that may be rejected.
        fallback: int32[V], what comes out after that.
        log_normaliser: float64[V], ln Z(w) of the ideal law, for certificates.
        figures: float64[3]: ε/2; γ, the cut-off distance; and the slack, a bound for every word and output on the
            difference of ln P between :meth:`law` (and what is sampled) and the ideal law.
        place: int32[V], which row is a word's, -1 for words without one; None where rows are ids.
    """

    ARRAYS = (
        "cells", "vectors", "outputs", "level", "surely", "rounds", "fallback", "log_normaliser", "figures",
    )  # fmt: skip
    summary_type = ExponentialSummary
    cost = "a few distances a token: a table look-up, and distances where the draw falls outside the nearest words"
    certified_by = (
        "over all pairs of words that the guarantee covers, by the exact sum of each law, the rounding of the law stated; "
        f"{DECIDES}"
    )

    cells: U64
    vectors: F32
    outputs: Ids
    level: F64
    surely: U64
    rounds: Ids
    fallback: Ids
    log_normaliser: F64
    figures: F64
    guarantee: Guarantee
    summary: ExponentialSummary = ExponentialSummary()
    place: Ids | None = None

    @classmethod
    def of(
        cls,
        vectors: F32,
        epsilon: float,
        radius: float = math.inf,
        *,
        outputs: Ids | None = None,
        keep: float = 0.0,
        note: str = "",
        slots: int = MOST_SLOTS,
        promised: float | None = None,
    ) -> ExponentialSampler:
        """Compile the law.

        Args:
            vectors: float32[V, d].
            epsilon: ε > 0.
            radius: γ; infinite for none.
            outputs: int32[n], ids ascending, at least one; None for all words.
            keep: the probability that a word which is no output is released as it is.
            note: what the guarantee's sentence says besides.
            slots: the largest size of an alias row, a power of two.
            promised: the ε of the guarantee, where the certified loss at ε is within it; None for ε itself.
        """
        words = len(vectors)
        released = np.arange(words, dtype=np.int32) if outputs is None else outputs
        kept_shares = np.full(words, keep)
        kept_shares[released] = 0.0
        restricted = bool((kept_shares > 0).any())
        needed = len(released) + int(restricted)
        slots = _slots(needed, vectors, slots)
        law = _law(epsilon, radius)
        (rows,) = compile_rows(vectors, released, [law], kept_shares, slots)
        if promised is None:
            return cls._of_rows(rows, vectors, released, law, epsilon, note, restricted)
        sampler = cls._of_rows(rows, vectors, released, law, promised, note, restricted)
        return replace(sampler, summary=replace(sampler.summary, internal_epsilon=epsilon))

    @classmethod
    def compile_many(
        cls, vectors: F32, laws: Sequence[tuple[float, float]], chosen: Ids
    ) -> list[ExponentialSampler]:
        """Compile some laws over all words, with rows for the words that will be drawn, in little more time than one takes.

        Rows, and so draws, are those of :meth:`of`. A word without a row is neither drawn nor has a law here.

        Args:
            vectors: float32[V, d].
            laws: (ε, γ) of each.
            chosen: int32[c], ids, ascending.
        """
        words = len(vectors)
        everything = np.arange(words, dtype=np.int32)
        slots = _slots(words, vectors, MOST_SLOTS)
        inner = [_law(*entry) for entry in laws]
        place = np.full(words, -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        compiled = compile_rows(vectors, everything, inner, np.zeros(words), slots, chosen)
        return [
            replace(cls._of_rows(rows, vectors, everything, law, epsilon, ""), place=place)
            for rows, law, (epsilon, _) in zip(compiled, inner, laws, strict=True)
        ]

    @classmethod
    def _of_rows(
        cls,
        rows: ExponentialRows,
        vectors: F32,
        released: Ids,
        law: tuple[float, float],
        promised: float,
        note: str,
        restricted: bool = False,
    ) -> ExponentialSampler:
        step, cut = law
        slack = _slack(float(rows.least.min()), len(vectors))
        likeliest = exponentials(-rows.log_normaliser[released].reshape(-1, 1))
        summary = ExponentialSummary(
            words=len(vectors),
            outputs=len(released),
            cut_off_distance=cut if math.isfinite(cut) else None,
            head=head_of(len(released), int(restricted), rows.cells.shape[1]),
            unchanged=Quantiles.of(likeliest),
            most_rounds=int(rows.rounds.max()),
            rounding=slack,
        )
        return cls(
            rows.cells,
            np.ascontiguousarray(vectors),
            released,
            rows.level,
            rows.surely,
            rows.rounds,
            rows.fallback,
            rows.log_normaliser,
            np.array([step, cut, slack]),
            _guarantee(float(promised), cut, slack, note, restricted),
            summary,
        )

    def rows_of(self, ids: Ids) -> Ids:
        """Return the rows of `cells` for some words; :class:`ValueError`: a word has none."""
        if self.place is None:
            return ids
        rows = self.place[ids]
        if len(rows) and rows.min() < 0:
            raise ValueError("the law was compiled for some words only, and a word to draw is not among them")
        return rows

    @property
    def keeps(self) -> bool:
        """Check whether a word that cannot come out of others may be released as it is."""
        return self.guarantee.compared == "sensitive words"

    @property
    def slack(self) -> float:
        """The bound on the difference between ln P as sampled and as the formula says, over all words and outputs."""
        return float(self.figures[2])

    @property
    def tail(self) -> Tail:
        """The inputs that decide the proposals."""
        return Tail(
            self.vectors.reshape(-1), self.vectors.shape[1], self.outputs, self.level, self.surely, self.rounds,
            self.fallback, float(self.figures[0]), float(self.figures[1]),
        )  # fmt: skip

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n], by lane 0. Round r of the tail uses lanes 2r + 2 and 2r + 3."""
        out = np.empty(len(ids), np.int32)
        draw_all(self.cells, self.cells.shape[1].bit_length() - 1, self.rows_of(ids), draws.u64(0), out)
        waiting = np.flatnonzero(out == len(self.level))
        turn = 0
        while len(waiting):
            numbers = draws.take(waiting).pair(1 + turn)
            left = propose(self.tail, ids, waiting, numbers, turn, out)
            waiting, turn = waiting[:left], turn + 1
        return out

    def law(self, word_id: int) -> Law:
        """Return the law of a word."""
        return self.laws(np.array([word_id], np.int32)).only

    def laws(self, words: Ids) -> Laws:
        """Return the laws of int32[n] words: the head off alias rows, the tail by distances, to the nearest of 2^63.

        The distances of some words are taken together.
        """
        total = len(self.level)
        rows = laws_of(self.cells[self.rows_of(words)])
        every, entered = np.zeros((len(words), total), np.uint64), np.zeros(len(words))
        of_tail, row = rows.ids == total, rows.owners
        entered[row[of_tail]] = rows.weight[of_tail]
        every[row[~of_tail], rows.ids[~of_tail]] = rows.weight[~of_tail]
        if of_tail.any():
            vectors = self.vectors if len(self.outputs) == total else self.vectors[self.outputs]
            others = np.ascontiguousarray(vectors).reshape(-1)

            def add(some: I64) -> None:
                part = slice(int(some[0]), int(some[-1]) + 1)
                add_tails(self.tail, others, words[part], entered[part], every[part])

            in_threads(add, np.arange(len(words)), TOGETHER)
            # What the rounding leaves over goes to the largest.
            at, most = np.arange(len(words)), every.argmax(axis=1)
            every[at, most] = 0
            every[at, most] = np.uint64(TOTAL) - every.sum(axis=1, dtype=np.uint64)
        possible = every > 0
        starts = np.append(0, np.cumsum(possible.sum(axis=1)))
        everything = np.arange(total, dtype=np.int32)
        if int(starts[-1]) == every.size:
            return Laws(starts, np.tile(everything, len(words)), every.reshape(-1))
        return Laws(starts, np.broadcast_to(everything, every.shape)[possible], every[possible])

    def law_bytes(self) -> int:
        """Return the bytes of a law over the lexicon while it is made."""
        return 32 * len(self.level)

    def law_columns(self) -> ExponentialColumns:
        """Return the formula that reads P(u|w) off distances and the sums of the laws."""
        return ExponentialColumns(self)

    def unchanged(self, words: Ids) -> tuple[F64, F64]:
        """Return P(w|w), read off the sums of the laws, and the slack. A word that is no output is read off its row."""
        values, slack = np.exp(-np.asarray(self.log_normaliser)[words]), np.full(len(words), self.slack)
        others = np.flatnonzero(~np.isin(words, self.outputs))
        values[others], slack[others] = self.kept(words[others]), 0.0
        return values, slack

    def kept(self, words: Ids) -> F64:
        """Compute how often each of int32[n] words that are no outputs is released as it is, whatever is drawn: float64[n]."""
        rows = laws_of(self.cells[self.rows_of(words)])
        row, share = rows.owners, np.zeros(len(words))
        itself = rows.ids == words[row]
        share[row[itself]] = rows.weight[itself] / TOTAL
        return share

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything but the guarantee and the summary.

        Raises:
            ValueError: there are rows for some words only, which nobody can sample with elsewhere.
        """
        if self.place is not None:
            raise ValueError("a law that was compiled for some words only cannot be stored")
        return super().arrays()


@dataclass(frozen=True, eq=False)
class ExponentialColumns:
    """P(u|w) of a law over a whole lexicon, output by output: float32 distances, within 1e-4 of the sampled law."""

    sampler: ExponentialSampler

    @cached_property
    def kept(self) -> F64:
        """Probability that each word that is no output is released as it is, whatever is drawn: float64[V]."""
        words = np.setdiff1d(np.arange(len(self.sampler.level), dtype=np.int32), self.sampler.outputs)
        shares = np.zeros(len(self.sampler.level))
        shares[words] = self.sampler.kept(words)
        return shares

    @cached_property
    def _squares(self) -> F32:
        vectors = np.asarray(self.sampler.vectors)
        return np.asarray(np.einsum("ij,ij->i", vectors, vectors))

    @property
    def _is_restricted(self) -> bool:
        return len(self.sampler.outputs) < len(self.sampler.level)

    def __call__(self, outputs: Ids) -> F32:
        """Return P(u|w) of some outputs u over all words w: float32[n, V]."""
        sampler, squares = self.sampler, self._squares
        vectors = sampler.vectors
        step, cut = float(sampler.figures[0]), float(sampler.figures[1])
        logs = sampler.log_normaliser.astype(np.float32)
        mine = squares[outputs][:, None]
        out = np.empty((len(outputs), len(vectors)), np.float32)
        for part, tile in products(vectors[outputs], vectors):
            tile *= -2.0
            tile += squares[part]
            tile += mine
            np.maximum(tile, 0.0, out=tile)
            own = np.flatnonzero((outputs >= part.start) & (outputs < part.stop))
            tile[own, outputs[own] - part.start] = 0.0
            np.sqrt(tile, out=tile)
            np.minimum(tile, np.float32(min(cut, 3e38)), out=tile)
            tile *= -step
            tile -= logs[part]
            np.exp(tile, out=out[:, part])
        return np.asarray(self._with_kept(out, outputs))

    def precise(self, outputs: Ids) -> F64:
        """Return P(u|w) of some outputs u over all words w in float64, by matrix products: float64[n, V], within 1e-9."""
        sampler, vectors, squares = self.sampler, self._doubles, self._double_squares
        step, cut = float(sampler.figures[0]), float(sampler.figures[1])
        block = vectors[outputs] @ vectors.T
        block *= -2.0
        block += squares
        room = squares[outputs][:, None] + squares
        block += squares[outputs][:, None]
        # Where vectors are close, the difference of their squares has lost its digits.
        row, word = np.nonzero(block < CANCELLED * room)
        flat, size = np.asarray(sampler.vectors).reshape(-1), sampler.vectors.shape[1]
        close = np.empty(len(row))
        squared_pairs(flat, size, outputs[row], word.astype(np.int32), close)
        block[row, word] = close
        np.sqrt(block, out=block)
        np.minimum(block, cut, out=block)
        block *= -step
        block -= np.asarray(sampler.log_normaliser)
        np.exp(block, out=block)
        return np.asarray(self._with_kept(block, outputs))

    def fixed(self, output: int) -> F64:
        """Return P(output|w) over all words w, the same bits on every processor: float64[V]."""
        sampler, words = self.sampler, len(self.sampler.level)
        step, cut = float(sampler.figures[0]), float(sampler.figures[1])
        flat, size = np.asarray(sampler.vectors).reshape(-1), sampler.vectors.shape[1]
        near, out = np.empty(words), np.empty(words)
        squared_distances(flat, size, output, flat, 0, words, near)
        _fixed_column(near, sampler.log_normaliser, step, cut, out)
        return np.asarray(self._with_kept(out[None], np.array([output], np.int32))[0])

    def _with_kept(self, probabilities: Any, outputs: Ids) -> Any:
        """Account for words that are no output: each comes out of itself alone, if it is kept: float32 or float64 [n, V]."""
        if self._is_restricted:
            shares = self.kept.astype(probabilities.dtype)
            probabilities *= 1.0 - shares
            alone = np.flatnonzero(~np.isin(outputs, self.sampler.outputs))
            probabilities[alone] = 0.0
            probabilities[alone, outputs[alone]] = shares[outputs[alone]]
        return probabilities

    @cached_property
    def _doubles(self) -> F64:
        return np.asarray(self.sampler.vectors).astype(np.float64)

    @cached_property
    def _double_squares(self) -> F64:
        return np.asarray(np.einsum("ij,ij->i", self._doubles, self._doubles))

    def probability(self, words: Ids, outputs: Ids) -> F64:
        """Return P(outputs[i] | words[i]) of int32[n] each, in float64, as the formula says: float64[n]."""
        sampler = self.sampler
        step, cut = float(sampler.figures[0]), float(sampler.figures[1])
        gap = sampler.vectors[words].astype(np.float64) - sampler.vectors[outputs]
        distance = np.minimum(np.sqrt((gap * gap).sum(axis=1)), cut)
        probabilities = np.exp(-step * distance - np.asarray(sampler.log_normaliser)[words])
        if self._is_restricted:
            shares = self.kept[words]
            probabilities = np.where(np.isin(outputs, sampler.outputs), probabilities * (1.0 - shares), 0.0)
            probabilities = np.where((words == outputs) & (shares > 0), shares, probabilities)
        return np.asarray(probabilities, np.float64)


@compiled
def _fixed_column(near: Any, logs: Any, step: float, cut: float, out: Any) -> None:
    """Turn squared distances float64[V] into probabilities e^(-step·min(d, cut) - ln Z): out float64[V]."""
    for w in range(out.shape[0]):
        out[w] = exponential(-step * min(math.sqrt(near[w]), cut) - logs[w])


def cut_off(radius: float, step: float) -> float:
    """Return the distance from which on weights no longer fall: γ, or where 2^-40 is reached."""
    return min(radius, DEEPEST / step) if step > 0 else radius


def _law(epsilon: float, radius: float) -> tuple[float, float]:
    """Return (ε/2, the distance from which on weights no longer fall)."""
    return epsilon / 2.0, cut_off(radius, epsilon / 2.0)


def _slots(needed: int, vectors: F32, slots: int) -> int:
    """Return the size of an alias row for so many outcomes, a power of two."""
    words, dimensions = vectors.shape
    if needed <= slots:
        slots = 1 << (needed - 1).bit_length()
    while needed > slots > LEAST_SLOTS and words * (16 * slots + 4 * dimensions) > MOST_BYTES:
        slots //= 2
    return slots


def _slack(least: float, words: int) -> float:
    """Bound |ln P - ln ideal P| over all words and outputs, `least` the smallest ideal P.

    The errors are 1 out of 2^63 for a probability of the head, 1 for that of the tail, 1 out of 2^64 for an acceptance, and 1
    more for the law. This makes 5 in all for the smallest. Sums are exact to 40·2^-53, single terms to 2^-44. The remainder of a
    row's integers goes to the largest of up to 512. The remainder of a law's (half of one for each of V, and the error of the
    sum) goes to the largest of V.
    """
    return 5.0 / (least * TOTAL) + 4e-12 + words * (words + 2.0**16) / TOTAL


def bound_up(value: float) -> str:
    """Return the next number with four decimals, for a sentence that states a bound."""
    return f"{math.ceil(value * 10_000) / 10_000:.16g}"


def _guarantee(epsilon: float, cut: float, slack: float, note: str, restricted: bool) -> Guarantee:
    """Return metric DP; `restricted` where a word that cannot come out of others may be released as it is."""
    # Nothing is rounded in the user's favour.
    most = f", and never more than {bound_up(epsilon * cut)}" if math.isfinite(epsilon * cut) else ""
    subject, two = ("sensitive", "sensitive words") if restricted else ("drawn", "words")
    sentence = (
        f"One {subject} word is metric differentially private with ε = {epsilon:.16g} per unit of Euclidean distance. For two "
        f"{two} at distance d, the logarithms of the probabilities of any output differ by at most ε·d{most} (rounding adds at "
        f"most {2.2 * slack:.2g}). This protects near words from each other, and hardly distant ones.{note}"
    )
    metric = "euclidean" + (SENSITIVE if restricted else "")
    return Guarantee("metric_dp", epsilon, metric=metric, sentence=sentence)
