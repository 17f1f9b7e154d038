"""The words nearest to noisy vectors, exactly: float32 matrix products, decided in float64 in one fixed order.

The nearest word has the largest score <q,u> - |u|²/2. Tiles of queries times tiles of words go through one matrix product in
float32. A compiled scan keeps, for each query, every word that can still be among the best, given the largest possible error of
float32. Those few are scored again in float64, in one fixed order of additions. Ties go to the lower id. So the answer is that of
a plain float64 search over the same words, with any batch, threads and processor. No more than one tile of scores is ever in
memory.

Bound: in any order of summation a float32 inner product of d terms errs by at most g·|q||u|, g = nv/(1-nv), v = 2^-24. See
Higham 2002, Accuracy and Stability of Numerical Algorithms, §3.1. Rounding q, |u|²/2, their difference and the float64 score
adds less than four more such terms. So |float32 score - float64 score| <= 1.02·(d+8)·v·(|q||u| + |u|²/2), and what can be lost
by underflow.

Scores of words against noisy vectors, <q,u> - |u|²/2, in float64 in one fixed order of additions: what decides.

The word with the largest score is the nearest to q. Unlike the distance, the score keeps its digits if |q| is large.

Draws that the nearest neighbours settle: where noise is short, no word far away can be nearest to the noisy vector.

Let p0 <= p1 <= ... be the distances of a word's vector c to the targets, and q = c + Z. A target at distance
p is at least p - |Z| from q. The nearest is at most p0 + |Z| away, and the second nearest at most p1 + |Z|.
So only targets with p <= p0 + 2|Z| can be nearest. Only those with p <= p1 + 2|Z| can be among the two
nearest. The bounds are widened by the largest rounding of float64. So an answer is always, not nearly always,
the one of a search over the whole lexicon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, Ids, ReadOnlyArrays, Vectors
from dptext_spark.lexicon.neighbors import nearest
from dptext_spark.mechanisms.matrices import row_product
from dptext_spark.runtime.jit import Int, compiled, inlined


@inlined
def score(queries: Any, i: Int, words: Any, u: Int, size: Int, halves: Any) -> Any:
    """Return <q_i, u> - |u|²/2 in float64, in a fixed order.

    Args:
        queries: float64[n * d], flat.
        i: a query.
        words: float32[V * d], flat.
        u: a word.
        size: d.
        halves: float64[V], half the squared lengths.
    """
    return row_product(queries, i, words, u, size) - halves[u]


@compiled
def half_squares(words: Any, size: Int) -> Any:
    """Return float64[V]: half the squared length of each row of float32[V * d], in a fixed order."""
    out = np.empty(words.shape[0] // size)
    for u in range(out.shape[0]):
        out[u] = 0.5 * row_product(words, u, words, u, size)
    return out


@inlined
def better(value: float, u: Int, best: float, holder: Int) -> Any:
    """Check whether word u with `value` comes before `holder` with `best`: by score, ties by id; -1 holds nothing."""
    return holder < 0 or value > best or (value == best and u < holder)


@compiled
def best_two(
    queries: Any, i: Int, words: Any, size: Int, halves: Any, among: Any, count: Int
) -> tuple[Int, Int, Any, Any]:
    """Return (first, second, their scores) of query i among int32[count] words, or all words if count is -1."""
    first: Int = -1
    second: Int = -1
    most, next_most = -math.inf, -math.inf
    for k in range(halves.shape[0] if count < 0 else count):
        u = k if count < 0 else np.int64(among[k])
        value = score(queries, i, words, u, size, halves)
        if better(value, u, most, first):
            second, next_most = first, most
            first, most = u, value
        elif better(value, u, next_most, second):
            second, next_most = u, value
    return first, second, most, next_most


Some = slice | npt.NDArray[Any]

TOKENS = 512  # queries of a matrix product
WORDS = 1024  # words of a matrix product: a tile of scores is 2 MiB
SLOTS = 32  # candidates held for a query; a list that is full is decided in float64 and cut to the best
CHUNK = 64  # scores that are looked at together
LONGEST = 1e15  # float32 products of longer vectors could overflow: they are searched in float64 alone
UNDERFLOW = 1e-37  # what a float32 term can lose by underflow, whatever its relative error


@compiled
def _scan(
    products: Any, rows: Any, ids: Any, errors: Any, wanted: Int, size: Int, queries: Any, words: Any, halves: Any,
    narrow: Any, found: Any, most: Any, count: Any, bars: Any,
) -> None:  # fmt: skip
    """Note a block's words that can be among the best for each of some queries.

    `products` float32[m, w] are of the queries `rows` int64[m] with the words `ids` int32[w]. `errors` float64[m] is how far a
    float32 score of this block can be from the float64 one. `wanted` is 1 or 2, how many of the best are looked for. `narrow`
    are the `halves` of these words in float32. `found` and `most` [n, SLOTS] are the `count` words noted so far and the most
    that their float64 score can be; `bars` float64[n, 2] what the best and the second best score reach at least.
    """
    width = products.shape[1]
    for row in range(products.shape[0]):
        i, error = rows[row], errors[row]
        limit = _limit(bars[i, wanted - 1], error)
        for start in range(0, width, CHUNK):
            end = min(start + CHUNK, width)
            if end == start + CHUNK:
                # A fixed number of turns and 32 bits a turn: this compiles to vector comparisons.
                hits = np.int32(0)
                part, less = products[row, start:end], narrow[start:end]
                for j in range(CHUNK):
                    hits |= np.int32(part[j] - less[j] >= limit)
                if hits == 0:
                    continue
            for j in range(start, end):
                about = products[row, j] - narrow[j]
                if not about >= limit:
                    continue
                if count[i] == SLOTS:
                    _cut(i, wanted, size, queries, words, halves, found, most, count, bars)
                found[i, count[i]] = ids[j]
                most[i, count[i]] = np.float64(about) + error
                count[i] += 1
                least = np.float64(about) - error
                if least > bars[i, 0]:
                    bars[i, 1] = bars[i, 0]
                    bars[i, 0] = least
                elif least > bars[i, 1]:
                    bars[i, 1] = least
                limit = _limit(bars[i, wanted - 1], error)


@inlined
def _limit(bar: float, error: float) -> Any:
    """Return a float32 that is at most bar - error: below it no float32 score can matter."""
    low = bar - error
    return np.float32(low - abs(low) * 2.0**-22)


@compiled
def _cut(
    i: Int, wanted: Int, size: Int, queries: Any, words: Any, halves: Any, found: Any, most: Any, count: Any, bars: Any
) -> None:  # fmt: skip
    """Decide a full list in float64: only the best stay, and they set the bar."""
    first, second, highest, next_highest = best_two(queries, i, words, size, halves, found[i], count[i])
    found[i, 0], most[i, 0] = first, highest
    found[i, 1], most[i, 1] = second, next_highest
    count[i] = wanted
    bars[i, 0] = max(bars[i, 0], highest)
    bars[i, 1] = max(bars[i, 1], next_highest)


@compiled
def _decide(
    queries: Any, words: Any, size: Int, halves: Any, wanted: Int, found: Any, most: Any, count: Any, bars: Any, out: Any
) -> None:  # fmt: skip
    """Fill `out`, int32[n, 2], with the best and second best noted words, or with those of all words if count is -1."""
    for i in range(out.shape[0]):
        remaining = count[i]
        if remaining >= 0:
            remaining = 0
            for j in range(count[i]):
                if most[i, j] >= bars[i, wanted - 1]:
                    found[i, remaining] = found[i, j]
                    remaining += 1
        if remaining == 1:
            out[i, 0], out[i, 1] = found[i, 0], -1
        else:
            first, second, _, _ = best_two(queries, i, words, size, halves, found[i], remaining)
            out[i, 0], out[i, 1] = first, second


@dataclass(frozen=True, eq=False)
class Targets(ReadOnlyArrays):
    """The words that a noisy vector is snapped to.

    Attributes:
        vectors: float32[V, d], C order, finite; may be memory-mapped.
        halves: float64[V], half their squared lengths.
    """

    vectors: Vectors
    halves: F64

    @classmethod
    def of(cls, vectors: Vectors) -> Targets:
        """Measure the vectors."""
        return cls(vectors, half_squares(vectors.reshape(-1), vectors.shape[1]))

    @cached_property
    def reach(self) -> float:
        """The largest length of all, rounded up."""
        return float(_lengths(self.halves.max()))

    @cached_property
    def narrow(self) -> Vectors:
        """The halves in float32."""
        with np.errstate(over="ignore"):  # words beyond LONGEST are not searched in float32
            return self.halves.astype(np.float32)

    @cached_property
    def ids(self) -> Ids:
        """Every word."""
        return np.arange(len(self.halves), dtype=np.int32)

    def search(self, queries: F64, wanted: int = 1) -> Ids:
        """Find the words nearest to some points.

        Args:
            queries: float64[n, d], C order.
            wanted: 1 for the nearest word alone, 2 for the second, too.

        Returns:
            int32[n, 2]: the nearest word and, if wanted, the second nearest; ties to the lower id.
        """
        out = np.empty((len(queries), 2), np.int32)
        for start in range(0, len(queries), TOKENS):
            rows = slice(start, start + TOKENS)
            contest = Contest(self, queries[rows], wanted)
            for begin in range(0, len(self.vectors), WORDS):
                contest.enter(slice(None), slice(begin, begin + WORDS))
            out[rows] = contest.decide()
        return out


class Contest:
    """Points, and the words that can still be among the nearest to each."""

    def __init__(self, targets: Targets, queries: F64, wanted: int) -> None:
        """Begin without a word, for float64[n, d] points and the 1 or 2 nearest words."""
        n, self._size = queries.shape
        self._targets, self._wanted = targets, wanted
        self._queries, self._words = queries.reshape(-1), targets.vectors.reshape(-1)
        self._lengths = _lengths(half_squares(self._queries, self._size))
        # Not where a length is no number. What float32 does not hold is searched in float64, over all words.
        self._held = (self._lengths <= LONGEST) & (targets.reach <= LONGEST)
        self._asked = np.where(self._held[:, None], queries, 0.0).astype(np.float32)
        self._rows = np.arange(n)
        self._found, self._most = np.empty((n, SLOTS), np.int32), np.empty((n, SLOTS))
        self._count, self._bars = np.zeros(n, np.int32), np.full((n, 2), -np.inf)
        self._products = np.empty(0, np.float32)

    def enter(self, rows: Some, ids: Some) -> None:
        """Let words compete for points, each word once for a point.

        Args:
            rows: which points, a slice or int64[m].
            ids: which words, a slice or int32[w].
        """
        if not self._held.any():
            return
        targets, size = self._targets, self._size
        asked, block, lengths = self._asked[rows], targets.vectors[ids], self._lengths[rows]
        if self._products.size < len(asked) * len(block):
            self._products = np.empty(len(asked) * len(block), np.float32)
        products = self._products[: len(asked) * len(block)].reshape(len(asked), len(block))
        np.matmul(asked, block.T, out=products)
        reach = float(_lengths(targets.halves[ids].max()))
        errors = 1.02 * (size + 8) * 2.0**-24 * (lengths * reach + 0.5 * reach * reach)
        errors += size * UNDERFLOW * (1.0 + lengths + reach)
        _scan(
            products, self._rows[rows], targets.ids[ids], errors, self._wanted, size, self._queries, self._words,
            targets.halves, targets.narrow[ids], self._found, self._most, self._count, self._bars,
        )  # fmt: skip

    def decide(self) -> Ids:
        """Return int32[n, 2]: the nearest of the words that took part and, if wanted, the second; ties to the lower id."""
        self._count[~self._held] = -1
        out = np.empty((len(self._rows), 2), np.int32)
        _decide(
            self._queries, self._words, self._size, self._targets.halves, self._wanted, self._found, self._most,
            self._count, self._bars, out,
        )  # fmt: skip
        return out


def _lengths(halves: Any) -> Any:
    """Return the lengths that belong to half squares, rounded up."""
    return np.sqrt(2.0 * halves) * (1 + 1e-9)


SIZE = 64
SAMPLE = 256  # words by which the table's use is judged
LEAST = 0.01  # share of draws that a table must settle to be worth its memory
OPEN = -1  # in the place of a word: the table does not settle this draw


@dataclass(frozen=True, eq=False)
class NeighborTable(ReadOnlyArrays):
    """The nearest targets of each word.

    Attributes:
        near: int32[V, k], nearest first, ties by id; k = 0 settles nothing.
        reach: float64[V, 3], the distances of the first, the second and the last; the last infinite where k = V.
    """

    near: Ids
    reach: F64

    @classmethod
    def none(cls, words: int) -> NeighborTable:
        """Return a table that settles nothing."""
        return cls(np.empty((words, 0), np.int32), np.zeros((words, 3)))

    @classmethod
    def of(cls, vectors: Vectors, size: int = SIZE) -> NeighborTable:
        """Find the `size` nearest words of each of float32[V, d], 2 or more; all where V is less."""
        near, reach = _nearest(vectors, np.arange(len(vectors), dtype=np.int32), size)
        return cls(near, reach)

    @classmethod
    def for_noise(
        cls, vectors: Vectors, lengths: F64, wanted: int, size: int = SIZE
    ) -> tuple[NeighborTable, F64]:
        """Build a table if it settles enough draws. It never changes one.

        Args:
            vectors: float32[V, d].
            lengths: float64[n], lengths of noise.
            wanted: 1 for the nearest word alone, 2 for the second, too.
            size: of the table, 2 or more; 0 for none.

        Returns:
            (the table, or one that settles nothing; the distance to the nearest other word for 256 words, ascending).
        """
        words = len(vectors)
        rows = np.unique(np.linspace(0, words - 1, SAMPLE).astype(np.int32))
        _, reach = _nearest(vectors, rows, max(size, 2))
        room = reach[:, 2] - reach[:, wanted - 1]
        if wanted == 1:
            room = np.maximum(room, reach[:, 1])
        useful = size > 0 and bool((2.0 * lengths[:, None] < room).mean() >= LEAST)
        return cls.of(vectors, size) if useful else cls.none(words), np.sort(reach[:, 1])

    def settle(self, ids: Ids, centers: Vectors, targets: Targets, noisy: F64, wanted: int) -> Ids:
        """Add the vectors to the noise and answer where the table can.

        Args:
            ids: int32[n], the words.
            centers: float32[V, d].
            targets: what a noisy vector is snapped to.
            noisy: float64[n, d], noise; the words' vectors are added to it.
            wanted: 1 for the nearest word alone, 2 for the second, too.

        Returns:
            int32[n, 2]: the nearest and the second nearest word (if wanted), or `OPEN`.
        """
        out = np.full((len(ids), 2), OPEN, np.int32)
        _settle(
            ids, centers.reshape(-1), centers.shape[1], targets.vectors.reshape(-1), targets.halves, targets.reach,
            self.near, self.reach, wanted, noisy.reshape(-1), out,
        )  # fmt: skip
        return out


def _nearest(vectors: Vectors, rows: Ids, size: int) -> tuple[Ids, F64]:
    """Return the nearest words of some rows, and `reach` as the table has it."""
    k = min(len(vectors), size)
    near, distance = nearest(vectors, rows, k, "euclidean")
    reach = np.ascontiguousarray(distance[:, [0, 1, -1]])
    if k == len(vectors):
        reach[:, 2] = np.inf
    return near, reach


@compiled
def _length(flat: Any, i: Int, size: Int) -> float:
    """Return the length of row i of float64[n * d], in a fixed order."""
    return math.sqrt(row_product(flat, i, flat, i, size))


@compiled
def _settle(
    ids: Any, centers: Any, size: Int, words: Any, halves: Any, longest: float, near: Any, reach: Any, wanted: Int,
    noisy: Any, out: Any,
) -> None:  # fmt: skip
    """See :meth:`NeighborTable.settle`.

    A float64 sum of d products is off by at most e times the product of the lengths, e = 1.02·(d + 8)·2^-53. Two scores that
    differ by more than 2·e·(|q|·L + L²/2), L the longest target, are ordered as the real ones. That holds if distances differ by
    m with m²/2 as large.
    """
    error = 1.02 * (size + 8) * 2.0**-53
    for i in range(ids.shape[0]):
        word = np.int64(ids[i])
        noise = _length(noisy, i, size)
        for k in range(size):
            noisy[i * size + k] += np.float64(centers[word * size + k])
        if near.shape[1] == 0:
            continue
        length = _length(noisy, i, size)
        margin = math.sqrt(5.0 * error * (length * longest + longest * longest))
        bound = (reach[word, wanted - 1] + 2.0 * noise) * (1.0 + 2.0 * error) + 2.0**-50 * length + margin
        if wanted == 1 and reach[word, 1] * (1.0 - 2.0 * error) > bound:
            out[i, 0] = near[word, 0]
        elif reach[word, 2] * (1.0 - 2.0 * error) > bound:
            first, second, _, _ = best_two(noisy, i, words, size, halves, near[word], near.shape[1])
            out[i, 0], out[i, 1] = first, second
