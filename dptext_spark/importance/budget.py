"""The limit of a whole record: the number of drawn words, and nothing else, chooses the law of its words.

The number of drawn words and their places are released parts of a record. So the choice reveals nothing within the unit that an ε
of a record compares (docs: ε of a record). Words beyond the weakest law's number become one constant mask. Even a draw without
information on the word would reveal the word's set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dptext_spark.arrays import I64
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import Importance, Levels, Units
from dptext_spark.importance.selector import RowTexts
from dptext_spark.mechanisms import Mechanism
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.privacy_loss.accountant import DELTA
from dptext_spark.mechanisms.remap import remap_of
from dptext_spark.rounding import exact
from dptext_spark.runtime.jit import compiled
from dptext_spark.runtime.validation import Json, Record, problems_of, valid
from dptext_spark.text.engine import Engine
from dptext_spark.text.policy import BEYOND_MASK, Policy
from dptext_spark.text.selection import BEYOND, Texts, TokenSelection

MOST_WORDS = 100_000  # of a record that are drawn, whatever a law allows
STEPS = 4  # laws an octave
OCTAVES = 4  # below the mechanism's ε
LEAST = 0.05  # ε of a law
PLACES = 1_000  # ε of a law in thousandths, rounded down


@dataclass(frozen=True)
class Budget(Record):
    """ε and δ that each record has at most.

    Attributes:
        record: ε of a record.
        delta: δ of a record.

    Examples:
        >>> dp.Budget(record=50, delta=1e-6).delta
        1e-06
    """

    record: Annotated[float, Field(gt=0, allow_inf_nan=False), valid("a finite number above 0")]
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), valid("a number above 0 and below 1")] = (
        DELTA
    )

    def __post_init__(self) -> None:
        """Check both.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        if problems := [*problems_of(self, "budget")]:
            raise SettingsError("\n".join(problems))
        object.__setattr__(self, "record", float(self.record))
        object.__setattr__(self, "delta", float(self.delta))

    def __str__(self) -> str:
        """Return the budget as a part of a sentence."""
        return f"ε = {exact(self.record)} up to a probability δ = {exact(self.delta)}"


def laws_below(epsilon: float) -> tuple[float, ...]:
    """Return ε of a budget's laws, falling: the mechanism's own, then the quarter powers of two below it.

    They are rounded down to thousandths, and end at 1/16 of the mechanism's or at `LEAST`.
    """
    least = max(epsilon / 2**OCTAVES, LEAST)
    first = math.ceil(STEPS * math.log2(epsilon)) if epsilon > 0.0 else 0
    powers = (
        math.floor(2.0 ** (step / STEPS) * PLACES) / PLACES
        for step in range(first, first - STEPS * OCTAVES - 2, -1)
    )
    return (epsilon, *[power for power in powers if least <= power < epsilon][: STEPS * OCTAVES])


