"""e^-x without a division, the integer that draws with that probability, and sums: the arithmetic of laws over a lexicon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.mechanisms.numerics.elementary import LN2_HIGH, LN2_LOW, LOG2_E
from dptext_spark.runtime.jit import inlined

EVERY = np.uint64(2**64 - 1)
# e^-r for |r| <= ln(2)/2, highest power first: the next term of the series is below 2^-57.
(_C13, _C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3) = (
    1.0 / math.factorial(i) for i in range(13, 2, -1)
)
_HALVES = np.ldexp(1.0, -np.arange(64))


@inlined
def decay(x: float) -> Any:
    """Return e^-x for 0 <= x <= 43, within 2 units in the last place: as :func:`exponential`, without its divisions."""
    k = np.floor(x * LOG2_E + 0.5)
    r = (k * LN2_HIGH - x) + k * LN2_LOW
    total = _C13
    for c in (_C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3, 0.5, 1.0, 1.0):
        total = total * r + c
    return total * _HALVES[np.int64(k)]


@inlined
def summed(values: Any) -> Any:
    """Return the sum of float64[n], none of them negative, with a relative error below 40·2^-53 whatever n."""
    total, lost = 0.0, 0.0
    for start in range(0, values.shape[0], 32):
        part = 0.0
        for j in range(start, min(start + 32, values.shape[0])):
            part += values[j]
        part -= lost  # Kahan's summation, over sums of 32
        after = total + part
        lost = (after - total) - part
        total = after
    return total


@inlined
def acceptance(x: float) -> Any:
    """Return the largest of 2^64 numbers that accepts a proposal with probability e^-x; for x <= 0 all of them do."""
    accepted = decay(max(x, 0.0)) * 18446744073709551616.0
    return np.uint64(accepted) - np.uint64(1) if accepted < 18446744073709551616.0 else EVERY
