"""Frozen values that are written as JSON and read again: one way for certificates, figures, results and rows of tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_type_hints

from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from dptext_spark.errors import DataError
from dptext_spark.runtime.validation import needed, place_of

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
"""What JSON holds."""
Unbounded = Annotated[float, BeforeValidator(lambda value: math.inf if value is None else value)]
"""A number that may be infinite, which is written as null."""

R = TypeVar("R", bound="Record")


class Record:
    """Base of a frozen dataclass that is written as JSON by its fields, in their order.

    A field is a number, text, truth value, None, another record, a literal, or a tuple or mapping of these.

    Attributes:
        sparse: a field that may be left out and is None is not written.
    """

    sparse: ClassVar[bool] = False
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able."""
        kind: Any = type(self)  # mypy takes no class for hashable
        unbounded = _unbounded(kind)
        values = ((entry, getattr(self, entry.name)) for entry in fields(self))
        return {
            entry.name: None if entry.name in unbounded and value == math.inf else _written(value)
            for entry, value in values
            if not (self.sparse and value is None and entry.default is None)
        }

    @classmethod
    def from_dict(cls: type[R], values: Mapping[str, Any], where: str = "") -> R:
        """Read the fields again; one that is missing has its default, and one that is unknown is of a later version.

        Args:
            values: what :meth:`as_dict` returned, or its JSON.
            where: what an error names the value by.

        Raises:
            DataError: names each field that is not valid and its type, never the value.
        """
        kind: Any = cls
        try:
            record: R = _reader(kind).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            lines = (_refusal(problem, where or cls.__name__) for problem in error.errors(include_url=False))
            raise DataError("\n".join(lines)) from None
        return record


def _refusal(problem: ErrorDetails, where: str) -> str:
    """Return what is wrong with a stored value, which may be private and is not shown."""
    place = place_of(problem, where)
    if problem["type"] == "missing":
        return f"{place}: missing."
    return f"{place}: {type(problem['input']).__name__} given; valid: {needed(problem)}"


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _unbounded(kind: Any) -> frozenset[str]:
    """Return the fields of a record that may be infinite."""
    hints = get_type_hints(kind, include_extras=True).items()
    return frozenset(name for name, hint in hints if hint in (Unbounded, Unbounded | None))


def _written(value: Any) -> Json:
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {name: _written(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_written(entry) for entry in value]
    plain: Json = value
    return plain
