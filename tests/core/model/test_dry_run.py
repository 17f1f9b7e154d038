"""A run is checked by schemas alone: what would be refused, what is let pass, and what is left to Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.model.dry_run import Checked, check_here
from dptext_spark.model.tables import target_checks
from dptext_spark.model.tables.delta_log import NeedsSparkError
from dptext_spark.model.tables.local_schema import ELSEWHERE, is_here
from dptext_spark.model.tables.table_files import LARGE_FILE
from tests.spark.job.dry_run_cases import ALL, CASES, MARKER, config_of, delta_table, write_places


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_places(tmp_path)
    (tmp_path / "in.csv").touch()
    return tmp_path


def checked(root: Path, **settings: Any) -> Checked:
    return check_here(config_of(root, settings))


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_and_nothing_is_written(root: Path, name: str) -> None:
    case, before = CASES[name], sorted(root.rglob("*"))
    with pytest.raises(case.kind) as caught:
        checked(root, **case.settings)
    assert type(caught.value) is case.kind
    assert case.said in str(caught.value)
    assert MARKER not in str(caught.value)
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("mode", ["incremental", "streaming"])
def test_a_stream_without_a_key_that_outlives_it_is_refused(root: Path, mode: str) -> None:
    settings = {"mode": mode, "row_key": "id", "input": {"path": "ROOT/ours"}}
    with pytest.raises(SettingsError, match=rf"^key: none given; mode {mode} needs one"):
        checked(root, **settings)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\xfd"], ids=["missing", "empty", "no UTF-8"])
def test_a_list_that_cannot_be_read_is_refused(root: Path, content: bytes | None) -> None:
    file = root / "names.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"^policy\.mask\[0\]"):
        checked(root, policy={"mask": [{"file": str(file)}]})


@pytest.mark.parametrize(
    ("row_key", "others", "along"),
    [
        ("id", "drop", ("id", "body")),
        (None, "drop", ("body",)),
        ("id", ["customer"], ("id", "customer", "body")),
        ("id", ["id", "n"], ("id", "body", "n")),
        ("id", "keep", tuple(ALL)),
    ],
)
def test_only_the_row_key_and_what_is_named_goes_along(
    root: Path, row_key: str | None, others: Any, along: tuple[str, ...]
) -> None:
    output = {"path": "ROOT/out", "other_columns": others}
    assert checked(root, row_key=row_key, output=output).kept == along


def test_a_run_that_fits(root: Path) -> None:
    found = checked(root, row_key="id", record_key="customer")
    assert (found.by, found.read, found.target) == ("pyarrow", "the footers of 1 of 1 files", "new")
    assert found.columns == tuple(ALL)
    assert found.kept == ("id", "body")  # no other column, the record key neither
    assert len(found.open) == 5  # rows, both keys, words that the lexicon lacks, and the ledger


@pytest.mark.parametrize("column", ["body", "`a.b`", "a.b", 'q"u`o', '`q"u``o`', "meta.note", "tags"])
def test_names_with_dots_and_quotes_are_found(root: Path, column: str) -> None:
    assert checked(root, columns=[column]).by == "pyarrow"


@pytest.mark.parametrize(
    ("settings", "columns", "read"),
    [
        ({"path": "ROOT/plain.csv", "format": "csv"}, ("id", "body"), "the first line of 1 of 1 files"),
        ({"path": "ROOT/semicolon.csv", "format": "csv", "options": {"sep": ";"}}, ("id", "body"),
         "the first line of 1 of 1 files"),
        ({"path": "ROOT/utf16.csv", "format": "csv", "options": {"encoding": "UTF-16"}}, ("id", "body"),
         "the first line of 1 of 1 files"),
        ({"path": "ROOT/records.json", "format": "json"}, ("body", "id", "n"), "the first records of 1 of 1 files"),
        ({"path": "file:ROOT/in.parquet", "format": "parquet"}, tuple(ALL), "the footers of 1 of 1 files"),
        ({"path": "ROOT/source"}, tuple(ALL), "the log of the Delta table"),
        ({"path": "ROOT/rows.csv", "format": "csv", "options": {"header": "false"}}, ("_c0", "_c1"),
         "the first line of 1 of 1 files"),
        ({"path": "ROOT/odd.csv", "format": "csv"}, ("body", "_c1", "Note2", "note3"), "the first line of 1 of 1 files"),
    ],
)  # fmt: skip
def test_what_is_read_of_each_format(
    root: Path, settings: dict[str, Any], columns: tuple[str, ...], read: str
) -> None:
    (root / "odd.csv").write_text("body,,Note,note\n1,2,3,4\n")  # names that stand twice or are empty
    found = checked(root, input=settings, columns=["body" if "body" in columns else "_c1"])
    assert (found.columns, found.read) == (columns, read)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"path": "ROOT/empty"}, "new"),
        ({"path": "ROOT/made"}, "there, and empty"),
        ({"path": "ROOT/ours", "mode": "overwrite"}, "there, with 1 release of runs; output.mode overwrite"),
    ],
)
def test_targets_that_are_let_pass(root: Path, output: dict[str, Any], said: str) -> None:
    key = {"file": "ROOT/run.key"}
    output = {**output, "other_columns": "keep", "fresh_noise": "accept"}
    assert checked(root, output=output, key=key).target == said
    # A run that committed is let finish.
    assert checked(root, output={"path": "ROOT/ours"}, run={"id": "then"}).target.startswith("there, with 1")


def test_the_input_is_no_target_whatever_its_name(root: Path) -> None:
    (root / "other").symlink_to(root / "source")
    delta_table(root / "copy", ALL)
    log = root / "copy" / "_delta_log" / f"{0:020}.json"
    log.write_text((root / "source" / "_delta_log" / log.name).read_text())  # the same table by another path
    with pytest.raises(SettingsError, match=r"output\.path: '.*copy' is the input; valid: another place"):
        checked(root, input={"path": "ROOT/source"}, output={"path": "ROOT/copy", "mode": "append"})


def test_a_folder_that_may_not_be_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def access(path: str, mode: int) -> bool:
        asked.append(path)
        return "locked" not in path

    (root / "locked").mkdir()
    monkeypatch.setattr(target_checks.os, "access", access)
    with pytest.raises(SettingsError, match=r"audit\.shareable: '.*locked/a/b' cannot be written"):
        checked(root, audit={"shareable": "ROOT/locked/a/b", "restricted": "ROOT/r"})
    assert asked == [str(root), str(root / "locked")]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"input": {"table": "s.t"}}, "is a name in Spark's catalog"),
        ({"policy": {"mask": [{"table": "people", "column": "name"}]}}, "a list of names in Spark's catalog"),
        ({"input": {"path": "s3://bucket/in", "format": "parquet"}}, "is not on this machine"),
        ({"input": {"path": "ROOT/*.parquet", "format": "parquet"}}, "is a pattern of paths"),
        ({"input": {"path": "ROOT/in.parquet", "format": "parquet", "options": {"mergeSchema": "true"}}}, "(mergeschema)"),
        ({"input": {"path": "ROOT/plain.csv", "format": "csv", "options": {"comment": "#"}}}, "(comment)"),
        ({"input": {"path": "ROOT/days", "format": "parquet"}}, "folders that are named by values"),
        ({"input": {"path": "ROOT/mixed", "format": "parquet"}}, "files with different columns"),
        ({"input": {"path": "ROOT/excel.csv", "format": "csv"}}, "a line that names its separator"),
        ({"output": {"path": "s3://bucket/out"}}, "a place that is not on this machine"),
        ({"output": {"table": "s.t"}, "audit": {"shareable": "ROOT/s", "restricted": "ROOT/r"}}, "name in Spark's catalog"),
        ({"input": {"path": "ROOT/broken"}}, "log is damaged"),
        ({"output": {"path": "ROOT/taken"}, "audit": {"shareable": "ROOT/audit", "restricted": "ROOT/r"}}, "unfinished run"),
        ({"input": {"path": "ROOT/long.json", "format": "json"}, "row_key": "rare"}, "more records than were looked at"),
    ],
)  # fmt: skip
def test_what_is_left_to_spark(root: Path, settings: dict[str, Any], why: str) -> None:
    one, other = pa.table({"body": ["x"]}), pa.table({"body": ["x"], "id": [1]})
    for folder, parts in (("days/day=1", (one,)), ("mixed", (one, other))):
        (root / folder).mkdir(parents=True)
        for number, part in enumerate(parts):
            pq.write_table(part, root / folder / f"{number}.parquet")
    (root / "excel.csv").write_text("sep=;\nid;body\n1;x\n")
    delta_table(root / "audit" / "runs", ["id"])
    (root / "broken" / "_delta_log").mkdir(parents=True)
    (root / "broken" / "_delta_log" / f"{0:020}.json").write_text("{")
    (root / "long.json").write_text((json.dumps({"body": "x" * 50}) + "\n") * 9_000)
    with pytest.raises(NeedsSparkError) as caught:
        checked(root, **settings)
    assert why in str(caught.value)
    assert MARKER not in str(caught.value)
    assert not isinstance(caught.value, DPTextError)


@pytest.mark.parametrize(
    ("second", "header", "what"),
    [
        ("body,id\nx,1\n", True, "does not name the columns of the first file"),
        ("id,text\n1,x\n", True, "does not name the columns of the first file"),
        ("x\n", False, "has not 2 fields"),
    ],
)
def test_csv_files_with_other_columns_are_refused_and_named(
    root: Path, second: str, header: bool, what: str
) -> None:
    (root / "headers").mkdir()
    for number in range(12):
        (root / "headers" / f"{number:02}.csv").write_text("id,body\n1,x\n")
    (root / "headers" / "empty.csv").touch()
    (root / "headers" / "07.csv").write_text(second)
    given = {"path": "ROOT/headers", "format": "csv", "options": {"header": header}}
    with pytest.raises(DataError) as refused:
        checked(root, input=given, columns=["body" if header else "_c1"])
    assert f"the first line of 1 file (07.csv) {what}" in str(refused.value)


def test_large_csv_files_that_one_core_reads_are_named(root: Path) -> None:
    with (root / "large.csv").open("w") as file:
        file.write("id,body\n1,x\n")
        file.truncate(LARGE_FILE + 1)
    given: dict[str, Any] = {"path": "ROOT/large.csv", "format": "csv"}
    assert checked(root, input=given).slow.startswith("1 file above 1 GB")
    assert checked(root, input={**given, "options": {"multiLine": False}}).slow == ""
    assert checked(root, input={"path": "ROOT/plain.csv", "format": "csv"}).slow == ""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_path_without_a_scheme_may_lead_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_here("/data/in")
    monkeypatch.setenv(name, "x")
    assert not is_here("/data/in")
    assert is_here("file:/data/in")


def test_a_log_that_was_cleaned_up_is_read_by_its_checkpoint(root: Path) -> None:
    log = root / "source" / "_delta_log"
    first = log / f"{0:020}.json"
    described = next(
        json.loads(one)["metaData"] for one in first.read_text().splitlines() if "metaData" in one
    )
    del described["configuration"], described["format"]
    pq.write_table(pa.table({"metaData": [None, described]}), log / f"{3:020}.checkpoint.parquet")
    first.unlink()
    (log / f"{4:020}.json").write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}) + "\n")
    assert checked(root, input={"path": "ROOT/source"}).columns == tuple(ALL)
