"""A text classifier: it measures how much a bag of words reveals, before and after its words are replaced.

It is a frozen specification; `fit` returns a model. It learns on one machine, from a sample of a large table, and needs the
extra `[audit]`.

Downstream accuracy: classifiers trained and tested on plain and on sanitized text, all four ways.

Figures of a classifier on some rows, each with a bootstrap interval over the rows (Efron 1979, percentiles).

Drawing n rows anew and counting those of each of a few kinds is one multinomial draw of n. The code makes that draw: the law
equals resampling the rows, and the cost does not grow with the rows. The seed is fixed and public: an interval is repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, Bools
from dptext_spark.audit.results import (
    BOOTSTRAPPED,
    CONFIDENCE,
    RESAMPLES,
    AuditResult,
    Estimate,
    Group,
    ResultView,
    middle,
)
from dptext_spark.errors import DataError, SettingsError, require_extra

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression


CELLS = 1 << 22  # weights held at once
_SEED = 20_220_523


def of_counts(
    counts: npt.ArrayLike,
    figure: Callable[[F64], F64],
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Return a figure of how many rows are of each kind.

    Args:
        counts: [k], rows of each kind.
        figure: float64[m, k], shares of the kinds -> float64[m].
        confidence: of the interval.
        resamples: how often the rows are drawn anew.

    Raises:
        DataError: no rows.
    """
    number = np.asarray(counts, np.int64).ravel()
    rows = int(number.sum())
    if not rows:
        raise DataError("rows: none given. Give at least one.")
    shares = number / rows
    drawn = np.random.default_rng(_SEED).multinomial(rows, shares, size=resamples)
    value = float(figure(shares[None])[0])
    return Estimate(value, *middle(figure(drawn / rows), confidence))


