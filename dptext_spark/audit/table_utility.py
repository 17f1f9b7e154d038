"""Utility of a written table's text, and attributes of its authors that it reveals: figures of rows in both tables.

Texts of a row's columns are one text. Similarity needs a sample of rows. Classifiers learn from the labelled rows of four records
in five, and are tried on one row of each other record. The rows of an interval are then independent.

Encoders add how similar its texts are to those of its source, and which words a masked language model names.

Attack a sample of a written table whose mechanism is known: word by word, with the context, and at dataset level as a cipher.

Half of the records teach which words follow each other: the contextual adversary has text of the same kind. The other half is
attacked. The word-by-word adversary knows how frequent words are in public, and needs nothing else. Where the mechanism has no
law, both know it as :mod:`dptext_spark.audit.attacks.adversary` says. At dataset level, where a word has one replacement in the
whole table, the frequency attack is made, too; it needs no law.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F32, I64, Bools, offsets
from dptext_spark.audit.attacks.adversary import FEW, QUICK_DRAWS, adversary
from dptext_spark.audit.attacks.attacked_text import Bigrams, Level, Tokens
from dptext_spark.audit.attacks.bayes import BayesAttack
from dptext_spark.audit.attacks.context import context_attack
from dptext_spark.audit.attacks.frequency import frequency_attack
from dptext_spark.audit.attacks.inference import (
    attribute_attack,
    masked_inference,
    membership_attack,
    numbered,
)
from dptext_spark.audit.results import WordAttack, rate
from dptext_spark.audit.table_audit import Findings
from dptext_spark.audit.text_classifier import Pair, TextClassifier, downstream_accuracy
from dptext_spark.audit.text_utility import encoder_similarity, text_overlap, vector_similarity
from dptext_spark.config.requirements import Metric
from dptext_spark.encoder.encoder import Encoder, guesses
from dptext_spark.encoder.encoder import vectors as text_vectors
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.display import Counted
from dptext_spark.text.engine import Engine
from dptext_spark.text.tokens import Reading, drawn_words, read

if TYPE_CHECKING:
    from pandas import DataFrame


MOST_CLASSES = 100  # more are hardly labels, and take a classifier too long
# ROUGE-L compares every pair of words of two texts, about 10 million a second: of long texts fewer are taken.
MOST_PAIRS = 100_000_000
MEMBERSHIP = (
    "Each row of the source has a row in the table, so membership in the table is not secret. The "
    "attack is on a classifier trained on the table's text."
)


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Rows of both tables.

    Attributes:
        texts: [n], each twice.
        records: [n], the record that each row belongs to.
        values: [n], a label or an attribute; None where it is missing.
    """

    texts: Pair[Sequence[str]]
    records: Sequence[Hashable]
    values: Sequence[str | None]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.records)

    def where(self, chosen: Bools) -> RowPairs:
        """Return the chosen rows."""
        keep = chosen.tolist()
        texts: Pair[Sequence[str]] = Pair(
            list(compress(self.texts.plain, keep)), list(compress(self.texts.private, keep))
        )
        return RowPairs(texts, list(compress(self.records, keep)), list(compress(self.values, keep)))

    @property
    def labels(self) -> list[str]:
        """The values of rows that have one."""
        return [value for value in self.values if value is not None]

    @property
    def held(self) -> Bools:
        """bool[n], marks rows with a value."""
        return np.array([value is not None for value in self.values], np.bool_)

    @property
    def firsts(self) -> Bools:
        """bool[n], marks the first row of each record."""
        flags = np.zeros(len(self), np.bool_)
        flags[np.unique(numbered(self.records), return_index=True)[1]] = True
        return flags


