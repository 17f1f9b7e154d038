"""The parameters of mechanisms, each declared once: default, valid values and meaning.

A mechanism's dataclass makes its fields with :func:`number`, :func:`integer`, :func:`choice` and :func:`flag`. The field's
metadata holds the declaration. The mechanism checks its values by its type, and the catalogue shows it.
"""

from __future__ import annotations

import inspect
from dataclasses import Field, dataclass, field, fields
from typing import Annotated, Any, NamedTuple, TypeGuard, get_args

from pydantic import Field as Bounds

from dptext_spark.runtime.validation import TYPE, Json, valid

DECLARED = "parameter"  # the key of the metadata


# The least ε: far below it, laws equal the uniform law in float64, and scales of noise overflow.
LEAST_EPSILON = 1e-6


class Limits(NamedTuple):
    """The ends of a range; None where it has none."""

    min: float | None = None
    min_excluded: bool = False
    max: float | None = None
    max_excluded: bool = False


@dataclass(frozen=True)
class Parameter:
    """The valid values of a parameter, and its meaning.

    Attributes:
        kind: of its values, in a word or a few.
        meaning: in words, with its unit.
        valid: what is valid, in words.
        type: what values are checked by.
        null: whether None is valid, too.
        sparse: whether it is written only where it differs from its default: what is not used leaves no trace.
        words: whether it can be a list of words, which settings may name by a file.
        limits: between what it lies.
        choices: the names that it is one of; None where it is no choice.
    """

    kind: str
    meaning: str
    valid: str
    type: Any
    null: bool = False
    sparse: bool = False
    words: bool = False
    limits: Limits = Limits()
    choices: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Json]:
        """Return the declaration, JSON-able: `min`, `max` and `choices` are None if there are none."""
        return {
            "type": self.kind,
            "null": self.null,
            **self.limits._asdict(),
            "choices": self.choices and list(self.choices),
            "valid": self.valid,
            "meaning": self.meaning,
        }


def declared(default: Any, parameter: Parameter) -> Any:
    """Return the dataclass field of a parameter. A default that is not valid marks a required value."""
    # The error of a choice names the closest one, too.
    kind = parameter.type if parameter.choices else Annotated[parameter.type, valid(parameter.valid)]
    return field(default=default, metadata={DECLARED: parameter, TYPE: kind})


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
    """Declare a finite number: greater than `above`, or `least` and greater; less than `below`, or `most` and less.

    `zero` says what 0 means, where that needs saying. With a `gap`, no number between 0 and it is valid.
    """
    limits = Limits(
        least if above is None else above,
        above is not None,
        most if below is None else below,
        below is not None,
    )
    lowest = gap or limits.min
    bounds = Bounds(
        allow_inf_nan=False,
        gt=limits.min if limits.min_excluded else None,
        ge=None if limits.min_excluded else lowest,
        lt=below,
        le=most,
    )
    kind: Any = Annotated[float, bounds]
    if gap:
        kind = Annotated[float, Bounds(ge=0, le=0)] | kind
    if null:
        kind = kind | None
    words = _range(limits, zero, gap)
    if null:
        words = f"null, or {words.replace(', greater than', ' above')}"
    return declared(default, Parameter("number", meaning, words, kind, null, limits=limits))


def _range(limits: Limits, zero: str, gap: float) -> str:
    """Return a range of numbers in words."""
    if gap:
        return f"0 ({zero}), or a finite number, {plain(gap)} or greater"
    low = plain(limits.min or 0) + (f" ({zero})" if zero else "")
    if limits.max is None:
        return f"a finite number, {f'greater than {low}' if limits.min_excluded else f'{low} or greater'}"
    high = plain(limits.max)
    if not limits.min_excluded and not limits.max_excluded:
        return f"a number from {low} to {high}"
    first, last = "above" if limits.min_excluded else "from", "below" if limits.max_excluded else "at most"
    return f"a number {first} {low} and {last} {high}"


def integer(default: int | None, meaning: str, *, least: int, most: int) -> Any:
    """Declare an integer from `least` to `most`."""
    kind = Annotated[int, Bounds(ge=least, le=most)]
    words = f"an integer from {least} to {most}"
    return declared(default, Parameter("integer", meaning, words, kind, limits=Limits(least, max=most)))


def choice(names: Any, default: str, meaning: str, *, sparse: bool = False) -> Any:
    """Declare a choice between the names of a `Literal` type."""
    choices = get_args(names)
    return declared(
        default, Parameter("choice", meaning, ", ".join(choices), names, sparse=sparse, choices=choices)
    )


def flag(meaning: str, *, sparse: bool = False) -> Any:
    """Declare a switch, off by default."""
    return declared(False, Parameter("boolean", meaning, "true or false", bool, sparse=sparse))


def parameters_of(mechanism: Any) -> dict[str, Parameter]:
    """Return the declarations of a mechanism, a value or its class, in the order of its fields."""
    return {entry.name: entry.metadata[DECLARED] for entry in fields(mechanism) if DECLARED in entry.metadata}


def documented(kind: type) -> str | None:
    """Return a class's docstring with a section `Attributes` for the parameters among its attributes."""
    entries = {name: entry for name, entry in vars(kind).items() if isinstance(entry, Field)}
    parameters: dict[str, Parameter] = {
        name: entry.metadata[DECLARED] for name, entry in entries.items() if DECLARED in entry.metadata
    }
    text = kind.__doc__
    if not text or not parameters:
        return text
    lines = [
        f"    {name}: {parameter.meaning} Valid: {parameter.valid}." for name, parameter in parameters.items()
    ]
    return "\n".join([inspect.cleandoc(text), "", "Attributes:", *lines])


def is_number(value: object) -> TypeGuard[int | float]:
    """Check whether `value` is an int or a float; True and False are neither. It may be NaN or infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def plain(value: float) -> str:
    """Return a bound as messages write it: 0.000001, not 1e-06."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
