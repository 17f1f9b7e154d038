"""One ledger for one input: where it is, that several targets add up in it, and that it is written to before anything is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import Input, Ledger, ledger_on_disk
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.ledger.balance import Balance
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark.job import entries, ledger, prepare
from dptext_spark.spark.job.entries import read
from dptext_spark.spark.runner import dry_run, run
from dptext_spark.spark.tables import Target, read_input


def config(source: dict[str, Any], out: Path, **changes: Any) -> RunConfig:
    return parse_config({
        "input": source, "columns": ["body"], "row_key": "id", "consistency": "record", "output": {"path": str(out)},
        **changes,
    })  # fmt: skip


def key(name: str) -> RunKey:
    return RunKey(hashlib.sha256(name.encode()).digest())


def letters(spark: Any) -> Any:
    rows = [(i, f"good news {i}") for i in range(4)]
    return spark.createDataFrame(rows, "id long, body string").coalesce(1)


def reserved(spark: Any, source: dict[str, Any], out: Path, **changes: Any) -> Balance:
    """Reserve for a run with draws of its own, which goes no further."""
    plan = prepare.prepare_run(spark, config(source, out, **changes), key(out.name), silent)
    return ledger.reserve(plan).balance


@pytest.mark.long
def test_a_second_target_counts_and_a_limit_binds_over_both(spark: Any, tmp_path: Path) -> None:
    letters(spark).write.format("delta").save(str(tmp_path / "data/in"))
    source = {"path": str(tmp_path / "data/in")}
    reserved(spark, source, tmp_path / "a", ledger={"limit": 2.0})
    facts = run(config(source, tmp_path / "b"), spark, key=key("b")).facts
    assert facts["ledger"]["columns"][0]["total"] == 2.0
    assert facts["ledger"]["ledger"] == str(tmp_path / "data/_dptext_ledger")
    with pytest.raises(RunError, match=r"ledger\.limit"):
        run(config(source, tmp_path / "c"), spark, key=key("c"))
    assert not (tmp_path / "c").exists()
    for place in ("data/_dptext_ledger", "data/in"):  # `dptext ledger` finds it by the input, too
        (balance,) = read(str(tmp_path / place), spark)
        assert (balance.columns[0].total, balance.kept) == (2.0, 2.0)
    assert {file.name for file in (tmp_path / "data").iterdir()} == {"in", "_dptext_ledger"}


@pytest.fixture
def named(spark: Any, tmp_path: Path) -> Iterator[dict[str, str]]:
    letters(spark).write.format("delta").saveAsTable("letters", path=str(tmp_path / "data/in"))
    yield {"table": "default.letters"}
    for table in ("letters", "dptext_ledger"):
        spark.sql(f"DROP TABLE IF EXISTS default.{table}")


@pytest.mark.long
def test_of_an_input_by_name_it_is_a_table_of_its_schema(spark: Any, tmp_path: Path, named: Any) -> None:
    reserved(spark, named, tmp_path / "a")
    facts = run(config(named, tmp_path / "b"), spark, key=key("b")).facts
    assert facts["ledger"]["ledger"] == "default.dptext_ledger"
    assert facts["ledger"]["columns"][0]["total"] == 2.0
    assert facts["ledger"]["unfinished"] == 1
    for place in ("default.dptext_ledger", "default.letters"):
        assert read(place, spark)[0].columns[0].total == 2.0
    with pytest.raises(RunError, match=r"ledger\.limit"):
        reserved(spark, named, tmp_path / "c", ledger={"table": "default.dptext_ledger", "limit": 2.0})


@pytest.mark.long
def test_a_table_by_name_that_was_counted_by_its_path_is_refused(spark, tmp_path: Path, named: Any) -> None:
    by_path, counted = {"path": str(tmp_path / "data/in")}, str(tmp_path / "data/_dptext_ledger")
    reserved(spark, by_path, tmp_path / "a")
    with pytest.raises(SettingsError) as told:
        run(config(named, tmp_path / "b"), spark, key=key("b"))
    names = ("ledger.path", "ledger.table", counted, "default.dptext_ledger")
    assert all(name in str(told.value) for name in names)
    assert not (tmp_path / "b").exists()
    assert reserved(spark, named, tmp_path / "b", ledger={"path": counted}).columns[0].total == 2.0


@pytest.mark.parametrize(
    ("path", "ledgers", "expected"),
    [
        ("a/b/in", [], "a/b/_dptext_ledger"),
        ("a/b/in.csv", [], "a/b/_dptext_ledger"),
        ("a/b/in/", ["a", "a/b/in"], "a/_dptext_ledger"),
        ("a/b/in", ["", "a"], "a/_dptext_ledger"),
        ("a/b/in", ["a", "a/b"], "a/b/_dptext_ledger"),
        ("a/b/*.csv", [], "a/_dptext_ledger"),  # a pattern may match what lies in its folder
        ("a/b/in[1].csv", [], "a/b/_dptext_ledger"),  # that is there, and so a name
    ],
)
def test_the_nearest_ledger_counts(tmp_path: Path, path: str, ledgers: list[str], expected: str) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/in[1].csv").touch()
    for folder in ledgers:
        (tmp_path / folder / "_dptext_ledger/_delta_log").mkdir(parents=True)
    place = ledger_on_disk(Input(path=f"{tmp_path}/{path}"), Ledger())
    assert place == str(tmp_path / expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Input(path="s3a://bucket/in"), "s3a://bucket/_dptext_ledger"),
        (Input(path="s3a://bucket/data/in"), "s3a://bucket/data/_dptext_ledger"),
        (Input(path="abfss://c@host/data/2026*/x.csv", format="csv"), "abfss://c@host/_dptext_ledger"),
        (Input(path="dbfs:/data/in"), "dbfs:/data/_dptext_ledger"),
        (Input(table="main.support.tickets"), "main.support.dptext_ledger"),
        (Input(table="support.tickets"), "support.dptext_ledger"),
        (Input(table="tickets"), "dptext_ledger"),
    ],
)
def test_of_a_store_or_a_catalog(source: Input, expected: str) -> None:
    assert ledger_on_disk(source, Ledger()) == expected
    assert ledger_on_disk(source, Ledger(path="/else")) == "/else"
    assert ledger_on_disk(source, Ledger(table="a.b")) == "a.b"


def test_where_nothing_can_be_written_nothing_is_read(spark: Any, tmp_path: Path, monkeypatch) -> None:
    """No user can make a file in /proc, as on read-only storage."""
    reads: list[Input] = []
    monkeypatch.setattr(prepare, "read_input", lambda spark, source, columns: reads.append(source))
    given = {"columns": ["value"], "row_key": {"none": "accept"}}
    settings = config({"path": "/proc/version", "format": "text"}, tmp_path / "out", **given)
    for refused in (lambda: run(settings, spark, key=key("a")), lambda: dry_run(settings, print)):
        with pytest.raises(SettingsError) as told:
            refused()
        names = ("ledger.path", "ledger.table", "/proc/_dptext_ledger")
        assert all(name in str(told.value) for name in names)
    assert not reads
    assert os.listdir(tmp_path) == []


@pytest.mark.long
def test_elsewhere_the_trial_is_a_commit_without_a_row(spark: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(entries, "on_disk", lambda spark, path: False)
    letters(spark).write.format("delta").save(str(tmp_path / "in"))
    source, place = Input(path=str(tmp_path / "in")), str(tmp_path / "_dptext_ledger")
    for _ in range(2):
        assert entries.ledger_of(spark, source, Ledger()) == place
        entries.check_ledger_writable(spark, source, place)
        assert entries.entries_of(spark, place).entries == []
    gone = Input(path=str(tmp_path / "gone/in"))
    entries.check_ledger_writable(spark, gone, str(tmp_path / "gone/_dptext_ledger"))
    assert not (tmp_path / "gone").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "text", "delta"])
def test_a_folder_is_read_without_the_ledger_in_it(spark: Any, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "in"
    rows = letters(spark)
    if kind == "text":
        rows = rows.select("body")
    write = rows.write.format(kind)
    (write.option("header", "true") if kind == "csv" else write).save(str(folder))
    entries._write(spark, str(folder / "_dptext_ledger"), [], {})
    rows.write.parquet(str(folder / "_dptext_ledger/more"))
    source = Input(path=str(folder), format=kind)
    recursive = {} if kind == "delta" else {"recursiveFileLookup": "true"}
    for options in ({}, recursive):
        frame, _ = read_input(spark, source.model_copy(update={"options": options}), [])
        assert frame.count() == 4


def test_one_of_path_and_table() -> None:
    with pytest.raises(SettingsError, match="ledger: path and table"):
        config({"path": "/in"}, Path("/out"), ledger={"path": "/l", "table": "a.b"})
    assert str(Target.of_ledger("a.b")) == "a.b"
