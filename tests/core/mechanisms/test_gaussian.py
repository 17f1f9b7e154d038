"""Gaussian noise: the exact δ, the least scale, the law against numpy's own generator, and what the published scale has."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dptext_spark.mechanisms import Gaussian
from dptext_spark.mechanisms.clipped_noise import gaussian_delta, largest_ratio
from tests.core.mechanisms.plain_noise import lexicon_of


def exact_delta(epsilon: float, ratio: float) -> float:
    """Balle and Wang's Theorem 8, as it stands there."""
    a, b = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return float(stats.norm.cdf(a) - math.exp(epsilon) * stats.norm.cdf(b))


@pytest.mark.parametrize(
    ("epsilon", "ratio"), [(1, 0.5), (0.1, 0.3), (10, 3.0), (1, 6.0), (50, 12.0), (1e-3, 1e-2), (3, 0.4)]
)
def test_the_exact_delta(epsilon: float, ratio: float) -> None:
    assert gaussian_delta(epsilon, ratio) == pytest.approx(exact_delta(epsilon, ratio), rel=1e-9)


def test_delta_is_the_hockey_stick() -> None:
    """By integration: what of N(μ, 1) exceeds e^ε times N(0, 1)."""
    for epsilon, ratio in ((1.0, 1.0), (0.5, 2.0)):
        found, _ = integrate.quad(
            lambda x, e=epsilon, m=ratio: max(
                0.0, stats.norm.pdf(x, loc=m) - math.exp(e) * stats.norm.pdf(x)
            ),
            epsilon / ratio + ratio / 2,
            40,
        )
        assert gaussian_delta(epsilon, ratio) == pytest.approx(found, rel=1e-7)


def test_far_ends() -> None:
    """Where float64 formulas give 0, infinity or noise."""
    # Tail of M(x) - M(x + μ) by its series, x = ε/μ - μ/2 large: density(x)·(1/x - 1/(x + μ))·(1 + O(1/x²)).
    x, ratio = 37.0, 0.01
    found = gaussian_delta(ratio * (x + ratio / 2), ratio)
    rough = stats.norm.pdf(x) * ratio / (x * (x + ratio))
    assert found == pytest.approx(rough, rel=5 / x**2)
    assert gaussian_delta(1e6, 1.0) == math.ulp(0.0)
    assert gaussian_delta(1e-3, 1e6) == gaussian_delta(1e300, 1e155) == 1.0
    assert gaussian_delta(1e-300, 1.0) == pytest.approx(2 * stats.norm.cdf(0.5) - 1, rel=1e-14)
    assert gaussian_delta(1e-30, 1e-20) == pytest.approx(1e-20 / math.sqrt(2 * math.pi), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1e-300, 1e-6, 0.1, 1.0, 10.0, 300.0, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1 / 1200, 0.4, 0.999])
def test_the_least_scale(epsilon: float, delta: float) -> None:
    ratio = largest_ratio(epsilon, delta)
    assert gaussian_delta(epsilon, ratio) <= delta < gaussian_delta(epsilon, ratio * (1 + 1e-12))


def test_it_is_less_than_the_classic_scale() -> None:
    """√(2·ln(1.25/δ))/ε, proved for ε <= 1."""
    for epsilon in (0.01, 0.1, 0.5, 1.0):
        for delta in (1e-12, 1e-6, 1e-3, 0.1):
            assert 1 / largest_ratio(epsilon, delta) < math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_the_scale_and_the_guarantee() -> None:
    made = Gaussian(1.0, 1e-5, clip=2.0).compile(lexicon_of(np.eye(3)))
    assert made.parameters[0] == pytest.approx(4.0 / largest_ratio(1.0, 1e-5), rel=1e-14)
    assert exact_delta(1.0, 4.0 / made.parameters[0]) == pytest.approx(1e-5, rel=1e-6)
    found = made.guarantee
    assert (found.kind, found.epsilon, found.delta, found.status) == ("approx_dp", 1.0, 1e-5, "claimed")
    assert Gaussian(1.0).compile(lexicon_of(np.eye(3))).guarantee.delta == 1e-6


class TestThePublishedScale:
    def test_its_delta_is_named(self) -> None:
        lexicon = lexicon_of(np.random.default_rng(0).normal(size=(5, 16)))
        for epsilon in (0.5, 3.0, 12.0):
            made = Gaussian(epsilon, calibration="published").compile(lexicon)
            assert made.parameters[0] == pytest.approx(2 * 4 / epsilon, rel=1e-14)
            assert made.guarantee.delta == pytest.approx(exact_delta(epsilon, epsilon / 4), rel=1e-8)
            assert "published" in made.guarantee.sentence
            assert made.guarantee.delta > 0
