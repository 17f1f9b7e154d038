"""Utility of a replaced text: meaning, wording, word order, and the accuracy of classifiers that learn from it.

Likeness is the cosine of mean word vectors, ROUGE and BLEU (concepts/mechanisms, Audits). An encoder adds the cosine of sentence
embeddings and of sub-words. Each figure has a baseline: the same figure for a record and *another* record's replacement. Two
texts of one language share words, and mean word vectors point the same way, so a cosine of 0.8 may be no similarity at all.
1-Diffractor's Table 2 takes a sentence encoder's vectors, TrLaplace ROUGE-1, BLEU and BERTScore (Zhang et al. 2020). As there,
each sub-word of a text is matched with the most similar one of the other text. Precision is the mean over the replacement, recall
over the original. There are no weights for rare words and no rescaled baseline; vectors are those of the last layer, without
[CLS] and [SEP].

A bigram model gives the likelihood of word sequences. Its text is neither the released one nor the one that the adversary learnt
from. Most of a gain in likelihood comes from commoner words and says nothing of how a text reads. Order leaves that out: it is
the mean of ln P(w | the one before), minus the same after the same words are dealt anew over all texts' places. It is 0 for words
in no order; the gain of common words is in both terms and cancels out.

Only words of the lexicon are scored. The state before a word may be the edge of a record, punctuation, or a word that the lexicon
lacks. Words are dealt by public numbers, some times over, and the mean is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from dptext_spark.arrays import F32, F64, I32, I64, Ids, offsets
from dptext_spark.audit.attacks.attacked_text import SPECIAL, Bigrams, Tokens, states, with_edges
from dptext_spark.audit.results import (
    BOOTSTRAPPED,
    PERCENTILES,
    AuditResult,
    Estimate,
    Group,
    ResultView,
    mean,
    rate,
)
from dptext_spark.audit.text_classifier import TextClassifier, accuracy
from dptext_spark.errors import DataError, require_extra

ROWS = 1 << 13  # records whose mean vectors are held at once
ROUGE = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}
_SEED = 7


class RecordWords(Protocol):
    """The words of some records, such as :class:`dptext_spark.text.tokens.Reading`."""

    @property
    def words(self) -> I32:
        """int32[n], lexicon ids; negative for anything else."""

    @property
    def bounds(self) -> I64:
        """int64[s + 1], record i is words[bounds[i]:bounds[i + 1]]."""


@dataclass(frozen=True, kw_only=True)
class Similarity(AuditResult):
    """Similarity in meaning of records and their replacements, as a cosine.

    Attributes:
        others: the mean with another record's replacement: what similarity by chance is.
        left_out: records of which the original or the replacement holds nothing that can be compared.
    """

    mean: Estimate
    percentiles: Mapping[str, float]
    others: float
    unprotected: float
    records: int
    left_out: int

    def shown(self) -> ResultView:
        """Show the mean and the percentiles."""
        meaning = "Percentiles of the cosine: 5 % of the records are at p5 or below."
        return ResultView(
            (
                Group("cosine", {"a record and its replacement": self.mean}),
                Group("percentiles of the records", self.percentiles, shows=meaning),
            ),
            {"a record and another's replacement": self.others, "a record and itself": self.unprotected},
            {"records": self.records, "left out": self.left_out},
        )


@dataclass(frozen=True, kw_only=True)
class VectorSimilarity(Similarity):
    """The cosine of the mean lexicon vectors of a record and of its replacement."""

    name: str = "vector similarity"
    measures: str = (
        "Similarity of meaning of a record and its replacement: cosine of the mean vectors of their words."
    )


@dataclass(frozen=True, kw_only=True)
class TextOverlap(AuditResult):
    """Words and runs of words that a record and its replacement share.

    Attributes:
        rouge: F1 of ROUGE-1, ROUGE-2 and ROUGE-L in 0..1, mean over the records, the original as the reference.
        bleu: of the whole text, 0..100.
        other_rouge: the same with another record's replacement: overlap by chance.
    """

    name: str = "text overlap"
    measures: str = "How many words and word sequences a record and its replacement share."

    rouge: Mapping[str, Estimate]
    bleu: float
    other_rouge: Mapping[str, float]
    other_bleu: float
    bleu_signature: str
    records: int

    def shown(self) -> ResultView:
        """Show ROUGE; BLEU is a figure of the whole text and has no chart."""
        by_chance = {f"{name}, with another record's": value for name, value in self.other_rouge.items()}
        bleu = {"BLEU, of 100": self.bleu, "BLEU with another record's replacement": self.other_bleu}
        return ResultView((Group("ROUGE, F1", self.rouge),), by_chance, {"records": self.records, **bleu})


def record_cosines(vectors: F32, plain: RecordWords, private: RecordWords, order: I64 | None = None) -> F64:
    """Return the cosine of the mean vectors of each record and its replacement, NaN where one has none: float64[s].

    Args:
        vectors: float32[V, d].
        plain: s records.
        private: their replacements.
        order: int64[s], whose replacement each is compared with; its own where it is None.

    Raises:
        DataError: different numbers of records.
    """
    rows = len(plain.bounds) - 1
    _require_pairs(rows, len(private.bounds) - 1)
    left, right = (_counts(side, len(vectors)) for side in (plain, private))
    if order is not None:
        right = right[order]
    out = np.full(rows, np.nan)
    for start in range(0, rows, ROWS):
        part = slice(start, start + ROWS)
        # Sums point where means do.
        a, b = left[part] @ vectors, right[part] @ vectors
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        np.divide((a * b).sum(axis=1), norms, out=out[part], where=norms > 0)
    return np.asarray(np.clip(out, -1.0, 1.0), np.float64)


def vector_similarity(vectors: F32, plain: RecordWords, private: RecordWords) -> VectorSimilarity:
    """Compare the mean vectors of records and their replacements.

    Args:
        vectors: float32[V, d] of the lexicon.
        plain: s records.
        private: their replacements.

    Raises:
        DataError: different numbers of records, or none that can be compared.
    """
    cosines = record_cosines(vectors, plain, private)
    known = cosines[~np.isnan(cosines)]
    if not len(known):
        raise DataError("records: none of them holds a word of the lexicon on both sides.")
    others = record_cosines(vectors, plain, private, other_records(len(cosines)))
    return VectorSimilarity(
        mean=mean(known),
        percentiles=percentiles_of(known),
        others=float(np.nanmean(others)) if not np.isnan(others).all() else 0.0,
        unprotected=1.0,
        records=len(known),
        left_out=len(cosines) - len(known),
        **BOOTSTRAPPED,
    )


def text_overlap(plain: Sequence[str | None], private: Sequence[str | None]) -> TextOverlap:
    """Count shared words and runs of words, by the libraries rouge-score and sacrebleu (about a millisecond a record).

    Args:
        plain: [s], the records; NULL counts as an empty text.
        private: [s], their replacements.

    Raises:
        DataError: different numbers of records, or none.
        SettingsError: the libraries are not installed.
    """
    _require_pairs(len(plain), len(private))
    require_extra("audit", "rouge_score", "sacrebleu")
    from sacrebleu.metrics.bleu import BLEU

    # `force` only silences a warning that a text looks tokenized, which sets like SST-2 are.
    bleu = BLEU(force=True)
    plain, private = (["" if text is None else text for text in side] for side in (plain, private))
    order = other_records(len(plain))
    elsewhere = [private[i] for i in order.tolist()]
    rouge, other_rouge = (_rouge(plain, side) for side in (private, elsewhere))
    score, other_score = (bleu.corpus_score(side, [plain]).score for side in (private, elsewhere))
    return TextOverlap(
        rouge={name: mean(values) for name, values in rouge.items()},
        bleu=float(score),
        other_rouge={name: float(values.mean()) for name, values in other_rouge.items()},
        other_bleu=float(other_score),
        bleu_signature=str(bleu.get_signature()),
        records=len(plain),
        **BOOTSTRAPPED,
    )


def _rouge(plain: Sequence[str], private: Sequence[str]) -> dict[str, F64]:
    """Return F1 of each record, float64[s], by name."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGE.values()), use_stemmer=False)

    def rows() -> Iterator[list[float]]:
        for text, other in zip(plain, private, strict=True):
            scores = scorer.score(text, other)
            yield [scores[kind].fmeasure for kind in ROUGE.values()]

    return dict(zip(ROUGE, np.array(list(rows()), np.float64).T, strict=True))


