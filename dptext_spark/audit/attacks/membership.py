"""The membership attack: was a user's text among what a model was trained on (Feyisetan et al. 2020, §6)?

The adversary queries the model with the user's own texts and labels. How well it predicts them is the score: the log-probability
of the true label, mean over the user's texts (Yeom et al. 2018), either raw or minus the score of a shadow model that was trained
elsewhere in the same way (Watson et al. 2022). The variant and the threshold are those that work best on the shadow users, whose
membership the adversary knows. All figures are taken on users that neither the shadow model nor these choices have seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, offsets
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.utility.learning import (
    Both,
    Label,
    TextClassifier,
    TextModel,
    auc,
    confusion,
    of_counts,
    precision,
    recall,
)
from dptext_spark.errors import DataError

LEAST = 1e-12  # floor of a probability before its logarithm is taken
QUARTERS = 4  # target members and others, shadow members and others


@dataclass(frozen=True)
class MembershipFigures:
    """How well members are found.

    Attributes:
        precision: the share of users called members who are; 0 where nobody is.
        recall: the share of members who are called so.
        accuracy: the share of users who are called what they are.
        auc: the probability that a member scores above a user who is none.
    """

    precision: Estimate
    recall: Estimate
    accuracy: Estimate
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class MembershipAttack(AuditResult):
    """What a trained model tells of who was in its training text.

    Attributes:
        private: against a model trained on the members' privatized text.
        unprotected: against one trained on their original text.
        random: accuracy and AUC of guessing.
        users: who were attacked, half of them members.
        shadow_users: whose membership the adversary knows.
    """

    name: str = "membership attack"
    measures: str = (
        "How often it is found out whether a user's text was in the training text of a model, "
        "from the model's answers."
    )
    knows: str | None = (
        "The adversary holds the user's original texts with their labels, may ask the model for probabilities, and has other "
        "users' texts, original and privatized by the same mechanism, to train a model of the same kind; it does not see the "
        "text that the model was trained on, nor the key."
    )

    private: MembershipFigures
    unprotected: MembershipFigures
    random: float
    users: int
    shadow_users: int

    def shown(self) -> Shown:
        """Show the AUC, and what answers of yes and no are worth."""
        sides = (("privatized text", self.private), ("original text", self.unprotected))
        called = {
            f"{name}, {said}": getattr(figures, name)
            for said, figures in sides
            for name in ("accuracy", "precision", "recall")
        }
        said = "What the adversary's answers of yes and no are worth."
        return Shown(
            (
                Group("AUC", {"a classifier that learnt from privatized text": self.private.auc}),
                Group("who is called a member", called, shows=said),
            ),
            {"guessing": self.random, "a classifier that learnt from original text": self.unprotected.auc},
            {"users": self.users, "shadow users": self.shadow_users},
        )


def membership_attack(
    classifier: TextClassifier,
    texts: Both[Sequence[str]],
    labels: Sequence[Label],
    users: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
) -> MembershipAttack:
    """Attack a model trained on a quarter of the users; another quarter was not in it, and two are the adversary's.

    Args:
        classifier: how the model is trained, and the adversary's, too.
        texts: [n], original and privatized.
        labels: [n], what the model predicts.
        users: [n], whose text each is; None where each is another user's.
        seed: of the split of the users.

    Raises:
        DataError: lengths that differ, fewer than 8 users, or one class among the labels of a quarter.
    """
    rows = len(texts.plain)
    require_equal_lengths(texts, users, labels=labels)
    owner, quarter = dealt(rows, users, QUARTERS, 2 * QUARTERS, seed)
    many = len(quarter)
    found = []
    for training in (texts.private, texts.plain):
        target, shadow = (
            classifier.fit(*_rows(training, labels, quarter[owner] == members)) for members in (0, 2)
        )
        both = [_mean_log_probability(model, texts.plain, labels, owner, many) for model in (target, shadow)]
        attacked = quarter < 2
        # For a shadow user the roles are swapped: the shadow model is the one that may have seen their texts.
        plain = np.where(attacked, both[0], both[1])
        score = _better(plain, 2 * plain - both[0] - both[1], ~attacked, quarter == 2)
        threshold = best_threshold(score[~attacked], quarter[~attacked] == 2)
        found.append(_figures(score[attacked], quarter[attacked] == 0, threshold))
    return MembershipAttack(
        private=found[0],
        unprotected=found[1],
        random=0.5,
        users=int((quarter < 2).sum()),
        shadow_users=int((quarter >= 2).sum()),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        settings={"classifier": classifier.summary, "seed": seed, "texts": rows},
    )


def require_equal_lengths(
    texts: Both[Sequence[str]], users: Sequence[Hashable] | None, **columns: Sequence[Label]
) -> None:
    """Check that each text has its replacement, its user and its value of each column."""
    rows = len(texts.plain)
    for name, values in {"texts.private": texts.private, **columns, "users": users}.items():
        if values is not None and len(values) != rows:
            raise DataError(f"{name}: {len(values)} given for {rows} texts; valid: one for each text.")


def dealt(rows: int, users: Sequence[Hashable] | None, parts: int, least: int, seed: int) -> tuple[I64, I64]:
    """Deal users over equal parts: (int64[rows], the number of each row's user; int64[users], the part of each).

    Raises:
        DataError: fewer than `least` users.
    """
    owner = np.arange(rows) if users is None else numbered(users)
    count = int(owner.max(initial=-1)) + 1
    if count < least:
        raise DataError(
            f"users: {count} given; valid: {least} or more, for they are dealt over {parts} parts."
        )
    part = np.empty(count, np.int64)
    part[np.random.default_rng(seed).permutation(count)] = np.arange(count) * parts // count
    return owner, part


def best_threshold(scores: F64, members: Bools) -> float:
    """Return the least score to be called a member by, right most often on these users; ties to the highest.

    Args:
        scores: float64[n].
        members: bool[n].
    """
    levels, place = np.unique(scores, return_inverse=True)
    # Calling those from level i on members: right are the members there and the others below.
    above = np.append(np.cumsum(np.bincount(place[members], minlength=len(levels))[::-1])[::-1], 0)
    below = offsets(np.bincount(place[~members], minlength=len(levels)))
    best = len(levels) - int((above + below)[::-1].argmax())
    return float("inf") if best == len(levels) else float(levels[best])


def _better(one: F64, other: F64, known: Bools, members: Bools) -> F64:
    """Return the score that tells the members among the known users from the others better; ties to the first."""
    areas = [auc(score[known], members[known], resamples=1).value for score in (one, other)]
    return one if areas[0] >= areas[1] else other


def numbered(users: Sequence[Hashable]) -> I64:
    """Return int64[n], 0, 1, ... for the users in the order in which they first appear."""
    place: dict[Hashable, int] = {}
    return np.array([place.setdefault(user, len(place)) for user in users], np.int64)


def _rows(texts: Sequence[str], labels: Sequence[Label], chosen: Bools) -> tuple[list[str], list[Label]]:
    at = np.flatnonzero(chosen).tolist()
    return [texts[i] for i in at], [labels[i] for i in at]


def _mean_log_probability(
    model: TextModel,
    texts: Sequence[str],
    labels: Sequence[Label],
    owner: I64,
    many: int,
) -> F64:
    """Return the mean log-probability of the true labels of each user's texts, float64[users]."""
    scores, truth = model.scores(texts), model.places(labels)
    # A label that the model has never seen has no probability.
    given = np.where(truth >= 0, scores[np.arange(len(truth)), truth], 0.0)
    logs = np.log(np.maximum(given, LEAST))
    return np.asarray(np.bincount(owner, logs, many) / np.bincount(owner, minlength=many), np.float64)


def _figures(scores: F64, members: Bools, least: float) -> MembershipFigures:
    called = scores >= least
    cells = confusion(members.astype(np.int64), called.astype(np.int64), 2).ravel()
    return MembershipFigures(
        of_counts(cells, precision),
        of_counts(cells, recall),
        of_counts(cells, lambda shares: shares[:, 0] + shares[:, 3]),
        auc(scores, members),
    )
