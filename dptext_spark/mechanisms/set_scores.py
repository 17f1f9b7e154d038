"""How a word scores the words of its output set, min-max normalised to [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.arrays import F32, F64, Ids
from dptext_spark.runtime.jit import compiled

EQUAL = 1e-12  # scores that differ by less, relative to the largest, count as equal


def normalised_scores(vectors: F32, sets: Ids, of_word: Ids, cosine: bool) -> F64:
    """Return float64[V, k']: the score of each word of a set for each word, 0 the least and 1 the best; all 0 where equal.

    Args:
        vectors: float32[V, d].
        sets: int32[S, k'], padded with -1, where the result means nothing.
        of_word: int32[V], the set of each word.
        cosine: the score is the cosine, else minus the Euclidean distance.
    """
    score = _scores(np.ascontiguousarray(vectors), sets, of_word, cosine)
    held = sets[of_word] >= 0
    low = np.where(held, score, np.inf).min(axis=1, keepdims=True)
    span = np.where(held, score, -np.inf).max(axis=1, keepdims=True) - low
    # Equal scores differ by rounding (cosines of parallel vectors), and min-max would blow that up to [0, 1].
    spread = span > EQUAL * np.maximum(np.abs(low), np.abs(low + span))
    return np.where(spread, (score - low) / np.where(spread, span, 1.0), 0.0)


@compiled
def _scores(vectors: Any, sets: Any, of_word: Any, cosine: bool) -> Any:
    """Score each word against its set in float64, in a fixed order: float64[V, k']; 0 where the set is padded."""
    words, size = vectors.shape
    width = sets.shape[1]
    norm = np.zeros(words)
    for w in range(words):
        total = 0.0
        for j in range(size):
            total += np.float64(vectors[w, j]) * np.float64(vectors[w, j])
        norm[w] = np.sqrt(total)
    out = np.zeros((words, width))
    for w in range(words):
        for i in range(width):
            u = sets[of_word[w], i]
            if u < 0:
                continue
            total = 0.0
            if cosine:
                for j in range(size):
                    total += np.float64(vectors[w, j]) * np.float64(vectors[u, j])
                both = norm[w] * norm[u]
                out[w, i] = total / both if both > 0 else 0.0
            else:
                for j in range(size):
                    gap = np.float64(vectors[w, j]) - np.float64(vectors[u, j])
                    total += gap * gap
                out[w, i] = -np.sqrt(total)
    return out
