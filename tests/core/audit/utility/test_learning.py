"""The classifier on one machine."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dptext_spark.audit.utility.learning import TextClassifier
from dptext_spark.errors import DataError, SettingsError
from tests.core.audit.labelled_texts import labelled


@pytest.fixture(autouse=True)
def with_sklearn() -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


def test_it_learns_and_repeats() -> None:
    texts, labels = labelled(300, 1)
    others, truth = labelled(200, 2)
    model = TextClassifier().fit(texts, labels)
    assert model.classes == ("bad", "good")
    assert model.majority == 1
    guesses = model.predict(others)
    assert (guesses == model.places(truth)).mean() > 0.95
    scores = model.scores(others)
    assert scores.shape == (200, 2)
    assert np.allclose(scores.sum(axis=1), 1.0)
    assert (scores.argmax(axis=1) == guesses).all()
    assert (TextClassifier().fit(texts, labels).scores(others) == scores).all()
    assert model.places(["good", "ugly", None]).tolist() == [1, -1, -1]
    assert model.predict([]).shape == (0,)
    assert model.predict([""]).shape == (1,)


def test_labels_may_be_of_any_kind() -> None:
    texts, labels = labelled(60, 3)
    numbers = [7 if label == "good" else -2 for label in labels]
    assert TextClassifier().fit(texts, numbers).classes == (-2, 7)
    three = ["third" if i % 3 == 0 else label for i, label in enumerate(labels)]
    assert TextClassifier().fit(texts, three).scores(texts).shape == (60, 3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["secret"] * 3, "mood: 1 class in 3 rows; valid: two classes or more"),
        (["secret", None, "b"], "mood: 1 of 3 labels are missing"),
        ([1.0, float("nan"), float("nan")], "mood: 2 of 3 labels are missing"),
        (["secret", "b"], "mood: 2 labels for 3 texts"),
    ],
)
def test_labels_that_teach_nothing(labels: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        TextClassifier(label="mood").fit(["a b", "c d", "e f"], labels)
    assert "secret" not in str(error.value)


def test_texts_that_are_missing_are_empty() -> None:
    texts, labels = labelled(60, 4)
    model = TextClassifier().fit([*texts, None], [*labels, "bad"])
    assert (model.scores([None]) == model.scores([""])).all()


def test_texts_without_words() -> None:
    with pytest.raises(DataError, match="texts: no words"):
        TextClassifier().fit(["...", ""], ["a", "b"])


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"classifier.strength: 0 given; valid: above 0"):
        TextClassifier(strength=0)


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"sklearn: not installed.*pip install 'dptext-spark\[audit\]'"):
        TextClassifier().fit(["a"], ["b"])
