"""TEM, the truncated exponential mechanism: SanText with the distance cut off at a radius γ.

Paper: Carvalho et al. 2021, "TEM: High Utility Metric Differential Privacy on Text", Algorithm 1.
Formula: published as a Gumbel-max over the words within γ of w, the ball L, and one bottom element with the score
-γ + 2·ln|W∖L|/ε that stands for all others and is drawn uniformly. In closed form that is
P(u|w) = exp(-ε·min(d(w,u), γ)/2) / Σ over all words u, d the Euclidean distance.
γ = (2/ε)·ln((1-β)(V-1)/β) puts at least 1-β of the probability inside the ball.
Guarantee: metric DP, ε·min(d, γ): |ln P(u|w) - ln P(u|w')| <= ε·min(d(w,w'), γ).
Deviations: the closed form is drawn, no Gumbel noise; γ is at most (2/ε)·ln 2^40, past the published value for every
V·(1-β)/β below 10^12; the law is rounded to integers, and by how much is stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import Metric
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, number
from dptext_spark.mechanisms.privacy_loss.exact_losses import calibrated_whole
from dptext_spark.mechanisms.privacy_loss.loss import Calibration, calibration_choice
from dptext_spark.mechanisms.remap import Remap, Remappable, released, remap_choice
from dptext_spark.mechanisms.samplers import ExponentialSampler


@dataclass(frozen=True)
class TEM(Remappable):
    """The parameters of TEM.

    Examples:
        >>> mechanism = dp.TEM(epsilon=14.0, beta=0.001)
        >>> mechanism.protects
        'metric DP: ε times the Euclidean distance, which counts as γ at most'
    """

    name: ClassVar[str] = "tem"
    paper: ClassVar[str] = "Carvalho et al. 2021, TEM: High Utility Metric Differential Privacy on Text"
    protects: ClassVar[str] = "metric DP: ε times the Euclidean distance, which counts as γ at most"
    sampler: ClassVar[type[Sampler]] = ExponentialSampler

    epsilon: float = number(1.0, "ε per unit of Euclidean distance.", least=LEAST_EPSILON)
    beta: float = number(
        0.001, "β, the probability that may lie outside the ball, where γ is not given.", above=0, most=0.5
    )
    gamma: float | None = number(
        None, "The radius γ; null: the published (2/ε)·ln((1-β)(V-1)/β).", above=0, null=True
    )
    calibration: Calibration = calibration_choice()
    remap: Remap = remap_choice()

    @property
    def similarity(self) -> Metric:
        """Minus the squared Euclidean distance."""
        return "euclidean"

    def radius(self, words: int, epsilon: float | None = None) -> float:
        """Return γ for a lexicon of V words; `epsilon` is the internal one, where it is another."""
        if self.gamma is not None:
            return float(self.gamma)
        return 2.0 / (epsilon or self.epsilon) * logarithm((1.0 - self.beta) * (words - 1) / self.beta)

    def compile(self, lexicon: Lexicon) -> Any:
        """Return the sampler; the lexicon's own metric is not used."""
        radius = partial(self.radius, len(lexicon))
        drawn = calibrated_whole(lexicon.vectors, self.epsilon, self.calibration, radius=radius)
        return released(self, drawn, lexicon)

    def by_distance(self, words: int) -> tuple[float, float] | None:
        """Return (ε, γ) of what is drawn, as published."""
        return (self.epsilon, self.radius(words)) if self.calibration == "published" else None
