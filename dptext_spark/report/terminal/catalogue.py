"""The registered mechanisms as values: guarantee, cost, certificate, and parameters with defaults and ranges."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dptext_spark.mechanisms import MECHANISMS, mechanism_named
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.report.terminal.console import Screen


def described(name: str) -> dict[str, Any]:
    """Return what a mechanism is and what its parameters are, JSON-able.

    Raises:
        SettingsError: there is no such mechanism.
    """
    kind = mechanism_named("name", name)
    defaults = {field.name: field.default for field in fields(kind)}
    return {
        "name": name,
        "paper": kind.paper,
        "guarantee": kind.protects,
        "cost": kind.sampler.cost,
        "measured": kind.measured,  # an order of magnitude; None where no record has one
        "certificate": kind.certified_by or kind.sampler.certified_by,
        "parameters": [
            {"name": parameter, "default": default, "required": default is None and not declared.null}
            | declared.as_dict()
            for parameter, declared in parameters_of(kind).items()
            for default in [defaults[parameter]]
        ],
    }


def catalogue() -> list[dict[str, Any]]:
    """Return all mechanisms that are registered."""
    return [described(name) for name in MECHANISMS]


def rows(mechanism: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a mechanism is and its parameters, for a person."""
    measured = f" (measured: {mechanism['measured']})" if mechanism["measured"] else ""
    parameters = []
    for each in mechanism["parameters"]:
        default = "null" if each["default"] is None else each["default"]
        head = f"{each['name']} (required)" if each["required"] else f"{each['name']} = {default}"
        parameters.append((head, f"{each['meaning']} Valid: {each['valid']}."))
    return [
        ("paper", mechanism["paper"]),
        ("guarantee", mechanism["guarantee"]),
        ("cost", mechanism["cost"] + measured),
        ("certificate", mechanism["certificate"]),
        *parameters,
    ]


def overview() -> Screen:
    """Return what each mechanism guarantees, and all of each on demand."""
    mechanisms = catalogue()
    return Screen(
        f"{len(mechanisms)} mechanisms, and what each guarantees",
        [(each["name"], each["guarantee"]) for each in mechanisms],
        next="dptext mechanisms NAME",
        more=[(each["name"], rows(each)) for each in mechanisms],
    )
