"""What n draws of one law cost together, up to a probability δ: closed forms, each from a figure of one draw.

A draw's log ratio ρ(u) = ln P(u|w) - ln P(u|w') has a range R = max ρ - min ρ, a largest size, and a Rényi divergence D_α of each
order. All bounds hold where the words differ from draw to draw (concepts/mechanisms, Composition over a record):

- :func:`bounded_range`: laws fixed without looking at outputs, from R (Dong, Durfee and Rogers 2020, "Optimal Differential
  Privacy Composition for Exponential Mechanisms", ICML).
- :func:`bounded_range_divergence`: D_α of any law of range R, at most α·R²/8 (Cesar and Rogers 2021, "Bounding, Concentrating,
  and Truncating", ALT). Divergences add up, also where each law is chosen by looking at the outputs before it.
- :func:`of_divergences`: ε of a sum of divergences (Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential
  Privacy", Proposition 12).
- :func:`pure`: any ε-DP law, also chosen by looking (Kairouz, Oh and Viswanath 2015, "The Composition Theorem for Differential
  Privacy", ICML).

Every figure is rounded up: by bisection from above, and by a share of δ that stands for the rounding of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from dptext_spark.arrays import F64
from dptext_spark.runtime.jit import Int, compiled

# Orders α - 1 of the fixed grid at which divergences are read off a law: quarter powers of two.
STEP, OCTAVES, LEAST = 4, 12, 2.0**-4
ORDERS: F64 = LEAST * 2.0 ** (np.arange(STEP * OCTAVES) / STEP)
# Where D_α is known for every α, a finer grid costs nothing.
FINE: F64 = 2.0 ** np.linspace(-7.0, 17.0, 2_401)
LONGEST = 1_000  # draws up to which the closed form of bounded range, n² terms, is summed
SLACK = 1e-9  # relative, of δ and of a divergence: what sums in float64 can be off by
CLOSE = 1e-9  # relative: where bisection stops, from above
STEPS = 200


@compiled
def _bounded_range_delta(g: float, draws: Int, spread: float, choose: Any) -> float:
    """Return δ at ε = g for `draws` draws of range `spread`: the largest sum over l; choose: float64[n + 1], ln C(n, i)."""
    best = 0.0
    for turn in range(draws + 1):
        t = min(max((g + (turn + 1) * spread) / (draws + 1), 0.0), spread)
        # ln p and ln(1 - p), p = (e^R - e^t)/(e^R - 1).
        above = np.log(-np.expm1(t - spread)) - np.log(-np.expm1(-spread)) if t < spread else -np.inf
        below = t - spread + np.log(-np.expm1(-t)) - np.log(-np.expm1(-spread)) if t > 0.0 else -np.inf
        total = 0.0
        for i in range(draws + 1):
            loss = draws * t - i * spread
            if loss <= g:
                break
            log = choose[i]
            if i < draws:
                log += (draws - i) * above
            if i > 0:
                log += i * below
            if log > -745.0:
                total += np.exp(log) * -np.expm1(g - loss)
        best = max(best, total)
    return best


def bounded_range_delta(epsilon: float, draws: int, spread: float) -> float:
    """Return the least δ for which draws of range R are together (ε, δ)-private, whatever the laws: the closed form.

    Args:
        epsilon: ε of all draws together.
        draws: n.
        spread: R > 0, the largest range of a draw.
    """
    return float(_bounded_range_delta(float(epsilon), draws, float(spread), _log_choose(draws)))


def bounded_range(draws: int, spread: float, delta: float) -> float:
    """Return ε of n draws of laws of range R that do not look at outputs; infinite past `LONGEST` draws.

    Args:
        draws: n.
        spread: R >= 0.
        delta: δ > 0.
    """
    if not draws or not spread:
        return 0.0
    if draws > LONGEST or spread > 700.0:
        return math.inf
    return least_epsilon(lambda g: bounded_range_delta(g, draws, spread), draws * spread, delta)


def bounded_range_divergence(spread: float, orders: F64 = FINE) -> F64:
    """Return the largest D_α of a law of range R, float64[n] for orders α - 1 float64[n].

    max over t in [0, R] of ln(p·e^((α-1)t) + (1-p)·e^((α-1)(t-R)))/(α-1). With x = e^t the sum is a polynomial of one maximum, at
    x = (α-1)(e^R - e^(-(α-1)R)) / (α(1 - e^(-(α-1)R))), so that no search is needed.
    """
    order = np.asarray(orders, np.float64)
    if spread <= 0.0:
        return np.zeros(len(order))
    cap = (order + 1.0) * spread**2 / 8.0
    if spread > 300.0:
        return np.full(len(order), float(spread))
    whole, part = -np.expm1(-(order + 1.0) * spread), -np.expm1(-order * spread)
    # x/e^R, in which nothing overflows.
    scaled = np.clip(order * whole / ((order + 1.0) * part), math.exp(-spread), 1.0)
    t = spread + np.log(scaled)
    least = -math.expm1(-spread)
    p = (1.0 - scaled) / least
    rest = (scaled - math.exp(-spread)) / least
    with np.errstate(divide="ignore"):
        logs = np.logaddexp(np.log(p) + order * t, np.log(rest) + order * (t - spread))
    found = np.minimum(np.minimum(logs / order * (1.0 + SLACK) + 1e-15, cap), spread)
    return np.asarray(np.maximum(found, 0.0), np.float64)


def of_divergences(draws: int, divergences: F64, orders: F64, delta: float) -> float:
    """Return ε of n draws whose D_α is at most `divergences`: min over α of n·D_α + ln(1 - 1/α) - ln(δα)/(α - 1).

    Args:
        draws: n.
        divergences: float64[m]; infinite where there is none.
        orders: float64[m], α - 1 > 0.
        delta: δ > 0.
    """
    if not draws or not np.any(divergences):
        return 0.0
    alpha = orders + 1.0
    found = draws * divergences + np.log(orders / alpha) - (math.log(delta) + np.log(alpha)) / orders
    least = float(np.min(found))
    return max(0.0, least + SLACK * abs(least))


def adaptive(draws: int, spread: float, delta: float) -> float:
    """Return ε of n draws of laws of range R that may be chosen by looking at outputs.

    Args:
        draws: n.
        spread: R >= 0.
        delta: δ > 0.
    """
    return of_divergences(draws, bounded_range_divergence(spread), FINE, delta)


def pure_delta(epsilon: float, draws: int, each: float) -> float:
    """Return the least δ for which any ε-DP draws are together (`epsilon`, δ)-private.

    Args:
        epsilon: ε of all draws together.
        draws: n.
        each: ε of one draw.
    """
    wrong = np.arange(draws + 1)
    high, low = -math.log1p(math.exp(-each)), -each - math.log1p(math.exp(-each))
    loss = (draws - 2 * wrong) * each
    counts = loss > epsilon
    logs = _log_choose(draws)[counts] + (draws - wrong[counts]) * high + wrong[counts] * low
    return float(np.sum(np.exp(logs) * -np.expm1(epsilon - loss[counts])))


def pure(draws: int, each: float, delta: float) -> float:
    """Return ε of n draws of any ε-DP laws, also where they are chosen by looking at outputs.

    Args:
        draws: n.
        each: ε of one draw.
        delta: δ > 0.
    """
    if not draws or not each:
        return 0.0
    return least_epsilon(lambda g: pure_delta(g, draws, each), draws * each, delta)


def least_epsilon(delta_of: Callable[[float], float], most: float, delta: float) -> float:
    """Return an ε with delta_of(ε) <= δ, at most a hair above the least: bisection that ends on the side that holds.

    Args:
        delta_of: δ at an ε, falling.
        most: an ε at which it is 0.
        delta: δ > 0.
    """
    wanted = delta * (1.0 - SLACK)
    if delta_of(0.0) <= wanted:
        return 0.0
    low, high = 0.0, float(most)
    for _ in range(STEPS):
        if high - low <= CLOSE * high:
            break
        between = (low + high) / 2.0
        if delta_of(between) <= wanted:
            high = between
        else:
            low = between
    return high


def _log_choose(draws: int) -> F64:
    """Return ln C(n, i), float64[n + 1]."""
    i = np.arange(draws + 1)
    return np.asarray(gammaln(draws + 1) - gammaln(i + 1) - gammaln(draws - i + 1), np.float64)
