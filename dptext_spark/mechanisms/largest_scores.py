"""For each query the point of largest score <q, z> + b(z), exactly. Float64 in a fixed order decides; float32 only leaves out.

Scores of all queries and points are V² inner products. A bound leaves out most points. It splits q and z into
their parts along a few directions, in which points vary most, and the rest. By Cauchy and Schwarz <q, z> is
at most the product along these directions plus the product of the lengths of the rests. One matrix product in
float32 gives the bound of every pair, a margin for its rounding included. A pair with a bound below an
earlier score cannot win. The others are scored in float64, always with the same additions: the answer depends
on no processor, number of threads or library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dptext_spark.arrays import F32, F64, I64, Bools, Ids
from dptext_spark.mechanisms.matrices import in_threads, row_product
from dptext_spark.runtime.jit import Int, compiled, inlined

DIRECTIONS = 48
LOOKED_AT = 4096  # points that the directions are found by
FEW_DIMENSIONS = 56  # and fewer: all of them are directions
TOGETHER = 256  # queries whose bounds are held at once, by each thread
TILE = 2_048  # points, whose bounds stay in the cache
CHUNK = 32  # bounds that are compared before one of them is looked at
LARGEST = 1e15  # with longer vectors float32 squares overflow: every pair is scored
ROUNDING = 2.0**-24


class BestPoints(NamedTuple):
    """The best points of n queries.

    Attributes:
        point: int32[n], the id of the point of the largest score, ties to the lower id.
        unsure: bool[n], whether another point comes within the tolerance of the query.
    """

    point: Ids
    unsure: Bools


class Points(NamedTuple):
    """The points that scores are taken of.

    Attributes:
        vectors: float64[V, d].
        bias: float64[V].
        allowed: int32[m], the ids that can win, ascending, at least one.
    """

    vectors: F64
    bias: F64
    allowed: Ids


@inlined
def _score(queries: Any, i: Int, vectors: Any, z: Int, size: Int, bias: Any) -> Any:
    """Return <q_i, z> + b(z) in float64, in a fixed order; queries and vectors are flat."""
    return row_product(queries, i, vectors, np.int64(z), size) + bias[z]


@compiled
def _try(
    queries: Any, size: Int, vectors: Any, bias: Any, able: Any, starts: Any, ids: Any, best: Any, who: Any
) -> None:
    """Take the best of some listed points of each query as its first guess; rows starts[i]:starts[i + 1] of ids."""
    for i in range(best.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            z = ids[e]
            if not able[z]:
                continue
            value = _score(queries, i, vectors, z, size, bias)
            if value > best[i] or (value == best[i] and z < who[i]) or who[i] < 0:
                best[i], who[i] = value, z


@compiled
def _search(
    bounds: Any, first: Int, queries: Any, size: Int, vectors: Any, bias: Any, allowed: Any, margin: Any, best: Any, who: Any,
    second: Any,
) -> None:  # fmt: skip
    """Score the pairs whose bound reaches the best score so far.

    `bounds` is float32[n, m] of queries first..first + n and the points `allowed` int32[m]; of no columns where all are scored.
    `queries` float64[q * d] and `vectors` float64[V * d] are flat. `margin` float64[q] is what rounding may take from a bound.
    `best`, `who` (its point, -1 for none) and `second`, the best score of another point, are of each query so far.
    """
    points, every = allowed.shape[0], bounds.shape[1] == 0
    for row in range(bounds.shape[0]):
        i = first + row
        value, holder, other = best[i], np.int64(who[i]), second[i]
        bar = np.float32(value - margin[i])
        for begin in range(0, points, CHUNK):
            end, reached = min(begin + CHUNK, points), np.int64(every)
            if not every:
                for j in range(begin, end):
                    reached += bounds[row, j] >= bar
            if reached == 0:
                continue
            for j in range(begin, end):
                z = np.int64(allowed[j])
                if z == holder or not (every or bounds[row, j] >= bar):
                    continue
                score = _score(queries, i, vectors, z, size, bias)
                if holder < 0 or score > value or (score == value and z < holder):
                    other, value, holder = max(other, value), score, z
                    bar = np.float32(value - margin[i])
                else:
                    other = max(other, score)
        best[i], who[i], second[i] = value, holder, other


def largest_scores(
    queries: F64, points: Points, *, guesses: tuple[I64, Ids] | None = None, tolerance: float = 0.0
) -> BestPoints:
    """Return the best point of each query.

    Args:
        queries: float64[n, d].
        points: what scores are taken of.
        guesses: (starts int64[n + 1], ids int32[k]): points worth trying first; None where none are known.
        tolerance: relative to the length of the query and of the longest point: scores nearer than that leave a query unsure.
    """
    size = queries.shape[1]
    flat, vectors = np.ascontiguousarray(queries).reshape(-1), points.vectors.reshape(-1)
    best, who = np.full(len(queries), -math.inf), np.full(len(queries), -1, np.int32)
    second = np.full(len(queries), -math.inf)
    able = np.zeros(len(points.vectors), np.bool_)
    able[points.allowed] = True
    chosen, bias = points.vectors[points.allowed], points.bias[points.allowed]
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    longest = math.sqrt(float(np.einsum("ij,ij->i", chosen, chosen).max()))
    room = lengths * longest + float(np.abs(bias).max())
    # Small products, for which threads of a library only wait for each other.
    with threadpool_limits(1, "blas"):
        bounds = _Bounds.of(queries, chosen, bias, points.allowed)
    margin = 8.0 * (min(size, FEW_DIMENSIONS) + 8) * ROUNDING * room

    def guess(part: slice, starts: I64, ids: Ids) -> None:
        _try(
            flat[part.start * size : part.stop * size], size, vectors, points.bias, able, starts, ids, best[part], who[part]
        )  # fmt: skip

    def search(some: I64) -> None:
        part = slice(int(some[0]), int(some[-1]) + 1)
        if guesses is not None:
            guess(part, guesses[0][part.start : part.stop + 1], guesses[1])
        elif bounds is not None:
            guess(part, np.arange(len(some) + 1), bounds.likely(part))
        tiles = (
            [(np.empty((len(some), 0), np.float32), points.allowed)] if bounds is None else bounds.tiles(part)
        )
        for score_bounds, ids in tiles:
            _search(
                score_bounds, part.start, flat, size, vectors, points.bias, ids, margin, best, who, second
            )  # fmt: skip

    in_threads(search, np.arange(len(queries)), TOGETHER)
    return BestPoints(who, best - second <= tolerance * room)


class _Bounds(NamedTuple):
    """The factors of the matrix products that make the bounds.

    Attributes:
        queries: float32[n, p + 2].
        points: float32[p + 2, t] of each tile.
        allowed: int32[t], the ids of its points.
    """

    queries: F32
    points: list[F32]
    allowed: list[Ids]

    @classmethod
    def of(cls, queries: F64, points: F64, bias: F64, allowed: Ids) -> _Bounds | None:
        """Build the bounds; None if float32 has no room."""
        if max(float(np.abs(queries).max()), float(np.abs(points).max())) > LARGEST:
            return None
        along = np.eye(points.shape[1])
        # Any orthonormal directions will do; these leave the shortest rests.
        if points.shape[1] > FEW_DIMENSIONS:
            some = points[:: -(-len(points) // LOOKED_AT)]
            along = np.ascontiguousarray(np.linalg.eigh(some.T @ some)[1][:, : -DIRECTIONS - 1 : -1])
        left = _split(queries, along, np.ones(len(queries)))
        right = _split(points, along, bias)
        starts = range(0, len(points), TILE)
        return cls(
            left,
            [np.ascontiguousarray(right[start : start + TILE].T) for start in starts],
            [allowed[start : start + TILE] for start in starts],
        )

    def tiles(self, part: slice) -> Iterator[tuple[F32, Ids]]:
        """Yield (float32[n, t], the bounds of some queries and the points of a tile; their ids). One array serves all."""
        queries = self.queries[part]
        room = np.empty(len(queries) * TILE, np.float32)
        for points, allowed in zip(self.points, self.allowed, strict=True):
            bounds = room[: len(queries) * len(allowed)].reshape(len(queries), len(allowed))
            yield np.matmul(queries, points, out=bounds), allowed

    def likely(self, part: slice) -> Ids:
        """Return the points of the largest bounds, int32[n]."""
        best = np.full(part.stop - part.start, -math.inf)
        named = np.zeros(len(best), np.int32)
        for bounds, allowed in self.tiles(part):
            place = bounds.argmax(axis=1)
            value = bounds[np.arange(len(bounds)), place]
            named = np.where(value > best, allowed[place], named)
            best = np.maximum(best, value)
        return named


def _split(rows: F64, along: F64, last: F64) -> F32:
    """Return float32[n, p + 2]: parts of rows along some directions, lengths of the rests, never too short, and `last`."""
    parts = rows @ along
    squares = np.einsum("ij,ij->i", rows, rows)
    left = squares - np.einsum("ij,ij->i", parts, parts)
    out = np.empty((len(rows), along.shape[1] + 2), np.float32)
    out[:, :-2], out[:, -1] = parts, last
    out[:, -2] = np.sqrt(np.maximum(left, 0.0) + 1e-12 * squares)
    return out
