"""Check values by their types, and write and read frozen values as JSON. pydantic alone validates.

A refusal names the field, the value given, and what is valid. Certificates, figures, results and rows of tables are each a
:class:`Record`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_type_hints

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WrapValidator
from pydantic_core import ErrorDetails, PydanticCustomError

from dptext_spark.errors import DataError, did_you_mean, either

TYPE = "type"  # the key of a field's metadata: the type of its check, instead of its annotation
# Valid values, by pydantic's name of the error.
_NEEDED = {
    "bool_type": "true or false",
    "datetime_type": "a time",
    "dataclass_type": "a mapping",
    "dict_type": "a section (a mapping)",
    "float_type": "a number",
    "int_type": "an integer",
    "mapping_type": "a mapping",
    "model_attributes_type": "a section (a mapping)",
    "model_type": "a section (a mapping)",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "too_short": "a list that is not empty",
    "tuple_type": "a list",
}


def invalid(valid: str) -> PydanticCustomError:
    """Return an error for a validator to raise; field and value are added later."""
    return PydanticCustomError("invalid", "{valid}", {"valid": valid})


def valid(words: str) -> WrapValidator:
    """Return a validator that words the valid values of a type, whatever is wrong with a value."""

    def check(value: Any, inner: Callable[[Any], Any]) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise invalid(words) from None

    return WrapValidator(check)


def needed(problem: ErrorDetails) -> str:
    """Describe the valid values, with the closest name where it is one of several."""
    context = problem.get("ctx", {})
    match problem["type"]:
        case "invalid":
            return f"{context['valid']}."
        case "literal_error":
            choices = re.findall(r"'([^']*)'", context["expected"])
            return f"{either(choices)}.{did_you_mean(problem['input'], choices)}"
        case "greater_than_equal":
            return f"an integer of {context['ge']} or more."
        case "too_long":
            return f"at most {context['max_length']:,}."
        case kind:
            return f"{_NEEDED.get(kind, problem['msg'])}."


def place_of(problem: ErrorDetails, section: str = "") -> str:
    """Return the path of a value: `section.field[0].name`."""
    path = [part for part in problem["loc"] if not str(part).startswith(("literal[", "tuple[", "function-"))]
    return section + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def shown(value: object) -> str:
    """Return a value as a message shows it, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def problems_of(value: Any, section: str, but: Collection[str] = ()) -> Iterator[str]:
    """Check the fields of a dataclass, and yield a sentence for each invalid one; no list of words is shown.

    The fields are those of a section of the settings; `but` are checked elsewhere.
    """
    kind: Any = type(value)
    for name in _adapters(kind):
        if name in but:
            continue
        if problem := problem_of(kind, name, getattr(value, name)):
            wrong = [*problem["input"]] if isinstance(problem["input"], tuple) else problem["input"]
            hidden = isinstance(wrong, list) and any(isinstance(entry, str) for entry in wrong)
            text = f"a list of {len(wrong):,}" if hidden else shown(wrong)
            yield f"{place_of(problem, f'{section}.{name}')}: {text} is not valid. Choose {needed(problem)}"


def problem_of(kind: Any, name: str, value: object) -> ErrorDetails | None:
    """Check a value for a field of a dataclass, and return the problem; None if it is valid."""
    try:
        _adapters(kind)[name].validate_python(value, strict=True)
    except ValidationError as error:
        return error.errors(include_url=False)[0]
    return None


@cache
def _adapters(kind: Any) -> dict[str, TypeAdapter[Any]]:
    """Return the adapter that checks each field of a dataclass."""
    types: dict[str, Any] = {entry.name: entry.metadata.get(TYPE) for entry in fields(kind)}
    if None in types.values():
        hints = get_type_hints(kind, include_extras=True)
        types = {name: hints[name] if hint is None else hint for name, hint in types.items()}
    anything = ConfigDict(arbitrary_types_allowed=True)
    return {
        name: TypeAdapter(hint, config=None if is_dataclass(hint) else anything)
        for name, hint in types.items()
    }


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
        """Read the fields again. A missing field gets its default; an unknown one is of a later version.

        Args:
            values: result of :meth:`as_dict`, or its JSON.
            where: name of the value in an error.

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
    """Describe the problem of a stored value. The value may be private and is not shown."""
    place = place_of(problem, where)
    if problem["type"] == "missing":
        return f"{place}: missing."
    return f"{place}: {type(problem['input']).__name__} is not valid. Choose {needed(problem)}"


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
