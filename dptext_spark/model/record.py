"""ε of a record: what the draws of one record come to together, as far as the law that is sampled lets that be said.

What it rests on depends on the law alone. It takes seconds to find, and is kept in the user's cache by the model's fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dptext_spark._version import __version__
from dptext_spark.errors import DPTextError
from dptext_spark.guarantee import Guarantee, counted
from dptext_spark.importance.budget import Budget
from dptext_spark.mechanisms.privacy_loss import RecordLoss, record_loss
from dptext_spark.mechanisms.privacy_loss.accountant import DELTA, RecordBound, record_bound, rounded_up
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.rounding import digits_up, exact
from dptext_spark.runtime.display import Counted
from dptext_spark.runtime.jit import build
from dptext_spark.runtime.paths import user_cache, write_atomically

SIZES = (25, 100)  # drawn words for which figures are stated where those of a run may not be shown
RARE = 0.01  # records that may fare worse, on average, from which a warning is due
_known: dict[str, RecordLoss] = {}


@dataclass(frozen=True)
class RecordAccount:
    """How the draws of a record compose.

    Attributes:
        loss: what of the law decides it.
        guarantee: of one draw; of one unit where levels of importance differ in ε.
        consistency: token, record or dataset.
        levels: of importance.
        delta: up to which ε of a record is stated.
        budget: what each record has at most whatever its number of drawn words; None where that is not bounded.
    """

    loss: RecordLoss
    guarantee: Guarantee
    consistency: str
    levels: int = 1
    delta: float = DELTA
    budget: Budget | None = None

    @property
    def why(self) -> str:
        """Why no number of words has an ε, as a sentence; empty where it has one."""
        if self.consistency == "dataset":
            return "A record has no ε of its own at dataset level: all records share the draws."
        if self.loss.why:
            return self.loss.why
        if not self.guarantee.adds_up:
            return (
                "Its ε is for each unit of distance: that of a record is ε times the sum of the distances between the words of "
                "two records, which no number of words gives."
            )
        return ""

    def of(self, draws: int) -> RecordBound | None:
        """Return what a record of so many drawn words has, None where :attr:`why` says why there is nothing.

        Args:
            draws: drawn words, at record level distinct ones; with several levels of importance, or a budget,
                units of ε.
        """
        if self.why:
            return None
        if self.budget is not None:
            return self._within(self.budget, draws)
        if self.levels > 1:
            # How many words were drawn at which level is not counted: of their sum alone is known what it is.
            summed = self.guarantee.compose(draws)
            return RecordBound(None, summed.epsilon, summed.delta, "sum", summed.epsilon)
        return record_bound(self.loss, draws, self.guarantee.epsilon, self.delta)

    def _within(self, budget: Budget, units: int) -> RecordBound:
        """Return the lesser of the plain sum and the budget."""
        summed = self.guarantee.compose(units)
        if summed.epsilon <= budget.record and summed.delta <= budget.delta:
            return RecordBound(None, summed.epsilon, summed.delta, "sum", summed.epsilon)
        return RecordBound(None, budget.record, budget.delta, "budget", summed.epsilon)

    def times(self, records: int) -> float:
        """Return N·δ, rounded up: about so many of N records may fare worse than ε says."""
        return rounded_up(records * self.delta)

    @property
    def stated(self) -> str:
        """ε of records of some sizes, as a sentence; why there is none, where there is none."""
        if self.why:
            return self.why
        if self.budget is not None:
            return (
                f"Every record has at most {self.budget}, whatever its number of {counted(self.consistency)}; short ones have "
                "less, the sum over their words."
            )
        if self.levels > 1:
            return "Where levels of importance differ in ε, that of a record is the sum over its drawn words."
        figures = [one for size in SIZES if (one := self.of(size)) is not None]
        if not figures:
            return "The δ of its draws adds up to 1 or more over a record: it has no ε."
        words = counted(self.consistency)
        parts = [f"{each.draws} {words}: {each}, where the sum is {exact(each.total)}" for each in figures]
        return f"ε of a record of {'; of '.join(parts)}."

    @property
    def unit(self) -> str:
        """What is compared, as a sentence."""
        same = "have the same released parts (which places are drawn, and all that is released as it is)"
        if self.consistency == "record":
            same += ", the same pattern of equal words"
        sets = (
            " and words of the same output sets, place by place. What the sets themselves tell is not counted"
            if self.guarantee.compared == "words that share an output set"
            else ""
        )
        return f"It compares two records, each with all text columns and all rows of its record key, that {same}{sets}."

    def meaning(self, records: int | None = None) -> str:
        """Say what δ means, and what an ε in the tens is worth.

        Args:
            records: how many there are; None where that is not known.
        """
        about = (
            "about δ times the number of records"
            if records is None
            else f"about {digits_up(records * self.delta, 2)} of {records:,} records (δ times their number)"
        )
        return (
            f"δ is that of one record and does not add up over records, but {about} may fare worse than ε says. Of a person of "
            "several records, and of a record that is released again, ε and δ add up."
        )


WEAK = (
    "An ε in the tens protects little by itself: how many words attacks find says more (`dptext report` and `dptext calibrate` "
    "have these figures)."
)


def record_account(privatizer: Privatizer, progress: Counted | None = None) -> RecordAccount:
    """Return how the draws of a record compose under a model.

    Args:
        privatizer: the compiled model.
        progress: progress callback, called with how much is done.
    """
    guarantee, levels = privatizer.units.of_one, len(privatizer.units.multiples)
    level, budget = privatizer.consistency, privatizer.budget
    if budget is not None:
        plain = RecordLoss(float(guarantee.epsilon), float(guarantee.delta))
        return RecordAccount(plain, guarantee, level, levels, budget.delta, budget)
    if level == "dataset" or levels > 1 or not guarantee.adds_up:
        refuted = any(one.guarantee.status == "refuted" for one in privatizer.samplers)
        plain = RecordLoss(float(guarantee.epsilon), float(guarantee.delta))
        if refuted or guarantee.compared == "sensitive words":
            plain = record_loss(privatizer.sampler, len(privatizer.vocabulary))
        return RecordAccount(plain, guarantee, level, levels)
    return RecordAccount(loss_of(privatizer, progress), guarantee, level)


def loss_of(privatizer: Privatizer, progress: Counted | None = None) -> RecordLoss:
    """Return what of a model's law decides the ε of a record: as it was found before, or found now and kept.

    Args:
        privatizer: of one level of importance.
        progress: progress callback, called with how much is done.
    """
    name = hashlib.sha256(
        json.dumps(
            [privatizer.fingerprint, privatizer.sampler.guarantee.as_dict(), __version__, build()]
        ).encode()
    ).hexdigest()[:32]
    if name not in _known:
        kept = _read(name)
        if kept is None:
            kept = record_loss(privatizer.sampler, len(privatizer.vocabulary), progress)
            _keep(name, kept)
        _known[name] = kept
    return _known[name]


def _folder() -> Path:
    return user_cache() / "records"


def _read(name: str) -> RecordLoss | None:
    """Return what was kept; None where nothing is, or it is damaged."""
    try:
        written = json.loads((_folder() / f"{name}.json").read_text(encoding="utf-8"))
        found = RecordLoss.from_dict(written["loss"])
        sound = written["digest"] == _digest(found)
    except (OSError, ValueError, KeyError, TypeError, DPTextError):
        return None
    return found if sound else None


def _keep(name: str, loss: RecordLoss) -> None:
    """Keep it where that can be written; else it is found again next time."""
    if not math.isfinite(loss.epsilon):
        return
    with suppress(OSError, DPTextError):
        os.makedirs(_folder(), exist_ok=True)
        text = json.dumps({"loss": loss.as_dict(), "digest": _digest(loss)})
        write_atomically(_folder() / f"{name}.json", text)


def _digest(loss: RecordLoss) -> str:
    return hashlib.sha256(json.dumps(loss.as_dict(), sort_keys=True).encode()).hexdigest()
