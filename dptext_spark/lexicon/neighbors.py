"""The k nearest words, exactly: float32 candidates from faiss, decided in float64 in a fixed order.

The candidates come with a few to spare. Their distances are computed anew, one term after the other in
float64. So they do not depend on threads, batches or the processor. The answer is accepted only if no word
outside the candidates can be as near, given the largest possible error of the float32 search. Otherwise more
candidates are taken, in the end the whole lexicon.

Bound: in any order of summation a float32 inner product of d terms errs by at most g·|x||y|, g = du/(1-du), u
= 2^-24. See Higham 2002, Accuracy and Stability of Numerical Algorithms, §3.1. So squared distances taken as
|x|² + |y|² - 2xy err by at most e·(|x|+|y|)², and cosines of normalised rows by e. Here e = 1.02·(d+4)·u
leaves room for the last roundings.
"""

from __future__ import annotations

from typing import Any, Literal

import faiss
import numpy as np

from dptext_spark.arrays import F64, Ids, Vectors
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.runtime.jit import compiled

Metric = Literal["cosine", "euclidean"]
METRICS = ("cosine", "euclidean")

SPARE = 8  # candidates beyond those asked for
WIDEN = 4  # factor by which an undecided query widens its search
QUERY_ROWS = 4096  # queries searched at once
BLOCK_VALUES = 1 << 26  # values held at once: normalised rows (256 MiB), distances of candidates (512 MiB)
LARGEST_SQUARE = 1e30  # with longer vectors float32 squares overflow: everything is measured in float64
UNDERFLOW = 1e-37  # what a float32 term can lose by underflow, whatever its relative error


def nearest(vectors: Vectors, queries: Ids, k: int, metric: Metric) -> tuple[Ids, F64]:
    """Find the k nearest words of some words.

    Args:
        vectors: float32[V, d], C order, finite; may be memory-mapped.
        queries: int[q], row ids.
        k: how many, 1 to V, the query itself included.
        metric: `euclidean`, or `cosine`; a zero vector has cosine 0 to everything, itself included.

    Returns:
        (ids int32[q, k], distances float64[q, k]): the query itself first, whoever else shares its vector;
        then by distance, ties by id. The distance is the Euclidean one, or 1 - cosine.

    Raises:
        SettingsError: `k` or a query is out of range, or the metric is unknown.
    """
    require_choice("metric", metric, METRICS)
    if not 1 <= k <= len(vectors):
        raise SettingsError(f"k: {k} is not valid. Choose 1 to {len(vectors)}, the number of words.")
    queries = np.asarray(queries, np.int32)
    if len(queries) and not 0 <= queries.min() <= queries.max() < len(vectors):
        raise SettingsError(f"queries: a row id is not valid. Choose 0 to {len(vectors) - 1}.")
    ids, distances = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float64)
    squares = squared_lengths(vectors)
    for start in range(0, len(queries), QUERY_ROWS):
        block = slice(start, start + QUERY_ROWS)
        ids[block], distances[block] = _nearest_block(vectors, squares, queries[block], k, metric == "cosine")
    return ids, distances


def nearest_in(vectors: Vectors, queries: Ids, pool: Ids, k: int, metric: Metric) -> tuple[Ids, F64]:
    """Find the k nearest words of some words within a pool of words that they belong to.

    Args:
        vectors: float32[V, d], C order, finite; the pool's rows are copied.
        queries: int[q], row ids, each in the pool.
        pool: int32[p], row ids, ascending, distinct.
        k: how many, 1 to p, the query itself included.
        metric: as for :func:`nearest`.

    Returns:
        As :func:`nearest`, over the pool alone.

    Raises:
        SettingsError: as :func:`nearest`; a query outside the pool; a pool that does not ascend within the
            lexicon.
    """
    pool, queries = np.asarray(pool, np.int32), np.asarray(queries, np.int32)
    if len(pool) and (pool[0] < 0 or pool[-1] >= len(vectors) or bool((pool[1:] <= pool[:-1]).any())):
        raise SettingsError(
            f"pool: row ids must be distinct and ascend from 0 to {len(vectors) - 1} at most."
        )
    if not bool(np.isin(queries, pool).all()):
        raise SettingsError("queries: a query is not in the pool. Choose queries from the pool.")
    ids, distances = nearest(vectors[pool], np.searchsorted(pool, queries).astype(np.int32), k, metric)
    return pool[ids], distances


