"""Gaussian noise on every coordinate of a clipped word vector, with the least scale that (ε, δ) allows.

Paper: Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential Privacy", Theorem 8; for text, Huang et al. 2024.
Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent normal with standard deviation s. With μ = 2C/s the
mechanism is (ε, δ)-DP exactly for δ >= Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ); s is the least with that.
Guarantee: (ε, δ)-DP between any two words of the lexicon; the nearest word is post-processing.
Deviations: `calibration: published` takes the scale 2√d·C/ε of the authors' code, which comes without a δ; the guarantee then
names the δ that this scale has. The nearest word is that with the nearest *clipped* vector (`snap: published`: the nearest vector
as it is). Noise is float64 made from 64 random bits a number; the bound is for noise in real numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

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
from dptext_spark.mechanisms.gaussian_delta import gaussian_delta, largest_ratio
from dptext_spark.mechanisms.parameters import choice
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import NoiseSampler

Calibration = Literal["analytic", "published"]
DELTA = 1e-6


@dataclass(frozen=True)
class Gaussian(Additive):
    """The parameters of Gaussian noise."""

    name: ClassVar[str] = "gaussian"
    paper: ClassVar[str] = "Balle and Wang 2018, Improving the Gaussian Mechanism for Differential Privacy"
    protects: ClassVar[str] = "(ε, δ)-DP between any two words of the lexicon"

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
        figures = {"variance": scale * scale, "calibration": self.calibration}
        return self.add(lexicon, "gaussian", (scale,), guarantee, figures)
