"""Mahalanobis noise: as calibrated noise, but longer in the directions in which the lexicon spreads.

Paper: Xu et al. 2020, "A Differentially Private Text Perturbation Method Using a Regularized Mahalanobis Metric".
Formula: Z = r·M^{1/2}·v, v uniform on the unit sphere of R^d, r ~ Gamma(d, 1/ε), M = λΣ + (1-λ)I, Σ the covariance of the
lexicon's vectors scaled to trace d; released is the word u with the smallest |φ(w) + Z - φ(u)|.
Guarantee: metric DP, ε·|φ(w) - φ(w')|_M with |x|_M = sqrt(x'·M^{-1}·x).
Deviations: ties go to the lower id; a lexicon of equal vectors has Σ = I. Eigenvalues of M below d·2^-52 of the largest count as
that (with λ = 1 a lexicon may not span its dimensions): that adds a little noise, so the bound holds in the norm of M, too.
M^{1/2} is computed in a fixed order and stored; the bound is for the stored matrix. Noise is float64 made from 64 random bits a
number; the bound is for noise in real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dptext_spark.arrays import F32, F64
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import Mechanism, Sampler
from dptext_spark.mechanisms.mvc import metric_guarantee, radial_noise
from dptext_spark.mechanisms.numerics.matrices import covariance, square_root
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, number
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import NoiseSampler, NoiseSummary
from dptext_spark.mechanisms.summary import Ends


def lam_number(of: str = "") -> Any:
    """Declare the parameter `lam`; `of` says of which noise."""
    return number(0.2, f"λ{of}, from 0 (calibrated noise) to 1 (the covariance alone).", most=1)


@dataclass(frozen=True)
class Mahalanobis(Mechanism):
    """The parameters of Mahalanobis noise.

    Examples:
        >>> mechanism = dp.Mahalanobis(epsilon=12.0, lam=0.2)
        >>> mechanism.protects
        'metric DP: ε times the regularized Mahalanobis distance between the vectors of two words'
    """

    name: ClassVar[str] = "mahalanobis"
    paper: ClassVar[str] = (
        "Xu et al. 2020, A Differentially Private Text Perturbation Method Using a Regularized Mahalanobis Metric"
    )
    protects: ClassVar[str] = (
        "metric DP: ε times the regularized Mahalanobis distance between the vectors of two words"
    )
    sampler: ClassVar[type[Sampler]] = NoiseSampler

    epsilon: float = number(
        10.0, "ε per unit of Mahalanobis distance between word vectors.", least=LEAST_EPSILON
    )
    lam: float = lam_number()
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used.

        Raises:
            SettingsError: ε is so small that float64 does not hold the noise.
        """
        vectors = lexicon.vectors
        root, values = noise_matrix(vectors, self.lam)
        summary = NoiseSummary(eigenvalues=values)
        noise = radial_noise(self.epsilon, lexicon.dimensions)
        return NoiseSampler.of(
            vectors, vectors, *noise, self.guarantee(), summary, matrix=root, search=self.search
        )

    def guarantee(self) -> Guarantee:
        """Return what holds for one draw."""
        return mahalanobis_guarantee(self.epsilon, self.lam)


def mahalanobis_guarantee(epsilon: float, lam: float) -> Guarantee:
    """Return metric DP in the norm of M."""
    distance = f"the Mahalanobis distance between their vectors (covariance of the lexicon, λ = {lam:.16g})"
    return metric_guarantee(epsilon, "mahalanobis", distance)


def noise_matrix(vectors: F32, lam: float) -> tuple[F64, Ends]:
    """Return M^{1/2}, float64[d, d], symmetric, and the ends of M's eigenvalues.

    Args:
        vectors: float32[V, d].
        lam: λ in [0, 1].
    """
    size = vectors.shape[1]
    spread = covariance(vectors)
    trace = float(np.cumsum(np.diagonal(spread))[-1])
    scaled = spread * (size / trace) if trace > 0 else np.eye(size)
    root, values = square_root(lam * scaled + (1.0 - lam) * np.eye(size))
    return root, Ends(float(values.min()), float(values.max()))
