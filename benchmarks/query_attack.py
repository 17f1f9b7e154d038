"""The query attack: how often a word must be asked for until the most frequent answer gives it away.

Paper: Chen et al. 2022, "A Customized Text Sanitization Mechanism with Differential Privacy", Algorithm 2 and Table 7.
Somebody who may query the mechanism for the same hidden word again and again guesses the output that came most often, ties
uniformly. N is the smallest number of queries whose guess is right in 95 % of the repetitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.arrays import F64

RATE = 0.95
REPETITIONS = 2_000
MOST = 1 << 24  # queries; a law that needs more has a runner-up within a thousandth of the input
CELLS = 1 << 22  # counts held at once


def queries_needed(
    probability: F64,
    place: int = 0,
    *,
    rate: float = RATE,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> float:
    """Return N, or infinity where the input is not the single most likely output: then no number of queries is enough.

    The rate is measured anew for each N tried, by counts of N draws; a uniform guess among tied outputs counts as its
    chance to be right. It is taken to rise with N: N is doubled until the rate is reached and then halved in on, so near its
    value it varies by a few percent from seed to seed, as a search step by step would.

    Args:
        probability: float64[m], the law of the input; it sums to 1.
        place: where in it the input stands.
        rate: the share of repetitions in which the guess must be right.
        repetitions: how often each N is tried.
        seed: of the draws; equal arguments give equal results.
    """
    law = np.asarray(probability, np.float64)
    others = np.sort(np.delete(law, place))[::-1]
    if len(others) and law[place] <= others[0]:
        return math.inf
    # Outputs that are never the most frequent, because they are never drawn, need no count of their own.
    ordered = np.concatenate([law[place : place + 1], others[others > 0]])
    ordered /= ordered.sum()

    def reached(queries: int) -> bool:
        random = np.random.default_rng([seed, queries])
        return success_rate(ordered, queries, repetitions, random) >= rate

    high = 1
    while not reached(high):
        high *= 2
        if high > MOST:
            return math.inf
    low = high // 2  # not reached, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def success_rate(law: F64, queries: int, repetitions: int, random: Any) -> float:
    """Return how often output 0 is guessed from the counts of so many draws, on average over the repetitions.

    Args:
        law: float64[m], the most likely outputs first: counting ends where no draw is left.
        queries: draws of each repetition, at least 1.
        repetitions: how many.
        random: a NumPy generator.
    """
    right, done, at_once = 0.0, 0, max(1, CELLS // len(law))
    while done < repetitions:
        many = min(at_once, repetitions - done)
        counts = random.multinomial(queries, law, size=many)
        most = counts.max(axis=1)
        right += float(((counts[:, 0] == most) / (counts == most[:, None]).sum(axis=1)).sum())
        done += many
    return right / repetitions


def nearly_tied_law(first: float, second: float, outputs: int) -> F64:
    """Return a law of which the two most likely outputs are known, the rest uniform: float64[K], the input first.

    Args:
        first: p0, the probability of the input.
        second: p1, that of the runner-up; p0 + p1 <= 1.
        outputs: K, 2 or more.

    Raises:
        ValueError: the two pass 1, or two outputs do not fill it.
    """
    rest = 1.0 - first - second
    if rest < -1e-12 or (outputs == 2 and rest > 1e-12):
        raise ValueError(f"p0 = {first} and p1 = {second} leave {rest:.3g} for {outputs - 2} outputs")
    each = max(0.0, rest) / (outputs - 2) if outputs > 2 else 0.0
    return np.array([first, second, *[each] * (outputs - 2)])
