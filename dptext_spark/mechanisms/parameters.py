"""The parameters of mechanisms, each declared once: its default, what is valid and what it means.

A mechanism's dataclass makes its fields with :func:`number`, :func:`integer`, :func:`choice` and :func:`flag`. The declaration
stands in the field's metadata: the mechanism checks its values by it, and the catalogue shows it.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeGuard, get_args

from dptext_spark.errors import unknown
from dptext_spark.runtime.record import Json

DECLARED = "parameter"  # the key of the metadata


# The least ε: far below it float64 does not tell laws from uniform ones, and scales of noise overflow.
LEAST_EPSILON = 1e-6


class Limits(NamedTuple):
    """The ends of a range; None where it has none."""

    min: float | None = None
    min_excluded: bool = False
    max: float | None = None
    max_excluded: bool = False


@dataclass(frozen=True)
class Parameter(ABC):
    """What a parameter can be, and what it means.

    Attributes:
        meaning: in words, with its unit.
        null: whether None is valid, too.
        sparse: whether it is written only where it differs from its default: what is not used leaves no trace.
    """

    kind: ClassVar[str]
    words: ClassVar[bool] = False  # whether it can be a list of words, which settings may name by a file

    meaning: str
    null: bool = False
    sparse: bool = False

    @property
    @abstractmethod
    def domain(self) -> str:
        """What is valid beside None, in words."""

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        return f"null, or {self.domain}" if self.null else self.domain

    @property
    def limits(self) -> Limits:
        """Between what it lies."""
        return Limits()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names that it is one of; None where it is no choice."""
        return None

    @abstractmethod
    def accepts(self, value: object) -> bool:
        """Whether `value` is valid; where `null` is set, :meth:`problem` takes None before."""

    def problem(self, name: str, value: object) -> str | None:
        """Return what is wrong with `value`, None where it is valid; `name` is the setting that the message names."""
        if (self.null and value is None) or self.accepts(value):
            return None
        return f"{name}: {value!r} given; valid: {self.valid}."

    def as_dict(self) -> dict[str, Json]:
        """Return what is declared, JSON-able: `min`, `max` and `choices` are None where there are none."""
        names = self.names
        return {
            "type": self.kind,
            "null": self.null,
            **self.limits._asdict(),
            "choices": None if names is None else list(names),
            "valid": self.valid,
            "meaning": self.meaning,
        }


@dataclass(frozen=True)
class Number(Parameter):
    """A finite number in a range.

    Attributes:
        low: the least number.
        high: the greatest; None for any that is finite.
        low_excluded: whether `low` itself is not valid.
        high_excluded: whether `high` itself is not valid.
        zero: what 0 means, where that needs saying.
        gap: numbers between 0 and this one are not valid, though 0 may be.
    """

    kind: ClassVar[str] = "number"

    low: float = 0.0
    high: float | None = None
    low_excluded: bool = False
    high_excluded: bool = False
    zero: str = ""
    gap: float = 0.0

    @property
    def domain(self) -> str:
        """The range in words."""
        if self.gap:
            return f"0 ({self.zero}), or a finite number, {plain(self.gap)} or greater"
        low = plain(self.low) + (f" ({self.zero})" if self.zero else "")
        if self.high is None:
            if not self.low_excluded:
                return f"a finite number, {low} or greater"
            return f"a finite number above {low}" if self.null else f"a finite number, greater than {low}"
        high = plain(self.high)
        if not self.low_excluded and not self.high_excluded:
            return f"a number from {low} to {high}"
        first, last = "above" if self.low_excluded else "from", "below" if self.high_excluded else "at most"
        return f"a number {first} {low} and {last} {high}"

    def accepts(self, value: object) -> bool:
        """Whether `value` is a finite number in the range."""
        # Compared, not tested by isfinite, which fails for an integer that is no float.
        high = sys.float_info.max if self.high is None else self.high
        return (
            is_number(value)
            and self.low <= value <= high
            and not (self.low_excluded and value == self.low)
            and not (self.high_excluded and value == high)
            and not (0 < value < self.gap)
        )

    @property
    def limits(self) -> Limits:
        """Between what it lies."""
        return Limits(self.low, self.low_excluded, self.high, self.high_excluded)