def _counts(records: RecordWords, words: int) -> csr_array:
    """Count each word in each record, float32[s, V]."""
    known = np.asarray(records.words) >= 0
    ends = offsets(known)
    columns = np.asarray(records.words)[known]
    ones = np.ones(len(columns), np.float32)
    return csr_array((ones, columns, ends[records.bounds]), shape=(len(records.bounds) - 1, words))


def other_records(records: int) -> I64:
    """Return another record for each, int64[s]: one long cycle in a random order. A single record has only itself."""
    order = np.random.default_rng(_SEED).permutation(records)
    out = np.empty(records, np.int64)
    out[order] = np.roll(order, 1)
    return out


def percentiles_of(values: F64) -> dict[str, float]:
    """Return the percentiles of float64[n], interpolated (those of `audit.results` are values of the sample): by `p1`, ..."""
    ranks = np.percentile(values, PERCENTILES)
    return {f"p{p}": float(value) for p, value in zip(PERCENTILES, ranks, strict=True)}


AT_ONCE = 256  # records whose vectors are held
MATCHED = ("precision", "recall", "F1")
_MATCHED = (
    "Each sub-word is matched with the most similar one of the other text. Precision is the mean over the replacement, "
    "recall over the original. Rare words have no weights, and scores are not rescaled."
)


