"""What a client of Spark Connect does, a process of its own: `python client.py REMOTE FOLDER`; results in FOLDER/results.json."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.artifact import open_artifact
from dptext_spark.config import RunConfig
from dptext_spark.draws import RunKey
from dptext_spark.errors import DPTextError
from dptext_spark.spark.session import spark_session

SECRET = b"MARKERKEY-0123456789-abcdefghijk"
KEY = RunKey(SECRET)
COLUMNS = ["body", "tags", "comments.text", "attributes"]


def config_of(folder: Path, out: str, **changes: Any) -> RunConfig:
    """Settings that the classic session takes, too."""
    settings: dict[str, Any] = {
        "input": {"path": str(folder / "in")}, "columns": COLUMNS, "row_key": "id", "record_key": "customer",
        "consistency": "record", "output": {"path": str(folder / out)}, "run": {"id": "one"},
    }  # fmt: skip
    return RunConfig.of(settings | changes)


def failing(folder: Path) -> Iterator[tuple[str, RunConfig]]:
    """Runs that fail where the data is looked at: in the worker, in a cast, and at a constraint of the target."""

    def config(name: str, **changes: Any) -> RunConfig:
        base = {"columns": ["body"], "record_key": None, "consistency": "token", "run": {"id": name}}
        return config_of(folder, name, **(base | changes))

    marked = {"path": str(folder / "marked")}
    yield "utf8", config("utf8", input=marked)
    target = {"path": str(folder / "constrained"), "mode": "append", "overwrite_raw": True}
    yield "constraint", config("constraint", input={**marked, "where": "id < 3"}, output=target)
    yield "cast", config("cast", input={**marked, "where": "id < 3 AND CAST(body AS INT) > 0"})


def said(act: Callable[[], Any]) -> dict[str, str]:
    try:
        act()
    except DPTextError as error:
        shown = f"{error}|{error.__cause__}|{error.__context__ if not error.__suppress_context__ else ''}"
        return {"kind": type(error).__name__, "said": shown}
    return {"kind": "none", "said": ""}


def main(remote: str, folder: Path) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    found: dict[str, Any] = {"same_session": spark_session() is spark}
    df = spark.read.format("delta").load(str(folder / "in"))
    model = open_artifact(folder / "model")
    for udf in ("auto", "pandas"):
        out = dps.privatize(
            df, COLUMNS, model, row_key="id", record_key="customer", key=KEY, run_id="r", udf=udf
        )
        found[udf] = [
            json.loads(row[0]) for row in out.orderBy("id").selectExpr("to_json(struct(*))").collect()
        ]
    audit = {"shareable": str(folder / "audit/shareable"), "restricted": str(folder / "audit/restricted")}
    named = config_of(folder, "", output={"table": "default.connected"}, audit=audit)
    found["facts"] = dps.run(named, spark, key=KEY).as_dict(internal=True)
    found["again"] = dps.run(named, spark, key=KEY).status
    found["place"] = spark.sql("DESCRIBE DETAIL default.connected").first()["location"]
    found["ordinal"] = said(lambda: dps.run(config_of(folder, "none", row_key=None), spark, key=KEY))

    # All that a client can log about a request is switched on: the job has to keep it back.
    logging.basicConfig(level=logging.DEBUG)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging"):
        logging.getLogger(name).disabled = False
        logging.getLogger(name).setLevel(logging.DEBUG)
    for name, config in failing(folder):
        found[name] = said(lambda config=config: dps.run(config, spark, key=KEY))  # type: ignore[misc]
    (folder / "results.json").write_text(json.dumps(found, default=str), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
