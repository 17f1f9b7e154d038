"""The worst-case loss between words that share an output set, read off the integers that are sampled."""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

import numpy as np

from dptext_spark.mechanisms.base import Law
from dptext_spark.mechanisms.losses.loss import LOG_SLACK, Loss, Progress


class HasLaw(Protocol):
    """A sampler with a closed form."""

    def law(self, word_id: int) -> Law | None:
        """Return the exact law of a word."""


def within_groups(sampler: HasLaw, words: int, progress: Progress | None = None) -> Loss:
    """Return the largest loss between words that share an output set (the same set of possible outputs), exactly.

    Over a group the worst loss of an output is ln of its largest weight over its smallest, so all pairs are covered by one
    pass over the group's table.

    Args:
        sampler: a finite law for each word.
        words: V.
        progress: is told how many words are read.
    """
    groups: dict[bytes, list[int]] = defaultdict(list)
    for word in range(words):
        law = sampler.law(word)
        assert law is not None
        groups[law.ids.tobytes()].append(word)
        if progress and word % 1000 == 0:
            progress(word, words)
    value, worst, pairs, differ = 0.0, None, 0, False  # equal integers lose nothing, exactly
    for members in groups.values():
        if len(members) == 1:
            continue
        pairs += len(members) * (len(members) - 1) // 2
        laws = [sampler.law(word) for word in members]
        weights = np.array([law.weight for law in laws if law is not None])
        high, low = weights.argmax(axis=0), weights.argmin(axis=0)
        column = np.arange(weights.shape[1])
        differ = differ or bool((weights[high, column] != weights[low, column]).any())
        losses = np.log(weights[high, column].astype(np.float64) / weights[low, column].astype(np.float64))
        u = int(losses.argmax())
        if worst is None or losses[u] > value:
            value, worst = float(losses[u]), (members[int(high[u])], members[int(low[u])])
    if progress:
        progress(words, words)
    method = (
        "every pair of words that share an output set, and every output, from the integers that are sampled"
    )
    slack = LOG_SLACK if differ else 0.0
    return Loss(value + slack, max(0.0, value - slack), pairs, pairs, worst, method)
