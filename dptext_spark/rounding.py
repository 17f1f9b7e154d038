"""Printing of the figures of a promise: an epsilon unchanged, a risk never rounded down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_EXACT = 1_000  # digits: a float has no more before and after its point


def exact(number: float) -> str:
    """Return the shortest decimal that reads back equal: `2` for 2.0, and never 1 for 1.0000001."""
    return repr(float(number)).removesuffix(".0")


def rounded_up(number: float, places: int = 1) -> str:
    """Return a number with thousands separated, rounded up to so many decimal places."""
    return _places(number, places, ROUND_CEILING)


def rounded_down(number: float, places: int = 1) -> str:
    """Return a number with thousands separated, rounded down to so many decimal places."""
    return _places(number, places, ROUND_FLOOR)


def digits_up(number: float, digits: int) -> str:
    """Return a number with thousands separated, rounded up to so many significant digits."""
    return (
        f"{float(_digits(_decimal(number), digits)):,.{digits}g}" if math.isfinite(number) else exact(number)
    )


def round_conservatively(number: float, digits: int, *, up: bool) -> str:
    """Return a number with thousands separated, rounded to so many significant digits in the direction that flatters nobody."""
    if up or not math.isfinite(number):
        return digits_up(number, digits)
    return f"{float(_digits(_decimal(number), digits, ROUND_FLOOR)):,.{digits}g}"


def percent_up(share: float) -> str:
    """Return a share in percent, rounded up to three significant digits: no risk is printed as none."""
    return f"{float(_digits(_decimal(share) * 100, 3)):.3g} %"


def percent_down(share: float) -> str:
    """Return a share in percent, rounded down to three significant digits."""
    return f"{float(_digits(_decimal(share) * 100, 3, ROUND_FLOOR)):.3g} %"


def _decimal(number: float) -> Decimal:
    """Take a float as its shortest decimal: 0.07 is 7 %, not a hair more."""
    return Decimal(repr(float(number)))


def _digits(number: Decimal, digits: int, rounding: str = ROUND_CEILING) -> Decimal:
    return Context(prec=digits, rounding=rounding).create_decimal(number)


def _places(number: float, places: int, rounding: str) -> str:
    if not math.isfinite(number):
        return exact(number)
    step = Decimal(1).scaleb(-places)
    return f"{_decimal(number).quantize(step, rounding, Context(prec=_EXACT)):,f}"
