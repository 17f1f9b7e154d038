"""Parse values that need more than a type, and turn validation errors into messages.

A message names the field, the value given, and the valid choices. Dataclass sections, reader options and lists of words have
functions of their own. Settings that are larger than any run needs are refused before anything looks at them closely.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from dptext_spark.config.locations import TABLE
from dptext_spark.config.requirements import FIGURES, Requirement, named_requirement
from dptext_spark.errors import SettingsError, file_errors, no_setting
from dptext_spark.importance.budget import Budget
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.mechanisms import MECHANISMS, Mechanism, mechanism_named
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.runtime.validation import invalid, needed, place_of, shown
from dptext_spark.text.names.search import FIELDS, REPLACING, ListSource, ListSources, replaces_nothing
from dptext_spark.text.policy import Policy

MOST_BYTES = 1 << 19  # of a file
MOST_VALUES = 10_000  # in one file; longer lists of words have files of their own
DEEPEST = 32  # sections and lists inside each other
MOST_NAMES = 1_000  # of settings, in all sections
MOST_ENTRIES = 1_000_000  # of lists, each counted at each place
MOST_COLUMNS = 1_000
MOST_SHOWN = 20  # problems that a message names


def check_bounded(settings: object) -> None:
    """Refuse settings that are too many or too deep, or that hold themselves. A value in two places counts twice.

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
        left.extend((entry, depth + 1) for entry in inside if not isinstance(entry, str))


def check_at_most(what: str, given: int, most: int) -> None:
    """Raise :class:`SettingsError` where there are more than `most`."""
    if given > most:
        raise SettingsError(f"settings: {given:,} or more {what}. Use at most {most:,}.")


