"""Tables by path and by name: what is read of them, at which version, and which columns are refused."""

from __future__ import annotations

import math
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.table_checks import check_texts
from dptext_spark.model.target_checks import check_schema, only_created, our_commits
from dptext_spark.spark import tables
from dptext_spark.spark.job.planned_run import check_keys
from dptext_spark.spark.job.writing import Layout, create_empty
from dptext_spark.spark.nested_columns import schema_of
from dptext_spark.spark.schemas import LEDGER, METRICS, RUNS, frame_of
from dptext_spark.spark.tables import Target, read_input


def source(path: str | Path = "", table: str = "", format: str = "delta", where: Any = None, **options: str):
    place = {"path": str(path) or None, "table": table or None}
    return Input.model_construct(**place, format=format, where=where, options=options)


@pytest.fixture
def rows(spark) -> DataFrame:
    return spark.createDataFrame([(1, "the day"), (2, None), (3, "")], "id long, body string").coalesce(1)


class TestTarget:
    @pytest.mark.parametrize(
        ("name", "parts"),
        [("t", ["t"]), ("c.s.t", ["c", "s", "t"]), ("c.`odd.schema`.`t x`", ["c", "odd.schema", "t x"])],
    )
    def test_names_are_split_at_their_dots(self, name: str, parts: list[str]) -> None:
        assert tables.split_name(name) == parts
        assert Target(name=name).sql == ".".join(f"`{part}`" for part in parts)

    @pytest.mark.parametrize("name", ["", ".", "a.b.c.d"])
    def test_what_is_no_name(self, name: str) -> None:
        with pytest.raises(SettingsError, match=r"^table: "):
            tables.split_name(name)

    def test_a_path_with_ticks_and_spaces(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        target = Target(path=str(tmp_path / "it`s a `table`"))
        rows.write.format("delta").save(target.path)
        assert spark.sql(f"SELECT count(*) FROM {target.sql}").first()[0] == 3
        assert tables.delta_version(spark, target) == 0


class TestHistory:
    def test_what_is_no_delta_table_has_none(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        rows.write.parquet(str(tmp_path / "parquet"))
        rows.createOrReplaceTempView("a_view")
        rows.write.format("parquet").saveAsTable("a_parquet_table")
        (tmp_path / "empty").mkdir()
        places = [Target(path=str(tmp_path / name)) for name in ("parquet", "empty", "nowhere")]
        places += [Target(name=name) for name in ("a_view", "a_parquet_table", "nowhere", "no_schema.t")]
        assert {str(place): tables.history(spark, place) for place in places} == {str(p): [] for p in places}
        assert {tables.delta_version(spark, place) for place in places} == {None}

    @pytest.mark.long
    def test_commits_newest_first_and_ours_among_them(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        target = Target(path=str(tmp_path / "t"))
        for metadata in ('{"dptext_run": "r1"}', '{"else": 1}', "no JSON", "[1]"):
            rows.write.format("delta").mode("append").option("userMetadata", metadata).save(target.path)
            assert not only_created(tables.history(spark, target))
        rows.write.format("delta").mode("append").save(target.path)
        commits = tables.history(spark, target)
        assert [commit.version for commit in commits] == [4, 3, 2, 1, 0]
        assert {name: commit.version for name, commit in our_commits(commits).items()} == {"r1": 0}
        assert len(tables.history(spark, target, limit=2)) == 2

    @pytest.mark.parametrize("name", ["made", "a name"])
    def test_an_empty_table_says_that_a_run_made_it_until_something_is_written(self, spark, rows, name):
        target = Target(name="made_empty")
        frame = rows.withColumnRenamed(rows.columns[0], name)
        create_empty(spark, target, frame.schema, "r1", Layout.of(frame.schema, ()))
        assert only_created(tables.history(spark, target))
        frame.writeTo(target.sql).append()
        assert not only_created(tables.history(spark, target))


class TestReadInput:
    @pytest.mark.long
    def test_a_delta_table_is_read_at_one_version(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        """What others commit while a run works is in neither of its passes."""
        path = str(tmp_path / "t")
        rows.write.format("delta").save(path)
        rows.write.format("delta").saveAsTable("named")
        by_path, by_name = (read_input(spark, s, ["body"]) for s in (source(path), source(table="named")))
        assert by_path[1] == by_name[1] == "delta:0"
        spark.sql(f"DELETE FROM delta.`{path}`")
        spark.sql("DELETE FROM named")
        for df, _ in (by_path, by_name):
            assert_df_equality(df, rows, ignore_row_order=True)
        assert read_input(spark, source(path), ["body"])[1] == "delta:1"

    def test_files_are_named_by_what_they_hold(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        def version() -> str:
            return read_input(spark, source(tmp_path / "p", format="parquet"), ["body"])[1]

        rows.write.parquet(str(tmp_path / "p"))
        first = version()
        assert first.startswith("files:")
        assert version() == first
        (file,) = (tmp_path / "p").glob("*.parquet")
        os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns + 1_000))
        second = version()
        rows.write.mode("append").parquet(str(tmp_path / "p"))
        assert len({first, second, version()}) == 3

    def test_tabs_separate_the_fields_of_tsv(self, spark, tmp_path: Path) -> None:
        (tmp_path / "a.tsv").write_text("id\tbody\n007\tthe, day\n", encoding="utf-8")
        given = source(tmp_path / "a.tsv", format="tsv")
        df, _ = read_input(spark, given, ["body"])
        assert (df.dtypes, df.collect()) == ([("id", "string"), ("body", "string")], [("007", "the, day")])
        assert tables.checked_records(spark, given, df) == 0

    def test_numbers_of_json_keep_their_type_where_they_are_no_texts(self, spark, tmp_path: Path) -> None:
        lines = [
            '{"id": 1, "body": 7, "x": 0.5, "meta": {"note": 1.50, "n": 3}, "list": [{"text": true, "k": 1}], "m": "a"}',
            '{"id": 2, "body": "the day", "x": 2, "meta": {"note": {"a": [1]}, "n": null}, "list": [], "m": 3}',
            "MARKER no JSON",
            '{"id": 3, "body": null, "big": 12345678901}',
        ]
        (tmp_path / "a.json").write_text("\n".join(lines), encoding="utf-8")
        given = source(tmp_path / "a.json", format="json", samplingRatio="0.0001")
        df, _ = read_input(spark, given, ["body", "meta.note", "list.text"])
        types = {field.name: field.dataType.simpleString() for field in df.schema}
        assert types == {
            "big": "bigint", "body": "string", "id": "bigint", "list": "array<struct<k:bigint,text:string>>", "m": "string",
            "meta": "struct<n:bigint,note:string>", "x": "double",
        }  # fmt: skip
        rows = {row["id"]: row.asDict() for row in df.collect()}
        first = {"body": "7", "meta": (3, "1.50"), "list": [(1, "true")]}
        assert rows[1] | first == rows[1]
        assert rows[2] | {"meta": (None, '{"a": [1]}'), "m": "3", "x": 2.0} == rows[2]
        assert rows[3] | {"big": 12345678901, "body": None} == rows[3]
        assert "MARKER" not in str(rows)
        permissive = source(tmp_path / "a.json", format="json", mode="PERMISSIVE")
        assert tables.checked_records(spark, permissive, df) == 1
        with pytest.raises(DataError, match=r"'nope' is not in the input. Text columns of the input: "):
            read_input(spark, given, ["nope"])

    @pytest.mark.parametrize("mode", ["append", "overwrite"])
    def test_a_target_that_has_numbers_as_strings_is_refused(self, mode: str) -> None:
        source_, target = (
            T.StructType([T.StructField("body", T.StringType()), T.StructField("id", kind)])
            for kind in (T.LongType(), T.StringType())
        )
        with pytest.raises(DataError, match=r"these as strings: id \(bigint\)"):
            check_schema(schema_of(target), schema_of(source_), ["body"], ["body", "id"], mode)
        check_schema(schema_of(source_), schema_of(source_), ["body"], ["body", "id"], mode)

    @pytest.mark.parametrize(
        ("changes", "kind", "said"),
        [
            ({"path": "", "table": "nowhere", "format": "delta"}, DataError, r"input\.table: .*\(TABLE_OR_VIEW_NOT_FOUND\)"),

            ({"where": {"idd": 1}}, SettingsError, r"input\.where\.idd: 'idd' is not in the input\. Choose id"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_read(self, spark, rows: DataFrame, tmp_path: Path, changes, kind, said) -> None:
        rows.write.parquet(str(tmp_path / "p"))
        with pytest.raises(kind, match=said) as caught:
            read_input(spark, source(**{"path": tmp_path / "p", "format": "parquet", **changes}), ["body"])
        assert caught.value.__cause__ is None


class TestColumns:
    def test_texts_pass_whatever_their_declared_length(self, spark) -> None:
        spark.sql("CREATE TABLE texts (a STRING, b VARCHAR(9), c CHAR(3)) USING parquet")
        check_texts(schema_of(spark.table("texts").schema), ["a", "b", "c"])

    @pytest.mark.parametrize(
        ("name", "said"),
        [("Body", "'Body' is not in the input. Text columns of the input: body"), ("list", "'list' is in a list of lists")],
    )  # fmt: skip
    def test_what_is_no_text_column(self, rows: DataFrame, name: str, said: str) -> None:
        with pytest.raises(DataError, match=said):
            check_texts(schema_of(rows.selectExpr("*", "array(array(body)) AS list").schema), [name])


class TestKeys:
    def test_repeats_are_counted_where_they_matter(self, rows: DataFrame) -> None:
        twice = rows.union(rows).withColumnRenamed("id", "the `id`")
        check_keys(twice, None, "the `id`")
        with pytest.raises(DataError, match="has 3 distinct values in 6 rows"):
            check_keys(twice, "the `id`", None)

    def test_two_keys_are_checked_in_one_pass(self, spark, rows: DataFrame) -> None:
        assert check_keys(rows.where("id < 0"), "id", None) == 0
        assert check_keys(rows.where("body IS NOT NULL"), "id", "body") == 2
        assert check_keys(rows, "id", "id") == 3
        for keys in (("id", "body"), (None, "body"), ("body", None)):
            with pytest.raises(DataError, match=r"column 'body' is NULL in 1 of 3 rows"):
                check_keys(rows, *keys)
        with pytest.raises(DataError, match=r"row_key: column 'id' has 3 distinct values in 6 rows"):
            check_keys(rows.union(rows), "id", "body")
        jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
        before = jobs()
        check_keys(rows, "id", None)
        alone = jobs() - before
        check_keys(rows, "id", "id")
        assert jobs() - before == 2 * alone


class TestLeftoverFiles:
    def test_newer_data_files_are_listed(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        folder = tmp_path / "t"
        rows.write.format("delta").save(str(folder))
        (file,) = folder.glob("*.parquet")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        target = Target(path=str(folder))
        assert tables.leftover_files(spark, target, 1_000_000_100) == []
        # A partition, and one of the prefixes that spread files in object stores.
        for name in ("kind=1", "x7"):
            (folder / name).mkdir()
            (folder / name / "left.parquet").write_bytes(b"PAR1")
        found = tables.leftover_files(spark, target, 1_000_000_100)
        left = [place.rsplit("/", 2)[1:] for place in found]
        assert left == [[name, "left.parquet"] for name in ("kind=1", "x7")]
        assert tables.leftover_files(spark, Target(path=str(tmp_path / "nowhere")), 0) == []
        assert tables.leftover_files(spark, Target(name="nowhere"), 0) == []


BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
VALUES: dict[str, list[Any]] = {
    "string": ["a word, and \u00e9", "", None],
    "long": [2**40, -1, None],
    "integer": [2**31 - 1, 0, None],
    "double": [0.1, math.inf, None],
    "boolean": [True, False, None],
    "timestamp": [datetime(2026, 3, 29, 2, 30, 0, 123456), datetime(2026, 7, 1, tzinfo=timezone.utc), None],
}


@pytest.mark.parametrize("bound", ["1", "50000", "0", "-1"])
@pytest.mark.parametrize("schema", [RUNS, METRICS, LEDGER])
def test_a_frame_is_what_spark_makes_of_the_rows_whatever_bounds_its_batches(spark, schema, bound) -> None:
    spark.conf.set(BATCH, bound)
    rows = [tuple(VALUES[field.dataType.typeName()][n] for field in schema.fields) for n in range(3)]
    found = frame_of(spark, rows, schema)
    assert found.schema.json() == schema.json()
    assert found.collect() == spark.createDataFrame(rows, schema).collect()
    assert found.rdd.getNumPartitions() == 1
