"""Truncated Laplace noise on every coordinate of a clipped word vector.

Paper: Huang et al. 2024, the truncated Laplace mechanism for text ("TrLaplace"); in one dimension Geng et al. 2020, "Tight
Analysis of Privacy and Utility Tradeoff in Approximate Differential Privacy".
Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent with density ∝ e^(-|z|/b) on [-A, A], b = 2√d·C/ε.
`calibration: verified`: A = b·ln(1 + S/(2δ)), S = d(e^(ε/d) - 1) for ε <= √d, else the largest of
e^√x - 1 + (d-1)(e^√((ε²/d - x)/(d-1)) - 1) over x in [0, ε²/d].
`calibration: published`: A = -b·ln(1 - 2ε/√d) with a claimed δ of 1/(4d); where 2ε >= √d, vectors are padded with zeros to
D = 4ε² + 100 dimensions, which take d's place in b, A and δ.
Guarantee: `verified`: (ε, δ)-DP between any two words of the lexicon. Two clipped vectors differ by at most 2C, thus by 2√d·C in
the sum of differences; where both noises can fall their densities differ by at most e^ε, and S bounds by δ the
probability to fall where the other's cannot, over all splits of the difference on the coordinates. In one dimension this is the
result of Geng et al. `published` does not hold for d > 1: the sentence gives the true probability.
Deviations: sampled by inverse distribution function (the authors: by rejection). The nearest word is that with the nearest
*clipped* vector (`snap: published`: the nearest vector as it is). D is rounded up to an integer; the padded coordinates never
shift and are not drawn. A and b are rounded up. Noise is float64 made from 64 random bits a number; the bound is for noise in
real numbers.

δ is how often the noise leaves the support of another word's noise; how far it must reach for a given δ follows.

Lengths are in units of the noise's scale: noise with density ∝ e^-|x| on [-a, a] for each of d coordinates. A coordinate shifted
by y leaves the other support with probability p(y) = (e^y - 1) / (2(e^a - 1)) up to y = a, and less than that beyond.
Inside both supports the densities differ by a factor of at most e to the sum of the shifts; outside by infinity. Where that sum
is at most ε, the exact δ of the noisy vectors is thus the probability of leaving: 1 - Π(1 - p(y_i)) <= Σp(y_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import HALF_SPACES
from dptext_spark.mechanisms.clipped_noise import (
    Additive,
    Snap,
    clip_number,
    delta_number,
    epsilon_number,
    guarantee_between_all,
    snap_choice,
    upwards,
)
from dptext_spark.mechanisms.elementary import expm1, exponential, log1p, logarithm
from dptext_spark.mechanisms.parameters import choice
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import FLOATING_POINT, NoiseSampler, NoiseSummary
from dptext_spark.runtime.jit import Int, compiled

Calibration = Literal["verified", "published"]
LARGEST_PUBLISHED = 1e7  # 4ε² + 100 in float64, to the unit
CLOSE = 1e-10
_LARGE = 700.0  # exponents that float64 holds


@dataclass(frozen=True)
class TruncatedLaplace(Additive):
    """The parameters of truncated Laplace noise.

    Examples:
        >>> mechanism = dp.TruncatedLaplace(epsilon=10.0, delta=1e-6)
        >>> mechanism.protects
        '(ε, δ)-DP between any two words of the lexicon; refuted for `calibration: published`'
    """

    name: ClassVar[str] = "truncated_laplace"
    paper: ClassVar[str] = "Huang et al. 2024, a truncated Laplace mechanism for text"
    certified_by: ClassVar[str | None] = (
        "of the noisy vector exactly: its δ over all pairs, the probability to leave the other word's support; of the released "
        f"word {HALF_SPACES}; either can refute the claim, `calibration: verified` too, and neither confirms it: `not refuted` "
        "is the best verdict"
    )
    protects: ClassVar[str] = (
        "(ε, δ)-DP between any two words of the lexicon; refuted for `calibration: published`"
    )

    epsilon: float = epsilon_number()
    delta: float | None = delta_number("1/(4d), d the dimensions of the lexicon")
    clip: float = clip_number()
    calibration: Calibration = choice(
        Calibration, "verified", "`verified`, or `published`, which does not keep what it claims."
    )
    snap: Snap = snap_choice()
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used."""
        size = lexicon.dimensions
        padded, delta = self._claimed(size)
        scale = self.published_scale(padded)
        if self.calibration == "verified":
            end = upwards(reach(self.epsilon / math.sqrt(size), size, delta))
        else:
            end = upwards(published_reach(self.epsilon, padded))
        # Two opposite words of length C whose difference is spread evenly over the coordinates: 2C/(√d·b) on each.
        exact = exit_probability(self.epsilon / math.sqrt(size * padded), end, size)
        bound = exit_bound(self.epsilon / math.sqrt(padded), size, end)
        parameters = (scale, upwards(end * scale))
        summary = NoiseSummary(
            calibration=self.calibration,
            dimensions_calibrated=padded,
            bound=parameters[1],
            variance=scale * scale * variance(end),
            laplace_variance=8.0 * size * (self.clip / self.epsilon) ** 2,  # plain Laplace noise at this ε
            delta=delta,
            exit_probability=exact,
            exit_bound=bound,
        )
        return self.add(
            lexicon, "truncated_laplace", parameters, self._guarantee(delta, exact, bound), summary
        )

    def _claimed(self, size: int) -> tuple[int, float]:
        """Return (the dimensions that b is made from, δ)."""
        if self.calibration == "verified":
            return size, 1.0 / (4.0 * size) if self.delta is None else self.delta
        if self.epsilon >= LARGEST_PUBLISHED:
            raise SettingsError(
                f"mechanism.epsilon: {self.epsilon!r} given, but the published calibration is undefined where 4ε² + 100 "
                f"dimensions cannot be counted; valid: less than {LARGEST_PUBLISHED:g}, or `calibration: verified`."
            )
        padded = published_dimensions(self.epsilon, size)
        return padded, 1.0 / (4.0 * padded)

    def _guarantee(self, delta: float, exact: float, bound: float) -> Guarantee:
        whole = guarantee_between_all(self.epsilon, delta)
        claimed = (
            f"Claimed to be (ε, δ)-differential privacy with ε = {self.epsilon:.16g} and δ = {delta:.6g}"
        )
        if self.calibration == "published" and exact > delta:
            sentence = (
                f"{claimed}; refuted for the noisy vector: noise of two words of opposite vectors falls where the other's cannot "
                f"with probability {exact:.4g}, so δ is at least that, and at most {bound:.4g} over all words. Only the word "
                f"next to the noisy vector is released, which shows less; how much less is not known. {FLOATING_POINT}"
            )
            return replace(whole, status="refuted", sentence=sentence)
        if self.calibration == "published" and bound > delta:
            return replace(whole, sentence=f"{claimed}; proved is only δ <= {bound:.4g}. {FLOATING_POINT}")
        return whole