class Vectors(Protocol):
    """Vectors of length 1, such as :class:`dptext_spark.encoder.encoder.TextVectors`."""

    @property
    def texts(self) -> F32:
        """float32[r, d], of the texts; 0 for a text without a sub-word."""

    @property
    def pieces(self) -> F32:
        """float32[m, d], of their sub-words."""

    @property
    def bounds(self) -> I64:
        """int64[r + 1], those of text i are pieces[bounds[i]:bounds[i + 1]]."""


class Reader(Protocol):
    """An encoder that turns texts into vectors."""

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        """Return the vectors of texts [r]."""


@dataclass(frozen=True, kw_only=True)
class EncoderSimilarity(Similarity):
    """Similarity of records and their replacements to an encoder.

    Attributes:
        matched: `precision`, `recall` and `F1` of matched sub-words, over the records.
        other_matched: the same with another record's replacement.
    """

    name: str = "encoder similarity"
    measures: str = "Similarity of meaning of a record and its replacement to an encoder: cosine of their sentence embeddings."

    matched: Mapping[str, Estimate]
    other_matched: Mapping[str, float]

    def shown(self) -> ResultView:
        """Show cosines and matched sub-words."""
        by_chance = {f"{name}, with another record's": value for name, value in self.other_matched.items()}
        matched = Group(
            "sub-words matched by their vectors (BERTScore)", {**self.matched, **by_chance}, shows=_MATCHED
        )
        figures = super().shown()
        return replace(figures, groups=(*figures.groups, matched))


def encoder_similarity(
    reader: Reader, plain: Sequence[str | None], private: Sequence[str | None]
) -> EncoderSimilarity:
    """Compare records and their replacements.

    Args:
        reader: turns texts into vectors.
        plain: [s], the records; NULL counts as an empty text.
        private: [s], their replacements.

    Raises:
        DataError: different numbers of records, or none that can be compared.
    """
    figures = _compared(reader, plain, private)
    known = figures[~np.isnan(figures[:, 0])]
    if not len(known):
        raise DataError("records: none of them holds a sub-word on both sides.")
    elsewhere = figures[~np.isnan(figures[:, 4]), 4:]
    own = [mean(column) for column in known[:, :4].T]
    chance = elsewhere.mean(axis=0).tolist() if len(elsewhere) else [0.0] * 4
    return EncoderSimilarity(
        mean=own[0],
        percentiles=percentiles_of(known[:, 0]),
        others=chance[0],
        unprotected=1.0,
        matched=dict(zip(MATCHED, own[1:], strict=True)),
        other_matched=dict(zip(MATCHED, chance[1:], strict=True)),
        records=len(known),
        left_out=len(figures) - len(known),
        **BOOTSTRAPPED,
    )


