"""The registered mechanisms as records: what each guarantees, and its parameters with defaults and ranges."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from typing import Any

from dptext_spark.mechanisms import MECHANISMS

_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def catalogue() -> list[dict[str, Any]]:
    """Return one record for each mechanism.

    Returns:
        `name`, `paper`, `guarantee` and `parameters`, a list of `name`, `default`, `meaning`. The meanings,
        with their ranges, are what the mechanism's own documentation says.
    """
    return [
        {
            "name": name,
            "paper": kind.paper,
            "guarantee": kind.protects,
            "parameters": [
                {
                    "name": field.name,
                    "default": None if field.default is MISSING else field.default,
                    "meaning": _meanings(kind).get(field.name, ""),
                }
                for field in fields(kind)  # type: ignore[arg-type]
            ],
        }
        for name, kind in MECHANISMS.items()
    ]


def _meanings(kind: type[Any]) -> dict[str, str]:
    """Return what the section `Attributes` of a docstring says of each parameter."""
    _, _, attributes = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(attributes)}
