"""A lower bound on the loss of a mechanism without a law in closed form, from draws, at a stated confidence.

For a pair of words an event is chosen on half of the draws (the outputs that speak for w more often than the claim allows
for, or, if there is none, those that speak for it most), and its probabilities are bounded on the other half, by Clopper and
Pearson (1934). What is found this way can refute a claim; it can never confirm one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from itertools import chain, islice

import numpy as np

from dptext_spark.arrays import F32, Ids
from dptext_spark.lexicon.neighbors import nearest
from dptext_spark.mechanisms.privacy_loss.loss import Loss, clopper_pearson
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.randomness.draws import Draws
from dptext_spark.runtime.progress import Counted

CONFIDENCE = 1 - 1e-6  # that all bounds together hold
PAIRS = 24
DRAWS = 4_000  # of each word of a pair
SEARCHED = 2_048  # words whose nearest word is looked for
_SUBKEY = hashlib.sha256(b"certificate").digest()  # public: nothing private is drawn here

Distance = Callable[[int, int], float]


def by_draws(
    sampler: NoiseSampler, progress: Counted | None = None, pairs: int = PAIRS, draws: int = DRAWS
) -> Loss:
    """Return what pairs of near words, and of distant ones, are found to lose.

    Args:
        sampler: of a noise mechanism.
        progress: is told how many pairs are done.
        pairs: how many are looked at.
        draws: of each word of a pair.
    """
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
    """Return the nearest pairs among the first words, and as many that lie at both ends of the lexicon or half of it apart.

    Words with equal vectors are left out: their law is one and the same, and no distance divides a loss.
    """
    words = len(centers)
    ids = np.arange(min(words, SEARCHED), dtype=np.int32)
    near, gaps = nearest(np.ascontiguousarray(centers), ids, 2, "euclidean")
    apart = gaps[:, 1] > 0
    order = ids[apart][np.argsort(gaps[apart, 1], kind="stable")][: count // 2]
    found = [(int(w), int(near[w, 1])) for w in order]
    half = range(words // 2)
    distant = chain(((i, words - 1 - i) for i in half), ((i, i + words // 2) for i in half))
    differ = ((w, v) for w, v in distant if (centers[w] != centers[v]).any())
    return list(dict.fromkeys([*found, *islice(differ, count - len(found))]))


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
