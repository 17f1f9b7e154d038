"""Samples of tables: rows and sizes are those that were written, and text files are read as a run reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from dptext_spark import spark as dps
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.model.first_look import columns_of
from dptext_spark.model.table_files import ENCODINGS, MOST_FILES, SAMPLE_ROWS
from dptext_spark.spark.table_sample import read_sample
from dptext_spark.spark.tables import read_input

PRIVATE = "Zebedee"
BODIES = [f"Please send the parcel to {PRIVATE}", 'Please "do" it, over']


def test_parquet_is_spread_over_its_files(spark, tmp_path: Path) -> None:
    for n in range(12):
        pq.write_table(pa.table({"f": [n] * 200, "body": BODIES * 100}), tmp_path / f"{n:02} x.parquet")
    found = read_sample(tmp_path)
    assert (found.format, found.files, found.read) == ("parquet", 12, MOST_FILES)
    assert found.rows.num_rows == SAMPLE_ROWS
    assert len(set(found.rows["f"].to_pylist())) == MOST_FILES
    assert abs(found.total - 2_400) < 30
    assert not found.is_exact


def test_partitions_are_columns(spark, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"body": BODIES}), tmp_path / f"day={day}" / "a.parquet")
    found = read_sample(tmp_path)
    assert sorted(found.rows["day"].to_pylist()) == ["1", "1", "2", "2"]
    assert (found.total, found.is_exact) == (4, True)


@pytest.mark.parametrize("form", ["csv", "tsv", "json"])
def test_partitions_of_text_files_are_columns_as_a_run_reads_them(spark, tmp_path: Path, form: str) -> None:
    for day in ("007", "a%20b", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"day={day}" / "k=1").mkdir(parents=True)
        file = tmp_path / f"day={day}" / "k=1" / f"t.{form}"
        separator = {"csv": ",", "tsv": "\t"}.get(form, "")
        plain = f"id{separator}body\n" + "".join(f"{n}{separator}{BODIES[0]}\n" for n in range(3))
        records = "".join(json.dumps({"id": n, "body": BODIES[0]}) + "\n" for n in range(3))
        file.write_text(records if form == "json" else plain)
    sample = read_sample(tmp_path)
    assert sorted(map(str, sample.rows["day"].to_pylist())) == ["007"] * 3 + ["None"] * 3 + ["a b"] * 3
    df, _ = read_input(spark, Input(path=str(tmp_path), format=form), ["body"])
    assert [(r["day"], r["k"]) for r in df.orderBy("day").collect()] == sorted(
        zip(sample.rows["day"].to_pylist(), sample.rows["k"].to_pylist(), strict=True),
        key=lambda pair: pair[0] or "",
    )
    assert set(sample.rows.column_names) == set(df.columns)


@pytest.mark.parametrize(("times", "ids"), [(2_000, [*"012345"]), (20_000, ["0"])])
def test_less_than_1_mb_of_a_text_file_comes_to_the_driver(
    spark, tmp_path: Path, monkeypatch, times, ids
) -> None:
    frame, whole, came = type(spark.range(1)), type(spark.range(1)).toArrow, list[int]()
    monkeypatch.setattr(frame, "toArrow", lambda df: came.append((read := whole(df)).nbytes) or read)
    rows = "".join(f'{n},"{BODIES[0] * times}",open\n' for n in range(30))
    (tmp_path / "t.csv").write_text(f"id,body,kind\n{rows}")
    sample = read_sample(tmp_path / "t.csv")
    assert 380_000 < sum(came) < 1_000_000
    assert (sample.rows["id"].to_pylist(), sample.is_exact) == (ids, False)
    assert 25 < sample.total < 55


def test_json_and_lines_are_read(spark, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("".join(json.dumps({"m": {"body": one}}) + "\n" for one in BODIES))
    assert read_sample(tmp_path / "t.json").rows["m"].to_pylist() == [{"body": body} for body in BODIES]
    (tmp_path / "t.txt").write_text("".join(f"{one}\n" for one in BODIES))
    lines = read_sample(tmp_path / "t.txt", "text")
    assert (lines.rows["value"].to_pylist(), lines.format, lines.total) == (BODIES, "text", 2)


def test_tables_of_the_catalog_and_delta_are_read(spark, tmp_path: Path) -> None:
    df = spark.createDataFrame([(n, BODIES[0]) for n in range(7)], "id long, body string")
    df.write.format("delta").save(str(tmp_path / "d"))
    df.createOrReplaceTempView("seen")
    for place, is_name in ((tmp_path / "d", False), ("seen", True)):
        found = read_sample(place)
        assert (found.total, found.format, found.is_name) == (7, "delta", is_name)
        assert columns_of(found).row_key == "id"
    before = len(list((tmp_path / "d" / "_delta_log").iterdir()))
    read_sample(tmp_path / "d")
    assert len(list((tmp_path / "d" / "_delta_log").iterdir())) == before


def test_what_is_not_there_is_named(spark, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_sample(f"file:{tmp_path}/none")
    with pytest.raises(DataError, match="there is no 'no_such'"):
        read_sample("no_such")


def test_the_encodings_are_those_that_spark_reads(spark, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n")
    for name in {*ENCODINGS.values()}:
        assert spark.read.option("encoding", name).option("multiLine", True).csv(str(tmp_path)).count() == 1
    with pytest.raises(PySparkException, match="CHARSET"):
        spark.read.option("encoding", "windows-1252").csv(str(tmp_path)).count()


def test_a_frame_is_previewed_and_an_error_of_it_holds_no_text(spark, privatizer) -> None:
    rows = [(1, "the time zanzibar", "of"), (2, None, "the day"), (3, "", None)]
    df = spark.createDataFrame(rows, "id long, `a.b` string, note string").coalesce(1)
    shown = dps.preview(df, ["a.b", "note"], privatizer, rows=2)
    assert shown.columns["a.b"].before == ("the time zanzibar", None)
    assert shown.columns["note"].before == ("of", "the day")
    first, second = shown.columns["a.b"].after
    assert first.endswith(" [OOV]")
    assert len(first.split()) == 3
    assert second is None
    failing = df.selectExpr("raise_error(`a.b`) AS body")
    with pytest.raises(DPTextError) as caught:
        dps.preview(failing.selectExpr("CAST(body AS string) AS body"), ["body"], privatizer)
    assert "zanzibar" not in str(caught.value)
