"""The classifier on Spark: the interface of the one on one machine, and nearly its figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dptext_spark.audit.utility.accuracy import Both, downstream_accuracy
from dptext_spark.audit.utility.learning import TextClassifier
from dptext_spark.errors import DataError, SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("sklearn", reason="the extra [audit] is not installed")

from dptext_spark.spark.auditing import learning
from dptext_spark.spark.auditing.learning import SparkTextClassifier, SparkTextModel, TextColumn, cells_for


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


@dataclass(frozen=True)
class Remembering:
    """A classifier, and the models that it made."""

    kind: SparkTextClassifier
    models: list[SparkTextModel] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return self.kind.summary

    def fit(self, texts: TextColumn, labels: TextColumn) -> SparkTextModel:
        self.models.append(self.kind.fit(texts, labels))
        return self.models[-1]


@pytest.mark.cluster
def test_both_classifiers_tell_the_same(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "ROUNDS", 20)  # each takes a job of Spark; guesses hardly change any more
    train, test = rows(400, 1), rows(300, 2)
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
    classifier = Remembering(SparkTextClassifier(features=1 << 10))
    found = downstream_accuracy(classifier, *of[0], *of[1])
    assert (found.classes, found.train_rows, found.test_rows) == (3, 400, 300)
    assert list(found.accuracy) == list(local.accuracy)
    assert found.majority == local.majority
    assert "Spark ML" in found.settings["classifier"]
    # Two fits of one kind of model, on 300 rows: 15 rows apart at most. What says nothing is guessed at by either.
    assert found.accuracy["plain/plain"].value == pytest.approx(local.accuracy["plain/plain"].value, abs=0.05)
    assert found.accuracy["plain/plain"].value > 0.8
    for told in (found, local):
        assert all(one.value < 0.75 for name, one in told.accuracy.items() if name != "plain/plain")

    model = classifier.models[0]
    scores = model.scores(TextColumn(frames[1], "plain"))
    assert model.classes == ("blue", "green", "red")
    assert model.majority == 2
    assert scores.shape == (300, 3)
    assert np.allclose(scores.sum(axis=1), 1.0)
    assert (scores.argmax(axis=1) == model.predict(TextColumn(frames[1], "plain"))).all()
    unseen = spark.createDataFrame([("x", "black"), (None, "red")], "text string, label string")
    assert model.places(TextColumn(unseen, "label")).tolist() == [-1, 2]
    assert len(model.predict(TextColumn(unseen, "text"))) == 2


def test_labels_that_teach_nothing(spark: SparkSession) -> None:
    for labels, message in (
        (["secret", "secret"], "mood: 1 class in 2 rows"),
        (["secret", None], "mood: 1 of 2 labels are missing"),
    ):
        frame = spark.createDataFrame([("a b", labels[0]), ("c d", labels[1])], "text string, label string")
        with pytest.raises(DataError, match=message) as error:
            SparkTextClassifier(label="mood").fit(TextColumn(frame, "text"), TextColumn(frame, "label"))
        assert "secret" not in str(error.value)


def test_labels_of_another_frame(spark: SparkSession) -> None:
    frames = [spark.createDataFrame([("a b", "x")], "text string, label string") for _ in range(2)]
    with pytest.raises(
        DataError, match="mood: of another frame than the texts; valid: a column of the same one"
    ):
        SparkTextClassifier(label="mood").fit(TextColumn(frames[0], "text"), TextColumn(frames[1], "label"))


def test_weights_of_many_classes_fit_a_driver() -> None:
    assert [cells_for(classes) for classes in (2, 8, 9, 100)] == [1 << 18, 1 << 18, 1 << 17, 1 << 14]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"features": 1}, "classifier.features: 1 given; valid: 2 or more"),
        ({"strength": 0}, "classifier.strength: 0 given; valid: above 0"),
    ],
)
def test_settings_are_checked(change: dict, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        SparkTextClassifier(**change)
