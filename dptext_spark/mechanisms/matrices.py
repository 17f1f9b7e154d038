"""Matrices and distances in one fixed order of operations: the same bits on every processor.

A library's matrix product or eigenvalue routine adds in the order that suits the processor. A noise matrix or a projection made
by it would differ from node to node in the last bits. So would the artifact and, near a tie, the drawn word.

The distance between two words has the same bits in samplers, compilers and certificates. So have the largest distance of a
lexicon, and the number of words that lie nearer to a word than another does.

Each processor gets a thread: matrix products and compiled loops release the interpreter lock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dptext_spark.arrays import F32, F64, I32, I64, Ids, Vectors
from dptext_spark.lexicon.neighbors import UNDERFLOW
from dptext_spark.runtime.jit import Int, compiled, inlined, inner_product, squared_gap, squared_gaps

SWEEPS = 60  # of the Jacobi method; some ten are needed


@inlined
def row_product(left: Any, i: Int, right: Any, j: Int, size: Int) -> Any:
    """Compute the inner product of row i of a matrix and row j of another, in float64 and in a fixed order.

    Args:
        left: float32 or float64 [n * d], flat.
        i: a row of it.
        right: the same of another matrix.
        j: a row of that.
        size: d.
    """
    whole = size - size % 8
    total = inner_product(left, i * size, right, j * size, whole)
    for k in range(whole, size):
        total += np.float64(left[i * size + k]) * np.float64(right[j * size + k])
    return total


@compiled
def transform(columns: Any, rows: Any, out: Any) -> None:
    """Fill `out`, float64[n, m], with the products of a matrix and each row, summed over k = 0, 1, ... in turn.

    Args:
        columns: float64[k, m], the matrix's columns, one a row.
        rows: float32 or float64 [n, k].
        out: float64[n, m].
    """
    n, size = rows.shape
    width = columns.shape[1]
    out[:] = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):  # four rows at once read the matrix once; the order of additions is the same
        a, b, c, d = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(size):
            column = columns[k]
            w, x = np.float64(rows[i, k]), np.float64(rows[i + 1, k])
            y, z = np.float64(rows[i + 2, k]), np.float64(rows[i + 3, k])
            for j in range(width):
                a[j] += w * column[j]
                b[j] += x * column[j]
                c[j] += y * column[j]
                d[j] += z * column[j]
    for i in range(whole, n):
        for k in range(size):
            w = np.float64(rows[i, k])
            for j in range(width):
                out[i, j] += w * columns[k, j]


@compiled
def covariance(vectors: Any) -> Any:
    """Return float64[d, d]: the covariance (divisor V) of the rows of float32[V, d]."""
    words, size = vectors.shape
    mean = np.zeros(size)
    for u in range(words):
        for j in range(size):
            mean[j] += np.float64(vectors[u, j])
    mean /= words
    out = np.zeros((size, size))
    gaps = np.empty((4, size))
    for u in range(0, words, 4):
        row_count = min(4, words - u)
        for r in range(4):
            for j in range(size):
                gaps[r, j] = np.float64(vectors[u + r, j]) - mean[j] if r < row_count else 0.0
        p, q, s, t = gaps[0], gaps[1], gaps[2], gaps[3]
        for i in range(size):
            row = out[i]
            a, b, c, d = p[i], q[i], s[i], t[i]
            for j in range(i + 1):
                row[j] += (a * p[j] + b * q[j]) + (c * s[j] + d * t[j])
    for i in range(size):
        for j in range(i + 1):
            out[i, j] /= words
            out[j, i] = out[i, j]
    return out


@compiled
def square_root(matrix: Any) -> tuple[Any, Any]:
    """Return the symmetric square root of a positive semidefinite matrix, and its eigenvalues.

    One-sided Jacobi (Hestenes 1958; Golub & Van Loan, Matrix Computations, §8.6.3). It rotates rows in pairs until they are
    orthogonal, always in the same order. Then row i is s·v' for an eigenvalue s and its eigenvector v. Eigenvalues below d·2^-52
    of the largest are rounding errors and count as that value, not as 0. So the root has an inverse, and noise that it shapes
    reaches every direction.

    Args:
        matrix: float64[d, d], symmetric, no eigenvalue below 0.

    Returns:
        (float64[d, d], exactly symmetric; float64[d], the eigenvalues, in no order).
    """
    size = matrix.shape[0]
    rows = matrix.copy()
    flat = rows.reshape(-1)
    square = np.empty(size)
    done = size * 2.0**-53
    for _ in range(SWEEPS):
        for i in range(size):
            square[i] = row_product(flat, i, flat, i, size)
        floor = square.max() * (size * 2.0**-52) ** 2
        turned = False
        for i in range(size - 1):
            for j in range(i + 1, size):
                if square[i] <= floor or square[j] <= floor:
                    continue
                both = row_product(flat, i, flat, j, size)
                if abs(both) <= done * math.sqrt(square[i]) * math.sqrt(square[j]):
                    continue
                turned = True
                ratio = (square[j] - square[i]) / (2.0 * both)
                tangent = 1.0 / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
                tangent = tangent if ratio >= 0 else -tangent
                cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                sine = cosine * tangent
                a, b = rows[i], rows[j]
                for k in range(size):
                    x, y = a[k], b[k]
                    a[k] = cosine * x - sine * y
                    b[k] = sine * x + cosine * y
                square[i] = max(square[i] - tangent * both, 0.0)
                square[j] += tangent * both
        if not turned:
            break
    values = np.sqrt(square)
    least = values.max() * size * 2.0**-52
    floor = math.sqrt(least) if values.min() <= least else 0.0
    root = floor * np.eye(size)
    for e in range(size):
        if values[e] <= least:
            values[e] = least
            continue
        row = rows[e]
        # √s along v, of which √least is there already.
        scale = (1.0 - floor / math.sqrt(values[e])) / (values[e] * math.sqrt(values[e]))
        for i in range(size):
            factor = scale * row[i]
            out = root[i]
            for j in range(i + 1):
                out[j] += factor * row[j]
    for i in range(size):
        for j in range(i):
            root[j, i] = root[i, j]
    return root, values


@inlined
def squared_distance(flat: Any, size: Int, i: Int, j: Int) -> Any:
    """Return the squared Euclidean distance of rows i and j, in float64; the same for (j, i), bit for bit.

    Args:
        flat: float32[V * d], the vectors.
        size: d.
        i: a row.
        j: a row.
    """
    whole = size - size % 8
    total = squared_gap(flat, i * size, j * size, whole)
    for k in range(whole, size):
        gap = np.float64(flat[i * size + k]) - np.float64(flat[j * size + k])
        total += gap * gap
    return total


@compiled
def squared_distances(flat: Any, size: Int, i: Int, others: Any, first: Int, last: Int, out: Any) -> None:
    """Fill `out`, float64[last - first], with the squared distances of row i of `flat` to rows first..last of `others`.

    The same bits as :func:`squared_distance`, at a third of its time.
    """
    whole = size - size % 8
    j = first
    while j < last:
        rows = min(4, last - j)
        # Fewer than four are left: one at a time, four times the same.
        four = squared_gaps(flat, i * size, others, j * size, size if rows == 4 else 0, whole)
        for row in range(4 if rows == 4 else 1):
            total = four[row]
            for k in range(whole, size):
                gap = np.float64(flat[i * size + k]) - np.float64(others[(j + row) * size + k])
                total += gap * gap
            out[j + row - first] = total
        j += 4 if rows == 4 else 1


@compiled
def squared_pairs(flat: Any, size: Int, left: Any, right: Any, out: Any) -> None:
    """Fill `out`, float64[n], with the squared distances of rows left[i] and right[i] (int32[n]): bits of `squared_distance`."""
    for i in range(out.shape[0]):
        out[i] = squared_distance(flat, size, np.int64(left[i]), np.int64(right[i]))


@compiled
def _pair_distances(flat: Any, size: Int, rows: Any, others: Any) -> Any:
    out = np.empty(others.shape)
    for i in range(others.shape[0]):
        for j in range(others.shape[1]):
            out[i, j] = math.sqrt(squared_distance(flat, size, rows[i], others[i, j]))
    return out


def pair_distances(vectors: F32, rows: I32, others: I32) -> F64:
    """Return float64[n, k]: the Euclidean distances of rows[i] (int32[n]) to others[i, j] (int32[n, k])."""
    return np.asarray(_pair_distances(vectors.reshape(-1), vectors.shape[1], rows, others), np.float64)


TILE = 1_024  # words whose numbers stay in the cache while one step after the other goes over them
Found = TypeVar("Found")
Number = TypeVar("Number", np.int32, np.int64)


def in_threads(
    work: Callable[[npt.NDArray[Number]], Found], items: npt.NDArray[Number], at_once: int
) -> list[Found]:
    """Do the work for parts of the items, and return the results in their order.

    A thread that makes its own matrix products waits for no other; left to itself, each product would take every thread.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads, threadpool_limits(1, "blas"):
        return list(threads.map(work, [items[i : i + at_once] for i in range(0, len(items), at_once)]))