@dataclass(frozen=True, eq=False)
class BudgetSelector(Levels):
    """Chooses the law of each record by how many of its words are drawn.

    Attributes:
        most: int64[laws], rising: drawn words (at record level distinct ones) up to which each law keeps to the budget. The first
            law is that of the model's sampler and has the largest ε.
        further: the samplers of the laws after the first, by falling ε.
    """

    budget: Budget
    most: I64
    further: tuple[Sampler, ...] = ()

    def __post_init__(self) -> None:
        """Compare the compiled laws with the allotted ones; :class:`SettingsError`: another number of samplers."""
        if len(self.further) != len(self.most) - 1:
            raise SettingsError(
                f"budget: {len(self.most)} laws do not fit {len(self.further) + 1} samplers. Give one sampler for each law."
            )

    @property
    def whole_records(self) -> bool:
        """Whether all texts of a record must be known before its first draw: always, at every level of consistency."""
        return True

    @property
    def cap(self) -> int:
        """Drawn words of a record beyond which words are masked."""
        return int(self.most[-1])

    def check(self, consistency: str) -> None:
        """Refuse a level of consistency at which records have no ε of their own; :class:`SettingsError`: dataset level."""
        check_level(consistency)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that choosing and drawing needs beside the first sampler, by file name."""
        return {"budget.most": self.most, **self.level_arrays()}

    def bound(self) -> Mapping[str, Json]:
        """Return the parameters, besides the arrays, that choose the law: JSON-able, for a fingerprint."""
        return {"budget": self.budget.as_dict()}

    def choose(
        self, engine: Engine, columns: Sequence[Texts], consistency: str, units: Units
    ) -> tuple[TokenSelection, ...]:
        """Choose the law of each row's words by their number, and the words that are masked.

        Args:
            engine: that will draw them.
            columns: all texts of the rows, one or more columns.
            consistency: token or record, where equal words count once.
            units: of the laws.

        Returns:
            The choice in each column.

        Raises:
            DataError: weights are given.
        """
        rows = RowTexts.of(columns)
        if rows.weights is not None:
            raise DataError("weights: not valid with a budget. Remove them.")
        listed = rows.listed(engine)
        levels, distinct = np.empty(len(listed.codes), np.uint8), consistency == "record"
        counted, turn = (np.zeros(int(engine.table.size[0]) if distinct else 0, np.int64) for _ in range(2))
        _allot(listed.codes, listed.words.record_bounds, self.most, distinct, counted, turn, levels)
        return rows.split(listed, levels, units, len(counted))

    def guarantee(self, first: Guarantee) -> Guarantee:
        """Return the guarantee of a drawn word, whatever the law: that of the largest ε."""
        return replace(super().guarantee(first), sentence=first.sentence)

    def sentence(self, chosen_in: str) -> str:
        """Describe the budget and the choice of the law; `chosen_in`: unit of the word counts, text or record."""
        last = self.further[-1].guarantee.epsilon if self.further else None
        varies = (
            "" if last is None else f" Longer ones have a smaller ε for a word, down to {exact(float(last))}."
        )
        return (
            f"Each {chosen_in} has at most {self.budget}. Its number of drawn words alone chooses its law.{varies} Words "
            f"beyond {self.cap:,} of a {chosen_in} become {BEYOND_MASK}. The number of drawn words and the masked words are "
            "taken as known."
        )


def check_level(consistency: str) -> None:
    """Refuse a level of consistency at which records have no ε of their own; :class:`SettingsError`: dataset level."""
    if consistency == "dataset":
        raise SettingsError(
            "consistency: 'dataset' is not valid with a budget: all records share its draws, so that a record has no ε of "
            "its own. Choose token or record."
        )


def check_budget(
    mechanism: Mechanism, policy: Policy, consistency: str, importance: Importance | None
) -> None:
    """Refuse what does not go with a budget.

    Raises:
        SettingsError: importance, dataset level, fluent draws, or unknown words that would pass through one remap of many.
    """
    if importance is not None:
        raise SettingsError(
            "budget: not valid with importance, because both choose the law of a word. Choose one of budget and importance."
        )
    check_level(consistency)
    if mechanism.reads_context:
        raise SettingsError(
            "budget: not valid with mechanism.fluent, because fluent draws share one law. Choose fluent: false."
        )
    if remap_of(mechanism) != "none" and policy.oov == "draw":
        raise SettingsError(
            "policy.oov: 'draw' is not valid with a budget and mechanism.remap: each law has a remap of its own, and "
            "unknown words need one. Choose mask or keep."
        )


def check_whole_records(row_key: str | None, record_key: str | None) -> None:
    """Refuse records of several rows: their number of words is not known when the first word is drawn.

    Raises:
        SettingsError: a record_key that is not the row.
    """
    if record_key is not None and record_key != row_key:
        raise SettingsError(
            f"record_key: {record_key!r} is not valid with a budget: rows are drawn in batches, but its law depends on the "
            "words of a whole record. Choose none, or the row_key."
        )


@compiled
def _allot(codes: Any, bounds: Any, most: Any, distinct: bool, seen: Any, turn: Any, levels: Any) -> None:
    """Fill the level of each word, uint8[n]: that of its record; `BEYOND` for those beyond the last of `most`.

    `codes` int32[n] are lexicon ids, below 0 where not drawn. `distinct`: equal words of a record count once; then `seen`
    int64[V] are zeros, and `turn` is filled with when a word came first. Else both are empty.
    """
    laws = most.shape[0]
    for record in range(bounds.shape[0] - 1):
        n = np.int64(0)
        for i in range(bounds[record], bounds[record + 1]):
            word = codes[i]
            if word < 0:
                continue
            if distinct:
                if seen[word] == record + 1:
                    continue
                seen[word] = record + 1
                turn[word] = n
            n += 1
        level = np.int64(0)
        while level < laws - 1 and most[level] < n:
            level += 1
        place = np.int64(0)
        for i in range(bounds[record], bounds[record + 1]):
            word = codes[i]
            if word < 0:
                levels[i] = laws
                continue
            at = turn[word] if distinct else place
            place += 1
            levels[i] = level if at < most[laws - 1] else BEYOND
