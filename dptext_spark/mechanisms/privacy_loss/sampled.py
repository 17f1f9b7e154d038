"""A lower bound on the loss of a mechanism without a law in closed form, from draws, at a stated confidence.

For a pair of words half of the draws choose an event: the outputs that favour w more often than the claim allows. If there are
none, it is those that favour w most. The other half bounds its probabilities, by Clopper and Pearson (1934). Such a result can
refute a claim; it can never confirm one.

The exact δ of a noisy vector under truncated Laplace noise: how often one word's noise falls where another's cannot.

Inside both supports the densities of two words differ by at most e^ε, outside by infinity. So the δ of a pair is the probability
to leave, 1 - Π(1 - p(y_i)). Here y is the difference of the two vectors in units of the noise's scale (p: see
mechanisms/clipped_noise.py).

All pairs of a lexicon are covered. The function -ln(1 - p(y)) is convex with a slope of s at 0, and (-ln(1 -
p(y)) - sy)/y² is at most c. So sy + cy², summed over the coordinates, bounds a pair at the cost of its
distance. If that passes the worst pair so far, the pair is computed. This is about the noisy vector; the
released word next to the vector shows less.

A lower bound on the δ of a released word, from draws: whether it lies on one word's side of a half-space.

Under (ε, δ)-DP no event is more likely under w than e^ε times as likely under w', and δ more. Any set of
outputs is an event. For pairs of words with clipped vectors far apart, the search takes the words u with
<φ(u), φ(w) - φ(w')> above a threshold. A trial chooses the pair and its threshold. Separate draws bound both
probabilities by Clopper and Pearson (1934). The result can refute a claim about the released word; it can
never confirm one.
"""

from __future__ import annotations

import hashlib
import math
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, Bools, Ids
from dptext_spark.lexicon.neighbors import nearest
from dptext_spark.mechanisms.matrices import distant_pairs
from dptext_spark.mechanisms.privacy_loss.loss import Loss, clopper_pearson, evenly_spaced
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.randomness import Draws
from dptext_spark.runtime.display import Counted
from dptext_spark.runtime.jit import Int, compiled

CONFIDENCE = 1 - 1e-6  # that all bounds together hold
PAIRS = 24
DRAWS = 4_000  # of each word of a pair
SEARCHED = 2_048  # words whose nearest word is looked for
_SUBKEY = hashlib.sha256(b"certificate").digest()  # public: nothing private is drawn here


def by_draws(
    sampler: NoiseSampler, progress: Counted | None = None, pairs: int = PAIRS, draws: int = DRAWS
) -> Loss:
    """Compute the losses of pairs of near words, and of distant ones."""
    words = len(sampler.centers)
    guarantee, chosen = sampler.guarantee, _pairs(sampler.centers, pairs)
    alpha = (1 - CONFIDENCE) / (2 * max(1, len(chosen)))
    attained, worst = 0.0, None
    for number, (w, v) in enumerate(chosen):
        sides = [drawn(sampler, word, number, side, draws) for side, word in enumerate((w, v))]
        gap = distance(sampler, w, v) if guarantee.kind == "metric_dp" else 1.0
        claim = guarantee.epsilon * gap
        low, high = _event(sides, claim, words, alpha)
        if low > 0 and high > 0 and math.log(low / high) / gap > attained:
            attained, worst = math.log(low / high) / gap, (w, v)
        if progress:
            progress(number + 1, len(chosen))
    method = f"{draws:,} draws of each word of {len(chosen)} near and distant pairs; such a search can refute, not confirm"
    return Loss(
        math.inf, attained, len(chosen), words * (words - 1) // 2, worst, method,
        confidence=CONFIDENCE,
    )  # fmt: skip


def distance(sampler: NoiseSampler, w: int, v: int) -> float:
    """Return the distance of two words in the norm of a noise mechanism's guarantee."""
    gap = sampler.centers[w].astype(np.float64) - sampler.centers[v].astype(np.float64)
    columns = np.asarray(sampler.columns)
    return float(np.linalg.norm(np.linalg.solve(columns.T, gap) if columns.size else gap))


