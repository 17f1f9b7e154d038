"""Inference attacks: on membership in a training set, on an attribute of the author, and on masked words.

The membership attack: was a user's text in a model's training set (Feyisetan et al. 2020, §6)?

The adversary queries the model with the user's own texts and labels. The score is the log-probability of the true label, mean
over the user's texts (Yeom et al. 2018). It is raw, or minus the score of a shadow model that was trained elsewhere in the same
way (Watson et al. 2022). The variant and the threshold are those that work best on the shadow users, whose membership the
adversary knows. All figures are taken on users that neither the shadow model nor these choices have seen.

The attribute attack: a classifier reads an attribute of the author from a text (Meisenbacher et al. 2024, §5.2).

The paper's adversary trains on original text (80 % of the rows, 10 % to choose the model by) and reads the privatized 10 %. An
adversary who first privatizes the training text by the same mechanism reads more; the audit measures both.

Masked-token inference (Yue et al. 2021; Fu 2024): a masked language model names each word from the rest of the released text.

One place at a time, one mask for the whole word, the likeliest answer only, and it must be the whole word of the source. The
adversary does not look at the released word. Privacy, as the papers have it, is 1 minus the share of words found.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F64, I64, Bools, offsets, spaced
from dptext_spark.audit import text_classifier
from dptext_spark.audit.results import (
    BOOTSTRAPPED,
    AuditResult,
    Estimate,
    Group,
    ResultView,
    WordAttack,
    rate,
)
from dptext_spark.audit.text_classifier import Label, Pair, TextClassifier, TextModel
from dptext_spark.errors import DataError
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Engine
from dptext_spark.text.pair_tokens import pair
from dptext_spark.text.tokens import DRAWN_WORD, Words, words_of

LEAST = 1e-12  # floor of a probability before its logarithm is taken
QUARTERS = 4  # target members and others, shadow members and others


@dataclass(frozen=True)
class MembershipFigures:
    """Success of the membership attack.

    Attributes:
        precision: the share of users called members who are; 0 where nobody is.
        recall: the share of members who are called so.
        accuracy: the share of users who are called what they are.
        auc: the probability that a member scores above a user who is none.
    """

    precision: Estimate
    recall: Estimate
    accuracy: Estimate
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class MembershipAttack(AuditResult):
    """Result of the membership attack on a trained model.

    Attributes:
        private: against a model trained on the members' privatized text.
        unprotected: against one trained on their original text.
        users: number of attacked users, half members.
        shadow_users: whose membership the adversary knows.
    """

    name: str = "membership attack"
    measures: str = "How well an adversary finds out, from a model's answers, whether the model learnt from a user's text."
    knows: str | None = (
        "The adversary holds the user's original texts with their labels and may ask the model for "
        "probabilities. The adversary trains a similar model on other users' texts, original and privatized "
        "by the same mechanism. The training text and the key remain unknown."
    )

    private: MembershipFigures
    unprotected: MembershipFigures
    random: float
    users: int
    shadow_users: int

    def shown(self) -> ResultView:
        """Show the AUC, and what answers of yes and no are worth."""
        sides = (("privatized text", self.private), ("original text", self.unprotected))
        called = {
            f"{name}, {side}": getattr(figures, name)
            for side, figures in sides
            for name in ("accuracy", "precision", "recall")
        }
        meaning = "How reliable the adversary's answers of yes and no are."
        return ResultView(
            (
                Group("AUC", {"a classifier trained on privatized text": self.private.auc}),
                Group("called a member", called, shows=meaning),
            ),
            {"guessing": self.random, "a classifier trained on original text": self.unprotected.auc},
            {"users": self.users, "shadow users": self.shadow_users},
        )


def membership_attack(
    classifier: TextClassifier,
    texts: Pair[Sequence[str]],
    labels: Sequence[Label],
    users: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
) -> MembershipAttack:
    """Attack a model trained on a quarter of the users; another quarter was not in it, and two are the adversary's.

    Args:
        classifier: how the model is trained, and the adversary's, too.
        texts: [n], original and privatized.
        labels: [n], what the model predicts.
        users: [n], whose text each is; None where each is another user's.
        seed: of the split of the users.

    Raises:
        DataError: lengths that differ, fewer than 8 users, or one class among the labels of a quarter.
    """
    rows = len(texts.plain)
    require_equal_lengths(texts, users, labels=labels)
    owner, quarter = dealt(rows, users, QUARTERS, 2 * QUARTERS, seed)
    many = len(quarter)
    side_figures = []
    for training in (texts.private, texts.plain):
        target, shadow = (
            classifier.fit(*_rows(training, labels, quarter[owner] == members)) for members in (0, 2)
        )
        both = [_mean_log_probability(model, texts.plain, labels, owner, many) for model in (target, shadow)]
        attacked = quarter < 2
        # For a shadow user the roles are swapped: the shadow model is the one that may have seen their texts.
        plain = np.where(attacked, both[0], both[1])
        score = _better(plain, 2 * plain - both[0] - both[1], ~attacked, quarter == 2)
        threshold = best_threshold(score[~attacked], quarter[~attacked] == 2)
        side_figures.append(_figures(score[attacked], quarter[attacked] == 0, threshold))
    return MembershipAttack(
        private=side_figures[0],
        unprotected=side_figures[1],
        random=0.5,
        users=int((quarter < 2).sum()),
        shadow_users=int((quarter >= 2).sum()),
        **BOOTSTRAPPED,
        settings={"classifier": classifier.summary, "seed": seed, "texts": rows},
    )


def require_equal_lengths(
    texts: Pair[Sequence[str]], users: Sequence[Hashable] | None, **columns: Sequence[Label]
) -> None:
    """Check that each text has its replacement, its user and its value of each column."""
    rows = len(texts.plain)
    for name, values in {"texts.private": texts.private, **columns, "users": users}.items():
        if values is not None and len(values) != rows:
            raise DataError(f"{name}: {len(values)} values for {rows} texts. Give one for each text.")


def dealt(rows: int, users: Sequence[Hashable] | None, parts: int, least: int, seed: int) -> tuple[I64, I64]:
    """Deal users over equal parts: (int64[rows], the number of each row's user; int64[users], the part of each).

    Raises:
        DataError: fewer than `least` users.
    """
    owner = np.arange(rows) if users is None else numbered(users)
    count = int(owner.max(initial=-1)) + 1
    if count < least:
        raise DataError(f"users: {count} are too few for {parts} parts. Give {least} or more.")
    part = np.empty(count, np.int64)
    part[np.random.default_rng(seed).permutation(count)] = np.arange(count) * parts // count
    return owner, part


def best_threshold(scores: F64, members: Bools) -> float:
    """Return the least score to be called a member by, right most often on these users; ties to the highest.

    Args:
        scores: float64[n].
        members: bool[n].
    """
    levels, place = np.unique(scores, return_inverse=True)
    # Calling those from level i on members: right are the members there and the others below.
    above = np.append(np.cumsum(np.bincount(place[members], minlength=len(levels))[::-1])[::-1], 0)
    below = offsets(np.bincount(place[~members], minlength=len(levels)))
    best = len(levels) - int((above + below)[::-1].argmax())
    return float("inf") if best == len(levels) else float(levels[best])


def _better(first: F64, other: F64, known: Bools, members: Bools) -> F64:
    """Return the score that separates members from others better among the known users; ties to the first."""
    areas = [text_classifier.auc(score[known], members[known], resamples=1).value for score in (first, other)]
    return first if areas[0] >= areas[1] else other


def numbered(users: Sequence[Hashable]) -> I64:
    """Return int64[n], 0, 1, ... for the users in the order in which they first appear."""
    place: dict[Hashable, int] = {}
    return np.array([place.setdefault(user, len(place)) for user in users], np.int64)


def _rows(texts: Sequence[str], labels: Sequence[Label], chosen: Bools) -> tuple[list[str], list[Label]]:
    at = np.flatnonzero(chosen).tolist()
    return [texts[i] for i in at], [labels[i] for i in at]


def _mean_log_probability(
    model: TextModel, texts: Sequence[str], labels: Sequence[Label], owner: I64, many: int
) -> F64:
    """Return the mean log-probability of the true labels of each user's texts, float64[users]."""
    scores, truth = model.scores(texts), model.places(labels)
    # A label that the model has never seen has no probability.
    true_score = np.where(truth >= 0, scores[np.arange(len(truth)), truth], 0.0)
    logs = np.log(np.maximum(true_score, LEAST))
    return np.asarray(np.bincount(owner, logs, many) / np.bincount(owner, minlength=many), np.float64)


def _figures(scores: F64, members: Bools, least: float) -> MembershipFigures:
    called = scores >= least
    cells = text_classifier.confusion(members.astype(np.int64), called.astype(np.int64), 2).ravel()
    return MembershipFigures(
        text_classifier.of_counts(cells, text_classifier.precision),
        text_classifier.of_counts(cells, text_classifier.recall),
        text_classifier.of_counts(cells, lambda shares: shares[:, 0] + shares[:, 3]),
        text_classifier.auc(scores, members),
    )


TENTHS = 10
STRENGTHS = (1.0, 5.0, 25.0)
READERS = {
    "private": "reads privatized text, trained on original",
    "adaptive": "reads privatized text, trained on privatized",
    "majority": "always the commonest",
    "unprotected": "reads original text",
}


@dataclass(frozen=True)
class AttributeFigures:
    """Success of the attribute attack.

    Attributes:
        accuracy: the share of test rows whose attribute is guessed.
        f1: the mean of F1 over the classes.
    """

    accuracy: Estimate
    f1: Estimate


@dataclass(frozen=True, kw_only=True)
class AttributeAttack(AuditResult):
    """Result of the attribute attack on privatized text.

    Attributes:
        private: trained on original text, tested on privatized.
        adaptive: trained on text that was privatized by the same mechanism, tested on privatized.
        majority: of always guessing the most frequent class of the training rows.
        gain: how much more often the better of both adversaries is right than that, on the same rows.
    """

    name: str = "attribute attack"
    measures: str = "How often a classifier guesses an attribute of the author from a privatized text."
    knows: str | None = (
        "The adversary has original texts of other authors, with their attribute. The adaptive adversary "
        "also knows the mechanism with all settings, and privatizes these texts before training. Neither "
        "knows the original text or the key."
    )

    private: AttributeFigures
    adaptive: AttributeFigures
    unprotected: AttributeFigures
    majority: AttributeFigures
    gain: Estimate
    random: float
    classes: int
    rows: tuple[int, int, int]

    def shown(self) -> ResultView:
        """Show accuracy and F1 of both adversaries, beside guessing and who reads the original text."""
        figures: dict[str, AttributeFigures] = {
            reader: getattr(self, name) for name, reader in READERS.items()
        }
        attacks, others = list(READERS.values())[:2], list(READERS.values())[2:]
        learnt, chosen_by, tried = self.rows
        return ResultView(
            (
                Group("accuracy", {reader: figures[reader].accuracy for reader in attacks}),
                Group(
                    "F1, mean of the classes", {reader: reader_figures.f1 for reader, reader_figures in figures.items()},
                    shows="F1 weighs rare classes like frequent ones.",
                ),
            ),
            {**{reader: figures[reader].accuracy for reader in others}, "one of the classes at random": self.random},
            {
                "gain over the commonest class": self.gain, "classes": self.classes,
                "rows for training": learnt, "rows for choosing a classifier": chosen_by,
                "rows for testing": tried,
            },
        )  # fmt: skip


def attribute_attack(
    texts: Pair[Sequence[str]],
    attribute: Sequence[Label],
    users: Sequence[Hashable] | None = None,
    *,
    classifiers: Sequence[TextClassifier] | None = None,
    column: str = "attribute",
    seed: int = 0,
) -> AttributeAttack:
    """Guess an attribute.

    Args:
        texts: [n], original and privatized.
        attribute: [n], of each text's author.
        users: [n], whose text each is: all texts of a user fall into one part; None where each is another user's.
        classifiers: one is chosen by its accuracy on the second part, ties to the first; None for three strengths of TF-IDF
            with logistic regression.
        column: what the attribute is called in messages.
        seed: of the split.

    Raises:
        DataError: lengths that differ, fewer than 10 users, an attribute with one class, or one that is missing.
    """
    rows = len(texts.plain)
    require_equal_lengths(texts, users, **{column: attribute})
    classes, _ = text_classifier.classes_of(attribute, column)
    kinds = classifiers or [TextClassifier(strength, label=column) for strength in STRENGTHS]
    parts = split(rows, users, seed)
    known = [attribute[i] for i in parts[0].tolist()]
    chosen_by = [attribute[i] for i in parts[1].tolist()]
    tested = [attribute[i] for i in parts[2].tolist()]
    plain, private = (
        [[side[i] for i in part.tolist()] for part in parts] for side in (texts.plain, texts.private)
    )
    static, static_kind = _chosen(kinds, plain[0], known, plain[1], chosen_by)
    adaptive, adaptive_kind = _chosen(kinds, private[0], known, private[1], chosen_by)

    def gained(model: TextModel) -> Estimate:
        truth = model.places(tested)
        return text_classifier.gain(truth == model.predict(private[2]), truth == model.majority)

    def figures(model: TextModel, guesses: I64) -> AttributeFigures:
        truth = model.places(tested)
        # An attribute that is not among the training rows is a class of its own that is never guessed.
        size = len(model.classes) + int((truth < 0).any())
        cells = text_classifier.confusion(np.where(truth < 0, size - 1, truth), guesses, size)
        return AttributeFigures(
            text_classifier.accuracy(truth == guesses),
            text_classifier.of_counts(cells, text_classifier.macro_f1),
        )

    return AttributeAttack(
        private=figures(static, static.predict(private[2])),
        adaptive=figures(adaptive, adaptive.predict(private[2])),
        unprotected=figures(static, static.predict(plain[2])),
        majority=figures(static, np.full(len(tested), static.majority, np.int64)),
        gain=max(gained(static), gained(adaptive), key=lambda estimate: estimate.upper),
        random=1.0 / len(classes),
        classes=len(classes),
        rows=(len(parts[0]), len(parts[1]), len(parts[2])),
        **BOOTSTRAPPED,
        settings={"classifier": static_kind, "adaptive_classifier": adaptive_kind, "seed": seed},
    )


def split(rows: int, users: Sequence[Hashable] | None, seed: int) -> tuple[I64, I64, I64]:
    """Split rows 80/10/10 by user: three ascending int64 arrays. :class:`DataError`: fewer than 10 users."""
    owner, tenth = dealt(rows, users, TENTHS, TENTHS, seed)
    of_row = tenth[owner]
    return np.flatnonzero(of_row < 8), np.flatnonzero(of_row == 8), np.flatnonzero(of_row == 9)


def _chosen(
    kinds: Sequence[TextClassifier],
    texts: Sequence[str],
    attribute: Sequence[Label],
    other_texts: Sequence[str],
    other_attribute: Sequence[Label],
) -> tuple[TextModel, str]:
    """Fit each classifier; return the model that is right most often on the other rows, with its description."""
    models = [kind.fit(texts, attribute) for kind in kinds]
    right = [float((model.predict(other_texts) == model.places(other_attribute)).mean()) for model in models]
    best = int(np.argmax(right))
    return models[best], kinds[best].summary


MOST = 2_000  # words that are asked for, in the table's text and again in the source's
_KEYS = np.uint64(11), np.uint64(13)  # equal words have equal hashes, and nothing else is asked of them
# Yields (places among the words, what is guessed there), until every word was guessed once.
Guess = Callable[[Spans], Iterator[tuple[I64, list[str]]]]


@dataclass(frozen=True, kw_only=True)
class MaskedInference(WordAttack):
    """Result of a masked language model's guesses.

    Attributes:
        success: share of the attacked words that it names from the released text.
        unprotected: the same from the source's text.
        words: attacked: words that the policy draws and that occur in both texts.
        drawn: of how many they were taken, evenly spaced.
        records: that hold an attacked word.
        guessable: share of the attacked words that the model could name at all: one sub-word of its own.
    """

    name: str = "masked-token inference"
    measures: str = "The share of replaced words that a masked language model names at its first guess."
    knows: str | None = (
        "The adversary sees the released text around the word, but not the replacement. The model knows the "
        "language, but neither the mechanism nor the key."
    )

    lower: float = field()
    upper: float = field()
    words: int
    drawn: int
    records: int
    guessable: float
    open: bool | None = True  # a larger model may find more


def masked_inference(
    engine: Engine,
    guess: Guess,
    form: Callable[[str], str],
    known: frozenset[str],
    plain: Sequence[str | None],
    private: Sequence[str | None],
    *,
    most: int = MOST,
    progress: Callable[[int, int], None] | None = None,
) -> MaskedInference:
    """Let a masked language model name words of records from their replacements, and from themselves.

    It costs two runs of the model over its text for each word that is attacked.

    Args:
        engine: that cuts texts, and knows which words are drawn.
        guess: what the model takes for the likeliest at each word, such as :func:`dptext_spark.encoder.encoder.guesses`.
        form: spells a word as the model does.
        known: what it can answer.
        plain: [s], the records.
        private: [s], their replacements.
        most: words that are attacked, evenly spaced over the drawn ones.
        progress: receives the number of words asked for, and their total.

    Raises:
        DataError: different numbers of records, or no drawn word that occurs in both texts.
    """
    if len(plain) != len(private):
        raise DataError(f"records: {len(plain)} and {len(private)} are not valid. Give equal numbers.")
    source, output = (words_of(engine, pa.array(list(side), pa.string()), _KEYS) for side in (plain, private))
    partner = pair(source, output).partner
    drawn = np.flatnonzero((source.kind == DRAWN_WORD) & (partner >= 0))
    if not len(drawn):
        raise DataError("masked-token inference: no drawn word is in both texts.")
    at = drawn[spaced(len(drawn), most)]
    partner_at = partner[at]
    truth = [form(word) for word in _spelt(source, at)]
    done = 0

    def hits_at(words: Words, places: I64) -> Bools:
        nonlocal done
        hits = np.zeros(len(places), np.bool_)
        for some, answers in guess(_chosen_places(words.spans, places)):
            for place, answer in zip(some.tolist(), answers, strict=True):
                hits[place] = answer == truth[place]
            done += len(answers)
            if progress is not None:
                progress(done, 2 * len(places))
        return hits

    private_hits, plain_hits = hits_at(output, partner_at), hits_at(source, at)
    record = np.searchsorted(source.bounds, at, side="right") - 1
    rows = len(plain)
    named = rate(np.bincount(record, private_hits, rows), np.bincount(record, minlength=rows))
    guessable = sum(word in known for word in truth) / len(truth)
    return MaskedInference(
        success=named.value,
        lower=named.lower,
        upper=named.upper,
        unprotected=float(plain_hits.mean()),
        unchanged=float((source.form[at] == output.form[partner_at]).all(axis=1).mean()),
        words=len(at),
        drawn=len(drawn),
        records=len(np.unique(record)),
        guessable=guessable,
        **BOOTSTRAPPED,
        also={
            "replaced words attacked": f"{len(at):,} of {len(drawn):,}, evenly spaced",
            "records": f"{len(np.unique(record)):,}",
            "replaced words that are one sub-word of the model": f"{100 * guessable:.3g} %",
            "privacy, as the papers define it": f"{1 - named.value:.4f}",
        },
    )


def _spelt(words: Words, places: I64) -> Iterator[str]:
    starts, ends = words.spans.starts[places].tolist(), words.spans.ends[places].tolist()
    for start, end in zip(starts, ends, strict=True):
        yield words.spans.data[start:end].tobytes().decode("utf-8", "replace")


def _chosen_places(spans: Spans, places: I64) -> Spans:
    """Return some words of the same texts; places ascend."""
    bounds = np.searchsorted(places, spans.bounds, side="left").astype(np.int64)
    return Spans(spans.data, spans.rows, spans.starts[places], spans.ends[places], bounds)
