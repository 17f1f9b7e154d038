"""The distance between two words, in one fixed order of additions: the same bits in samplers, compilers and certificates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.arrays import F32, F64, I32
from dptext_spark.runtime.jit import Int, compiled, inlined, squared_gap, squared_gaps


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
def distances_of(flat: Any, size: Int, i: Int, first: Int, last: Int, out: Any) -> None:
    """Fill `out`, float64[last - first], with the Euclidean distances of row i to rows first..last."""
    for j in range(first, last):
        out[j - first] = math.sqrt(squared_distance(flat, size, i, j))


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