def require_labels(field: str, column: str, rows: int, missing: int, classes: int) -> None:
    """Refuse a column that teaches nothing; the message holds none of its values.

    Args:
        field: that names the column.
        column: its name.
        rows: of the source.
        missing: rows without a value.
        classes: different values; counted up to `MOST_CLASSES` + 1.

    Raises:
        DataError: no value, one class, or too many.
    """
    valid = f"Name a column with 2 to {MOST_CLASSES} different values."
    if missing == rows:
        raise DataError(f"{field}: column {column!r} is NULL in all of {rows:,} rows. {valid}")
    if classes < 2:
        raise DataError(f"{field}: column {column!r} has one class in {rows - missing:,} rows. {valid}")
    if classes > MOST_CLASSES:
        raise DataError(f"{field}: column {column!r} has more than {MOST_CLASSES} classes. {valid}")


def similarity(engine: Engine, vectors: F32 | None, texts: Pair[Sequence[str]]) -> Findings:
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
        return Findings(left_out=["cosine: the settings do not give the vectors of the model's words"])
    try:
        alike = vector_similarity(vectors, plain, private)
    except DataError as error:
        return Findings(left_out=[f"cosine: {error}"])
    return Findings([alike.mean.metric("cosine")], [alike])


def _distinct(plain: Reading, private: Reading) -> Findings:
    before, after = (len(np.unique(side.words[side.words >= 0])) for side in (plain, private))
    if not before:
        return Findings(left_out=["distinct_words_share: no word of the lexicon in the sample of the source"])
    return Findings([Metric("distinct_words_share", after / before)])


def _overlap(texts: Pair[Sequence[str]], some: Sequence[bool]) -> Findings:
    try:
        overlap = text_overlap(list(compress(texts.plain, some)), list(compress(texts.private, some)))
    except (DataError, SettingsError) as error:
        return Findings(left_out=[f"ROUGE and BLEU: {error}"])
    figures = [score.metric(name.lower().replace("-", "_")) for name, score in overlap.rouge.items()]
    return Findings([*figures, Metric("bleu", overlap.bleu)], [overlap])


def labels(rows: RowPairs, test: Bools, column: str) -> Findings:
    """Measure the accuracy of a classifier on the text.

    Args:
        rows: with their labels, a few missing.
        test: bool[n], which rows are of records to be tried on.
        column: what the labels are called in messages.

    Raises:
        DataError: one class among the training rows, or no row on a side.
        SettingsError: the library is not installed.
    """
    known = rows.held
    taught, tried = rows.where(known & ~test), rows.where(known & test)
    tried = tried.where(tried.firsts)
    if not len(tried) or not len(taught):
        raise DataError(
            f"{column}: {int(known.sum())} rows with a label are too few for training and testing."
        )
    learnt = downstream_accuracy(
        TextClassifier(label=column), taught.texts, taught.labels, tried.texts, tried.labels
    )
    figures = [
        estimate.metric(f"accuracy_{name.replace('/', '_')}") for name, estimate in learnt.accuracy.items()
    ]
    figures += [
        learnt.majority.metric("accuracy_majority"),
        Metric("label_rows", learnt.train_rows + learnt.test_rows),
        Metric("label_missing", int((~known).sum())),
    ]
    return Findings(figures, [learnt])


def membership(rows: RowPairs, column: str) -> Findings:
    """Attack a classifier that learns the labels from the table's text: was a record in its training?

    Raises:
        DataError: too few records, or one class among those of a quarter.
        SettingsError: the library is not installed.
    """
    known = rows.where(rows.held)
    attack = membership_attack(TextClassifier(label=column), known.texts, known.labels, known.records)
    figures = [
        attack.private.auc.metric("membership_auc"),
        attack.unprotected.auc.metric("membership_unprotected"),
    ]
    return Findings(figures, [replace(attack, measures=f"{attack.measures} {MEMBERSHIP}")])