def _nearest_block(vectors: Vectors, squares: F64, queries: Ids, k: int, cosine: bool) -> tuple[Ids, F64]:
    """Answer some queries: search, decide, and search wider for those that the float32 error leaves open."""
    words = len(vectors)
    ids, distances = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float64)
    waiting = np.arange(len(queries))
    searchable = cosine or float(squares.max()) <= LARGEST_SQUARE
    count = min(words, k + SPARE) if searchable else words
    while len(waiting):
        step = max(1, BLOCK_VALUES // count)
        undecided = [waiting[:0]]
        for part in (waiting[i : i + step] for i in range(0, len(waiting), step)):
            rows = queries[part]
            near, reach = _candidates(vectors, squares, rows, count, cosine)
            measured = _measure(vectors, squares, rows, near, cosine)
            ids[part], distances[part] = _self_first(rows, near, measured, k, squares, cosine)
            bound = _outside(squares, rows, distances[part, -1], reach, vectors.shape[1], cosine)
            undecided.append(part[distances[part, -1] >= bound])
        waiting = np.concatenate(undecided)
        count = min(words, count * WIDEN)
    return ids, distances


def _candidates(vectors: Vectors, squares: F64, rows: Ids, count: int, cosine: bool) -> tuple[Ids, F64]:
    """Return (ids int32[q, count], reach float64[q]): near words by float32, and the farthest one's score.

    No word outside has a better score. Where the candidates hold every word that can matter, reach is NaN.
    """
    if count == len(vectors):
        everything = np.tile(np.arange(count, dtype=np.int32), (len(rows), 1))
        return everything, np.full(len(rows), np.nan)
    if not cosine:
        score, near = faiss.knn(vectors[rows], vectors, count, metric=faiss.METRIC_L2)
        return near.astype(np.int32), score[:, -1].astype(np.float64)
    asked = _normalised(vectors[rows], squares[rows])
    step = max(1, BLOCK_VALUES // vectors.shape[1])
    score, near = np.empty((len(rows), 0), np.float32), np.empty((len(rows), 0), np.int64)
    for start in range(0, len(vectors), step):
        block = _normalised(vectors[start : start + step], squares[start : start + step])
        more, where = faiss.knn(asked, block, min(count, len(block)), metric=faiss.METRIC_INNER_PRODUCT)
        score, near = np.hstack([score, more]), np.hstack([near, where + start])
        best = np.argsort(-score, axis=1, kind="stable")[:, :count]
        score, near = np.take_along_axis(score, best, axis=1), np.take_along_axis(near, best, axis=1)
    reach = score[:, -1].astype(np.float64)
    nowhere = squares[rows] == 0  # every word has cosine 0 to a zero vector: the lowest ids are the nearest
    near[nowhere], reach[nowhere] = np.arange(count), np.nan
    return near.astype(np.int32), reach


def rounding(dimensions: int) -> float:
    """Return e of this module's docstring: the error of a float32 search, relative to (|x|+|y|)² or to 1."""
    return 1.02 * (dimensions + 4) * 2.0**-24


def _outside(squares: F64, rows: Ids, last: F64, reach: F64, dimensions: int, cosine: bool) -> F64:
    """Return float64[q]: a distance that every word outside the candidates exceeds or equals.

    A word u with |u| > |x| + last is farther than last by the triangle inequality; the others set the error.
    """
    error = rounding(dimensions)
    if cosine:
        bound = 1.0 - reach - error
    else:
        length = np.sqrt(squares[rows])
        other = np.minimum(np.sqrt(squares.max()), length + last)
        square = reach - error * (length + other) ** 2 - dimensions * UNDERFLOW
        bound = np.sqrt(np.maximum(square, 0.0))
    return np.where(np.isnan(reach), np.inf, bound)


def _self_first(rows: Ids, near: Ids, measured: F64, k: int, squares: F64, cosine: bool) -> tuple[Ids, F64]:
    """Return each query itself and the k-1 nearest of its other candidates: ids and distances, [q, k]."""
    others = np.where(near == rows[:, None], np.inf, measured)
    order = np.lexsort((near, others), axis=1)[:, : k - 1]
    own = ((squares[rows] == 0) & cosine).astype(np.float64)
    return (
        np.hstack([rows[:, None], np.take_along_axis(near, order, axis=1)]),
        np.hstack([own[:, None], np.take_along_axis(others, order, axis=1)]),
    )


@compiled
def squared_lengths(vectors: Any) -> Any:
    """Return float64[V]: the squared length of each row, summed in order."""
    out = np.zeros(vectors.shape[0])
    for i in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            total += np.float64(vectors[i, j]) * np.float64(vectors[i, j])
        out[i] = total
    return out


@compiled
def _normalised(vectors: Any, squares: Any) -> Any:
    """Return float32[V, d]: rows of length 1, zero rows as they are."""
    out = np.zeros(vectors.shape, np.float32)
    for i in range(vectors.shape[0]):
        if squares[i] > 0:
            scale = 1.0 / np.sqrt(squares[i])
            for j in range(vectors.shape[1]):
                out[i, j] = np.float32(np.float64(vectors[i, j]) * scale)
    return out


@compiled
def _measure(vectors: Any, squares: Any, rows: Any, near: Any, cosine: bool) -> Any:
    """Return float64[q, c]: the distances from rows[q] to near[q, c], each summed in order."""
    out = np.empty(near.shape, np.float64)
    for i in range(near.shape[0]):
        x = vectors[rows[i]]
        for c in range(near.shape[1]):
            u = vectors[near[i, c]]
            total = 0.0
            if cosine:
                for j in range(x.shape[0]):
                    total += np.float64(x[j]) * np.float64(u[j])
                both = np.sqrt(squares[rows[i]] * squares[near[i, c]])
                out[i, c] = 1.0 - min(1.0, max(-1.0, total / both)) if both > 0 else 1.0
            else:
                for j in range(x.shape[0]):
                    gap = np.float64(x[j]) - np.float64(u[j])
                    total += gap * gap
                out[i, c] = np.sqrt(total)
    return out
