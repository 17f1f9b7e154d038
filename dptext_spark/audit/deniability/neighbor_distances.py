"""How far words are from their nearest others: what noise has to bridge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dptext_spark.arrays import F32
from dptext_spark.audit.deniability.distribution import Distribution
from dptext_spark.errors import require_choice
from dptext_spark.lexicon.neighbors import METRICS, Metric, nearest

NEIGHBORS = (1, 5, 10, 20, 50)


def neighbor_distances(
    vectors: F32, metric: Metric = "euclidean", ranks: Sequence[int] = NEIGHBORS
) -> dict[str, Any]:
    """Return how far words are from their k-th neighbour, as percentiles over the lexicon (Feyisetan et al. 2020, Fig. 1).

    Args:
        vectors: float32[V, d], C order, finite.
        metric: `euclidean`, or `cosine` for 1 - cosine.
        ranks: k, 1 for the nearest other word; those that the lexicon is too small for are left out.

    Returns:
        JSON-able: `metric`, `words`, and by k the percentiles `min`, `p1`, ..., `max` and the `mean`.
    """
    require_choice("metric", metric, METRICS)
    fit = [rank for rank in ranks if 1 <= rank < len(vectors)]
    by_rank = {}
    if fit:
        _, far = nearest(vectors, np.arange(len(vectors), dtype=np.int32), max(fit) + 1, metric)
        for rank in fit:
            spread = Distribution.of(far[:, rank], (0.0, math.inf))
            by_rank[str(rank)] = {**spread.percentiles, "mean": spread.mean}
    return {"metric": metric, "words": len(vectors), "by_neighbor": by_rank}
