"""The exact δ of a noisy vector under truncated Laplace noise: how often one word's noise falls where another's cannot.

Inside both supports the densities of two words differ by at most e^ε, outside by infinity: so the δ of a pair is the probability
to leave, 1 - Π(1 - p(y_i)), y the difference of the two vectors in units of the noise's scale (p: see
mechanisms/truncated_laplace.py).

All pairs of a lexicon are covered: -ln(1 - p(y)) is convex with a slope of s at 0, and (-ln(1 - p(y)) - sy)/y² is at most c, so
sy + cy², summed over the coordinates, bounds a pair at the cost of its distance; where that passes the worst pair so far, the
pair is computed. This is about the noisy vector; the word next to it, which is released, shows less.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dptext_spark.arrays import F32, F64
from dptext_spark.mechanisms.extent import distant_pairs
from dptext_spark.mechanisms.privacy_loss.loss import Loss, evenly_spaced
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.progress import Counted

ROWS, TILE = 32, 64
STARTS = 64  # distant pairs that the search begins with
COMPUTED = 4_096  # pairs that a block of rows may compute; those left over count as not covered
MARGIN = 1e-4  # of the bound in float32


@compiled
def _survival(y: float, end: float) -> Any:
    """Return -ln(1 - p(y)), y >= 0; infinite from 2·end on."""
    if y >= 2.0 * end:
        return np.inf
    if y <= end:
        # (e^y - 1) / (2(e^a - 1)) without overflow.
        return -math.log1p(-(math.exp(y - end) - math.exp(-end)) / (-2.0 * math.expm1(-end)))
    return -math.log((math.exp(end - y) - math.exp(-end)) / (-2.0 * math.expm1(-end)))


@compiled
def _exit(vectors: Any, i: Int, j: Int, scale: float, end: float) -> Any:
    """Return -ln of the probability to stay, of one pair."""
    total = 0.0
    for k in range(vectors.shape[1]):
        total += _survival(abs(np.float64(vectors[i, k]) - np.float64(vectors[j, k])) / scale, end)
    return total


@compiled
def _search(
    vectors: Any, tiles: Any, first: Int, last: Int, linear: Any, square: Any, noise: Any, begin: float
) -> tuple[Any, Int, Int, Int]:
    """Return (the largest -ln P(stay) that exceeds `begin`, its pair or -1, pairs not covered) over some rows."""
    words, size = vectors.shape
    scale, end = noise[0], noise[1]
    best = begin
    best_i: Int = np.int64(-1)
    best_j: Int = np.int64(-1)
    computed, left = 0, 0
    bound = np.empty(TILE, np.float32)
    room = np.float32(1.0 + MARGIN)
    for tile in range(first // TILE, tiles.shape[0]):
        start = tile * TILE
        stop = min(start + TILE, words)
        for i in range(first, last):
            if stop - 1 <= i:
                continue
            bound[:] = np.float32(0.0)
            for k in range(size):
                x = vectors[i, k]
                for j in range(TILE):
                    gap = abs(x - tiles[tile, k, j])
                    bound[j] += gap * (linear + square * gap)
            for j in range(max(start, i + 1), stop):
                if bound[j - start] * room <= best:
                    continue
                if computed == COMPUTED:
                    left += 1
                    continue
                computed += 1
                found = _exit(vectors, i, j, scale, end)
                if found > best:
                    best, best_i, best_j = found, i, j
    return best, best_i, best_j, left


def by_exits(sampler: NoiseSampler, progress: Counted | None = None, sample: int | None = None) -> Loss:
    """Return the δ of the noisy vector: that of the worst pair of the lexicon, and what the mechanism says of all vectors.

    Args:
        sampler: of truncated Laplace noise.
        progress: is told how many words are done.
        sample: look at pairs among so many words, spread evenly over the lexicon.
    """
    words = len(sampler.centers)
    ids = evenly_spaced(words, sample)
    vectors = np.ascontiguousarray(sampler.centers[ids])
    noise = np.array(
        [float(sampler.parameters[0]), float(sampler.parameters[1]) / float(sampler.parameters[0])]
    )
    best, worst = 0.0, None
    starts = distant_pairs(vectors, STARTS)
    for w, v in starts:
        found = float(_exit(vectors, w, v, noise[0], noise[1]))
        if found > best:
            best, worst = found, (w, v)
    total = words * (words - 1) // 2
    covered, bound = len(starts), _bound(vectors, noise)
    if bound is not None:
        best, worst, covered = _all_pairs(vectors, bound, noise, (best, worst), progress)
    if worst is not None:
        worst = (int(ids[worst[0]]), int(ids[worst[1]]))
    exact = -math.expm1(-best)
    most, opposite = sampler.summary.exit_bound, sampler.summary.exit_probability
    assert most is not None
    assert opposite is not None
    how = "exactly, over every pair of words"
    if covered < total:
        how = f"over pairs among {len(ids):,} words at equal steps through the lexicon"
    return Loss(
        math.inf, 0.0, covered, total, worst, f"the probability to leave the other's support, {how}",
        delta=exact, delta_most=max(exact, most), delta_opposite=opposite,
        release="vector",
    )  # fmt: skip


def _bound(vectors: F32, noise: F64) -> tuple[float, float] | None:
    """Return (s, c) in units of the vectors; None where a coordinate can differ by more than both supports hold together."""
    scale, end = noise.tolist()
    largest = float((vectors.max(axis=0).astype(np.float64) - vectors.min(axis=0)).max()) / scale
    if largest >= 2.0 * end:
        return None
    if largest == 0.0:
        return 0.0, 0.0
    slope = math.exp(-end) / (-2.0 * math.expm1(-end))
    # Beyond `end` the quotient is not monotone, but its numerator is.
    curve = max(0.0, _survival(largest, end) - slope * largest) / min(largest, end) ** 2
    return slope / scale, curve / scale**2


def _all_pairs(
    vectors: F32,
    bound: tuple[float, float],
    noise: F64,
    found: tuple[float, tuple[int, int] | None],
    progress: Counted | None,
) -> tuple[float, tuple[int, int] | None, int]:
    """Return (the largest -ln of the probability to stay, its pair, pairs covered)."""
    words, size = vectors.shape
    count = -(-words // TILE)
    tiles = np.zeros((count * TILE, size), np.float32)
    tiles[:words] = vectors
    tiles = np.ascontiguousarray(tiles.reshape(count, TILE, size).transpose(0, 2, 1))
    # Scaled by a power of two, which changes no digit, so that float32 holds the bound whatever the lengths are.
    unit = 2.0 ** -math.frexp(float(np.abs(vectors).max(initial=0.0)))[1]
    linear, square = np.float32(bound[0] / unit), np.float32(bound[1] / unit**2)
    rows = np.ascontiguousarray(vectors * np.float32(unit)), tiles * np.float32(unit)
    scaled = np.array([noise[0] * unit, noise[1]])
    (best, worst), left = found, 0

    def block(first: int) -> tuple[Any, int, int, int]:
        last = min(first + ROWS, words)
        return _search(rows[0], rows[1], first, last, linear, square, scaled, found[0])

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, part in enumerate(pool.map(block, range(0, words, ROWS))):
            left += part[3]
            if part[1] >= 0 and part[0] > best:
                best, worst = float(part[0]), (int(part[1]), int(part[2]))
            if progress:
                progress(min((done + 1) * ROWS, words), words)
    return best, worst, words * (words - 1) // 2 - left
