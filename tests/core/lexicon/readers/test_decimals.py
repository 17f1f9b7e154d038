"""Numbers of text vectors: each is rounded once, to the float32 nearest to what is written."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dptext_spark.lexicon.readers.text import FINE, NO_NUMBER, _block

INFINITY = 0x7F800000  # as a bit pattern; those of the positive float32 ascend with them
TOP = float(np.finfo(np.float32).max)


def as_read(text: str) -> np.float32 | None:
    """What the reader makes of a field, between two others."""
    _, values, _, trouble, field = _block(f"word 1 {text} 7\n".encode(), 3)
    assert (trouble, field) == ((FINE, 0) if len(values) else (NO_NUMBER, 3))
    return np.float32(values[0, 1]) if len(values) else None


def value_of(bits: int) -> Fraction:
    """The float32 with this bit pattern; that of infinity stands for the power of two after the largest."""
    return Fraction(2**128) if bits == INFINITY else Fraction(*struct.unpack("<f", struct.pack("<I", bits)))


def nearest(text: str) -> np.float32:
    """The float32 nearest to a decimal, ties to even, by bisection over the ordered bit patterns."""
    exact = abs(Fraction(text))
    low, high = 0, INFINITY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if value_of(middle) <= exact else (low, middle)
    below, above = exact - value_of(low), value_of(high) - exact
    bits = low if below < above or (below == above and low % 2 == 0) else high
    found = np.uint32(bits).view(np.float32)
    return -found if text.startswith("-") else found


digits = st.text("0123456789", min_size=1, max_size=30)


@settings(max_examples=500)
@given(st.sampled_from(["", "-", "+"]), digits, st.none() | digits, st.none() | st.integers(-60, 60))
@example("", "1", "00000005960464477539062500000000000000000001", None)  # just above a middle
@example("", "1", "0000000596046447753906250", None)  # a middle: to even
@example("", "1", "000000178813934326171875", None)  # the next middle: to even, upwards
@example("", "0", "0000", -5)
@example("-", "340282356779733661637539395458142568447", None, None)  # just below the overflow
@example("", "340282356779733661637539395458142568448", None, None)  # the overflow
@example("", "7", "006492321624085", -46)  # half of the smallest subnormal
def test_rounded_once(sign: str, whole: str, fraction: str | None, exponent: int | None) -> None:
    text = (
        sign
        + whole
        + ("" if fraction is None else f".{fraction}")
        + ("" if exponent is None else f"e{exponent}")
    )
    assert as_read(text).tobytes() == nearest(text).tobytes()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float32_survives_its_own_text(value: float) -> None:
    for text in (repr(value), f"{value:.9g}", f"{value:.17g}", f"{value:.150f}"):
        assert as_read(text) == np.float32(value)


def test_what_is_not_finite() -> None:
    for text in ("nan", "NaN", "-nan", "inf", "-Inf", "+infinity"):
        assert not np.isfinite(as_read(text))
    for text in ("3.5e38", "-1e39", "1e400", "9" * 400):
        assert np.isinf(as_read(text))
    assert as_read("-1e39") < 0
    assert as_read(repr(TOP)) == np.float32(TOP)
    assert as_read("1e-400") == 0
    assert np.signbit(as_read("-1e-400"))


# fmt: off
NO_NUMBERS = [
    "", "-", "+", ".", "-.", "e5", "1e", "1e+", "1.2.3", "1_0", "0x10", "1,5", "12a", "--1", "1-", "1e5.0",
    "1e5e5", "word", "nano", "in", "infinite", "-nope", "\t1", "1\u00a0", "\u0661",
]
# fmt: on


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number(text: str) -> None:
    assert as_read(text) is None
