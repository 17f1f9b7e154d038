"""Calibrated multivariate noise ("MVC", "CMP"): noise on the word's vector, then the word nearest to the sum.

Paper: Feyisetan et al. 2020, "Privacy- and Utility-Preserving Textual Analysis via Calibrated Multivariate Perturbations".
Formula: Z = r·v, v uniform on the unit sphere of R^d, r ~ Gamma(d, 1/ε). So the density of Z is ∝ exp(-ε|Z|). Released is the
word u with the smallest |φ(w) + Z - φ(u)|.
Guarantee: metric DP, ε·|φ(w) - φ(w')|. The density shifts by at most that (triangle inequality). The nearest word is
post-processing.
Deviations: ties go to the lower id. Noise is float64 made from 64 random bits a number; the bound is for noise in real numbers.

In many dimensions the output is the word itself or an unrelated word, rarely a near synonym. See Asghar et al. 2024,
"d_χ-privacy and the curse of dimensionality".

Mahalanobis noise: as calibrated noise, but longer in the directions in which the lexicon spreads.

Paper: Xu et al. 2020, "A Differentially Private Text Perturbation Method Using a Regularized Mahalanobis Metric".
Formula: Z = r·M^{1/2}·v, v uniform on the unit sphere of R^d, r ~ Gamma(d, 1/ε), M = λΣ + (1-λ)I. Here Σ is the covariance of the
lexicon's vectors, scaled to trace d. Released is the word u with the smallest |φ(w) + Z - φ(u)|.
Guarantee: metric DP, ε·|φ(w) - φ(w')|_M with |x|_M = sqrt(x'·M^{-1}·x).
Deviations: ties go to the lower id; a lexicon of equal vectors has Σ = I. Eigenvalues of M below d·2^-52 of the largest count as
that value: with λ = 1 a lexicon may not span its dimensions. This adds a little noise, so the bound holds in the norm of M, too.
M^{1/2} is computed in a fixed order and stored; the bound is for the stored matrix. Noise is float64 made from 64 random bits a
number; the bound is for noise in real numbers.

Vickrey: calibrated or Mahalanobis noise, but the second nearest word may be released instead of the nearest.

Paper: Xu et al. 2021, "On a Utilitarian Approach to Privacy Preserving Text Generation". Formula: let u1, u2 be the words
nearest and second nearest to the noisy vector, at distances d1 <= d2. Then u1 is released with probability (1-t)·d2 / (t·d1 +
(1-t)·d2), else u2. If d1 = d2 = 0, u1 has probability 1-t. With t = 0, u1 is always released. Guarantee: that of the noise. The
rule looks at the noisy vector alone, so it is post-processing. A rule that left out the *original* word would use the input
again and have no bound. Deviations: if t = 1 and d1 = 0, the second word is released (the limit). The probability is rounded to
64 bits. Those of the noise apply, too.

Words with equal vectors are one place. It has neighbours and a nearest other word.

Random projection ("PTE"): word vectors mapped to few dimensions by a public random matrix, calibrated noise there.

Paper: Feyisetan & Kasiviswanathan 2021, "Private Release of Text Embedding Vectors".
Formula: ψ(w) = G·φ(w), G in R^{m x d} with independent entries N(0, 1)/√m. Z = r·v in R^m, v uniform on the unit sphere,
r ~ Gamma(m, 1/ε). Released is the word u with the smallest |ψ(w) + Z - ψ(u)|.
Guarantee: metric DP, ε·|ψ(w) - ψ(w')|, for G as it was drawn. G is public: its seed is stored in the artifact.
Deviations: projected vectors are rounded to float32, and the bound is for these; ties go to the lower id. Noise is float64 made
from 64 random bits a number; the bound is for noise in real numbers.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dptext_spark.arrays import F32, F64, U64
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import Ends, Mechanism, Sampler
from dptext_spark.mechanisms.elementary import log_factorial, normal_quantile
from dptext_spark.mechanisms.matrices import covariance, square_root, transform
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, integer, number
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import FLOATING_POINT, NoiseSampler, NoiseSummary
from dptext_spark.randomness import encrypt
from dptext_spark.runtime.jit import compiled


class RadialNoise(Mechanism):
    """A mechanism that adds noise to a vector, with density ∝ exp(-ε|z|) or with the norm of M in place of |z|."""

    sampler: ClassVar[type[Sampler]] = NoiseSampler

    search: Search

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return the guarantee of a draw."""

    def add(
        self,
        vectors: F32,
        summary: NoiseSummary | None = None,
        *,
        lam: float | None = None,
        second: float | None = None,
    ) -> NoiseSampler:
        """Return the sampler that adds noise to vectors, float32[V, d], and snaps to the nearest of them.

        Args:
            vectors: float32[V, d].
            summary: public figures; those of the noise are added.
            lam: λ of M; None for the Euclidean norm.
            second: t of Vickrey, in [0, 1]; None: the nearest word comes out.

        Raises:
            SettingsError: ε is so small that float64 does not hold the noise.
        """
        summary, root = summary or NoiseSummary(), None
        if lam is not None:
            root, values = noise_matrix(vectors, lam)
            summary = replace(summary, eigenvalues=values)
        return NoiseSampler.of(
            vectors,
            vectors,
            *radial_noise(self.epsilon, vectors.shape[1]),
            self.guarantee(),
            summary,
            matrix=root,
            second=second,
            search=self.search,
        )


