"""An executor is killed while it works: the run succeeds, the counts are exact, and the text is what it would have been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
ROWS = 60_000

DRIVER = """
import json, os, signal, sys, threading, time
import psutil
import dptext_spark as dp
from dptext_spark.config import RunConfig
from dptext_spark.spark.job import run
from dptext_spark.spark.session import spark_session

base, master, kill, checkout = sys.argv[1], sys.argv[2], sys.argv[3] == "kill", sys.argv[4]
spark = spark_session(master=master, settings={
    "spark.executorEnv.PYTHONPATH": checkout, "spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2",
    "spark.local.dir": base + "/local", "spark.sql.files.maxPartitionBytes": "400k", "spark.sql.files.openCostInBytes": "0",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
})
killed = []

def is_executor(process):
    try:
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    except psutil.Error:  # it ended, or has not begun, while we looked
        return False

def assassin():
    tracker = spark.sparkContext.statusTracker()
    while not killed:
        for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()):
            if stage and stage.numTasks > 4 and stage.numCompletedTasks >= 1:
                for process in psutil.Process().children(recursive=True):
                    if is_executor(process):
                        os.kill(process.pid, signal.SIGKILL)
                        killed.append(process.pid)
                        return
        time.sleep(0.01)

if kill:
    threading.Thread(target=assassin, daemon=True).start()
config = RunConfig.of({
    "input": {"path": base + "/in", "format": "parquet"}, "columns": ["body"], "row_key": "id",
    "output": {"path": base + "/" + sys.argv[3]}, "run": {"id": "the-run", "batch_rows": 500},
})
report = run(config, spark, key=dp.RunKey.insecure(3))
rows = spark.read.format("delta").load(base + "/" + sys.argv[3]).orderBy("id").collect()
import hashlib
digest = hashlib.sha256(repr([tuple(row) for row in rows]).encode()).hexdigest()
print("RESULT" + json.dumps({"killed": len(killed), "rows": report.facts["rows"], "digest": digest,
                             "counts": report.facts["restricted"], "status": report.status}))
"""


def _result(base: Path, master: str, name: str) -> dict[str, object]:
    import pyspark

    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(base), master, name, str(CHECKOUT)],
        cwd=base, env=environment, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert done.returncode == 0 and lines, done.stderr[-2000:]
    found: dict[str, object] = json.loads(lines[0].removeprefix("RESULT"))
    return found


def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [
        f"please call {word} about order {i}"
        for i in range(ROWS)
        for word in (("me", "Martin", "sales")[i % 3],)
    ]
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "body": texts})
    pq.write_table(table, tmp_path / "in", row_group_size=2_000, compression="none")
    calm = _result(tmp_path, "local[2]", "calm")
    killed = _result(tmp_path, "local-cluster[2,1,1024]", "kill")
    assert killed["killed"] == 1 and calm["killed"] == 0
    assert killed["status"] == calm["status"] == "succeeded"
    assert killed["rows"] == calm["rows"] == ROWS
    timed = ("tokens_per_second",)
    assert {k: v for k, v in killed["counts"].items() if k not in timed} == {
        k: v for k, v in calm["counts"].items() if k not in timed
    }
    assert killed["digest"] == calm["digest"]
