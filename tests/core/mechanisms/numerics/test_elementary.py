"""The compiled exponential: accurate, and the same on every processor."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dptext_spark.mechanisms.numerics import elementary


@settings(max_examples=400)
@given(st.floats(-740, 0))
def test_within_two_units_of_the_true_value(x: float) -> None:
    with localcontext() as context:
        context.prec = 60
        true = Decimal(x).exp()
        found = elementary.exponential(x)
        if true > Decimal(2) ** -1020:
            assert abs(Decimal(found) - true) <= 2 * Decimal(math.ulp(float(true)))
        else:
            assert abs(Decimal(found) - true) <= 2 * Decimal(math.ulp(0.0))


@pytest.mark.parametrize(
    ("x", "value"), [(0.0, 1.0), (-0.0, 1.0), (-746.0, 0.0), (-1e308, 0.0), (-math.inf, 0.0)]
)
def test_ends(x: float, value: float) -> None:
    assert elementary.exponential(x) == value


def test_tables() -> None:
    values = -np.linspace(0, 30, 60).reshape(6, 10)
    found = elementary.exponentials(values)
    assert found.shape == values.shape
    assert found.tolist() == [[elementary.exponential(x) for x in row] for row in values.tolist()]


def test_plain_python_gives_the_same_bits() -> None:
    """IEEE additions, multiplications and divisions in a fixed order: nothing is left to the processor."""
    some = np.random.default_rng(0).uniform(-50, 0, 200).tolist()
    for x in (-0.1, -1.0, -2.5, -17.3, -300.0, -744.0, *some):
        assert elementary.exponential.py_func(x) == elementary.exponential(x)


def test_lambert() -> None:
    for log_x in (0.0, 0.1, 1.0, 5.0, 30.0, 700.0):
        assert elementary.lambert(log_x) == pytest.approx(special.lambertw(math.exp(log_x)).real, rel=1e-13)
    assert elementary.lambert(1e4) + math.log(elementary.lambert(1e4)) == pytest.approx(1e4, rel=1e-14)
    for x in (-0.4, -1.0, -math.pi / 2, -2.0, -62.0, -1e6):
        assert elementary.lambert_real_part(x) == pytest.approx(special.lambertw(x).real, abs=6e-11)
    assert elementary.lambert_real_part(-1e-3) == -1


@settings(max_examples=400)
@given(st.floats(-740, 700) | st.floats(-1e-3, 1e-3))
def test_expm1(x: float) -> None:
    assert elementary.expm1(x) == pytest.approx(math.expm1(x), rel=2e-15, abs=1e-300)


@settings(max_examples=400)
@given(st.floats(-1 + 1e-9, 1e300) | st.floats(-1e-3, 1e-3))
def test_log1p(x: float) -> None:
    # 1 + x is rounded where |x| > 1/4: an error of 2^-53 in it is one of 2^-53 / (1 + x) in the logarithm.
    slack = 2.0**-53 / (1 + x) if x < -0.25 else 1e-300
    assert elementary.log1p(x) == pytest.approx(math.log1p(x), rel=1e-15, abs=slack)