def _pairs(centers: F32, count: int) -> list[tuple[int, int]]:
    """Return the nearest pairs among the first words, and as many pairs from both ends of the lexicon or half a lexicon apart.

    Words with equal vectors are left out: their law is one and the same, and no distance divides a loss.
    """
    words = len(centers)
    ids = np.arange(min(words, SEARCHED), dtype=np.int32)
    near, gaps = nearest(np.ascontiguousarray(centers), ids, 2, "euclidean")
    apart = gaps[:, 1] > 0
    order = ids[apart][np.argsort(gaps[apart, 1], kind="stable")][: count // 2]
    pairs = [(int(w), int(near[w, 1])) for w in order]
    half = range(words // 2)
    distant = chain(((i, words - 1 - i) for i in half), ((i, i + words // 2) for i in half))
    differ = ((w, v) for w, v in distant if (centers[w] != centers[v]).any())
    return list(dict.fromkeys([*pairs, *islice(differ, count - len(pairs))]))


def drawn(sampler: NoiseSampler, word: int, number: int, side: int, draws: int) -> Ids:
    """Draw a word of a pair many times by public numbers, others for each pair and each of its sides: int32[draws]."""
    blocks = np.zeros((draws, 2), np.uint64)
    blocks[:, 0] = np.arange(draws)
    blocks[:, 1] = 2 * number + side
    return np.asarray(sampler.sample(np.full(draws, word, np.int32), Draws(_SUBKEY, blocks)), np.int32)


def _event(drawn: list[Ids], claim: float, words: int, alpha: float) -> tuple[float, float]:
    """Return (lower bound of the event's probability under the first word, upper bound under the second)."""
    half = len(drawn[0]) // 2
    first, second = (np.bincount(side[:half], minlength=words) for side in drawn)
    speaks = first > math.exp(min(claim, 700.0)) * second
    if not speaks.any():
        speaks = first > second
    hits = [int(speaks[side[half:]].sum()) for side in drawn]
    many = len(drawn[0]) - half
    low, high = clopper_pearson(hits, many, alpha)
    return float(low[0]), float(high[1])


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
    """Compute -ln of a pair's probability to stay."""
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
                log_exit = _exit(vectors, i, j, scale, end)
                if log_exit > best:
                    best, best_i, best_j = log_exit, i, j
    return best, best_i, best_j, left


def by_exits(sampler: NoiseSampler, progress: Counted | None = None, sample: int | None = None) -> Loss:
    """Compute the δ of the noisy vector: that of the worst pair of the lexicon, and the mechanism's own δ for all vectors.

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
        log_exit = float(_exit(vectors, w, v, noise[0], noise[1]))
        if log_exit > best:
            best, worst = log_exit, (w, v)
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


DISTANT_PAIRS = 3
TRIAL = 1_500  # draws of each word of a pair, to choose by
JUDGING_DRAWS = 32_000  # of each word of the chosen pair, to judge by
LEVELS = 64  # thresholds that are tried


class Event(NamedTuple):
    """A set of released words that speaks for the first word of a pair.

    Attributes:
        pair: (w, w').
        holds: bool[V], the words in it.
        gain: P(event | w) - e^ε·P(event | w') on the trial.
    """

    pair: tuple[int, int]
    holds: Bools
    gain: float


def by_half_spaces(sampler: NoiseSampler, progress: Counted | None = None) -> Loss:
    """Return a lower bound on the δ that distant pairs of words need at the claimed ε."""
    centers = np.asarray(sampler.centers)
    words = len(centers)
    pairs = distant_pairs(centers, DISTANT_PAIRS)
    whole = 2 * (len(pairs) * TRIAL + JUDGING_DRAWS)
    times = math.exp(min(sampler.guarantee.epsilon, 700.0))
    best: Event | None = None
    for number, pair in enumerate(pairs):
        sides = [drawn(sampler, word, number, side, TRIAL) for side, word in enumerate(pair)]
        turned = _half_space(centers, (pair[1], pair[0]), sides[::-1], times)
        for event in (_half_space(centers, pair, sides, times), turned):
            best = event if best is None or event.gain > best.gain else best
        if progress:
            progress(2 * (number + 1) * TRIAL, whole)
    low = 0.0
    if best is not None:
        sides = [drawn(sampler, word, len(pairs), side, JUDGING_DRAWS) for side, word in enumerate(best.pair)]
        hits = [int(best.holds[side].sum()) for side in sides]
        # P(event | w) - e^ε·P(event | w') at the least: two bounds, each wrong in half of the cases allowed.
        below, above = clopper_pearson(hits, JUDGING_DRAWS, (1 - CONFIDENCE) / 2)
        low = float(below[0] - times * above[1])
        if progress:
            progress(whole, whole)
    method = (
        f"half-spaces between distant words, the pair and its threshold chosen on {TRIAL:,} draws of each word, its δ "
        f"bounded on {JUDGING_DRAWS:,} others; such a search can refute, not confirm"
    )
    return Loss(
        math.inf, 0.0, len(pairs), words * (words - 1) // 2, None if best is None else best.pair, method,
        confidence=CONFIDENCE, delta=max(0.0, low),
    )  # fmt: skip


def _half_space(centers: F32, pair: tuple[int, int], sides: list[Ids], times: float) -> Event:
    """Find the half-space along the difference of a pair that separates it best."""
    gap = centers[pair[0]].astype(np.float64) - centers[pair[1]].astype(np.float64)
    along = centers.astype(np.float64) @ gap
    projections = [np.sort(along[side]) for side in sides]
    levels = np.unique(np.quantile(np.concatenate(projections), np.linspace(0.0, 1.0, LEVELS)))
    first, second = (1.0 - np.searchsorted(side, levels) / len(side) for side in projections)
    gains = first - times * second
    at = int(gains.argmax())
    return Event(pair, along >= levels[at], float(gains[at]))
