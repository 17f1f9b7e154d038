"""The words nearest to noisy vectors, exactly: float32 matrix products, decided in float64 in one fixed order.

The nearest word has the largest score <q,u> - |u|²/2. Tiles of queries times tiles of words go through one matrix product in
float32; a compiled scan keeps, for each query, every word that can still be among the best, given the largest error that float32
can have made; those few are scored again in float64, in one fixed order of additions, and ties go to the lower id. So the
answer is that of a plain float64 search over the words that took part, whatever the batch, the threads and the processor, and
no more than one tile of scores is ever held.

Bound: a float32 inner product of d terms errs by at most g·|q||u|, g = nv/(1-nv), v = 2^-24, in any order of summation (Higham
2002, Accuracy and Stability of Numerical Algorithms, §3.1); rounding q, |u|²/2, their difference and the float64 score that it
stands for adds less than four more such terms. So |float32 score - float64 score| <= 1.02·(d+8)·v·(|q||u| + |u|²/2), and what
can be lost by underflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, Ids, ReadOnlyArrays, Vectors
from dptext_spark.mechanisms.samplers.scores import best_two, half_squares
from dptext_spark.runtime.jit import Int, compiled, inlined

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
    """Note the words of one block that can be among the best of each of some queries.

    Args:
        products: float32[m, w], the inner products of the queries with the words.
        rows: int64[m], which queries.
        ids: int32[w], which words.
        errors: float64[m], how far a float32 score of this block can be from the float64 one.
        wanted: 1 or 2, how many of the best are looked for.
        size: d.
        queries: float64[n * d].
        words: float32[V * d].
        halves: float64[V].
        narrow: float32[w], the halves of these words.
        found: int32[n, SLOTS], the words noted so far.
        most: float64[n, SLOTS], the most that the float64 score of each can be.
        count: int32[n], how many.
        bars: float64[n, 2], what the best and the second best score reach at least.
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
    """Fill `out`, int32[n, 2], with the best and the second best of the noted words, or of all words where count is -1."""
    for i in range(out.shape[0]):
        kept = count[i]
        if kept >= 0:
            kept = 0
            for j in range(count[i]):
                if most[i, j] >= bars[i, wanted - 1]:
                    found[i, kept] = found[i, j]
                    kept += 1
        if kept == 1:
            out[i, 0], out[i, 1] = found[i, 0], -1
        else:
            first, second, _, _ = best_two(queries, i, words, size, halves, found[i], kept)
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
    """Some points, and the words that can still be among the nearest to each."""

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
