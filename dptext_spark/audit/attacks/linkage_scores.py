"""Information in the law of a mechanism about a draw and about two rows, in bits and in probabilities.

The law and the public prior alone give a draw's information on its word, and the number of drawn words that single out a row.

A draw reveals I(X; Y) = H(Y) - H(Y|X) bits of its word X on average, with X as frequent as in the prior. The output set alone
reveals I(G; Y) bits, G the set of the word. One of N rows is singled out by about log2(N) / I(X; Y) words, if words are
independent and rows are alike (Shannon 1948). Dependent words single out later.

Score two rows by the law of a mechanism: how likely one is the release of the other, in compiled loops.

log P(t|s) = Σ log P(y|x) over the places of a source row s and a released row t, each draw once. It is -inf where the law
excludes a place. An adversary looking for the release of s subtracts log P(t) under the public prior (:func:`rank`). An adversary
with some words W of a row scores a release with n drawn words y by (:func:`rank_known`)

    Σ_{w in W} log((1 - Π_y (1 - P(w|y))) / (1 - (1 - P(w))^n)),  P(w|y) by Bayes' rule and the prior.

Laws come in two forms. Short ones are lists of the words that lead to each output. Long ones, over a whole lexicon, are read as
a table of the words that a block of queries holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F64, I64, Ids, offsets
from dptext_spark.audit.attacks.aligned_rows import DRAWN, EQUAL, FAKED, LAW, NAMED, PLACEHOLDER, RowWords
from dptext_spark.audit.attacks.attacked_text import place_in
from dptext_spark.audit.word_figures import blocks
from dptext_spark.mechanisms.base import LawColumns, Sampler
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.validation import Json

AMONG = (10_000, 1_000_000)  # rows


@dataclass(frozen=True, eq=False)
class DrawBits:
    """Information of a draw on its word.

    Attributes:
        marginal: float64[V], log P(u) of every output under the prior; -inf where no word leads to it.
        bits: average information of a draw on its word.
        by_set: the part of `bits` that the output set reveals; None where words have none in common.
    """

    marginal: F64
    bits: float
    by_set: float | None

    @classmethod
    def of(cls, sampler: Sampler, prior: F64) -> DrawBits:
        """Read every law once.

        Args:
            sampler: with a law.
            prior: float64[V], of the words that are drawn; sums to 1.
        """
        total, groups = np.zeros(len(prior)), sampler.groups()
        spread, joint = 0.0, dict[int, float]()
        for part in blocks(sampler, np.flatnonzero(prior).astype(np.int32)):
            weight = part.probability * prior[part.words][part.rows]
            np.add.at(total, part.ids, weight)
            some = part.probability > 0
            spread -= float((weight[some] * np.log2(part.probability[some])).sum())
            if groups is not None:
                _add(joint, groups[part.words][part.rows], part.ids, weight)
        by_set = None
        if groups is not None:
            of_group = np.bincount(groups, weights=prior)
            place = np.array([pair >> 32 for pair in joint], np.int64)
            shares = np.array([*joint.values()])
            by_set = _entropy(total) + float((shares * np.log2(shares / of_group[place])).sum())
        with np.errstate(divide="ignore"):
            return cls(np.log(total), max(0.0, _entropy(total) - spread), by_set)

    def words(self, rows: int) -> int | None:
        """Compute the number of drawn words that single out one of so many rows; None where a draw reveals nothing."""
        return math.ceil(math.log2(rows) / self.bits) if self.bits > 1e-9 else None

    @property
    def sentence(self) -> str:
        """The information as a sentence for a person."""
        by_set = "" if self.by_set is None else f", {self.by_set:.1f} of them by the output set"
        sentence = (
            f"A draw reveals {self.bits:.1f} bits of its word on average{by_set}, at public word frequencies."
        )
        counts = [self.words(rows) for rows in AMONG]
        if None in counts:
            return sentence
        among = " and ".join(
            f"{count} to single out one of {rows:,} rows" for count, rows in zip(counts, AMONG, strict=True)
        )
        return f"{sentence} About so many drawn words are enough: {among}."

    def as_dict(self) -> dict[str, Json]:
        """Return the figures, JSON-able."""
        return {
            "bits": self.bits,
            "by_set": self.by_set,
            "words": {str(rows): self.words(rows) for rows in AMONG},
        }


def _entropy(shares: F64) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum())


def _add(joint: dict[int, float], groups: Ids, outputs: Ids, weight: F64) -> None:
    """Add the weight of each (group, output) of some laws."""
    pairs, place = np.unique((groups.astype(np.int64) << 32) + outputs, return_inverse=True)
    for pair, share in zip(
        pairs.tolist(), np.bincount(place.reshape(-1), weights=weight).tolist(), strict=True
    ):
        if share > 0:
            joint[pair] = joint.get(pair, 0.0) + share


# What the law does not say, in natural logarithms.
MISFIT = math.log(1e-12)  # a piece with another number of words than its partner
FAKE = math.log(1e-5)  # a pseudonym or a fake, of a name or an identifier
CLOSE = 1e-9  # scores that differ by less are ties
TABLE_WORDS = 500  # of a table of a long law: 8·V bytes each
LAWS_AT_ONCE = 16  # more do not fit a processor's cache
DRAWS = 64  # of a row: of so many, chance is worked out once
NEVER = -math.inf


class ShortLaw(NamedTuple):
    """The words that lead to outputs: those of key k are words[starts[k]:starts[k + 1]].

    Attributes:
        starts: int64[K + 1].
        words: int32[m], ascending within a key.
        log: float64[m], log P(output | word).
        marginal: float64[K], log P(output) under the prior.
        absent: float64[m], log(1 - P(word | output)).
    """

    starts: I64
    words: Ids
    log: F64
    marginal: F64
    absent: F64

    @classmethod
    def of(cls, starts: I64, words: Ids, probability: F64, prior: F64) -> ShortLaw:
        """Complete P(output | word), float64[m], by the prior, float64[V]."""
        key = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        joint = probability * prior[words]
        total = np.bincount(key, weights=joint, minlength=len(starts) - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            posterior = np.where(total[key] > 0, np.minimum(joint / total[key], 1.0), 0.0)
            return cls(starts, words, np.log(probability), np.log(total), np.log1p(-posterior))

    @classmethod
    def read(cls, sampler: Sampler, prior: F64) -> ShortLaw:
        """Read every law, output by output; key k is output k."""
        parts = list(blocks(sampler, np.arange(len(prior), dtype=np.int32)))
        outputs, shares = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "probability")
        )
        words = np.concatenate([part.words[part.rows] for part in parts])
        order = np.argsort(outputs, kind="stable")
        counts = np.bincount(outputs, minlength=len(prior))
        return cls.of(offsets(counts), words[order], shares[order], prior)


class Ranks(NamedTuple):
    """Rank of a query among rows that are not its own.

    Attributes:
        better: int64[Q], rows that score higher than its own.
        equal: int64[Q], rows that score the same.
        possible: int64[Q], rows that the law does not exclude.
    """

    better: I64
    equal: I64
    possible: I64

    @classmethod
    def none(cls, queries: int) -> Ranks:
        """Return counts of 0."""
        return cls(*np.zeros((3, queries), np.int64))


class WordsFit(NamedTuple):
    """Rank of queries for an adversary with some of their words, for each number of words.

    Attributes:
        sizes: int64[k], the numbers of words, ascending.
        true: float64[Q, k], the score of each query's own release; -inf: impossible, or not known yet.
        better: int64[Q, k], see :class:`Ranks`; and `equal` and `possible`.
        scores: float64[Q, k], the scores of own releases that came by.
    """

    sizes: I64
    true: F64
    better: I64
    equal: I64
    possible: I64
    scores: F64

    @classmethod
    def none(cls, queries: int, sizes: tuple[int, ...]) -> WordsFit:
        """Return counts of 0."""
        true, scores = np.full((2, queries, len(sizes)), NEVER)
        better, equal, possible = np.zeros((3, queries, len(sizes)), np.int64)
        return cls(np.array(sizes, np.int64), true, better, equal, possible, scores)


@compiled
def _score(
    source: RowWords, s: Int, output: RowWords, t: Int, keys: Any, law: Any, table: Any, slots: Any,
    mode: Int, back: bool, room: I64, uniform: F64,
) -> float:  # fmt: skip
    """Return log P(row t of the release | row s of the source); `back`: minus the logarithm of the release's own probability.

    Both rows have one shape. `mode` is 0 for a short law, by the `keys` int64 of released words, and 1 for a long one. Each row
    of its `table` float64[k, V] is an output's over all words, or with `back` a word's over all outputs; `slots` int64[V] says
    which. `room` int64[>= words of row s] is scratch. `uniform` float64[V] is the score of each output of an unknown word that
    is drawn.
    """
    total: float = 0.0
    base = source.starts[source.pieces[s]]
    shift = output.pieces[t] - source.pieces[s]
    for piece in range(source.pieces[s], source.pieces[s + 1]):
        low, high = source.starts[piece], source.starts[piece + 1]
        opposite = output.starts[piece + shift]
        if output.starts[piece + shift + 1] - opposite != high - low:
            total += MISFIT
            for w in range(low, high):
                room[w - base] = -1
            continue
        for w in range(low, high):
            u = opposite + (w - low)
            room[w - base] = u
            kind = source.kind[w]
            if kind == LAW:
                if output.ids[u] < 0:
                    return NEVER
                first = source.first[w]
                if first >= 0 and room[first - base] >= 0:
                    if output.ids[room[first - base]] != output.ids[u]:
                        return NEVER
                    continue
                if mode == 0:
                    key = keys[u]
                    at = place_in(law.words, law.starts[key], law.starts[key + 1], source.ids[w])
                    if at < 0:
                        return NEVER
                    total += law.log[at]
                    if back:
                        total -= law.marginal[key]
                else:
                    row, column = output.ids[u], source.ids[w]
                    if back:
                        row, column = column, row
                    if table[slots[row], column] == NEVER:
                        return NEVER
                    total += table[slots[row], column]
            elif kind == EQUAL:
                if source.form[w] != output.form[u]:
                    return NEVER
            elif kind == NAMED:
                if output.kind[u] != PLACEHOLDER:
                    return NEVER
            elif kind == FAKED:
                if output.kind[u] != PLACEHOLDER:
                    total += FAKE
            elif output.ids[u] < 0:  # an unknown word becomes any word of the lexicon
                return NEVER
            else:
                total += uniform[output.ids[u]]
    return total


@compiled
def rank(
    queries: RowWords, chosen: I64, others: RowWords, order: I64, low: I64, high: I64, own: Any, rows: Any,
    keys: Any, law: Any, table: Any, slots: Any, mode: Int, back: bool, true: F64, fit: Ranks, room: I64, uniform: F64,
) -> None:  # fmt: skip
    """Count the ranks of `chosen` queries among the rows order[low[i]:high[i]] that are not their own."""
    for i in range(chosen.shape[0]):
        q = chosen[i]
        if true[q] == NEVER:
            continue
        for at in range(low[i], high[i]):
            row = order[at]
            if rows[row] == own[q]:
                continue
            if back:
                score = _score(queries, q, others, row, keys, law, table, slots, mode, back, room, uniform)
            else:
                score = _score(others, row, queries, q, keys, law, table, slots, mode, back, room, uniform)
            if score == NEVER:
                continue
            fit.possible[q] += 1
            if score > true[q] + CLOSE:
                fit.better[q] += 1
            elif score >= true[q] - CLOSE:
                fit.equal[q] += 1


@compiled
def own_scores(
    source: RowWords, output: RowWords, chosen: I64, keys: Any, law: Any, table: Any, slots: Any, mode: Int,
    back: bool, true: F64, room: I64, uniform: F64,
) -> None:  # fmt: skip
    """Fill the score of each chosen query's own pair."""
    for i in range(chosen.shape[0]):
        q = chosen[i]
        if source.shape[q] == output.shape[q]:
            true[q] = _score(source, q, output, q, keys, law, table, slots, mode, back, room, uniform)


