"""The words nearest to noisy vectors, exactly: float32 matrix products, decided in float64 in one fixed order.

The nearest word has the largest score <q,u> - |u|²/2. Tiles of queries times tiles of words go through one matrix product in
float32; a compiled scan keeps, for each query, every word that can still be among the best, given the largest error that float32
can have made; those few are scored again in float64, in one fixed order of additions, and ties go to the lower id. So the
answer is that of a plain float64 search over the whole lexicon, whatever the batch, the threads and the processor, and no more
than one tile of scores is ever held.

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

from dptext_spark.compiled import Int, compiled, inlined
from dptext_spark.mechanisms.kernels.scores import best_two, half_squares

Reals = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]

TOKENS = 512  # queries of a matrix product
WORDS = 1024  # words of a matrix product: a tile of scores is 2 MiB
SLOTS = 32  # candidates held for a query; a list that is full is decided in float64 and cut to the best
CHUNK = 64  # scores that are looked at together
LONGEST = 1e15  # float32 products of longer vectors could overflow: they are searched in float64 alone
UNDERFLOW = 1e-37  # what a float32 term can lose by underflow, whatever its relative error


@compiled
def _scan(
    products: Any, begin: Int, errors: Any, wanted: Int, size: Int, queries: Any, words: Any, halves: Any,
    narrow: Any, found: Any, most: Any, count: Any, bars: Any,
) -> None:  # fmt: skip
    """Note the words of one tile that can be among the best of each query.

    Args:
        products: float32[n, w], the inner products of the queries with words begin..begin+w.
        begin: the tile's first word.
        errors: float64[n], how far a float32 score of this tile can be from the float64 one.
        wanted: 1 or 2, how many of the best are looked for.
        size: d.
        queries: float64[n * d].
        words: float32[V * d].
        halves: float64[V].
        narrow: float32[V], the same.
        found: int32[n, SLOTS], the words noted so far.
        most: float64[n, SLOTS], the most that the float64 score of each can be.
        count: int32[n], how many.
        bars: float64[n, 2], what the best and the second best score reach at least.
    """
    width = products.shape[1]
    for i in range(products.shape[0]):
        error = errors[i]
        limit = _limit(bars[i, wanted - 1], error)
        for start in range(0, width, CHUNK):
            end = min(start + CHUNK, width)
            if end == start + CHUNK:
                # A fixed number of turns and 32 bits a turn: this compiles to vector comparisons.
                hits = np.int32(0)
                part, less = products[i, start:end], narrow[begin + start : begin + end]
                for j in range(CHUNK):
                    hits |= np.int32(part[j] - less[j] >= limit)
                if hits == 0:
                    continue
            for j in range(start, end):
                about = products[i, j] - narrow[begin + j]
                if not about >= limit:
                    continue
                if count[i] == SLOTS:
                    _cut(i, wanted, size, queries, words, halves, found, most, count, bars)
                found[i, count[i]] = begin + j
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
    """Fill out int32[n, 2] with the best and the second best of the noted words, or of all words where count is -1."""
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
class Targets:
    """The words that a noisy vector is snapped to.

    Attributes:
        vectors: float32[V, d], C order, finite; may be memory-mapped.
        halves: float64[V], half their squared lengths.
    """

    vectors: Vectors
    halves: Reals

    @classmethod
    def of(cls, vectors: Vectors) -> Targets:
        """Measure the vectors."""
        return cls(vectors, half_squares(vectors.reshape(-1), vectors.shape[1]))

    @cached_property
    def longest(self) -> Reals:
        """float64[tiles]: the largest length in each tile of words, rounded up."""
        starts = np.arange(0, len(self.halves), WORDS)
        return np.asarray(np.sqrt(2.0 * np.maximum.reduceat(self.halves, starts)) * (1 + 1e-9), np.float64)

    @cached_property
    def reach(self) -> float:
        """The largest length of all, rounded up."""
        return float(self.longest.max())

    @cached_property
    def _narrow(self) -> Vectors:
        with np.errstate(over="ignore"):  # words beyond LONGEST are not searched in float32
            return self.halves.astype(np.float32)

    def search(self, queries: Reals, wanted: int = 1) -> Ids:
        """Find the words nearest to some points.

        Args:
            queries: float64[n, d], C order.
            wanted: 1 for the nearest word alone, 2 for the second, too.

        Returns:
            int32[n, 2]: the nearest word and, if wanted, the second nearest; ties to the lower id.
        """
        n, size = queries.shape
        out = np.empty((n, 2), np.int32)
        for start in range(0, n, TOKENS):
            rows = slice(start, start + TOKENS)
            out[rows] = self._search_tile(queries[rows], wanted, size)
        return out

    def _search_tile(self, queries: Reals, wanted: int, size: int) -> Ids:
        n = len(queries)
        out = np.empty((n, 2), np.int32)
        flat, words = queries.reshape(-1), self.vectors.reshape(-1)
        lengths = np.sqrt(2.0 * half_squares(flat, size)) * (1 + 1e-9)
        found, most = np.empty((n, SLOTS), np.int32), np.empty((n, SLOTS))
        count, bars = np.zeros(n, np.int32), np.full((n, 2), -np.inf)
        narrow = (lengths <= LONGEST) & (self.reach <= LONGEST)  # not where a length is no number
        if narrow.all():
            asked = queries.astype(np.float32)
            held = np.empty(n * WORDS, np.float32)
            unit = 1.02 * (size + 8) * 2.0**-24
            for tile, begin in enumerate(range(0, len(self.vectors), WORDS)):
                block = self.vectors[begin : begin + WORDS]
                products = held[: n * len(block)].reshape(n, len(block))
                np.matmul(asked, block.T, out=products)
                reach = self.longest[tile]
                errors = unit * (lengths * reach + 0.5 * reach * reach)
                errors += size * UNDERFLOW * (1.0 + lengths + reach)
                _scan(
                    products, begin, errors, wanted, size, flat, words, self.halves, self._narrow, found, most,
                    count, bars,
                )  # fmt: skip
        else:
            count[:] = -1
        _decide(flat, words, size, self.halves, wanted, found, most, count, bars, out)
        return out
