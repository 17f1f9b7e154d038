"""Turn validation errors into messages that name the field, what was given and the valid choices.

How large settings may be: what no run needs is refused before anything looks at it closely.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from dptext_spark.errors import SettingsError, did_you_mean
from dptext_spark.runtime.validation import needed, place_of, shown

MOST_BYTES = 1 << 19  # of a file
MOST_VALUES = 10_000  # that stand in a file; longer lists of words have files of their own
DEEPEST = 32  # sections and lists inside each other
MOST_NAMES = 1_000  # of settings, in all sections
MOST_ENTRIES = 1_000_000  # of lists, each counted wherever it stands
MOST_COLUMNS = 1_000
MOST_SHOWN = 20  # problems that a message names


def check_bounded(settings: object) -> None:
    """Refuse settings that are too many or too deep, or that hold themselves; what stands in two places counts twice.

    Raises:
        SettingsError: names the limit.
    """
    names = entries = 0
    left = [(settings, 1)]
    while left:
        value, depth = left.pop()
        if isinstance(value, Mapping):
            names += len(value)
            inside = list(value.values())
        elif isinstance(value, list | tuple):
            entries += len(value)
            inside = list(value)
        else:
            continue
        check_at_most("levels of sections and lists inside each other", depth, DEEPEST)
        check_at_most("names of settings", names, MOST_NAMES)
        check_at_most("entries of lists", entries, MOST_ENTRIES)
        left.extend((one, depth + 1) for one in inside if not isinstance(one, str))


def check_at_most(what: str, given: int, most: int) -> None:
    """Raise :class:`SettingsError` where there are more than `most`."""
    if given > most:
        raise SettingsError(f"settings: {given:,} {what} given, or more; valid: at most {most:,}.")


# What has no default: how it is given in the file, and on the command line.
_EXAMPLES = {
    "input": ("input: {path: tickets, format: delta}", "input.path=tickets"),
    "columns": ("columns: [body]", "columns=[body]"),
    "output": ("output: {path: tickets_sanitized}", "output.path=tickets_sanitized"),
}
_NO_PLACE = "no_place"
# Settings that a reader may look for in vain, by their paths: what to do instead.
_LEFT = {
    "policy.segment": "put spaces between the words of such texts before the run",
    "ledger.limit_record": "set budget.record, which bounds what a run spends on a record, and ledger.limit",
}
IN_POLICY = ("lists", "allow_unknown")  # fields that settings name in the section `policy`
LONGEST = 200  # characters of a name that is shown
_HIDDEN = re.compile(r"^(key|input\.options)(\.|$)")


def problem(message: str) -> PydanticCustomError:
    """Return an error for a validator to raise; `message` names the field already."""
    return PydanticCustomError("settings", "{message}", {"message": message})


def no_place(message: str) -> PydanticCustomError:
    """Return an error for a section that names no place, as if it were not there."""
    return PydanticCustomError(_NO_PLACE, "{message}", {"message": message})


def check_left(settings: Mapping[str, Any]) -> None:
    """Check that no setting is one of those that left.

    Raises:
        SettingsError: names each, and what to do instead.
    """
    lines = [
        f"{path}: no such setting; {instead}." for path, instead in _LEFT.items() if _has(settings, path)
    ]
    if lines:
        raise refusal(lines)


def _has(settings: object, path: str) -> bool:
    """Tell whether a setting is named at a path."""
    for name in path.split("."):
        if not isinstance(settings, Mapping) or name not in settings:
            return False
        settings = settings[name]
    return True


def briefly(value: object) -> str:
    """Return a setting as a message shows it; a list of words by its length and a digest, for no message holds its words."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(entry, str) for entry in value):
        return repr(value)
    digest = hashlib.sha256("\n".join(value).encode()).hexdigest()[:8]
    return f"a list of {len(value):,} (digest {digest})"


def as_settings_error(error: ValidationError, model: type[BaseModel]) -> SettingsError:
    """Return one error for all that is wrong."""
    problems = error.errors(include_url=False)
    # A list with a wrong entry is also reported as too short, for the entry does not count.
    problems = [found for found in problems if found["type"] != "too_short" or not found["input"]]
    absent = _absent(problems)
    first: list[str] = []
    if len(absent) > 1:
        first = [_all_absent(absent)]
        problems = [
            one
            for one in problems
            if one["type"] not in ("missing", _NO_PLACE) or one["loc"][0] not in absent
        ]
    named, left = problems[:MOST_SHOWN], len(problems) - MOST_SHOWN
    return refusal([*first, *(line for found in named for line in _message(found, model).split("\n"))], left)


def refusal(lines: Sequence[str], left: int = 0) -> SettingsError:
    """Return one error of these sentences, each once; `left` is how many problems are not shown."""
    lines = list(dict.fromkeys(lines))
    if len(lines) == 1 and left <= 0:
        return SettingsError(lines[0])
    more = [f"and {left:,} more."] if left > 0 else []
    count = len(lines) + max(left, 0)
    return SettingsError(
        f"{count:,} settings are not right:\n" + "\n".join(f"  {line}" for line in [*lines, *more])
    )


def _message(problem: ErrorDetails, model: type[BaseModel]) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in ("settings", _NO_PLACE):
        return str(context["message"])
    field = place_of(problem).lstrip(".")
    if field in IN_POLICY:
        field = f"policy.{field}"
    field = field if len(field) <= LONGEST else f"{field[:LONGEST]}..."
    if kind == "missing":
        return f"{field}: missing; it has no default.{example_of(field)}"
    if kind == "extra_forbidden":
        *path, name = map(str, problem["loc"])
        names = _fields(model, path)
        return f"{field}: no such setting; valid here: {', '.join(names)}.{did_you_mean(name, names)}"
    given = shown(problem["input"])
    if _HIDDEN.search(field):
        given = "a value that is not shown"
    elif kind == "too_long":
        given = f"{context['actual_length']:,}"
    return f"{field}: {given} given; valid: {needed(problem)}"


def example_of(field: str) -> str:
    """Return how a setting is given that has no default; an empty text for others."""
    if field not in _EXAMPLES:
        return ""
    in_file, on_line = _EXAMPLES[field]
    return f" For example `{in_file}`, or --set {on_line}."


def _absent(problems: Sequence[ErrorDetails]) -> list[str]:
    """Return which of what has no default is missing."""
    of_these = {
        str(one["loc"][0])
        for one in problems
        if one["type"] in ("missing", _NO_PLACE) and len(one["loc"]) == 1
    }
    return [name for name in _EXAMPLES if name in of_these]


def _all_absent(names: Sequence[str]) -> str:
    """Say all that is missing at once, and how to give it."""
    settings = [_EXAMPLES[name][1].partition("=")[0] for name in names]
    said = f"{', '.join(settings[:-1])} and {settings[-1]}"
    given = " ".join(f"--set {_EXAMPLES[name][1]}" for name in names)
    return (
        f"{said}: missing; they have no default. For example {given}, or the same in the file; `dptext start TABLE` writes one "
        "for a table, in a style."
    )


def _fields(model: type[BaseModel], path: list[str]) -> list[str]:
    """Return the names that are valid in the section at `path`."""
    for part in path:
        if part not in model.model_fields:  # an entry of a list, or a form of it
            continue
        inner = model.model_fields[part].annotation
        sections = [kind for kind in (inner, *get_args(inner)) if isinstance(kind, type)]
        sections = [kind for kind in sections if issubclass(kind, BaseModel)]
        if not sections:
            break
        model = sections[0]
    return [name for name in model.model_fields if name not in IN_POLICY]
