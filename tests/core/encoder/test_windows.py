"""Windows lose nothing and count nothing twice; padding depends on the window alone."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.encoder.tokenizer import AT_ONCE, batches, padded_lengths, windows


@pytest.mark.parametrize("positions", [4, 5, 8, 24, 512])
def test_every_sub_word_is_looked_at_once(positions: int) -> None:
    lengths = np.array([0, 1, 2, positions - 2, positions - 1, 0, 3 * positions, 10 * positions + 1, 0])
    bounds = np.append(0, np.cumsum(lengths))
    cut = windows(bounds, positions)
    looked_at = np.concatenate([np.arange(*pair) for pair in zip(cut.first, cut.last, strict=True)])
    assert np.array_equal(looked_at, np.arange(lengths.sum()))
    assert (cut.first >= cut.starts).all()
    assert (cut.last <= cut.starts + cut.sizes).all()
    assert (cut.starts >= bounds[cut.texts]).all()
    assert (cut.starts + cut.sizes <= bounds[cut.texts + 1]).all()
    assert (cut.sizes == np.minimum(lengths[cut.texts], positions - 2)).all()


def test_neighbours_share_a_quarter() -> None:
    cut = windows(np.array([0, 100]), 42)
    assert cut.starts.tolist() == [0, 30, 60]
    assert cut.first.tolist() == [0, 35, 65]


def test_padding_is_small_and_depends_on_the_window_alone() -> None:
    sizes = np.arange(1, 511)
    found = padded_lengths(sizes, 512)
    assert (found >= sizes + 2).all()
    assert (found <= 512).all()
    assert ((found - sizes - 2) / (sizes + 2)).max() <= 1 / 16
    assert np.array_equal(padded_lengths(sizes[::-1], 512), found[::-1])
    assert padded_lengths(np.array([97]), 99).tolist() == [99]


def test_batches_hold_each_window_once_and_one_length() -> None:
    lengths = np.random.default_rng(3).integers(3, 600, 3_000)
    found = list(batches(lengths))
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(3_000))
    for batch in found:
        assert len(set(lengths[batch].tolist())) == 1
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= AT_ONCE
    assert list(batches(np.empty(0, np.int64))) == []