def attribute(rows: RowPairs, column: str) -> Findings:
    """Attack the attribute of the texts' authors.

    Raises:
        DataError: too few records, or one class among the rows that are learnt from.
        SettingsError: the library is not installed.
    """
    known = rows.where(rows.held)
    attack = attribute_attack(known.texts, known.labels, known.records, column=column)
    figures = [
        attack.private.accuracy.metric("attribute_success"),
        attack.adaptive.accuracy.metric("attribute_adaptive"),
        attack.unprotected.accuracy.metric("attribute_unprotected"),
        attack.majority.accuracy.metric("attribute_majority"),
        attack.gain.metric("attribute_gain"),
        Metric("attribute_rows", len(known)),
        Metric("attribute_missing", len(rows) - len(known)),
    ]
    return Findings(figures, [attack])


def _affordable(plain: I64, private: I64) -> Bools:
    """Mark the texts to compare word by word, bool[n]: no very long one, and only the first among the others."""
    cost = (plain + 1) * (private + 1)
    short = cost <= MOST_PAIRS // 10
    return np.asarray(short & (np.cumsum(np.where(short, cost, 0)) <= MOST_PAIRS))


def encoder_similarity_to(source: str, texts: Pair[Sequence[str]]) -> Findings:
    """Compare texts by an encoder, on all cores.

    Args:
        source: a folder or a package of the encoder.
        texts: [n], each twice.

    Raises:
        SettingsError, DataError: the encoder cannot be opened; no text has a sub-word.
    """
    encoder = Encoder.open(source, threads=os.cpu_count() or 1)
    alike = encoder_similarity(partial(text_vectors, encoder), texts.plain, texts.private)
    every = {"embedding_cosine": alike.mean} | {
        f"bert_{name.lower()}": estimate for name, estimate in alike.matched.items()
    }
    return Findings([estimate.metric(name) for name, estimate in every.items()], [alike])


def named_by(
    source: str, engine: Engine, texts: Pair[Sequence[str]], progress: Counted | None = None
) -> Findings:
    """Let a masked language model name words of texts, on all cores.

    Args:
        source: a folder or a package of the model.
        engine: that cuts texts, and knows which words are drawn.
        texts: [n], each twice.
        progress: receives the number of words asked for, and their total.

    Raises:
        SettingsError, DataError: the model cannot be opened; no drawn word occurs in both texts.
    """
    model = Encoder.open(source, head=True, threads=os.cpu_count() or 1, field="masked_model")
    tokenizer = model.tokenizer
    attack = masked_inference(
        engine, partial(guesses, model), tokenizer.form, frozenset(tokenizer.words()), texts.plain, texts.private,
        progress=progress,
    )  # fmt: skip
    return Findings(
        [
            attack.metric("masked_success"),
            Metric("masked_unprotected", attack.unprotected),
            Metric("masked_words", attack.words),
        ],
        [attack],
    )


NOT_THE_BEST = {
    "noise": "attacks by an adversary who knows the law: this mechanism has no law to read. The adversary shown "
    "ranks the words of the lexicon by their distance to the output; a better one may find more",
    "draws": "attacks by an adversary who knows the law: this mechanism has no law to read. The adversary shown "
    f"knows {QUICK_DRAWS} draws of each word; a better one may find more",
    "few": "attacks by an adversary who names any word: this mechanism has no law to read. The adversary shown "
    f"considers the {FEW} likeliest words; a better one may find more",
}
_HERE = "Measured on a sample of the table itself."
_LEARNT = "Frequencies of words and word pairs come from the rest of the sample."
TOO_FEW = "attacks: the attacked half of the sample holds fewer than two records, or no drawn word"


