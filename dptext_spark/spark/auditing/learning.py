"""The text classifier of :mod:`dptext_spark.audit.utility.learning` at scale: the same interface, fitted by Spark ML.

Texts and labels are columns of a DataFrame. Words are hashed into a fixed number of features, so that fitting holds no
vocabulary; TF-IDF of unit length and logistic regression as on one machine, with the same penalty. Spark counts words that
repeat in full, gives words of every row no weight, and stops by its own rule, so that figures of the two are close and not
equal. Only one number a row (the place of a class) or one a class comes to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import IDF, HashingTF, Normalizer, RegexTokenizer
from pyspark.ml.functions import vector_to_array
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dptext_spark.arrays import F64, I64
from dptext_spark.audit.utility.learning import Label, require_two
from dptext_spark.errors import DataError, SettingsError

if TYPE_CHECKING:
    from pyspark.ml._typing import PipelineStage

# The words of `audit.learning`, as Java writes the pattern.
WORDS = r"[\p{L}\p{N}]+(?:['\u2019][\p{L}\p{N}]+)*|[!?]"
# A round is a pass over the rows; from here on guesses hardly change.
ROUNDS, TOLERANCE = 100, 1e-5
MOST_CELLS = 1 << 18
WEIGHTS = 1 << 21  # of all classes; the driver holds some twenty times as many numbers while it fits
Number = TypeVar("Number", np.int64, np.float64)
TEXT, LABEL, FEATURES = "_text", "_place", "_features"


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of a frame.

    Attributes:
        frame: the rows, in an order that repeats: as they lie in files, or sorted by a unique key (a join gives none).
        column: of text, or of labels.
    """

    frame: DataFrame
    column: str


@dataclass(frozen=True)
class SparkTextClassifier:
    """Hashed TF-IDF and logistic regression, by Spark ML.

    Attributes:
        features: how many cells words are hashed into.
        strength: the inverse of the penalty, as in :class:`~dptext_spark.audit.utility.learning.TextClassifier`; above 0.
        label: what the labels are called in messages.
    """

    features: int = MOST_CELLS
    strength: float = 5.0
    label: str = "label"

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            SettingsError: fewer than 2 features, or a strength that is not above 0.
        """
        if self.features < 2:
            raise SettingsError(f"classifier.features: {self.features!r} given; valid: 2 or more.")
        if not self.strength > 0:
            raise SettingsError(f"classifier.strength: {self.strength!r} given; valid: above 0.")

    @property
    def summary(self) -> str:
        """What it is."""
        return (
            f"hashed TF-IDF ({self.features:,} cells), logistic regression (Spark ML, C = {self.strength:g})"
        )

    def fit(self, texts: TextColumn, labels: TextColumn) -> SparkTextModel:
        """Learn labels from texts.

        Args:
            texts: the text column; NULL counts as an empty text.
            labels: the label column of the same frame.

        Raises:
            DataError: the columns are of two frames, a label is missing, or all are the same.
        """
        if labels.frame is not texts.frame:
            raise DataError(
                f"{self.label}: of another frame than the texts; valid: a column of the same one."
            )
        counted = labels.frame.groupBy(F.col(labels.column)).count().collect()
        rows = sum(int(row[1]) for row in counted)
        missing = sum(int(row[1]) for row in counted if row[0] is None or row[0] != row[0])
        if missing:
            raise DataError(f"{self.label}: {missing} of {rows} labels are missing; every row needs one.")
        require_two(len(counted), self.label, rows)
        count = {row[0]: int(row[1]) for row in counted}
        classes = tuple(sorted(count))
        majority = int(np.argmax([count[one] for one in classes]))
        stages: list[PipelineStage] = [
            RegexTokenizer(inputCol=TEXT, outputCol="_words", pattern=WORDS, gaps=False, toLowercase=True),
            HashingTF(inputCol="_words", outputCol="_counts", numFeatures=self.features),
            IDF(inputCol="_counts", outputCol="_weighted"),
            Normalizer(inputCol="_weighted", outputCol=FEATURES),
            LogisticRegression(
                featuresCol=FEATURES,
                labelCol=LABEL,
                regParam=1.0 / (self.strength * rows),
                maxIter=ROUNDS,
                tol=TOLERANCE,
                standardization=False,
            ),
        ]
        blank = SparkTextModel(classes, majority, None)
        rows_of = texts.frame.select(
            _text(texts.column), blank.place(labels.column).cast("double").alias(LABEL)
        )
        return replace(blank, model=Pipeline(stages=stages).fit(rows_of))


@dataclass(frozen=True, eq=False)
class SparkTextModel:
    """A fitted :class:`SparkTextClassifier`."""

    classes: tuple[Label, ...]
    majority: int
    model: PipelineModel | None

    def predict(self, texts: TextColumn) -> I64:
        """Return the place of each guess, int64[n]."""
        return _numbers(self._answers(texts).select(F.col("prediction").cast("int").alias("place")), np.int64)

    def scores(self, texts: TextColumn) -> F64:
        """Return the probability of each class, float64[n, classes]."""
        each = vector_to_array(F.col("probability"))
        chosen = [each[i].alias(f"p{i}") for i in range(len(self.classes))]
        return _numbers(self._answers(texts).select(*chosen), np.float64).reshape(-1, len(self.classes))

    def places(self, labels: TextColumn) -> I64:
        """Return the place of each label, int64[n]; -1 for one that was not seen."""
        return _numbers(labels.frame.select(self.place(labels.column).alias("place")), np.int64)

    def place(self, column: str) -> Column:
        """Return the column expression of a label's place."""
        pairs = [part for i, one in enumerate(self.classes) for part in (F.lit(one), F.lit(i))]
        return F.coalesce(F.create_map(*pairs)[F.col(column)], F.lit(-1))

    def _answers(self, texts: TextColumn) -> DataFrame:
        assert self.model is not None
        return self.model.transform(texts.frame.select(_text(texts.column)))


def cells_for(classes: int) -> int:
    """Return into how many cells words are hashed, so that the weights of all classes fit a driver: a power of two."""
    return min(MOST_CELLS, 1 << (WEIGHTS // classes).bit_length() - 1)


def _text(column: str) -> Column:
    return F.coalesce(F.col(column), F.lit("")).alias(TEXT)


def _numbers(frame: DataFrame, kind: type[Number]) -> npt.NDArray[Number]:
    """Return the rows of a frame of numbers, in its order: kind[n] for one column, else [n, columns]."""
    table = frame.toArrow()
    columns = [table.column(i).to_numpy().astype(kind) for i in range(table.num_columns)]
    return np.asarray(columns[0] if len(columns) == 1 else np.column_stack(columns))
