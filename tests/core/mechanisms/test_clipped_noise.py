"""Additive noise: clipping never leaves a longer vector, the exact δ and least scale of Gaussian noise, bad values by name."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import Gaussian, Laplace, TruncatedLaplace
from dptext_spark.mechanisms.clipped_noise import clipped, gaussian_delta, largest_ratio, upwards
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.names import lexicon_at, scattered

KINDS = (Laplace, Gaussian, TruncatedLaplace)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 7, 300])
@pytest.mark.parametrize("clip", [1e-3, 1.0, 3.7])
def test_no_clipped_vector_is_longer_than_c(size: int, clip: float) -> None:
    """In exact fractions: float32 numbers are."""
    vectors = np.random.default_rng(size).normal(size=(200, size)).astype(np.float32)
    vectors[0] = 0
    found = clipped(vectors, clip)
    for before, after in zip(vectors, found, strict=True):
        assert sum(Fraction(float(x)) ** 2 for x in after) <= Fraction(clip) ** 2
        length = np.linalg.norm(before.astype(float))
        wanted = before * min(1.0, clip / length) if length else before
        np.testing.assert_allclose(after, wanted, rtol=3e-7, atol=1e-44)
        assert length > clip * (1 - 1e-9) or (before == after).all()


def test_rounding_upwards() -> None:
    assert all(1 < upwards(x) / x < 1 + 1e-14 for x in (1e-80, 1.0, 3.0, 1e80))
    assert upwards(0.0) > 0


@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_published_calibration_takes_no_delta(kind: type) -> None:
    with pytest.raises(SettingsError, match=r"mechanism\.delta: .*published"):
        kind(epsilon=1.0, delta=0.1, calibration="published")


@pytest.mark.parametrize("kind", KINDS)
class TestEachOne:
    def test_without_noise_a_word_is_itself(self, kind: type) -> None:
        """But not where clipped vectors are compared with vectors as they are."""
        lexicon = lexicon_at(np.random.default_rng(3).normal(size=(200, 4)) * 3)
        ids = np.arange(200, dtype=np.int32)
        clipped, published = (
            kind(epsilon=1e9, snap=snap).compile(lexicon).sample(ids, draws_of(200)) == ids
            for snap in ("clipped", "published")
        )
        assert clipped.all()
        assert published.mean() < 0.5

    @pytest.mark.parametrize(("epsilon", "clip"), [(1.0, 1e120), (1.0, 1e200), (1e-3, 1e300)])
    def test_noise_that_float64_does_not_hold(self, kind: type, epsilon: float, clip: float) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* Choose "):
            kind(epsilon=epsilon, clip=clip).compile(lexicon_at(np.eye(3)))

    def test_noise_is_never_rounded_away(self, kind: type) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* scale of the noise"):
            kind(epsilon=1e30, clip=1e-90).compile(lexicon_at(np.eye(3)))


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

        def excess(x: float, e: float = math.exp(epsilon), m: float = ratio) -> float:
            return max(0.0, stats.norm.pdf(x, loc=m) - e * stats.norm.pdf(x))

        found, _ = integrate.quad(excess, epsilon / ratio + ratio / 2, 40)
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


def test_the_scale_and_the_guarantee() -> None:
    made = Gaussian(1.0, 1e-5, clip=2.0).compile(lexicon_at(np.eye(3)))
    assert made.parameters[0] == pytest.approx(4.0 / largest_ratio(1.0, 1e-5), rel=1e-14)
    assert exact_delta(1.0, 4.0 / made.parameters[0]) == pytest.approx(1e-5, rel=1e-6)
    found = made.guarantee
    assert (found.kind, found.epsilon, found.delta, found.status) == ("approx_dp", 1.0, 1e-5, "claimed")
    assert Gaussian(1.0).compile(lexicon_at(np.eye(3))).guarantee.delta == 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0])
def test_the_published_scale_names_its_delta(epsilon: float) -> None:
    made = Gaussian(epsilon, calibration="published").compile(scattered(5, 16, 0))
    assert made.parameters[0] == pytest.approx(2 * 4 / epsilon, rel=1e-14)
    assert made.guarantee.delta == pytest.approx(exact_delta(epsilon, epsilon / 4), rel=1e-8)
    assert "published" in made.guarantee.sentence
    assert made.guarantee.delta > 0
