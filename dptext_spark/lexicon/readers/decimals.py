"""Decimal text to float32, each number rounded once: to the float32 nearest to what is written.

Going by way of float64 rounds twice, and is wrong where the float64 falls on, or next to, the middle
between two float32 values. The compiled loop works with a float64 whose error is known (below 2 units in
its last place: one half for the 19 digits kept, one half for the power of ten, one half for their product)
and hands every number within 4 units of such a middle, below the normal range or near the largest float32
to `exact_float32`.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np

from dptext_spark.runtime.jit import compiled

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
# What a field is: a number, one that needs exact arithmetic, none at all, or a word like nan that may be one.
PLAIN, DOUBTFUL, MALFORMED, WORD = range(4)

LARGEST_POWER = 40
SMALLEST_POWER = -64
POWERS = np.array([float(f"1e{e}") for e in range(SMALLEST_POWER, LARGEST_POWER + 1)])
DIGITS = 19  # as many as an unsigned 64-bit integer always holds
NORMAL = 1.1754944e-38
LARGE = 3.4028234e38
MIDDLE = 0x10000000  # of the 29 bits that a float64 has and a float32 has not
INFINITY = 0x7F800000  # as a bit pattern; those of the positive float32 ascend with them
OVERFLOW = Fraction(2**128 - 2**103)  # from here on the nearest float32 is infinite


@compiled
def scan_number(data: Any, i: int, end: int) -> tuple[float, int, int]:
    """Read the field that starts at `i` and stops at an ASCII space or at `end`.

    Args:
        data: uint8[...].
        i: first byte of the field.
        end: end of the line.

    Returns:
        (value, kind, first byte after the field); the value counts where the kind is PLAIN.
    """
    start = i
    negative = False
    if i < end and (data[i] == 45 or data[i] == 43):
        negative = data[i] == 45
        i += 1
    mantissa = np.uint64(0)
    digits, power = 0, 0
    seen = fraction = False
    while i < end:
        c = np.int64(data[i])
        if 48 <= c <= 57:
            seen = True
            if digits < DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(c - 48)
                digits += 1 if mantissa > 0 else 0
                power -= 1 if fraction else 0
            elif not fraction:
                power += 1
        elif c == 46 and not fraction:
            fraction = True
        else:
            break
        i += 1
    kind = PLAIN if seen else MALFORMED
    if seen and i < end and (data[i] | 32) == 101:
        i += 1
        down = False
        if i < end and (data[i] == 45 or data[i] == 43):
            down = data[i] == 45
            i += 1
        written, exponent = False, 0
        while i < end and 48 <= data[i] <= 57:
            exponent = min(exponent * 10 + int(data[i]) - 48, 99999)
            written = True
            i += 1
        power += -exponent if down else exponent
        if not written:
            kind = MALFORMED
    if i < end and data[i] != 32:
        starts_like_nan_or_inf = data[i] | 32 == 110 or data[i] | 32 == 105
        kind = WORD if i <= start + 1 and not seen and not fraction and starts_like_nan_or_inf else MALFORMED
        while i < end and data[i] != 32:
            i += 1
    if kind != PLAIN:
        return 0.0, kind, i
    value = 0.0
    if mantissa > 0:
        if power < SMALLEST_POWER or power > LARGEST_POWER:
            return 0.0, DOUBTFUL, i
        value = np.float64(mantissa) * POWERS[power - SMALLEST_POWER]
        rest = np.int64(np.float64(value).view(np.uint64) & np.uint64(0x1FFFFFFF))
        if value < NORMAL or value > LARGE or abs(rest - MIDDLE) <= 4:
            return 0.0, DOUBTFUL, i
    return -value if negative else value, PLAIN, i


def exact_float32(field: bytes) -> np.float32 | None:
    """Return the float32 nearest to a decimal number, ties to even; None where `field` is no number."""
    if not NUMBER.fullmatch(field):
        return None
    text = field.decode("ascii")
    wide = float(text)
    if not math.isfinite(wide) or wide == 0.0:
        return np.float32(wide)
    exact = Fraction(text)
    if abs(exact) >= OVERFLOW:
        return np.float32(math.copysign(math.inf, wide))
    guess = int(np.float32(min(abs(wide), LARGE)).view(np.uint32))
    patterns = [bits for bits in (guess - 1, guess, guess + 1) if 0 <= bits < INFINITY]

    def badness(bits: int) -> tuple[Fraction, int]:
        return abs(Fraction(float(np.uint32(bits).view(np.float32))) - abs(exact)), bits & 1

    best = np.uint32(min(patterns, key=badness)).view(np.float32)
    return np.float32(-best if wide < 0 else best)
