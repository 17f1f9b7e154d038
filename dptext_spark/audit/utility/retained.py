"""What a replaced text is still good for, to compare mechanisms: words kept, meaning, word order, downstream accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F32, I64, Ids
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.audit.estimates import Estimate, rate
from dptext_spark.audit.utility.learning import TextClassifier
from dptext_spark.audit.utility.scoring import accuracy
from dptext_spark.audit.utility.text_metrics import vector_similarity

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


@dataclass(frozen=True)
class Sides:
    """Words of records, as the semantic similarity reads them."""

    words: Ids
    bounds: I64


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
    plain, shown = Sides(tokens.words, tokens.bounds), released(tokens)
    found = {
        KEPT: rate(tokens.by_record(same), tokens.by_record(tokens.drawn)),
        COSINE: vector_similarity(vectors, plain, Sides(shown, tokens.bounds)).mean,
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
    ends = np.append(0, np.cumsum(known))[bounds]
    taken = strings.take(pa.array(np.asarray(words)[known]))
    return list(pc.binary_join(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), taken), " ").to_pylist())
