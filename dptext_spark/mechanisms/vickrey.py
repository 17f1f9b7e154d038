"""Vickrey: calibrated or Mahalanobis noise, but the second nearest word may be released instead of the nearest.

Paper: Xu et al. 2021, "On a Utilitarian Approach to Privacy Preserving Text Generation".
Formula: with u1, u2 the words nearest and second nearest to the noisy vector, at distances d1 <= d2, u1 is released with
probability (1-t)·d2 / (t·d1 + (1-t)·d2), else u2; where d1 = d2 = 0, u1 with probability 1-t. t = 0 always releases u1.
Guarantee: that of the noise: the rule looks at the noisy vector alone, so it is post-processing. (A rule that left out the
*original* word would use the input again and have no bound.)
Deviations: where t = 1 and d1 = 0 the second word is released (the limit); the probability is rounded to 64 bits; and those of
the noise.

Words with equal vectors are one place, which has neighbours and a nearest other word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.mvc import MVC, RadialNoise, lam_number, mahalanobis_guarantee
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, number
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import NoiseSampler

Noise = Literal["mvc", "mahalanobis"]


@dataclass(frozen=True)
class Vickrey(RadialNoise):
    """The parameters of Vickrey.

    Examples:
        >>> mechanism = dp.Vickrey(epsilon=12.0, t=0.75)
        >>> mechanism.protects
        'metric DP: ε times the distance between the vectors of two words (Euclidean or Mahalanobis)'
    """

    name: ClassVar[str] = "vickrey"
    paper: ClassVar[str] = "Xu et al. 2021, On a Utilitarian Approach to Privacy Preserving Text Generation"
    protects: ClassVar[str] = (
        "metric DP: ε times the distance between the vectors of two words (Euclidean or Mahalanobis)"
    )

    epsilon: float = number(
        10.0,
        "ε per unit of distance between word vectors: Euclidean, or Mahalanobis by `noise`.",
        least=LEAST_EPSILON,
    )
    t: float = number(0.5, "How much the second word is favoured: 0 never releases it, 1 always.", most=1)
    noise: Noise = choice(Noise, "mvc", "The noise on the vector, as of the mechanism of that name.")
    lam: float = lam_number(" of the Mahalanobis noise")
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used."""
        lam = self.lam if self.noise == "mahalanobis" else None
        return self.add(lexicon.vectors, lam=lam, second=float(self.t))

    def guarantee(self) -> Guarantee:
        """Return what holds for one draw: what holds for the noise."""
        if self.noise == "mahalanobis":
            return mahalanobis_guarantee(self.epsilon, self.lam)
        return MVC(self.epsilon).guarantee()
