"""A text classifier: what a bag of words still tells, which is what a mechanism that replaces words leaves or takes.

It is a frozen specification; `fit` returns a model. It learns on one machine, from a sample of a large table, and needs the
extra `[audit]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dptext_spark.arrays import F64, I64
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
