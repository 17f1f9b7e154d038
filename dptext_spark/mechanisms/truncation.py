"""How often truncated Laplace noise leaves the support of another word's noise, and how far it must reach for a given δ.

Lengths are in units of the noise's scale: noise with density ∝ e^-|x| on [-a, a] for each of d coordinates. A coordinate shifted
by y leaves the other support with probability p(y) = (e^y - 1) / (2(e^a - 1)) up to y = a, and less than that beyond.
Inside both supports the densities differ by a factor of at most e to the sum of the shifts; outside by infinity. Where that sum
is at most ε, the exact δ of the noisy vectors is thus the probability of leaving: 1 - Π(1 - p(y_i)) <= Σp(y_i).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.mechanisms.numerics.elementary import excess, exponential, logarithm, logarithm_of_more
from dptext_spark.runtime.jit import Int, compiled

CLOSE = 1e-10
_LARGE = 700.0  # exponents that float64 holds


@compiled
def _part(y: float, top: float) -> Any:
    """Return (e^y - 1)·e^-top, for 0 <= y <= top."""
    if y <= 0.5:
        return excess(y) * exponential(-top)
    return exponential(y - top) - exponential(-top)


@compiled
def _split(s: float, radius: float, others: float) -> Any:
    """Return (the sum of e^y - 1, times e^-radius, for one coordinate s and the others t; t)."""
    t = math.sqrt(max(0.0, (radius - s) * (radius + s)) / others)
    return _part(s, radius) + others * _part(min(t, radius), radius), t


@compiled
def _slope(t: float, radius: float) -> Any:
    """Return e^(t - radius) / t."""
    return exponential(t - radius) / t if t > 0.0 else np.inf


@compiled
def log_worst_excess(radius: float, dimensions: Int) -> Any:
    """Return ln S, S the largest Σ(e^y_i - 1) over all y with Σy_i² <= radius², rounded up by about 1e-10.

    In z = y² a term e^√z - 1 is concave below z = 1 and convex above. So the even split is the worst for radius <= 1; otherwise
    one coordinate s is apart and the others, t, are equal. The largest over s is found by branch and bound: the derivative
    e^s - s·e^t/t has known bounds between two points; where its sign is certain an end is the largest, else the middle and
    the steepest slope bound the rest.

    Args:
        radius: > 0.
        dimensions: d >= 1.
    """
    even = radius / math.sqrt(dimensions * 1.0)
    if radius <= 1.0 or dimensions == 1:
        return even + logarithm(_part(even, even)) + logarithm(dimensions * 1.0) + CLOSE
    others = dimensions - 1.0
    best = 0.0
    stack = [(even, radius)]
    while len(stack) > 0:
        low, high = stack.pop()
        middle = low + (high - low) / 2.0
        at_low, t_low = _split(low, radius, others)
        at_middle, _ = _split(middle, radius, others)
        at_high, t_high = _split(high, radius, others)
        best = max(best, max(at_low, max(at_middle, at_high)))
        ends = (_slope(t_low, radius), _slope(t_high, radius))
        least = _slope(1.0, radius) if t_high < 1.0 < t_low else min(ends[0], ends[1])
        falls = exponential(low - radius) - high * max(ends[0], ends[1])
        rises = exponential(high - radius) - low * least
        steepest = max(-falls, rises)
        bound = at_middle + steepest * (high - low) / 2.0
        if falls < 0.0 < rises and bound > best * (1.0 + CLOSE) and low < middle < high:
            stack.append((low, middle))
            stack.append((middle, high))
    return radius + logarithm(best) + 2.0 * CLOSE


def reach(radius: float, dimensions: int, delta: float) -> float:
    """Return the a for which no shift of Euclidean length up to `radius` leaves the support with more than δ: ln(1 + S/(2δ))."""
    ratio = log_worst_excess(radius, dimensions) - logarithm(2.0 * delta)
    return float(logarithm_of_more(exponential(ratio)) if ratio < _LARGE else ratio + CLOSE)


def exit_probability(shift: float, end: float, count: int) -> float:
    """Return the probability that one of `count` coordinates, each shifted by `shift` >= 0, leaves the support of reach `end`."""
    if shift >= 2.0 * end:
        return 1.0
    if shift <= end:
        one = excess(shift) / (2.0 * excess(end)) if end < _LARGE else exponential(shift - end) / 2.0
    else:
        one = 0.5 + excess(end - shift) / (2.0 * excess(-end))
    return -float(excess(count * logarithm_of_more(-one)))


def exit_bound(radius: float, dimensions: int, end: float) -> float:
    """Return an upper bound of the probability to leave, over all shifts of Euclidean length up to `radius`: Σp, at most 1."""
    log_excess = log_worst_excess(radius, dimensions)
    log_end = logarithm(excess(end)) if end < _LARGE else end
    log_bound = log_excess - log_end - logarithm(2.0)
    return float(min(1.0, exponential(log_bound))) if log_bound < 0.0 else 1.0


def published_dimensions(epsilon: float, dimensions: int) -> int:
    """Return the D of the published calibration: d where 2ε < √d, else 4ε² + 100, with zeros padded."""
    square = 4.0 * epsilon * epsilon
    return dimensions if square < dimensions else math.ceil(square) + 100


def published_reach(epsilon: float, padded: int) -> float:
    """Return the a of the published calibration in D dimensions, 4ε² < D: -ln(1 - 2ε/√D)."""
    root = math.sqrt(padded)
    share = 2.0 * epsilon / root
    if share < 0.5:
        return -float(logarithm_of_more(-share))
    # 1 - 2ε/√D without cancellation.
    return -float(logarithm((padded - 4.0 * epsilon * epsilon) / (root * (root + 2.0 * epsilon))))


def variance(end: float) -> Any:
    """Return the variance of the law with density ∝ e^-|x| on [-end, end]."""
    if end < 0.1:  # the series; the next terms are below end^4 / 100
        return end * end / 3.0 * (1.0 - end / 4.0)
    if end > 700.0:
        return 2.0
    return 2.0 - end * (end + 2.0) / excess(end)
