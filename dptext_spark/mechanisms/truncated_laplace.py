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
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
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
from dptext_spark.mechanisms.samplers.noise import FLOATING_POINT, NoiseSampler
from dptext_spark.mechanisms.truncation import (
    exit_bound,
    exit_probability,
    published_dimensions,
    published_reach,
    reach,
    variance,
)

Calibration = Literal["verified", "published"]
LARGEST_PUBLISHED = 1e7  # 4ε² + 100 in float64, to the unit


@dataclass(frozen=True)
class TruncatedLaplace(Additive):
    """The parameters of truncated Laplace noise."""

    name: ClassVar[str] = "truncated_laplace"
    paper: ClassVar[str] = "Huang et al. 2024, a truncated Laplace mechanism for text"
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
        """Return the sampler; the lexicon's own metric is not used.

        Raises:
            SettingsError: the noise is out of the range of float64, or the published calibration is not defined.
        """
        size = lexicon.dimensions
        padded, delta = self._claimed(size)
        scale = scale_of(2.0 * math.sqrt(padded) * self.clip, self.epsilon, self.epsilon)
        if self.calibration == "verified":
            end = upwards(reach(self.epsilon / math.sqrt(size), size, delta))
        else:
            end = upwards(published_reach(self.epsilon, padded))
        # Two opposite words of length C whose difference is spread evenly over the coordinates: 2C/(√d·b) on each.
        exact = exit_probability(self.epsilon / math.sqrt(size * padded), end, size)
        bound = exit_bound(self.epsilon / math.sqrt(padded), size, end)
        figures = {
            "calibration": self.calibration,
            "dimensions_calibrated": padded,
            "bound": upwards(end * scale),
            "variance": scale * scale * variance(end),
            "laplace_variance": 8.0 * size * (self.clip / self.epsilon) ** 2,  # plain Laplace noise at this ε
            "delta": delta,
            "exit_probability": exact,
            "exit_bound": bound,
        }
        parameters = (scale, figures["bound"])
        return self.add(
            lexicon, "truncated_laplace", parameters, self._guarantee(delta, exact, bound), figures
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
