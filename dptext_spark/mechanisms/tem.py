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

import sys
from dataclasses import dataclass
from typing import ClassVar, Literal

from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import Mechanism, check_epsilon, is_number
from dptext_spark.mechanisms.calibration import CALIBRATIONS
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.mechanisms.kernels import WholeSampler
from dptext_spark.mechanisms.losses.distances import calibrated_whole


@dataclass(frozen=True)
class Tem(Mechanism):
    """The parameters of TEM.

    Attributes:
        epsilon: ε > 0 per unit of Euclidean distance.
        beta: β, above 0 and at most 0.5: the probability that may lie outside the ball, where γ is not given.
        gamma: the radius γ > 0; null (default) for the published (2/ε)·ln((1-β)(V-1)/β).
        calibration: `published` (default), or `exact`: the largest internal ε whose certified loss is within ε.
    """

    name: ClassVar[str] = "tem"
    paper: ClassVar[str] = "Carvalho et al. 2021, TEM: High Utility Metric Differential Privacy on Text"
    protects: ClassVar[str] = "metric DP: ε times the Euclidean distance, which counts as γ at most"
    sampler: ClassVar[type] = WholeSampler

    epsilon: float = 1.0
    beta: float = 0.001
    gamma: float | None = None
    calibration: Literal["published", "exact"] = "published"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_epsilon("mechanism.epsilon", self.epsilon, zero_allowed=False)
        require_choice("mechanism.calibration", self.calibration, CALIBRATIONS)
        if not is_number(self.beta) or not 0 < self.beta <= 0.5:
            raise SettingsError(
                f"mechanism.beta: {self.beta!r} given; valid: a number above 0 and at most 0.5."
            )
        gamma = self.gamma
        if gamma is not None and (not is_number(gamma) or not 0 < gamma <= sys.float_info.max):
            raise SettingsError(f"mechanism.gamma: {gamma!r} given; valid: null, or a finite number above 0.")

    def radius(self, words: int, epsilon: float | None = None) -> float:
        """Return γ for a lexicon of V words; `epsilon` is the internal one, where it is another."""
        if self.gamma is not None:
            return float(self.gamma)
        return 2.0 / (epsilon or self.epsilon) * logarithm((1.0 - self.beta) * (words - 1) / self.beta)

    def compile(self, lexicon: Lexicon) -> WholeSampler:
        """Return the sampler.

        Args:
            lexicon: V words; its own metric is not used.
        """
        return calibrated_whole(
            lexicon.vectors,
            self.epsilon,
            self.calibration,
            radius=lambda epsilon: self.radius(len(lexicon), epsilon),
        )