def attack_sample(privatizer: Privatizer, sample: DataFrame, level: Level) -> Findings:
    """Attack a sample: return the figures and both attacks, and what is left out; or why there are none.

    Args:
        privatizer: the model.
        sample: a frame with `record` (bytes), `words` and `outputs` (int32) and `drawn` (bool) of each text, as bytes.
        level: at which draws are shared.
    """
    names = np.array(sample["record"].tolist(), dtype=object)
    records = {name: number for number, name in enumerate(sorted(set(names)))}
    number = np.array([records[name] for name in names], np.int64)
    # Records come sorted by their keyed hash, so that every second one is a random half.
    taught, attacked = (_tokens(sample, number, half) for half in (0, 1))
    if not attacked.drawn.any():
        return Findings(left_out=[TOO_FEW])
    size, drawn = len(privatizer.vocabulary), drawn_words(privatizer.engine)
    bigrams = Bigrams.of(taught.words, taught.bounds, size, prior=privatizer.prior)
    sampler, outputs = privatizer.sampler, attacked.outputs[attacked.drawn]
    learnt, public = (
        adversary(sampler, of_drawn(prior, drawn), measured=False)
        for prior in (bigrams.unigram[:size], privatizer.prior.words)
    )
    plausible = learnt.plausible(outputs)
    context = context_attack(sampler, attacked, bigrams, drawn, level=level, plausible=plausible)
    hit = np.zeros(len(attacked.words), np.bool_)
    at = np.flatnonzero(attacked.drawn)
    hit[at] = public.guesses(outputs) == attacked.words[at]
    alone = rate(attacked.by_record(hit), attacked.by_record(attacked.drawn))
    also = {"replaced words attacked": f"{len(at):,}", "records": f"{attacked.records:,}"}
    missing = _not_the_best(sampler)
    how = (
        f"Estimated. The black line is the adversary's interval. Left out: {missing[0]}." if missing else None
    )
    is_open = True if missing else None
    completed = {"prior": f"pairs and words of the rest of the sample, completed by {privatizer.prior.name}"}
    in_context = replace(
        context, measures=f"{context.measures} {_HERE} {_LEARNT}",
        also={**also, "words for training": f"{bigrams.tokens:,}", **completed}, how=how, open=is_open,
    )  # fmt: skip
    word_by_word = WordAttack(
        name="each word alone", measures=f"{BayesAttack.measures} {_HERE}", knows=BayesAttack.knows, success=alone.value,
        lower=alone.lower, upper=alone.upper, confidence=context.confidence, random=context.random,
        most_frequent=context.most_frequent, unchanged=context.unchanged, unprotected=context.unprotected,
        also={**also, "prior": privatizer.prior.name}, how=how, open=is_open,
    )  # fmt: skip
    attacks: dict[str, WordAttack] = {"bayes_success": word_by_word, "context_success": in_context}
    if level == "dataset":
        matched = frequency_attack(attacked, bigrams, drawn, plausible)
        attacks["frequency_success"] = replace(
            matched, measures=f"{matched.measures} {_HERE} {_LEARNT}", also={**matched.details, **completed}
        )
    figures = [attack.metric(name) for name, attack in attacks.items()]
    figures.append(max(attacks.values(), key=lambda attack: attack.at_most).metric("guess_success"))
    return Findings([*figures, Metric("attacked_words", len(at))], list(attacks.values()), missing)


def _not_the_best(sampler: Sampler) -> list[str]:
    """Name the adversaries that are left out where there is no law."""
    if sampler.law(0) is not None:
        return []
    if sampler.draws_quickly:
        return [NOT_THE_BEST["draws"]]
    return [NOT_THE_BEST["few" if sampler.noisy_vectors() is None else "noise"]]


def _tokens(sample: DataFrame, number: I64, half: int) -> Tokens:
    """Return the records of even (0) or odd (1) number, each with all of its texts."""
    order = np.argsort(number, kind="stable")
    order = order[number[order] % 2 == half]
    words, outputs, drawn = (
        [np.frombuffer(sample[name].iloc[i], kind) for i in order]
        for name, kind in (("words", np.int32), ("outputs", np.int32), ("drawn", np.bool_))
    )
    sizes = np.bincount(number[order] // 2, weights=[len(part) for part in words])
    bounds = offsets(sizes)
    none = np.empty(0, np.int32)
    return Tokens(
        np.concatenate([none, *words]), np.concatenate([none, *outputs]), np.concatenate([none.astype(np.bool_), *drawn]), bounds
    )  # fmt: skip
