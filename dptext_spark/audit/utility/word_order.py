"""Whether the words of a text stand in an order that a language has.

Perplexity is exp of the mean of -ln P(w | the one before) under a bigram model of a text that is neither the released one nor
what an adversary learnt from. Most of a fall of it comes from commoner words, which says nothing of how a text reads. Order
leaves that out: the mean of ln P(w | the one before), minus the same after the very same words are dealt anew over the places of
all texts. It is 0 for words in no order, and what their being common gains is in both terms.

Only words of the lexicon are scored; what stands before them may be the edge of a record, punctuation, or a word that the lexicon
lacks. Words are dealt by public numbers, some times over, and the mean is taken.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, I64, Ids
from dptext_spark.audit.attacks.bigrams import SPECIAL, Bigrams, states, with_edges
from dptext_spark.audit.estimates import Estimate, rate
from dptext_spark.errors import DataError

DEALS = 8
_SEED = int.from_bytes(hashlib.sha256(b"word order").digest()[:8], "little")  # public: a figure is repeatable


@dataclass(frozen=True)
class WordOrder:
    """How a text reads to a bigram model.

    Attributes:
        order: mean ln P(w | before) minus that of the same words dealt anew, in nats; its interval is over records.
        perplexity: exp(-mean ln P(w | before)).
    """

    order: Estimate
    perplexity: float


def word_order(words: Ids, bounds: I64, language: Bigrams) -> WordOrder:
    """Measure a text.

    Args:
        words: int32[n], ids of the lexicon; `EDGE` and `UNKNOWN` of :mod:`dptext_spark.text.tokens` for all else.
        bounds: int64[s + 1], record i is words[bounds[i]:bounds[i + 1]].
        language: bigrams of another text over the same lexicon.

    Raises:
        DataError: no word of the lexicon stands there.
    """
    here = np.flatnonzero(np.asarray(words) >= 0)
    if not len(here):
        raise DataError("texts: no word of the lexicon; valid: at least one.")
    own = _log_probability(words, bounds, here, language)
    return WordOrder(rate(*_gained(own, words, bounds, here, language)), math.exp(-float(own.mean())))


def order_by_record(words: Ids, bounds: I64, language: Bigrams) -> tuple[F64, I64]:
    """Return (Σ ln P(w | before) - the same of the words dealt anew, float64[s]; words of the lexicon, int64[s]) by record."""
    here = np.flatnonzero(np.asarray(words) >= 0)
    return _gained(_log_probability(words, bounds, here, language), words, bounds, here, language)


def _gained(own: F64, words: Ids, bounds: I64, here: I64, language: Bigrams) -> tuple[F64, I64]:
    """Do the same, where ln P(w | before) of the words at int64[m] places is known: `own`, float64[m]."""
    record, gained = np.searchsorted(bounds, here, side="right") - 1, own.copy()
    random = np.random.default_rng(_SEED)
    for _ in range(DEALS):
        shuffled = np.array(words, np.int32)
        shuffled[here] = random.permutation(shuffled[here])
        gained -= _log_probability(shuffled, bounds, here, language) / DEALS
    records = len(bounds) - 1
    total = np.asarray(np.bincount(record, gained, records), np.float64)
    return total, np.bincount(record, minlength=records)


@dataclass(frozen=True, eq=False)
class OwnOrder:
    """The word order of a text, which that of its replacements is a share of.

    Attributes:
        language: bigrams of a third text.
        nats: the text's own order.
    """

    language: Bigrams
    nats: float

    @classmethod
    def of(cls, words: Ids, bounds: I64, language: Bigrams) -> OwnOrder:
        """Measure the text itself.

        Raises:
            DataError: by that model its words are in no order.
        """
        own = word_order(words, bounds, language).order
        if not own.lower > 0:
            raise DataError(
                "language: by its word pairs the words of the private text are in no order; valid: a text of the same language, "
                "long enough to hold pairs of it."
            )
        return cls(language, own.value)

    def left(self, words: Ids, bounds: I64) -> Estimate:
        """Return which share of it a replacement has."""
        order = word_order(words, bounds, self.language).order
        return Estimate(order.value / self.nats, order.lower / self.nats, order.upper / self.nats)


def _log_probability(words: Ids, bounds: I64, here: I64, language: Bigrams) -> F64:
    """Return ln P(w | the state before) of the words at int64[m] places: float64[m]."""
    edge = language.words + SPECIAL - 1
    found = states(words, language.words)
    stream = with_edges(found, bounds, edge)
    place = here + 2 * (np.searchsorted(bounds, here, side="right") - 1) + 1
    return np.asarray(np.log(language.probability(stream[place - 1], stream[place])), np.float64)
