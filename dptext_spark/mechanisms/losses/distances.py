"""The worst-case loss of a law over the whole lexicon, for each unit of distance: all pairs, from the sums that were compiled.

For P(u|w) = exp(-ε·m(w,u)/2)/Z(w) with m a metric, the output that separates w from w' best is w or w' itself (triangle
inequality), so a pair loses ε·m/2 + |ln Z(w) - ln Z(w')|: V²/2 numbers in place of V³ (MECHANISMS §14).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from dptext_spark.compiled import Int, compiled
from dptext_spark.mechanisms.calibration import internal_epsilon
from dptext_spark.mechanisms.distances import squared_distances
from dptext_spark.mechanisms.kernels.whole import WholeSampler
from dptext_spark.mechanisms.losses.loss import LOG_SLACK, Loss, Progress

ROWS = 32  # words looked at together, so that a tile of others serves them all from the cache
TILE = 64


@compiled
def _steepest(
    flat: Any, size: Int, ids: Any, logs: Any, cut: float, first: Int, last: Int, near: Any
) -> tuple[Any, Int, Int]:
    """Return (the largest |ln Z - ln Z'|/m, w, w') over rows first..last with later rows, but for those at distance 0."""
    best = 0.0
    best_i: Int = np.int64(-1)
    best_j: Int = np.int64(-1)
    words = ids.shape[0]
    for start in range(first, words, TILE):
        end = min(start + TILE, words)
        for i in range(first, last):
            if end - 1 <= i:
                continue
            squared_distances(flat, size, i, flat, start, end, near)
            for j in range(max(start, i + 1), end):
                gap = min(np.sqrt(near[j - start]), cut)
                if gap > 0.0:
                    slope = abs(logs[i] - logs[j]) / gap
                    if slope > best or best_i < 0:
                        best, best_i, best_j = slope, i, j
    return best, best_i, best_j


def by_distance(sampler: WholeSampler, progress: Progress | None = None) -> Loss:
    """Return the largest loss for each unit of distance over all pairs of words that can come out.

    Args:
        sampler: of SanText or TEM.
        progress: is told how many words are done.
    """
    ids = np.asarray(sampler.outputs)
    vectors = np.ascontiguousarray(sampler.vectors[ids])
    logs = np.ascontiguousarray(sampler.log_normaliser[ids])
    step, cut = float(sampler.figures[0]), float(sampler.figures[1])
    flat, size = vectors.reshape(-1), vectors.shape[1]
    count = len(ids)

    def block(first: int) -> tuple[Any, int, int]:
        return _steepest(flat, size, ids, logs, cut, first, min(first + ROWS, count), np.empty(TILE))

    found = (0.0, -1, -1)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, part in enumerate(pool.map(block, range(0, count, ROWS))):
            if part[1] >= 0 and (found[1] < 0 or part[0] > found[0]):
                found = part
            if progress:
                progress(min((done + 1) * ROWS, count), count)
    slope, i, j = found
    value = step + float(slope) if i >= 0 else 0.0
    slack = LOG_SLACK * (1.0 + value)
    pairs = count * (count - 1) // 2
    worst = (int(ids[i]), int(ids[j])) if i >= 0 else None
    attained = 0.0
    if worst is not None:
        attained = _attained(sampler, worst, min(_distance(vectors, i, j), cut))
    return Loss(
        value + slack, attained, pairs, pairs, worst,
        "every pair of words that can come out, by the exact sum of each law",
        additive=2.0 * sampler.slack,
    )  # fmt: skip


def calibrated_whole(
    compile_at: Callable[[float], WholeSampler], epsilon: float, calibration: str
) -> WholeSampler:
    """Return the sampler of a law over the whole lexicon, its internal ε as published or raised to what the promise allows.

    Args:
        compile_at: compiles the law at an internal ε.
        epsilon: the promise.
        calibration: `published` or `exact`.
    """
    if calibration == "published":
        return compile_at(epsilon)
    internal = internal_epsilon(epsilon, lambda e: by_distance(compile_at(e)).value)
    sampler = compile_at(internal)
    sentence = sampler.guarantee.sentence.replace(f"ε = {internal:.16g} ", f"ε = {epsilon:.16g} ", 1)
    return replace(
        sampler,
        guarantee=replace(sampler.guarantee, epsilon=float(epsilon), sentence=sentence),
        summary={**sampler.summary, "internal_epsilon": internal},
    )


def _distance(vectors: Any, i: int, j: int) -> float:
    near = np.empty(1)
    squared_distances(vectors.reshape(-1), vectors.shape[1], i, vectors.reshape(-1), j, j + 1, near)
    return float(np.sqrt(near[0]))


def _attained(sampler: WholeSampler, pair: tuple[int, int], gap: float) -> float:
    """Return what the worst pair loses by the laws that are sampled, less their slack."""
    laws = [sampler.law(word) for word in pair]
    outputs, left, right = np.intersect1d(laws[0].ids, laws[1].ids, return_indices=True)
    ratios = np.log(laws[0].probability[left] / laws[1].probability[right])
    return (
        max(0.0, (float(np.abs(ratios).max()) - 2.0 * sampler.slack - LOG_SLACK) / gap)
        if len(outputs)
        else 0.0
    )
