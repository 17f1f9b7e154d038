"""What the text of a written table is still good for, and what it tells of its authors: figures of rows in both tables.

Texts of a row's columns are one text. Similarity needs a sample of rows. Classifiers learn from the labelled rows of four records
in five, and are tried on one row of each other record, so that the rows of an interval are independent.

Encoders add how similar its texts are to those of its source, and which words a masked language model names.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F32, I64, Bools
from dptext_spark.audit.attacks.attribute import attribute_attack
from dptext_spark.audit.attacks.masked_inference import masked_inference
from dptext_spark.audit.attacks.membership import membership_attack, numbered
from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.findings import Findings
from dptext_spark.audit.utility.accuracy import Both, downstream_accuracy
from dptext_spark.audit.utility.encoder_similarity import encoder_similarity
from dptext_spark.audit.utility.learning import TextClassifier
from dptext_spark.audit.utility.text_metrics import text_overlap, vector_similarity
from dptext_spark.encoder import outputs
from dptext_spark.encoder.encoder import Encoder
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.runtime.progress import Counted
from dptext_spark.text.engine import Engine
from dptext_spark.text.tokens import Reading, read

MOST_CLASSES = 100  # more are hardly labels, and take a classifier too long
# ROUGE-L compares every pair of words of two texts, about 10 million a second: of long texts fewer are taken.
MOST_PAIRS = 100_000_000
MEMBERSHIP = (
    "A row of the table stands for each row of its source: that a record is in the table is no secret. The attack is on a "
    "classifier that learns from the table's text."
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of both tables.

    Attributes:
        texts: [n], each twice.
        records: [n], the record that each row belongs to.
        values: [n], a label or an attribute; None where it is missing.
    """

    texts: Both[Sequence[str]]
    records: Sequence[Hashable]
    values: Sequence[str | None]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.records)

    def where(self, chosen: Bools) -> Rows:
        """Return the chosen rows."""
        keep = chosen.tolist()
        texts: Both[Sequence[str]] = Both(
            list(compress(self.texts.plain, keep)), list(compress(self.texts.private, keep))
        )
        return Rows(texts, list(compress(self.records, keep)), list(compress(self.values, keep)))

    @property
    def labels(self) -> list[str]:
        """The values of rows that have one."""
        return [value for value in self.values if value is not None]

    @property
    def held(self) -> Bools:
        """bool[n], which have a value."""
        return np.array([value is not None for value in self.values], np.bool_)

    @property
    def firsts(self) -> Bools:
        """bool[n], which are the first of their record."""
        flags = np.zeros(len(self), np.bool_)
        flags[np.unique(numbered(self.records), return_index=True)[1]] = True
        return flags


def require_labels(field: str, column: str, rows: int, missing: int, classes: int) -> None:
    """Refuse a column that teaches nothing; the message holds no value of it.

    Args:
        field: that names the column.
        column: its name.
        rows: of the source.
        missing: rows without a value.
        classes: different values; counted up to `MOST_CLASSES` + 1.

    Raises:
        DataError: no value, one class, or too many.
    """
    valid = f"valid: a column with 2 to {MOST_CLASSES} different values."
    if missing == rows:
        raise DataError(f"{field}: column {column!r} is NULL in all of {rows:,} rows; {valid}")
    if classes < 2:
        raise DataError(f"{field}: column {column!r} has one class in {rows - missing:,} rows; {valid}")
    if classes > MOST_CLASSES:
        raise DataError(f"{field}: column {column!r} has more than {MOST_CLASSES} classes; {valid}")


def similarity(engine: Engine, vectors: F32 | None, texts: Both[Sequence[str]]) -> Findings:
    """Compare the meaning and the words of texts, and how many different ones there are.

    Args:
        engine: that cuts them.
        vectors: float32[V, d] of the engine's words; None where they are not at hand.
        texts: [n], each twice.
    """
    plain, private = (
        read(engine, pa.array(list(side), pa.string())) for side in (texts.plain, texts.private)
    )
    overlap = _overlap(texts, _affordable(np.diff(plain.bounds), np.diff(private.bounds)).tolist())
    return _meaning(vectors, plain, private) + overlap + _distinct(plain, private)


def _meaning(vectors: F32 | None, plain: Reading, private: Reading) -> Findings:
    if vectors is None:
        return Findings(left_out=["cosine: the settings do not lead to the vectors of the model's words"])
    try:
        found = vector_similarity(vectors, plain, private)
    except DataError as error:
        return Findings(left_out=[f"cosine: {error}"])
    return Findings([Metric.of("cosine", found.mean)], [found])


def _distinct(plain: Reading, private: Reading) -> Findings:
    before, after = (len(np.unique(side.words[side.words >= 0])) for side in (plain, private))
    if not before:
        return Findings(left_out=["distinct_words_share: no word of the lexicon in the sample of the source"])
    return Findings([Metric("distinct_words_share", after / before)])


