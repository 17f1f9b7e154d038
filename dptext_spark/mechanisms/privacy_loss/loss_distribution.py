"""ε of n draws by their privacy loss distribution, with the package `dp-accounting` where it is installed.

The pair that dominates every pair of the lexicon is known by its hockey-stick curve. Connect-the-dots gives the loss
distribution of a pair that dominates it in turn (Doroshenko et al. 2022, "Connect the Dots: Tighter Discrete Approximations of
Privacy Loss Distributions", PoPETs), and n-fold convolution by FFT composes it. Not valid where a law is chosen by looking at
outputs.

The FFT works in float64. Of masses p with Σp <= 1 on N points, with η = 4·log2(N)·2^-53 a bound on its relative error (Higham
2002, Theorem 24.2), the n-fold convolution errs by at most (n + 2)·η in the 2-norm, and so by √N times that in any sum of
masses. The masses themselves come from second differences of the curve, each value of which errs by some 2^-50: over m points
by at most m·2^-48/(e^step - 1) together, n times over. Both are added to δ.
"""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from dptext_spark.arrays import F64

MOST_POINTS = 1 << 25  # of a convolution
TAILS = 1e-15  # of δ: what the convolution may cut off, which counts as lost
LEFT = 0.5  # of δ at least, after the error is taken off


def is_installed() -> bool:
    """Whether `dp-accounting` is there."""
    return find_spec("dp_accounting") is not None


def convolved(draws: int, curve: F64, step: float, delta: float) -> float:
    """Return ε of n draws; infinite where the package is missing, or the error of floating point leaves too little of δ.

    Args:
        draws: n.
        curve: float64[m], the hockey-stick divergence of the dominating pair at ε = step·j, j from 0, up to the largest loss.
        step: of the curve.
        delta: δ > 0.
    """
    points = 2 * len(curve) - 1
    whole = draws * points
    if not is_installed() or not len(curve) or whole > MOST_POINTS:
        return math.inf
    left = delta - error_of(draws, points, step) - TAILS
    if left < LEFT * delta:
        return math.inf
    pld_pmf: Any = import_module("dp_accounting.pld.pld_pmf")

    # δ(-ε) = 1 - e^-ε (1 - δ(ε)), for each pair is compared both ways.
    positive = step * np.arange(len(curve))
    negative = 1.0 - np.exp(-positive[:0:-1]) * (1.0 - curve[:0:-1])
    deltas = np.minimum.accumulate(np.concatenate([negative, curve]))
    top = len(curve) - 1
    one = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -top, top, deltas)
    found = float(one.self_compose(draws, TAILS).get_epsilon_for_delta(left))
    return found * (1.0 + 1e-12)


def error_of(draws: int, points: int, step: float) -> float:
    """Return what floating point can add to δ of n draws whose masses lie on `points` points."""
    size = max(2, 2 * draws * points)
    relative = 4.0 * math.log2(size) * 2.0**-53
    masses = draws * points * 2.0**-48 / math.expm1(step)
    return (draws + 2) * relative * math.sqrt(size) + masses
