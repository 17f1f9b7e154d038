"""The noise laws of the noise kernel, drawn from random bits by inverse distribution functions in our own code.

A draw has a fixed number of 64-bit lanes and no rejection. Both tails are exact: a uniform number is never 0 or 1, and
each tail is computed from the number of its own side. The noise is a float64: it is the correctly drawn law up to the
rounding of the last few units in the last place and to the 2^-64 steps of the uniform numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.mechanisms.numerics.elementary import (
    excess,
    gamma_quantile,
    laplace_quantile,
    logarithm,
    logarithm_of_more,
    normal_quantile,
)
from dptext_spark.runtime.jit import Int, compiled

NOISES = ("radial", "laplace", "gaussian", "truncated_laplace")
PARAMETERS = {
    "radial": 2,
    "laplace": 1,
    "gaussian": 1,
    "truncated_laplace": 2,
}  # how many each has, see `fill`
RADIAL, LAPLACE, GAUSSIAN, TRUNCATED_LAPLACE = range(4)
_SIGN = np.uint64(1 << 63)
_STEP = 2.0**-63


def lanes_of(noise: str, dimensions: int) -> int:
    """Return how many 64-bit numbers one draw of `noise` (one of `NOISES`) reads in `dimensions` dimensions."""
    return dimensions + 1 if NOISES.index(noise) == RADIAL else dimensions


@compiled
def truncated_laplace_quantile(bits: Int, end: float, less: float) -> Any:
    """Return a draw with density ∝ e^-|x| on [-end, end], from 64 random bits: the first is the sign.

    With w uniform, |x| = -ln(1 - w·(1 - e^-end)); for large w as -ln(v + w·e^-end), v = 1 - w from the bits themselves.

    Args:
        bits: uint64.
        end: the bound, in units of the scale.
        less: 1 - e^-end.
    """
    rest = bits & ~_SIGN
    w = (np.float64(rest) + 0.5) * _STEP
    if w * less <= 0.25:
        size = -logarithm_of_more(-(w * less))
    else:
        v = (np.float64(~_SIGN - rest) + 0.5) * _STEP
        size = -logarithm(v + w * (1.0 - less))
    size = min(size, end)
    return size if bits & _SIGN else -size


@compiled
def _fill_radial(epsilon: float, log_factor: float, bits: Any, out: Any) -> None:
    """Length from the gamma law by lane 0, direction from normal numbers by the other lanes."""
    size = out.shape[1]
    for i in range(out.shape[0]):
        square = 0.0
        for j in range(size):
            out[i, j] = normal_quantile(bits[i, j + 1])
            square += out[i, j] * out[i, j]
        length = gamma_quantile(bits[i, 0], size, log_factor) / epsilon
        if square == 0.0:  # only where every normal number is 0: probability 2^-54 to the power d
            out[i, 0] = length if bits[i, 1] & _SIGN else -length
        else:
            scale = length / math.sqrt(square)
            for j in range(size):
                out[i, j] *= scale


@compiled
def fill(noise: Int, parameters: Any, bits: Any, out: Any) -> None:
    """Draw noise for each row.

    Args:
        noise: index in `NOISES`: `radial`, density ∝ e^(-ε|z|) with |z| Euclidean, parameters (ε, ln (d-1)!);
            `laplace`, parameters (scale); `gaussian`, parameters (standard deviation); `truncated_laplace`, density of a
            coordinate ∝ e^(-|x|/scale) on [-A, A], parameters (scale, A).
        parameters: float64[p].
        bits: uint64[n, lanes], uniform; lanes as :func:`lanes_of`.
        out: float64[n, d], filled.
    """
    if noise == RADIAL:
        _fill_radial(parameters[0], parameters[1], bits, out)
        return
    scale = parameters[0]
    end = 0.0
    less = 0.0
    if noise == TRUNCATED_LAPLACE:
        end = parameters[1] / scale
        less = -excess(-end)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if noise == LAPLACE:
                out[i, j] = scale * laplace_quantile(bits[i, j])
            elif noise == GAUSSIAN:
                out[i, j] = scale * normal_quantile(bits[i, j])
            else:
                x = scale * truncated_laplace_quantile(bits[i, j], end, less)
                out[i, j] = min(max(x, -parameters[1]), parameters[1])