@dataclass(frozen=True)
class MVC(RadialNoise):
    """The parameters of calibrated multivariate noise.

    Examples:
        >>> mechanism = dp.MVC(epsilon=12.0)
        >>> mechanism.protects
        'metric DP: ε times the Euclidean distance between the vectors of two words'
    """

    name: ClassVar[str] = "mvc"
    paper: ClassVar[str] = (
        "Feyisetan et al. 2020, Privacy- and Utility-Preserving Textual Analysis via Calibrated Multivariate Perturbations"
    )
    protects: ClassVar[str] = "metric DP: ε times the Euclidean distance between the vectors of two words"

    epsilon: float = number(
        10.0,
        "ε per unit of Euclidean distance between word vectors; the noise has mean length d/ε.",
        least=LEAST_EPSILON,
    )
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used."""
        return self.add(lexicon.vectors)

    def guarantee(self) -> Guarantee:
        """Return the guarantee of a draw."""
        return metric_guarantee(self.epsilon, "euclidean", "the Euclidean distance between their vectors")


def radial_noise(epsilon: float, dimensions: int) -> tuple[str, tuple[float, float]]:
    """Return the noise with density ∝ exp(-ε|z|) in R^d as the kernel takes it."""
    return "radial", (float(epsilon), float(log_factorial(dimensions - 1)))


def metric_guarantee(epsilon: float, metric: str, distance: str) -> Guarantee:
    """Return metric DP of noise with density ∝ exp(-ε·distance), for a drawn word."""
    sentence = (
        f"One drawn word is distinguished from any other with a loss of at most {epsilon:.16g} times {distance}. That is "
        f"little for a small distance, and promises nothing for a large one. {FLOATING_POINT}"
    )
    return Guarantee("metric_dp", float(epsilon), metric=metric, status="claimed", sentence=sentence)


def lam_number(of: str = "") -> Any:
    """Declare the parameter `lam`; `of` says of which noise."""
    return number(0.2, f"λ{of}, from 0 (calibrated noise) to 1 (the covariance alone).", most=1)


@dataclass(frozen=True)
class Mahalanobis(RadialNoise):
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

    epsilon: float = number(
        10.0, "ε per unit of Mahalanobis distance between word vectors.", least=LEAST_EPSILON
    )
    lam: float = lam_number()
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used."""
        return self.add(lexicon.vectors, lam=self.lam)

    def guarantee(self) -> Guarantee:
        """Return the guarantee of a draw."""
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
    t: float = number(0.5, "Weight of the second-nearest word: 0 never releases it, 1 always does.", most=1)
    noise: Noise = choice(Noise, "mvc", "Noise on the vector, from the mechanism of that name.")
    lam: float = lam_number(" of the Mahalanobis noise")
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used."""
        lam = self.lam if self.noise == "mahalanobis" else None
        return self.add(lexicon.vectors, lam=lam, second=float(self.t))

    def guarantee(self) -> Guarantee:
        """Return the guarantee of a draw: that of the noise."""
        if self.noise == "mahalanobis":
            return mahalanobis_guarantee(self.epsilon, self.lam)
        return MVC(self.epsilon).guarantee()


MOST = 4096
ROWS = 4096  # words projected at once


@dataclass(frozen=True)
class Projection(RadialNoise):
    """The parameters of the random projection.

    Examples:
        >>> mechanism = dp.Projection(epsilon=12.0, m=50)
        >>> mechanism.protects
        'metric DP: ε times the Euclidean distance between the projected vectors of two words'
    """

    name: ClassVar[str] = "projection"
    paper: ClassVar[str] = "Feyisetan & Kasiviswanathan 2021, Private Release of Text Embedding Vectors"
    protects: ClassVar[str] = (
        "metric DP: ε times the Euclidean distance between the projected vectors of two words"
    )

    epsilon: float = number(
        10.0,
        "ε per unit of Euclidean distance between projected vectors; the noise has mean length m/ε.",
        least=LEAST_EPSILON,
    )
    m: int | None = integer(
        None, "Dimensions of the projection, at most those of the lexicon; required.", least=1, most=MOST
    )
    seed: int = integer(0, "Seed of the projection; public.", least=0, most=2**63 - 1)
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used.

        Raises:
            SettingsError: m is larger than the lexicon's dimension, or a projected vector overflows float32.
        """
        assert self.m is not None
        if self.m > lexicon.dimensions:
            raise SettingsError(
                f"mechanism.m: {self.m} is not valid for vectors of {lexicon.dimensions} dimensions. Choose an integer from "
                f"1 to {min(lexicon.dimensions, MOST)}."
            )
        projected = project(lexicon.vectors, self.m, self.seed)
        return self.add(projected, NoiseSummary(seed=self.seed, projected_from=lexicon.dimensions))

    def guarantee(self) -> Guarantee:
        """Return the guarantee of a draw."""
        distance = (
            f"the Euclidean distance between their vectors projected to {self.m} dimensions (public projection, seed "
            f"{self.seed})"
        )
        return metric_guarantee(self.epsilon, "projected euclidean", distance)


