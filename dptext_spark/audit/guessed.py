"""`bayes`: how often each word is guessed from its replacement alone, over all words that a policy draws (MECHANISMS §15).

The adversary is the Bayes-optimal one with Zipf's law over the lexicon's order as its prior. Unlike the figures of a single
law, what is guessed for an output depends on every word. Where laws can be read, the figure of each word is known; where the
best guesses are not (noise), only the success on a token is, between bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptext_spark.audit.adversary import adversary, is_small
from dptext_spark.audit.backward import TRIES, has_columns
from dptext_spark.audit.bayes import (
    BACKWARDS,
    ROUNDING,
    WORST,
    Reals,
    found_by_word,
    guesses,
    guesses_backwards,
)
from dptext_spark.audit.points import Measure
from dptext_spark.audit.spread import statistic
from dptext_spark.audit.word_figures import Bounded
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import Ids, Sampler
from dptext_spark.mechanisms.kernels import TableSampler

TOKEN, WORST_WORDS = "token", "worst"


@dataclass(frozen=True)
class Guessed:
    """How often a word is guessed; its statistics are those of other figures, and `token` and `worst`."""

    name: ClassVar[str] = "bayes"
    meaning: ClassVar[str] = (
        "the probability that it is guessed from its replacement alone, by the best guess of who knows how frequent words are"
    )
    statistics: ClassVar[tuple[str, ...]] = (TOKEN, WORST_WORDS)


@dataclass(frozen=True, eq=False)
class Guesses:
    """What was found of it at one ε.

    Attributes:
        words: int32[n], the words that can be the input.
        of: float64[n] with bounds, of each word; None where the law cannot be read.
        token: of a word that is drawn from the prior.
        how: how it was found, as a sentence without its end; empty where it is exact.
    """

    words: Ids
    of: Bounded | None
    token: Measure
    how: str

    @property
    def exact(self) -> bool:
        """Whether it was read off laws."""
        return self.token.exact

    def statistic(self, side: str, name: str) -> tuple[float, int | None]:
        """Return (a statistic of the values or of a bound, the id of a word that has it).

        Args:
            side: `values`, `lower` or `upper`.
            name: `token` (words weighted by their public frequency), `worst` (the mean of the hundredth of the words that is
                guessed most often), or one of :func:`~dptext_spark.audit.spread.statistic`.

        Raises:
            SettingsError: a statistic over words where only the success on a token is known.
        """
        if name == TOKEN:
            return float(getattr(self.token, "value" if side == "values" else side)), None
        if self.of is None:
            raise SettingsError(
                f"require: 'bayes {name}' is about single words, and without a law to read only the success on a token can be "
                f"bounded; valid: 'bayes {TOKEN}'."
            )
        values = getattr(self.of, side)
        if name == WORST_WORDS:
            return float(np.sort(values)[-max(1, math.ceil(WORST * len(values))) :].mean()), None
        value, place = statistic(values, name)
        return value, None if place is None else int(self.words[place])


def guessed(sampler: Sampler, prior: Reals, confidence: float, tries: int = TRIES) -> Guesses:
    """Measure it.

    Args:
        sampler: of any mechanism.
        prior: float64[V], sums to 1; 0 for words that cannot be the input.
        confidence: that both bounds hold, where it is estimated.
        tries: words drawn from the prior, where it is.
    """
    words = np.flatnonzero(prior).astype(np.int32)
    lawful = isinstance(sampler, TableSampler) or sampler.law(0) is not None
    if lawful and not (has_columns(sampler) and not is_small(len(prior))):
        guess, best, _ = guesses(sampler, prior)
        return _read(words, found_by_word(guess, best, prior), prior, 0.0, "")
    if lawful:
        found = found_by_word(*guesses_backwards(sampler, prior), prior)
        return _read(words, found, prior, ROUNDING, BACKWARDS[:1].lower() + BACKWARDS[1:-1])
    best_known = adversary(sampler, prior, tries=tries, confidence=confidence)
    assert best_known.alone is not None
    return Guesses(words, None, best_known.alone, best_known.how)


def _read(words: Ids, found: Reals, prior: Reals, room: float, how: str) -> Guesses:
    values = np.minimum(found[words], 1.0)
    success = min(1.0, float((prior * found).sum()))
    token = Measure(success, success, min(1.0, success * (1.0 + room)), exact=not room)
    return Guesses(words, Bounded(values, values, values), token, how)
