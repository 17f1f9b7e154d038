"""The membership attack: it finds what was learnt by heart, and nothing where nothing was."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.attacks.inference import best_threshold, membership_attack, numbered
from dptext_spark.audit.text_classifier import Pair, TextClassifier
from dptext_spark.errors import DataError
from tests.core.audit.labelled_texts import replaced

pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


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
