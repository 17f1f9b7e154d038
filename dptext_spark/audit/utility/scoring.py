"""Figures of a classifier on some rows, each with a bootstrap interval over the rows (Efron 1979, percentiles).

Drawing n rows anew and counting how many are of each of a few kinds is one multinomial draw of n, so that is what is drawn: the
same law as resampling the rows, at a cost that does not grow with them. The seed is fixed and public: an interval is repeatable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, Bools
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate
from dptext_spark.errors import DataError

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
        raise DataError("rows: none given; valid: at least one.")
    shares = number / rows
    drawn = np.random.default_rng(_SEED).multinomial(rows, shares, size=resamples)
    value = float(figure(shares[None])[0])
    low, high = np.quantile(figure(drawn / rows), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(value, float(low), float(high))


def accuracy(right: Bools, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Return the share of rows that are right."""
    flags = np.asarray(right, np.bool_)
    return of_counts(np.bincount(flags, minlength=2), lambda x: x[:, 1], confidence, resamples)


def gain(right: Bools, other: Bools, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Return how much larger the first share is, both taken on the same rows, which are drawn anew together."""
    if len(right) != len(other):
        raise DataError(f"rows: {len(right)} and {len(other)} given; valid: equal numbers.")
    kinds = np.bincount(2 * np.asarray(right, np.int64) + np.asarray(other, np.int64), minlength=4)
    return of_counts(kinds, lambda x: x[:, 2] - x[:, 1], confidence, resamples)


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


def auc(scores: F64, positive: Bools, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Return the area under the ROC curve: P(a positive scores above a negative), ties by half.

    Positives and negatives are resampled separately, so that the number of each stays the same.

    Args:
        scores: float64[n].
        positive: bool[n].
        confidence: of the interval.
        resamples: how often the rows are drawn anew.

    Raises:
        DataError: no positive or no negative row.
    """
    flags = np.asarray(positive, np.bool_)
    positives, negatives = int(flags.sum()), int((~flags).sum())
    if not positives or not negatives:
        raise DataError(
            f"rows: {positives} positive and {negatives} negative ones given; valid: at least one of each."
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
    low_end, high_end = np.quantile(np.concatenate(areas), [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(float(_area(above[None], below[None])[0]), float(low_end), float(high_end))


def _area(above: I64, below: I64) -> F64:
    under = np.cumsum(below, axis=1) - below / 2
    return np.asarray((above * under).sum(axis=1) / (above.sum(axis=1) * below.sum(axis=1)), np.float64)


def _ratio(top: F64, bottom: F64) -> F64:
    return np.asarray(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0), np.float64)