@compiled
def _part(y: float, top: float) -> Any:
    """Return (e^y - 1)·e^-top, for 0 <= y <= top."""
    if y <= 0.5:
        return expm1(y) * exponential(-top)
    return exponential(y - top) - exponential(-top)


@compiled
def _split(s: float, radius: float, others: float) -> Any:
    """Return (the sum of e^y - 1, times e^-radius, for one coordinate s and the others t; t)."""
    t = math.sqrt(max(0.0, (radius - s) * (radius + s)) / others)
    return _part(s, radius) + others * _part(min(t, radius), radius), t


@compiled
def _slope(t: float, radius: float) -> Any:
    """Return e^(t - radius) / t."""
    return exponential(t - radius) / t if t > 0.0 else np.inf


@compiled
def log_worst_excess(radius: float, dimensions: Int) -> Any:
    """Return ln S, S the largest Σ(e^y_i - 1) over all y with Σy_i² <= radius², rounded up by about 1e-10.

    In z = y² a term e^√z - 1 is concave below z = 1 and convex above. So the even split is the worst for radius <= 1; otherwise
    one coordinate s is apart and the others, t, are equal. The largest over s is found by branch and bound: the derivative
    e^s - s·e^t/t has known bounds between two points; where its sign is certain an end is the largest, else the middle and
    the steepest slope bound the rest.

    Args:
        radius: > 0.
        dimensions: d >= 1.
    """
    even = radius / math.sqrt(dimensions * 1.0)
    if radius <= 1.0 or dimensions == 1:
        return even + logarithm(_part(even, even)) + logarithm(dimensions * 1.0) + CLOSE
    others = dimensions - 1.0
    best = 0.0
    stack = [(even, radius)]
    while len(stack) > 0:
        low, high = stack.pop()
        middle = low + (high - low) / 2.0
        at_low, t_low = _split(low, radius, others)
        at_middle, _ = _split(middle, radius, others)
        at_high, t_high = _split(high, radius, others)
        best = max(best, max(at_low, max(at_middle, at_high)))
        ends = (_slope(t_low, radius), _slope(t_high, radius))
        least = _slope(1.0, radius) if t_high < 1.0 < t_low else min(ends[0], ends[1])
        falls = exponential(low - radius) - high * max(ends[0], ends[1])
        rises = exponential(high - radius) - low * least
        steepest = max(-falls, rises)
        bound = at_middle + steepest * (high - low) / 2.0
        if falls < 0.0 < rises and bound > best * (1.0 + CLOSE) and low < middle < high:
            stack.append((low, middle))
            stack.append((middle, high))
    return radius + logarithm(best) + 2.0 * CLOSE


