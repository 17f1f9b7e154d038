"""The loss of truncated Gumbel noise: a word comes out of another only if that many of the nearest words take part.

From w itself w is drawn whenever k = 1, from w' only if k reaches the rank of w seen from w', so the pair loses at least
ln P(k = 1) - ln P(k >= rank): for k as the paper has it. As sampled, k ends where less than 2^-63 is left, and beyond that end
w cannot come out of w' at all; the guarantee excepts that probability, and it is not counted here. A lower bound: it refutes, and
cannot confirm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.compiled import Int, compiled
from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.mechanisms.extent import ranks
from dptext_spark.mechanisms.kernels.selection import SelectionSampler
from dptext_spark.mechanisms.losses.loss import Loss

SLACK = 1e-9  # relative: what the logarithms of the bound can be off by


def by_rank(sampler: SelectionSampler, words: int) -> Loss:
    """Return what the worst pair of a word and its nearest other word is known to lose, for each unit of distance.

    Args:
        sampler: of truncated Gumbel noise; its compilation ranked every word from its nearest other one.
        words: V.
    """
    pair = sampler.summary["pair"]
    places = words - int(sampler.summary["equal_vectors"])
    method = (
        "each word against its nearest other word: it comes out of itself whenever one word takes part, of the other only if so "
        f"many do as its rank there; for the worst pair rank {pair['rank']:,}, and a loss of {pair['loss']:.6g} at a distance of "
        f"{pair['distance']:.4g}"
    )
    attained = max(0.0, float(pair["refuted_up_to"])) * (1.0 - SLACK)
    return Loss(
        math.inf, attained, places, words * (words - 1) // 2, (pair["words"][0], pair["words"][1]), method
    )


@compiled
def loss_by_rank(rate: float, words: Int) -> Any:
    """Return float64[V + 1]: at r, ln P(k = 1) - ln P(k >= r) for k ~ Poisson(rate) conditioned on [1, V]; 0 at 0."""
    out = np.zeros(words + 1)
    for r in range(2, words + 1):  # ln P(k = 1) - ln P(k = r)
        out[r] = out[r - 1] + logarithm(np.float64(r)) - logarithm(rate)
    more = 1.0  # P(k >= r) / P(k = r)
    for r in range(words, 0, -1):
        out[r] -= logarithm(more)
        more = 1.0 + more * rate / r
    return out


def worst_pair(
    vectors: npt.NDArray[np.float32], places: Ids, other: Ids, gap: npt.NDArray[np.float64], rate: float
) -> dict[str, Any]:
    """Return the pair (w, w'), w' the nearest other word of w, with the largest loss per unit of distance, and its figures."""
    rank = ranks(vectors, places, other)
    loss = loss_by_rank(rate, len(vectors))[rank]
    worst = int(np.argmax(loss / gap))
    return {
        "words": [int(places[worst]), int(other[worst])],
        "rank": int(rank[worst]),
        "distance": float(gap[worst]),
        "loss": float(loss[worst]),
        "refuted_up_to": float(loss[worst] / gap[worst]),
    }
