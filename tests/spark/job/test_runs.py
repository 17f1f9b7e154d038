"""The table of runs and the table of metrics: written, found again, replaced, compared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import pytest

from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.planned_run import delta_detail
from dptext_spark.spark.schemas import METRICS, RUNS
from dptext_spark.spark.tables import Target

RECORD = RunRecord.of({
    "run_id": "r1", "status": "started", "started_at": runs.utc(1_700_000_000), "config": '{"a": "it\'s `quoted`"}',
    "key_commitment": "c1", "artifact": "f1", "input": "in", "input_version": "delta:3", "identity": "row_key",
    "output": "out", "second_release": False,
})  # fmt: skip


def test_a_record_has_the_columns_of_the_table() -> None:
    assert sorted(field.name for field in fields(RunRecord)) == sorted(RUNS.fieldNames())


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "a `folder`" / "runs")


@pytest.mark.long
def test_a_log_that_was_read_is_not_read_again_where_a_row_is_replaced(spark, folder: str) -> None:
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    took = {}
    runs.read_log(spark, folder, "r1")  # there is no table yet
    for read in (False, True):
        runs.put(spark, folder, replace(RECORD, rows=int(read)))
        if read:
            runs.read_log(spark, folder, "r1")
        before = jobs()
        runs.put(spark, folder, replace(RECORD, status="succeeded"))
        took[read] = jobs() - before
    assert took[True] < took[False]


class TestRuns:
    def test_round_trip_and_replacement(self, spark, folder: str) -> None:
        runs.put(spark, folder, RECORD)
        runs.put(spark, folder, replace(RECORD, run_id="r2", output="elsewhere"))
        assert runs.find(spark, folder, "r1") == RECORD
        assert runs.find(spark, folder, "r3") is None
        assert runs.is_unfinished(spark, folder, "out")
        assert not runs.is_unfinished(spark, folder, "other")
        runs.put(spark, folder, replace(RECORD, status="succeeded", rows=12, seconds=0.5, output_version=4))
        table = spark.read.format("delta").load(folder)
        assert table.count() == 2
        found = runs.find(spark, folder, "r1")
        assert (found.status, found.rows, found.output_version) == ("succeeded", 12, 4)
        assert not runs.is_unfinished(spark, folder, "out")
        assert runs.is_unfinished(spark, folder, "elsewhere")
        assert [row["status"] for row in table.where("run_id = 'r2'").collect()] == ["started"]
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # a time is that instant in any zone
        seconds = "unix_seconds(started_at) AS s"
        instants = spark.read.format("delta").load(folder).selectExpr(seconds).collect()
        assert {row["s"] for row in instants} == {RECORD.started_at.timestamp()} == {1_700_000_000}
        assert not [view.name for view in spark.catalog.listTables() if view.name.startswith("dptext_run")]

    def test_another_table_in_its_place_is_refused(self, spark, folder: str) -> None:
        other = spark.createDataFrame([("r1", "private")], "run_id string, body string")
        other.write.format("delta").save(folder)
        with pytest.raises(DataError, match="has no schema version, but this dptext reads version 1"):
            runs.find(spark, folder, "r1")


class TestMetrics:
    @pytest.mark.long
    def test_a_runs_metrics_replace_its_own_only(self, spark, folder: str) -> None:
        earlier = [(None, "words", 7), ("body", "words", 5.0), ("body", "share", None)]
        runs.put_metrics(spark, folder, "r1", earlier)
        runs.put_metrics(spark, folder, "r2", [(None, "words", 1.0)])
        runs.put_metrics(spark, folder, "r1", [(None, "words", 8.0)])
        table = spark.read.format("delta").load(folder)
        assert table.schema.fieldNames() == METRICS.fieldNames()
        assert sorted(map(tuple, table.collect())) == [("r1", None, "words", 8.0), ("r2", None, "words", 1.0)]
        # Each run is a partition, so that one replaces its rows without a look at those of others.
        detail = delta_detail(spark, Target(path=folder))
        assert detail.partitions == ["run_id"]
        for top in (0.5, 0.25):
            runs.put_metrics(spark, folder, "r1", [(None, "audit_top1", top)], prefix="audit_")
        held = spark.read.format("delta").load(folder).where("run_id = 'r1'")
        assert {tuple(row)[2:] for row in held.collect()} == {("audit_top1", 0.25), ("words", 8.0)}

    @pytest.mark.long
    def test_runs_that_replace_theirs_at_once_do_not_conflict(self, spark, folder: str) -> None:
        for run_id in ("r1", "r2"):
            runs.put_metrics(spark, folder, run_id, [(None, "words", 0.0)])

        def put(run_id: str) -> None:
            for value in (1.0, 2.0, 3.0):
                runs.put_metrics(spark, folder, run_id, [(None, "words", value)])

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(put, ("r1", "r2")))
        found = spark.read.format("delta").load(folder)
        assert sorted(map(tuple, found.collect())) == [("r1", None, "words", 3.0), ("r2", None, "words", 3.0)]

    @pytest.mark.parametrize("name", ["", "a b", "a'b", "ä", "a" * 129, "a\n"])
    def test_run_ids_that_are_refused(self, spark, folder: str, name: str) -> None:
        """Nothing private may stand in the predicate."""
        with pytest.raises(SettingsError, match=r"run\.id"):
            runs.put_metrics(spark, folder, name, [(None, "words", 1.0)])
