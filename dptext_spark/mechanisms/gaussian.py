"""Gaussian noise on every coordinate of a clipped word vector, with the least scale that (ε, δ) allows.

Paper: Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential Privacy", Theorem 8; for text, Huang et al. 2024.
Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent normal with standard deviation s. With μ = 2C/s the
mechanism is (ε, δ)-DP exactly for δ >= Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ); s is the least with that.
Guarantee: (ε, δ)-DP between any two words of the lexicon; the nearest word is post-processing.
Deviations: `calibration: published` takes the scale 2√d·C/ε of the authors' code, which comes without a δ; the guarantee then
names the δ that this scale has. The nearest word is that with the nearest *clipped* vector (`snap: published`: the nearest vector
as it is). Noise is float64 made from 64 random bits a number; the bound is for noise in real numbers.

The exact δ is computed in decimal arithmetic with as many digits as it takes: the same on every processor.

With μ = sensitivity / standard deviation, δ = Φ(a) - e^ε·Φ(a - μ), a = μ/2 - ε/μ (Balle and Wang 2018, Theorem 8). As the
density at a is e^ε times that at a - μ, this is the density at a times M(-a) - M(μ - a), where M(x) = (1 - Φ(x)) / density(x) is
Mills' ratio: no exponential of ε is left that could overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from functools import cache
from typing import ClassVar, Literal

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import HALF_SPACES, REFUTES
from dptext_spark.mechanisms.clipped_noise import (
    Additive,
    Snap,
    clip_number,
    delta_number,
    epsilon_number,
    guarantee_between_all,
    scale_of,
    snap_choice,
    upwards,
)
from dptext_spark.mechanisms.parameters import choice
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import NoiseSampler, NoiseSummary

Calibration = Literal["analytic", "published"]
DELTA = 1e-6
DIGITS = 60
FAR = 1000  # δ at a beyond this is 1 to more than 200,000 digits
CLOSE = Decimal(1) + Decimal(10) ** -17


@dataclass(frozen=True)
class Gaussian(Additive):
    """The parameters of Gaussian noise.

    Examples:
        >>> mechanism = dp.Gaussian(epsilon=10.0, delta=1e-6)
        >>> mechanism.protects
        '(ε, δ)-DP between any two words of the lexicon'
    """

    name: ClassVar[str] = "gaussian"
    paper: ClassVar[str] = "Balle and Wang 2018, Improving the Gaussian Mechanism for Differential Privacy"
    protects: ClassVar[str] = "(ε, δ)-DP between any two words of the lexicon"
    certified_by: ClassVar[str | None] = f"of the released word {HALF_SPACES}; {REFUTES}"

    epsilon: float = epsilon_number()
    delta: float | None = delta_number("1e-6")
    clip: float = clip_number()
    calibration: Calibration = choice(
        Calibration, "analytic", "`analytic`: the least scale for (ε, δ); `published`: the scale 2√d·C/ε."
    )
    snap: Snap = snap_choice()
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used.

        Raises:
            SettingsError: the scale of the noise is out of the range of float64.
        """
        if self.calibration == "analytic":
            delta = DELTA if self.delta is None else self.delta
            scale = scale_of(2.0 * self.clip, largest_ratio(self.epsilon, delta), self.epsilon)
            which = ""
        else:
            scale = scale_of(2.0 * math.sqrt(lexicon.dimensions) * self.clip, self.epsilon, self.epsilon)
            delta = upwards(
                gaussian_delta(self.epsilon, upwards(self.epsilon / math.sqrt(lexicon.dimensions)))
            )
            which = " The published scale names no δ; this is the one that it has."
        guarantee = guarantee_between_all(self.epsilon, delta, which)
        summary = NoiseSummary(variance=scale * scale, calibration=self.calibration)
        return self.add(lexicon, "gaussian", (scale,), guarantee, summary)


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """Return the δ of Gaussian noise at ε > 0, as the nearest float64, 2^-1074 at least; `ratio` is μ > 0."""
    return max(float(_delta(Decimal(epsilon), Decimal(ratio))), math.ulp(0.0))


def largest_ratio(epsilon: float, delta: float) -> float:
    """Return the largest μ whose δ at ε > 0 is at most `delta`, 0 < delta < 1; bisected, rounded down."""
    wide = Context(prec=DIGITS + abs(Decimal(epsilon).adjusted()) // 2, Emin=MIN_EMIN, Emax=MAX_EMAX)
    with localcontext(wide):
        exact_epsilon, exact_delta = Decimal(epsilon), Decimal(delta)
        low = high = max((2 * exact_epsilon).sqrt(), exact_delta)
        while _delta(exact_epsilon, low) > exact_delta:
            low, high = low / 2, low
        while _delta(exact_epsilon, high) <= exact_delta:
            low, high = high, high * 2
        while high > low * CLOSE:
            middle = (low + high) / 2
            if _delta(exact_epsilon, middle) <= exact_delta:
                low = middle
            else:
                high = middle
        return math.nextafter(float(low), 0.0)


def _delta(epsilon: Decimal, ratio: Decimal) -> Decimal:
    # Short shifts make nearly equal ratios of Mills, a large ε nearly equal halves of a: some 50 digits are left.
    digits = DIGITS + abs(ratio.adjusted()) + abs(epsilon.adjusted())
    with localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        a = ratio / 2 - epsilon / ratio
        return _density(a) * (_mills(-a) - _mills(ratio - a)) if a < FAR else Decimal(1)


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / (2 * _pi(getcontext().prec)).sqrt()


def _mills(x: Decimal) -> Decimal:
    """Return (1 - Φ(x)) / density(x)."""
    if x < 0:
        return 1 / _density(x) - _mills(-x)
    digits = getcontext().prec
    if x * x > 4 * digits:  # 1/(x + 1/(x + 2/(x + 3/...))) gains more than five digits a term
        tail = x
        for k in range(digits, 0, -1):
            tail = x + k / tail
        return 1 / tail
    with localcontext() as context:  # 1/2 - density·(x + x³/3 + x⁵/15 + ...), which cancels x²/4.6 digits
        context.prec = digits + int(x * x / 4) + 10
        term = total = x
        k = 1
        while term > total.scaleb(-context.prec):
            k += 2
            term = term * x * x / k
            total += term
        return 1 / (2 * _density(x)) - total


@cache
def _pi(digits: int) -> Decimal:
    """Return π by the arithmetic-geometric mean (Gauss and Legendre)."""
    with localcontext(Context(prec=digits + 10)):
        a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        while abs(a - b) > Decimal(10) ** -digits:
            a, b, before = (a + b) / 2, (a * b).sqrt(), a
            t -= p * (before - a) ** 2
            p *= 2
        return (a + b) ** 2 / (4 * t)
