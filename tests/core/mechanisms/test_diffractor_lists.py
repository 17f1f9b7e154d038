"""The lists of words against a plain walk over all distances: ties, near ties, far-off lengths, and the words of a file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.mechanisms import diffractor as module
from dptext_spark.mechanisms.diffractor import all_neighbors, orderings, start_words
from tests.core.mechanisms.plain_noise import fixed_order_sum
from tests.core.mechanisms.plain_whole import gaussian


def squares(vectors: np.ndarray, word: int) -> np.ndarray:
    """Squared distances of a word to all, in the stated order of additions."""
    return fixed_order_sum((vectors.astype(np.float64) - vectors[word].astype(np.float64)) ** 2)


def plain(vectors: np.ndarray, start: int) -> list[int]:
    """Go to the nearest word that is left, ties by id: all distances of every step, in the stated order of additions."""
    left = np.ones(len(vectors), bool)
    order = [start]
    for _ in range(len(vectors) - 1):
        left[order[-1]] = False
        ids = np.flatnonzero(left)
        order.append(int(ids[squares(vectors[np.append(ids, order[-1])], -1)[:-1].argmin()]))
    return order


def check(vectors: np.ndarray, starts: list[int]) -> None:
    found = orderings(vectors, starts)
    assert found.dtype == np.int32
    assert found.shape == (len(starts), len(vectors))
    for order, start in zip(found.tolist(), starts, strict=True):
        assert order == plain(vectors, start)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search neighbours in small lexicons, too, and few of them, so that every branch is taken."""
    monkeypatch.setattr(module, "FEW", 12)
    monkeypatch.setattr(module, "NEIGHBORS", 5)
    monkeypatch.setattr(module, "TILE", 32)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 64, 100, 300])
def test_it_is_the_plain_walk(size: int) -> None:
    check(gaussian(1300, size), [0, 1299, 640])


@pytest.mark.parametrize("shrink", [2, 4, 100])
@pytest.mark.parametrize("neighbors", [1, 3, 20])
def test_it_does_not_depend_on_how_neighbours_are_searched(
    searched: None, monkeypatch: pytest.MonkeyPatch, neighbors: int, shrink: int
) -> None:
    monkeypatch.setattr(module, "NEIGHBORS", neighbors)
    monkeypatch.setattr(module, "SHRINK", shrink)
    check(gaussian(500, 12), [3, 499])


@settings(max_examples=100)
@given(
    values=st.lists(st.integers(-2, 2), min_size=2, max_size=120),
    size=st.integers(1, 3),
    start=st.integers(0, 10**6),
)
def test_ties_go_to_the_lower_id(values: list[int], size: int, start: int) -> None:
    """Few small integers: most distances are equal to others, many words share a vector."""
    words = max(2, len(values) // size)
    vectors = np.resize(np.array(values, np.float32), words * size).reshape(words, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", 2)
        patch.setattr(module, "NEIGHBORS", 3)
        check(vectors, [start % words])


HARD = {
    "two words": np.array([[0.0], [1.0]]),
    "every size and zero": gaussian(400, 16)
    * 10.0 ** np.random.default_rng(1).integers(-6, 6, size=(400, 1))
    * (np.arange(400) % 9 > 0)[:, None],
    # Below what float32 tells apart, and outside the range of float32 squares.
    **{f"spread {x}": 1.0 + x * gaussian(400, 24).astype(np.float64) for x in (1e-2, 1e-4, 1e-6, 0.0)},
    **{f"scale {x}": gaussian(200, 9).astype(np.float64) * x for x in (1e-30, 1e-19, 1e14, 1e17, 1e35)},
}


@pytest.mark.parametrize("name", HARD)
def test_vectors_that_are_hard(searched: None, name: str) -> None:
    vectors = HARD[name].astype(np.float32)
    check(vectors, [0, len(vectors) // 2])


class TestStarts:
    def test_they_are_public_and_fixed(self) -> None:
        assert start_words(34_000, 3, 0) == start_words(34_000, 5, 0)[:3]
        assert start_words(34_000, 3, 0) != start_words(34_000, 3, 1)
        assert start_words(1000, 4, 0) == [868, 598, 892, 963]

    def test_they_differ_as_long_as_they_can(self) -> None:
        for seed in range(50):
            assert sorted(start_words(7, 7, seed)) == list(range(7))
            assert set(start_words(3, 8, seed)) == {0, 1, 2}

    def test_all_words_are_as_likely(self) -> None:
        """Chi-square over 20,000 seeds at a false-alarm rate of 1e-6; the seeds are fixed."""
        stats = pytest.importorskip("scipy.stats")
        counts = np.bincount([start_words(20, 1, seed)[0] for seed in range(20_000)], minlength=20)
        assert ((counts - 1000) ** 2 / 1000).sum() < stats.chi2.isf(1e-6, 19)


def test_it_is_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = gaussian(2100, 16)
    several = all_neighbors(vectors, 9)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 1)
    alone = all_neighbors(vectors, 9)
    assert (several[0] == alone[0]).all()
    assert (several[1] == alone[1]).all()


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 7, 8])
def test_each_tile_is_looked_at_once_and_no_two_at_a_time_share_a_block(blocks: int) -> None:
    rounds = [[(i // module.TILE, j // module.TILE) for i, j in tiles] for tiles in module._rounds(blocks)]
    seen = sorted(tile for tiles in rounds for tile in tiles)
    assert seen == [(i, j) for i in range(blocks) for j in range(i, blocks)]
    for tiles in rounds:
        touched = [block for tile in tiles for block in set(tile)]
        assert len(touched) == len(set(touched))
