"""Bootstrap intervals of rates over records."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.resampling import rate_interval


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
    monkeypatch.setattr("dptext_spark.audit.resampling.AT_ONCE", 700)
    assert rate_interval(hits, totals) == whole
