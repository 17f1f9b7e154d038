"""The worst-case loss of a law that is really sampled: what certificates state and exact calibration is steered by.

The loss of a pair of words is max over outputs u of |ln P(u|w) - ln P(u|w')|; under metric DP it is divided by their distance.
It is read off the integers that are sampled, never off the formula that they were made from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from dptext_spark.mechanisms.base import Law

# Told how many words are done, of how many.
Progress = Callable[[int, int], None]
# A logarithm of a ratio of two 64-bit integers, taken in float64, errs by less than this.
SLACK = 1e-14


class HasLaw(Protocol):
    """A sampler with a closed form."""

    def law(self, word_id: int) -> Law | None:
        """Return the exact law of a word."""


@dataclass(frozen=True)
class Loss:
    """The largest loss that was found.

    Attributes:
        value: the loss, in ε (per unit of distance under metric DP), with its slack added: no examined pair exceeds it.
        attained: the loss of the worst pair, with its slack taken off: that pair has at least this.
        pairs: pairs of words examined, or covered by the stated bound.
        total: pairs that the guarantee speaks of.
        worst: (w, w', u), ids of the worst pair and the output that tells them apart best; None where there is no pair.
        method: how it was found, in words.
    """

    value: float
    attained: float
    pairs: int
    total: int
    worst: tuple[int, int, int] | None
    method: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-able dictionary."""
        return asdict(self)


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
    value, worst, pairs = 0.0, None, 0
    for members in groups.values():
        if len(members) == 1:
            continue
        pairs += len(members) * (len(members) - 1) // 2
        laws = [sampler.law(word) for word in members]
        weights = np.array([law.weight for law in laws if law is not None])
        high, low = weights.argmax(axis=0), weights.argmin(axis=0)
        column = np.arange(weights.shape[1])
        losses = np.log(weights[high, column].astype(np.float64) / weights[low, column].astype(np.float64))
        u = int(losses.argmax())
        if worst is None or losses[u] > value:
            first = laws[0]
            assert first is not None
            value, worst = float(losses[u]), (members[int(high[u])], members[int(low[u])], int(first.ids[u]))
    if progress:
        progress(words, words)
    method = (
        "every pair of words that share an output set, and every output, from the integers that are sampled"
    )
    slack = SLACK if worst else 0.0
    return Loss(value + slack, max(0.0, value - slack), pairs, pairs, worst, method)


def worst_loss(sampler: Any, words: int, progress: Progress | None = None) -> Loss:
    """Return the largest loss of a compiled mechanism, by the way that its law allows.

    Args:
        sampler: of any mechanism.
        words: V.
        progress: is told how many words are done.
    """
    if sampler.guarantee.kind == "epsilon_dp_within_group":
        return within_groups(sampler, words, progress)
    loss: Loss = sampler.loss(progress)  # each kernel knows the bound that closes its pairs
    return loss