@dataclass(frozen=True)
class Integer(Parameter):
    """An integer in a range, both ends included."""

    kind: ClassVar[str] = "integer"

    low: int = 0
    high: int = 0

    @property
    def domain(self) -> str:
        """The range in words."""
        return f"an integer from {self.low} to {self.high}"

    def accepts(self, value: object) -> bool:
        """Whether `value` is an integer in the range; True and False are none."""
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    @property
    def limits(self) -> Limits:
        """Between what it lies."""
        return Limits(self.low, max=self.high)


@dataclass(frozen=True)
class Choice(Parameter):
    """One of a few names."""

    kind: ClassVar[str] = "choice"

    choices: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        """The names."""
        return ", ".join(self.choices)

    def accepts(self, value: object) -> bool:
        """Whether `value` is one of the names."""
        return isinstance(value, str) and value in self.choices

    def problem(self, name: str, value: object) -> str | None:
        """Return what is wrong with `value`, None where it is one of the names; the closest one is suggested."""
        return None if self.accepts(value) else str(unknown(name, value, self.choices))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it is one of."""
        return self.choices


@dataclass(frozen=True)
class Flag(Parameter):
    """True or false."""

    kind: ClassVar[str] = "boolean"

    @property
    def domain(self) -> str:
        """Both."""
        return "true or false"

    def accepts(self, value: object) -> bool:
        """Whether `value` is one of the two."""
        return isinstance(value, bool)


def declared(default: Any, parameter: Parameter) -> Any:
    """Return the dataclass field of a parameter. A default that is not valid stands for a value that must be given."""
    return field(default=default, metadata={DECLARED: parameter})


def number(
    default: float | None,
    meaning: str,
    *,
    above: float | None = None,
    least: float = 0.0,
    below: float | None = None,
    most: float | None = None,
    null: bool = False,
    zero: str = "",
    gap: float = 0.0,
) -> Any:
    """Declare a number: greater than `above`, or `least` and greater; less than `below`, or `most` and less."""
    low, high = least if above is None else above, most if below is None else below
    excluded = {"low_excluded": above is not None, "high_excluded": below is not None}
    return declared(default, Number(meaning, null, low=low, high=high, zero=zero, gap=gap, **excluded))


def integer(default: int | None, meaning: str, *, least: int, most: int) -> Any:
    """Declare an integer from `least` to `most`."""
    return declared(default, Integer(meaning, low=least, high=most))


def choice(names: Any, default: str, meaning: str, *, sparse: bool = False) -> Any:
    """Declare a choice between the names of a `Literal` type."""
    return declared(default, Choice(meaning, sparse=sparse, choices=get_args(names)))


def flag(meaning: str, *, sparse: bool = False) -> Any:
    """Declare a switch, off by default."""
    return declared(False, Flag(meaning, sparse=sparse))


def parameters_of(mechanism: Any) -> dict[str, Parameter]:
    """Return the declarations of a mechanism, a value or its class, in the order of its fields."""
    return {entry.name: entry.metadata[DECLARED] for entry in fields(mechanism) if DECLARED in entry.metadata}


def documented(kind: type) -> str | None:
    """Return a class's docstring with a section `Attributes` for the parameters among its attributes."""
    entries = {name: entry for name, entry in vars(kind).items() if isinstance(entry, Field)}
    made: dict[str, Parameter] = {
        name: entry.metadata[DECLARED] for name, entry in entries.items() if DECLARED in entry.metadata
    }
    text = kind.__doc__
    if not text or not made:
        return text
    lines = [f"    {name}: {parameter.meaning} Valid: {parameter.valid}." for name, parameter in made.items()]
    return "\n".join([inspect.cleandoc(text), "", "Attributes:", *lines])


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether `value` is an int or a float; True and False are neither. It may be NaN or infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def plain(value: float) -> str:
    """Return a bound as messages write it: 0.000001, not 1e-06."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
