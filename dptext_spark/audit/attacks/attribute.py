"""The attribute attack: what a text says of its author, by a classifier (Meisenbacher et al. 2024, §5.2).

The paper's adversary trains on original text (80 % of the rows, 10 % to choose the model by) and reads the privatized 10 %. One
who privatizes the training text by the same mechanism first reads more of it; that adversary is measured beside the paper's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import I64
from dptext_spark.audit.attacks.membership import dealt, require_equal_lengths
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.utility.learning import (
    Both,
    Label,
    TextClassifier,
    TextModel,
    accuracy,
    classes_of,
    confusion,
    gain,
    macro_f1,
    of_counts,
)

TENTHS = 10
STRENGTHS = (1.0, 5.0, 25.0)
READERS = {
    "private": "reads privatized text, learnt from original",
    "adaptive": "reads privatized text, learnt from privatized",
    "majority": "always the commonest",
    "unprotected": "reads original text",
}


@dataclass(frozen=True)
class AttributeFigures:
    """How well the attribute is read.

    Attributes:
        accuracy: the share of test rows whose attribute is guessed.
        f1: the mean of F1 over the classes.
    """

    accuracy: Estimate
    f1: Estimate


@dataclass(frozen=True, kw_only=True)
class AttributeAttack(AuditResult):
    """What privatized text tells of an attribute of its author.

    Attributes:
        private: trained on original text, tested on privatized.
        adaptive: trained on text that was privatized by the same mechanism, tested on privatized.
        unprotected: trained and tested on original text.
        majority: of always guessing the most frequent class of the training rows.
        gain: how much more often the better of both adversaries is right than that, on the same rows.
        random: accuracy of guessing one of the classes at random.
        classes: how many.
        rows: of training, choice and test.
    """

    name: str = "attribute attack"
    measures: str = "How often a classifier guesses an attribute of a text's author from the privatized text."
    knows: str | None = (
        "The adversary has other authors' original texts with their attribute; the adaptive one knows the mechanism with all its "
        "settings, too, and privatizes them before training. Neither knows the original text, nor the key."
    )

    private: AttributeFigures
    adaptive: AttributeFigures
    unprotected: AttributeFigures
    majority: AttributeFigures
    gain: Estimate
    random: float
    classes: int
    rows: tuple[int, int, int]

    def shown(self) -> Shown:
        """Show accuracy and F1 of both adversaries, beside guessing and who reads the original text."""
        figures: dict[str, AttributeFigures] = {said: getattr(self, name) for name, said in READERS.items()}
        attacks, others = list(READERS.values())[:2], list(READERS.values())[2:]
        learnt, chosen_by, tried = self.rows
        return Shown(
            (
                Group("accuracy", {said: figures[said].accuracy for said in attacks}),
                Group(
                    "F1, mean of the classes", {said: one.f1 for said, one in figures.items()},
                    shows="F1 counts rare classes as much as frequent ones.",
                ),
            ),
            {**{said: figures[said].accuracy for said in others}, "one of the classes at random": self.random},
            {
                "gain over the commonest class": self.gain, "classes": self.classes,
                "rows learnt from": learnt, "rows to choose a classifier by": chosen_by,
                "rows tried on": tried,
            },
        )  # fmt: skip


def attribute_attack(
    texts: Both[Sequence[str]],
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
    classes, _ = classes_of(attribute, column)
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
        return gain(truth == model.predict(private[2]), truth == model.majority)

    def figures(model: TextModel, guesses: I64) -> AttributeFigures:
        truth = model.places(tested)
        # An attribute that is not among the training rows is a class of its own that is never guessed.
        size = len(model.classes) + int((truth < 0).any())
        cells = confusion(np.where(truth < 0, size - 1, truth), guesses, size)
        return AttributeFigures(accuracy(truth == guesses), of_counts(cells, macro_f1))

    return AttributeAttack(
        private=figures(static, static.predict(private[2])),
        adaptive=figures(adaptive, adaptive.predict(private[2])),
        unprotected=figures(static, static.predict(plain[2])),
        majority=figures(static, np.full(len(tested), static.majority, np.int64)),
        gain=max(gained(static), gained(adaptive), key=lambda estimate: estimate.upper),
        random=1.0 / len(classes),
        classes=len(classes),
        rows=(len(parts[0]), len(parts[1]), len(parts[2])),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        settings={"classifier": static_kind, "adaptive_classifier": adaptive_kind, "seed": seed},
    )


def split(rows: int, users: Sequence[Hashable] | None, seed: int) -> tuple[I64, I64, I64]:
    """Split rows 80/10/10 by user: three ascending int64 arrays.

    Raises:
        DataError: fewer than 10 users.
    """
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
    """Fit each classifier; return the model that is right most often on the other rows, and what it is."""
    models = [kind.fit(texts, attribute) for kind in kinds]
    right = [float((one.predict(other_texts) == one.places(other_attribute)).mean()) for one in models]
    best = int(np.argmax(right))
    return models[best], kinds[best].summary
