"""A limit on a figure of a written table, as a user writes it: `original_share <= 0.6`."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from dptext_spark.audit.deniability.requirement import RELATIONS
from dptext_spark.audit.estimates import Metric
from dptext_spark.errors import SettingsError, did_you_mean

_FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S+)\s*")


@dataclass(frozen=True)
class Limit:
    """A limit on a figure of the whole table.

    Attributes:
        figure: its name.
        relation: one of `RELATIONS`.
        number: what it is compared with.
    """

    figure: str
    relation: str
    number: float

    @classmethod
    def parse(cls, text: str, valid: Collection[str], field: str = "require") -> Limit:
        """Read a limit.

        Args:
            text: such as `original_share <= 0.6`.
            valid: names of the figures that this audit has.
            field: that the message names.

        Raises:
            SettingsError: another form, or a figure that this audit does not have.
        """
        found = _FORM.fullmatch(text)
        number = _number(found.group(3)) if found else None
        if found is None or number is None:
            raise SettingsError(
                f"{field}: {text!r} given; valid: a figure, one of {', '.join(RELATIONS)} and a number, as in "
                "'original_share <= 0.6'."
            )
        if found.group(1) not in valid:
            raise SettingsError(
                f"{field}: {found.group(1)!r} is no figure of this audit; valid: {', '.join(valid)}."
                f"{did_you_mean(found.group(1), valid)}"
            )
        return cls(found.group(1), found.group(2), number)

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.figure} {self.relation} {self.number:g}"

    def holds(self, figures: Iterable[Metric]) -> bool:
        """Whether the limit holds: of an estimate for its bound on the cautious side; never of what could not be counted."""
        for figure in figures:
            if figure.name == self.figure and figure.column is None:
                bound = figure.upper if self.relation.startswith("<") else figure.lower
                judged = figure.value if bound is None else bound
                return judged is not None and RELATIONS[self.relation](judged, self.number)
        return False

    def as_dict(self, figures: Iterable[Metric]) -> dict[str, Any]:
        """Return it and whether it holds, JSON-able."""
        return {"requirement": str(self), "holds": self.holds(figures)}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
