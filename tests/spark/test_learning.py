"""The classifier on Spark: the interface of the one on one machine, and nearly its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dptext_spark.audit.learning import TextClassifier
from dptext_spark.audit.utility import Both, downstream_accuracy
from dptext_spark.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


def rows(count: int, seed: int) -> list[tuple[str, str, str]]:
    """(text, text without what tells the label, label): three labels, each with words of its own, one row in ten misleading."""
    random = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        label = int(random.choice(3, p=[0.5, 0.3, 0.2]))
        told = label if random.random() > 0.1 else int(random.integers(3))
        own = [f"{'abc'[told]}word{random.integers(20)}" for _ in range(4)]
        shared = [f"common{random.integers(50)}" for _ in range(6)]
        words = [str(word) for word in random.permutation(own + shared)]
        out.append((" ".join(words), " ".join(shared), ["red", "blue", "green"][label]))
    return out


def test_both_classifiers_tell_the_same(spark: SparkSession) -> None:
    from dptext_spark.spark.learning import SparkTextClassifier, TextColumn

    train, test = rows(600, 1), rows(300, 2)
    local = downstream_accuracy(
        TextClassifier(),
        Both([r[0] for r in train], [r[1] for r in train]),
        [r[2] for r in train],
        Both([r[0] for r in test], [r[1] for r in test]),
        [r[2] for r in test],
    )
    frames = [
        spark.createDataFrame(part, "plain string, private string, label string") for part in (train, test)
    ]
    of = [
        (Both(TextColumn(frame, "plain"), TextColumn(frame, "private")), TextColumn(frame, "label"))
        for frame in frames
    ]
    found = downstream_accuracy(SparkTextClassifier(features=1 << 12), *of[0], *of[1])
    assert (found.classes, found.train_rows, found.test_rows) == (3, 600, 300)
    assert found.majority == local.majority
    # Two fits of one kind of model, on 300 rows: 15 rows apart at most. What says nothing is guessed at by either.
    assert found.accuracy["plain/plain"].value == pytest.approx(local.accuracy["plain/plain"].value, abs=0.05)
    assert found.accuracy["plain/plain"].value > 0.8
    assert all(one.value < 0.75 for name, one in found.accuracy.items() if name != "plain/plain")

    model = SparkTextClassifier(features=1 << 12).fit(*(TextColumn(frames[0], c) for c in ("plain", "label")))
    scores = model.scores(TextColumn(frames[1], "plain"))
    assert model.classes == ("blue", "green", "red") and model.majority == 2
    assert scores.shape == (300, 3) and np.allclose(scores.sum(axis=1), 1.0)
    assert (scores.argmax(axis=1) == model.predict(TextColumn(frames[1], "plain"))).all()
    unseen = spark.createDataFrame([("x", "black"), (None, "red")], "text string, label string")
    assert model.places(TextColumn(unseen, "label")).tolist() == [-1, 2]
    assert len(model.predict(TextColumn(unseen, "text"))) == 2


def test_labels_that_teach_nothing(spark: SparkSession) -> None:
    from dptext_spark.spark.learning import SparkTextClassifier, TextColumn

    for labels, message in (
        (["secret", "secret"], "mood: 1 class in 2 rows"),
        (["secret", None], "mood: 1 of 2 labels are missing"),
    ):
        frame = spark.createDataFrame([("a b", labels[0]), ("c d", labels[1])], "text string, label string")
        with pytest.raises(DataError, match=message) as error:
            SparkTextClassifier(label="mood").fit(TextColumn(frame, "text"), TextColumn(frame, "label"))
        assert "secret" not in str(error.value)
