"""Words with equal vectors as one place: the neighbours and the nearest other word of each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext_spark.lexicon.neighbors import nearest, nearest_in
from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.numerics.distances import pair_distances


def neighbours_by_place(
    vectors: npt.NDArray[np.float32], count: int
) -> tuple[Ids, npt.NDArray[np.float64], Ids]:
    """Return (ids int32[V, K], distances float64[V, K], place int32[V]): words with equal vectors share one row.

    The order is by the distances of :func:`nearest`, the distances are those of the fixed order; the two can differ
    in their last bits.
    """
    words = np.arange(len(vectors), dtype=np.int32)
    near, measured = nearest(vectors, words, max(2, count), "euclidean")
    # The nearest other word at distance 0 is the lowest id among the others with this vector.
    place = np.where(measured[:, 1] == 0, np.minimum(words, near[:, 1]), words).astype(np.int32)
    near = np.ascontiguousarray(near[place, :count])
    return near, pair_distances(vectors, place, near), place


def nearest_other(
    vectors: npt.NDArray[np.float32], near: Ids, distance: npt.NDArray[np.float64], places: Ids
) -> tuple[Ids, npt.NDArray[np.float64]]:
    """Return (ids int32[p], distances float64[p]): the nearest word with another vector, of each place."""
    if len(places) == len(vectors) and near.shape[1] > 1:
        return near[places, 1], distance[places, 1]
    other = nearest_in(vectors, places, places, 2, "euclidean")[0][:, 1:]
    return other[:, 0], pair_distances(vectors, places, np.ascontiguousarray(other))[:, 0]
