"""Common parts of mechanisms with independent noise on every coordinate: parameters, clipped vectors, words to snap to.

Vectors are clipped to length C, x·min(1, C/|x|). So two words are at most 2C apart in Euclidean distance, and 2√d·C in the sum of
absolute differences. Noise is calibrated by that sum. Clipped numbers are rounded to float32 towards 0 and scales upwards: the
bounds hold for the numbers that are used.

Laplace noise on every coordinate of a clipped word vector.

Paper: Huang et al. 2024 (the truncated Laplace mechanism for text) has it as the baseline. Dwork et al. 2006, "Calibrating Noise
to Sensitivity in Private Data Analysis".
Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent with density ∝ exp(-|z|/b), b = 2√d·C/ε.
Guarantee: ε-DP between any two words of the lexicon. Two clipped vectors differ by at most 2C in Euclidean distance, thus by
2√d·C in the sum of absolute differences. This shifts the density by a factor of at most e^ε. The nearest word is post-processing.
Deviations: the nearest word is that with the nearest *clipped* vector, so that without noise a word comes out itself. With `snap:
published` it is that with the nearest vector as it is. Noise is float64 made from 64 random bits a number; the bound is for noise
in real numbers.

Gaussian noise on every coordinate of a clipped word vector, with the least scale that (ε, δ) allows.

Paper: Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential Privacy", Theorem 8; for text,
Huang et al. 2024. Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent normal with
standard deviation s. With μ = 2C/s the mechanism is (ε, δ)-DP exactly for δ >= Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 -
ε/μ). The scale s is the least with that. Guarantee: (ε, δ)-DP between any two words of the lexicon; the
nearest word is post-processing. Deviations: `calibration: published` takes the scale 2√d·C/ε of the authors'
code, without a δ. The guarantee then names the δ of this scale. The nearest word is that with the nearest
*clipped* vector (`snap: published`: the nearest vector as it is). Noise is float64 made from 64 random bits a
number; the bound is for noise in real numbers.

The exact δ is computed in decimal arithmetic with as many digits as it takes: the same on every processor.

With μ = sensitivity / standard deviation, δ = Φ(a) - e^ε·Φ(a - μ), a = μ/2 - ε/μ (Balle and Wang 2018, Theorem 8). The density at
a is e^ε times that at a - μ. So δ is the density at a times M(-a) - M(μ - a), where M(x) = (1 - Φ(x)) / density(x) is Mills'
ratio. No exponential of ε is left that could overflow.

Truncated Laplace noise on every coordinate of a clipped word vector.

Paper: Huang et al. 2024, the truncated Laplace mechanism for text ("TrLaplace"). In one dimension: Geng et al. 2020, "Tight
Analysis of Privacy and Utility Tradeoff in Approximate Differential Privacy".
Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent with density ∝ e^(-|z|/b) on [-A, A], b = 2√d·C/ε.
`calibration: verified`: A = b·ln(1 + S/(2δ)). S = d(e^(ε/d) - 1) for ε <= √d. Else S is the largest of
e^√x - 1 + (d-1)(e^√((ε²/d - x)/(d-1)) - 1) over x in [0, ε²/d].
`calibration: published`: A = -b·ln(1 - 2ε/√d) with a claimed δ of 1/(4d). If 2ε >= √d, vectors are padded with zeros to
D = 4ε² + 100 dimensions. D then replaces d in b, A and δ.
Guarantee: `verified`: (ε, δ)-DP between any two words of the lexicon. Two clipped vectors differ by at most 2C, thus by 2√d·C in
the sum of differences. Where both noises can fall, their densities differ by at most e^ε. S bounds by δ the probability to fall
where the other's cannot, over all splits of the difference on the coordinates. In one dimension this is the result of Geng et al.
`published` does not hold for d > 1: the sentence gives the true probability.
Deviations: sampled by inverse distribution function (the authors: by rejection). The nearest word is that with the nearest
*clipped* vector (`snap: published`: the nearest vector as it is). D is rounded up to an integer; the padded coordinates never
shift and are not drawn. A and b are rounded up. Noise is float64 made from 64 random bits a number; the bound is for noise in
real numbers.

The δ is how often the noise leaves the support of another word's noise. The reach of the noise for a given δ follows.

Lengths are in units of the noise's scale: noise with density ∝ e^-|x| on [-a, a] for each of d coordinates. A
coordinate shifted by y leaves the other support with probability p(y) = (e^y - 1) / (2(e^a - 1)) up to y = a.
Beyond a it is less than that. Inside both supports the densities differ by a factor of at most e to the sum
of the shifts; outside by infinity. If that sum is at most ε, the exact δ of the noisy vectors is the
probability of leaving: 1 - Π(1 - p(y_i)) <= Σp(y_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from dptext_spark.arrays import F32
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import HALF_SPACES, REFUTES, Mechanism, Sampler
from dptext_spark.mechanisms.elementary import expm1, exponential, log1p, logarithm
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, number
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import FLOATING_POINT, NoiseSampler, NoiseSummary
from dptext_spark.runtime.jit import Int, compiled

Snap = Literal["clipped", "published"]
SHORTEST, LONGEST = 1e-100, 1e100  # scales of noise that float64 holds with room to spare
_ROOM = 1.0 + 2.0**-40  # above the rounding of a length in up to 4,000 dimensions


class Additive(Mechanism):
    """A mechanism that adds noise to every coordinate of a clipped vector."""

    sampler: ClassVar[type[Sampler]] = NoiseSampler

    clip: float
    snap: Snap
    search: Search

    def __post_init__(self) -> None:
        """Check every parameter, and that δ is given only where it is asked for."""
        super().__post_init__()
        delta, calibration = getattr(self, "delta", None), getattr(self, "calibration", None)
        if delta is not None and calibration == "published":
            raise SettingsError(
                f"mechanism.delta: {delta!r} is not valid with `calibration: published`. Remove it."
            )

    def published_scale(self, dimensions: int) -> float:
        """Return b = 2√d·C/ε."""
        return scale_of(2.0 * math.sqrt(dimensions) * self.clip, self.epsilon, self.epsilon)

    def add(
        self,
        lexicon: Lexicon,
        noise: str,
        parameters: tuple[float, ...],
        guarantee: Guarantee,
        summary: NoiseSummary,
    ) -> NoiseSampler:
        """Return the sampler that adds noise to clipped vectors."""
        vectors = np.ascontiguousarray(lexicon.vectors)
        centers = clipped(vectors, self.clip)
        targets = centers if self.snap == "clipped" else vectors
        share = float(_share_clipped(vectors, float(self.clip)))
        summary = replace(
            summary, clip=float(self.clip), clipped_share=share, snap=self.snap, scale=parameters[0]
        )
        return NoiseSampler.of(centers, targets, noise, parameters, guarantee, summary, search=self.search)


def epsilon_number() -> Any:
    """Declare the parameter `epsilon`."""
    return number(10.0, "ε between any two words.", least=LEAST_EPSILON)


def delta_number(default: str) -> Any:
    """Declare the parameter `delta`; `default` explains null."""
    meaning = f"δ; null: {default}. Not with `calibration: published`, whose δ is fixed."
    return number(None, meaning, above=0, below=1, null=True)


def clip_number() -> Any:
    """Declare the parameter `clip`."""
    return number(1.0, "C, the greatest length of a vector; longer ones are shortened to it.", above=0)


def snap_choice() -> Any:
    """Declare the parameter `snap`."""
    meaning = "Vectors to compare with the noisy one. `clipped`: shortened to C. `published`: unchanged."
    return choice(Snap, "clipped", meaning)


def scale_of(sensitivity: float, divisor: float, epsilon: float) -> float:
    """Return sensitivity / divisor, a little above it: more than the rounding of a few operations can have lost.

    Raises:
        SettingsError: noise of this scale is too long or too short for float64; `epsilon` is what the message names.
    """
    scale = upwards(sensitivity / divisor)
    if not SHORTEST <= scale <= LONGEST:
        raise SettingsError(
            f"mechanism.epsilon: {epsilon!r} is not valid, because the scale of the noise is {scale:.3g}. It grows with "
            f"clip and falls with epsilon. Choose values with a scale from {SHORTEST:g} to {LONGEST:g}."
        )
    return scale


def upwards(x: float) -> float:
    """Return a number a little above x >= 0, at most by a factor of 1 + 2^-49 for a normal x."""
    return math.nextafter(x * (1.0 + 2.0**-50), math.inf)


def guarantee_between_all(epsilon: float, delta: float | None = None, more: str = "") -> Guarantee:
    """Return ε-DP, or (ε, δ)-DP where δ is given, between all words; `more` is a sentence to add."""
    stated = f"ε = {epsilon:.16g}" if delta is None else f"ε = {epsilon:.16g} and δ = {delta:.6g}"
    kind = "ε" if delta is None else "(ε, δ)"
    sentence = (
        f"One drawn word is {kind}-differentially private with {stated} against every other word of the lexicon.{more} "
        f"{FLOATING_POINT}"
    )
    if delta is None:
        return Guarantee("epsilon_dp", float(epsilon), status="claimed", sentence=sentence)
    return Guarantee("approx_dp", float(epsilon), delta=delta, status="claimed", sentence=sentence)


def clipped(vectors: F32, clip: float) -> F32:
    """Return float32[V, d]: each row x·min(1, C/|x|); no row is longer than C, as a real number."""
    out = np.empty_like(vectors)
    _clip(vectors, float(clip), out)
    return out


@compiled
def _length(vectors: Any, i: int) -> Any:
    total = 0.0
    for j in range(vectors.shape[1]):
        total += np.float64(vectors[i, j]) * np.float64(vectors[i, j])
    return math.sqrt(total)


@compiled
def _clip(vectors: Any, clip: float, out: Any) -> None:
    for i in range(vectors.shape[0]):
        length = _length(vectors, i) * _ROOM
        if length <= clip:
            out[i] = vectors[i]
            continue
        factor = clip / length
        for j in range(vectors.shape[1]):
            exact = np.float64(vectors[i, j]) * factor
            rounded = np.float32(exact)
            if abs(np.float64(rounded)) > abs(exact):
                rounded = np.nextafter(rounded, np.float32(0.0))
            out[i, j] = rounded


@compiled
def _share_clipped(vectors: Any, clip: float) -> float:
    count = 0
    for i in range(vectors.shape[0]):
        if _length(vectors, i) > clip:
            count += 1
    return float(count / vectors.shape[0])


@dataclass(frozen=True)
class Laplace(Additive):
    """The parameters of Laplace noise.

    Examples:
        >>> mechanism = dp.Laplace(epsilon=100.0, clip=1.0)
        >>> mechanism.protects
        'ε-DP between any two words of the lexicon'
    """

    name: ClassVar[str] = "laplace"
    paper: ClassVar[str] = "Dwork et al. 2006, Calibrating Noise to Sensitivity in Private Data Analysis"
    protects: ClassVar[str] = "ε-DP between any two words of the lexicon"

    epsilon: float = epsilon_number()
    clip: float = clip_number()
    snap: Snap = snap_choice()
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used."""
        scale = self.published_scale(lexicon.dimensions)
        summary = NoiseSummary(variance=2.0 * scale * scale)
        return self.add(lexicon, "laplace", (scale,), guarantee_between_all(self.epsilon), summary)


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
        """Return the sampler; the lexicon's own metric is not used."""
        if self.calibration == "analytic":
            delta = DELTA if self.delta is None else self.delta
            scale = scale_of(2.0 * self.clip, largest_ratio(self.epsilon, delta), self.epsilon)
            which = ""
        else:
            size = lexicon.dimensions
            scale = self.published_scale(size)
            delta = upwards(gaussian_delta(self.epsilon, upwards(self.epsilon / math.sqrt(size))))
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


