"""The worst-case loss between words that share an output set, read off the integers that are sampled."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from dptext_spark.mechanisms.base import Law
from dptext_spark.mechanisms.privacy_loss.loss import Loss, Progress

# Relative, of a loss: the roundings of a difference, a weight, their quotient and its logarithm.
ERROR = 1e-14


class HasLaw(Protocol):
    """A sampler with a closed form."""

    def law(self, word_id: int) -> Law | None:
        """Return the exact law of a word."""


class _Group:
    """The words that share an output set: for each output the largest and the smallest weight, and whose they are."""

    def __init__(self, word: int, weight: npt.NDArray[np.uint64]) -> None:
        self.count = 1
        self.high, self.low = weight.copy(), weight.copy()
        self.highest, self.lowest = (np.full(len(weight), word, np.int32) for _ in range(2))

    def add(self, word: int, weight: npt.NDArray[np.uint64]) -> None:
        """Take in the law of one more word."""
        self.count += 1
        above, below = weight > self.high, weight < self.low
        self.high[above], self.highest[above] = weight[above], word
        self.low[below], self.lowest[below] = weight[below], word


def within_groups(sampler: HasLaw, words: int, progress: Progress | None = None) -> Loss:
    """Return the largest loss between words that share an output set (the same set of possible outputs), exactly.

    Over a group the worst loss of an output is ln of its largest weight over its smallest, so all pairs are covered by one
    pass over the group's table.

    Args:
        sampler: a finite law for each word.
        words: V.
        progress: is told how many words are read.
    """
    groups: dict[bytes, _Group] = {}
    for word in range(words):
        law = sampler.law(word)
        assert law is not None
        key = law.ids.tobytes()
        if key in groups:
            groups[key].add(word, law.weight)
        else:
            groups[key] = _Group(word, law.weight)
        if progress and word % 1000 == 0:
            progress(word, words)
    value, worst, pairs = 0.0, None, 0
    for group in groups.values():
        if group.count == 1:
            continue
        pairs += group.count * (group.count - 1) // 2
        # The difference of integers is exact, so that a small loss keeps its digits and equal weights lose nothing.
        losses = np.log1p((group.high - group.low).astype(np.float64) / group.low.astype(np.float64))
        u = int(losses.argmax())
        if worst is None or losses[u] > value:
            value, worst = float(losses[u]), (int(group.highest[u]), int(group.lowest[u]))
    if progress:
        progress(words, words)
    method = (
        "every pair of words that share an output set, and every output, from the integers that are sampled"
    )
    return Loss(value * (1.0 + ERROR), value * (1.0 - ERROR), pairs, pairs, worst, method)
