"""The catalogue of mechanisms is what the registry and the dataclasses say."""

from __future__ import annotations

import json
from dataclasses import fields

from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.report.catalogue import catalogue

REQUIRED = {"projection": {"m": 3}}  # parameters without a default, which is null then


def test_every_mechanism_and_every_parameter_is_explained() -> None:
    records = json.loads(json.dumps(catalogue()))
    assert [record["name"] for record in records] == list(MECHANISMS)
    for record, kind in zip(records, MECHANISMS.values(), strict=True):
        assert record["paper"] and record["guarantee"]
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        assert [parameter["name"] for parameter in record["parameters"]] == names
        assert all(parameter["meaning"] for parameter in record["parameters"])
        defaults = {p["name"]: p["default"] for p in record["parameters"]}
        required = REQUIRED.get(record["name"], {})
        assert all(defaults[name] is None for name in required)
        assert kind(**defaults | required) == kind(**required)
