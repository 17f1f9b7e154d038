"""Downstream accuracy: classifiers trained and tested on plain and on sanitized text, all four ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.utility.learning import Label, TextClassifier
from dptext_spark.audit.utility.scoring import accuracy, gain

Texts = TypeVar("Texts")
KINDS = ("plain", "private")
LEARNT = {
    "plain/plain": "learnt from original text, reads original",
    "plain/private": "learnt from original text, reads privatized",
    "private/plain": "learnt from privatized text, reads original",
    "private/private": "learnt from and reads privatized text",
}


@dataclass(frozen=True)
class Both(Generic[Texts]):
    """The same rows twice.

    Attributes:
        plain: as they were.
        private: as they are released.
    """

    plain: Texts
    private: Texts


@dataclass(frozen=True, kw_only=True)
class DownstreamAccuracy(AuditResult):
    """What a text is still good for.

    Attributes:
        accuracy: for `plain/plain`, `plain/private`, `private/plain` and `private/private`: the share of test rows whose label
            is predicted, by what was trained on and what was tested on; with intervals over the test rows.
        gain: of the last three over `plain/plain` on the same rows; below 0 where accuracy is lost.
        majority: the accuracy of always predicting the most frequent class of the training rows: the baseline.
        classes: how many labels there are.
        train_rows: rows that were trained on.
        test_rows: rows that were tested.
    """

    name: str = "downstream accuracy"
    measures: str = "How often a classifier predicts the label of a text, trained and tested on original or on privatized text."

    accuracy: Mapping[str, Estimate]
    gain: Mapping[str, Estimate]
    majority: Estimate
    classes: int
    train_rows: int
    test_rows: int

    def shown(self) -> Shown:
        """Show the accuracy of each classifier, and what replacing words costs it."""
        lost = "accuracy lost (below 0) or gained against original text"
        return Shown(
            (
                Group("accuracy", {LEARNT[name]: one for name, one in self.accuracy.items()}),
                Group(lost, {LEARNT[name]: one for name, one in self.gain.items()}),
            ),
            {"always the commonest label": self.majority},
            {"classes": self.classes, "train rows": self.train_rows, "test rows": self.test_rows},
        )


def downstream_accuracy(
    classifier: TextClassifier,
    train: Both[Sequence[str]],
    train_labels: Sequence[Label],
    test: Both[Sequence[str]],
    test_labels: Sequence[Label],
    *,
    confidence: float = CONFIDENCE,
    restricted: bool = True,
) -> DownstreamAccuracy:
    """Train on original and on privatized text, and test both on both.

    Args:
        classifier: how to learn.
        train: the training rows.
        train_labels: theirs.
        test: the test rows.
        test_labels: theirs; one that is not among the training labels counts as not predicted.
        confidence: of the intervals.
        restricted: whether the text is private.

    Raises:
        DataError: a label column with one class, missing labels, or lengths that differ.
    """
    right = {}
    for trained in KINDS:
        model = classifier.fit(getattr(train, trained), train_labels)
        truth = model.places(test_labels)
        for tested in KINDS:
            right[f"{trained}/{tested}"] = model.predict(getattr(test, tested)) == truth
    plain = right["plain/plain"]
    return DownstreamAccuracy(
        accuracy={name: accuracy(flags, confidence) for name, flags in right.items()},
        gain={name: gain(flags, plain, confidence) for name, flags in right.items() if name != "plain/plain"},
        majority=accuracy(truth == model.majority, confidence),
        classes=len(model.classes),
        train_rows=len(model.places(train_labels)),
        test_rows=len(truth),
        confidence=confidence,
        resamples=RESAMPLES,
        restricted=restricted,
        settings={"classifier": classifier.summary},
    )
