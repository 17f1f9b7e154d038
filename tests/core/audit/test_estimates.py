"""Bootstrap intervals of rates over records; percentiles that are values of a word, and bins that lose none."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.results import (
    PERCENTILES,
    Distribution,
    Estimate,
    count_edges,
    mean,
    percentile,
    rate,
    rate_interval,
)


def test_the_interval_is_about_the_normal_one() -> None:
    random = np.random.default_rng(1)
    totals = np.full(2_000, 5)
    hits = random.binomial(5, 0.3, 2_000)
    low, high = rate_interval(hits, totals)
    rate, spread = hits.sum() / 10_000, hits.std() / 5 / np.sqrt(2_000)
    # 1,000 resamples: the ends themselves scatter by about a tenth of the width.
    assert low == pytest.approx(rate - 1.96 * spread, abs=0.5 * spread)
    assert high == pytest.approx(rate + 1.96 * spread, abs=0.5 * spread)
    assert rate_interval(hits, totals) == (low, high)
    inner = rate_interval(hits, totals, confidence=0.5)
    assert low < inner[0] < rate < inner[1] < high


def test_records_are_the_unit() -> None:
    """Ten words of a record that are all guessed or none are one observation, not ten."""
    all_or_none = 10 * np.random.default_rng(2).binomial(1, 0.3, 400)
    apart = np.random.default_rng(3).binomial(10, 0.3, 400)
    widths = [high - low for low, high in (rate_interval(x, np.full(400, 10)) for x in (all_or_none, apart))]
    assert widths[0] > 2 * widths[1]


def test_the_ends() -> None:
    assert rate_interval([3, 0, 2], [3, 0, 2]) == (1.0, 1.0)
    assert rate_interval([0, 0], [0, 0]) == rate_interval([], []) == (0.0, 0.0)
    # Records without anything to guess change nothing.
    assert rate_interval([1, 0, 2, 0], [2, 0, 3, 0]) == rate_interval([1, 2], [2, 3])
    low, high = rate_interval(np.array([1, -1] * 300), np.full(600, 1))
    assert low < 0 < high


def test_many_records_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    hits, totals = np.random.default_rng(4).binomial(3, 0.5, 100), np.full(100, 3)
    whole = rate_interval(hits, totals)
    monkeypatch.setattr("dptext_spark.audit.results.AT_ONCE", 700)
    assert rate_interval(hits, totals) == whole


def test_a_rate_and_a_mean_stand_in_their_intervals() -> None:
    hits, totals = np.array([1, 0, 3, 2]), np.array([2, 0, 3, 5])
    assert rate(hits, totals) == Estimate(0.6, *rate_interval(hits, totals))
    assert rate([0, 0], [0, 0]) == Estimate(0.0, 0.0, 0.0)
    values = np.array([0.5, 1.0, 0.25])
    assert mean(values) == Estimate(values.mean(), *rate_interval(values, np.ones(3)))
    assert Estimate.known(0.5) == Estimate(0.5, 0.5, 0.5, exact=True)


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
    assert [spread.percentiles[name] for name in ("min", "p50", "max")] == [1.0, 1.0, 30.0]
    assert (spread.mean, spread.counts) == (9.0, (0, 3, 1))  # 30 lies outside: it counts to the last
    assert spread.as_dict()["histogram"] == {"edges": [0.0, 1.0, 5.0, 20.0], "counts": [0, 3, 1]}


def test_bins_of_counts() -> None:
    assert count_edges(20) == (0, 1, 2, 5, 10, 20)
    assert count_edges(21)[-1] == 50
    assert count_edges(1) == (0, 1)
    assert count_edges(2_000_000)[-4:] == (200_000, 500_000, 1_000_000, 2_000_000)
