"""Downstream accuracy with all four of plain and private text."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.utility.learning import Both, TextClassifier, downstream_accuracy
from dptext_spark.errors import DataError
from tests.core.audit.labelled_texts import labelled, replaced

pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


def test_all_four() -> None:
    """A code that turns the words of one label into those of the other is learnt, and misleads whoever has not learnt it."""
    train, train_labels = labelled(300, 1)
    test, test_labels = labelled(200, 2)
    both = [Both(part, replaced(part, 1.0, seed, swap=True)) for part, seed in ((train, 3), (test, 4))]
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


def test_what_is_replaced_by_anything_says_nothing() -> None:
    train, train_labels = labelled(300, 1)
    test, test_labels = labelled(400, 2)
    both = (Both(train, replaced(train, 1.0, 3)), Both(test, replaced(test, 1.0, 4)))
    found = downstream_accuracy(TextClassifier(), both[0], train_labels, both[1], test_labels)
    for name, estimate in found.accuracy.items():
        assert estimate.value > 0.95 if name == "plain/plain" else 0.35 < estimate.value < 0.7


def test_labels_of_the_test_that_were_never_seen_are_never_right() -> None:
    texts, labels = labelled(100, 1)
    both = Both(texts, texts)
    found = downstream_accuracy(TextClassifier(), both, labels, both, ["new"] * 100)
    assert all(estimate.value == 0.0 for estimate in (*found.accuracy.values(), found.majority))


def test_one_class() -> None:
    both = Both(["a b", "c d"], ["a b", "c d"])
    with pytest.raises(DataError, match="mood: 1 class"):
        downstream_accuracy(TextClassifier(label="mood"), both, ["x", "x"], both, ["x", "y"])
