"""Calibrated noise: the law in one dimension exactly, in three against numpy's own generator, and N_w on real vectors."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, Mahalanobis
from tests.core.mechanisms.plain_noise import draws_of, lexicon_of

N = 60_000


@pytest.mark.parametrize(
    ("kind", "shares", "slack"),
    [(MVC, (0.0001, 0.27, 0.99, 0.999), 0.005), (Mahalanobis, (0.0001, 0.18, 0.98, 0.999), 0.006)],
)
def test_how_often_a_word_stays(glove: Lexicon, kind: Any, shares: tuple[float, ...], slack: float) -> None:
    """Mean N_w at ε = 1, 10, 25, 50: binomial limits at 1e-6, and a slack for the rounded figures."""
    words = np.random.default_rng(0).choice(len(glove), 600, replace=False).astype(np.int32)
    made = kind(1.0).compile(glove)
    factor = made.parameters[1]
    for epsilon, wanted in zip((1.0, 10.0, 25.0, 50.0), shares, strict=True):
        at = dataclasses.replace(made, parameters=np.array([epsilon, factor]))
        stayed = float((at.sample(words, draws_of(600)) == words).mean())
        limit = stats.norm.isf(5e-7) * math.sqrt(wanted * (1 - wanted) / 600)
        assert abs(stayed - wanted) < limit + slack, (epsilon, stayed)
        if epsilon == 1.0 and kind is MVC:
            assert np.median(at.noise_lengths()) == pytest.approx(300, rel=0.02)


def test_the_summary() -> None:
    found = MVC(2.0).compile(lexicon_of(np.eye(4))).summary
    assert (found.words, found.dimensions, found.noise) == (4, 4, "radial")
    assert found.nearest_distance is not None
    assert found.nearest_distance.as_dict() == pytest.approx(
        {"min": math.sqrt(2), "p50": math.sqrt(2), "max": math.sqrt(2)}
    )
    assert found.noise_length is not None
    assert found.noise_length.p50 == pytest.approx(stats.gamma.median(4, scale=1 / 2), rel=0.1)