class LongLaw:
    """A law over a whole lexicon, read for the words of some queries at a time."""

    def __init__(self, sampler: Sampler, prior: F64, marginal: F64) -> None:
        """Take the law, the prior of the drawn words, float64[V], and log P(output), float64[V]."""
        self.sampler, self.prior, self.marginal = sampler, prior, marginal

    def by_output(self, outputs: Ids) -> F64:
        """Return log P(u|w) of int32[k] outputs u over all words w: float64[k, V]."""
        columns = self.sampler.law_columns()
        every = np.arange(len(self.prior), dtype=np.int32)
        if columns is None:
            table = np.zeros((len(outputs), len(every)))
            for part in blocks(self.sampler, every):
                place = np.full(len(every), -1, np.int64)
                place[outputs] = np.arange(len(outputs))
                at = place[part.ids]
                table[at[at >= 0], part.words[part.rows][at >= 0]] = part.probability[at >= 0]
        else:
            table = np.empty((len(outputs), len(every)))
            for start in range(0, len(outputs), LAWS_AT_ONCE):
                some = slice(start, start + LAWS_AT_ONCE)
                table[some] = _precise(columns, outputs[some], every)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(table, out=table))

    def by_word(self, words: Ids) -> F64:
        """Return log P(u|w) - log P(u) of int32[k] words w over all outputs u: float64[k, V]."""
        table = np.empty((len(words), len(self.prior)))
        for start in range(0, len(words), LAWS_AT_ONCE):
            part = self.sampler.laws(words[start : start + LAWS_AT_ONCE])
            assert part is not None
            table[start : start + LAWS_AT_ONCE] = part.dense(len(self.prior))
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(table, out=table)
            table -= self.marginal
        table[np.isnan(table)] = NEVER
        return table

    def absent(self, words: Ids) -> F64:
        """Return log(1 - P(w|u)) of int32[k] words w for all outputs u: float64[V, k]."""
        table = self.by_word(words)
        np.exp(table, out=table)
        table *= -self.prior[words][:, None]
        np.maximum(table, -1.0, out=table)
        with np.errstate(divide="ignore"):
            np.log1p(table, out=table)
        return np.ascontiguousarray(table.T)


