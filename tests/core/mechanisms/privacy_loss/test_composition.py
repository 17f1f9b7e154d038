"""ε of several draws against enumeration: closed forms, adaptive choice, and the table of what they come to."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dptext_spark.arrays import F64
from dptext_spark.mechanisms.privacy_loss.accountant import (
    FINE,
    ORDERS,
    adaptive,
    bounded_range,
    bounded_range_delta,
    bounded_range_divergence,
    of_divergences,
    pure,
    pure_delta,
)

DELTA = 1e-6
# (draws, ε of each): any ε-DP law, bounded range, adaptive, each at δ = 1e-6 and rounded up.
TABLE = {
    (25, 2.0): (50.0, 32.6, 33.5), (25, 1.0): (25.0, 13.9, 14.4), (100, 1.0): (83.6, 34.8, 36.4),
    (100, 0.5): (33.4, 14.4, 15.1), (200, 0.5): (55.1, 22.3, 23.5), (200, 0.25): (22.0, 9.5, 10.1),
}  # fmt: skip


@pytest.mark.parametrize(("draws", "epsilon"), TABLE)
def test_the_table(draws: int, epsilon: float) -> None:
    found = (
        pure(draws, epsilon, DELTA),
        bounded_range(draws, epsilon, DELTA),
        adaptive(draws, epsilon, DELTA),
    )
    for each, wanted in zip(found, TABLE[draws, epsilon], strict=True):
        assert wanted - 0.11 < each <= wanted


def hockey_stick(first: F64, second: F64, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def extreme(t: float, spread: float) -> tuple[F64, F64]:
    """The two-outcome pair of range R whose larger log ratio is t."""
    p = (math.exp(spread) - math.exp(t)) / (math.exp(spread) - 1.0)
    first = np.array([p, 1.0 - p])
    return first, first * np.exp([-t, spread - t])


def together(pairs: list[tuple[F64, F64]]) -> tuple[F64, F64]:
    first, second = np.ones(1), np.ones(1)
    for p, q in pairs:
        first, second = np.outer(first, p).reshape(-1), np.outer(second, q).reshape(-1)
    return first, second


@pytest.mark.parametrize(
    ("draws", "spread", "steps"), [(1, 0.5, 4000), (1, 3.0, 4000), (2, 1.0, 80), (3, 2.0, 24)]
)
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_bounded_range_is_the_supremum(draws: int, spread: float, steps: int, share: float) -> None:
    """No choice of t for each draw passes the closed form, and the t that it names reaches it to 1e-9."""
    g = share * draws * spread
    stated = bounded_range_delta(g, draws, spread)
    grid = np.linspace(1e-9, spread - 1e-9, steps)
    # Its own t, one for each l, are among those that are tried.
    named = [min(max((g + (one + 1) * spread) / (draws + 1), 0.0), spread) for one in range(draws + 1)]
    found = max(hockey_stick(*together([extreme(t, spread)] * draws), g) for t in named)
    for chosen in product(grid, repeat=draws):
        if list(chosen) == sorted(chosen):  # their order does not matter
            found = max(found, hockey_stick(*together([extreme(t, spread) for t in chosen]), g))
    assert found == pytest.approx(stated, abs=1e-9)
    assert found <= stated + 1e-12


def test_divergences_of_bounded_range_are_those_of_the_worst_law() -> None:
    for spread in (0.01, 0.5, 2.0, 9.0):
        found = bounded_range_divergence(spread)
        assert (found <= (FINE + 1.0) * spread**2 / 8.0).all()
        for order in (0.05, 1.0, 7.0, 40.0):
            least = 0.0
            for t in np.linspace(1e-6, spread - 1e-6, 2_000):
                first, second = extreme(float(t), spread)
                least = max(least, math.log(float((first * (first / second) ** order).sum())) / order)
            (stated,) = bounded_range_divergence(spread, np.array([order]))
            cap = (order + 1.0) * spread**2 / 8.0
            assert least <= stated * (1.0 + 1e-9) + 1e-12
            assert stated == pytest.approx(min(least, cap), rel=2e-3)


def test_an_adversary_who_looks_gains_nothing_beyond_the_adaptive_bound() -> None:
    """Two draws, the second law chosen by what came out first: the worst choice on a grid of laws, and of δ."""
    spread = 1.5
    laws = [extreme(float(t), spread) for t in np.linspace(1e-6, spread - 1e-6, 40)]
    for delta in (1e-1, 1e-2, 1e-3):
        epsilon, plain = adaptive(2, spread, delta), pure(2, spread, delta)
        for g in (epsilon, plain):
            worst = 0.0
            for first, second in laws:
                # Σ over what came first of p·max over laws of the hockey-stick at g - ln(p/q).
                chosen = 0.0
                for p, q in zip(first, second, strict=True):
                    rest = g - math.log(p / q)
                    chosen += p * max(hockey_stick(one, other, rest) for one, other in laws)
                worst = max(worst, chosen)
            assert worst <= delta


@pytest.mark.parametrize("each", [0.3, 2.0])
def test_any_law_is_bounded_by_randomised_response(each: float) -> None:
    p = math.exp(each) / (1.0 + math.exp(each))
    response = np.array([p, 1.0 - p]), np.array([1.0 - p, p])
    for draws in (1, 2, 3, 4):
        first, second = together([response] * draws)
        for g in np.linspace(0.0, draws * each, 9):
            assert pure_delta(float(g), draws, each) == pytest.approx(
                hockey_stick(first, second, float(g)), abs=1e-12
            )


def test_what_is_stated_never_passes_the_sum_and_is_nothing_of_nothing() -> None:
    for draws, each in ((1, 3.0), (2, 0.1), (5_000, 0.01)):
        for found in (bounded_range(draws, each, DELTA), pure(draws, each, DELTA)):
            assert found <= draws * each * (1.0 + 1e-9) or math.isinf(found)
    assert bounded_range(0, 1.0, DELTA) == adaptive(3, 0.0, DELTA) == pure(0, 1.0, DELTA) == 0.0
    assert math.isinf(bounded_range(5_000, 1.0, DELTA))  # too many for the closed form
    assert of_divergences(0, np.ones(len(ORDERS)), ORDERS, DELTA) == 0.0
