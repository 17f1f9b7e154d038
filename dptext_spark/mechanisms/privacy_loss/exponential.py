"""The worst-case loss of a law over the whole lexicon, for each unit of distance: all pairs, from the sums that were compiled.

For P(u|w) = exp(-ε·m(w,u)/2)/Z(w) with m a metric, the output that separates w from w' best is w or w' itself (triangle
inequality), so a pair loses ε·m/2 + |ln Z(w) - ln Z(w')|: V²/2 numbers in place of V³
(concepts/mechanisms, Guarantee and certificate).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, Ids
from dptext_spark.mechanisms.matrices import squared_distances
from dptext_spark.mechanisms.privacy_loss.loss import (
    LOG_SLACK,
    Loss,
    compared_closely,
    evenly_spaced,
    internal_epsilon,
)
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler, cut_off
from dptext_spark.mechanisms.samplers.exponential_rows import log_normalisers
from dptext_spark.rounding import digits_up
from dptext_spark.runtime.display import Counted
from dptext_spark.runtime.jit import Int, compiled

ROWS = 32  # words looked at together, so that a tile of others serves them all from the cache
TILE = 64
SUMS = 1e-9  # relative: room for sums that were added up in another order than those of the rows


@compiled
def _steepest(
    flat: Any, size: Int, logs: Any, cut: float, first: Int, last: Int, near: Any
) -> tuple[Any, Int, Int]:
    """Return (the largest |ln Z - ln Z'|/m, w, w') over rows first..last with later rows, but for those at distance 0."""
    best = 0.0
    best_i: Int = np.int64(-1)
    best_j: Int = np.int64(-1)
    words = logs.shape[0]
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


class Steepest(NamedTuple):
    """The pair that loses most for each unit of distance.

    Attributes:
        value: its loss, with slack.
        pair: its places among the words that were compared, None where no two differ.
    """

    value: float
    pair: tuple[int, int] | None


def steepest(vectors: F32, logs: F64, step: float, cut: float, progress: Counted | None = None) -> Steepest:
    """Return the largest step + |ln Z - ln Z'| / min(distance, cut) over all pairs.

    Args:
        vectors: float32[n, d].
        logs: float64[n], ln Z.
        step: ε/2.
        cut: γ.
        progress: is told how many words are done.
    """
    vectors, count = np.ascontiguousarray(vectors), len(vectors)
    flat, size = vectors.reshape(-1), vectors.shape[1]

    def block(first: int) -> tuple[Any, int, int]:
        return _steepest(flat, size, logs, cut, first, min(first + ROWS, count), np.empty(TILE))

    found = (0.0, -1, -1)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, part in enumerate(pool.map(block, range(0, count, ROWS))):
            if part[1] >= 0 and (found[1] < 0 or part[0] > found[0]):
                found = part
            if progress:
                progress(min((done + 1) * ROWS, count), count)
    slope, i, j = float(found[0]), int(found[1]), int(found[2])
    if i < 0:
        return Steepest(LOG_SLACK, None)
    value = step + slope
    return Steepest(value + LOG_SLACK * (1.0 + value), (i, j))


def by_distance(
    sampler: ExponentialSampler, progress: Counted | None = None, sample: int | None = None
) -> Loss:
    """Return the largest loss for each unit of distance over all pairs of words that the guarantee compares.

    The sum Z of a word that cannot come out (SanText+) obeys the same triangle inequality. Where such a word may be released as
    it is, the guarantee does not compare it, and what it loses is stated beside.

    Args:
        sampler: of SanText or TEM.
        progress: is told how many words are done.
        sample: look at pairs among so many words, spread evenly over the lexicon; the rest by the triangle inequality.
    """
    outputs, words = np.asarray(sampler.outputs), len(sampler.level)
    kept = float(sampler.law_columns().kept.max())
    compared = outputs if kept else np.arange(words, dtype=np.int32)
    ids = compared[evenly_spaced(len(compared), sample)]
    vectors, logs = np.asarray(sampler.vectors), np.asarray(sampler.log_normaliser)
    step, cut = float(sampler.figures[0]), float(sampler.figures[1])
    found = steepest(vectors[ids], np.ascontiguousarray(logs[ids]), step, cut, progress)
    pairs, total = (n * (n - 1) // 2 for n in (len(ids), len(compared)))
    value, closed, attained, worst = found.value, False, 0.0, None
    if found.pair is not None:
        attained, worst = _attained(sampler, ids, (int(ids[found.pair[0]]), int(ids[found.pair[1]])))
        value = max(value, attained)
    method = f"every pair of {sampler.guarantee.compared}, by the exact sum of each law"
    if pairs < total:
        method = f"every pair among {len(ids):,} words at equal steps through the lexicon, by the exact sum of each law"
        value, closed = max(value, 2.0 * step), 2.0 * step <= sampler.guarantee.epsilon
        method += f"; no other pair loses more than {2.0 * step:.6g}, by the triangle inequality"
    others, outside = None, ""
    if kept:
        every = evenly_spaced(words, sample)
        bound = steepest(vectors[every], np.ascontiguousarray(logs[every]), step, cut, progress).value
        others = bound if len(every) == words else 2.0 * step
        outside = _outside(others, kept)
    return Loss(
        value,
        attained,
        pairs,
        total,
        worst,
        method,
        closed=closed,
        others=others,
        additive=2.0 * sampler.slack,
        outside=outside,
    )


def _outside(others: float, kept: float) -> str:
    """Write what words lose that are released as they are with probability `kept`."""
    return (
        "It does not cover words that are not sensitive: an output that is not sensitive reveals its input, and on sensitive "
        f"outputs such a word loses at most {digits_up(others, 6)} for each unit of distance, with ln(1/p) = "
        f"{digits_up(-math.log1p(-kept), 6)} more against a sensitive word."
    )


def calibrated_whole(
    vectors: F32,
    epsilon: float,
    calibration: str,
    *,
    radius: Callable[[float], float] = lambda _: math.inf,
    outputs: Ids | None = None,
    keep: float = 0.0,
    note: str = "",
) -> ExponentialSampler:
    """Return the sampler of a law over the whole lexicon, its internal ε as published or raised to what the promise allows.

    The search needs the sums of the laws only; rows are compiled once.

    Args:
        vectors: float32[V, d].
        epsilon: the promise.
        calibration: `published` or `exact`.
        radius: γ for an internal ε.
        outputs: as of :meth:`ExponentialSampler.of`.
        keep: as of :meth:`ExponentialSampler.of`.
        note: as of :meth:`ExponentialSampler.of`.
    """
    if calibration == "published":
        return ExponentialSampler.of(vectors, epsilon, radius(epsilon), outputs=outputs, keep=keep, note=note)
    released = np.arange(len(vectors), dtype=np.int32) if outputs is None else outputs

    def loss(internal: float) -> float:
        step = internal / 2.0
        cut = cut_off(radius(internal), step)
        logs = log_normalisers(vectors, released, step, cut)
        return steepest(vectors, logs, step, cut).value * (1.0 + SUMS)

    internal = internal_epsilon(epsilon, loss)
    return ExponentialSampler.of(
        vectors, internal, radius(internal), outputs=outputs, keep=keep, note=note, promised=float(epsilon)
    )


def _attained(sampler: ExponentialSampler, ids: Ids, pair: tuple[int, int]) -> tuple[float, tuple[int, int]]:
    """Return (the largest loss for each unit of distance by the integers that are sampled, less their slack; its pair).

    Over every output, of the pair that the sums say is worst, and of pairs among some words: were another law sampled than
    the one whose sums were compared, this would tell.
    """
    words = np.unique(np.append(compared_closely(ids), pair)).astype(np.int32)
    probability = sampler.laws(words).dense(len(sampler.level))
    # What cannot come out: an infinite loss, where the other word leads there.
    with np.errstate(divide="ignore"):
        logs = np.log(probability[:, np.asarray(sampler.outputs)])
    flat, size, cut = sampler.vectors.reshape(-1), sampler.vectors.shape[1], float(sampler.figures[1])
    found, worst, gaps = 0.0, pair, np.empty(1)
    for i, w in enumerate(words):
        for j in range(i):
            squared_distances(flat, size, int(w), flat, int(words[j]), int(words[j]) + 1, gaps)
            gap = min(math.sqrt(gaps[0]), cut)
            loss = float(np.abs(logs[i] - logs[j]).max()) - 2.0 * sampler.slack - LOG_SLACK
            if gap > 0.0 and loss / gap > found:
                found, worst = loss / gap, (int(words[j]), int(w))
    return found, worst