def _precise(columns: LawColumns, outputs: Ids, every: Ids) -> F64:
    """Return P(u|w) in float64: by matrix products where the formula has them, else pair by pair."""
    precise = getattr(columns, "precise", None)
    if precise is not None:
        return np.asarray(precise(outputs))
    words, repeated = np.tile(every, len(outputs)), np.repeat(outputs, len(every))
    return np.asarray(columns.probability(words, repeated)).reshape(len(outputs), len(every))


@compiled
def rank_known(
    released: RowWords, keys: Any, law: ShortLaw, rows: Any, own: Any, slots: I64, starts: I64, holders: I64,
    ranks: I64, prior: F64, fit: WordsFit, only_first: bool, scratch: F64, touched: I64, sums: F64, covered: I64, reached: I64,
) -> None:  # fmt: skip
    """Score released rows for an adversary with some words, by a short law; by every word that leads to their outputs."""
    for row in range(released.shape.shape[0]):
        n, many = 0, 0
        for u in range(released.starts[released.pieces[row]], released.starts[released.pieces[row + 1]]):
            if released.kind[u] != DRAWN or (only_first and released.first[u] >= 0):
                continue
            n += 1
            key = keys[u]
            for at in range(law.starts[key], law.starts[key + 1]):
                slot = slots[law.words[at]]
                if slot < 0 or law.absent[at] == 0.0:
                    continue
                if scratch[slot] == 0.0:
                    touched[many] = slot
                    many += 1
                scratch[slot] += law.absent[at]
        many_queries = 0
        for i in range(many):
            slot = touched[i]
            likely = -math.expm1(scratch[slot])
            scratch[slot] = 0.0
            value = math.log(likely) - math.log(-math.expm1(n * math.log1p(-prior[slot])))
            for at in range(starts[slot], starts[slot + 1]):
                q = holders[at]
                if covered[q, fit.sizes.shape[0] - 1] == 0:
                    reached[many_queries] = q
                    many_queries += 1
                for k in range(fit.sizes.shape[0]):
                    if ranks[at] < fit.sizes[k]:
                        sums[q, k] += value
                        covered[q, k] += 1
        for i in range(many_queries):
            q = reached[i]
            for k in range(fit.sizes.shape[0]):
                if covered[q, k] == fit.sizes[k]:
                    _count(row, rows, own, q, k, sums[q, k], fit)
                sums[q, k], covered[q, k] = 0.0, 0


