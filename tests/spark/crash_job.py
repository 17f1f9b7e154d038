"""A run or a stream in a process of its own that ends at a point, or races: `python crash_job.py PLAN`, a file of JSON.

The plan names `base`, `name`, `kind` (see :func:`settings`), and what may be null or left out: the `point`, the `times` that it
is passed until the process ends, the point at which an effect `fails`, `more` settings, and the point at which the processes of
the files `all` meet, with `own`, its own one of them. The JVM ends with the process, so that nothing in it goes on or cleans up.
A process that comes to its end prints its status, or the field that its error names.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DPTextError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.job import run_once
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.stream import stream
from tests.spark.effects import observed

ENDED = 137  # what the process returns
RUN = "the-run"
DATABASE = "crashes"


def settings(base: Path, name: str, kind: str) -> dict[str, Any]:
    """Return the settings of a `run`, one into a table by name (`named`), one of `fluent` draws, or a `stream` of two parts."""
    own = base / name
    made: dict[str, Any] = {
        "input": {"path": str(base / "in")},
        "columns": ["body"],
        "row_key": "id",
        "lexicon": {"source": str(base / "lexicon")},
        "key": {"file": str(base / "key")},
        "output": {"path": str(own / "out"), "other_columns": "keep"},
        "audit": {
            "shareable": str(own / "shareable"), "restricted": str(own / "restricted"),
        },
        "run": {"id": RUN},
        "ledger": {"path": str(own / "ledger")},  # each history has its own
    }  # fmt: skip
    if kind == "named":
        made["output"] = {"table": f"{DATABASE}.out"}
    if kind == "fluent":
        made["mechanism"] = {"name": "custext", "fluent": True}
    if kind == "stream":
        made["stream"] = {"max_files": 1, "starting_version": 0, "checkpoint": str(own / "checkpoint")}
        made["mode"] = "incremental"
    return made


def know_tables(spark: Any, folder: Path) -> None:
    """Tell the session's catalog, which begins empty, of the table that an earlier process made by name."""
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} LOCATION '{folder}'")
    if (folder / "out" / "_delta_log").is_dir():
        spark.sql(f"CREATE TABLE IF NOT EXISTS {DATABASE}.out USING delta LOCATION '{folder / 'out'}'")


def _meet(own: Path, others: list[Path]) -> None:
    """Wait until every process is here."""
    own.touch()
    until = time.monotonic() + 600
    while not all(other.exists() for other in others):
        assert time.monotonic() < until, "another process is gone"
        time.sleep(0.002)


def main(plan: dict[str, Any]) -> None:
    """Run until the point."""
    base = Path(plan["base"])
    spark = spark_session(
        master="local[2]",  # as the session of the tests: as many tasks write as many files
        warehouse=base / plan["name"] / "warehouse",
        settings={
            "spark.local.dir": str(base / "local"),
            "spark.sql.shuffle.partitions": 1,
            "spark.ui.enabled": "false",
            "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        },
    )
    jvm = spark.sparkContext._gateway.proc.pid
    passed = 0

    def at(point: str) -> None:
        nonlocal passed
        if point == plan.get("meets"):
            _meet(Path(plan["own"]), [Path(other) for other in plan["all"]])
        passed += point == plan.get("point")
        if passed == plan.get("times"):
            os.kill(jvm, signal.SIGKILL)
            os._exit(ENDED)
        if point == plan.get("fails"):
            raise OSError

    config = parse_config({**settings(base, plan["name"], plan["kind"]), **plan.get("more", {})})
    key = RunKey.from_file(base / "key")
    with observed(at):
        if plan["kind"] == "stream":
            stream(spark, config, key, print)
        else:
            if plan["kind"] == "named":
                know_tables(spark, base / plan["name"])
            try:
                ended = run_once(lambda: prepare_run(spark, config, key, print), config, print).status
            except DPTextError as error:
                ended = str(error).partition(":")[0]
            sys.stdout.write(f"ENDED {ended}\n")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
