"""The loss of truncated Gumbel noise: a word comes out of another only if that many of the nearest words take part.

From w itself w is drawn whenever k = 1, from w' only if k reaches the rank of w seen from w', so the pair loses at least
ln P(k = 1) - ln P(k >= rank): for k as the paper has it. As sampled, k ends where less than 2^-63 is left, and beyond that end
w cannot come out of w' at all; the guarantee excepts that probability, and it is not counted here. A lower bound: it refutes, and
cannot confirm.
"""

from __future__ import annotations

import math

from dptext_spark.mechanisms.privacy_loss.loss import Loss
from dptext_spark.mechanisms.samplers.noisy_selection import SelectionSampler

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
