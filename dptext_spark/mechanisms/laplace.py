"""Laplace noise on every coordinate of a clipped word vector.

Paper: Huang et al. 2024 (the truncated Laplace mechanism for text), where it is the baseline; Dwork et al. 2006, "Calibrating
Noise to Sensitivity in Private Data Analysis".
Formula: released is the word nearest to clip(φ(w)) + Z, Z_i independent with density ∝ exp(-|z|/b), b = 2√d·C/ε.
Guarantee: ε-DP between any two words of the lexicon: two clipped vectors differ by at most 2C in Euclidean distance, thus by
2√d·C in the sum of absolute differences, which shifts the density by a factor of at most e^ε; the nearest word is
post-processing.
Deviations: the nearest word is that with the nearest *clipped* vector (`snap: published`: the nearest vector as it is), so that
without noise a word comes out itself. Noise is float64 made from 64 random bits a number; the bound is for noise in real
numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.clipped_noise import (
    Additive,
    Snap,
    clip_number,
    epsilon_number,
    guarantee_between_all,
    scale_of,
    snap_choice,
)
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import NoiseSampler, NoiseSummary


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
        """Return the sampler; the lexicon's own metric is not used.

        Raises:
            SettingsError: the scale of the noise is out of the range of float64.
        """
        scale = scale_of(2.0 * math.sqrt(lexicon.dimensions) * self.clip, self.epsilon, self.epsilon)
        summary = NoiseSummary(variance=2.0 * scale * scale)
        return self.add(lexicon, "laplace", (scale,), guarantee_between_all(self.epsilon), summary)