# Settings without a default: their form in the file and on the command line.
_EXAMPLES = {
    "input": ("input: {path: tickets, format: delta}", "input.path=tickets"),
    "columns": ("columns: [body]", "columns=[body]"),
    "output": ("output: {path: tickets_sanitized}", "output.path=tickets_sanitized"),
}
_NO_PLACE = "no_place"
# Settings that left, by their paths, with their replacements.
_LEFT = {
    "approval.approver": "write the name beside the signature on the report",
    "approval.date": "write the day beside the signature on the report",
    "audit.consistency_scopes": "remove it: a run audits a sample of about 1,000 rows",
    "lexicon.version": "set run.artifact_fingerprint, which names the model that you expect",
    "output.fresh_noise": "set run.second_release to accept",
    "output.overwrite_raw": "choose a new place, or a table that never held a row",
    "run.batch_rows": "set spark.sql.execution.arrow.maxRecordsPerBatch of Spark, which bounds the batches of a run",
    "policy.segment": "put spaces between the words of such texts before the run",
    "ledger.limit_record": "set budget.record, the limit of a record in one run, and ledger.limit",
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
    """Check that the settings name none that left.

    Raises:
        SettingsError: names each with its replacement.
    """
    lines = [
        f"{path}: no such setting. Instead, {instead}."
        for path, instead in _LEFT.items()
        if _has(settings, path)
    ]
    if lines:
        raise refusal(lines)


def _has(settings: object, path: str) -> bool:
    """Check whether a setting is named at a path."""
    for name in path.split("."):
        if not isinstance(settings, Mapping) or name not in settings:
            return False
        settings = settings[name]
    return True


def briefly(value: object) -> str:
    """Format a setting for a message: a list of words by its length and a digest, for no message holds its words."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(entry, str) for entry in value):
        return repr(value)
    digest = hashlib.sha256("\n".join(value).encode()).hexdigest()[:8]
    return f"a list of {len(value):,} (digest {digest})"


def as_settings_error(error: ValidationError, model: type[BaseModel]) -> SettingsError:
    """Merge all problems into one error."""
    problems = error.errors(include_url=False)
    # A list with a wrong entry is also reported as too short, for the entry does not count.
    problems = [detail for detail in problems if detail["type"] != "too_short" or not detail["input"]]
    absent = _absent(problems)
    first: list[str] = []
    if len(absent) > 1:
        first = [_all_absent(absent)]
        problems = [
            detail
            for detail in problems
            if detail["type"] not in ("missing", _NO_PLACE) or detail["loc"][0] not in absent
        ]
    named, left = problems[:MOST_SHOWN], len(problems) - MOST_SHOWN
    return refusal(
        [*first, *(line for detail in named for line in _message(detail, model).split("\n"))], left
    )


def refusal(lines: Sequence[str], left: int = 0) -> SettingsError:
    """Merge sentences into one error, each once; `left` is how many problems are not shown."""
    lines = list(dict.fromkeys(lines))
    if len(lines) == 1 and left <= 0:
        return SettingsError(lines[0])
    more = [f"and {left:,} more."] if left > 0 else []
    count = len(lines) + max(left, 0)
    return SettingsError(
        f"{count:,} settings are not valid:\n" + "\n".join(f"  {line}" for line in [*lines, *more])
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
        return f"{field}: not set, and it has no default.{example_of(field)}"
    if kind == "extra_forbidden":
        *path, name = map(str, problem["loc"])
        names = _fields(model, path)
        return no_setting(field, name, names)
    shown_value = shown(problem["input"])
    if _HIDDEN.search(field):
        shown_value = "a value that is not shown"
    elif kind == "too_long":
        shown_value = f"{context['actual_length']:,}"
    return f"{field}: {shown_value} is not valid. Choose {needed(problem)}"


def example_of(field: str) -> str:
    """Return the form of a setting without a default; an empty text for others."""
    if field not in _EXAMPLES:
        return ""
    in_file, on_line = _EXAMPLES[field]
    return f" For example `{in_file}`, or --set {on_line}."


def _absent(problems: Sequence[ErrorDetails]) -> list[str]:
    """Return the missing settings without a default."""
    of_these = {
        str(detail["loc"][0])
        for detail in problems
        if detail["type"] in ("missing", _NO_PLACE) and len(detail["loc"]) == 1
    }
    return [name for name in _EXAMPLES if name in of_these]


def _all_absent(names: Sequence[str]) -> str:
    """Name all missing settings in one sentence, with their forms."""
    settings = [_EXAMPLES[name][1].partition("=")[0] for name in names]
    flags = " ".join(f"--set {_EXAMPLES[name][1]}" for name in names)
    return (
        f"{', '.join(settings[:-1])} and {settings[-1]}: not set, and they have no default. For example, use {flags}. "
        "`dptext start TABLE` writes a settings file for a table."
    )


def _fields(model: type[BaseModel], path: list[str]) -> list[str]:
    """Return the names that are valid in the section at `path`."""
    for part in path:
        if part not in model.model_fields:  # an entry of a list, or one of its forms
            continue
        inner = model.model_fields[part].annotation
        sections = [kind for kind in (inner, *get_args(inner)) if isinstance(kind, type)]
        sections = [kind for kind in sections if issubclass(kind, BaseModel)]
        if not sections:
            break
        model = sections[0]
    return [name for name in model.model_fields if name not in IN_POLICY]


T = TypeVar("T")

ALLOW_UNKNOWN = "allow_unknown"  # of the policy's section, and no part of the model
# The run sets these itself, so that no malformed line and no guessed type can end in an error message.
RESERVED_OPTIONS = (
    "inferschema", "primitivesasstring", "columnnameofcorruptrecord", "versionasof", "timestampasof",
)  # fmt: skip


def _safely(build: Callable[[], T]) -> T:
    """Turn the error of a dataclass into one that is listed with the others."""
    try:
        return build()
    except SettingsError as error:
        raise problem(str(error)) from None


def parse_section(value: object) -> object:
    """Return {} for a section that is left empty, so that it gets its defaults."""
    return {} if value is None else value


def _mapping(field: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise problem(f"{field}: {shown(value)} is not valid. Choose a section (a mapping).")
    return dict(value)


def parse_mechanism(value: object) -> Mechanism:
    """Build the mechanism: `name`, and the fields of its dataclass. The dataclass checks their ranges.

    A list of words may be `{file: path}`: UTF-8, a word a line, blank lines ignored. The words replace the file: they are part of
    the settings and of the artifact's definition. An edited file makes another artifact.
    """
    if isinstance(value, Mechanism):
        return value
    section = _mapping("mechanism", value)
    name = section.pop("name", next(iter(MECHANISMS)))
    kind = _safely(lambda: mechanism_named("mechanism.name", name))
    if "remap" in section and "remap" not in parameters_of(kind):
        if section["remap"] != "none":
            able = [name for name in MECHANISMS if "remap" in parameters_of(MECHANISMS[name])]
            raise problem(
                f"mechanism.remap: {shown(section['remap'])} is not valid with {kind.name}, because its law cannot be "
                f"remapped. Choose none, or a mechanism with remap: {', '.join(able)}."
            )
        del section["remap"]
    for field, parameter in parameters_of(kind).items():
        if parameter.words and isinstance(section.get(field), Mapping):
            section[field] = _parse_words(f"mechanism.{field}", section[field])
    return _build("mechanism", kind, section, also=("name",))


def parse_policy(value: object) -> Policy:
    """Build the policy; its stop-word list may be the path of a text file: a word a line, `#` comments."""
    if isinstance(value, Policy):
        return value
    section = _mapping("policy", value)
    words = section.get("stop_word_list")
    if isinstance(words, str):
        lines = _safely(lambda: read_lines("policy.stop_word_list", words))
        section["stop_word_list"] = tuple(line for line in lines if not line.startswith("#"))
    return _build("policy", Policy, section)


def parse_selection(value: object) -> Importance | None:
    """Build the selection of words by importance; None where all words are drawn."""
    if value is None or isinstance(value, Importance):
        return value
    section = {
        name: tuple(part) if isinstance(part, list) else part
        for name, part in _mapping("importance", value).items()
        if part is not None or name not in ("levels", "weights")
    }
    if isinstance(section.get("weights"), str):
        section["weights"] = (section["weights"],)
    if isinstance(section.get("levels"), tuple):
        section["levels"] = tuple(_level(number, level) for number, level in enumerate(section["levels"]))
    return _build("importance", Importance, section)


def parse_budget(value: object) -> Budget | None:
    """Build the budget of a record; None where there is none."""
    if value is None or isinstance(value, Budget):
        return value
    section = _mapping("budget", value)
    if section.get("record") is None:
        raise problem("budget.record: not set. Choose a finite number above 0.")
    return _build("budget", Budget, section)


def of_runs_apart(values: object) -> object:
    """Move run settings out of the policy, which belongs to the model: lists, and whether most words may be unknown."""
    if not isinstance(values, Mapping):
        return values
    if "lists" in values and not isinstance(values["lists"], ListSources):
        raise problem("lists: no such setting. Choose policy.mask or policy.keep.")
    if ALLOW_UNKNOWN in values:
        raise problem(f"{ALLOW_UNKNOWN}: no such setting. Choose policy.{ALLOW_UNKNOWN}.")
    if not isinstance(values.get("policy"), Mapping):
        return values
    policy = dict(values["policy"])
    lists = {name: policy.pop(name) for name in ("mask", "keep") if name in policy}
    allowed = {name: policy.pop(name) for name in (ALLOW_UNKNOWN,) if name in policy}
    return {**values, "policy": policy, **({"lists": lists} if lists else {}), **allowed}


def parse_lists(value: object) -> ListSources:
    """Build the sources of lists from `mask` and `keep` of the policy."""
    if isinstance(value, ListSources):
        return value
    if not isinstance(value, Mapping):
        raise problem("lists: no such setting. Choose policy.mask or policy.keep.")
    sources: dict[str, tuple[ListSource, ...]] = {}
    for name, some in value.items():
        field = f"policy.{name}"
        if some is None:
            continue
        if not isinstance(some, list | tuple):
            raise problem(
                f"{field}: {shown(some)} is not valid. Choose a list of sections with file, table and column."
            )
        valid = (*FIELDS, *(REPLACING if name == "mask" else ()))
        sources[name] = tuple(
            _list_source(f"{field}[{number}]", entry, valid) for number, entry in enumerate(some)
        )
    return ListSources(**sources)


def _list_source(field: str, value: object, valid: tuple[str, ...]) -> ListSource:
    section = _mapping(field, value)
    others = [name for name in section if name not in valid]
    if others and others[0] in REPLACING:
        raise problem(replaces_nothing(field, others[0]))
    if others:
        raise problem(no_setting(f"{field}.{others[0][:LONGEST]}", others[0], valid))
    if isinstance(section.get("table"), str) and not TABLE.fullmatch(section["table"]):
        raise problem(
            f"{field}.table: {shown(section['table'])} is not valid. Choose catalog.schema.table, with back-ticks around "
            "unusual names."
        )
    try:
        return ListSource(**{name: option for name, option in section.items() if option is not None})
    except SettingsError as error:
        reason = str(error)
        raise problem(
            f"{field}.{reason}" if reason.split(":")[0] in valid else f"{field}: {reason}"
        ) from None


def _level(number: int, value: object) -> Level:
    """Build a level; one that names no share takes the remainder."""
    field = f"importance.levels[{number}]"
    if isinstance(value, Level):
        return value
    section = {"share": None, **_mapping(field, value)}
    if section.get("mechanism") is not None:
        section["mechanism"] = parse_mechanism(section["mechanism"])
    return _build(field, Level, section)


def _build(field: str, kind: type[T], given: dict[str, Any], also: tuple[str, ...] = ()) -> T:
    names = [*also, *(entry.name for entry in fields(cast(Any, kind)))]
    others = [name for name in given if name not in names]
    problems = [no_setting(f"{field}.{name[:LONGEST]}", name, names) for name in others[:MOST_SHOWN]]
    if len(others) > MOST_SHOWN:
        problems.append(f"{field}: {len(others) - MOST_SHOWN:,} more names are no settings.")
    try:
        built = kind(**{name: value for name, value in given.items() if name in names})
    except SettingsError as error:
        problems.append(str(error))
    if problems:
        raise problem("\n".join(problems))
    return built


def _parse_words(field: str, value: Mapping[str, Any]) -> tuple[str, ...]:
    """Read the words of `{file: path}`. A line that begins with # is a word, too: some tokenizers make such words."""
    for name in value:
        if name != "file":
            raise problem(no_setting(f"{field}.{name}", name, ["file"]))
    path = value.get("file")
    if not isinstance(path, str) or not path:
        raise problem(
            f"{field}.file: {shown(path)} is not valid. Choose the path of a text file (UTF-8) with one word a line."
        )
    return _safely(lambda: read_lines(f"{field}.file", path))


def read_lines(field: str, path: str) -> tuple[str, ...]:
    """Read the lines of a text file, stripped and without blank ones."""
    with file_errors(field, path, error=SettingsError):
        text = Path(path).read_text(encoding="utf-8-sig")
    return tuple(line for line in map(str.strip, text.splitlines()) if line)


def parse_options(value: object) -> dict[str, str]:
    """Return reader options as strings, as Spark takes them."""
    options = _mapping("input.options", value)
    for name, option in options.items():
        if not isinstance(option, str | int | float | bool):
            kind = type(option).__name__
            raise problem(
                f"input.options.{name}: a {kind} is not valid. Choose a text, a number, true or false."
            )
        if name.lower() in RESERVED_OPTIONS:
            raise problem(f"input.options.{name}: the run sets this option itself. Remove it.")
        if name.lower() in ("header", "multiline") and str(option).lower() not in ("true", "false"):
            raise problem(f"input.options.{name}: {shown(option)} is not valid. Choose true or false.")
        if name.lower() == "mode" and str(option).upper() != "PERMISSIVE":
            raise problem(
                f"input.options.{name}: {shown(option)} is not valid. Choose PERMISSIVE, which also releases records that "
                "do not fit their columns. Or remove it: the run then refuses such records."
            )
    texts = {name: str(option) for name, option in options.items()}
    return {name: text.lower() if isinstance(options[name], bool) else text for name, text in texts.items()}


def without_nul(value: str) -> str:
    """Check that a place is possible in a file system: it has no NUL."""
    if "\0" in value:
        raise invalid("a text without a NUL character")
    return value


def parse_table(value: object) -> object:
    """Check the form of a catalog name."""
    if isinstance(value, str):
        if re.match(r"(?i)(delta|parquet|csv|json|text)\.`", value):
            raise invalid("a catalog name; for a path, set `path`")
        if not TABLE.fullmatch(value):
            raise invalid("catalog.schema.table, with back-ticks around unusual names")
    return value


def parse_day(value: object) -> object:
    """Read a day."""
    if value is None or type(value) is date:
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        with suppress(ValueError):
            return date.fromisoformat(value)
    raise invalid("a day such as 2027-12-31")


def parse_requirements(value: object) -> tuple[Requirement[str], ...]:
    """Read the requirements of a run and of its table."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        raise problem(
            f"require: {shown(value)} is not valid. Choose a list of requirements, such as 'names_kept <= 0.02'."
        )
    return tuple(
        _safely(partial(named_requirement, text, FIGURES, "a run or of its table", f"require[{n}]"))
        for n, text in enumerate(value)
    )


def parse_row_key(value: object) -> object:
    """Return the row key; None if the settings accept a table without one."""
    if isinstance(value, Mapping):
        if dict(value) == {"none": "accept"}:
            return None
        raise problem(
            f"row_key: {f'{shown(dict(value))} is not valid' if value else 'not set'}. Name a unique column, because an "
            "audit joins the table to its source by that column. `dptext start TABLE` looks for one, and docs/guide/start "
            "shows how to add one. If you have none, choose `row_key: {none: accept}` (--set row_key.none=accept). "
            "Nobody can then audit the table later."
        )
    return value


def parse_sources(value: object) -> object:
    """Let a further embedding be named by its source alone."""
    if not isinstance(value, list | tuple):
        raise invalid("a list of sources, or of sections with source, format, limit and vocabulary")
    return tuple({"source": entry} if isinstance(entry, str) else entry for entry in value)


def check_one_place(section: str, path: object, table: object) -> None:
    """Refuse a place that is named twice or not at all."""
    if path is None and table is None:
        raise no_place(f"{section}: neither path nor table is set. Set one of them.{example_of(section)}")
    if path is not None and table is not None:
        raise problem(f"{section}: path and table are both set. Set one of them.")
