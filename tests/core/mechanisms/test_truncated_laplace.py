"""Truncated Laplace noise: the exact probability to leave the other's support, by both calibrations, and the law drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import TruncatedLaplace
from dptext_spark.mechanisms.clipped_noise import (
    exit_bound,
    exit_probability,
    log_worst_excess,
    published_dimensions,
    published_reach,
    reach,
)
from tests.core.names import scattered


def leaves(shifts: np.ndarray, end: float) -> np.ndarray:
    """Probability that one of the coordinates leaves, from the distribution function: float64[..., d] in, [...] out.

    Noise on [-a, a] shifted by y leaves [-a, a] where it is above a - y.
    """
    x = end - np.abs(shifts)
    below = np.where(x < 0, 0.5 * (np.exp(np.minimum(x, 0)) - math.exp(-end)), 0.0)
    above = np.where(x >= 0, 0.5 * (np.exp(-np.maximum(x, 0)) - math.exp(-end)), 0.0)
    total = 1 - math.exp(-end)
    one = np.where(x >= 0, above / total, 1 - below / total)
    one = np.where(x <= -end, 1.0, one)
    return 1 - np.exp(np.log1p(-np.minimum(one, 1 - 1e-16)).sum(axis=-1))


def shifts(radius: float, dimensions: int) -> np.ndarray:
    """Many splits of one length: random ones, k equal coordinates, and one apart from the others."""
    rng = np.random.default_rng(7)
    rows = [rng.normal(size=(3000, dimensions)) ** power for power in (1, 2, 3)]
    equal = np.tril(np.ones((dimensions, dimensions)))
    apart = np.ones((1000, dimensions))
    apart[:, 0] = np.geomspace(1e-2, 1e4, 1000)
    found = np.abs(np.concatenate([*rows, equal, apart]))
    return radius * found / np.linalg.norm(found, axis=1, keepdims=True)


def lexicon(dimensions: int, words: int = 4):  # type: ignore[no-untyped-def]
    return scattered(words, dimensions, 0)


class TestThePublishedForm:
    @pytest.mark.parametrize(
        ("epsilon", "dimensions", "exact", "claimed", "status"),
        [
            (1.0, 300, 0.979, 0.00083, "refuted"),
            (10.0, 300, 0.37, 0.0005, "refuted"),
            (20.0, 300, 0.12, 0.000147, "refuted"),
            (0.1, 1, 0.21, 0.25, "claimed"),
        ],
    )
    def test_known_figures(
        self, epsilon: float, dimensions: int, exact: float, claimed: float, status: str
    ) -> None:
        made = TruncatedLaplace(epsilon, calibration="published").compile(lexicon(dimensions))
        assert made.summary.exit_probability == pytest.approx(exact, abs=6e-3)
        assert made.guarantee.delta == pytest.approx(claimed, rel=5e-3)
        assert made.guarantee.status == status
        assert (f"{made.summary.exit_probability:.4g}" in made.guarantee.sentence) == (status == "refuted")

    @pytest.mark.parametrize(
        ("epsilon", "dimensions"), [(1.0, 300), (10.0, 300), (20.0, 300), (0.1, 1), (0.6, 2)]
    )
    def test_the_formulas(self, epsilon: float, dimensions: int) -> None:
        made = TruncatedLaplace(epsilon, clip=0.7, calibration="published").compile(lexicon(dimensions))
        size = dimensions if 2 * epsilon < math.sqrt(dimensions) else 4 * epsilon**2 + 100
        scale = 2 * math.sqrt(size) * 0.7 / epsilon
        bound = -scale * math.log(1 - 2 * epsilon / math.sqrt(size))
        assert made.parameters.tolist() == pytest.approx([scale, bound], rel=1e-12)
        exact = leaves(np.full(dimensions, 2 * 0.7 / math.sqrt(dimensions)) / scale, bound / scale)
        assert made.summary.exit_probability == pytest.approx(float(exact), rel=1e-9)

    def test_padding(self) -> None:
        assert [published_dimensions(e, 300) for e in (8.6, 8.7, 10, 20)] == [300, 403, 500, 1700]
        assert published_dimensions(10, 400) == 500
        assert published_dimensions(0.5, 1) == 101
        for epsilon in (1e-12, 0.3, 5.0, 1e3, 9e6):
            size, slack = published_dimensions(epsilon, 7), 1e-9 if epsilon > 1e-9 else 1e-3
            exact = -math.log((size - 4 * epsilon**2) / (size + 2 * epsilon * math.sqrt(size)))
            assert published_reach(epsilon, size) == pytest.approx(exact, rel=slack)

    @pytest.mark.parametrize("epsilon", [1e7, 1e30, 1e300])
    def test_undefined(self, epsilon: float) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* undefined.* verified"):
            TruncatedLaplace(epsilon, clip=1e30, calibration="published").compile(lexicon(3))


class TestTheVerifiedForm:
    def test_known_figures(self) -> None:
        """At d = 300, ε = 1, δ = 1/1200: exit probability 8.33e-4, variance 2293 against 2400 of plain Laplace noise."""
        made = TruncatedLaplace(1.0).compile(lexicon(300))
        assert made.guarantee.delta == 1 / 1200
        assert made.guarantee.status == "claimed"
        assert made.summary.exit_probability == pytest.approx(8.33e-4, abs=5e-7)
        assert made.summary.exit_probability <= made.summary.exit_bound <= 1 / 1200
        assert made.summary.variance == pytest.approx(2293, abs=0.5)
        assert made.summary.laplace_variance == pytest.approx(2400)

    def test_one_dimension_is_that_of_geng(self) -> None:
        made = TruncatedLaplace(0.8, 0.01, clip=0.5).compile(lexicon(1))
        scale = 1.0 / 0.8
        assert made.parameters[0] == pytest.approx(scale)
        assert made.parameters[1] == pytest.approx(scale * math.log(1 + (math.exp(0.8) - 1) / 0.02), rel=1e-9)

    @pytest.mark.long
    @pytest.mark.parametrize("dimensions", [1, 2, 3, 10, 300])
    @pytest.mark.parametrize("share", [1e-3, 0.1, 0.9, 0.999, 1.001, 1.1, 1.5, 2.5, 5.0, 20.0])
    def test_it_holds_on_both_sides_of_the_root_of_d(self, dimensions: int, share: float) -> None:
        for delta in (1e-9, 1 / (4 * dimensions), 0.3):
            end = reach(share, dimensions, delta)
            found = leaves(shifts(share, dimensions), end).max()
            assert found <= delta * (1 + 1e-6)
            # It is no longer than it must be: the bound of the worst split is δ itself.
            assert exit_bound(share, dimensions, end) == pytest.approx(delta, rel=1e-8)
            assert delta > 1e-9 or found == pytest.approx(delta, rel=0.03)

    @pytest.mark.parametrize(
        ("radius", "dimensions"),
        [
            *((radius, 2) for radius in (1.0001, 1.9, 3.5)),
            *((radius, 300) for radius in (1.2, 7.0)),
            (2.0, 4),
            (3.0, 9),
            (30.0, 5),
            (1.5, 10**6),
        ],
    )
    def test_the_worst_split(self, radius: float, dimensions: int) -> None:
        s = np.linspace(radius / math.sqrt(dimensions), radius, 200_001)
        others = np.sqrt(np.maximum(radius**2 - s**2, 0) / (dimensions - 1))
        wanted = math.log((np.expm1(s) + (dimensions - 1) * np.expm1(others)).max())
        assert wanted <= log_worst_excess(radius, dimensions) == pytest.approx(wanted, abs=1e-7)

    def test_far_ends(self) -> None:
        assert log_worst_excess(1e-9, 300) == pytest.approx(math.log(math.sqrt(300) * 1e-9), abs=1e-8)
        assert log_worst_excess(5000.0, 300) == pytest.approx(5000.0, abs=1e-9)
        assert reach(5000.0, 300, 1e-3) == pytest.approx(5000 - math.log(2e-3), abs=1e-6)
        assert reach(1e-12, 1, 0.25) == pytest.approx(2e-12, rel=1e-9)
        made = TruncatedLaplace(1e6).compile(lexicon(3))
        assert made.guarantee.status == "claimed"
        assert math.isfinite(made.parameters[1])


@pytest.mark.long
@pytest.mark.parametrize(("shift", "end"), [(0.1, 2.0), (2.0, 2.0), (2.5, 2.0), (3.99, 2.0), (5.0, 2.0)])
def test_the_exit_probability_is_that_of_samples(shift: float, end: float) -> None:
    rng = np.random.default_rng(0)
    noise = rng.laplace(size=(4_000_000, 2))
    noise = noise[(np.abs(noise) <= end).all(axis=1)]
    found = float((np.abs(noise + shift) > end).any(axis=1).mean())
    exact = exit_probability(shift, end, 2)
    assert exact == pytest.approx(float(leaves(np.full(2, shift), end)), abs=1e-12)
    assert abs(found - exact) < 4.9 * math.sqrt(max(exact * (1 - exact), 1e-12) / len(noise)) + 1e-12


def test_inside_both_supports_the_ratio_is_at_most_e_to_the_epsilon() -> None:
    """The sum of the shifts is at most ε, whatever the pair of clipped vectors."""
    made = TruncatedLaplace(3.0, clip=0.8).compile(lexicon(6, words=300))
    centers = made.centers.astype(float)
    assert np.abs(centers[:, None] - centers).sum(axis=2).max() / made.parameters[0] <= 3.0
