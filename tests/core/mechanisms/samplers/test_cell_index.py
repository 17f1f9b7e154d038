"""The inverted file against a plain one: which cells are searched, and the nearest word in them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dptext_spark.mechanisms.samplers.approximate import CellIndex
from dptext_spark.mechanisms.samplers.nearest import Targets
from tests.core.mechanisms.plain_noise import plain_two


def vectors_of(words: int, size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(words, size)).astype(np.float32)


def points_near(vectors: np.ndarray, n: int, spread: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return vectors[rng.integers(0, len(vectors), n)] + spread * rng.normal(size=(n, vectors.shape[1]))


@pytest.mark.parametrize(("words", "size"), [(2, 1), (3, 2), (64, 3), (700, 7), (2500, 12)])
def test_cells_part_the_words(words: int, size: int) -> None:
    vectors = vectors_of(words, size)
    made = CellIndex.of(vectors)
    assert sorted(made.words.tolist()) == list(range(words))
    assert made.starts[0] == 0
    assert made.starts[-1] == words
    assert (np.diff(made.starts) > 0).all()
    centroids = made.columns.T
    gaps = np.linalg.norm(vectors[:, None] - centroids[None], axis=2)
    owner = np.empty(words, int)
    owner[made.words] = np.repeat(np.arange(len(centroids)), np.diff(made.starts))
    assert (gaps[np.arange(words), owner] <= gaps.min(axis=1) + 1e-5).all()


@pytest.mark.parametrize("size", [1, 3, 4, 9, 20])
def test_the_nearest_cells(size: int) -> None:
    vectors = vectors_of(900, size)
    made = CellIndex.of(vectors)
    points = points_near(vectors, 200, 0.5)
    found = made.nearest_cells(points)
    gaps = np.linalg.norm(points[:, None] - made.columns.T[None], axis=2)
    wanted = np.sort(gaps, axis=1)[:, : found.shape[1]]
    assert np.allclose(np.take_along_axis(gaps, found, axis=1), wanted, atol=1e-3)
    assert all(len(set(row.tolist())) == made.probes for row in found)


@pytest.mark.parametrize("wanted", [1, 2])
@pytest.mark.parametrize("spread", [0.1, 3.0, 1e4])
def test_the_answer_is_exact_within_the_cells(wanted: int, spread: float) -> None:
    vectors = vectors_of(600, 6)
    made, targets = CellIndex.of(vectors), Targets.of(vectors)
    points = points_near(vectors, 300, spread)
    found = made.search(targets, points, wanted)
    for point, cells, answer in zip(points, made.nearest_cells(points), found, strict=True):
        words = np.sort(np.concatenate([made.words[made.starts[c] : made.starts[c + 1]] for c in cells]))
        pair = plain_two(point, vectors[words])
        assert answer[:wanted].tolist() == words[list(pair)][:wanted].tolist()


@pytest.mark.parametrize("wanted", [1, 2])
def test_all_cells_are_an_exact_search(wanted: int) -> None:
    """Near ties and equal vectors among the words."""
    vectors = vectors_of(800, 5)
    vectors[500:] = np.nextafter(vectors[:300], np.float32(9))
    vectors[400:500] = vectors[:100]
    made, targets = CellIndex.of(vectors), Targets.of(vectors)
    every = dataclasses.replace(made, probes=len(made.starts) - 1)
    points = points_near(vectors, 500, 0.3)
    assert (
        every.search(targets, points, wanted)[:, :wanted] == targets.search(points, wanted)[:, :wanted]
    ).all()
    few = dataclasses.replace(made, probes=2).search(targets, points_near(vectors, 500, 3.0), 1)
    assert (few[:, 0] != targets.search(points_near(vectors, 500, 3.0), 1)[:, 0]).any()


@pytest.mark.parametrize(
    "vectors",
    [[[0.0], [1.0]], [[1.0, 2.0]] * 3, [[0.0] * 9, [0.0] * 9], [[-3.0], [0.0], [0.0], [5.0]], [[0.0, 0.0], [1.0, 0.0]]],
)  # fmt: skip
def test_tiny_lexicons(vectors: list[list[float]]) -> None:
    given = np.array(vectors, np.float32)
    made, targets = CellIndex.of(given), Targets.of(given)
    points = points_near(given, 50, 2.0)
    found = made.search(targets, points, 2)
    assert ((found >= 0) & (found < len(given))).all()
    assert (found[:, 0] != found[:, 1]).all()
    if len(made.starts) - 1 <= made.probes:
        assert (found == targets.search(points, 2)).all()


@pytest.mark.parametrize("length", [1e12, 1e16, 1e40, 1e150, np.nan])
def test_points_that_float32_does_not_hold(length: float) -> None:
    """They are compared with every word, and change nothing for the points beside them."""
    vectors = vectors_of(400, 4)
    made, targets = CellIndex.of(vectors), Targets.of(vectors)
    points = points_near(vectors, 40, 1.0)
    alone = made.search(targets, points, 2)
    points[7] *= length
    found = made.search(targets, points, 2)
    assert (np.delete(found, 7, axis=0) == np.delete(alone, 7, axis=0)).all()
    if not length < 1e15:
        assert found[7].tolist() == targets.search(points, 2)[7].tolist()
