"""What identifies a row: it stays with the row under splits, filters and deletes, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.column_function import identify_rows, is_bare_scan

KEY = RunKey.insecure(5)
ROWS = 200
TEXT = "the time of the day"


@pytest.fixture
def rows(spark) -> DataFrame:
    return spark.range(ROWS).selectExpr("id", "id % 7 AS kind", f"'{TEXT}' AS body")


@pytest.fixture(scope="module")
def files(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identity")
    rows = session.range(ROWS).selectExpr("id", "id % 7 AS kind", f"'{TEXT}' AS body").repartition(3, "id")
    rows.write.parquet(str(folder / "parquet"))
    rows.write.csv(str(folder / "csv"))
    return folder


@pytest.fixture
def parquet(spark, files: Path) -> DataFrame:
    return spark.read.parquet(str(files / "parquet"))


@pytest.fixture
def csv(spark, files: Path) -> DataFrame:
    return spark.read.csv(str(files / "csv"), schema="id long, kind long, body string")


def kind_of(df: DataFrame, ordinal: bool = False) -> str:
    try:
        return identify_rows(df, None, None, ordinal).kind.split(":")[0]
    except SettingsError as error:
        return "refused" if str(error).startswith("row_key: none given") else str(error)


def drawn(df: DataFrame, privatizer) -> dict[int, str]:
    out = dps.privatize(df, ["body"], privatizer, key=KEY, run_id="r")
    return {row["id"]: row["body"] for row in out.collect()}


class TestFileAndRow:
    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (lambda df: df, "file_row"),
            (lambda df: df.where("id > 3").select("body", "id"), "file_row"),
            (lambda df: df.sample(0.5, seed=1), "file_row"),
            (lambda df: df.union(df), "refused"),
            (lambda df: df.orderBy("id"), "refused"),
            (lambda df: df.limit(5), "refused"),
            (lambda df: df.repartition(2), "refused"),
            (lambda df: df.join(df.select("id"), "id"), "refused"),
            (lambda df: df.withColumn("twice", F.explode(F.array(F.lit(1), F.lit(2)))), "refused"),
        ],
        ids=["scan", "filter", "sample", "union", "sort", "limit", "repartition", "join", "explode"],
    )
    def test_only_where_each_row_comes_once_from_its_file(self, parquet: DataFrame, change, expected) -> None:
        assert kind_of(change(parquet)) == expected

    def test_a_column_of_the_input_is_not_taken_for_sparks_own(self, parquet: DataFrame) -> None:
        """Such a column can hold anything: here NULL, one identity for all rows."""
        own = parquet.withColumn("_METADATA", F.lit(None).cast("struct<file_path:string,row_index:bigint>"))
        assert kind_of(own) == "refused"

    @pytest.mark.long
    def test_splits_and_filters_move_no_draw(self, spark, parquet: DataFrame, privatizer) -> None:
        whole = drawn(parquet, privatizer)
        assert len(set(whole.values())) > ROWS / 2  # rows of equal text draw apart
        some = drawn(parquet.where("kind = 3"), privatizer)
        assert some == {i: text for i, text in whole.items() if i % 7 == 3}
        out = dps.privatize(parquet, ["body"], privatizer, key=KEY, run_id="r").where("kind = 3")
        assert {row["id"]: row["body"] for row in out.collect()} == some
        before = parquet.rdd.getNumPartitions()
        spark.conf.set("spark.sql.files.maxPartitionBytes", "600b")
        spark.conf.set("spark.sql.files.openCostInBytes", "0")
        split = spark.read.parquet(*parquet.inputFiles())
        assert split.rdd.getNumPartitions() > before
        assert drawn(split, privatizer) == whole


class TestDelta:
    def table(self, spark, rows: DataFrame, folder: Path, vectors: bool) -> str:
        writer = rows.coalesce(1).write.format("delta")
        writer.option("delta.enableDeletionVectors", str(vectors).lower()).save(str(folder))
        return f"delta.`{folder}`"

    @pytest.mark.cluster
    def test_with_deletion_vectors_rows_that_stay_keep_their_draws(self, spark, rows, tmp_path, privatizer):
        table = self.table(spark, rows, tmp_path / "t", vectors=True)

        def read() -> dict[int, str]:
            df = spark.read.format("delta").load(str(tmp_path / "t"))
            assert kind_of(df) == "file_row"
            return drawn(df, privatizer)

        whole = read()
        spark.sql(f"DELETE FROM {table} WHERE id % 3 = 0")
        left = read()
        assert left == {i: text for i, text in whole.items() if i % 3}
        # A row that is written anew has another place, and draws anew: the first version's draw stays its own.
        spark.sql(f"UPDATE {table} SET kind = 99 WHERE id = 1")
        assert [i for i, text in read().items() if text != left[i]] == [1]
        old = spark.read.format("delta").option("versionAsOf", 0).load(str(tmp_path / "t"))
        assert drawn(old, privatizer) == whole

    def test_without_deletion_vectors_there_is_no_place(self, spark, rows: DataFrame, tmp_path: Path) -> None:
        self.table(spark, rows, tmp_path / "t", vectors=False)
        df = spark.read.format("delta").load(str(tmp_path / "t"))
        assert kind_of(df) == "refused"
        assert kind_of(df, ordinal=True) == "ordinal"


class TestTheOrdinal:
    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (lambda df: df, "ordinal"),
            (lambda df: df.where("id > 3").select("body"), "ordinal"),
            (lambda df: df.union(df), "refused"),
            (lambda df: df.sample(0.5, seed=1), "refused"),
            (lambda df: df.orderBy("id"), "refused"),
            (lambda df: df.sortWithinPartitions("id"), "refused"),
            (lambda df: df.repartition(2), "refused"),
            (lambda df: df.coalesce(1), "refused"),
            (lambda df: df.limit(5), "refused"),
            (lambda df: df.distinct(), "refused"),
        ],
        ids="scan filter union sample sort sort_within repartition coalesce limit distinct".split(),  # noqa: SIM905
    )
    def test_needs_a_bare_scan(self, csv: DataFrame, change, expected: str) -> None:
        assert kind_of(change(csv), ordinal=True) == expected

    def test_rows_made_by_the_driver_have_none(self, spark) -> None:
        assert kind_of(spark.createDataFrame([("a",)], "body string"), ordinal=True) == "refused"

    def test_is_refused_where_the_frame_is_lazy(self, csv: DataFrame, privatizer) -> None:
        with pytest.raises(SettingsError, match=r"^row_key: "):
            dps.privatize(csv, ["body"], privatizer)

    def test_names_the_layout_it_depends_on(self, spark, csv: DataFrame) -> None:
        before = identify_rows(csv, None, None, ordinal=True).kind
        assert identify_rows(csv, None, None, ordinal=True).kind == before
        spark.conf.set("spark.sql.files.openCostInBytes", "4194305")
        assert csv.rdd.getNumPartitions() == int(before.split(":")[1])
        assert identify_rows(csv, None, None, ordinal=True).kind != before


def test_a_stream_needs_a_row_key(spark, parquet: DataFrame, files: Path) -> None:
    stream = spark.readStream.schema(parquet.schema).parquet(str(files / "parquet"))
    assert kind_of(stream) == kind_of(stream, ordinal=True) == "refused"
    assert not is_bare_scan(stream)
    assert identify_rows(stream, "id", None, ordinal=False).kind == "row_key"
