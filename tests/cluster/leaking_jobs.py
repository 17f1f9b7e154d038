"""An application for the cluster: jobs over marked text that succeed and that fail in every stage, and a look at the workers."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd

import dptext_spark
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DPTextError
from dptext_spark.spark.job import writing
from dptext_spark.spark.runner import run
from dptext_spark.spark.session import spark_session

base = Path(sys.argv[1])
spark = spark_session()
spark.sparkContext.setLogLevel("INFO")


def said(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def threads(of: pd.Series) -> pd.Series:
    """Return how a Python worker is set up, as JSON."""
    import faiss  # noqa: F401  (its threads count too)
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_info

    pools = {pool["user_api"]: pool["num_threads"] for pool in threadpool_info()}
    told = {"omp": os.environ.get("OMP_NUM_THREADS"), "pools": pools, "package": dptext_spark.__file__}
    return pd.Series([json.dumps(told)] * len(of))


def look_at_the_workers() -> None:
    from pyspark.sql import functions as F

    looked = F.pandas_udf(threads, "string")
    workers = [json.loads(row[0]) for row in spark.range(4).select(looked("id")).distinct().collect()]
    cpus = spark.conf.get("spark.task.cpus", "1")
    told = {"cpus": cpus, "driver": dptext_spark.__file__, "workers": workers}
    (base / "workers.json").write_text(json.dumps(told), encoding="utf-8")


def go(name: str, **more: Any) -> None:
    """Run a job over the input of that name, and print how it ended."""
    settings = {
        "input": {"path": str(base / "in" / f"{name}.parquet"), "format": "parquet"}, "columns": ["value"],
        "output": {"path": str(base / "out" / name), "other_columns": "keep"}, "key": {"file": str(base / "key")}, **more,
    }  # fmt: skip
    try:
        said(f"ENDED {name} {run(parse_config(settings), spark, progress=said).status}")
    except DPTextError as error:
        said(f"ENDED {name} {type(error).__name__} {error}")


def make(name: str, constraint: str | None = None) -> dict[str, Any]:
    """Make a target that is somebody else's; return the settings that append to it."""
    folder = base / "out" / name
    spark.sql(f"CREATE TABLE delta.`{folder}` (id STRING, value STRING) USING delta")
    if constraint:
        spark.sql(f"ALTER TABLE delta.`{folder}` ADD CONSTRAINT short CHECK ({constraint})")
    return {"path": str(folder), "mode": "append", "other_columns": "keep"}


def another_writer(folder: Path) -> None:
    """Change the table's metadata, once the run has begun a data file: its own commit then conflicts."""
    log = folder / "_delta_log"
    while not list(folder.glob("*.parquet")):
        time.sleep(0.01)
    first = [json.loads(line) for line in (log / f"{0:020}.json").read_text(encoding="utf-8").splitlines()]
    (changed,) = (action for action in first if "metaData" in action)
    changed["metaData"]["description"] = "changed meanwhile"
    (log / f"{1:020}.json").write_text(json.dumps(changed) + "\n", encoding="utf-8")


def change_a_row_before_the_audit(folder: Path) -> None:
    """Let the audit of consistency find another replacement in one row than in the others."""
    real = writing.audit

    def changed(setup: Any, version: int, rows: int, say: Any) -> Any:
        writing.audit = real
        spark.sql(
            f"UPDATE delta.`{folder}` SET value = regexp_replace(value, '^[A-Za-z]+', 'Zebra') WHERE id LIKE '%7'"
        )
        return real(setup, version + 1, rows, say)

    writing.audit = changed


look_at_the_workers()
go("good", row_key="id", record_key="id", consistency="record")
source = {"path": str(base / "in" / "delta")}
spark.sparkContext.setLogLevel("WARN")  # what is done with a table before a run is its owner's
spark.read.parquet(str(base / "in" / "good.parquet")).write.format("delta").save(source["path"])
spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
spark.sparkContext.setLogLevel("INFO")
go("delta", input=source, row_key="id")
go("stream", input=source, row_key="id", mode="incremental")
lists = [{"file": str(base / "in" / "names.txt")}, {"column": "id"}]
go("names", input=source, row_key="id", consistency="record", policy={"mask": lists, "keep": lists[1:]})
limited = {"path": str(base / "ledger"), "limit": 1.5}
os.environ["LEAK_TEST_KEY"] = base64.b64encode((base / "key").read_bytes()).decode()
go("environment", input=source, row_key="id", ledger=limited, key={"env": "LEAK_TEST_KEY"})
go("limit", input=source, row_key="id", ledger=limited)
change_a_row_before_the_audit(base / "out" / "broken")
go("broken", input=source, row_key="id", consistency="dataset")
go("unreadable")
go("null_key", row_key="id")
go("repeated_key", row_key="id")
go("invalid_text")
go("constraint", output=make("constraint", "length(value) < 3"))
target = make("conflict")
writer = threading.Thread(target=another_writer, args=(Path(target["path"]),), daemon=True)
writer.start()
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
go("conflict", output=target)
(base / "restricted").mkdir()
(base / "restricted" / "metrics").write_text("no table")
go("account", audit={"restricted": str(base / "restricted"), "shareable": str(base / "shareable")})
said("ALL ENDED")
time.sleep(600)  # until somebody kills us: what is left behind then is searched too
