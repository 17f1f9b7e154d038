"""A lower bound on the δ of a released word, from draws: whether it lies on one word's side of a half-space.

Under (ε, δ)-DP no event is more likely under w than e^ε times as likely under w', and δ more. Any set of outputs is an event;
taken are the words u with <φ(u), φ(w) - φ(w')> above a threshold, for pairs of words whose clipped vectors lie far apart. The
pair and its threshold are chosen on a trial; both probabilities are bounded on draws of their own by Clopper and Pearson (1934).
What is found can refute a claim about the word that is released; it can never confirm one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dptext_spark.arrays import F32, Bools, Ids
from dptext_spark.mechanisms.extent import distant_pairs
from dptext_spark.mechanisms.privacy_loss.loss import Loss, clopper_pearson
from dptext_spark.mechanisms.privacy_loss.sampled import CONFIDENCE, drawn
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.runtime.progress import Counted

PAIRS = 3
TRIAL = 1_500  # draws of each word of a pair, to choose by
DRAWS = 32_000  # of each word of the chosen pair, to judge by
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
    """Return a lower bound on the δ that distant pairs of words need at the claimed ε.

    Args:
        sampler: of a noise mechanism whose guarantee is approximate.
        progress: is told how many draws are done.
    """
    centers = np.asarray(sampler.centers)
    words = len(centers)
    pairs = distant_pairs(centers, PAIRS)
    whole = 2 * (len(pairs) * TRIAL + DRAWS)
    times = math.exp(min(sampler.guarantee.epsilon, 700.0))
    best: Event | None = None
    for number, pair in enumerate(pairs):
        sides = [drawn(sampler, word, number, side, TRIAL) for side, word in enumerate(pair)]
        turned = _event(centers, (pair[1], pair[0]), sides[::-1], times)
        for event in (_event(centers, pair, sides, times), turned):
            best = event if best is None or event.gain > best.gain else best
        if progress:
            progress(2 * (number + 1) * TRIAL, whole)
    low = 0.0
    if best is not None:
        sides = [drawn(sampler, word, len(pairs), side, DRAWS) for side, word in enumerate(best.pair)]
        low = _bound(best, sides, times)
        if progress:
            progress(whole, whole)
    method = (
        f"half-spaces between distant words, the pair and its threshold chosen on {TRIAL:,} draws of each word, its δ "
        f"bounded on {DRAWS:,} others; such a search can refute, not confirm"
    )
    return Loss(
        math.inf, 0.0, len(pairs), words * (words - 1) // 2, None if best is None else best.pair, method,
        confidence=CONFIDENCE, delta=max(0.0, low),
    )  # fmt: skip


def _event(centers: F32, pair: tuple[int, int], sides: list[Ids], times: float) -> Event:
    """Return the half-space along the difference of a pair that tells it apart best."""
    gap = centers[pair[0]].astype(np.float64) - centers[pair[1]].astype(np.float64)
    along = centers.astype(np.float64) @ gap
    seen = [np.sort(along[side]) for side in sides]
    levels = np.unique(np.quantile(np.concatenate(seen), np.linspace(0.0, 1.0, LEVELS)))
    first, second = (1.0 - np.searchsorted(side, levels) / len(side) for side in seen)
    gains = first - times * second
    at = int(gains.argmax())
    return Event(pair, along >= levels[at], float(gains[at]))


def _bound(event: Event, sides: list[Ids], times: float) -> float:
    """Return a lower bound on P(event | w) - e^ε·P(event | w'): two bounds, each wrong in half of the cases allowed."""
    alpha = (1 - CONFIDENCE) / 2
    hits, many = [int(event.holds[side].sum()) for side in sides], len(sides[0])
    low, high = clopper_pearson(hits, many, alpha)
    return float(low[0] - times * high[1])
