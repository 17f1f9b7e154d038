"""What a replaced text is still good for, to compare mechanisms: words kept, meaning, word order, downstream accuracy.

Whether the words of a text stand in an order that a language has.

How likely words follow each other is told by a bigram model of a text that is neither the released one nor what an adversary
learnt from. Most of a gain in that comes from commoner words, which says nothing of how a text reads. Order leaves that out:
the mean of ln P(w | the one before), minus the same after the very same words are dealt anew over the places of all texts. It
is 0 for words in no order, and what their being common gains is in both terms.

Only words of the lexicon are scored; what stands before them may be the edge of a record, punctuation, or a word that the lexicon
lacks. Words are dealt by public numbers, some times over, and the mean is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F32, F64, I64, Ids, offsets
from dptext_spark.audit.attacks.bigrams import SPECIAL, Bigrams, states, with_edges
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.audit.estimates import Estimate, rate
from dptext_spark.audit.utility.learning import TextClassifier, accuracy
from dptext_spark.audit.utility.text_metrics import vector_similarity
from dptext_spark.errors import DataError

KEPT, COSINE, ACCURACY = "words kept", "semantic similarity", "accuracy of a classifier"
EMBEDDED = "similarity to an encoder"
ORDER, DISTINCT = "word order", "different words"
EXPLAINED = {
    KEPT: "The share of the replaced words that come out as themselves.",
    COSINE: "The mean cosine of the mean word vectors of a record and of its replacement.",
    EMBEDDED: "The mean cosine of the sentence embeddings of a record and of its replacement, read as the lexicon's words.",
    ORDER: "What is left of the text's own word order: how much likelier its words follow each other than the same words dealt "
    "anew over all places, by the word pairs of a third text, as a share of what it is in the text itself.",
    DISTINCT: "How many different words the release holds, for each different word of the text.",
    ACCURACY: "How often a classifier that learnt from replaced records predicts the label of another replaced record.",
}
TESTED = 4  # every fourth record is tested; the classifier learns from the others


def utilities(
    tokens: Tokens,
    vectors: F32,
    strings: pa.Array,
    labels: Sequence[str] | None = None,
) -> dict[str, Estimate]:
    """Measure what a replaced text is good for; intervals are bootstraps over records.

    Args:
        tokens: the text beside its replacement.
        vectors: float32[V, d] of the lexicon.
        strings: string[V], its words.
        labels: [s], one a record, for the accuracy; None leaves it out.

    Raises:
        DataError: no word on a side, or a label column with one class.
        SettingsError: labels, but no scikit-learn.
    """
    same = tokens.drawn & (tokens.words == tokens.outputs)
    shown = released(tokens)
    found = {
        KEPT: rate(tokens.by_record(same), tokens.by_record(tokens.drawn)),
        COSINE: vector_similarity(vectors, tokens, replace(tokens, words=shown)).mean,
        DISTINCT: Estimate.known(_different(shown) / _different(tokens.words)),
    }
    if labels is not None:
        found[ACCURACY] = downstream(shown, tokens.bounds, strings, labels)
    return found


def _different(words: Ids) -> int:
    """Return how many different words of the lexicon stand there."""
    return len(np.unique(words[words >= 0]))


def released(tokens: Tokens) -> Ids:
    """Return int32[n], what stands in the release: the outputs where words were drawn, else the words."""
    return np.where(tokens.drawn, tokens.outputs, tokens.words).astype(np.int32)


def downstream(words: Ids, bounds: I64, strings: pa.Array, labels: Sequence[str]) -> Estimate:
    """Return the accuracy on every fourth record of a classifier that learnt from the others.

    It sees the lexicon's words; unknown words, numbers and punctuation are left out.

    Args:
        words: int32[n]; negative for what is no word of the lexicon.
        bounds: int64[s + 1].
        strings: string[V].
        labels: [s].

    Raises:
        DataError: a label column with one class.
    """
    texts = joined(words, bounds, strings)
    test = np.arange(len(texts)) % TESTED == TESTED - 1
    (train, train_labels), (tested, test_labels) = (
        ([texts[i] for i in rows.tolist()], [labels[i] for i in rows.tolist()])
        for rows in map(np.flatnonzero, (~test, test))
    )
    model = TextClassifier(label="labels").fit(train, train_labels)
    return accuracy(model.predict(tested) == model.places(test_labels))


def joined(words: Ids, bounds: I64, strings: pa.Array) -> list[str]:
    """Return the words of each record with spaces between them."""
    known = np.asarray(words) >= 0
    ends = offsets(known)[bounds]
    taken = strings.take(pa.array(np.asarray(words)[known]))
    return list(pc.binary_join(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), taken), " ").to_pylist())


DEALS = 8
_SEED = int.from_bytes(hashlib.sha256(b"word order").digest()[:8], "little")  # public: a figure is repeatable


def word_order(words: Ids, bounds: I64, language: Bigrams) -> Estimate:
    """Return the mean of ln P(w | before) minus that of the same words dealt anew, in nats; its interval is over records.

    Args:
        words: int32[n], ids of the lexicon; `EDGE` and `UNKNOWN` of :mod:`dptext_spark.text.tokens` for all else.
        bounds: int64[s + 1], record i is words[bounds[i]:bounds[i + 1]].
        language: bigrams of another text over the same lexicon.

    Raises:
        DataError: no word of the lexicon stands there.
    """
    if not (np.asarray(words) >= 0).any():
        raise DataError("texts: no word of the lexicon; valid: at least one.")
    return rate(*order_by_record(words, bounds, language))


def order_by_record(words: Ids, bounds: I64, language: Bigrams) -> tuple[F64, I64]:
    """Return (Σ ln P(w | before) - the same of the words dealt anew, float64[s]; words of the lexicon, int64[s]) by record."""
    here = np.flatnonzero(np.asarray(words) >= 0)
    gained = log_probability(words, bounds, here, language)
    random = np.random.default_rng(_SEED)
    for _ in range(DEALS):
        shuffled = np.array(words, np.int32)
        shuffled[here] = random.permutation(shuffled[here])
        gained -= log_probability(shuffled, bounds, here, language) / DEALS
    record, records = np.searchsorted(bounds, here, side="right") - 1, len(bounds) - 1
    return np.bincount(record, gained, records).astype(np.float64), np.bincount(record, minlength=records)


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
        own = word_order(words, bounds, language)
        if not own.lower > 0:
            raise DataError(
                "language: by its word pairs the words of the private text are in no order; valid: a text of the same language, "
                "long enough to hold pairs of it."
            )
        return cls(language, own.value)

    def left(self, words: Ids, bounds: I64) -> Estimate:
        """Return which share of it a replacement has."""
        order = word_order(words, bounds, self.language)
        return Estimate(order.value / self.nats, order.lower / self.nats, order.upper / self.nats)


def log_probability(words: Ids, bounds: I64, here: I64, language: Bigrams) -> F64:
    """Return ln P(w | the state before) of the words at int64[m] places: float64[m]."""
    edge = language.words + SPECIAL - 1
    found = states(words, language.words)
    stream = with_edges(found, bounds, edge)
    place = here + 2 * (np.searchsorted(bounds, here, side="right") - 1) + 1
    return np.asarray(np.log(language.probability(stream[place - 1], stream[place])), np.float64)
