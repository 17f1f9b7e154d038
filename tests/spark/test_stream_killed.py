"""A driver is killed in the middle of a micro-batch: nothing is twice, nothing lost, and the text is as if it had lived."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.spark.job import runs
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables import Target, history
from tests.cluster.traces import traces
from tests.core.names import beginning
from tests.spark.stream_job import CHECKOUT, FILES, settings

pytestmark = pytest.mark.cluster

ROWS = 300  # of each of two additions to the source
KEY = hashlib.sha256(b"the key of these tests").digest()
MARKER = "zanzibarmarker"  # no word of the lexicon: masked in the output


def _add(spark, base: Path, first: int) -> None:
    body = f"concat('please call ', elt(1 + id % 3, 'me', '{MARKER}', 'sales'), ' about the good money ', id)"
    frame = spark.range(first, first + ROWS).selectExpr("id", f"{body} AS body")
    frame.repartition(FILES, "id").write.format("delta").mode("append").save(str(base / "in"))


def _killed(base: Path, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("stream_job.py")), str(base), moment],
        cwd=base, env={**os.environ, "PYTHONPATH": CHECKOUT}, capture_output=True, timeout=600,
    )  # fmt: skip
    (base / f"{moment}.stderr").write_bytes(done.stderr)
    (base / f"{moment}.stdout").write_bytes(done.stdout)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode("utf-8", "replace")[-2000:]


def _rows(spark, folder: Path) -> dict[int, str]:
    found = spark.read.format("delta").load(str(folder)).collect()
    rows = {row["id"]: row["body"] for row in found}
    assert len(rows) == len(found)
    return rows


def _statuses(spark, base: Path) -> dict[str, str]:
    table = spark.read.format("delta").load(str(base / "out_audit/shareable/runs"))
    return {row["run_id"]: row["status"] for row in table.collect()}


@pytest.fixture(scope="module")
def base(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("killed")
    beginning(Lexicon.default(), 600).save(folder / "lexicon")
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o600)
    (folder / "events").mkdir()
    return folder


def test_a_killed_driver_changes_nothing(spark, base: Path) -> None:
    out = Target(path=str(base / "out"))
    _add(spark, base, 0)
    _killed(base, "committed")
    assert len(history(spark, out)) == 1
    assert _statuses(spark, base)["killed.0"] == "started"
    assert not list((base / "out_checkpoint/commits").glob("[0-9]*"))
    _add(spark, base, ROWS)
    _killed(base, "writing")  # after it repaired the account of the first
    assert len(history(spark, out)) == 1
    assert _statuses(spark, base)["killed.0"] == "recovered"
    assert _statuses(spark, base)["killed.1"] == "started"
    report = run(parse_config(settings(base, "out")), spark)
    assert report.status == "succeeded"
    assert report.facts["rows"] == ROWS
    assert report.facts["batches"]["in_all"] == 2
    assert report.facts["batches"]["rows"] == 2 * ROWS
    assert len(history(spark, out)) == 2
    assert _statuses(spark, base) == {"killed": "succeeded", "killed.0": "recovered", "killed.1": "succeeded"}
    # The same stream, undisturbed: the same micro-batches, and at token level the same draws.
    calm = run(parse_config(settings(base, "calm")), spark)
    assert calm.facts["batches"]["in_all"] == 2
    rows = _rows(spark, base / "out")
    assert len(rows) == 2 * ROWS
    assert rows == _rows(spark, base / "calm")
    _one_output_a_row(base / "out", rows)
    _nothing_private(base)


def _one_output_a_row(folder: Path, rows: dict[int, str]) -> None:
    """Compare every file in the folder, those of no version of the table too, with the table."""
    read = 0
    for file in folder.glob("*.parquet"):
        try:
            table = pq.read_table(file)
        except Exception:  # it was being written when the process ended
            continue
        read += table.num_rows
        assert all(rows[row["id"]] == row["body"] for row in table.to_pylist())
    assert read > 2 * ROWS  # a whole file of the killed attempt was there to be compared


def _nothing_private(base: Path) -> None:
    files = [file for file in base.rglob("*") if file.is_file() and file != base / "key"]
    assert traces(files, [KEY]) == []
    # What Spark shuffles is the input, and a killed JVM cannot remove it: spark.io.encryption.enabled is for that.
    ours = [file for file in files if not {base / "in", base / "local"} & set(file.parents)]
    assert traces(ours, [MARKER.encode()]) == []
    assert len(ours) > 50
    assert any((base / "events").rglob("*"))
    assert len(files) > len(ours)
    assert runs.checked("killed.0")
