"""The search for the nearest words against a plain float64 search: ties, near-ties, odd sizes and lengths, more than one tile."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.mechanisms.samplers.nearest import SLOTS, TOKENS, WORDS, Targets
from tests.core.mechanisms.plain_noise import plain_two


def check(vectors: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Compare every answer; return them."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    vectors.flags.writeable = False
    targets = Targets.of(vectors)
    wanted = np.array([plain_two(query, vectors) for query in queries])
    found = targets.search(np.ascontiguousarray(queries), 2)
    assert found.dtype == np.int32
    assert found.shape == (len(queries), 2)
    assert (found == wanted).all()
    assert (targets.search(np.ascontiguousarray(queries), 1)[:, 0] == wanted[:, 0]).all()
    return found


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 50])
@pytest.mark.parametrize("words", [2, 63, 64, 65, 700, WORDS + 1, 2 * WORDS + 130])
def test_random_vectors(words: int, size: int) -> None:
    rng = np.random.default_rng(words + size)
    vectors = rng.normal(size=(words, size))
    queries = vectors[rng.integers(0, words, 60)] + rng.normal(size=(60, size)) * rng.choice(
        [0.1, 3, 100], (60, 1)
    )
    check(vectors, queries)


def test_more_queries_than_a_tile() -> None:
    rng = np.random.default_rng(0)
    check(rng.normal(size=(300, 6)), rng.normal(size=(2 * TOKENS + 3, 6)))


def test_ties_go_to_the_lower_id() -> None:
    """A grid with every point several times over, asked on its points and halfway between them."""
    rng = np.random.default_rng(1)
    grid = np.array([(x, y, z) for x in range(6) for y in range(6) for z in range(6)], np.float64)
    vectors = np.concatenate([grid, grid[::-1], grid])[rng.permutation(3 * len(grid))]
    found = check(vectors, np.concatenate([grid[:80], grid[:80] + 0.5, grid[:40] + np.array([0.5, 0, 0])]))
    assert (found[:80, 0] < found[:80, 1]).all()


def test_near_ties_are_decided_in_float64() -> None:
    """Words that differ by the last bit of a float32 far from the origin: float32 scores alone choose wrongly."""
    rng = np.random.default_rng(2)
    base = rng.normal(size=(40, 30)).astype(np.float32) * 20
    vectors = np.concatenate(
        [np.nextafter(base, np.float32(np.inf)), base, np.nextafter(base, np.float32(-np.inf))]
    )
    queries = base[rng.integers(0, 40, 300)] + rng.normal(size=(300, 30)) * 1e-6
    found = check(vectors, queries)
    narrow = queries.astype(np.float32) @ vectors.T - 0.5 * (vectors * vectors).sum(1)
    assert (narrow.argmax(1) != found[:, 0]).mean() > 0.2


@pytest.mark.parametrize("copies", [SLOTS - 1, SLOTS, SLOTS + 1, 5 * SLOTS])
def test_more_candidates_than_are_held(copies: int) -> None:
    rng = np.random.default_rng(3)
    vectors = np.concatenate([rng.normal(size=(100, 9)), np.ones((copies, 9)), rng.normal(size=(1500, 9))])
    queries = 1 + 1e-3 * rng.normal(size=(20, 9))
    assert (check(vectors, queries) == (100, 101)).all()
    check(vectors[rng.permutation(len(vectors))], queries)
    slightly = vectors.copy()
    slightly[100 : 100 + copies] += rng.normal(size=(copies, 9)) * 1e-6
    check(slightly, queries)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e-10, 1e10, 1e14, 1e17, 1e25, 1e37])
def test_lengths_that_strain_float32(scale: float) -> None:
    rng = np.random.default_rng(4)
    vectors = (rng.normal(size=(1200, 5)) * scale).astype(np.float32)
    near = vectors[:20].astype(np.float64) + rng.normal(size=(20, 5)) * scale
    check(vectors, near)
    check(vectors, near * 1e8)
    check(vectors, near * 1e-8)
    one_long = (rng.normal(size=(1200, 5))).astype(np.float32)
    one_long[700] *= np.float32(min(scale, 1e30))
    check(one_long, rng.normal(size=(20, 5)) * 2)


@pytest.mark.parametrize("length", [1e5, 1e12, 1e16, 1e30, 1e100, 1e150])
def test_noise_that_drowns_the_vectors(length: float) -> None:
    rng = np.random.default_rng(5)
    check(rng.normal(size=(1300, 4)), rng.normal(size=(15, 4)) * length)


def test_zero_vectors_and_a_zero_query() -> None:
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=(90, 3))
    vectors[[20, 70]] = 0
    assert (check(vectors, np.zeros((2, 3))) == (20, 70)).all()
    assert (check(np.zeros((50, 3)), rng.normal(size=(5, 3))) == (0, 1)).all()


def test_a_query_that_is_no_number_gives_a_word() -> None:
    targets = Targets.of(np.ones((5, 2), np.float32))
    found = targets.search(np.array([[np.nan, 1.0], [np.inf, -np.inf], [1.0, 1.0]]), 2)
    assert (found == (0, 1)).all()
