"""What the truncated Gumbel mechanism loses at least: a word can come out only if the number of candidates reaches its rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.arrays import F32, F64, Ids
from dptext_spark.mechanisms.extent import ranks
from dptext_spark.mechanisms.numerics.elementary import logarithm
from dptext_spark.runtime.jit import Int, compiled


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


def worst_pair(vectors: F32, places: Ids, other: Ids, gap: F64, rate: float) -> dict[str, Any]:
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
