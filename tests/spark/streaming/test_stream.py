"""Streams of real Delta tables: a source that grows, read in parts; what stays equal, what is drawn anew, what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.entries import read
from dptext_spark.spark.runner import run
from dptext_spark.spark.schemas import METRICS, RUNS
from dptext_spark.spark.tables import Target, history
from tests.core.names import beginning

pytestmark = pytest.mark.cluster

KEY = RunKey.insecure(7)
TEXTS = (
    "please call my good friend about the money",
    "good news about my friend and the call",
    "money money money",
)


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words") / "lexicon"
    beginning(Lexicon.default(), 600).save(folder)
    return str(folder)


@pytest.fixture
def add(spark, tmp_path: Path) -> Callable[..., None]:
    def added(*ids: int, files: int = 1) -> None:
        rows = [(i, f"c{i % 4}", TEXTS[i % 3]) for i in ids]
        frame = spark.createDataFrame(rows, "id long, customer string, body string")
        frame.repartition(files).write.format("delta").mode("append").save(str(tmp_path / "in"))

    return added


@pytest.fixture
def stream(spark, tmp_path: Path, lexicon: str) -> Callable[..., dict[str, Any]]:
    """Run the stream `name`, and return its facts."""

    def ran(name: str = "out", key: RunKey | None = KEY, say: Any = None, **more: Any) -> dict[str, Any]:
        settings = {
            "mode": "incremental",
            "input": {"path": str(tmp_path / "in")},
            "columns": ["body"],
            "row_key": "id",
            "record_key": "customer",
            "lexicon": {"source": lexicon},
            "output": {"path": str(tmp_path / name), "other_columns": "keep"},
            **more,
        }
        return run(parse_config(settings), spark, key=key, progress=say).facts

    return ran


def _rows(spark, folder: Path) -> dict[int, tuple[Any, ...]]:
    found = spark.read.format("delta").load(str(folder)).collect()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: tuple(row) for row in found}


def _files(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if (folder / "in") not in file.parents}


class TestAGrowingSource:
    """What each micro-batch releases is judged by the table of tests/spark/pairs."""

    def test_only_what_was_added_is_read_and_records_keep_draws(self, spark, tmp_path, add, stream) -> None:
        record = {"consistency": "record"}
        add(4, 5, 6, 7, 8)
        first = stream(**record)
        assert (first["rows"], first["batches"]["in_all"]) == (5, 1)
        add(2, 9)
        add(3, 1, 0)  # late ones, and in another order
        second = stream(**record, stream={"max_files": 1})
        assert (second["rows"], second["batches"]["now"], second["batches"]["rows"]) == (5, 2, 10)
        assert first["run_id"] == second["run_id"]
        spark.sql(f"RESTORE TABLE delta.`{tmp_path}/out` TO VERSION AS OF 0")
        with pytest.raises(RunError, match=r"committed version 2 of .* version 3 restored .* new checkpoint"):
            stream(**record)
        spark.sql(f"RESTORE TABLE delta.`{tmp_path}/out` TO VERSION AS OF 2")
        empty = stream(**record)
        assert (empty["status"], empty["rows"], empty["batches"]["now"]) == ("succeeded", 0, 0)
        rows = _rows(spark, tmp_path / "out")
        assert len(rows) == 10
        # Of three texts: as many as there are customers with them.
        assert len({row[2] for row in rows.values()}) > 3
        self._accounted(spark, tmp_path, first["run_id"])

    def _accounted(self, spark, tmp_path: Path, stream_id: str) -> None:
        table = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs"))
        assert table.schema.fieldNames() == RUNS.fieldNames()
        found = {row["run_id"]: row for row in table.collect()}
        assert {name: (row["rows"], row["input_version"]) for name, row in found.items()} == {
            stream_id: (10, "delta:3"),
            f"{stream_id}.0": (5, "delta:..1"),
            f"{stream_id}.1": (2, "delta:1..2"),
            f"{stream_id}.2": (3, "delta:2..3"),
        }
        assert {row["status"] for row in found.values()} == {"succeeded"}
        assert found[stream_id]["output_version"] == 2
        assert all("(mode: incremental)" in row["disclosure"] for row in found.values())
        metrics = spark.read.format("delta").load(str(tmp_path / "out_audit/restricted/metrics"))
        assert metrics.schema.fieldNames() == METRICS.fieldNames()
        sums = {(r["run_id"], r["metric"]): r["value"] for r in metrics.where("column IS NULL").collect()}
        for name in ("words", "drawn", "changed", "stop_kept"):
            parts = [sums[f"{stream_id}.{n}", name] for n in range(3)]
            assert all(parts)
            assert sums[stream_id, name] == sum(parts)
        assert sums[stream_id, "changed_share"] == sums[stream_id, "changed"] / sums[stream_id, "words"]
        commits = history(spark, Target(path=str(tmp_path / "out")))
        written = [commit for commit in commits if commit.operation != "RESTORE"]
        assert [commit.said["dptext_run"] for commit in written] == [f"{stream_id}.{n}" for n in (2, 1, 0)]

    def test_token_level_draws_anew_in_each_micro_batch(self, spark, tmp_path: Path, add, stream) -> None:
        add(*range(8))
        add(*range(8))
        facts = stream(stream={"duplicates": "accept", "max_files": 1, "starting_version": 0})
        assert (facts["rows"], facts["batches"]["now"]) == (16, 2)
        assert "A ROW KEY MAY COME AGAIN" in json.dumps(facts["disclosure"])
        out = spark.read.format("delta").load(str(tmp_path / "out"))
        drawn = out.groupBy("id").agg({"body": "collect_set", "*": "count"}).collect()
        assert [row["count(1)"] for row in drawn] == [2] * 8
        # At least one drawn word in two texts of one row, of which each is among 10: never all equal.
        assert sum(len(row["collect_set(body)"]) == 2 for row in drawn) > 4


class TestWhatAStreamSpends:
    """In one ledger with a limit: micro-batches of new records are one release, and what else reads the source another."""

    SECRET, OTHER = (RunKey(hashlib.sha256(name).digest()) for name in (b"one", b"another"))

    @staticmethod
    def _said(facts: dict[str, Any]) -> tuple[float, float]:
        (spent,) = facts["ledger"]["columns"]
        return spent["total"], spent["more"]

    def test_new_records_are_one_release_and_the_same_ones_are_not(self, spark, tmp_path, add, stream):
        ledger = {"ledger": {"path": str(tmp_path / "ledger"), "limit": 1.0}, "key": self.SECRET}
        add(0, 1)
        assert self._said(stream(**ledger)) == (1.0, 1.0)
        add(2, 3)
        add(4)
        again = stream(**ledger, stream={"max_files": 1})
        assert again["rows"] == 3
        assert self._said(again) == (1.0, 1.0)
        (balance,) = read(ledger["ledger"]["path"], spark)
        assert (balance.columns[0].total, balance.columns[0].figures[0].times) == (1.0, 1)
        rows = spark.read.format("delta").load(ledger["ledger"]["path"]).where("status = 'spent'")
        found = sorted(tuple(row) for row in rows.select("run_id", "records").distinct().collect())
        assert found == [(f"{again['run_id']}.{n}", "added") for n in range(3)]
        # A stream of its own draws its own noise for the records of the first: refused before a byte.
        with pytest.raises(RunError, match=r"ledger\.limit: .* 1\. ε = 1 is spent .* needs 1 more"):
            stream("second", **ledger)
        assert not (tmp_path / "second").exists()
        # Where keys may come again, each micro-batch may hold the records of the one before.
        accept = {"stream": {"duplicates": "accept", "starting_version": 0, "max_files": 1}}
        limits = {**ledger, "ledger": {**ledger["ledger"], "limit": 4.0, "raise_limit": "a third copy"}}
        third = stream("third", **limits, **accept)
        assert third["batches"]["now"] == 3
        assert self._said(third) == (4.0, 3.0)
        assert "ε = 4 " in third["ledger"]["sentence"]
        assert "this stream added 3" in json.dumps(third["disclosure"], ensure_ascii=False)

    def test_equal_draws_of_a_record_spend_nothing_in_another_stream(self, tmp_path, add, stream) -> None:
        ledger = {"path": str(tmp_path / "ledger"), "limit": 1.0}
        more = {"ledger": ledger, "consistency": "record", "key": self.SECRET}
        add(0, 1)
        stream(**more)
        assert self._said(stream("second", **more)) == (1.0, 0.0)
        with pytest.raises(RunError, match=r"needs 1 more, 2 in total"):
            stream("third", **{**more, "key": self.OTHER})


class TestASourceThatDoesNotOnlyGrow:
    def test_what_comes_again_changes_or_is_new_is_refused_or_left_out(self, spark, tmp_path, add, stream):
        place, out = f"delta.`{tmp_path}/in`", tmp_path / "out"
        add(0, 1, 2)
        stream()
        rows = _rows(spark, out)
        add(2, 3, 3)
        with pytest.raises(DataError, match=r"1 rows .* the target holds, and 1 repeat.*duplicates to drop"):
            stream()
        assert _rows(spark, out) == rows
        drop = {"duplicates": "drop"}
        facts = stream(stream=drop)
        assert facts["rows"] == 1
        assert facts["restricted"]["duplicates_dropped"] == 2
        found = _rows(spark, out)
        assert found.keys() == {0, 1, 2, 3}
        assert all(found[i] == row for i, row in rows.items())

        spark.sql(f"ALTER TABLE {place} ADD COLUMNS (note STRING)")
        spark.sql(f"INSERT INTO {place} VALUES (7, 'c', 'good news', 'private')")
        files = _files(tmp_path)
        with pytest.raises(DataError, match=r"'note' differs.*other_columns"):
            stream(stream=drop)
        assert _files(tmp_path) == files
        listed = {"output": {"path": str(out), "other_columns": ["id", "customer"]}}
        assert stream(**listed)["rows"] == 1
        assert spark.read.format("delta").load(str(out)).columns == ["id", "customer", "body"]

        spark.sql(f"DELETE FROM {place} WHERE id = 1")
        spark.sql(f"INSERT INTO {place} VALUES (8, 'c', 'good news', NULL)")
        with pytest.raises(DataError, match=r"updated or deleted \(DELTA_SOURCE.*stream\.changes=ignore"):
            stream(**listed)
        facts = stream(**listed, stream={"changes": "ignore"})
        assert "NOT CARRIED OVER" in json.dumps(facts["disclosure"])
        assert _rows(spark, out).keys() == {0, 1, 2, 3, 7, 8}

    def test_a_partition_that_was_deleted_is_refused_or_not_carried_over(self, spark, tmp_path, add, stream):
        rows = [(i, f"c{i % 2}", TEXTS[i % 3]) for i in range(4)]
        frame = spark.createDataFrame(rows, "id long, customer string, body string")
        frame.write.format("delta").partitionBy("customer").save(str(tmp_path / "in"))
        stream()
        before = _rows(spark, tmp_path / "out")
        spark.sql(f"DELETE FROM delta.`{tmp_path}/in` WHERE customer = 'c1'")
        add(9)
        with pytest.raises(DataError, match=r"updated or deleted \(DELTA_SOURCE.*stream\.changes=ignore"):
            stream()
        assert _rows(spark, tmp_path / "out") == before
        assert stream(stream={"changes": "ignore"})["rows"] == 1
        assert _rows(spark, tmp_path / "out").keys() == {*before, 9}

    def test_columns_that_change_while_it_runs(self, spark, tmp_path: Path, add, stream) -> None:
        place = f"delta.`{tmp_path}/in`"
        add(0, 1)
        said: list[str] = []

        def say(step: str) -> None:
            said.append(step)
            if step.endswith("0: writing"):
                spark.sql(f"ALTER TABLE {place} ADD COLUMNS (note STRING)")
                spark.sql(f"INSERT INTO {place} VALUES (5, 'c', 'good news', 'private')")

        with pytest.raises(DataError, match=r"columns changed while .* ran \(DELTA_\w+\)\. Run again"):
            stream(say=say, mode="streaming", stream={"trigger": "1 second"})
        assert _rows(spark, tmp_path / "out").keys() == {0, 1}
        listed = {"output": {"path": str(tmp_path / "out"), "other_columns": ["id", "customer"]}}
        assert stream(**listed)["rows"] == 1
        assert _rows(spark, tmp_path / "out").keys() == {0, 1, 5}
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        spark.sql(f"ALTER TABLE {place} RENAME COLUMN body TO words")
        files = _files(tmp_path)
        with pytest.raises(DataError, match=r"columns: 'body' is not in the input"):
            stream(**listed)
        assert _files(tmp_path) == files

    @pytest.mark.parametrize("change", ["RENAME COLUMN customer TO client", "DROP COLUMN customer"])
    def test_a_column_that_was_renamed_asks_for_another_start(self, spark, tmp_path, add, stream, change):
        place = f"delta.`{tmp_path}/in`"
        add(0, 1)
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        output = {"output": {"path": str(tmp_path / "out"), "other_columns": "drop"}, "record_key": None}
        assert stream(**output)["rows"] == 2
        spark.sql(f"ALTER TABLE {place} {change}")
        version = spark.sql(f"DESCRIBE HISTORY {place}").first()["version"]
        kept = "id, body" if change.startswith("DROP") else "id, 'c' AS client, body"
        spark.sql(f"INSERT INTO {place} SELECT {kept} FROM VALUES (5, 'good news') AS rows (id, body)")
        for _ in range(2):
            with pytest.raises(DataError, match=r"renamed or dropped .*stream\.checkpoint.*starting_version"):
                stream(**output)
        anew = {"checkpoint": str(tmp_path / "anew"), "starting_version": version}
        assert stream(**output, stream=anew)["rows"] == 1
        assert _rows(spark, tmp_path / "out").keys() == {0, 1, 5}


class TestWhatIsRefusedBeforeAByteIsWritten:
    def test_a_checkpoint_of_something_else(self, spark, tmp_path: Path, add, stream, lexicon: str) -> None:
        words = tmp_path / "words"
        shutil.copytree(lexicon, words)
        same = {"lexicon": {"source": str(words)}}
        add(0, 1)
        stream(**same)
        add(2)
        other = {"input": {"path": str(tmp_path / "other")}}
        copied = spark.read.format("delta").load(str(tmp_path / "in"))
        copied.write.format("delta").save(other["input"]["path"])
        files = _files(tmp_path)
        for said, more in {
            r"another key\.": {"key": RunKey.insecure(8)},
            r"another mechanism\.epsilon\.": {"mechanism": {"name": "custext", "epsilon": 2.0}},
            r"another lexicon\.source": {"lexicon": {"source": lexicon}},
            r"another source, another input\.path": other,
            "run.id: 'another' is not the stream": {"run": {"id": "another"}},
            "key: not set, but mode incremental needs a key": {"key": None, "name": "new"},
            "is another checkpoint": {"stream": {"checkpoint": str(words)}},
            "release the whole source again": {"stream": {"checkpoint": str(tmp_path / "lost")}},
        }.items():
            with pytest.raises(SettingsError, match=said):
                stream(**{**same, **more})
            assert _files(tmp_path) == files, said
        place = str(tmp_path / "out_checkpoint/dptext")
        version = len(history(spark, Target(path=place)))
        before = spark.read.format("delta").load(place)
        kept = json.loads(before.first()["bound"])
        older = json.dumps(kept | {"engine": "1"})
        before.withColumn("bound", F.lit(older)).write.format("delta").mode("overwrite").save(place)
        with pytest.raises(SettingsError, match=r"another engine \(1 then, \d now\).*new checkpoint"):
            stream(**same)
        first = {
            "source": "default", "format": "auto", "limit": None, "vocabulary": None, "more": [], "version": 1,
        }  # fmt: skip
        older = json.dumps(kept | {"settings": {**kept["settings"], "lexicon": first}})
        before.withColumn("bound", F.lit(older)).write.format("delta").mode("overwrite").save(place)
        with pytest.raises(SettingsError, match=r"another lexicon\.version \(1 then, \d now\)"):
            stream(**{**same, "lexicon": {"source": "default"}})
        spark.sql(f"RESTORE TABLE delta.`{place}` TO VERSION AS OF {version - 1}")
        shutil.rmtree(words)
        beginning(Lexicon.default(), 500).save(words)
        with pytest.raises(SettingsError, match="another model"):
            stream(**same)
        shutil.rmtree(words)
        shutil.copytree(lexicon, words)
        # Without Spark's own files the first micro-batch would be the whole source again, under a run id that is done.
        for name in ("offsets", "commits", "metadata", "sources"):
            shutil.rmtree(tmp_path / "out_checkpoint" / name, ignore_errors=True)
            (tmp_path / "out_checkpoint" / name).unlink(missing_ok=True)
        with pytest.raises(RunError, match=r"own files are missing|No unfinished micro-batch was found"):
            stream(**same)
        assert len(history(spark, Target(path=str(tmp_path / "out")))) == 1


class TestStreaming:
    def test_it_reads_what_comes_until_it_is_asked_to_stop(self, spark, tmp_path: Path, add, stream) -> None:
        if threading.current_thread() is not threading.main_thread():
            pytest.skip("signals reach the main thread only")
        add(0, 1)
        said: list[str] = []

        def say(step: str) -> None:
            said.append(step)
            if step.endswith("0: writing"):
                add(2, 3, 4)
            if step.endswith("1: writing"):
                os.kill(os.getpid(), signal.SIGTERM)

        before = signal.getsignal(signal.SIGTERM)
        facts = stream(say=say, mode="streaming", stream={"trigger": "1 second"})
        assert signal.getsignal(signal.SIGTERM) == before
        assert not spark.streams.active
        assert facts["status"] == "succeeded"
        assert (facts["rows"], facts["batches"]["now"]) == (5, 2)
        assert _rows(spark, tmp_path / "out").keys() == set(range(5))
        assert not [step for step in said if "call" in step or "money" in step]
        # The same checkpoint serves the other mode, and there is nothing left to read.
        assert stream()["batches"] == {**facts["batches"], "mode": "incremental", "now": 0}
