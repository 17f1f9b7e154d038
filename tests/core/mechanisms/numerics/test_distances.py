"""The fixed-order distance: accurate, symmetric to the bit, and the same order as a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.mechanisms.numerics.matrices import squared_distances
from tests.core.mechanisms.plain_noise import fixed_order_sum


def plain(x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(fixed_order_sum((vectors.astype(np.float64) - x.astype(np.float64)) ** 2))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 100, 300])
def test_the_order_is_the_stated_one(size: int) -> None:
    vectors = np.random.default_rng(size).normal(size=(40, size)).astype(np.float32)
    flat = vectors.reshape(-1)
    for i in (0, 17):
        out = np.empty(40)
        squared_distances(flat, size, i, flat, 0, 40, out)
        out = np.sqrt(out)
        assert out.tolist() == plain(vectors[i], vectors).tolist()
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
    assert np.sqrt(out).tolist() == plain(vectors[3], others[2 : 2 + rows]).tolist()
