"""The exact δ of Gaussian noise, in decimal arithmetic with as many digits as it takes: the same on every processor.

With μ = sensitivity / standard deviation, δ = Φ(a) - e^ε·Φ(a - μ), a = μ/2 - ε/μ (Balle and Wang 2018, Theorem 8). As the
density at a is e^ε times that at a - μ, this is the density at a times M(-a) - M(μ - a), where M(x) = (1 - Φ(x)) / density(x) is
Mills' ratio: no exponential of ε is left that could overflow.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from functools import cache

DIGITS = 60
FAR = 1000  # δ at a beyond this is 1 to more than 200,000 digits
CLOSE = Decimal(1) + Decimal(10) ** -17


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """Return the δ of Gaussian noise at ε > 0, as the nearest float64, 2^-1074 at least; `ratio` is μ > 0."""
    return max(float(_delta(Decimal(epsilon), Decimal(ratio))), math.ulp(0.0))


def largest_ratio(epsilon: float, delta: float) -> float:
    """Return the largest μ whose δ at ε > 0 is at most `delta`, 0 < delta < 1; bisected, rounded down."""
    wide = Context(prec=DIGITS + abs(Decimal(epsilon).adjusted()) // 2, Emin=MIN_EMIN, Emax=MAX_EMAX)
    with localcontext(wide):
        exact_epsilon, exact_delta = Decimal(epsilon), Decimal(delta)
        low = high = max((2 * exact_epsilon).sqrt(), exact_delta)
        while _delta(exact_epsilon, low) > exact_delta:
            low, high = low / 2, low
        while _delta(exact_epsilon, high) <= exact_delta:
            low, high = high, high * 2
        while high > low * CLOSE:
            middle = (low + high) / 2
            if _delta(exact_epsilon, middle) <= exact_delta:
                low = middle
            else:
                high = middle
        return math.nextafter(float(low), 0.0)


def _delta(epsilon: Decimal, ratio: Decimal) -> Decimal:
    # Short shifts make nearly equal ratios of Mills, a large ε nearly equal halves of a: some 50 digits are left.
    digits = DIGITS + abs(ratio.adjusted()) + abs(epsilon.adjusted())
    with localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        a = ratio / 2 - epsilon / ratio
        return _density(a) * (_mills(-a) - _mills(ratio - a)) if a < FAR else Decimal(1)


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / (2 * _pi(getcontext().prec)).sqrt()


def _mills(x: Decimal) -> Decimal:
    """Return (1 - Φ(x)) / density(x)."""
    if x < 0:
        return 1 / _density(x) - _mills(-x)
    digits = getcontext().prec
    if x * x > 4 * digits:  # 1/(x + 1/(x + 2/(x + 3/...))) gains more than five digits a term
        tail = x
        for k in range(digits, 0, -1):
            tail = x + k / tail
        return 1 / tail
    with localcontext() as context:  # 1/2 - density·(x + x³/3 + x⁵/15 + ...), which cancels x²/4.6 digits
        context.prec = digits + int(x * x / 4) + 10
        term = total = x
        k = 1
        while term > total.scaleb(-context.prec):
            k += 2
            term = term * x * x / k
            total += term
        return 1 / (2 * _density(x)) - total


@cache
def _pi(digits: int) -> Decimal:
    """Return π by the arithmetic-geometric mean (Gauss and Legendre)."""
    with localcontext(Context(prec=digits + 10)):
        a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        while abs(a - b) > Decimal(10) ** -digits:
            a, b, before = (a + b) / 2, (a * b).sqrt(), a
            t -= p * (before - a) ** 2
            p *= 2
        return (a + b) ** 2 / (4 * t)
