"""What is required of an audit, as a user writes it: what is limited, a relation and a number, as in `original_share <= 0.6`.

The grammar is one, the vocabularies are two: statistics over the words of a lexicon
(:mod:`dptext_spark.audit.deniability.calibrate`), and figures of a run and of its table (:mod:`dptext_spark.config.figures`).
An estimate is judged by its bound on the cautious side.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dptext_spark.config.figures import greatest, smallest
from dptext_spark.errors import SettingsError, did_you_mean

Subject = TypeVar("Subject")
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
FORM = f"one of {', '.join(RELATIONS)} and a number"
_PATTERN = re.compile(r"\s*(.+?)\s*(<=|>=|<|>)\s*(\S+)\s*", re.DOTALL)


@dataclass(frozen=True)
class RequirementResult:
    """How a requirement stands.

    Attributes:
        value: what was found, exact or estimated.
        judged: what the limit is compared with: the value itself where it is exact, else its bound on the cautious side.
        holds: whether the requirement does.
        word: id of a word that has the judged value; None where there is none.
        exact: whether it is read off laws.
    """

    value: float
    judged: float
    holds: bool
    word: int | None
    exact: bool


@dataclass(frozen=True)
class Requirement(Generic[Subject]):
    """A limit on a figure.

    Attributes:
        subject: the figure, which `str` writes as it is read.
        relation: one of `RELATIONS`.
        limit: what the figure is compared with.
    """

    subject: Subject
    relation: str
    limit: float

    @staticmethod
    def parse(
        text: str, read: Callable[[str], Subject | None], valid: str, field: str = "require"
    ) -> Requirement[Subject]:
        """Read a requirement.

        Args:
            text: such as `original_share <= 0.6`.
            read: turns the text before the relation into the subject; None where it is no figure.
            valid: what the error message lists as valid.
            field: the setting that the error message names.

        Raises:
            SettingsError: another form.
        """
        found = _PATTERN.fullmatch(text)
        number = _number(found.group(3)) if found else None
        subject = read(found.group(1)) if found and number is not None else None
        if found is None or number is None or subject is None:
            raise SettingsError(f"{field}: {text!r} given; valid: {valid}.")
        return Requirement(subject, found.group(2), number)

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.subject} {self.relation} {self.limit:g}"

    @property
    def caps(self) -> bool:
        """Whether it limits the figure from above."""
        return self.relation.startswith("<")

    def holds(self, judged: float) -> bool:
        """Whether a value is within the limit."""
        return RELATIONS[self.relation](judged, self.limit)

    def shortfall(self, found: RequirementResult) -> float:
        """Return by how much the limit is missed, relative to it; 0 where it holds."""
        return 0.0 if found.holds else abs(found.judged - self.limit) / (abs(self.limit) or 1.0)


def named_requirement(
    text: str, names: Collection[str], whose: str, field: str = "require"
) -> Requirement[str]:
    """Read a requirement of a figure that has a name.

    Args:
        text: such as `original_share <= 0.6`.
        names: of the figures that there are.
        whose: they are, for the error message.
        field: the setting that the error message names.

    Raises:
        SettingsError: another form, or a figure that there is not.
    """

    def read(name: str) -> str | None:
        if name in names:
            return name
        if re.fullmatch(r"\w+", name) is None:
            return None
        raise SettingsError(
            f"{field}: {name!r} is no figure of {whose}.{did_you_mean(name, names)} Valid: {', '.join(names)}."
        )

    found = Requirement.parse(text, read, f"a figure, {FORM}, as in 'original_share <= 0.6'", field)
    most = greatest(found.subject)
    if most is not None and found.limit > most:
        raise SettingsError(
            f"{field}: {text!r} given, and {found.subject} is never above {most:g}; valid: a limit of at most {most:g}"
            f"{', 0.4 for 40 per cent' if most == 1 else ''}."
        )
    least = smallest(found.subject)
    if least is not None and (found.limit < least or (found.limit == least and found.relation == "<")):
        raise SettingsError(
            f"{field}: {text!r} given, and {found.subject} is never below {least:g}; valid: a limit that it can meet."
        )
    return found


def contradictions(requirements: Sequence[Requirement[str]]) -> Iterator[tuple[str, str]]:
    """Yield (a limit from above, a limit from below) of one figure that no value meets both."""
    for cap in requirements:
        for floor in requirements:
            if cap.caps and not floor.caps and cap.subject == floor.subject:
                strict = not (cap.relation == "<=" and floor.relation == ">=")
                if floor.limit > cap.limit or (strict and floor.limit == cap.limit):
                    yield str(cap), str(floor)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