def accuracy(right: Bools, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Return the share of rows that are right."""
    flags = np.asarray(right, np.bool_)
    return of_counts(np.bincount(flags, minlength=2), lambda x: x[:, 1], confidence, resamples)


def gain(right: Bools, other: Bools) -> Estimate:
    """Compute the excess of the first share over the second, both on the same rows, drawn anew together."""
    if len(right) != len(other):
        raise DataError(f"rows: {len(right)} and {len(other)} are not valid. Give equal numbers.")
    kinds = np.bincount(2 * np.asarray(right, np.int64) + np.asarray(other, np.int64), minlength=4)
    return of_counts(kinds, lambda x: x[:, 2] - x[:, 1])


def confusion(truth: I64, guessed: I64, classes: int) -> I64:
    """Return int64[classes, classes]: rows of each true class (down) that were guessed as each class (across)."""
    cells = np.bincount(np.asarray(truth, np.int64) * classes + guessed, minlength=classes * classes)
    return np.asarray(cells.reshape(classes, classes), np.int64)


def precision(shares: F64) -> F64:
    """Return, of a 2 x 2 confusion [m, 4], the share of guesses of class 1 that are right; 0 where there are none."""
    return _ratio(shares[:, 3], shares[:, 1] + shares[:, 3])


def recall(shares: F64) -> F64:
    """Return, of a 2 x 2 confusion [m, 4], the share of class 1 that is guessed; 0 where there is none."""
    return _ratio(shares[:, 3], shares[:, 2] + shares[:, 3])


def macro_f1(shares: F64) -> F64:
    """Return the mean over the classes of F1 = 2·TP / (2·TP + FP + FN), of a confusion [m, k·k]; 0 for an empty class."""
    size = round(shares.shape[1] ** 0.5)
    cells = shares.reshape(len(shares), size, size)
    hit = np.einsum("mkk->mk", cells)
    return np.asarray(_ratio(2 * hit, cells.sum(axis=1) + cells.sum(axis=2)).mean(axis=1))


def auc(scores: F64, positive: Bools, resamples: int = RESAMPLES) -> Estimate:
    """Return the area under the ROC curve: P(a positive scores above a negative), ties by half.

    Positives and negatives are resampled separately, so that the number of each stays the same.

    Args:
        scores: float64[n].
        positive: bool[n].
        resamples: how often the rows are drawn anew.

    Raises:
        DataError: no positive or no negative row.
    """
    flags = np.asarray(positive, np.bool_)
    positives, negatives = int(flags.sum()), int((~flags).sum())
    if not positives or not negatives:
        raise DataError(
            f"rows: {positives} positive and {negatives} negative ones are not valid. Give at least one of each."
        )
    # The scores that are there, ascending, with how positives rows of each side have them.
    _, place = np.unique(np.asarray(scores, np.float64), return_inverse=True)
    size = int(place.max()) + 1
    above = np.bincount(place[flags], minlength=size)
    below = np.bincount(place[~flags], minlength=size)
    random = np.random.default_rng(_SEED)
    areas: list[F64] = []
    step = max(1, CELLS // size)
    for start in range(0, resamples, step):
        rounds = min(step, resamples - start)
        high = random.multinomial(positives, above / positives, size=rounds)
        low = random.multinomial(negatives, below / negatives, size=rounds)
        areas.append(_area(high, low))
    return Estimate(float(_area(above[None], below[None])[0]), *middle(np.concatenate(areas)))


def _area(above: I64, below: I64) -> F64:
    under = np.cumsum(below, axis=1) - below / 2
    return np.asarray((above * under).sum(axis=1) / (above.sum(axis=1) * below.sum(axis=1)), np.float64)


def _ratio(top: F64, bottom: F64) -> F64:
    return np.asarray(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0), np.float64)


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
        """Check the strength; :class:`SettingsError`: it is not above 0."""
        if not self.strength > 0:
            raise SettingsError(f"classifier.strength: {self.strength} is not valid. Use a number above 0.")

    @property
    def summary(self) -> str:
        """A summary in one line."""
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
            raise DataError(
                f"{self.label}: {len(labels)} labels for {len(texts)} texts. Give one for each text."
            )
        classes, counts = classes_of(labels, self.label)
        vectorizer = TfidfVectorizer(token_pattern=WORDS, sublinear_tf=True, dtype=np.float64)
        try:
            features = vectorizer.fit_transform(_filled(texts))
        except ValueError:  # its message would quote nothing, and say nothing to a user
            raise DataError("texts: none has a word. Give texts with words.") from None
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
    """Return the different labels, ascending, and the count of each.

    Args:
        labels: [n], all the same type.
        label: what they are called in messages; the labels themselves are private.

    Raises:
        DataError: a label is missing, or all are the same.
    """
    count: dict[Label, int] = {}
    for value in labels:
        count[value] = count.get(value, 0) + 1
    missing = sum(many for value, many in count.items() if value is None or value != value)
    if missing:
        raise DataError(f"{label}: {missing} of {len(labels)} labels are missing. Give each row one.")
    if len(count) < 2:
        raise DataError(f"{label}: {len(count)} class in {len(labels)} rows. Use two classes or more.")
    classes = tuple(sorted(count))
    return classes, [count[class_name] for class_name in classes]


def _filled(texts: Sequence[str | None]) -> list[str]:
    return ["" if text is None else text for text in texts]


def _places(classes: tuple[Label, ...], labels: Sequence[Label]) -> I64:
    place = {class_name: i for i, class_name in enumerate(classes)}
    return np.array([place.get(value, -1) for value in labels], np.int64)


Texts = TypeVar("Texts")
KINDS = ("plain", "private")
LEARNT = {
    "plain/plain": "trained on original text, reads original",
    "plain/private": "trained on original text, reads privatized",
    "private/plain": "trained on privatized text, reads original",
    "private/private": "trained on privatized text, reads privatized",
}


@dataclass(frozen=True)
class Pair(Generic[Texts]):
    """The same rows twice."""

    plain: Texts
    private: Texts


@dataclass(frozen=True, kw_only=True)
class DownstreamAccuracy(AuditResult):
    """Utility of a text for a classifier.

    Attributes:
        accuracy: for `plain/plain`, `plain/private`, `private/plain` and `private/private` (training text / test text): the share
            of test rows whose label is predicted, with intervals over the test rows.
        gain: of the last three over `plain/plain` on the same rows; below 0 where accuracy is lost.
        majority: the accuracy of always predicting the most frequent class of the training rows: the baseline.
    """

    name: str = "downstream accuracy"
    measures: str = "How often a classifier predicts the label of a text, trained and tested on original or on privatized text."

    accuracy: Mapping[str, Estimate]
    gain: Mapping[str, Estimate]
    majority: Estimate
    classes: int
    train_rows: int
    test_rows: int

    def shown(self) -> ResultView:
        """Show the accuracy of each classifier, and what replacing words costs it."""
        lost = "accuracy lost (below 0) or gained against original text"
        return ResultView(
            (
                Group("accuracy", {LEARNT[name]: estimate for name, estimate in self.accuracy.items()}),
                Group(lost, {LEARNT[name]: estimate for name, estimate in self.gain.items()}),
            ),
            {"always the commonest label": self.majority},
            {"classes": self.classes, "train rows": self.train_rows, "test rows": self.test_rows},
        )


def downstream_accuracy(
    classifier: TextClassifier,
    train: Pair[Sequence[str]],
    train_labels: Sequence[Label],
    test: Pair[Sequence[str]],
    test_labels: Sequence[Label],
) -> DownstreamAccuracy:
    """Train on original and on privatized text, and test both on both.

    Args:
        classifier: how to learn.
        train: the training rows.
        train_labels: theirs.
        test: the test rows.
        test_labels: theirs; one that is not among the training labels counts as not predicted.

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
        accuracy={name: accuracy(flags) for name, flags in right.items()},
        gain={name: gain(flags, plain) for name, flags in right.items() if name != "plain/plain"},
        majority=accuracy(truth == model.majority),
        classes=len(model.classes),
        train_rows=len(model.places(train_labels)),
        test_rows=len(truth),
        **BOOTSTRAPPED,
        settings={"classifier": classifier.summary},
    )