class Originals:
    """Records as an encoder reads them, to compare one replacement after the other with."""

    def __init__(self, reader: Reader, texts: Sequence[str]) -> None:
        """Read records [s]; of their vectors only those of whole texts are kept."""
        self._reader = reader
        self._plain = self._embed(texts)

    def similarity(self, texts: Sequence[str]) -> Estimate:
        """Return the mean cosine of the sentence embeddings of the records and of their replacements [s].

        Raises:
            DataError: no record has a sub-word on both sides.
        """
        private = self._embed(texts)
        both_embedded = self._plain.any(axis=1) & private.any(axis=1)
        if not both_embedded.any():
            raise DataError("records: none of them holds a sub-word on both sides.")
        cosines = (self._plain[both_embedded] * private[both_embedded]).sum(axis=1, dtype=np.float64)
        return mean(np.clip(cosines, -1.0, 1.0))

    def _embed(self, texts: Sequence[str]) -> F32:
        parts = [self._reader(texts[i : i + AT_ONCE]).texts for i in range(0, len(texts), AT_ONCE)]
        return np.concatenate(parts)


def matched(plain: F32, private: F32) -> tuple[float, float, float]:
    """Return (precision, recall, F1) of the sub-words of two texts, each matched with the most similar one of the other.

    Args:
        plain: float32[n, d], vectors of length 1; n is not 0.
        private: float32[m, d], as those; m is not 0.
    """
    cosines = np.clip(plain @ private.T, -1.0, 1.0)
    precision, recall = (float(cosines.max(axis=axis).mean(dtype=np.float64)) for axis in (0, 1))
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both > 0 else 0.0


def _require_pairs(before: int, after: int) -> None:
    if before != after or not before:
        raise DataError(f"records: {before} and {after} are not valid. Give equal numbers, at least 1.")


def _compared(reader: Reader, plain: Sequence[str | None], private: Sequence[str | None]) -> F64:
    """Return float64[s, 8]: cosine, precision, recall and F1 of each record, then with another's; NaN where a side is empty.

    Records come in the random order in which each is followed by the other one that it is compared with.
    """
    _require_pairs(len(plain), len(private))
    following = other_records(len(plain))
    order = np.empty(len(plain), np.int64)
    at = 0
    for place in range(len(plain)):
        order[place] = at
        at = int(following[at])
    out = np.full((len(plain), 8), np.nan)
    for start in range(0, len(order), AT_ONCE):
        chosen = order[start : start + AT_ONCE]
        left = reader([plain[i] or "" for i in chosen.tolist()])
        right = reader([private[i] or "" for i in (*chosen.tolist(), int(following[chosen[-1]]))])
        for row in range(len(chosen)):
            for other in (0, 1):
                a, b = (
                    side.pieces[side.bounds[i] : side.bounds[i + 1]]
                    for side, i in ((left, row), (right, row + other))
                )
                if len(a) and len(b):
                    cosine = float(np.clip(left.texts[row] @ right.texts[row + other], -1.0, 1.0))
                    out[start + row, 4 * other : 4 * other + 4] = cosine, *matched(a, b)
    return out


KEPT, COSINE, ACCURACY = "words kept", "semantic similarity", "accuracy of a classifier"
EMBEDDED = "similarity to an encoder"
ORDER, DISTINCT = "word order", "different words"
EXPLAINED = {
    KEPT: "The share of the replaced words that are unchanged.",
    COSINE: "The mean cosine of the mean word vectors of a record and of its replacement.",
    EMBEDDED: "The mean cosine of the sentence embeddings of a record and of its replacement, read as the lexicon's words.",
    ORDER: "The share of the text's own word order that is left: how much likelier its words follow each other "
    "than in random order. A third text gives the word pairs.",
    DISTINCT: "Different words of the release for each different word of the text.",
    ACCURACY: "How often a classifier trained on replaced records predicts the label of another replaced record.",
}
TESTED = 4  # every fourth record is tested; the classifier learns from the others