def project(vectors: F32, m: int, seed: int) -> F32:
    """Map float32[V, d] to float32[V, m] by the matrix of `seed`, in a fixed order of additions.

    Raises:
        SettingsError: a projected vector overflows float32.
    """
    columns = projection_columns(vectors.shape[1], m, seed)
    out = np.empty((len(vectors), m), np.float32)
    for start in range(0, len(vectors), ROWS):
        rows = np.ascontiguousarray(vectors[start : start + ROWS])
        wide = np.empty((len(rows), m))
        transform(columns, rows, wide)
        with np.errstate(over="ignore"):
            out[start : start + ROWS] = wide
    if not np.isfinite(out).all():
        raise SettingsError(
            "mechanism.m: a projected vector exceeds float32. Choose a lexicon with shorter vectors."
        )
    return out


def projection_columns(size: int, m: int, seed: int) -> F64:
    """Compute the columns of the m x d matrix, float64[d, m]: N(0, 1)/√m from AES-256 in counter mode under sha256(seed)."""
    blocks = np.zeros(((size * m + 1) // 2, 2), np.uint64)
    blocks[:, 0] = np.arange(len(blocks))
    bits = encrypt(hashlib.sha256(b"random projection %d" % seed).digest(), blocks).reshape(-1)[: size * m]
    return np.asarray(_normals(bits) / np.sqrt(np.float64(m)), np.float64).reshape(size, m)


@compiled
def _normals(bits: U64) -> F64:
    out = np.empty(bits.shape[0])
    for i in range(bits.shape[0]):
        out[i] = normal_quantile(bits[i])
    return out
