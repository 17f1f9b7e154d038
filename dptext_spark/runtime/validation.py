"""Check values by their types, by pydantic alone, and say what is wrong in one form: the field, what was given, what is valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, WrapValidator
from pydantic_core import ErrorDetails, PydanticCustomError

from dptext_spark.errors import did_you_mean

TYPE = "type"  # the key of a field's metadata: what it is checked by, in the place of its annotation
# What is needed, by pydantic's name of the error.
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
    """Return an error for a validator to raise; the field and what was given are added."""
    return PydanticCustomError("invalid", "{valid}", {"valid": valid})


def valid(words: str) -> WrapValidator:
    """Return what lets a type say in words what is valid, whatever is wrong with a value."""

    def check(value: Any, inner: Callable[[Any], Any]) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise invalid(words) from None

    return WrapValidator(check)


def needed(problem: ErrorDetails) -> str:
    """Return what is valid in the place of a value, with the closest name where it is one of several."""
    context = problem.get("ctx", {})
    match problem["type"]:
        case "invalid":
            return f"{context['valid']}."
        case "literal_error":
            choices = re.findall(r"'([^']*)'", context["expected"])
            return f"{', '.join(choices)}.{did_you_mean(problem['input'], choices)}"
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
    """Check the fields of a dataclass, and yield a sentence for each that is not valid; no list of words is shown.

    Args:
        value: the dataclass.
        section: of the settings, which holds its fields.
        but: fields that are checked elsewhere.
    """
    kind: Any = type(value)
    for name in _adapters(kind):
        if name in but:
            continue
        if problem := problem_of(kind, name, getattr(value, name)):
            wrong = [*problem["input"]] if isinstance(problem["input"], tuple) else problem["input"]
            hidden = isinstance(wrong, list) and any(isinstance(entry, str) for entry in wrong)
            text = f"a list of {len(wrong):,}" if hidden else shown(wrong)
            yield f"{place_of(problem, f'{section}.{name}')}: {text} given; valid: {needed(problem)}"


def problem_of(kind: Any, name: str, value: object) -> ErrorDetails | None:
    """Check a value for a field of a dataclass, and return what is wrong with it; None where it is valid."""
    try:
        _adapters(kind)[name].validate_python(value, strict=True)
    except ValidationError as error:
        return error.errors(include_url=False)[0]
    return None


@cache
def _adapters(kind: Any) -> dict[str, TypeAdapter[Any]]:
    """Return what each field of a dataclass is checked by."""
    types: dict[str, Any] = {entry.name: entry.metadata.get(TYPE) for entry in fields(kind)}
    if None in types.values():
        hints = get_type_hints(kind, include_extras=True)
        types = {name: hints[name] if hint is None else hint for name, hint in types.items()}
    anything = ConfigDict(arbitrary_types_allowed=True)
    return {
        name: TypeAdapter(hint, config=None if is_dataclass(hint) else anything)
        for name, hint in types.items()
    }
