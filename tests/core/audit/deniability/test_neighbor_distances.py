"""Distances to the k-th neighbour against all pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dptext_spark.audit.deniability.neighbor_distances import neighbor_distances

WORDS = 90


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_distances_to_neighbours(metric: str) -> None:
    stored = np.random.default_rng(5).normal(size=(WORDS, 4)).astype(np.float32)
    vectors = stored.astype(np.float64)
    if metric == "cosine":
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        away = 1 - unit @ unit.T
    else:
        away = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(away, -1.0)
    away.sort(axis=1)
    found = neighbor_distances(stored, metric, (1, 5, 89, 90))  # type: ignore[arg-type]
    assert (found["metric"], found["words"]) == (metric, WORDS)
    assert list(found["by_neighbor"]) == ["1", "5", "89"]  # there is no 90th other word
    for rank, spread in found["by_neighbor"].items():
        column = np.sort(away[:, int(rank)])
        assert (spread["min"], spread["max"]) == pytest.approx((column[0], column[-1]), rel=1e-6)
        assert spread["p50"] == pytest.approx(column[44], rel=1e-6)
        assert spread["mean"] == pytest.approx(column.mean(), rel=1e-6)
    json.dumps(found, allow_nan=False)
