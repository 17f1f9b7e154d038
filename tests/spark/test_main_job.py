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
    DPTextError,
    NoRowsError,
    RecordingError,
    RunError,
    SettingsError,
)
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.tables.target_checks import check_schema
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.job import counting, reconcile, runs, write
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import schema_of
from dptext_spark.spark.tables.tables import Target, history
from tests.core.names import beginning

ROWS = 120
KEY = RunKey.insecure(7)


@pytest.fixture(scope="module")
def made(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        (
            i,
            f"c{i // 3}",
            f"Hello there friend {i}, please call about the money, friend",
            None if i % 10 == 0 else "Great news",
            i / 2,
        )
        for i in range(ROWS)
    ]
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
        "audit": {"consistency_scopes": 0},
    }
    if "output" in changes:
        changes = changes | {"output": {"other_columns": "keep", **changes["output"]}}  # type: ignore[dict-item]
    return parse_config(settings | changes)


def _rows(spark, folder: str | Path) -> dict[int, tuple[str | None, ...]]:
    return {row["id"]: tuple(row) for row in spark.read.format("delta").load(str(folder)).collect()}


class TestARunThatSucceeds:
    @pytest.mark.cluster
    def test_relative_paths_are_of_the_folder_it_was_called_in(
        self, spark, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        config = _config("in", tmp_path, output={"path": "out"}, run={"id": "first"})
        report = run(config, spark, key=KEY)
        assert report.status == "succeeded"
        assert len(_rows(spark, tmp_path / "out")) == ROWS
        assert run(config, spark, key=KEY).status == "unchanged"
        with pytest.raises(RunError, match="exists"):
            run(_config("in", tmp_path, output={"path": "out"}), spark, key=KEY)

    @pytest.mark.cluster
    def test_leaves_the_session_as_it_was(self, spark, source: str, tmp_path: Path) -> None:
        def settings() -> dict[str, str]:
            own = "spark.databricks.delta.lastCommitVersionInSession"  # Delta's own book-keeping
            return {name: value for name, value in spark.conf.getAll.items() if name != own}

        before = settings()
        run(_config(source, tmp_path), spark, key=KEY)
        assert settings() == before


class TestARunId:
    def test_that_committed_does_nothing_again(self, spark, source: str, tmp_path: Path) -> None:
        words, whole = str(tmp_path / "words"), Lexicon.default()

        def save(size: int) -> None:
            beginning(whole, size).save(words)

        save(300)
        # Of so few words most of the texts' are none.
        settings = {"run": {"id": "r1"}, "lexicon": {"source": words}, "policy": {"allow_unknown": True}}
        config = _config(source, tmp_path, **settings)
        run(config, spark, key=KEY)
        assert run(config, spark, key=KEY).status == "unchanged"
        other = _config(source, tmp_path, **settings, mechanism={"epsilon": 1.5})
        with pytest.raises(
            RunError, match=r"'r1' has committed with another mechanism\.epsilon \(.* then, 1\.5 now\)"
        ):
            run(other, spark, key=KEY)
        shutil.rmtree(words)
        save(200)
        with pytest.raises(RunError, match=r"'r1' has committed with another model \(the lexicon's content"):
            run(config, spark, key=KEY)
        assert len(history(spark, Target(path=str(tmp_path / "out")))) == 1

    @pytest.mark.cluster
    def test_whose_target_was_restored_or_deleted_is_not_unchanged(
        self, spark, source: str, tmp_path: Path
    ) -> None:
        target = str(tmp_path / "out")
        spark.read.format("delta").load(source).where("false").write.format("delta").save(target)
        output = {"path": target, "mode": "append", "overwrite_raw": True}
        config = _config(source, tmp_path, run={"id": "r1"}, output=output)
        run(config, spark, key=KEY)
        spark.sql(f"RESTORE TABLE delta.`{target}` TO VERSION AS OF 0")
        with pytest.raises(
            RunError, match=r"'r1' committed version 1 of .*, and version 2 restored the table"
        ):
            run(config, spark, key=KEY)
        shutil.rmtree(target)
        with pytest.raises(RunError, match="there is no table there any more"):
            run(config, spark, key=KEY)
        assert not Path(target).exists()

    def test_that_lost_rows_or_has_another_key_is_unchanged_and_says_so(
        self, spark, source: str, tmp_path: Path
    ) -> None:
        config = _config(source, tmp_path, run={"id": "r1"})
        run(config, spark, key=KEY)
        assert run(config, spark, key=KEY).facts["since"] == []
        spark.sql(f"DELETE FROM delta.`{tmp_path / 'out'}`")
        again = run(config, spark, key=RunKey.insecure(8))
        assert again.status == "unchanged"
        key, rows = again.facts["since"]
        assert "Another key" in key
        assert "DELETE (version 1)" in rows

    @pytest.mark.cluster
    def test_that_failed_finishes_with_its_key_only(
        self, spark, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = _config(source, tmp_path, run={"id": "r2"})
        with monkeypatch.context() as patch:
            patch.setattr(write, "watched", None)
            with pytest.raises(RunError, match="before its commit"):
                run(config, spark, key=KEY)
        assert history(spark, Target(path=str(tmp_path / "out"))) == []
        with pytest.raises(RunError, match=r"another key.*second_release=accept"):
            run(config, spark, key=RunKey.insecure(9))
        accepted = _config(source, tmp_path, run={"id": "r2", "second_release": "accept"})
        assert run(accepted, spark, key=RunKey.insecure(9)).facts["second_release"] is True

    @pytest.mark.cluster
    def test_whose_account_was_lost_is_recovered(
        self, spark, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = _config(source, tmp_path, run={"id": "r3"})
        with monkeypatch.context() as patch:
            patch.setattr(runs, "put_metrics", None)
            with pytest.raises(RecordingError, match=r"run again with run\.id=r3"):
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
        row = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).first()
        assert (row["status"], row["rows"], row["tokens_per_second"]) == ("recovered", ROWS, None)
        # The commit tells whose draws are in the table where even the table of runs is lost.
        shutil.rmtree(tmp_path / "out_audit/shareable/runs")
        assert run(config, spark, key=KEY).facts["counted"] is None
        again = runs.find(spark, str(tmp_path / "out_audit/shareable/runs"), "r3")
        assert again is not None
        assert again.key_commitment == row["key_commitment"]
        assert again.key_commitment != KEY.commitment("r3")

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({}, id="keyed", marks=pytest.mark.cluster),
            pytest.param({"row_key": None, "record_key": None}, id="unkeyed", marks=pytest.mark.cluster),
        ],
    )
    def test_whose_account_was_lost_is_counted_again_with_its_key(
        self, spark, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
    ) -> None:
        config = _config(source, tmp_path, run={"id": "r4"}, **{"record_key": "customer", **change})
        counted: dict[str, float | None] = {}

        def lost(
            spark: Any, folder: str, run_id: str, metrics: list[tuple[Any, str, float | None]], **_: Any
        ) -> None:
            counted.update({f"{column}.{name}": value for column, name, value in metrics})
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(runs, "put_metrics", lost)
            with pytest.raises(RecordingError):
                run(config, spark, key=KEY)
        recovered = run(config, spark, key=KEY)
        assert (recovered.status, recovered.facts["counted"]) == ("recovered", "again")
        assert recovered.facts["write_seconds"] is None
        assert recovered.facts["tokens_per_second"] is None
        metrics = spark.read.format("delta").load(str(tmp_path / "out_audit/restricted/metrics")).collect()
        found = {f"{row['column']}.{row['metric']}": row["value"] for row in metrics}
        timed = {"None.write_seconds", "None.tokens_per_second"}
        assert {k: v for k, v in found.items() if k not in timed} == {
            k: v for k, v in counted.items() if k not in timed
        }
        assert all(found[name] is None and counted[name] for name in timed)
        assert counted["None.drawn"]
        assert run(config, spark, key=KEY).status == "unchanged"


