"""Percentiles that are values of a word, and bins that lose none."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.deniability.distribution import PERCENTILES, Distribution, count_edges, percentile


@pytest.mark.parametrize("words", [1, 2, 7, 99, 100, 101, 1000])
@pytest.mark.parametrize("rank", [0, 1, 7, 29, 50, 57, 99, 99.9, 100])
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(words: int, rank: float) -> None:
    values = np.sort(np.random.default_rng(words).integers(0, 50, words)).astype(float)
    plain = min(v for v in values if (values <= v).sum() * 1000 >= round(rank * 1000) * words / 100 - 1e-6)
    assert percentile(values, rank) == plain


def test_a_spread() -> None:
    values = np.array([4.0, 1.0, 1.0, 30.0])
    spread = Distribution.of(values, (0.0, 1.0, 5.0, 20.0))
    assert list(spread.percentiles) == ["min", *(f"p{rank}" for rank in PERCENTILES), "max"]
    assert (spread.percentiles["min"], spread.percentiles["p50"], spread.percentiles["max"]) == (
        1.0,
        1.0,
        30.0,
    )
    assert spread.mean == 9.0
    assert spread.counts == (0, 3, 1)  # 30 lies outside: it counts to the last
    assert spread.as_dict()["histogram"] == {"edges": [0.0, 1.0, 5.0, 20.0], "counts": [0, 3, 1]}


def test_bins_of_counts() -> None:
    assert count_edges(20) == (0, 1, 2, 5, 10, 20)
    assert count_edges(21)[-1] == 50
    assert count_edges(1) == (0, 1)
    assert count_edges(2_000_000)[-4:] == (200_000, 500_000, 1_000_000, 2_000_000)
