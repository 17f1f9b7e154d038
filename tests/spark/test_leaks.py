"""No word of the text and no key in anything that is written beside the sanitized table, whether a run succeeds or fails.

Runs in a process of its own, with Spark's event log on; then everything that lies around is searched for markers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.traces import traces as where_the_key_lies

pytestmark = pytest.mark.long
CHECKOUT = Path(__file__).resolve().parents[2]
WORDS = ("zanzibarmarker", "quetzalmarker")
KEY = hashlib.sha256(b"the key of these tests").digest()
WAYS = {  # in which a worker comes by the key
    "closure": {"file": "KEY"},
    "executors": {"file": "KEY", "deliver": "executors"},
    "variable": {"env": "LEAK_TEST_KEY", "deliver": "executors"},
}

JOBS = """
import json, os, sys, pathlib
from dptext_spark.spark.session import spark_session
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.spark.runner import run
from dptext_spark.errors import DPTextError

base, events = pathlib.Path(sys.argv[1]), sys.argv[2]
spark = spark_session(master="local[2]", warehouse=base / "warehouse", settings={
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": "file://" + events, "spark.eventLog.compress": "false",
    "spark.local.dir": str(base / "local"), "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.executorEnv.PYTHONPATH": sys.argv[3],
})
def go(name, form="text", **more):
    settings = {"input": {"path": str(base / "in" / name), "format": form}, "columns": ["value"],
                "output": {"path": str(base / "out" / name), "other_columns": "keep"}, "key": {"file": str(base / "key")}}
    try:
        print(name, run(parse_config({**settings, **more}), spark, progress=print).status)
    except DPTextError as error:
        print(name, type(error).__name__, error)
go("good")
for way, key in json.loads(sys.argv[4]).items():
    key = {name: str(base / "key") if value == "KEY" else value for name, value in key.items()}
    go(way, input={"path": str(base / "in" / "good"), "format": "text"}, consistency="dataset", key=key)
    rows = spark.read.format("delta").load(str(base / "out" / way)).collect()
    print("WROTE", way, [row["value"] for row in rows], "LEAK_TEST_KEY" in os.environ)
go("invalid")
go("nulls", "parquet", row_key="id")
spark.sql(f"CREATE TABLE delta.`{base}/out/checked` (value STRING) USING delta")
spark.sql(f"ALTER TABLE delta.`{base}/out/checked` ADD CONSTRAINT short CHECK (length(value) < 3)")
go("checked", output={"path": str(base / "out" / "checked"), "other_columns": "keep", "mode": "append"})
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    import pyarrow as pa
    import pyarrow.parquet as pq

    base = tmp_path_factory.mktemp("leaks")
    for name in ("good", "invalid", "nulls", "checked"):
        (base / "in" / name).mkdir(parents=True)
    line = f"please tell {WORDS[0]} that {WORDS[1]} has called".encode()
    (base / "in/good/a.txt").write_bytes(line + b"\n")
    (base / "in/invalid/a.txt").write_bytes(line + b"\n" + line + b" \xff\n")
    (base / "in/checked/a.txt").write_bytes(line + b"\n")
    pq.write_table(pa.table({"id": [1, None], "value": [line.decode()] * 2}), base / "in/nulls/a.parquet")
    key = base / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    events = base / "events"
    events.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(base)}
    environment["LEAK_TEST_KEY"] = base64.b64encode(KEY).decode()
    done = subprocess.run(
        [sys.executable, "-c", JOBS, str(base), str(events), str(CHECKOUT), json.dumps(WAYS)],
        cwd=base, env=environment, capture_output=True, timeout=900,
    )  # fmt: skip
    (base / "stdout").write_bytes(done.stdout)
    (base / "stderr").write_bytes(done.stderr)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
    return base, done.stdout.decode()


def test_the_jobs_ended_as_planned(traces: tuple[Path, str]) -> None:
    said = traces[1].splitlines()
    ends = ("good", "invalid", "nulls", "checked")
    ended = {line.split()[0]: line for line in said if line.split()[0] in ends}
    assert ended["good"] == "good succeeded"
    assert "invalid DataError" in ended["invalid"]
    assert "1 rows hold invalid UTF-8" in ended["invalid"]
    assert "nulls DataError" in ended["nulls"]
    assert "NULL in 1 of 2 rows" in ended["nulls"]
    assert "checked RunError Spark failed with" in ended["checked"]
    assert "It left files behind, in no version of the table:" in ended["checked"]


def test_nothing_private_lies_around(traces: tuple[Path, str]) -> None:
    base = traces[0]
    needles = [word.encode() for word in WORDS] + [word.encode().hex().encode() for word in WORDS]
    searched, found = [], []
    for file in base.rglob("*"):
        if not file.is_file() or (base / "in") in file.parents or file == base / "key":
            continue
        searched.append(file)
        content = file.read_bytes()
        # A constraint on the target is evaluated by Delta, which logs the row that breaks it: outside of this job's control.
        outside = (base / "events") in file.parents or file.name == "stderr"
        found += [
            (file.relative_to(base).as_posix(), needle)
            for needle in needles
            if needle in content and not (outside and _only_beside(content, needle, b"CHECK"))
        ]
    names = {file.relative_to(base).parts[0] for file in searched}
    assert {"out", "events", "stdout", "stderr"} <= names
    assert any(file.stat().st_size > 10_000 for file in searched if (base / "events") in file.parents)
    assert found == []
    assert where_the_key_lies(searched, [KEY]) == []


def test_a_key_that_workers_read_draws_as_one_that_travels(traces: tuple[Path, str]) -> None:
    """The variable is inherited by the workers of a local Spark, and stays there."""
    wrote = [line.split(maxsplit=2) for line in traces[1].splitlines() if line.startswith("WROTE ")]
    assert [way for _, way, _ in wrote] == list(WAYS)
    assert {said for _, _, said in wrote} == {wrote[0][2]}
    assert wrote[0][2].endswith("True")
    assert "please tell" not in wrote[0][2]


def _only_beside(content: bytes, needle: bytes, reason: bytes) -> bool:
    """Whether every line with `needle` also speaks of the constraint that broke."""
    lines = content.split(b"\n")
    return all(
        any(reason in near for near in lines[max(0, number - 3) : number + 4])
        for number, line in enumerate(lines)
        if needle in line
    )
