"""Read settings: one strict YAML file and `a.b=value` overrides, merged into a plain dictionary."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from dptext_spark.config.values import DEEPEST, MOST_BYTES, MOST_VALUES, check_at_most, check_bounded
from dptext_spark.errors import SettingsError, file_errors

# Options of the reader that describe the file format. Any other option may hold a secret, whatever its name.
HARMLESS_OPTIONS = (
    "header", "sep", "delimiter", "quote", "escape", "comment", "linesep", "encoding", "charset", "locale", "multiline",
    "mode", "dateformat", "timestampformat", "ignoreleadingwhitespace", "ignoretrailingwhitespace", "enforceschema",
    "wholetext", "mergeschema", "recursivefilelookup", "maxcolumns", "maxcharspercolumn",
)  # fmt: skip
LONGEST_OPTION = 40  # characters of a harmless value
_TAG = "tag:yaml.org,2002:"
_CORE = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        list("-+.0123456789"),
    ),
}


def is_harmless(name: str, value: str = "") -> bool:
    """Check whether the value of a reader's option may be shown."""
    return name.lower() in HARMLESS_OPTIONS and len(value) <= LONGEST_OPTION


class _Loader(yaml.SafeLoader):
    """YAML's core schema: only true and false are booleans, 1e3 is a number, a date is text; no key twice."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (as in the base class)
    composed = depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Count nodes while they are read, so that memory never holds more than the allowed number."""
        self.composed += 1
        self.depth += 1
        check_at_most("names and values", self.composed, MOST_VALUES)
        check_at_most("levels of sections and lists inside each other", self.depth, DEEPEST)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping; refuse keys that are no text or repeat. The name `null` is text, as in `{null: true}`."""
        names: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}null" and key_node.value.lower() == "null":
                key_node.tag = f"{_TAG}str"
            key = self.construct_object(key_node, deep=True)
            where = f"line {key_node.start_mark.line + 1}"
            if not isinstance(key, str):
                raise SettingsError(f"{where}: {key!r} is not valid as the name of a setting. Choose a text.")
            if key in names:
                raise SettingsError(f"{where}: {key!r} is set twice. Set it once.")
            names.add(key)
        return super().construct_mapping(node, deep=deep)


def _integer(loader: Any, node: Any) -> int:
    return int(loader.construct_scalar(node))


def _float(loader: Any, node: Any) -> float:
    return float(loader.construct_scalar(node).replace(".inf", "inf").replace(".nan", "nan"))


class _Dumper(yaml.SafeDumper):
    """Writes text that either schema takes for something else in quotes: `08` and `1e3` are numbers to `_Loader` alone."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """Return a text as a scalar. Signs that end a line in YAML are escaped, for a reader would fold them."""
    return dumper.represent_scalar(
        f"{_TAG}str", value, style='"' if re.search("[\x85\u2028\u2029]", value) else None
    )


_Dumper.add_representer(str, _text)
for _name, (_pattern, _first) in _CORE.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor(_TAG + "int", _integer)
_Loader.add_constructor(_TAG + "float", _float)


def dumped(value: Any, width: int) -> str:
    """Write settings as YAML that is read back equal."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width))


def _parse(text: str) -> Any:
    """Read a text; the same list or section in several places counts in each.

    Raises:
        SettingsError: it is larger or deeper than settings are, or names a setting twice.
        yaml.YAMLError: it is no YAML.
    """
    settings = yaml.load(text, Loader=_Loader)
    check_bounded(settings)
    return settings


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises:
        SettingsError: the file is missing, unreadable, no YAML, no mapping, or names a setting twice.
    """
    with (
        file_errors("settings", path, error=SettingsError),
        Path(path).open(encoding="utf-8-sig") as stream,
    ):
        text = stream.read(MOST_BYTES + 1)
    try:
        check_at_most("characters", len(text), MOST_BYTES)
        settings = _parse(text)
    except SettingsError as error:
        reason = str(error).removeprefix("settings: ")
        raise SettingsError(f"settings: {str(path)!r}, {reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SettingsError(f"settings: {str(path)!r}{where}: not valid YAML ({error.problem}).") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"settings: {str(path)!r}: not valid YAML ({type(error).__name__}).") from None
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise SettingsError(
            f"settings: {str(path)!r} holds a {type(settings).__name__}. Choose a file with sections such as `input:`, "
            "`columns:` and `output:`."
        )
    return settings


def is_settings(place: str) -> bool:
    """Check that a place is a file of settings: by the ending of its name, or by the sections that it holds."""
    try:
        if os.path.isdir(place):
            return False
        if place.lower().endswith((".yaml", ".yml")):
            return True
        settings = read_settings(place) if os.path.isfile(place) else {}
    except (SettingsError, ValueError):
        return False
    return any(isinstance(settings.get(name), dict) for name in ("input", "output", "mechanism", "policy"))


def override(settings: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return `settings` with `a.b=value` applied; later ones win.

    A value is a YAML scalar or list; anything else is text. `null` unsets. An empty value is refused: most often it is a variable
    that was not set.

    Raises:
        SettingsError: no `=`, an empty name, a path through something that is no section, or a secret.
    """
    merged = deepcopy({**settings})
    for item in overrides:
        name, equals, text = item.partition("=")
        names = name.strip().split(".")
        if not equals or not all(names):
            shown = repr(name.strip()) if equals else "something without '='"
            raise SettingsError(
                f"--set: {shown} is not valid. Choose a.b=value, such as mechanism.epsilon=2."
            )
        _refuse_secret(names)
        if not text.strip():
            raise SettingsError(
                f"--set {'.'.join(names)}: no value. Add one, or use null to unset the setting."
            )
        section = merged
        for depth, part in enumerate(names[:-1], start=1):
            inner = section.get(part)
            if inner is None:
                inner = section[part] = {}
            if not isinstance(inner, dict):
                above = ".".join(names[:depth])
                raise SettingsError(f"--set {'.'.join(names)}: {above!r} is a value, not a section.")
            section = inner
        section[names[-1]] = _value(text)
    return merged


def _refuse_secret(names: list[str]) -> None:
    """Refuse possible secrets: command lines end up in process lists and shell histories."""
    if names[0] == "key":
        raise SettingsError(
            "--set key.*: the command line cannot set a key, because process lists and shell histories show it. Name the "
            "key file in the YAML file."
        )
    if names[:2] == ["input", "options"] and not is_harmless(".".join(names[2:])):
        raise SettingsError(
            f"--set {'.'.join(names)}: this option may be a secret, and process lists and shell histories show it. Set it "
            f"in the YAML file, or use your platform's credentials. The command line can set {', '.join(HARMLESS_OPTIONS)}."
        )


def _value(text: str) -> Any:
    """Parse the right side of an override."""
    try:
        value = _parse(text)
    except (yaml.YAMLError, SettingsError, ValueError, RecursionError):
        return text.strip()
    return text.strip() if isinstance(value, dict) else value
