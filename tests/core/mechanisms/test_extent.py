"""The largest distance and the ranks of words, against all pairs measured one by one."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.mechanisms.extent import largest_distance, ranks
from dptext_spark.mechanisms.numerics.matrices import pair_distances

RANDOM = np.random.default_rng(6)
DOUBLED = RANDOM.normal(size=(80, 5)).astype(np.float32)
DOUBLED[40:] = DOUBLED[:40]
LEXICONS = {
    "normal": RANDOM.normal(size=(300, 20)).astype(np.float32),
    "line": RANDOM.integers(-40, 40, (150, 1)).astype(np.float32),
    "two": np.array([[1, 2, 3], [3, 2, 1]], np.float32),
    "equal": np.ones((5, 3), np.float32),
    "doubled": DOUBLED,
    "far from the origin": (RANDOM.normal(size=(200, 9)) + 1e4).astype(np.float32),
    "huge": (RANDOM.normal(size=(50, 9)) * 1e37).astype(np.float32),
    "tiny": (RANDOM.normal(size=(50, 9)) * 1e-40).astype(np.float32),
    "grid": np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3).astype(np.float32),
}


def all_distances(vectors: np.ndarray) -> np.ndarray:
    words = np.arange(len(vectors), dtype=np.int32)
    return pair_distances(vectors, words, np.tile(words, (len(vectors), 1)))


@pytest.mark.parametrize("name", LEXICONS)
def test_largest_distance(name: str) -> None:
    vectors = LEXICONS[name]
    assert largest_distance(vectors) == all_distances(vectors).max()


@pytest.mark.parametrize("name", LEXICONS)
def test_ranks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = LEXICONS[name]
    table = all_distances(vectors)
    words, seen_from = RANDOM.integers(0, len(vectors), (2, 200)).astype(np.int32)
    orders = np.lexsort((np.tile(np.arange(len(vectors)), (len(vectors), 1)), table), axis=1)
    wanted = [int(np.flatnonzero(orders[c] == w)[0]) + 1 for w, c in zip(words, seen_from, strict=True)]
    assert ranks(vectors, words, seen_from).tolist() == wanted
    monkeypatch.setattr("dptext_spark.mechanisms.extent.TILE", 3 * len(vectors))
    assert ranks(vectors, words, seen_from).tolist() == wanted
