"""Distances of words to every output, a block of words at a time, and the sums Z of their laws without rows."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.compiled import Int, compiled
from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.distances import squared_distances
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.mechanisms.kernels.decay import decay, summed

WORDS = 32  # words whose distances are held at once: beside a tile of outputs they stay in a core's cache
TILE = 64


@compiled
def measure(flat: Any, others: Any, size: Int, some: Any, away: Any) -> None:
    """Fill away float64[w, n] with the squared distances of some words int32[w] to the outputs."""
    n = away.shape[1]
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        for i in range(some.shape[0]):
            squared_distances(flat, size, some[i], others, start, end, away[i, start:end])


@compiled
def sums(away: Any, some: Any, step: float, radius: float, logs: Any, least: Any) -> None:
    """Fill in ln Z of some words int32[w], and the smallest probability of an output.

    Args:
        away: float64[w, n], squared distances.
        some: int32[w], ids.
        step: ε/2.
        radius: γ, at most 43/step.
        logs: float64[V].
        least: float64[V].
    """
    n = away.shape[1]
    values = np.empty(n)
    for i in range(some.shape[0]):
        far = 0.0
        for j in range(n):
            gap = min(math.sqrt(away[i, j]), radius)
            far = max(far, gap)
            values[j] = decay(step * gap)
        everything = summed(values)
        logs[some[i]] = logarithm(everything)
        least[some[i]] = decay(step * far) / everything


def log_normalisers(
    vectors: npt.NDArray[np.float32], outputs: Ids, step: float, radius: float
) -> npt.NDArray[np.float64]:
    """Return ln Z of every word, float64[V], without the rows: what certificates need.

    Args:
        vectors: float32[V, d].
        outputs: int32[n], ids, ascending.
        step: ε/2.
        radius: γ, at most 43/step.
    """
    words, size = vectors.shape
    logs, least = np.empty(words), np.empty(words)
    flat = np.ascontiguousarray(vectors).reshape(-1)
    others = flat if len(outputs) == words else np.ascontiguousarray(vectors[outputs]).reshape(-1)
    everything = np.arange(words, dtype=np.int32)

    def add(first: int) -> None:
        some = everything[first : first + WORDS]
        away = np.empty((len(some), len(outputs)))
        measure(flat, others, size, some, away)
        sums(away, some, step, radius, logs, least)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(add, range(0, words, WORDS)):
            pass
    return logs
