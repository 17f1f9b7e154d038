"""An application for the cluster: runs with providers whose modules come to the executors in the ways that the guide names.

It is given a folder; with the import path of a provider behind it, it makes one run with that one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DPTextError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.spark.session import spark_session

base = Path(sys.argv[1])
spark = spark_session()
# What the executors have by their PYTHONPATH, and what they have not at all, the driver has by its own.
sys.path += [str(base / "installed"), str(base / "driver_only")]
found: dict[str, Any] = {}


def import_place(module: str) -> list[str]:
    """Return from where the executors import a module."""

    def look(_: int) -> str:
        import importlib

        return str(importlib.import_module(module).__file__)

    return sorted(row[0] for row in spark.range(8).select(F.udf(look, "string")("id")).distinct().collect())


def go(name: str, path: str) -> RunConfig:
    """Run with a provider, note how it ended and what is in the target, and return the settings."""
    target = base / "out" / name
    config = parse_config(
        {
            "input": {"path": str(base / "in.parquet"), "format": "parquet"}, "columns": ["body"], "row_key": "id",
            "consistency": "record", "lexicon": {"source": str(base / "lexicon")},
            "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5}, "run": {"id": name, "partitions": 4},
            "policy": {"providers": [path], "oov": "keep", "numbers": "keep", "identifiers": "none", "allow_unknown": True},
            "output": {"path": str(target), "other_columns": "keep"},
        }
    )  # fmt: skip
    try:
        ended = run(config, spark, key=RunKey.insecure(1)).status
    except DPTextError as error:
        ended = f"{type(error).__name__} {error}"
    written = {}
    if list((target / "_delta_log").glob("*.json")):
        written = {row["id"]: row["body"] for row in spark.read.format("delta").load(str(target)).collect()}
    left = sorted(one.name for one in (base / "out").glob(f"{name}*"))
    found[name] = {"ended": ended, "written": written, "left": left}
    return config


if sys.argv[2:]:
    go("named", sys.argv[2])
else:
    for name in ("file", "package", "installed"):
        module = {"file": "sent_finder", "package": "sent_package.finders", "installed": "installed_finder"}[
            name
        ]
        go(name, f"{module}:Toy")
        found[f"{name}_from"] = import_place(module)
    config = go("driver_only", "driver_only_finder:Toy")
    found["doctor"] = [
        f"{one.status}: {one.message}" for one in dps.doctor(config, spark) if one.check == "shared model"
    ]
    go("raises", "raising_finder:Wrong")
(base / "found.json").write_text(json.dumps(found), encoding="utf-8")