class TestWhatDoesNotAgree:
    @pytest.mark.cluster
    def test_counts_that_differ_from_the_commit(
        self, spark, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = counting.counts_of
        monkeypatch.setattr(
            counting, "counts_of", lambda observation: dataclasses.replace(real(observation), rows=ROWS + 1)
        )
        with pytest.raises(CountMismatchError, match="121 rows were counted and 120 written"):
            run(_config(source, tmp_path), spark, key=KEY)
        row = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).first()
        assert row["status"] == "mismatch"

    @pytest.mark.parametrize("level", ["record", pytest.param("dataset", marks=pytest.mark.cluster)])
    def test_a_planted_replacement_is_found(
        self, spark, source: str, tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = _config(
            source, tmp_path, consistency=level, record_key="customer", audit={"consistency_scopes": 1000},
            columns=["body"],
        )  # fmt: skip
        real = reconcile.consistency.audit
        planted: list[object] = []

        def break_one(setup, version, rows, say):
            whole = real(setup, version, rows, say)
            path = str(tmp_path / "out")
            spark.sql(
                f"UPDATE delta.`{path}` SET body = regexp_replace(body, '^[A-Za-z]+', 'Zebra') WHERE id = 4"
            )
            planted.extend([whole, real(setup, version + 1, rows, say)])
            return planted[-1]

        monkeypatch.setattr(reconcile.consistency, "audit", break_one)
        with pytest.raises(CountMismatchError, match="groups of equal words have two replacements"):
            run(config, spark, key=KEY)
        assert planted[0].problems == []
        assert planted[0].figures["groups"] > 5
        assert planted[1].figures["broken_groups"] == 1


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("changes", "kind", "said"),
        [
            ({"columns": ["boddy"]}, DataError, r"text columns there: customer, body, note"),
            ({"columns": ["score"]}, DataError, r"columns: 'score' is of type double"),
            ({"row_key": "nope"}, DataError, r"row_key: 'nope' is not in the input"),
            ({"row_key": "customer"}, DataError, r"row_key: column 'customer' is not unique: 120 rows, 40 distinct"),
            ({"record_key": "empty"}, DataError, r"record_key: column 'empty' is NULL in 120 of 120 rows"),
            ({"input": {"path": "/nowhere"}}, DataError, r"input.path: '/nowhere' is no Delta table"),
            ({"input": {"table": "nowhere"}}, DataError, r"input.table: there is no 'nowhere'"),
            ({"mechanism": {"name": "custext", "k": 4000}, "lexicon": {"source": "tiny"}}, SettingsError, r"mechanism.k: 4000"),
        ],
    )  # fmt: skip
    def test_before_a_byte_is_written(
        self,
        spark,
        source: str,
        tmp_path: Path,
        changes: dict[str, object],
        kind: type[DPTextError],
        said: str,
    ) -> None:
        if "record_key" in changes:
            frame = spark.read.format("delta").load(source).withColumn("empty", F.lit(None).cast("string"))
            frame.write.format("delta").option("overwriteSchema", "true").mode("overwrite").save(source)
        if "lexicon" in changes:
            small = beginning(Lexicon.default(), 50)
            small.save(tmp_path / "tiny")
            changes = changes | {"lexicon": {"source": str(tmp_path / "tiny")}}
        with pytest.raises(kind, match=said):
            run(_config(source, tmp_path, **changes), spark, key=KEY)
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out_audit").exists()

    def test_an_existing_target(self, spark, source: str, tmp_path: Path) -> None:
        run(_config(source, tmp_path), spark, key=KEY)
        out = {"path": str(tmp_path / "out")}
        with pytest.raises(RunError, match="append or overwrite"):
            run(_config(source, tmp_path), spark, key=KEY)
        with pytest.raises(SettingsError, match="fresh_noise=accept"):
            run(_config(source, tmp_path, output=out | {"mode": "overwrite"}), spark)
        again = _config(source, tmp_path, output=out | {"mode": "append", "fresh_noise": "accept"})
        assert run(again, spark).facts["releases_in_history"] == 2
        assert spark.read.format("delta").load(str(tmp_path / "out")).count() == 2 * ROWS
        with pytest.raises(SettingsError, match="overwrite_raw=true"):
            run(
                _config(
                    str(tmp_path / "out"),
                    tmp_path,
                    output={"path": source, "other_columns": "keep", "mode": "overwrite"},
                ),
                spark,
            )

    @pytest.mark.cluster
    def test_what_an_older_engine_wrote(
        self, spark, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as earlier:
            earlier.setattr("dptext_spark.spark.job.plan.ENGINE_VERSION", "1")
            run(_config(source, tmp_path, run={"id": "old"}), spark, key=KEY)
        listed = runs.newest(spark, str(tmp_path / "out_audit/shareable/runs"), 5)
        assert [(row.run_id, row.status) for row in listed] == [("old", "succeeded")]
        with pytest.raises(RunError, match=r"'old' has committed with another engine \(1 then, 2 now\)"):
            run(_config(source, tmp_path, run={"id": "old"}), spark, key=KEY)
        out = {"path": str(tmp_path / "out"), "mode": "append"}
        with pytest.raises(
            SettingsError, match=r"the newest with another engine \(1 then, 2 now\).*fresh_noise=accept"
        ):
            run(_config(source, tmp_path, output=out), spark, key=KEY)
        run(_config(source, tmp_path, output=out | {"fresh_noise": "accept"}), spark, key=KEY)
        # Once accepted, the table's newest release is of this engine.
        assert run(_config(source, tmp_path, output=out), spark, key=KEY).facts["releases_in_history"] == 3

    def test_a_varchar_target(self, spark, source: str, tmp_path: Path) -> None:
        folder = str(tmp_path / "short")
        columns = "id BIGINT, customer STRING, body VARCHAR(50), note STRING, score DOUBLE"
        spark.sql(f"CREATE TABLE delta.`{folder}` ({columns}) USING delta")
        output = {"path": folder, "mode": "append", "overwrite_raw": True}
        with pytest.raises(DataError, match=r"'body' of the target is varchar\(50\)"):
            run(_config(source, tmp_path, output=output), spark, key=KEY)

    @pytest.mark.parametrize("mode", ["append", "overwrite"])
    def test_a_target_with_other_columns(self, spark, source: str, tmp_path: Path, mode: str) -> None:
        folder = str(tmp_path / "other")
        columns = "id BIGINT, customer STRING, body STRING, note INT, score DOUBLE"
        spark.sql(f"CREATE TABLE delta.`{folder}` ({columns}) USING delta")
        before = set(tmp_path.rglob("*"))
        output = {"path": folder, "mode": mode, "overwrite_raw": True}
        with pytest.raises(DataError, match=rf"output\.mode: {mode} needs the target's columns; 'note' diff"):
            run(_config(source, tmp_path, output=output), spark, key=KEY)
        assert set(tmp_path.rglob("*")) == before

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
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out_audit").exists()


class TestInputs:
    @pytest.mark.parametrize(
        "form", ["csv", *(pytest.param(form, marks=pytest.mark.cluster) for form in ("parquet", "text"))]
    )
    def test_text_in_files(self, spark, source: str, tmp_path: Path, form: str) -> None:
        frame = spark.read.format("delta").load(source).select("id", "body")
        written = frame.select("body") if form == "text" else frame
        written.write.format(form).options(**({"header": "true"} if form == "csv" else {})).save(
            str(tmp_path / "files")
        )
        config = _config(
            source, tmp_path, row_key=None, columns=["value" if form == "text" else "body"],
            input={"path": str(tmp_path / "files"), "format": form},
        )  # fmt: skip
        report = run(config, spark, key=KEY)
        assert (report.facts["rows"], report.facts["restricted"]["words"]) == (ROWS, 10 * ROWS)
        assert report.facts["identity"].startswith("file_row" if form == "parquet" else "ordinal")

    def test_invalid_utf8_fails_the_run_and_leaves_no_version(self, spark, tmp_path: Path) -> None:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a.txt").write_bytes(b"good morning\nbad \xff\xfe bytes zanzibarmarker\n")
        config = parse_config(
            {
                "input": {"path": str(tmp_path / "notes"), "format": "text"},
                "columns": ["value"],
                "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
            }
        )
        with pytest.raises(DataError, match=r"1 rows with invalid UTF-8 in partition \d+") as caught:
            run(config, spark, key=KEY)
        assert "zanzibar" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert history(spark, Target(path=str(tmp_path / "out"))) == []
        row = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).first()
        assert row["status"] == "failed"

    @pytest.mark.parametrize(
        ("form", "content", "columns"),
        [
            ("json", '{"body": "good morning"}\n{"body": broken marker\n', ["body"]),
            pytest.param(
                "csv",
                "body,note\ngood morning,sir\none,two,marker\n",
                ["body", "note"],
                marks=pytest.mark.cluster,
            ),
        ],
        ids=["json", "csv"],
    )
    def test_records_that_do_not_fit_are_refused_or_accepted_by_the_settings(
        self, spark, source: str, tmp_path: Path, form: str, content: str, columns: list[str]
    ) -> None:
        (tmp_path / f"a.{form}").write_text(content, encoding="utf-8")
        given: dict[str, object] = {"path": str(tmp_path / f"a.{form}"), "format": form}
        config = _config(source, tmp_path, row_key=None, columns=["body"], input=given)
        with pytest.raises(DataError, match=rf"^input: 1 record of 1 file \(a\.{form}\)") as refused:
            run(config, spark, key=KEY)
        assert "marker" not in str(refused.value)
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out_audit").exists()  # with the ledger and its reservation
        given["options"] = {"mode": "PERMISSIVE"}
        config = _config(source, tmp_path, row_key=None, columns=["body"], input=given)
        report = run(config, spark, key=KEY)
        assert (report.facts["corrupt_records"], report.facts["rows"]) == (1, 2)
        assert "1 RECORD DOES NOT FIT" in json.dumps(report.facts["disclosure"])
        out = spark.read.format("delta").load(str(tmp_path / "out"))
        assert out.columns == columns
        assert "marker" not in repr(out.collect())

    def test_a_folder_whose_files_have_other_columns_is_refused_before_anything_is_spent(
        self, spark, source: str, tmp_path: Path
    ) -> None:
        (tmp_path / "csv").mkdir()
        (tmp_path / "csv" / "a.csv").write_text("id,agent,body\n1,agent 1,good morning\n", encoding="utf-8")
        (tmp_path / "csv" / "b.csv").write_text("id,body,agent\n2,marker morning,agent 2\n", encoding="utf-8")
        config = _config(
            source, tmp_path, columns=["body"], input={"path": str(tmp_path / "csv"), "format": "csv"}
        )
        with pytest.raises(DataError, match=r"^input: the first line of 1 file \(b\.csv\)") as refused:
            run(config, spark, key=KEY)
        assert "marker" not in str(refused.value)
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out_audit").exists()

    @pytest.mark.cluster
    def test_catalog_tables_and_a_predicate(self, spark, source: str, tmp_path: Path) -> None:
        spark.read.format("delta").load(source).write.format("delta").saveAsTable("raw_notes")
        audit = {"shareable": str(tmp_path / "s"), "restricted": str(tmp_path / "r"), "consistency_scopes": 0}
        config = _config(
            source, tmp_path, input={"table": "raw_notes", "where": {"id": {"lt": 30}}}, audit=audit,
            output={"table": "clean_notes", "other_columns": ["customer"]},
        )  # fmt: skip
        assert run(config, spark, key=KEY).facts["rows"] == 30
        assert spark.table("clean_notes").columns == ["id", "customer", "body", "note"]

    @pytest.mark.parametrize(
        "keys",
        [{}, {"row_key": {"none": "accept"}}, {"row_key": {"none": "accept"}, "record_key": "customer"}],
    )
    @pytest.mark.parametrize("where", [None, {"id": {"lt": 0}}])
    def test_an_input_of_no_rows_is_refused_before_it_costs_anything(
        self, spark, source: str, tmp_path: Path, where: dict[str, Any] | None, keys: dict[str, Any]
    ) -> None:
        first = run(_config(source, tmp_path, run={"id": "full"}, **keys), spark, key=KEY)
        if where is None:
            spark.read.format("delta").load(source).where("id < 0").write.parquet(str(tmp_path / "none"))
            given = {"path": str(tmp_path / "none"), "format": "parquet"}
        else:
            given = {"path": source, "where": where}
        ledger = spark.read.format("delta").load(str(Path(source).parent / "_dptext_ledger"))
        entries = ledger.count()
        output = {"path": str(tmp_path / "out"), "mode": "overwrite"}
        emptied = _config(source, tmp_path, input=given, output=output, run={"id": "none"}, **keys)
        with pytest.raises(NoRowsError, match=r"^input(\.where)?: it (has|selects) no row") as refused:
            run(emptied, spark, key=KEY)
        assert ("where" in str(refused.value)) == (where is not None)
        assert ledger.count() == entries
        runs = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs"))
        assert [row["run_id"] for row in runs.collect()] == ["full"]
        assert spark.read.format("delta").load(str(tmp_path / "out")).count() == first.facts["rows"]

    def test_a_run_that_has_committed_is_unchanged_where_its_input_was_emptied(
        self, spark, source: str, tmp_path: Path
    ) -> None:
        raw = spark.read.format("delta").load(source)
        given = {"path": str(tmp_path / "raw"), "format": "parquet"}
        config = _config(source, tmp_path, input=given, run={"id": "day"})
        raw.write.parquet(given["path"])
        run(config, spark, key=KEY)
        raw.where("id < 0").write.mode("overwrite").parquet(given["path"])
        assert run(config, spark, key=KEY).status == "unchanged"
