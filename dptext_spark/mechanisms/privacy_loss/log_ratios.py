"""The figures of a law that decide the ε of a record. They are read off the sampled integers, over all pairs of compared words.

Between words that share an output set, over every ordered pair of every set:

- R, the largest range of ρ(u) = ln P(u|w) - ln P(u|w') over the outputs u;
- the largest |ρ(u)|;
- for each order α of a fixed grid the largest Rényi divergence D_α = ln Σ P(u|w)^α P(u|w')^(1-α) / (α - 1).

All figures are of the whole lexicon, never of a record's own words. So their composition holds if words differ from place to
place.

Under metric DP the range of a pair is at most a slope times its distance. For P ∝ exp(-ε·m(w,u)/2) with m a metric, ρ less a
constant lies within ±ε·m(w,w')/2. Along a list ranges of steps add up. The pick among several lists does not depend on the word,
so seeing the pick can only add information. There the range of a single list counts, though that of the average may be larger.

The range of the log ratio: the largest loss of a fluent draw, whatever the public pairs are (concepts/mechanisms).

Let r(u) = ln f_w(u) - ln f_w'(u). The loss of w and w' is R = max_u r - min_u r, the supremum over all
positive b. The search has two steps. Logarithms in fixed point cover every pair. Among those within the error
of the largest, the integers decide: e^R = f_w(u1)·f_w'(u2) / (f_w'(u1)·f_w(u2)), a ratio of integers up to
2^48.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.arrays import F64, I32, I64, U32, U64, Ids
from dptext_spark.mechanisms.base import TOTAL, Sampler
from dptext_spark.mechanisms.privacy_loss.accountant import LEAST, OCTAVES, STEP, RecordLoss
from dptext_spark.mechanisms.privacy_loss.exact_losses import (
    BLOCK,
    COUNT_ERROR,
    READ,
    share,
    weights_of_groups,
)
from dptext_spark.mechanisms.privacy_loss.loss import LOG_SLACK, Loss
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.mechanisms.samplers.fluent import FluentSampler
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler
from dptext_spark.runtime.display import Counted
from dptext_spark.runtime.jit import Int, compiled

# Outputs of ordered pairs that are looked at: for every figure, some 50 ns each; for R alone, some 2 ns each.
MOST_EXACT, MOST_PAIRS = 100_000_000, 4_000_000_000
# A power below is left out: beside a sum of at least 1 it is nothing. One above is infinite, as its squares are.
FAINT, VAST = 1e-30, 1e150
SLACK = 1e-12  # absolute, of a difference of logarithms of 64-bit integers; relative, of what is summed from their exponentials


@compiled
def _ranges(logs: Any, found: Any) -> None:
    """Raise found float64[2], (R, the largest loss), to those of the pairs of rows of logs float64[n, K]."""
    rows, width = logs.shape
    for i in range(rows):
        for j in range(i):
            low, high = np.inf, -np.inf
            for u in range(width):
                gap = logs[i, u] - logs[j, u]
                low, high = min(low, gap), max(high, gap)
            found[0] = max(found[0], high - low)
            found[1] = max(found[1], max(high, -low))


@compiled
def _bounded(logs: Any, found: Any) -> None:
    """Do the same by a bound that needs no pairs. With each row centred, R is at most twice the largest spread of an output."""
    rows, width = logs.shape
    middle = np.empty(rows)
    for i in range(rows):
        low, high = np.inf, -np.inf
        for u in range(width):
            low, high = min(low, logs[i, u]), max(high, logs[i, u])
        middle[i] = (low + high) / 2.0
    for u in range(width):
        low, high = np.inf, -np.inf
        least, most = np.inf, -np.inf
        for i in range(rows):
            centred = logs[i, u] - middle[i]
            low, high = min(low, centred), max(high, centred)
            least, most = min(least, logs[i, u]), max(most, logs[i, u])
        found[0] = max(found[0], 2.0 * (high - low))
        found[1] = max(found[1], most - least)


@compiled
def _divergences(logs: Any, probability: Any, octaves: Int, base: Any, sums: Any) -> None:
    """Raise the sums Σ p·e^((α-1)ρ), float64[octaves · b], to those of the ordered pairs of rows.

    `logs` is float64[n, K], ln p. `base` float64[b] are the least orders α - 1, doubled `octaves` times.
    """
    (rows, width), orders = logs.shape, base.shape[0]
    total = np.empty(orders * octaves)
    for i in range(rows):
        for j in range(rows):
            if i == j:
                continue
            total[:] = 0.0
            for u in range(width):
                gap, p = logs[i, u] - logs[j, u], probability[i, u]
                for b in range(orders):
                    power = np.exp(base[b] * gap)
                    for octave in range(octaves):
                        if power < FAINT:
                            break
                        total[octave * orders + b] += p * power
                        power = power * power if power < VAST else np.inf
            for k in range(orders * octaves):
                sums[k] = max(sums[k], total[k])


def between_groups(sampler: Sampler, groups: Ids, progress: Counted | None = None) -> RecordLoss:
    """Compare all words of each group, by the integers that are sampled.

    Args:
        sampler: with laws, whose words of one group have the same possible outputs.
        groups: int32[V], equal numbers are of one group.
        progress: progress callback, called with how many words are done, of how many; twice over.
    """
    _, heads, sizes = np.unique(groups, return_index=True, return_counts=True)
    pairs = float((sizes.astype(np.float64) ** 2 * _widths(sampler, heads.astype(np.int32))).sum())
    closely, by_pairs = pairs <= MOST_EXACT, pairs <= MOST_PAIRS
    largest = np.zeros(2)
    for _, weight in weights_of_groups(sampler, groups, progress):
        if weight is None or not weight.all():
            return RecordLoss(
                math.inf,
                why="A word can become what another of its output set cannot, so that a draw may lose without bound.",
            )
        (_ranges if by_pairs else _bounded)(_logs(weight), largest)
    spread, epsilon = (float(figure) + SLACK if figure else 0.0 for figure in largest)
    # Equal integers are equal laws.
    if not closely or not epsilon:
        return RecordLoss(epsilon, spread=spread)
    base = LEAST * 2.0 ** (np.arange(STEP) / STEP)
    sums = np.ones(STEP * OCTAVES)
    with np.errstate(over="ignore"):
        for _, weight in weights_of_groups(sampler, groups, progress):
            assert weight is not None
            logs = _logs(weight)
            _divergences(logs, np.exp(logs), OCTAVES, base, sums)
    orders = LEAST * 2.0 ** (np.arange(STEP * OCTAVES) / STEP)
    # A power of 2^OCTAVES errs by so many times the error of its base.
    slack = SLACK * 2.0**OCTAVES
    divergences = np.minimum((np.log(sums) + slack) / orders, epsilon)
    return RecordLoss(epsilon, spread=spread, divergences=tuple(divergences.tolist()))


def _widths(sampler: Sampler, words: Ids) -> I64:
    """Return the number of outputs of each of int32[n] words, int64[n]."""
    widths = [np.empty(0, np.int64)]
    for first in range(0, len(words), READ):
        laws = sampler.laws(words[first : first + READ])
        assert laws is not None
        widths.append(np.diff(laws.starts))
    return np.concatenate(widths)


def _logs(weight: U64) -> F64:
    """Return ln P of integers out of 2^63."""
    return np.log(weight.astype(np.float64) / TOTAL)


def along_lists(sampler: OrderingSampler, progress: Counted | None = None) -> RecordLoss:
    """Return the largest loss and range of two neighbours of a list, by the integers of its table; longer distances are sums."""
    words, lists = sampler.place.shape
    edges, start, width = (np.asarray(a) for a in (sampler.edges, sampler.start, sampler.width))
    largest = np.zeros(2)
    for first in range(0, words - 1, BLOCK):
        last = min(first + BLOCK, words - 1)
        _steps(edges, start, width, float(TOTAL // lists), float(COUNT_ERROR), first, last, largest)
        if progress:
            progress(last + 1, words)
    spread, epsilon = (float(figure) + SLACK for figure in largest)
    return RecordLoss(epsilon, spread=spread, by_distance=True)


@compiled
def _steps(
    edges: Any, start: Any, width: Any, many: float, error: float, first: Int, last: Int, found: Any
) -> None:
    """Raise found, (R, the largest loss), to those of positions i and i + 1 of a list, the error of counts included."""
    words = start.shape[0]
    for i in range(first, last):
        above, below = 0.0, 0.0
        for j in range(words):
            here = share(edges, start, width, i, j) * many
            next_count = share(edges, start, width, i + 1, j) * many
            above = max(above, (here + error) / (next_count - error))
            below = max(below, (next_count + error) / (here - error))
        up, down = np.log(above), np.log(below)
        found[0] = max(found[0], up + down)
        found[1] = max(found[1], max(up, down))


def by_distances(sampler: ExponentialSampler) -> RecordLoss:
    """Return the range for each unit of distance of P ∝ exp(-ε'·m/2): ε' of the law, with its rounding."""
    return RecordLoss(
        float(sampler.guarantee.epsilon),
        spread=2.0 * float(sampler.figures[0]) * (1.0 + SLACK),
        additive=4.0 * sampler.slack,
        by_distance=True,
    )


POINT = 26  # bits behind the point: ln 2^24 times 2^26 fits int32, and so does a difference of two such
NEAR = 8  # in these units: four logarithms are rounded, and compared with four others


@compiled
def _widest(logs: I32, factor: U32, words: Ids, starts: I64, counts: I32) -> tuple[Int, Int, Int, Int]:
    """Return (w, w', u1, u2) of the largest range over the pairs within groups; w is -1 if there is no pair.

    `logs` int32[V, k] are ln f in fixed point. `words` int32[V] are by group, from `starts` int64[g + 1] on; `counts` their
    outputs.
    """
    best, ratio = np.int64(-1), -1.0
    widest = (np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1))
    for group in range(starts.shape[0] - 1):
        for a in range(starts[group], starts[group + 1]):
            first = logs[words[a]]
            for b in range(a + 1, starts[group + 1]):
                second = logs[words[b]]
                high, low = np.int32(-(2**31)), np.int32(2**31 - 1)
                count = counts[words[a]]
                for j in range(count):
                    gap = np.int32(first[j] - second[j])
                    high, low = max(high, gap), min(low, gap)
                spread = np.int64(high) - np.int64(low)
                if spread + NEAR < best:
                    continue
                best = max(best, spread)
                mine, other = factor[words[a]], factor[words[b]]
                top, bottom = np.int64(0), np.int64(0)
                for j in range(count):
                    # Products of two numbers up to 2^24: exact.
                    if np.uint64(mine[j]) * np.uint64(other[top]) > np.uint64(mine[top]) * np.uint64(
                        other[j]
                    ):
                        top = np.int64(j)
                    if np.uint64(mine[j]) * np.uint64(other[bottom]) < np.uint64(mine[bottom]) * np.uint64(
                        other[j]
                    ):
                        bottom = np.int64(j)
                up = np.float64(np.uint64(mine[top]) * np.uint64(other[bottom]))
                exact = up / np.float64(np.uint64(other[top]) * np.uint64(mine[bottom]))
                if exact > ratio:
                    ratio = exact
                    widest = (np.int64(words[a]), np.int64(words[b]), top, bottom)
    return widest


def by_log_range(sampler: FluentSampler, progress: Counted | None = None) -> Loss:
    """Return the largest range over the pairs of words that share an output set: their loss under the worst of all priors."""
    sets, factor = np.asarray(sampler.sets), np.asarray(sampler.factor)
    _, group = np.unique(sets, axis=0, return_inverse=True)
    of_word = group.reshape(-1)[sampler.of_word]
    words = np.argsort(of_word, kind="stable").astype(np.int32)
    sizes = np.bincount(of_word)
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    counts = (sets >= 0).sum(axis=1).astype(np.int32)[sampler.of_word]
    logs = np.rint(np.log(np.maximum(factor, 1)) * float(1 << POINT)).astype(np.int32)
    pairs = int((sizes * (sizes - 1) // 2).sum())
    w, v, top, bottom = (int(place) for place in _widest(logs, factor, words, starts, counts))
    value = 0.0
    if w >= 0:
        above, below = (
            int(factor[w, top]) * int(factor[v, bottom]), int(factor[v, top]) * int(factor[w, bottom])
        )  # fmt: skip
        value = math.log1p((above - below) / below)
    if progress:
        progress(len(factor), len(factor))
    method = (
        "every pair of words that share an output set, for every prior: the range of the log ratio over the outputs, from the "
        "integers of the law"
    )
    slack = LOG_SLACK if value else 0.0
    return Loss(value + slack, max(0.0, value - slack), pairs, pairs, (w, v) if w >= 0 else None, method)
