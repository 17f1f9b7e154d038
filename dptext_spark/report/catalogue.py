"""The registered mechanisms as records: what each guarantees, and its parameters with defaults and ranges."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.parameters import parameters_of


def catalogue() -> list[dict[str, Any]]:
    """Return one record for each mechanism.

    Returns:
        `name`, `paper`, `guarantee` and `parameters`, a list of `name`, `default` and what
        :meth:`dptext_spark.mechanisms.parameters.Parameter.as_dict` says.
    """
    return [
        {
            "name": name,
            "paper": kind.paper,
            "guarantee": kind.protects,
            "parameters": [
                {"name": field.name, "default": field.default} | parameters_of(kind)[field.name].as_dict()
                for field in fields(kind)  # type: ignore[arg-type]
            ],
        }
        for name, kind in MECHANISMS.items()
    ]
