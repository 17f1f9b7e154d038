"""The exponential function in our own compiled code: the same bits on every processor.

NumPy's and the C library's exp change their last bit with the instruction set (AVX-512, fused multiply-add). A law computed
with them would differ from node to node, and with it the artifact's fingerprint, which every draw depends on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.compiled import compiled

LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts; the first has 33 bits, so that its product with an exponent is exact.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
TERMS = 14  # |r| <= ln(2)/2: the next term of the series is below 2^-57
UNDERFLOW = -745.2


@compiled
def exponential(x: float) -> float:
    """Return e^x for x <= 0, within 2 units in the last place (0 below -745.2): x = k·ln 2 + r, e^x = 2^k·e^r."""
    if x < UNDERFLOW:
        return 0.0
    k = np.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    total = 1.0
    for i in range(TERMS, 0, -1):
        total = 1.0 + total * r / i
    return math.ldexp(total, int(k))


@compiled
def exponentials(values: Any) -> Any:
    """Return e^x of each x <= 0: float64[n, k] in, float64[n, k] out."""
    out = np.empty(values.shape)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = exponential(values[i, j])
    return out