def _overlap(texts: Both[Sequence[str]], some: Sequence[bool]) -> Findings:
    try:
        found = text_overlap(list(compress(texts.plain, some)), list(compress(texts.private, some)))
    except (DataError, SettingsError) as error:
        return Findings(left_out=[f"ROUGE and BLEU: {error}"])
    figures = [Metric.of(name.lower().replace("-", "_"), one) for name, one in found.rouge.items()]
    return Findings([*figures, Metric("bleu", found.bleu)], [found])


def labels(rows: Rows, test: Bools, column: str) -> Findings:
    """Measure what a classifier still learns.

    Args:
        rows: with their labels, some of them missing.
        test: bool[n], which rows are of records to be tried on.
        column: what the labels are called in messages.

    Raises:
        DataError: one class among the training rows, or no row on a side.
        SettingsError: the library is not installed.
    """
    held = rows.held
    taught, tried = rows.where(held & ~test), rows.where(held & test)
    tried = tried.where(tried.firsts)
    if not len(tried) or not len(taught):
        raise DataError(
            f"{column}: {int(held.sum())} rows with a label; too few to learn from some and try on others."
        )
    found = downstream_accuracy(
        TextClassifier(label=column), taught.texts, taught.labels, tried.texts, tried.labels
    )
    figures = [
        Metric.of(f"accuracy_{name.replace('/', '_')}", estimate) for name, estimate in found.accuracy.items()
    ]
    figures += [
        Metric.of("accuracy_majority", found.majority),
        Metric("label_rows", found.train_rows + found.test_rows),
        Metric("label_missing", int((~held).sum())),
    ]
    return Findings(figures, [found])


def membership(rows: Rows, column: str) -> Findings:
    """Attack a classifier that learns the labels from the table's text: was a record in its training?

    Raises:
        DataError: too few records, or one class among those of a quarter.
        SettingsError: the library is not installed.
    """
    held = rows.where(rows.held)
    found = membership_attack(TextClassifier(label=column), held.texts, held.labels, held.records)
    figures = [
        Metric.of("membership_auc", found.private.auc),
        Metric.of("membership_unprotected", found.unprotected.auc),
    ]
    return Findings(figures, [replace(found, measures=f"{found.measures} {MEMBERSHIP}")])


def attribute(rows: Rows, column: str) -> Findings:
    """Attack the attribute of the texts' authors.

    Args:
        rows: with the attribute, missing for some.
        column: what it is called in messages.

    Raises:
        DataError: too few records, or one class among the rows that are learnt from.
        SettingsError: the library is not installed.
    """
    held = rows.where(rows.held)
    found = attribute_attack(held.texts, held.labels, held.records, column=column)
    figures = [
        Metric.of("attribute_success", found.private.accuracy),
        Metric.of("attribute_adaptive", found.adaptive.accuracy),
        Metric.of("attribute_unprotected", found.unprotected.accuracy),
        Metric.of("attribute_majority", found.majority.accuracy),
        Metric("attribute_rows", len(held)),
        Metric("attribute_missing", len(rows) - len(held)),
    ]
    return Findings(figures, [found])


def _affordable(plain: I64, private: I64) -> Bools:
    """Return bool[n], which texts are compared word by word: none that is very long, and the first ones of the others."""
    cost = (plain + 1) * (private + 1)
    short = cost <= MOST_PAIRS // 10
    return np.asarray(short & (np.cumsum(np.where(short, cost, 0)) <= MOST_PAIRS))


def encoder_similarity_to(source: str, texts: Both[Sequence[str]]) -> Findings:
    """Compare texts by an encoder, on all cores.

    Args:
        source: a folder or a package of the encoder.
        texts: [n], each twice.

    Raises:
        SettingsError, DataError: the encoder cannot be opened; no text has a sub-word.
    """
    encoder = Encoder.open(source, threads=os.cpu_count() or 1)
    found = encoder_similarity(partial(outputs.vectors, encoder), texts.plain, texts.private)
    every = {"embedding_cosine": found.mean} | {
        f"bert_{name.lower()}": estimate for name, estimate in found.matched.items()
    }
    return Findings([Metric.of(name, one) for name, one in every.items()], [found])


def named_by(
    source: str, engine: Engine, texts: Both[Sequence[str]], progress: Counted | None = None
) -> Findings:
    """Let a masked language model name words of texts, on all cores.

    Args:
        source: a folder or a package of the model.
        engine: that cuts texts, and knows which words are drawn.
        texts: [n], each twice.
        progress: is told how many words were asked for, of how many.

    Raises:
        SettingsError, DataError: the model cannot be opened; no drawn word stands in both texts.
    """
    model = Encoder.open(source, head=True, threads=os.cpu_count() or 1, field="masked_model")
    tokenizer = model.tokenizer
    found = masked_inference(
        engine, partial(outputs.guesses, model), tokenizer.form, frozenset(tokenizer.words()), texts.plain, texts.private,
        progress=progress,
    )  # fmt: skip
    return Findings(
        [
            found.metric("masked_success"),
            Metric("masked_unprotected", found.unprotected),
            Metric("masked_words", found.words),
        ],
        [found],
    )
