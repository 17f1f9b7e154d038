"""Text classifiers behind one interface, so that an audit is written once for one machine and for Spark.

A classifier is a frozen specification; `fit` returns a model. On one machine texts and labels are sequences, on Spark
(:mod:`dptext_spark.spark.auditing.learning`) columns of a DataFrame. Both are linear models over words: what a bag of words
still tells, which is what a mechanism that replaces words leaves or takes. They need the extra `[audit]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from dptext_spark.arrays import F64, I64
from dptext_spark.errors import DataError, SettingsError, require_extra

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

Texts = TypeVar("Texts", contravariant=True)
Labels = TypeVar("Labels", contravariant=True)
Label = str | float  # and so int and bool
# Words with their inner apostrophes; ! and ?, which tell something of how a text is meant.
WORDS = r"[^\W_]+(?:['\u2019][^\W_]+)*|[!?]"
ROUNDS = 1_000


class Model(Protocol[Texts, Labels]):
    """What was learnt."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels that were seen, ascending."""

    @property
    def majority(self) -> int:
        """The place in `classes` of the most frequent label of the training rows; ties to the first."""

    def predict(self, texts: Texts) -> I64:
        """Return the place in `classes` of the guess for each text, int64[n]."""

    def scores(self, texts: Texts) -> F64:
        """Return the probability of each class for each text, float64[n, classes]."""

    def places(self, labels: Labels) -> I64:
        """Return the place in `classes` of each label, int64[n]; -1 for one that was not seen."""


class Classifier(Protocol[Texts, Labels]):
    """How to learn."""

    @property
    def summary(self) -> str:
        """What it is, for a table."""

    def fit(self, texts: Texts, labels: Labels) -> Model[Texts, Labels]:
        """Learn labels from texts.

        Raises:
            DataError: fewer than two classes, a label that is NULL, or different numbers of texts and labels.
        """


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
        """Learn labels from texts; see :class:`Classifier`. NULL counts as an empty text."""
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
    """A fitted :class:`TextClassifier`."""

    classes: tuple[Label, ...]
    majority: int
    vectorizer: TfidfVectorizer
    model: LogisticRegression

    def predict(self, texts: Sequence[str | None]) -> I64:
        """Return the place of each guess, int64[n]."""
        return np.asarray(self.scores(texts).argmax(axis=1), np.int64)

    def scores(self, texts: Sequence[str | None]) -> F64:
        """Return the probability of each class, float64[n, classes]."""
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
    require_two(len(count), label, len(labels))
    classes = tuple(sorted(count))
    return classes, [count[one] for one in classes]


def require_two(classes: int, label: str, rows: int) -> None:
    """Raise :class:`DataError` unless there are two classes or more to tell apart."""
    if classes < 2:
        raise DataError(f"{label}: {classes} class in {rows} rows; valid: two classes or more.")


def _filled(texts: Sequence[str | None]) -> list[str]:
    return ["" if text is None else text for text in texts]


def _places(classes: tuple[Label, ...], labels: Sequence[Label]) -> I64:
    place = {one: i for i, one in enumerate(classes)}
    return np.array([place.get(one, -1) for one in labels], np.int64)
