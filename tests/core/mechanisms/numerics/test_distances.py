"""The fixed-order distance: accurate, symmetric to the bit, and the same order as a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dptext_spark.mechanisms.numerics.matrices import squared_distances


def plain(x: np.ndarray, y: np.ndarray) -> float:
    """Eight sums, a tree, then what is left over."""
    whole = len(x) - len(x) % 8
    sums = [0.0] * 8
    for k in range(whole):
        gap = float(x[k]) - float(y[k])
        sums[k % 8] += gap * gap
    while len(sums) > 1:
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
    for k in range(whole, len(x)):
        gap = float(x[k]) - float(y[k])
        sums[0] += gap * gap
    return math.sqrt(sums[0])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 100, 300])
def test_the_order_is_the_stated_one(size: int) -> None:
    vectors = np.random.default_rng(size).normal(size=(40, size)).astype(np.float32)
    flat = vectors.reshape(-1)
    for i in (0, 17):
        out = np.empty(40)
        squared_distances(flat, size, i, flat, 0, 40, out)
        out = np.sqrt(out)
        assert out.tolist() == [plain(vectors[i], row) for row in vectors]
        np.testing.assert_allclose(
            out, np.linalg.norm(vectors.astype(float) - vectors[i].astype(float), axis=1), rtol=1e-13
        )
    table = np.empty((40, 40))
    for i in range(40):
        squared_distances(flat, size, i, flat, 0, 40, table[i])
    assert (table == table.T).all()
    assert (np.diag(table) == 0).all()


@pytest.mark.parametrize("size", [1, 7, 8, 300])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 11])
def test_many_at_once_are_the_same_bits(size: int, rows: int) -> None:
    vectors = np.random.default_rng(size).normal(size=(20, size)).astype(np.float32)
    others = vectors[5:].copy()
    out = np.full(rows, -1.0)
    squared_distances(vectors.reshape(-1), size, 3, others.reshape(-1), 2, 2 + rows, out)
    assert np.sqrt(out).tolist() == [plain(vectors[3], row) for row in others[2 : 2 + rows]]
