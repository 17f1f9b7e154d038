"""What a run leaves in its tables is as it was: the row of `runs`, the metrics, the ledger's entry and the texts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from dptext_spark.config.load import parse_config
from dptext_spark.spark.job import writing
from dptext_spark.spark.runner import run
from tests.frozen.tickets import kept_tickets

KEPT = Path(__file__).resolve().parents[1] / "frozen" / "run.json"
# Of the machine, the hour and the versions that are installed.
VARY = {"seconds", "started_at", "write_seconds", "tokens_per_second", "attempt", "at", "input_id", "entry"}
ENTRY = re.compile(r"(delta:\d+) [0-9a-f]{16}")  # of the input's log
DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def _plain(value: Any, folder: str) -> Any:
    """Return a value without what differs from run to run; JSON in a text is opened."""
    if isinstance(value, dict):
        return {name: "varies" if name in VARY else _plain(one, folder) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, folder) for one in value]
    if isinstance(value, str) and value.startswith(('{"', '[{"')):
        return _plain(json.loads(value), folder)
    if isinstance(value, str):
        return ENTRY.sub(r"\1 DIGEST", DAY.sub("DAY", value.replace(folder, "FOLDER")))
    return str(value) if isinstance(value, datetime) else value


def left_by_a_run(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Sanitize a few tickets under a fixed key, and return what the tables hold."""
    source = kept_tickets("run").select(["ticket_id", "customer_id", "subject", "body", "agent_reply"])
    frame = spark.createDataFrame(source.to_pandas())
    frame.coalesce(1).write.format("delta").save(str(folder / "in"))
    settings = {
        "input": {"path": str(folder / "in"), "where": {"ticket_id": {"gt": 100003}}},
        "columns": ["subject", "body", "agent_reply"],
        "row_key": "ticket_id",
        "record_key": "customer_id",
        "consistency": "record",
        "mechanism": {"name": "custext", "epsilon": 2.0},
        "key": {"file": str(folder / "key")},
        "output": {"path": str(folder / "out"), "other_columns": "keep"},
        "audit": {
            "shareable": str(folder / "shareable"), "restricted": str(folder / "restricted"),
        },
        "ledger": {"path": str(folder / "ledger"), "limit": 9.0},
        "run": {"id": "frozen"},
    }  # fmt: skip
    (folder / "key").write_bytes(hashlib.sha256(b"frozen").digest())
    (folder / "key").chmod(0o600)
    with patch.object(writing, "AUDITED_ROWS", 20):
        facts = run(parse_config(settings), spark).facts
    row, *_ = spark.read.format("delta").load(str(folder / "shareable" / "runs")).collect()
    metrics = spark.read.format("delta").load(str(folder / "restricted" / "metrics")).collect()
    entries = spark.read.format("delta").load(str(folder / "ledger")).collect()
    texts = spark.read.format("delta").load(str(folder / "out")).orderBy("ticket_id").collect()
    found = {
        "row": row.asDict(),
        "facts": facts,
        "metrics": sorted([r["column"] or "", r["metric"], r["value"]] for r in metrics if r["metric"] not in VARY),
        "ledger": sorted((r.asDict() for r in entries), key=lambda r: (r["status"], r["column"])),
        "texts": hashlib.sha256(json.dumps([list(r) for r in texts]).encode()).hexdigest(),
        "schema": [f"{f.name} {f.dataType.simpleString()}" for f in spark.read.format("delta").load(str(folder / "out")).schema],
    }  # fmt: skip
    plain: dict[str, Any] = _plain(found, str(folder))
    for place in (plain["row"], plain["facts"]):
        place["versions"] = sorted(place["versions"])
    plain["facts"].pop("cores"), plain["facts"].pop("compiled_loops")
    return plain


@pytest.mark.long
def test_the_tables_are_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    assert left_by_a_run(spark, tmp_path) == json.loads(KEPT.read_text(encoding="utf-8"))


def main(folder: Path) -> None:
    """Write the kept file anew; its change is a change of behaviour."""
    from dptext_spark.spark.session import spark_session

    os.environ["PYTHONPATH"] = str(KEPT.parents[2])
    found = left_by_a_run(spark_session(master="local[2]"), folder)
    KEPT.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
