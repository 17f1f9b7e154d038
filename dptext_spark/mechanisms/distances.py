"""The distance between two words, in one fixed order of additions: the same bits in samplers, compilers and certificates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.compiled import Int, compiled, inlined, squared_gap, squared_gaps


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
    """Fill out float64[last - first] with the Euclidean distances of row i to rows first..last."""
    for j in range(first, last):
        out[j - first] = math.sqrt(squared_distance(flat, size, i, j))


@compiled
def squared_distances(flat: Any, size: Int, i: Int, others: Any, first: Int, last: Int, out: Any) -> None:
    """Fill out float64[last - first] with the squared distances of row i of `flat` to rows first..last of `others`.

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
