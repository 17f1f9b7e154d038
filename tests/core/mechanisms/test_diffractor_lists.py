"""The lists of words against a plain walk over all distances: ties, near ties, far-off lengths, and the words of a file."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.lexicon.neighbors import rounding
from dptext_spark.mechanisms import diffractor as module
from dptext_spark.mechanisms.diffractor import all_neighbors, orderings, several_walks, start_words
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
def test_vectors_that_are_hard(searched: None, name: str, tmp_path: Path) -> None:
    vectors = HARD[name].astype(np.float32)
    check(vectors, [0, len(vectors) // 2])
    np.save(tmp_path / "v.npy", vectors)  # memory-mapped, they are walked alike
    assert (orderings(np.load(tmp_path / "v.npy", mmap_mode="r"), [1]) == orderings(vectors, [1])).all()


def test_any_word_when_the_nearest_are_used_up_is_another_walk() -> None:
    """A known wrong form takes an arbitrary word where the nearest 50 have all been visited."""
    vectors = gaussian(2000, 30)
    order = plain(vectors, 0)
    place = np.argsort(order)
    used_up = 0
    for word, following in itertools.pairwise(order):
        fifty = np.argsort(squares(vectors, word), kind="stable")[1:51]
        used_up += bool((place[fifty] < place[word]).all())
        assert following in fifty or used_up
    assert used_up > 20
    assert orderings(vectors, [0])[0].tolist() == order


def test_real_words(shared_data: Path) -> None:
    """The first 2,500 vectors of the GloVe excerpt. The whole of it agrees as well (half a minute)."""
    file = shared_data / "glove.840B.300d.34k.txt.gz"
    with gzip.open(file, "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        rows = [line.rstrip("\n").split(" ")[-300:] for line in itertools.islice(lines, 2500)]
    check(np.array(rows, np.float32), [1234])


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


def test_several_embeddings_have_their_walks_one_after_the_other() -> None:
    rng = np.random.default_rng(8)
    embeddings = [rng.normal(size=(40, size)).astype(np.float32) for size in (3, 5)]
    starts, order = several_walks(embeddings, 2, 7)
    assert starts == start_words(40, 4, 7)
    assert order.shape == (4, 40)
    assert (order == [plain(embeddings[n // 2], start) for n, start in enumerate(starts)]).all()


@pytest.mark.parametrize("tile", [32, 64, 512])
@pytest.mark.parametrize("words", [1, 2, 63, 64, 200])
@pytest.mark.parametrize("count", [1, 7])
def test_the_nearest_are_found(monkeypatch: pytest.MonkeyPatch, tile: int, words: int, count: int) -> None:
    monkeypatch.setattr(module, "TILE", tile)
    vectors = gaussian(words, 20, words)
    vectors[words // 2] = vectors[0]  # a tie
    count = min(count, words)
    ids, squares = all_neighbors(vectors, count)
    assert ids.shape == squares.shape == (words, count)
    assert (ids.dtype, squares.dtype) == (np.int32, np.float32)
    points = vectors.astype(np.float64)
    exact = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    lengths = np.sqrt((points**2).sum(axis=1))
    error = rounding(20) * (lengths[:, None] + lengths[None]) ** 2
    row = np.arange(words)[:, None]
    assert (np.abs(squares - exact[row, ids]) <= error[row, ids]).all()
    assert (np.diff(squares, axis=1) >= 0).all()
    assert all(len(set(mine)) == count for mine in ids.tolist())
    left_out = np.ones((words, words), bool)
    left_out[row, ids] = False
    assert (exact + error >= squares[:, -1:])[left_out].all()


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
