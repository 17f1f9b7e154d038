"""The promise about one word, as a value that prints as a sentence (concepts/mechanisms, Guarantee and certificate)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, get_args

from dptext_spark.errors import DPTextError
from dptext_spark.rounding import exact
from dptext_spark.runtime.display import line, table
from dptext_spark.runtime.validation import Record

Kind = Literal["epsilon_dp", "epsilon_dp_within_group", "metric_dp", "approx_dp"]
Status = Literal["proved", "verified", "claimed", "refuted"]
SENSITIVE = " between sensitive words"  # ends the name of a distance that other words do not have


@dataclass(frozen=True)
class Guarantee(Record):
    """The guarantee of a single draw, or of the draws of a record together.

    Attributes:
        kind: what is bounded: any two words (`epsilon_dp`), words that share an output set
            (`epsilon_dp_within_group`), words by their distance (`metric_dp`), or up to a probability (`approx_dp`).
        epsilon: the bound on |ln P(u|w) - ln P(u|w')|: per unit of distance for `metric_dp`, up to `delta` for `approx_dp`.
        delta: the additive probability of `approx_dp`; 0 otherwise.
        metric: the distance of `metric_dp`; None otherwise. It may end in `SENSITIVE`: words that are not sensitive have no
            distance then, and no bound.
        unit: what is compared with what; `record` after :meth:`compose`.
        status: how well the bound is known to hold for the law that is really sampled.
        sentence: the bound in plain words.

    Examples:
        >>> guarantee = model.guarantee()
        >>> guarantee.kind, guarantee.unit
        ('epsilon_dp_within_group', 'one occurrence of a word')
        >>> guarantee.compose(10).epsilon  # of ten drawn words together
        20.0
    """

    kind: Kind
    epsilon: float
    delta: float = 0.0
    metric: str | None = None
    unit: str = "word"
    status: Status = "proved"
    sentence: str = ""

    def __str__(self) -> str:
        """Return the sentence with its status."""
        return f"{self.sentence} [{self.status}]"

    def __repr__(self) -> str:
        """Return kind, bounds, unit and status; the sentence is what `str` returns."""
        delta = f"δ = {exact(self.delta)}" if self.delta else ""
        return line("Guarantee", self.kind, f"ε = {exact(self.epsilon)}", delta, self.unit, self.status)

    def _repr_html_(self) -> str:
        """Show the guarantee in a notebook."""
        rows = [
            ("kind", self.kind),
            ("ε", exact(self.epsilon)),
            *([("δ", exact(self.delta))] if self.delta else []),
            *([] if self.metric is None else [("distance", self.metric)]),
            ("unit", self.unit),
            ("status", self.status),
        ]
        return table("Guarantee", rows, note=self.sentence)

    @property
    def is_sound(self) -> bool:
        """True if its fields have valid types and values, also when read from a file; this does not check the bound."""
        texts = (self.unit, self.sentence, self.metric or "")
        numbers = (self.epsilon, self.delta)
        return (
            self.kind in get_args(Kind)
            and self.status in get_args(Status)
            and all(isinstance(text, str) for text in texts)
            and all(isinstance(n, int | float) and not isinstance(n, bool) and n >= 0 for n in numbers)
        )

    @property
    def compared(self) -> str:
        """The compared words, in the plural; the guarantee says nothing of any others."""
        return compared(self.kind, self.metric)

    @property
    def adds_up(self) -> bool:
        """True if several draws have a bound of their own: by distance they do not (concepts/mechanisms, Levels)."""
        return self.kind != "metric_dp"

    def of_record(self, consistency: str, levels: int = 1, budget: str = "") -> str:
        """Return the bound on the draws of a record together, in words (concepts/mechanisms, Levels).

        Where ε is per unit of distance, the bound is never a number of words times ε.

        Args:
            consistency: token, record or dataset.
            levels: of importance, each with an ε of its own.
            budget: what a record has at most, in words; empty where that is not bounded.
        """
        if consistency == "dataset":
            return "not defined for a record: at dataset level all records share the draws"
        each = "the sum over the levels of importance of the level's ε" if levels > 1 else "ε"
        words = counted(consistency)
        if budget:
            return f"at most {budget}, and at most the number of its {words} times the ε of the law that this number chooses"
        if not self.adds_up:
            at = " at it" if levels > 1 else ""
            return f"{each} times the sum of the distances between the {words} of two records{at}"
        return f"{each} times {'its' if levels > 1 else 'the'} {words} of the record"

    @property
    def other_records(self) -> str:
        """The records that a record's draws are compared with (concepts/mechanisms, Levels)."""
        alike = "records that have the same length and the same released parts"
        if self.compared == "words":
            return alike
        among = "within the words' output sets" if self.adds_up else "where both have a sensitive word"
        return f"{alike}, and differ only {among}"

    def compose(self, draws: float) -> Guarantee:
        """Return the guarantee for all draws of a record together, by basic composition.

        It does not know the level: draws that records share, as at dataset level, are no draws of a record.

        Args:
            draws: number of independent draws (token level: drawn words; record level: distinct drawn words). The mean
                over records gives their mean ε.

        Returns:
            n·ε and n·δ (at most 1) with the unit `record`; the status is that of a single draw.

        Raises:
            DPTextError: `metric_dp`, because its sum depends on the distances between the words of two records, and n·ε must not
                be printed. Or `draws` is no number of draws.
        """
        if not self.adds_up:
            raise DPTextError(
                "guarantee: metric_dp has no bound for several draws, except ε times the sum of the distances. Choose one "
                "draw, or another kind."
            )
        if not 0 <= draws < math.inf:
            raise DPTextError(f"draws: {draws!r} is not valid. Choose 0 or a greater finite number.")
        epsilon, delta = _times(self.epsilon, draws), min(1.0, _times(self.delta, draws))
        bound = f"ε = {exact(epsilon)}"
        if self.kind == "approx_dp":
            bound = f"{bound} up to a probability δ = {exact(delta)}"
        sentence = f"{exact(draws)} draws of a record are together private with {bound}, against {self.other_records}."
        return replace(self, epsilon=epsilon, delta=delta, unit="record", sentence=sentence)


def counted(consistency: str) -> str:
    """Name the words that count over a record: each occurrence at token level, equal ones once at record level."""
    return "drawn words" if consistency == "token" else "distinct drawn words"


def compared(kind: str, metric: str | None) -> str:
    """Name the words that a guarantee of this kind and distance compares, in the plural."""
    if kind == "epsilon_dp_within_group":
        return "words that share an output set"
    return "sensitive words" if (metric or "").partition(",")[0].endswith(SENSITIVE) else "words"


def _times(bound: float, draws: float) -> float:
    """Multiply in decimals, as a person would: 3 times 0.1 is 0.3; no draws reveal nothing, whatever the bound."""
    return float(Decimal(repr(float(bound))) * Decimal(repr(float(draws)))) if draws else 0.0