def tiles(words: int) -> Iterator[slice]:
    """Yield parts of the words."""
    for start in range(0, words, TILE):
        yield slice(start, min(start + TILE, words))


def products(some: F32, vectors: F32) -> Iterator[tuple[slice, F32]]:
    """Yield (part of the words, float32[n, part]), the inner products of float32[n, d] with float32[V, d]."""
    for part in tiles(len(vectors)):
        yield part, some @ vectors[part].T


SLACK = 1e-9  # room for the rounding of lengths that only decide what need not be measured
STARTS = 256  # words from which distant pairs are looked for
RANK_TILE = 1 << 24  # float32 scores held at once (64 MiB)


def largest_distance(vectors: Vectors) -> float:
    """Return the largest Euclidean distance of two rows of float32[V, d], exactly as the fixed order measures it.

    Two words are at most as far apart as their distances from the middle together. Pairs that cannot be farther than the farthest
    one so far are passed over, from the outside in.
    """
    length = _lengths_from(vectors, vectors.mean(axis=0, dtype=np.float64))
    order = np.argsort(-length, kind="stable")
    return float(_largest(vectors.reshape(-1), vectors.shape[1], order, length))


def distant_pairs(vectors: Vectors, count: int) -> list[tuple[int, int]]:
    """Return pairs of words that lie far apart, the farthest first, by a search that need not find the farthest of all.

    From `STARTS` words spread over the lexicon to the farthest word of each, and from that to its farthest.

    Args:
        vectors: float32[V, d].
        count: how many pairs at most.
    """
    squares = (vectors.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
    start = np.unique(np.linspace(0, len(vectors) - 1, min(STARTS, len(vectors))).astype(np.int64))
    pairs: set[tuple[int, int]] = set()
    for _ in range(3):
        far = (squares - 2.0 * (vectors[start] @ vectors.T)).argmax(axis=1)
        pairs |= {(int(min(i, j)), int(max(i, j))) for i, j in zip(start, far, strict=True) if i != j}
        start = np.unique(far)
    flat, size = vectors.reshape(-1), vectors.shape[1]
    return sorted(pairs, key=lambda pair: (-_squared(flat, size, *pair), pair))[:count]


def ranks(vectors: Vectors, words: Ids, seen_from: Ids) -> I64:
    """Return the rank of each word among all words by distance from another, ties by id; the nearest has rank 1: int64[m].

    Float32 scores decide where their largest error (see :mod:`dptext_spark.lexicon.neighbors`) leaves no doubt; else distances in
    the fixed order do. The answer does not depend on the processor.

    Args:
        vectors: float32[V, d], C order, finite.
        words: int32[m], the words that are ranked.
        seen_from: int32[m], the word from which each is ranked.
    """
    length = _lengths_from(vectors, np.zeros(vectors.shape[1]))
    out = np.empty(len(words), np.int64)
    order = np.argsort(seen_from, kind="stable")
    centers, first = np.unique(seen_from[order], return_index=True)
    ends = np.append(first, len(order))
    step = max(1, RANK_TILE // len(vectors))
    for start in range(0, len(centers), step):
        some = centers[start : start + step]
        with np.errstate(all="ignore"):  # what overflows is measured in float64
            scores = vectors[some] @ vectors.T
        bounds = ends[start : start + step + 1]
        _count_nearer(vectors.reshape(-1), vectors.shape[1], length, some, scores, bounds, order, words, out)
    return out


@compiled
def _squared(flat: Any, size: Int, i: Int, j: Int) -> Any:
    return squared_distance(flat, size, i, j)


@compiled
def _lengths_from(vectors: Any, center: Any) -> Any:
    """Return float64[V]: the distance of each row from `center`."""
    out = np.empty(vectors.shape[0])
    for i in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            gap = np.float64(vectors[i, j]) - center[j]
            total += gap * gap
        out[i] = math.sqrt(total)
    return out


@compiled
def _largest(flat: Any, size: Int, order: Any, length: Any) -> float:
    """Return the largest distance; `order` is by descending `length`."""
    best = 0.0  # squared
    start = order[0]
    for _ in range(3):  # a good first guess: the farthest from the outermost word, and the farthest from that
        far = start
        for j in range(order.shape[0]):
            square = squared_distance(flat, size, start, j)
            if square > best:
                best = square
                far = j
        start = far
    for a in range(order.shape[0]):
        reach = math.sqrt(best) * (1.0 - SLACK)
        if 2.0 * length[order[a]] < reach:
            break
        for b in range(a + 1, order.shape[0]):
            if length[order[a]] + length[order[b]] < reach:
                break
            square = squared_distance(flat, size, order[a], order[b])
            if square > best:
                best = square
    return math.sqrt(best)


@compiled
def _count_nearer(
    flat: Any,
    size: Int,
    length: Any,
    centers: Any,
    scores: Any,
    bounds: Any,
    order: Any,
    words: Any,
    out: Any,
) -> None:
    """Fill `out`[order[bounds[i]:bounds[i + 1]]] for the words ranked from centers[i], whose float32 products are scores[i]."""
    error = 1.02 * (size + 4) * 2.0**-24
    for i in range(centers.shape[0]):
        center = centers[i]
        for m in range(bounds[i], bounds[i + 1]):
            word = words[order[m]]
            exact = squared_distance(flat, size, center, word)
            nearer = 0
            for u in range(length.shape[0]):
                score = np.float64(scores[i, u])
                both = length[center] + length[u]
                square = length[center] * length[center] + length[u] * length[u] - 2.0 * score
                slack = error * both * both + size * UNDERFLOW
                if math.isfinite(score) and square < exact - slack:
                    nearer += 1
                elif not math.isfinite(score) or square <= exact + slack:
                    other = squared_distance(flat, size, center, u)
                    if other < exact or (other == exact and u < word):
                        nearer += 1
            out[order[m]] = nearer + 1
