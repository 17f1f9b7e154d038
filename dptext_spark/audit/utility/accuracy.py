"""Downstream accuracy: classifiers trained and tested on plain and on sanitized text, all four ways."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

from dptext_spark.audit.utility.learning import Classifier
from dptext_spark.audit.utility.scoring import CONFIDENCE, RESAMPLES, Estimate, accuracy, gain

Texts = TypeVar("Texts")
Labels = TypeVar("Labels")
KINDS = ("plain", "private")


@dataclass(frozen=True)
class Both(Generic[Texts]):
    """The same rows twice.

    Attributes:
        plain: as they were.
        private: as they are released.
    """

    plain: Texts
    private: Texts


@dataclass(frozen=True)
class DownstreamAccuracy:
    """What a text is still good for.

    Attributes:
        accuracy: for `plain/plain`, `plain/private`, `private/plain` and `private/private`: the share of test rows whose label
            is predicted, by what was trained on and what was tested on; with intervals over the test rows.
        gain: of the last three over `plain/plain` on the same rows; below 0 where accuracy is lost.
        majority: the accuracy of always predicting the most frequent class of the training rows: the baseline.
        classes: how many labels there are.
        train_rows: rows that were trained on.
        test_rows: rows that were tested.
        exact: False: measured on these rows, of one release.
        confidence: of the intervals.
        resamples: bootstrap draws of the test rows.
        restricted: whether the text is private.
        settings: the classifier, and what the caller adds.
    """

    name: ClassVar[str] = "downstream accuracy"
    measures: ClassVar[str] = (
        "How often a classifier predicts the label of a text, trained and tested on original or on privatized text."
    )

    accuracy: dict[str, Estimate]
    gain: dict[str, Estimate]
    majority: Estimate
    classes: int
    train_rows: int
    test_rows: int
    exact: bool
    confidence: float
    resamples: int
    restricted: bool
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {"name": self.name, "measures": self.measures, **asdict(self)}


def downstream_accuracy(
    classifier: Classifier[Texts, Labels],
    train: Both[Texts],
    train_labels: Labels,
    test: Both[Texts],
    test_labels: Labels,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    restricted: bool = True,
    settings: dict[str, Any] | None = None,
) -> DownstreamAccuracy:
    """Train on original and on privatized text, and test both on both.

    Args:
        classifier: how to learn; texts and labels are what it takes.
        train: the training rows.
        train_labels: theirs.
        test: the test rows.
        test_labels: theirs; one that is not among the training labels counts as not predicted.
        confidence: of the intervals.
        resamples: bootstrap draws of the test rows.
        restricted: whether the text is private.
        settings: what the result carries along: mechanism, ε, policy.

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
        accuracy={name: accuracy(flags, confidence, resamples) for name, flags in right.items()},
        gain={
            name: gain(flags, plain, confidence, resamples)
            for name, flags in right.items()
            if name != "plain/plain"
        },
        majority=accuracy(truth == model.majority, confidence, resamples),
        classes=len(model.classes),
        train_rows=len(model.places(train_labels)),
        test_rows=len(truth),
        exact=False,
        confidence=confidence,
        resamples=resamples,
        restricted=restricted,
        settings={"classifier": classifier.summary, **(settings or {})},
    )