def utilities(
    tokens: Tokens, vectors: F32, strings: pa.Array, labels: Sequence[str] | None = None
) -> dict[str, Estimate]:
    """Measure the utility of a replaced text; intervals are bootstraps over records.

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
    utility_of = {
        KEPT: rate(tokens.by_record(same), tokens.by_record(tokens.drawn)),
        COSINE: vector_similarity(vectors, tokens, replace(tokens, words=shown)).mean,
        DISTINCT: Estimate.known(_different(shown) / _different(tokens.words)),
    }
    if labels is not None:
        utility_of[ACCURACY] = downstream(shown, tokens.bounds, strings, labels)
    return utility_of


def _different(words: Ids) -> int:
    """Count the different words of the lexicon in a text."""
    return len(np.unique(words[words >= 0]))


def released(tokens: Tokens) -> Ids:
    """Return int32[n], the words of the release: the outputs where words were drawn, else the words."""
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
_DEAL_SEED = int.from_bytes(
    hashlib.sha256(b"word order").digest()[:8], "little"
)  # public: a figure is repeatable


def word_order(words: Ids, bounds: I64, language: Bigrams) -> Estimate:
    """Return the mean of ln P(w | before) minus that of the same words dealt anew, in nats; its interval is over records.

    Args:
        words: int32[n], ids of the lexicon; `EDGE` and `UNKNOWN` of :mod:`dptext_spark.text.tokens` for all else.
        bounds: int64[s + 1], record i is words[bounds[i]:bounds[i + 1]].
        language: bigrams of another text over the same lexicon.

    Raises:
        DataError: the text holds no word of the lexicon.
    """
    if not (np.asarray(words) >= 0).any():
        raise DataError("texts: no word is in the lexicon. Give at least one.")
    return rate(*order_by_record(words, bounds, language))


def order_by_record(words: Ids, bounds: I64, language: Bigrams) -> tuple[F64, I64]:
    """Return (Σ ln P(w | before) - the same of the words dealt anew, float64[s]; words of the lexicon, int64[s]) by record."""
    here = np.flatnonzero(np.asarray(words) >= 0)
    gained = log_probability(words, bounds, here, language)
    random = np.random.default_rng(_DEAL_SEED)
    for _ in range(DEALS):
        shuffled = np.array(words, np.int32)
        shuffled[here] = random.permutation(shuffled[here])
        gained -= log_probability(shuffled, bounds, here, language) / DEALS
    record, records = np.searchsorted(bounds, here, side="right") - 1, len(bounds) - 1
    return np.bincount(record, gained, records).astype(np.float64), np.bincount(record, minlength=records)


@dataclass(frozen=True, eq=False)
class OwnOrder:
    """The word order of a text, as the reference for its replacements.

    Attributes:
        language: bigrams of a third text.
        nats: the text's own order.
    """

    language: Bigrams
    nats: float

    @classmethod
    def of(cls, words: Ids, bounds: I64, language: Bigrams) -> OwnOrder:
        """Measure the text itself; :class:`DataError`: by that model its words are in no order."""
        own = word_order(words, bounds, language)
        if not own.lower > 0:
            raise DataError(
                "language: its word pairs show no order in the private text. Use a text of the same language, long "
                "enough for pairs."
            )
        return cls(language, own.value)

    def left(self, words: Ids, bounds: I64) -> Estimate:
        """Compute the share of the order that a replacement keeps."""
        order = word_order(words, bounds, self.language)
        return Estimate(order.value / self.nats, order.lower / self.nats, order.upper / self.nats)


def log_probability(words: Ids, bounds: I64, here: I64, language: Bigrams) -> F64:
    """Return ln P(w | the state before) of the words at int64[m] places: float64[m]."""
    edge = language.words + SPECIAL - 1
    word_states = states(words, language.words)
    stream = with_edges(word_states, bounds, edge)
    place = here + 2 * (np.searchsorted(bounds, here, side="right") - 1) + 1
    return np.asarray(np.log(language.probability(stream[place - 1], stream[place])), np.float64)
