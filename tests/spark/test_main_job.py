"""The whole job on real Delta tables: what comes out, what is counted, and what is refused with nothing written."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import (
    CountMismatchError,
    DataError,
    NoRowsError,
    RecordingError,
    RunError,
    SettingsError,
)
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.target_checks import check_schema
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job import runs, writing
from dptext_spark.spark.nested_columns import schema_of
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables import Target, history
from tests.core.names import beginning

ROWS = 120
KEY = RunKey.insecure(7)


@pytest.fixture(scope="module")
def made(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    body = "Hello there friend {}, please call about the money, friend"
    note = [None, *["Great news"] * 9]
    rows = [(i, f"c{i // 3}", body.format(i), note[i % 10], i / 2) for i in range(ROWS)]
    folder = tmp_path_factory.mktemp("source") / "in"
    frame = session.createDataFrame(rows, "id long, customer string, body string, note string, score double")
    frame.repartition(3, "id").write.format("delta").save(str(folder))
    return folder


@pytest.fixture
def source(made: Path, tmp_path: Path) -> str:
    """A copy of the table: some tests change it."""
    return str(shutil.copytree(made, tmp_path / "in"))


def _config(source: str, tmp_path: Path, **changes: object) -> RunConfig:
    settings: dict[str, object] = {
        "input": {"path": source},
        "columns": ["body", "note"],
        "row_key": "id",
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }
    if "output" in changes:
        changes = changes | {"output": {"other_columns": "keep", **changes["output"]}}  # type: ignore[dict-item]
    return parse_config(settings | changes)


def _metrics(spark, tmp_path: Path) -> dict[str, float | None]:
    rows = spark.read.format("delta").load(str(tmp_path / "out_audit/restricted/metrics")).collect()
    return {f"{row['column']}.{row['metric']}": row["value"] for row in rows}


def _row_of_runs(spark, tmp_path: Path) -> Any:
    (row,) = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).collect()
    return row


def _nothing_was_written(tmp_path: Path) -> bool:
    """With the ledger and its reservation."""
    return not (tmp_path / "out").exists() and not (tmp_path / "out_audit").exists()


def _rows(spark, folder: str | Path) -> dict[int, tuple[str | None, ...]]:
    return {row["id"]: tuple(row) for row in spark.read.format("delta").load(str(folder)).collect()}


@pytest.mark.cluster
def test_relative_paths_are_of_the_callers_folder(spark, source: str, tmp_path: Path, monkeypatch) -> None:
    def settings() -> dict[str, str]:
        own = "spark.databricks.delta.lastCommitVersionInSession"  # Delta's own book-keeping
        return {name: value for name, value in spark.conf.getAll.items() if name != own}

    monkeypatch.chdir(tmp_path)
    config, before = _config("in", tmp_path, output={"path": "out"}, run={"id": "first"}), settings()
    assert run(config, spark, key=KEY).status == "succeeded"
    assert settings() == before
    assert len(_rows(spark, tmp_path / "out")) == ROWS
    assert run(config, spark, key=KEY).status == "unchanged"
    with pytest.raises(RunError, match="exists"):
        run(_config("in", tmp_path, output={"path": "out"}), spark, key=KEY)


class TestARunId:
    @pytest.mark.long
    def test_that_lost_rows_or_has_another_key_is_unchanged_and_says_so(self, spark, source, tmp_path):
        config = _config(source, tmp_path, run={"id": "r1"})
        run(config, spark, key=KEY)
        assert run(config, spark, key=KEY).facts["since"] == []
        spark.sql(f"DELETE FROM delta.`{tmp_path / 'out'}`")
        again = run(config, spark, key=RunKey.insecure(8))
        assert again.status == "unchanged"
        key, rows = again.facts["since"]
        assert "another key" in key
        assert "DELETE (version 1)" in rows

    @pytest.mark.cluster
    def test_whose_account_was_lost_is_recovered(self, spark, source: str, tmp_path, monkeypatch) -> None:
        config = _config(source, tmp_path, run={"id": "r3"})
        with monkeypatch.context() as patch:
            patch.setattr(runs, "put_metrics", None)
            with pytest.raises(RecordingError, match=r"Run again with run\.id=r3"):
                run(config, spark)
        written = _rows(spark, tmp_path / "out")
        # With another key, as the operating system gives: nothing is drawn again, and nothing can be counted.
        recovered = run(config, spark)
        assert recovered.status == "recovered"
        assert recovered.facts["second_release"] is False
        assert recovered.facts["counted"] is None
        assert recovered.facts["restricted"] == {}
        assert _rows(spark, tmp_path / "out") == written
        assert len(history(spark, Target(path=str(tmp_path / "out")))) == 1
        row = _row_of_runs(spark, tmp_path)
        assert (row["status"], row["rows"], row["tokens_per_second"]) == ("recovered", ROWS, None)
        # The commit tells whose draws are in the table where even the table of runs is lost.
        shutil.rmtree(tmp_path / "out_audit/shareable/runs")
        assert run(config, spark, key=KEY).facts["counted"] is None
        again = runs.find(spark, str(tmp_path / "out_audit/shareable/runs"), "r3")
        assert again.key_commitment == row["key_commitment"]
        assert again.key_commitment != KEY.commitment("r3")

    @pytest.mark.cluster
    def test_whose_account_was_lost_is_counted_again_with_its_key(self, spark, source, tmp_path, monkeypatch):
        """Without a row key; with one a process is killed there, in test_crashes.py."""
        config = _config(source, tmp_path, run={"id": "r4"}, row_key=None)
        counted: dict[str, float | None] = {}

        def lost(*given: Any, **_: Any) -> None:
            counted.update({f"{column}.{name}": value for column, name, value in given[3]})
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(runs, "put_metrics", lost)
            with pytest.raises(RecordingError):
                run(config, spark, key=KEY)
        recovered = run(config, spark, key=KEY)
        assert (recovered.status, recovered.facts["counted"]) == ("recovered", "again")
        assert recovered.facts["write_seconds"] is recovered.facts["tokens_per_second"] is None
        timed = dict.fromkeys(("None.write_seconds", "None.tokens_per_second"))
        assert all(counted[name] for name in (*timed, "None.drawn"))
        assert _metrics(spark, tmp_path) == counted | timed
        assert run(config, spark, key=KEY).status == "unchanged"


class TestWhatDoesNotAgree:
    @pytest.mark.cluster
    def test_counts_that_differ_from_the_commit(self, spark, source: str, tmp_path, monkeypatch) -> None:
        real = writing.counts_of
        monkeypatch.setattr(
            writing, "counts_of", lambda observation: dataclasses.replace(real(observation), rows=ROWS + 1)
        )
        with pytest.raises(CountMismatchError, match="121 rows were counted and 120 written"):
            run(_config(source, tmp_path), spark, key=KEY)
        assert _row_of_runs(spark, tmp_path)["status"] == "mismatch"

    @pytest.mark.long
    def test_a_planted_replacement_is_found(self, spark, source: str, tmp_path: Path, monkeypatch) -> None:
        config = _config(
            source, tmp_path, consistency="record", record_key="customer",
            columns=["body"],
        )  # fmt: skip
        real = writing.audit
        planted: list[object] = []

        def break_one(setup, version, rows, say):
            whole = real(setup, version, rows, say)
            path = str(tmp_path / "out")
            changed = "regexp_replace(body, '^[A-Za-z]+', 'Zebra')"
            spark.sql(f"UPDATE delta.`{path}` SET body = {changed} WHERE id = 4")
            planted.extend([whole, real(setup, version + 1, rows, say)])
            return planted[-1]

        monkeypatch.setattr(writing, "audit", break_one)
        with pytest.raises(CountMismatchError, match="groups of equal words have two replacements"):
            run(config, spark, key=KEY)
        assert planted[0].problems == []
        assert planted[0].figures["groups"] > 5
        assert planted[1].figures["broken_groups"] == 1


class TestWhatIsRefused:
    @pytest.mark.long
    @pytest.mark.parametrize(
        ("changes", "kind", "said"),
        [
            ({"row_key": "customer"}, DataError, r"row_key: column 'customer' has 40 distinct values in 120 rows"),
            ({"record_key": "empty"}, DataError, r"record_key: column 'empty' is NULL in 120 of 120 rows"),
            ({"input": {"table": "nowhere"}}, DataError, r"input.table: there is no 'nowhere'"),
            ({"mechanism": {"name": "custext", "k": 4000}, "lexicon": {"source": "tiny"}}, SettingsError, r"mechanism.k: 4000"),
        ],
    )  # fmt: skip
    def test_before_a_byte_is_written(self, spark, source: str, tmp_path, changes, kind, said: str) -> None:
        if "record_key" in changes:
            frame = spark.read.format("delta").load(source).withColumn("empty", F.lit(None).cast("string"))
            frame.write.format("delta").option("overwriteSchema", "true").mode("overwrite").save(source)
        if "lexicon" in changes:
            beginning(Lexicon.default(), 50).save(tmp_path / "tiny")
            changes = changes | {"lexicon": {"source": str(tmp_path / "tiny")}}
        with pytest.raises(kind, match=said):
            run(_config(source, tmp_path, **changes), spark, key=KEY)
        assert _nothing_was_written(tmp_path)

    @pytest.mark.cluster
    def test_what_an_older_engine_wrote(self, spark, source: str, tmp_path: Path, monkeypatch) -> None:
        with monkeypatch.context() as earlier:
            earlier.setattr("dptext_spark.spark.job.planned_run.ENGINE_VERSION", "1")
            run(_config(source, tmp_path, run={"id": "old"}), spark, key=KEY)
        listed = runs.newest(spark, str(tmp_path / "out_audit/shareable/runs"), 5)
        assert [(row.run_id, row.status) for row in listed] == [("old", "succeeded")]
        with pytest.raises(RunError, match=r"'old' has committed with another engine \(1 then, 2 now\)"):
            run(_config(source, tmp_path, run={"id": "old"}), spark, key=KEY)
        out = {"path": str(tmp_path / "out"), "mode": "append"}
        with pytest.raises(SettingsError, match=r"another engine \(1 then, 2 now\).*second_release=accept"):
            run(_config(source, tmp_path, output=out), spark, key=KEY)
        run(_config(source, tmp_path, output=out, run={"second_release": "accept"}), spark, key=KEY)
        # Once accepted, the table's newest release is of this engine.
        assert run(_config(source, tmp_path, output=out), spark, key=KEY).facts["releases_in_history"] == 3

    def test_a_varchar_target(self, spark, source: str, tmp_path: Path) -> None:
        folder = str(tmp_path / "short")
        columns = "id BIGINT, customer STRING, body VARCHAR(50), note STRING, score DOUBLE"
        spark.sql(f"CREATE TABLE delta.`{folder}` ({columns}) USING delta")
        output = {"path": folder, "mode": "append"}
        with pytest.raises(DataError, match=r"'body' of the target is varchar\(50\)"):
            run(_config(source, tmp_path, output=output), spark, key=KEY)

    def test_a_collated_target(self) -> None:
        plain = T.StructType([T.StructField("body", T.StringType())])
        collated = T.StructType([T.StructField("body", T.StringType("UTF8_LCASE"))])
        plain, collated = schema_of(plain), schema_of(collated)
        check_schema(plain, plain, ["body"], ["body"], "append")
        with pytest.raises(DataError, match="'body' of the target is string collate UTF8_LCASE"):
            check_schema(collated, plain, ["body"], ["body"], "append")

    def test_rows_without_identity(self, spark, source: str, tmp_path: Path) -> None:
        frame = spark.read.format("delta").load(source)
        frame.union(frame).createOrReplaceTempView("twice")
        config = _config(source, tmp_path, input={"table": "twice"}, row_key=None)
        with pytest.raises(SettingsError, match="row_key: none given"):
            run(config, spark, key=KEY)
        assert _nothing_was_written(tmp_path)


class TestInputs:
    @pytest.mark.long
    def test_records_that_do_not_fit_are_refused_or_accepted_by_the_settings(self, spark, source, tmp_path):
        (tmp_path / "a.json").write_text('{"body": "good morning"}\n{"body": broken marker\n')
        given: dict[str, object] = {"path": str(tmp_path / "a.json"), "format": "json"}
        config = _config(source, tmp_path, row_key=None, columns=["body"], input=given)
        with pytest.raises(DataError, match=r"^input: 1 record of 1 file \(a\.json\)") as refused:
            run(config, spark, key=KEY)
        assert "marker" not in str(refused.value)
        assert _nothing_was_written(tmp_path)
        given["options"] = {"mode": "PERMISSIVE"}
        config = _config(source, tmp_path, row_key=None, columns=["body"], input=given)
        facts = run(config, spark, key=KEY).facts
        assert (facts["corrupt_records"], facts["rows"]) == (1, 2)
        assert "or end inside a quote: 1." in json.dumps(facts["disclosure"])
        out = spark.read.format("delta").load(str(tmp_path / "out"))
        assert out.columns == ["body"]
        assert "marker" not in repr(out.collect())

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("where", "keys"),
        [
            (None, {}),
            ({"id": {"lt": 0}}, {"row_key": {"none": "accept"}}),
            ({"id": {"lt": 0}}, {"row_key": {"none": "accept"}, "record_key": "customer"}),
        ],
    )
    def test_an_input_of_no_rows_is_refused_at_once(self, spark, source: str, tmp_path, where, keys) -> None:
        first = run(_config(source, tmp_path, run={"id": "full"}, **keys), spark, key=KEY)
        given = {"path": source, "where": where}
        if where is None:
            spark.read.format("delta").load(source).where("id < 0").write.parquet(str(tmp_path / "none"))
            given = {"path": str(tmp_path / "none"), "format": "parquet"}
        ledger = spark.read.format("delta").load(str(Path(source).parent / "_dptext_ledger"))
        entries = ledger.count()
        output = {"path": str(tmp_path / "out"), "mode": "overwrite"}
        emptied = _config(source, tmp_path, input=given, output=output, run={"id": "none"}, **keys)
        with pytest.raises(NoRowsError, match=r"^input(\.where)?: (the table has no|no) row") as refused:
            run(emptied, spark, key=KEY)
        assert ("where" in str(refused.value)) == (where is not None)
        assert ledger.count() == entries
        assert _row_of_runs(spark, tmp_path)["run_id"] == "full"
        assert spark.read.format("delta").load(str(tmp_path / "out")).count() == first.facts["rows"]

    @pytest.mark.long
    def test_a_run_that_has_committed_is_unchanged_where_its_input_was_emptied(self, spark, source, tmp_path):
        raw = spark.read.format("delta").load(source)
        given = {"path": str(tmp_path / "raw"), "format": "parquet"}
        config = _config(source, tmp_path, input=given, run={"id": "day"})
        raw.write.parquet(given["path"])
        run(config, spark, key=KEY)
        raw.where("id < 0").write.mode("overwrite").parquet(given["path"])
        assert run(config, spark, key=KEY).status == "unchanged"
