"""The dry run refuses what the run refuses, by the same rules, lets the same pass, and says what only the run can tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.locations import ELSEWHERE, is_here
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.model import target_checks
from dptext_spark.model.table_checks import DryRunResult
from dptext_spark.model.table_files import LARGE_FILE
from dptext_spark.spark.runner import dry_run, run
from tests.spark.job.dry_run_cases import ALL, CASES, MARKER, config_of, delta_table, write_places


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dry")
    write_places(folder)
    (folder / "in.csv").touch()
    (folder / "odd.csv").write_text("body,,Note,note\n1,2,3,4\n")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_places(tmp_path)
    return tmp_path


def silent(_: str) -> None:
    """Say nothing."""


@pytest.fixture
def checked(spark) -> Callable[..., DryRunResult]:
    return lambda root, **settings: dry_run(config_of(root, settings), silent)


@pytest.mark.long
def test_both_refuse_the_same_and_nothing_is_written(spark, places: Path) -> None:
    before = sorted(places.rglob("*"))
    differ: dict[str, list[str]] = {}
    for name, case in CASES.items():
        config = config_of(places, case.settings)
        said = []
        for refuses in (
            lambda config=config: dry_run(config, silent),
            lambda config=config: run(config, spark, progress=silent),
        ):
            try:
                refuses()
                said.append("let pass")
            except DPTextError as error:
                text = str(error) if case.alike else re.sub(r" \([^)]*\)", "", str(error))
                said.append(f"{type(error).__name__}: {text}")
        wrong = case.said.partition("(")[0].strip() not in said[0] or case.kind.__name__ not in said[0]
        if len(set(said)) > 1 or MARKER in str(said) or wrong:
            differ[name] = said
    assert not differ, "\n".join(f"{name}: {said}" for name, said in differ.items())
    assert sorted(places.rglob("*")) == before


@pytest.mark.parametrize("mode", ["incremental", "streaming"])
def test_a_stream_without_a_key_that_outlives_it_is_refused(checked, places: Path, mode: str) -> None:
    with pytest.raises(SettingsError, match=rf"^key: not set, but mode {mode} needs"):
        checked(places, mode=mode, row_key="id", input={"path": "ROOT/ours"})


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\xfd"], ids=["missing", "empty", "no UTF-8"])
def test_a_list_that_cannot_be_read_is_refused(checked, places: Path, tmp_path, content) -> None:
    file = tmp_path / "names.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"^policy\.mask\[0\]"):
        checked(places, policy={"mask": [{"file": str(file)}]})


@pytest.mark.parametrize(
    ("settings", "columns", "kept", "target"),
    [
        ({"row_key": "id"}, tuple(ALL), ("id", "body"), "new"),
        ({"row_key": "id", "record_key": "customer"}, tuple(ALL), ("id", "body"), "new"),  # nor does the record key go along
        ({}, tuple(ALL), ("body",), "new"),
        ({"row_key": "id", "output": {"path": "ROOT/out", "other_columns": ["id", "n"]}}, tuple(ALL), ("id", "body", "n"), "new"),
        ({"row_key": "id", "output": {"path": "ROOT/out", "other_columns": "keep"}}, tuple(ALL), tuple(ALL), "new"),
        ({"columns": ["body", "`a.b`", "`q\"u``o`"]}, tuple(ALL), ("body", "a.b", 'q"u`o'), "new"),
        ({"columns": ["a.b"]}, tuple(ALL), ("a.b",), "new"),
        ({"columns": ["meta.note", "tags"], "output": {"path": "ROOT/out", "other_columns": ["id", "meta.n"]}}, tuple(ALL),
         ("id", "meta", "tags"), "new"),
        ({"input": {"path": "ROOT/plain.csv", "format": "csv"}}, ("id", "body"), ("body",), "new"),
        ({"input": {"path": "ROOT/semicolon.csv", "format": "csv", "options": {"sep": ";"}}}, ("id", "body"), ("body",), "new"),
        ({"input": {"path": "ROOT/utf16.csv", "format": "csv", "options": {"encoding": "UTF-16"}}}, ("id", "body"), ("body",),
         "new"),
        ({"input": {"path": "ROOT/rows.csv", "format": "csv", "options": {"header": "false"}}, "columns": ["_c1"]},
         ("_c0", "_c1"), ("_c1",), "new"),
        ({"input": {"path": "ROOT/odd.csv", "format": "csv"}}, ("body", "_c1", "Note2", "note3"), ("body",), "new"),
        ({"input": {"path": "ROOT/records.json", "format": "json"}}, ("body", "id", "n"), ("body",), "new"),
        ({"input": {"path": "file:ROOT/in.parquet", "format": "parquet"}}, tuple(ALL), ("body",), "new"),
        ({"input": {"path": "ROOT/source"}}, tuple(ALL), ("body",), "new"),
        ({"output": {"path": "ROOT/empty"}}, tuple(ALL), ("body",), "new"),
        ({"output": {"path": "ROOT/made"}}, tuple(ALL), ("body",), "exists, empty"),
        ({"output": {"path": "ROOT/ours", "other_columns": "keep", "mode": "overwrite"}, "run": {"second_release": "accept"}},
         tuple(ALL), tuple(ALL), "exists, with 1 release of runs; output.mode overwrite"),
        ({"output": {"path": "ROOT/created", "other_columns": "keep", "mode": "append"}}, tuple(ALL), tuple(ALL),
         "exists, with 0 releases of runs; output.mode append"),
        ({"output": {"path": "ROOT/ours"}, "run": {"id": "then"}}, tuple(ALL), ("body",),
         "exists, with 1 release of runs; output.mode error"),
    ],
)  # fmt: skip
def test_what_is_let_pass(checked, places: Path, settings, columns, kept, target: str) -> None:
    found = checked(places, **settings)
    assert (found.columns, found.kept, found.target) == (columns, kept, target)


def test_what_only_the_run_can_tell(checked, places: Path) -> None:
    assert checked(places, row_key="id", record_key="customer").open == (
        "whether the input has rows",
        "whether id is unique and never NULL",
        "whether customer is never NULL",
        "whether the lexicon has most of the words",
        "how much of its limit the ledger has left",
    )


def test_the_input_is_no_target_whatever_its_name(checked, root: Path) -> None:
    delta_table(root / "copy", ALL)
    log = root / "copy" / "_delta_log" / f"{0:020}.json"
    log.write_text((root / "source" / "_delta_log" / log.name).read_text())  # the same table by another path
    with pytest.raises(SettingsError, match=r"output\.path: '.*copy' is the input. Choose another place"):
        checked(root, input={"path": "ROOT/source"}, output={"path": "ROOT/copy", "mode": "append"})


def test_a_folder_that_may_not_be_written(checked, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "locked").mkdir()
    monkeypatch.setattr(target_checks.os, "access", lambda path, mode: "locked" not in path)
    with pytest.raises(SettingsError, match=r"audit\.shareable: '.*locked/a/b' cannot be written"):
        checked(root, audit={"shareable": "ROOT/locked/a/b", "restricted": "ROOT/r"})


def test_large_csv_files_that_one_core_reads_are_named(checked, root: Path) -> None:
    with (root / "large.csv").open("w") as file:
        file.write("id,body\n1,x\n")
        file.truncate(LARGE_FILE + 1)
    given: dict[str, Any] = {"path": "ROOT/large.csv", "format": "csv"}
    slow = checked(root, input=given).slow
    assert "1 file above 1 GB" in slow
    assert "multiLine: false" in slow
    # One line of a terminal, so that none of it is cut.
    assert len(f"{'slow':<13}{slow.replace('1 file', '9,999 files')}") <= 100
    assert checked(root, input={**given, "options": {"multiLine": False}}).slow == ""
    assert checked(root, input={"path": "ROOT/plain.csv", "format": "csv"}).slow == ""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_path_without_a_scheme_may_lead_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_here("/data/in")
    monkeypatch.setenv(name, "x")
    assert not is_here("/data/in")
    assert is_here("file:/data/in")
