"""Distances of words to every output, a block of words at a time, and the sums Z of their laws without rows."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.numerics.distances import squared_distances
from dptext_spark.mechanisms.numerics.elementary import logarithm
from dptext_spark.mechanisms.samplers.decay import decay, summed
from dptext_spark.runtime.jit import Int, compiled

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
def sums(away: Any, some: Any, steps: Any, radii: Any, logs: Any, least: Any) -> None:
    """Fill in ln Z of some words under some laws, and the smallest probability of an output.

    A word's distances stay in the cache while one law after the other reads them.

    Args:
        away: float64[w, n], squared distances; distances afterwards.
        some: int32[w], ids.
        steps: float64[k], ε/2.
        radii: float64[k], γ, at most 43/step.
        logs: float64[k, V].
        least: float64[k, V].
    """
    n = away.shape[1]
    values = np.empty(n)
    for i in range(some.shape[0]):
        longest = 0.0
        for j in range(n):
            away[i, j] = math.sqrt(away[i, j])
            longest = max(longest, away[i, j])
        for k in range(steps.shape[0]):
            step, radius = steps[k], radii[k]
            for j in range(n):
                values[j] = decay(step * min(away[i, j], radius))
            everything = summed(values)
            logs[k, some[i]] = logarithm(everything)
            least[k, some[i]] = decay(step * min(longest, radius)) / everything


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
    logs, least = np.empty((1, words)), np.empty((1, words))
    steps, radii = np.array([step]), np.array([radius])
    flat = np.ascontiguousarray(vectors).reshape(-1)
    others = flat if len(outputs) == words else np.ascontiguousarray(vectors[outputs]).reshape(-1)
    everything = np.arange(words, dtype=np.int32)

    def add(first: int) -> None:
        some = everything[first : first + WORDS]
        away = np.empty((len(some), len(outputs)))
        measure(flat, others, size, some, away)
        sums(away, some, steps, radii, logs, least)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(add, range(0, words, WORDS)):
            pass
    return np.asarray(logs[0], np.float64)