@compiled
def _count(row: Int, rows: Any, own: Any, q: Int, k: Int, score: float, fit: WordsFit) -> None:
    """Count a released row for a query, or keep its score where the row is the query's own."""
    if rows[row] == own[q]:
        fit.scores[q, k] = score
    elif fit.true[q, k] > NEVER:
        fit.possible[q, k] += 1
        if score > fit.true[q, k] + CLOSE:
            fit.better[q, k] += 1
        elif score >= fit.true[q, k] - CLOSE:
            fit.equal[q, k] += 1


def by_chance(prior: F64) -> F64:
    """Return log(1 - P(w)), and behind it (1 - P(w))^n - 1 for n from 1 on: float64[`DRAWS`, k]."""
    table: F64 = np.expm1(np.arange(DRAWS)[:, None] * np.log1p(-prior))
    table[0] = np.log1p(-prior)
    return table


@compiled
def rank_known_by_table(
    released: RowWords, absent: F64, least: F64, rows: Any, own: Any, chosen: I64, known: I64, counts: I64,
    fit: WordsFit, only_first: bool, scratch: F64,
) -> None:  # fmt: skip
    """Score released rows for an adversary with some words, by the table of a long law.

    `known` are its columns, int64[Q, most]. `least` is of :func:`by_chance`.
    """
    words = absent.shape[1]
    for row in range(released.shape.shape[0]):
        n = 0
        for w in range(words):
            scratch[w] = 0.0
        for u in range(released.starts[released.pieces[row]], released.starts[released.pieces[row + 1]]):
            if released.kind[u] != DRAWN or (only_first and released.first[u] >= 0):
                continue
            n += 1
            y = released.ids[u]
            for w in range(words):
                scratch[w] += absent[y, w]
        if n == 0:
            continue
        for w in range(words):
            chance = least[n, w] if n < least.shape[0] else math.expm1(n * least[0, w])
            scratch[w] = math.expm1(scratch[w]) / chance
        for i in range(chosen.shape[0]):
            q = chosen[i]
            product = 1.0
            k = 0
            for r in range(counts[q]):
                product *= scratch[known[q, r]]
                while k < fit.sizes.shape[0] and fit.sizes[k] == r + 1:
                    if product > 0.0:
                        _count(row, rows, own, q, k, math.log(product), fit)
                    k += 1
