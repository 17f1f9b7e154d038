"""Printed figures: an epsilon reads back equal, and no risk is printed as less than it is."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark import rounding

FINITE = st.floats(0, allow_infinity=False, allow_nan=False, allow_subnormal=False)


def read(text: str) -> Decimal:
    return Decimal(text.removesuffix(" %").replace(",", ""))


@given(FINITE)
def test_an_epsilon_reads_back_equal(epsilon: float) -> None:
    assert float(rounding.exact(epsilon)) == epsilon


@given(FINITE, st.integers(0, 4))
def test_nothing_is_rounded_the_wrong_way(number: float, places: int) -> None:
    meant = Decimal(repr(number))
    low, high = read(rounding.rounded_down(number, places)), read(rounding.rounded_up(number, places))
    assert low <= meant <= high
    assert (high - low) * 10**places <= 1
    assert meant <= read(rounding.digits_up(number, 4))


@given(st.floats(0, 1, allow_subnormal=False))
def test_a_share_that_is_not_0_is_not_printed_as_0(share: float) -> None:
    shown = read(rounding.percent_up(share))
    assert read(rounding.percent_down(share)) <= Decimal(repr(share)) * 100 <= shown
    assert (shown == 0) == (share == 0)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (rounding.exact(2.0), "2"),
        (rounding.exact(0.1 + 0.2), "0.30000000000000004"),
        (rounding.exact(math.inf), "inf"),
        (rounding.rounded_up(1234.01), "1,234.1"),
        (rounding.rounded_up(math.inf), "inf"),
        (rounding.rounded_down(19.59), "19.5"),
        (rounding.digits_up(math.exp(2), 4), "7.39"),
        (rounding.digits_up(math.exp(10), 4), "2.203e+04"),
        (rounding.percent_up(0.07), "7 %"),
        (rounding.percent_up(1 / 21_721), "0.00461 %"),
        (rounding.percent_down(0.9999), "99.9 %"),
        (rounding.percent_up(0), "0 %"),
        (rounding.percent_up(1), "100 %"),
    ],
)
def test_by_hand(shown: str, expected: str) -> None:
    assert shown == expected


@given(FINITE, st.integers(1, 6))
def test_digits_go_where_they_are_told(number: float, digits: int) -> None:
    meant = Decimal(repr(number))
    low, high = (
        Decimal(rounding.round_conservatively(number, digits, up=up).replace(",", "")) for up in (False, True)
    )
    assert low <= meant <= high
    assert high - low <= Decimal(f"1e{1 - digits}") * max(high, low)
    assert rounding.round_conservatively(1234.56, 2, up=False) == "1.2e+03"
    assert rounding.round_conservatively(0.49999, 3, up=False) == "0.499"
