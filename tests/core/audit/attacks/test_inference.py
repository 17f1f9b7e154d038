"""The attribute attack, whose adversary may privatize the training text first; and the membership attack."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dptext_spark.audit.attacks.inference import (
    attribute_attack,
    best_threshold,
    membership_attack,
    numbered,
    split,
)
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


def personal(users: int, each: int, seed: int) -> tuple[list[str], list[str], list[str]]:
    """Texts with words that only their user writes, and labels by chance: all there is to learn is who said what."""
    random = np.random.default_rng(seed)
    texts, labels, owners = [], [], []
    for user in range(users):
        label = ["good", "bad"][int(random.integers(2))]
        for _ in range(each):
            own = [f"own{user}x{random.integers(3)}" for _ in range(3)]
            texts.append(" ".join([*own, f"common{random.integers(4)}"]))
            labels.append(label)
            owners.append(f"user {user}")
    return texts, labels, owners


def test_a_model_that_learns_by_heart_gives_its_members_away() -> None:
    texts, labels, owners = personal(400, 3, 1)
    private = replaced(texts, 1.0, 2)  # any word for any: nothing of a user is left
    found = membership_attack(TextClassifier(100.0), Pair(texts, private), labels, owners, seed=3)
    assert (found.users, found.shadow_users, found.random) == (200, 200, 0.5)
    plain, none = found.unprotected, found.private
    assert min(plain.accuracy.value, plain.precision.value, plain.recall.value) > 0.9
    assert plain.auc.lower > 0.95
    # 100 members and 100 others, scores that say nothing: a standard error of 0.041, so 0.2 is nearly five of them.
    assert abs(none.auc.value - 0.5) < 0.2
    assert abs(none.accuracy.value - 0.5) < 0.2
    assert none.auc.lower < none.auc.value < none.auc.upper
    assert found.restricted
    assert not found.exact


def test_the_users_that_are_attacked_are_nobodys_training() -> None:
    """No user's text is in both the target and the shadow model, and each is in one quarter with all texts."""
    texts, labels, owners = personal(80, 2, 4)
    seen: list[set[str]] = []

    class Watching(TextClassifier):
        def fit(self, given: object, chosen: object) -> object:  # type: ignore[override]
            seen.append({text.split("x")[0] for text in given})  # type: ignore[attr-defined]
            return super().fit(given, chosen)  # type: ignore[arg-type]

    membership_attack(Watching(), Pair(texts, texts), labels, owners)
    # The first quarter in the target, the third in the shadow model; the second and fourth in neither.
    order = np.random.default_rng(0).permutation(80)
    target, shadow = ({f"own{user}" for user in part.tolist()} for part in (order[:20], order[40:60]))
    assert seen == [target, shadow] * 2


def test_the_best_threshold() -> None:
    def right(least: float) -> float:
        return float(((scores >= least) == members).mean())

    random = np.random.default_rng(5)
    for _ in range(20):
        members = random.random(30) < 0.5
        scores = np.round(random.normal(size=30) + members, 1)
        found = best_threshold(scores, members)
        assert right(found) == max(right(least) for least in [*scores.tolist(), np.inf])
    assert best_threshold(np.array([1.0, 2.0]), np.array([False, False])) == np.inf
    assert best_threshold(np.array([1.0, 2.0]), np.array([True, True])) == 1.0


def test_users_are_numbered_as_they_come() -> None:
    assert numbered(["b", "a", "b", None]).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("texts", "private", "labels", "users", "message"),
    [
        (16, 15, 16, 16, "texts.private: 15 values for 16 texts"),
        (16, 16, 15, 16, "labels: 15 values for 16 texts"),
        (16, 16, 16, 15, "users: 15 values for 16 texts"),
        (7, 7, 7, 7, "users: 7 "),
    ],
)
def test_lengths_that_differ_and_too_few_users(
    texts: int, private: int, labels: int, users: int, message: str
) -> None:
    classes = [["x", "y"][place % 2] for place in range(labels)]
    with pytest.raises(DataError, match=f"^{message}"):
        membership_attack(TextClassifier(), Pair(["a"] * texts, ["a"] * private), classes, list(range(users)))
