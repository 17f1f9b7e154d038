"""Random projection ("PTE"): word vectors mapped to few dimensions by a public random matrix, calibrated noise there.

Paper: Feyisetan & Kasiviswanathan 2021, "Private Release of Text Embedding Vectors".
Formula: ψ(w) = G·φ(w), G in R^{m x d} with independent entries N(0, 1)/√m; Z = r·v in R^m, v uniform on the unit sphere,
r ~ Gamma(m, 1/ε); released is the word u with the smallest |ψ(w) + Z - ψ(u)|.
Guarantee: metric DP, ε·|ψ(w) - ψ(w')|, for G as it was drawn. G is public: it comes from a seed that stands in the artifact.
Deviations: projected vectors are rounded to float32, and the bound is for these; ties go to the lower id. Noise is float64 made
from 64 random bits a number; the bound is for noise in real numbers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptext_spark.arrays import F32, F64, U64
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.elementary import normal_quantile
from dptext_spark.mechanisms.matrices import transform
from dptext_spark.mechanisms.mvc import RadialNoise, metric_guarantee
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, integer, number
from dptext_spark.mechanisms.samplers.approximate import Search, search_choice
from dptext_spark.mechanisms.samplers.noise import NoiseSampler, NoiseSummary
from dptext_spark.randomness import encrypt
from dptext_spark.runtime.jit import compiled

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
        None, "The dimensions to project to, at most those of the lexicon; must be given.", least=1, most=MOST
    )
    seed: int = integer(0, "What the projection is made from; public.", least=0, most=2**63 - 1)
    search: Search = search_choice()

    def compile(self, lexicon: Lexicon) -> NoiseSampler:
        """Return the sampler; the lexicon's own metric is not used.

        Raises:
            SettingsError: m is larger than the lexicon's dimension, or a projected vector overflows float32.
        """
        assert self.m is not None
        if self.m > lexicon.dimensions:
            raise SettingsError(
                f"mechanism.m: {self.m} given, but the lexicon's vectors have {lexicon.dimensions} dimensions; "
                f"valid: an integer from 1 to {min(lexicon.dimensions, MOST)}."
            )
        projected = project(lexicon.vectors, self.m, self.seed)
        return self.add(projected, NoiseSummary(seed=self.seed, projected_from=lexicon.dimensions))

    def guarantee(self) -> Guarantee:
        """Return what holds for one draw."""
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
            "mechanism.m: a projected vector passes float32; valid: a lexicon of shorter vectors."
        )
    return out


def projection_columns(size: int, m: int, seed: int) -> F64:
    """Return the columns of the m x d matrix, float64[d, m]: N(0, 1)/√m from AES-256 in counter mode under sha256(seed)."""
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
