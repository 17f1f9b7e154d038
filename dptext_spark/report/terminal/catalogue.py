"""The registered mechanisms as records: guarantee, cost, certificate, and parameters with defaults and ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from dptext_spark.errors import require_choice
from dptext_spark.mechanisms import MECHANISMS, Mechanism
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.report.terminal.console import hanging

LEAST_TEXT = 40  # columns beside the parameters' names; with less, what is said of them stands below


def catalogue() -> list[dict[str, Any]]:
    """Return one record for each mechanism.

    Returns:
        `name`, `paper`, `guarantee`, `cost` (a class, in words), `measured` (an order of magnitude; None where no record has
        one), `certificate` and `parameters`: a list of `name`, `default`, `required` and what
        :meth:`dptext_spark.mechanisms.parameters.Parameter.as_dict` says.
    """
    return [_record(name, kind) for name, kind in MECHANISMS.items()]


def described(name: str) -> dict[str, Any]:
    """Return the record of one mechanism.

    Raises:
        SettingsError: there is no such mechanism.
    """
    require_choice("name", name, MECHANISMS)
    return _record(name, MECHANISMS[name])


def _record(name: str, kind: type[Mechanism]) -> dict[str, Any]:
    declared = parameters_of(kind)
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    return {
        "name": name,
        "paper": kind.paper,
        "guarantee": kind.protects,
        "cost": kind.sampler.cost,
        "measured": kind.measured,
        "certificate": kind.certified_by or kind.sampler.certified_by,
        "parameters": [
            {
                "name": one,
                "default": defaults[one],
                "required": defaults[one] is None and not parameter.null,
                **parameter.as_dict(),
            }
            for one, parameter in declared.items()
        ],
    }


def catalogue_text(records: Iterable[dict[str, Any]], columns: int) -> str:
    """Write records for a person, in lines of so many columns."""
    return "\n\n".join("\n".join(_lines(record, columns)) for record in records)


def _lines(record: dict[str, Any], columns: int) -> list[str]:
    measured = f" (measured: {record['measured']})" if record["measured"] else ""
    said = {name: record[name] for name in ("paper", "guarantee", "cost", "certificate")}
    said["cost"] += measured
    lines = [record["name"], *(hanging(f"  {name:<13}", text, columns) for name, text in said.items())]
    heads = [f"    {_head(parameter)}" for parameter in record["parameters"]]
    indent = max(map(len, heads)) + 2
    for head, parameter in zip(heads, record["parameters"], strict=True):
        text = f"{parameter['meaning']} Valid: {parameter['valid']}."
        if columns - indent >= LEAST_TEXT:
            lines.append(hanging(f"{head:<{indent}}", text, columns))
        else:
            lines += [head, hanging(" " * 8, text, columns)]
    return lines


def _head(parameter: dict[str, Any]) -> str:
    """Return `name = default` as YAML writes it."""
    if parameter["required"]:
        return f"{parameter['name']} (required)"
    default = parameter["default"]
    return f"{parameter['name']} = {'null' if default is None else default}"
