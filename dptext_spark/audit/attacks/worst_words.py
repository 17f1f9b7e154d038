"""The words that an adversary finds most often, where a law cannot be read: chosen by a trial, measured on draws of their own.

Words are taken evenly spaced from those that can be the input. Each is drawn a few times; the hundredth that is guessed most
often is drawn anew, for the trial flatters whom it chose. What is found is the mean over these words: other words of the lexicon
may be found more often.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from dptext_spark.audit.attacks.adversary import Adversary
from dptext_spark.audit.attacks.bayes import WORST
from dptext_spark.audit.attacks.tokens import Flags
from dptext_spark.audit.deniability.outcomes import interval
from dptext_spark.mechanisms.base import Ids, Sampler
from dptext_spark.randomness.draws import Draws

LOOKED_AT = 500  # words
TRIAL, FRESH = 10, 100  # draws of each word of the trial, and of each that it chose
SUBKEY = hashlib.sha256(b"worst words").digest()  # public: nothing private is drawn here


@dataclass(frozen=True)
class WorstWords:
    """How often the words that an adversary finds most are found.

    Attributes:
        mean: over these words; with `lower` and `upper`.
        words: their ids, the worst of the trial first, ties to the lower id.
        looked_at: how many words the trial took.
        draws: of each word in the trial, then of each of these words.
    """

    mean: float
    lower: float
    upper: float
    words: tuple[int, ...]
    looked_at: int
    draws: tuple[int, int]


def worst_words(
    sampler: Sampler, best: Adversary, drawn: Flags, confidence: float, looked_at: int = LOOKED_AT
) -> WorstWords:
    """Try an adversary.

    Args:
        sampler: of any mechanism.
        best: the adversary.
        drawn: bool[V], the words that can be the input; at least one.
        confidence: that both bounds hold (Clopper and Pearson 1934; draws of several words spread less than those of one with the
            same mean, Hoeffding 1956).
        looked_at: words of the trial, or a few less.
    """
    able = np.flatnonzero(drawn).astype(np.int32)
    words = able[np.unique(np.linspace(0, len(able) - 1, min(looked_at, len(able))).astype(np.int64))]
    trial = _found(sampler, best, words, TRIAL, 0)
    chosen = words[np.lexsort((words, -trial))][: max(1, math.ceil(WORST * len(words)))]
    fresh = _found(sampler, best, chosen, FRESH, 1)
    draws = FRESH * len(chosen)
    low, high = interval([int(fresh.sum())], draws, confidence)
    return WorstWords(
        float(fresh.sum()) / draws, float(low[0]), float(high[0]), tuple(int(word) for word in chosen), len(words),
        (TRIAL, FRESH),
    )  # fmt: skip


def _found(sampler: Sampler, best: Adversary, words: Ids, draws: int, turn: int) -> Ids:
    """Return how often each word is guessed out of so many draws of it: int64[n]."""
    inputs = np.repeat(words, draws)
    numbers = np.zeros((len(inputs), 2), np.uint64)
    numbers[:, 0] = np.uint64(turn) << np.uint64(32) | np.tile(np.arange(draws, dtype=np.uint64), len(words))
    numbers[:, 1] = inputs
    outputs = sampler.sample(inputs, Draws(SUBKEY, numbers))
    return np.asarray((best.guesses(outputs) == inputs).reshape(len(words), draws).sum(axis=1))
