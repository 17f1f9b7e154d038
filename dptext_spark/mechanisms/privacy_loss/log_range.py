"""The range of the log ratio: what a fluent draw loses at most, whatever the public pairs are (concepts/mechanisms).

With r(u) = ln f_w(u) - ln f_w'(u) the loss of w and w' is R = max_u r - min_u r, the supremum over all positive b. It is found
in two steps: over every pair by logarithms in fixed point, and for those within their error of the largest by the integers
themselves, e^R = f_w(u1)·f_w'(u2) / (f_w'(u1)·f_w(u2)), a ratio of integers up to 2^48.
"""

from __future__ import annotations

import math

import numpy as np

from dptext_spark.arrays import I32, I64, U32, Ids
from dptext_spark.mechanisms.privacy_loss.loss import LOG_SLACK, Loss
from dptext_spark.mechanisms.samplers.fluent import FluentSampler
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.progress import Counted

POINT = 26  # bits behind the point: ln 2^24 times 2^26 fits int32, and so does a difference of two such
NEAR = 8  # in these units: four logarithms are rounded, and compared with four others


@compiled
def _widest(logs: I32, factor: U32, words: Ids, starts: I64, counts: I32) -> tuple[Int, Int, Int, Int]:
    """Return (w, w', u1, u2) of the largest range over the pairs within each group; the first is -1 where there is no pair.

    Args:
        logs: int32[V, k], ln f in fixed point.
        factor: uint32[V, k].
        words: int32[V], by group.
        starts: int64[g + 1], the words of each group.
        counts: int32[V], how many outputs each word has.
    """
    best, ratio = np.int64(-1), -1.0
    found = (np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1))
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
                    found = (np.int64(words[a]), np.int64(words[b]), top, bottom)
    return found


def by_log_range(sampler: FluentSampler, progress: Counted | None = None) -> Loss:
    """Return the largest range over the pairs of words that share an output set: their loss under the worst of all priors.

    Args:
        sampler: of fluent draws.
        progress: is told once that all words are done.
    """
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
