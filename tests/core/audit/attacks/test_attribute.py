"""The attribute attack: the paper's adversary, and one who privatizes the training text first."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dptext_spark.audit.attacks.inference import attribute_attack, split
from dptext_spark.audit.text_classifier import Pair, TextClassifier
from dptext_spark.errors import DataError
from tests.core.audit.labelled_texts import labelled, replaced

pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


def test_a_code_fools_only_who_does_not_know_it() -> None:
    texts, labels = labelled(600, 1)
    found = attribute_attack(Pair(texts, replaced(texts, 1.0, 2, swap=True)), labels, seed=3)
    assert (found.rows, found.classes, found.random) == ((480, 60, 60), 2, 0.5)
    assert max(found.private.accuracy.value, found.private.f1.value) < 0.1
    for side in (found.adaptive, found.unprotected):
        assert min(side.accuracy.value, side.f1.value) > 0.9
        assert side.accuracy.lower <= side.accuracy.value <= side.accuracy.upper
    assert 0.3 < found.majority.f1.value < 0.45 < found.majority.accuracy.value < 0.8
    assert found.restricted
    assert not found.exact


def test_nothing_is_left_of_words_that_become_anything() -> None:
    texts, labels = labelled(1_000, 4)
    found = attribute_attack(Pair(texts, replaced(texts, 1.0, 5)), labels)
    # 100 test rows of two classes: a standard error of 0.05.
    assert 0.25 < found.private.accuracy.value < 0.75
    assert 0.25 < found.adaptive.accuracy.value < 0.8
    assert found.unprotected.accuracy.value > 0.9


def test_the_second_part_chooses_the_classifier() -> None:
    texts, labels = labelled(400, 6)
    kinds = [TextClassifier(1e-6), TextClassifier(5.0)]  # the first can only say the commoner class
    found = attribute_attack(Pair(texts, texts), labels, classifiers=kinds)
    assert found.settings["classifier"] == kinds[1].summary
    assert found.unprotected.accuracy.value > 0.9


def test_a_user_is_in_one_part_only() -> None:
    users = [f"u{i // 3}" for i in range(300)]
    parts = split(300, users, 7)
    assert [len(part) for part in parts] == [240, 30, 30]
    assert sorted(np.concatenate(parts).tolist()) == list(range(300))
    named = [{users[i] for i in part.tolist()} for part in parts]
    assert not any(first & second for first, second in itertools.combinations(named, 2))
    assert all((a == b).all() for a, b in zip(parts, split(300, users, 7), strict=True))
    assert not all((a == b).all() for a, b in zip(parts, split(300, users, 8), strict=True))
    assert [len(part) for part in split(300, None, 0)] == [240, 30, 30]
    with pytest.raises(DataError, match="users: 9 "):
        split(9, None, 0)


def test_attributes_that_cannot_be_attacked() -> None:
    texts = [f"word{i}" for i in range(20)]
    for private, labels, message in (
        (texts, ["secret"] * 20, "gender: 1 class in 20 rows"),
        (texts, ["a"] * 19, "gender: 19 values for 20 texts"),
        (texts[:3], ["a", "b"] * 10, r"texts\.private: 3 values for 20"),
    ):
        with pytest.raises(DataError, match=message) as error:
            attribute_attack(Pair(texts, private), labels, column="gender")
        assert "secret" not in str(error.value)
