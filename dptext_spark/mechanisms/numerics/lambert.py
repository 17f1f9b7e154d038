"""Lambert's W, which solves w·e^w = x."""

from __future__ import annotations

import math
from typing import Any

from dptext_spark.mechanisms.numerics.elementary import logarithm
from dptext_spark.runtime.jit import compiled


@compiled
def lambert(log_x: float) -> Any:
    """Return W(x), the solution of w·e^w = x, from ln x >= 0, by Newton's method on w + ln w = ln x."""
    w = 1.0 + log_x - logarithm(1.0 + log_x)
    for _ in range(50):
        following = w * (1.0 + log_x - logarithm(w)) / (1.0 + w)
        if abs(following - w) <= 1e-15 * w:
            break
        w = following
    return w


def lambert_real_part(x: float) -> float:
    """Return the real part of the principal W(x) for x < 0, rounded to 10 decimals: the same on every processor.

    Below -1/e, W = -η·cot η + iη with η in (0, π) growing with |x|: ln(η/sin η) - η·cot η = ln|x|. At -1/e and above, W is
    between -1 and 0, and -1 is returned.
    """
    wanted = math.log(-x)
    if wanted <= -1.0:
        return -1.0
    low, high = 0.0, math.pi
    for _ in range(200):
        middle = (low + high) / 2.0
        if math.log(middle / math.sin(middle)) - middle / math.tan(middle) < wanted:
            low = middle
        else:
            high = middle
    return round(-low / math.tan(low), 10)


def gumbel_interval(a: float, smallest: float, largest: float) -> float:
    """Return 2Δmax/b = min(W(2aΔmax), ln(aΔmin)) of the truncated Gumbel mechanism, or 0 for b -> ∞."""
    if a > 0:
        shorter = logarithm(a) + logarithm(smallest)
        if shorter <= 0:
            return 0.0
        return float(min(shorter, lambert(logarithm(2.0) + logarithm(a) + logarithm(largest))))
    return max(0.0, lambert_real_part(2.0 * a * largest)) if a < 0 else 0.0
