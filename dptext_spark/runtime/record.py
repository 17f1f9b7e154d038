"""Frozen values that are written as JSON and read again: one way for certificates, figures, results and rows of tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from dptext_spark.errors import DataError

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
"""What JSON holds."""

R = TypeVar("R", bound="Record")
_PLAIN = {bool: "true or false", int: "an integer", float: "a number", str: "a text", NoneType: "null"}


class Record:
    """Base of a frozen dataclass that is written as JSON by its fields, in their order.

    A field is a number, text, truth value, None, another record, a literal, or a tuple or mapping of these.

    Attributes:
        sparse: a field that may be left out and is None is not written.
        unbounded: fields whose number may be infinite, which is written as null.
    """

    sparse: ClassVar[bool] = False
    unbounded: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able."""
        values = ((one, getattr(self, one.name)) for one in fields(self))
        return {
            one.name: None if one.name in self.unbounded and value == math.inf else _written(value)
            for one, value in values
            if not (self.sparse and value is None and one.default is None)
        }

    @classmethod
    def from_dict(cls: type[R], given: Mapping[str, Any], where: str = "") -> R:
        """Read the fields again; one that is missing has its default, and one that is unknown is of a later version.

        Args:
            given: what :meth:`as_dict` returned, or its JSON.
            where: what an error names the value by.

        Raises:
            DataError: names the field and its type, never the value.
        """
        where = where or cls.__name__
        if not isinstance(given, Mapping):
            raise DataError(f"{where}: a {type(given).__name__} given; valid: a mapping.")
        made: dict[str, Any] = {}
        for one, kind in _typed_fields(cls):  # type: ignore[arg-type]  # mypy takes no class for hashable
            if one.name in cls.unbounded and kind is float and given.get(one.name, 0.0) is None:
                made[one.name] = math.inf
            elif one.name in given:
                made[one.name] = _read(kind, given[one.name], f"{where}.{one.name}")
            elif one.default is MISSING and one.default_factory is MISSING:
                raise DataError(f"{where}.{one.name}: missing; valid: {_named(kind)}.")
        return cls(**made)


@cache
def _typed_fields(kind: Any) -> tuple[tuple[Field[Any], Any], ...]:
    """Return the fields of a record, each with its type."""
    hints = get_type_hints(kind)
    return tuple((one, hints[one.name]) for one in fields(kind))


def _written(value: Any) -> Json:
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_written(one) for one in value]
    plain: Json = value
    return plain


def _read(kind: Any, value: object, where: str) -> object:
    """Return a value of the type that a hint names."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        for one in inner:
            if _may_be(one, value):
                return _read(one, value, where)
    elif _may_be(kind, value):
        if kind is float and isinstance(value, int | float):
            return float(value)
        if isinstance(value, Mapping):
            if origin is None:
                return kind.from_dict(value, where)
            return {name: _read(inner[1], one, f"{where}.{name}") for name, one in value.items()}
        if origin is not tuple:
            return value
        assert isinstance(value, Sequence)
        kinds = [inner[0]] * len(value) if inner[-1:] == (...,) else list(inner)
        if len(kinds) == len(value):
            return tuple(_read(one, each, where) for one, each in zip(kinds, value, strict=True))
    raise DataError(f"{where}: {type(value).__name__} given; valid: {_named(kind)}.")


def _may_be(kind: Any, value: object) -> bool:
    """Tell whether a value has the outer shape of a type."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return value in get_args(kind)
    if origin is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin in _PLAIN:
        return isinstance(value, origin)
    if origin is tuple:
        return isinstance(value, Sequence) and not isinstance(value, str)
    return isinstance(value, Mapping)


def _named(kind: Any) -> str:
    """Return what is valid, in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(_named, inner))
    if origin is Literal:
        return ", ".join(map(repr, inner))
    if origin is tuple:
        return "a list" if inner[-1:] == (...,) else f"a list of {len(inner)}"
    return _PLAIN.get(kind, "a mapping")
