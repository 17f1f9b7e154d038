"""A text classifier: what a bag of words still tells, which is what a mechanism that replaces words leaves or takes.

It is a frozen specification; `fit` returns a model. It learns on one machine, from a sample of a large table, and needs the
extra `[audit]`.

Downstream accuracy: classifiers trained and tested on plain and on sanitized text, all four ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from dptext_spark.arrays import F64, I64
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.utility.scoring import accuracy, gain
from dptext_spark.errors import DataError, SettingsError, require_extra

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression


Label = str | float  # and so int and bool
# Words with their inner apostrophes; ! and ?, which tell something of how a text is meant.
WORDS = r"[^\W_]+(?:['\u2019][^\W_]+)*|[!?]"
ROUNDS = 1_000


@dataclass(frozen=True)
class TextClassifier:
    """TF-IDF over words and logistic regression, by scikit-learn; equal input gives an equal model.

    Attributes:
        strength: the inverse of the penalty (scikit-learn's C); above 0.
        label: what the labels are called in messages.
    """

    strength: float = 5.0
    label: str = "label"

    def __post_init__(self) -> None:
        """Check the strength.

        Raises:
            SettingsError: it is not above 0.
        """
        if not self.strength > 0:
            raise SettingsError(f"classifier.strength: {self.strength!r} given; valid: above 0.")

    @property
    def summary(self) -> str:
        """What it is."""
        return f"TF-IDF over words, logistic regression (C = {self.strength:g})"

    def fit(self, texts: Sequence[str | None], labels: Sequence[Label]) -> TextModel:
        """Learn labels from texts; NULL counts as an empty text.

        Raises:
            DataError: fewer than two classes, a label that is NULL, no words, or different numbers of texts and labels.
        """
        require_extra("audit", "sklearn")
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits  # scikit-learn brings it

        if len(texts) != len(labels):
            raise DataError(f"{self.label}: {len(labels)} labels for {len(texts)} texts.")
        classes, counts = classes_of(labels, self.label)
        vectorizer = TfidfVectorizer(token_pattern=WORDS, sublinear_tf=True, dtype=np.float64)
        try:
            features = vectorizer.fit_transform(_filled(texts))
        except ValueError:  # its message would quote nothing, and say nothing to a user
            raise DataError("texts: no words in any of them; there is nothing to learn from.") from None
        model = LogisticRegression(C=self.strength, max_iter=ROUNDS, random_state=0)
        # Its vectors are too short to share: threads would wait for each other ten times as long as they work.
        with threadpool_limits(1, "blas"):
            model.fit(features, np.asarray(_places(classes, labels)))
        return TextModel(classes, int(np.argmax(counts)), vectorizer, model)


@dataclass(frozen=True, eq=False)
class TextModel:
    """A fitted :class:`TextClassifier`.

    Attributes:
        classes: the labels that were seen, ascending.
        majority: the place in `classes` of the most frequent label of the training rows; ties to the first.
        vectorizer: counts the words of a text.
        model: tells the label from the counts.
    """

    classes: tuple[Label, ...]
    majority: int
    vectorizer: TfidfVectorizer
    model: LogisticRegression

    def predict(self, texts: Sequence[str | None]) -> I64:
        """Return the place in `classes` of the guess for each text, int64[n]."""
        return np.asarray(self.scores(texts).argmax(axis=1), np.int64)

    def scores(self, texts: Sequence[str | None]) -> F64:
        """Return the probability of each class for each text, float64[n, classes]."""
        if not len(texts):
            return np.zeros((0, len(self.classes)))
        return np.asarray(self.model.predict_proba(self.vectorizer.transform(_filled(texts))), np.float64)

    def places(self, labels: Sequence[Label]) -> I64:
        """Return the place of each label, int64[n]; -1 for one that was not seen."""
        return _places(self.classes, labels)


def classes_of(labels: Sequence[Label], label: str) -> tuple[tuple[Label, ...], list[int]]:
    """Return the different labels, ascending, and how often each stands there.

    Args:
        labels: [n], of one type.
        label: what they are called in messages; the labels themselves are private.

    Raises:
        DataError: a label is missing, or all are the same.
    """
    count: dict[Label, int] = {}
    for one in labels:
        count[one] = count.get(one, 0) + 1
    missing = sum(many for one, many in count.items() if one is None or one != one)
    if missing:
        raise DataError(f"{label}: {missing} of {len(labels)} labels are missing; every row needs one.")
    if len(count) < 2:
        raise DataError(f"{label}: {len(count)} class in {len(labels)} rows; valid: two classes or more.")
    classes = tuple(sorted(count))
    return classes, [count[one] for one in classes]


def _filled(texts: Sequence[str | None]) -> list[str]:
    return ["" if text is None else text for text in texts]


def _places(classes: tuple[Label, ...], labels: Sequence[Label]) -> I64:
    place = {one: i for i, one in enumerate(classes)}
    return np.array([place.get(one, -1) for one in labels], np.int64)


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
