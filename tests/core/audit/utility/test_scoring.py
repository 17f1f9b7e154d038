"""Figures of a classifier, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.utility.learning import (
    accuracy,
    auc,
    confusion,
    gain,
    macro_f1,
    of_counts,
    precision,
    recall,
)
from dptext_spark.errors import DataError


def test_an_accuracy_has_about_the_normal_interval() -> None:
    right = np.arange(2_000) < 1_400
    found = accuracy(right)
    assert found.value == 0.7
    spread = 1.96 * np.sqrt(0.7 * 0.3 / 2_000)
    # The ends of 1,000 resamples scatter by some 5 % of the width.
    assert found.lower == pytest.approx(0.7 - spread, abs=0.25 * spread)
    assert found.upper == pytest.approx(0.7 + spread, abs=0.25 * spread)
    assert accuracy(right[::-1]) == found
    narrow = accuracy(right, confidence=0.5)
    assert found.lower < narrow.lower < 0.7 < narrow.upper < found.upper
    assert (accuracy(np.ones(5, bool)).lower, accuracy(np.zeros(5, bool)).upper) == (1.0, 0.0)


def test_the_counts_are_those_of_resampled_rows() -> None:
    """Drawing counts is drawing rows: the interval is that of rows drawn one by one."""
    random = np.random.default_rng(5)
    right = random.random(500) < 0.8
    means = right[random.integers(0, 500, (4_000, 500))].mean(axis=1)
    found = accuracy(right, resamples=4_000)
    assert np.quantile(means, [0.025, 0.975]) == pytest.approx([found.lower, found.upper], abs=0.006)


def test_a_gain_is_taken_row_by_row() -> None:
    right = np.arange(1_000) < 600
    other = np.arange(1_000) < 590
    found = gain(right, other)
    assert found.value == pytest.approx(0.01)
    assert found.lower > 0  # all of the difference goes one way; two separate samples could not tell
    apart = gain(right, np.roll(other, 500))
    assert apart.value == pytest.approx(0.01)
    assert apart.lower < 0 < apart.upper
    with pytest.raises(DataError, match="1000 and 999"):
        gain(right, other[1:])


def test_figures_of_a_confusion() -> None:
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    guess = np.array([1, 1, 0, 1, 0, 0, 0, 0])
    cells = confusion(truth, guess, 2)
    assert cells.tolist() == [[4, 1], [1, 2]]
    shares = cells.reshape(1, 4) / 8
    assert precision(shares)[0] == recall(shares)[0] == pytest.approx(2 / 3)
    assert macro_f1(shares)[0] == pytest.approx((4 / 5 + 2 / 3) / 2)
    three = confusion(np.array([0, 1, 2, 2]), np.array([0, 2, 2, 2]), 3).reshape(1, 9)
    assert macro_f1(three / 4)[0] == pytest.approx((1 + 0 + 4 / 5) / 3)
    nobody = confusion(truth, np.zeros(8, int), 2).reshape(1, 4) / 8
    assert precision(nobody)[0] == recall(nobody)[0] == 0.0
    with pytest.raises(DataError, match="rows"):
        of_counts([0, 0], lambda x: x[:, 0])


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    random = np.random.default_rng(6)
    positive = random.random(120) < 0.4
    scores = np.round(random.normal(size=120) + positive, 1)  # some are equal
    pairs = scores[positive][:, None] - scores[~positive][None]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
    found = auc(scores, positive)
    assert found.value == pytest.approx(expected)
    assert found.lower < expected < found.upper
    # Hanley and McNeil's standard error (1982).
    q1, q2 = expected / (2 - expected), 2 * expected**2 / (1 + expected)
    m, n = positive.sum(), (~positive).sum()
    error = np.sqrt(
        (expected * (1 - expected) + (m - 1) * (q1 - expected**2) + (n - 1) * (q2 - expected**2)) / (m * n)
    )
    assert (found.upper - found.lower) / 2 == pytest.approx(1.96 * error, rel=0.3)
    assert auc(-scores, positive).value == pytest.approx(1 - expected)
    assert auc(np.zeros(10), np.arange(10) < 3).value == 0.5
    with pytest.raises(DataError, match="0 positive and 5 negative"):
        auc(np.zeros(5), np.zeros(5, bool))


def test_scores_are_resampled_in_parts_and_at_once_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, positive = np.random.default_rng(7).normal(size=50), np.arange(50) < 20
    monkeypatch.setattr("dptext_spark.audit.utility.learning.CELLS", 500)
    parts = auc(scores, positive)
    monkeypatch.undo()
    assert parts.lower == pytest.approx(auc(scores, positive).lower, abs=0.05)
