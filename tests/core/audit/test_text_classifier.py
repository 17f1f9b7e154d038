"""A classifier on one machine: its accuracy with all four of plain and private text, its figures and their intervals."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dptext_spark.audit.text_classifier import (
    Pair,
    TextClassifier,
    accuracy,
    auc,
    confusion,
    downstream_accuracy,
    gain,
    macro_f1,
    of_counts,
    precision,
    recall,
)
from dptext_spark.errors import DataError, SettingsError
from tests.core.audit.labelled_texts import labelled, replaced

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
        (["secret"] * 3, "mood: 1 class in 3 rows"),
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
    with pytest.raises(DataError, match="texts: none"):
        TextClassifier().fit(["...", ""], ["a", "b"])


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"classifier.strength: 0 "):
        TextClassifier(strength=0)


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"sklearn: not installed.*pip install 'dptext-spark\[audit\]'"):
        TextClassifier().fit(["a"], ["b"])


def test_all_four() -> None:
    """A code that turns the words of one label into those of the other is learnt, and misleads whoever has not learnt it."""
    train, train_labels = labelled(300, 1)
    test, test_labels = labelled(200, 2)
    both = [Pair(part, replaced(part, 1.0, seed, swap=True)) for part, seed in ((train, 3), (test, 4))]
    found = downstream_accuracy(TextClassifier(), both[0], train_labels, both[1], test_labels)
    right = {name: estimate.value for name, estimate in found.accuracy.items()}
    assert list(right) == ["plain/plain", "plain/private", "private/plain", "private/private"]
    assert min(right["plain/plain"], right["private/private"]) > 0.95
    assert max(right["plain/private"], right["private/plain"]) < 0.05
    assert found.gain["plain/private"].value == pytest.approx(right["plain/private"] - right["plain/plain"])
    assert found.gain["plain/private"].upper < -0.85
    assert abs(found.gain["private/private"].value) < 0.05
    share = np.mean([label == "good" for label in test_labels])
    assert found.majority.value == share
    assert found.majority.lower < share < found.majority.upper
    assert (found.classes, found.train_rows, found.test_rows) == (2, 300, 200)
    assert found.restricted
    assert not found.exact


def test_labels_of_the_test_that_were_never_seen_are_never_right() -> None:
    texts, labels = labelled(100, 1)
    both = Pair(texts, texts)
    found = downstream_accuracy(TextClassifier(), both, labels, both, ["new"] * 100)
    assert all(estimate.value == 0.0 for estimate in (*found.accuracy.values(), found.majority))


def test_an_accuracy_has_about_the_normal_interval() -> None:
    right = np.arange(2_000) < 1_400
    found = accuracy(right)
    assert found.value == 0.7
    spread = 1.96 * np.sqrt(0.7 * 0.3 / 2_000)
    # The ends of 1,000 resamples scatter by some 5 % of the width.
    assert found.lower == pytest.approx(0.7 - spread, abs=0.25 * spread)
    assert found.upper == pytest.approx(0.7 + spread, abs=0.25 * spread)
    assert accuracy(right[::-1]) == found
    narrow = accuracy(right, confidence=0.5)
    assert found.lower < narrow.lower < 0.7 < narrow.upper < found.upper
    assert (accuracy(np.ones(5, bool)).lower, accuracy(np.zeros(5, bool)).upper) == (1.0, 0.0)


def test_a_gain_is_taken_row_by_row() -> None:
    right = np.arange(1_000) < 600
    other = np.arange(1_000) < 590
    found = gain(right, other)
    assert found.value == pytest.approx(0.01)
    assert found.lower > 0  # all of the difference goes one way; two separate samples could not tell
    apart = gain(right, np.roll(other, 500))
    assert apart.value == pytest.approx(0.01)
    assert apart.lower < 0 < apart.upper
    with pytest.raises(DataError, match="1000 and 999"):
        gain(right, other[1:])


def test_figures_of_a_confusion() -> None:
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    guess = np.array([1, 1, 0, 1, 0, 0, 0, 0])
    cells = confusion(truth, guess, 2)
    assert cells.tolist() == [[4, 1], [1, 2]]
    shares = cells.reshape(1, 4) / 8
    assert precision(shares)[0] == recall(shares)[0] == pytest.approx(2 / 3)
    assert macro_f1(shares)[0] == pytest.approx((4 / 5 + 2 / 3) / 2)
    three = confusion(np.array([0, 1, 2, 2]), np.array([0, 2, 2, 2]), 3).reshape(1, 9)
    assert macro_f1(three / 4)[0] == pytest.approx((1 + 0 + 4 / 5) / 3)
    nobody = confusion(truth, np.zeros(8, int), 2).reshape(1, 4) / 8
    assert precision(nobody)[0] == recall(nobody)[0] == 0.0
    with pytest.raises(DataError, match="rows"):
        of_counts([0, 0], lambda x: x[:, 0])


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    random = np.random.default_rng(6)
    positive = random.random(120) < 0.4
    scores = np.round(random.normal(size=120) + positive, 1)  # some are equal
    pairs = scores[positive][:, None] - scores[~positive][None]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
    found = auc(scores, positive)
    assert found.value == pytest.approx(expected)
    assert found.lower < expected < found.upper
    # Hanley and McNeil's standard error (1982).
    q1, q2 = expected / (2 - expected), 2 * expected**2 / (1 + expected)
    m, n = positive.sum(), (~positive).sum()
    spread = (m - 1) * (q1 - expected**2) + (n - 1) * (q2 - expected**2)
    error = np.sqrt((expected * (1 - expected) + spread) / (m * n))
    assert (found.upper - found.lower) / 2 == pytest.approx(1.96 * error, rel=0.3)
    assert auc(-scores, positive).value == pytest.approx(1 - expected)
    assert auc(np.zeros(10), np.arange(10) < 3).value == 0.5
    with pytest.raises(DataError, match="0 positive and 5 negative"):
        auc(np.zeros(5), np.zeros(5, bool))


def test_scores_are_resampled_in_parts_and_at_once_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, positive = np.random.default_rng(7).normal(size=50), np.arange(50) < 20
    monkeypatch.setattr("dptext_spark.audit.text_classifier.CELLS", 500)
    parts = auc(scores, positive)
    monkeypatch.undo()
    assert parts.lower == pytest.approx(auc(scores, positive).lower, abs=0.05)