TruncatedCalibration = Literal["verified", "published"]
LARGEST_PUBLISHED = 1e7  # 4ε² + 100 in float64, to the unit
ROUNDING = 1e-10
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
    calibration: TruncatedCalibration = choice(
        TruncatedCalibration, "verified", "`verified`, or `published`, whose claim does not hold."
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
                f"mechanism.epsilon: {self.epsilon!r} is not valid: the published calibration is undefined, because 4ε² "
                f"+ 100 dimensions cannot be counted. Choose less than {LARGEST_PUBLISHED:g}, or `calibration: verified`."
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
                f"{claimed}. It is refuted for the noisy vector: noise of two words with opposite vectors falls where the "
                f"other's cannot with probability {exact:.4g}. So δ is at least that, and at most {bound:.4g} over all words. "
                "Only the word next to the noisy vector is released. It shows less, and how much less is not known. "
                f"{FLOATING_POINT}"
            )
            return replace(whole, status="refuted", sentence=sentence)
        if self.calibration == "published" and bound > delta:
            return replace(whole, sentence=f"{claimed}. Only δ <= {bound:.4g} is proved. {FLOATING_POINT}")
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
    one coordinate s is apart and the others, t, are equal. Branch and bound finds the largest over s. The derivative
    e^s - s·e^t/t has known bounds between two points. If its sign is certain, an end is the largest; else the middle and the
    steepest slope bound the rest.

    Args:
        radius: > 0.
        dimensions: d >= 1.
    """
    even = radius / math.sqrt(dimensions * 1.0)
    if radius <= 1.0 or dimensions == 1:
        return even + logarithm(_part(even, even)) + logarithm(dimensions * 1.0) + ROUNDING
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
        if falls < 0.0 < rises and bound > best * (1.0 + ROUNDING) and low < middle < high:
            stack.append((low, middle))
            stack.append((middle, high))
    return radius + logarithm(best) + 2.0 * ROUNDING


def reach(radius: float, dimensions: int, delta: float) -> float:
    """Compute a = ln(1 + S/(2δ)): no shift of Euclidean length up to `radius` leaves the support with more than δ."""
    ratio = log_worst_excess(radius, dimensions) - logarithm(2.0 * delta)
    return float(log1p(exponential(ratio)) if ratio < _LARGE else ratio + ROUNDING)


def exit_probability(shift: float, end: float, count: int) -> float:
    """Return the probability that one of `count` coordinates, each shifted by `shift` >= 0, leaves the support of reach `end`."""
    if shift >= 2.0 * end:
        return 1.0
    if shift <= end:
        single = expm1(shift) / (2.0 * expm1(end)) if end < _LARGE else exponential(shift - end) / 2.0
    else:
        single = 0.5 + expm1(end - shift) / (2.0 * expm1(-end))
    return -float(expm1(count * log1p(-single)))


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