def reach(radius: float, dimensions: int, delta: float) -> float:
    """Return the a for which no shift of Euclidean length up to `radius` leaves the support with more than δ: ln(1 + S/(2δ))."""
    ratio = log_worst_excess(radius, dimensions) - logarithm(2.0 * delta)
    return float(log1p(exponential(ratio)) if ratio < _LARGE else ratio + CLOSE)


def exit_probability(shift: float, end: float, count: int) -> float:
    """Return the probability that one of `count` coordinates, each shifted by `shift` >= 0, leaves the support of reach `end`."""
    if shift >= 2.0 * end:
        return 1.0
    if shift <= end:
        one = expm1(shift) / (2.0 * expm1(end)) if end < _LARGE else exponential(shift - end) / 2.0
    else:
        one = 0.5 + expm1(end - shift) / (2.0 * expm1(-end))
    return -float(expm1(count * log1p(-one)))


def exit_bound(radius: float, dimensions: int, end: float) -> float:
    """Return an upper bound of the probability to leave, over all shifts of Euclidean length up to `radius`: Σp, at most 1."""
    log_excess = log_worst_excess(radius, dimensions)
    log_end = logarithm(expm1(end)) if end < _LARGE else end
    log_bound = log_excess - log_end - logarithm(2.0)
    return float(min(1.0, exponential(log_bound))) if log_bound < 0.0 else 1.0


def published_dimensions(epsilon: float, dimensions: int) -> int:
    """Return the D of the published calibration: d where 2ε < √d, else 4ε² + 100, with zeros padded."""
    square = 4.0 * epsilon * epsilon
    return dimensions if square < dimensions else math.ceil(square) + 100


def published_reach(epsilon: float, padded: int) -> float:
    """Return the a of the published calibration in D dimensions, 4ε² < D: -ln(1 - 2ε/√D)."""
    root = math.sqrt(padded)
    share = 2.0 * epsilon / root
    if share < 0.5:
        return -float(log1p(-share))
    # 1 - 2ε/√D without cancellation.
    return -float(logarithm((padded - 4.0 * epsilon * epsilon) / (root * (root + 2.0 * epsilon))))


def variance(end: float) -> Any:
    """Return the variance of the law with density ∝ e^-|x| on [-end, end]."""
    if end < 0.1:  # the series; the next terms are below end^4 / 100
        return end * end / 3.0 * (1.0 - end / 4.0)
    if end > 700.0:
        return 2.0
    return 2.0 - end * (end + 2.0) / expm1(end)
