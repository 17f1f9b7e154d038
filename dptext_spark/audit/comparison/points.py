"""A mechanism at one ε: its risks and what the text is still good for, each with bounds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dptext_spark.mechanisms.parameters import is_number


@dataclass(frozen=True)
class Measure:
    """A figure with its bounds.

    Attributes:
        value: as measured.
        lower: a bound, or the lower end of an interval.
        upper: as that.
        exact: whether it was read off laws, and the bounds are the value.
    """

    value: float
    lower: float
    upper: float
    exact: bool = False


@dataclass(frozen=True)
class Point:
    """A mechanism at one ε.

    Attributes:
        mechanism: its name, as the curve's.
        epsilon: its ε.
        risks: success of each attack, by name.
        utilities: what the text is still good for, by name; more is better.
        more: what else was measured, JSON-able.
    """

    mechanism: str
    epsilon: float
    risks: dict[str, Measure]
    utilities: dict[str, Measure]
    more: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Point:
        """Build from :meth:`as_dict`.

        Raises:
            KeyError, TypeError, ValueError: a part is missing or of another type.
        """
        risks, utilities = (
            {name: Measure(**one) for name, one in values[part].items()} for part in ("risks", "utilities")
        )
        numbers = [one.value for one in (*risks.values(), *utilities.values())] + [values["epsilon"]]
        if not all(is_number(one) and math.isfinite(one) for one in numbers):
            raise ValueError("a figure is no finite number")
        return cls(str(values["mechanism"]), values["epsilon"], risks, utilities, dict(values["more"]))
