"""Elementary functions and inverse distribution functions in our own compiled code: the same bits on every processor.

NumPy's and the C library's exp and log change their last bit with the instruction set (AVX-512, fused multiply-add). A law
computed with them would differ from node to node, and with it the artifact's fingerprint. Noise computed with them would snap to
another word on another node. Here are IEEE additions, multiplications, divisions and square roots in a fixed order.

Uniform numbers come as 64 random bits k and stand for (k + 1/2)/2^64: never 0, never 1. Their upper half is taken by
symmetry, or by the complementary function, so that both tails reach 2^-65.

The module also has Lambert's W, the solution w of w·e^w = x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.runtime.jit import Int, compiled

LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts; the first has 33 bits, so that its product with an exponent is exact.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
TERMS = 14  # |r| <= ln(2)/2: the next term of the series is below 2^-57
UNDERFLOW = -745.2
SQRT_HALF = math.sqrt(0.5)
_HALF_STEP, _STEP = 2.0**-65, 2.0**-64
_SIGN = np.uint64(1 << 63)
NEWTON_STEPS = 30


@compiled
def exponential(x: float) -> float:
    """Return e^x for x <= 709, within 2 units in the last place (0 below -745.2): x = k·ln 2 + r, e^x = 2^k·e^r."""
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
    """Return e^x of each x: float64[n, k] in, float64[n, k] out."""
    out = np.empty(values.shape)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = exponential(values[i, j])
    return out


@compiled
def logarithm(x: float) -> float:
    """Return ln x for a normal x > 0, within 2 units in the last place: x = 2^e·m, ln m = 2·artanh((m - 1)/(m + 1))."""
    m, e = math.frexp(x)
    if m < SQRT_HALF:
        m, e = 2.0 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s  # at most 0.0295: the next term of the series is below 2^-60
    total = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (
        1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21 + z / 23))))))))
    )  # fmt: skip
    return e * LN2_HIGH + (2.0 * s + (2.0 * s * z * total + e * LN2_LOW))


@compiled
def expm1(x: float) -> Any:
    """Return e^x - 1 for x <= 709, within a few units in the last place, near 0 too."""
    if abs(x) > 0.5:
        return exponential(x) - 1.0
    total = 1.0
    for i in range(TERMS, 1, -1):
        total = 1.0 + total * x / i
    return x * total


@compiled
def log1p(x: float) -> Any:
    """Return ln(1 + x) for x > -1, within a few units in the last place, near 0 too."""
    if abs(x) > 0.25:
        return logarithm(1.0 + x)
    s = x / (2.0 + x)  # at most 1/7: the term after the last is below 2^-60
    z = s * s
    total = 0.0
    for i in range(21, 1, -2):
        total = z * (1.0 / i + total)
    return 2.0 * s + 2.0 * s * total


@compiled
def laplace_quantile(bits: Int) -> float:
    """Return a draw of the Laplace law with scale 1, from 64 random bits: the first is the sign."""
    size = -logarithm(np.float64(bits & ~_SIGN) * (2.0 * _STEP) + _STEP)
    return size if bits & _SIGN else -size


@compiled
def normal_quantile(bits: Int) -> Any:
    """Return a draw of the standard normal law, from 64 random bits: the first is the sign.

    Wichura 1988, Algorithm AS 241 (PPND16), relative error about 1e-16, at p <= 1/2.
    """
    p = np.float64(bits & ~_SIGN) * _STEP + _HALF_STEP
    q = 0.5 - p
    if q <= 0.425:
        r: Any = 0.180625 - q * q
        top = (((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
            + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427) * r
            + 133.14166789178437745) * r + 3.387132872796366608)  # fmt: skip
        low = (((((((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) * r
            + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083) * r
            + 42.313330701600911252) * r + 1.0)  # fmt: skip
        size = q * top / low
    else:
        r = math.sqrt(-logarithm(p))
        if r <= 5.0:
            r -= 1.6
            top = (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
                + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055) * r
                + 4.6303378461565452959) * r + 1.42343711074968357734)  # fmt: skip
            low = (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r
                + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494) * r
                + 2.05319162663775882187) * r + 1.0)  # fmt: skip
        else:
            r -= 5.0
            top = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r
                + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358) * r
                + 5.4637849111641143699) * r + 6.6579046435011037772)  # fmt: skip
            low = (((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r
                + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531) * r
                + 0.59983220655588793769) * r + 1.0)  # fmt: skip
        size = top / low
    return size if bits & _SIGN else -size


@compiled
def log_factorial(n: Int) -> float:
    """Return ln n!, summed up."""
    total = 0.0
    for i in range(2, n + 1):
        total += logarithm(np.float64(i))
    return total


@compiled
def _gamma_tails(shape: Int, x: float, log_factor: float) -> tuple[Any, Any, Any]:
    """Return (P, Q, x times the density) of the gamma law at x > 0; `log_factor` is ln (shape - 1)!."""
    density = exponential(shape * logarithm(x) - x - log_factor)
    if x < shape + 1.0:  # the series of the lower tail
        term = 1.0 / shape
        total = term
        n = np.float64(shape)
        while term > total * 1e-18:
            n += 1.0
            term *= x / n
            total += term
        lower = total * density
        return lower, 1.0 - lower, density
    # The upper tail of an integer shape is a finite sum.
    term = 1.0 / x
    total = term
    for k in range(shape - 1, 0, -1):
        term *= k / x
        total += term
        if term < total * 1e-18:
            break
    upper = total * density
    return 1.0 - upper, upper, density


@compiled
def gamma_quantile(bits: Int, shape: Int, log_factor: float) -> Any:
    """Return a draw of the gamma law with an integer shape and scale 1, from 64 random bits.

    Newton's method on the logarithm of the smaller tail, from the approximation of Wilson and Hilferty (1931).

    Args:
        bits: uint64.
        shape: 1 or more.
        log_factor: ln (shape - 1)!.
    """
    # The tail that is at most 1/2; the first bit says which.
    u = np.float64(bits & ~_SIGN) * _STEP + _HALF_STEP
    upper = (bits & _SIGN) != 0
    ninth = 1.0 / (9.0 * shape)
    root = 1.0 - ninth + normal_quantile(bits) * math.sqrt(ninth)
    x = shape * root * root * root
    if root <= 0.05:  # far in the lower tail of a small shape: P is about x^shape / shape!
        x = exponential((logarithm(u) + log_factor + logarithm(np.float64(shape))) / shape)
    target = logarithm(u)
    for _ in range(NEWTON_STEPS):
        lower_tail, upper_tail, density = _gamma_tails(shape, x, log_factor)
        tail = upper_tail if upper else lower_tail
        step = (logarithm(tail) - target) * tail / density
        step = min(max(step if upper else -step, -0.5), 1.0)
        x += x * step
        if abs(step) < 4e-16:
            break
    return x


@compiled
def lambert(log_x: float) -> Any:
    """Compute W(x), the solution of w·e^w = x, from ln x >= 0, by Newton's method on w + ln w = ln x."""
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
    target = math.log(-x)
    if target <= -1.0:
        return -1.0
    low, high = 0.0, math.pi
    for _ in range(200):
        middle = (low + high) / 2.0
        if math.log(middle / math.sin(middle)) - middle / math.tan(middle) < target:
            low = middle
        else:
            high = middle
    return round(-low / math.tan(low), 10)
