"""The nearest vectors of all against plain distances: short last tiles, ties, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.lexicon import orderings as module
from dptext_spark.lexicon.neighbors import rounding
from dptext_spark.lexicon.orderings import all_neighbors


@pytest.mark.parametrize("tile", [32, 64, 512])
@pytest.mark.parametrize("words", [1, 2, 63, 64, 200])
@pytest.mark.parametrize("count", [1, 7])
def test_the_nearest_are_found(monkeypatch: pytest.MonkeyPatch, tile: int, words: int, count: int) -> None:
    monkeypatch.setattr(module, "TILE", tile)
    vectors = np.random.default_rng(words).normal(size=(words, 20)).astype(np.float32)
    vectors[words // 2] = vectors[0]  # a tie
    count = min(count, words)
    ids, squares = all_neighbors(vectors, count)
    assert ids.shape == squares.shape == (words, count)
    assert (ids.dtype, squares.dtype) == (
        np.int32,
        np.float32,
    )
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
    vectors = np.random.default_rng(1).normal(size=(2100, 16)).astype(np.float32)
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
