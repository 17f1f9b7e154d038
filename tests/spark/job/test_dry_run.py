"""The dry run by files, the dry run by Spark and the run refuse the same, by the same rules, and let the same pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dptext_spark.errors import DPTextError
from dptext_spark.model.dry_run import check_here
from dptext_spark.model.tables.local_schema import ELSEWHERE
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.runner import check_by_spark, run
from tests.spark.job.dry_run_cases import CASES, MARKER, config_of, write_places


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dry")
    write_places(folder)
    (folder / "in.csv").touch()
    return folder


def silent(_: str) -> None:
    """Say nothing."""


@pytest.mark.long
def test_all_three_refuse_the_same(spark, root: Path) -> None:
    quiet: Steps = silent
    before = sorted(root.rglob("*"))
    differ: dict[str, list[str]] = {}
    for name, case in CASES.items():
        config = config_of(root, case.settings)
        said = []
        for refuses in (
            lambda config=config: check_here(config),
            lambda config=config: check_by_spark(config, quiet),
            lambda config=config: run(config, spark, progress=quiet),
        ):
            try:
                refuses()
                said.append("let pass")
            except DPTextError as error:
                text = str(error) if case.alike else re.sub(r" \([^)]*\)", "", str(error))
                said.append(f"{type(error).__name__}: {text}")
        if len(set(said)) > 1 or MARKER in str(said):
            differ[name] = said
    assert not differ, "\n".join(f"{name}: {said}" for name, said in differ.items())
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    "settings",
    [
        {"row_key": "id", "record_key": "customer"},
        {"columns": ["meta.note", "tags", "`a.b`"], "output": {"path": "ROOT/out", "other_columns": ["id", "meta.n"]}},
        {"input": {"path": "ROOT/semicolon.csv", "format": "csv", "options": {"sep": ";"}}},
        {"input": {"path": "ROOT/rows.csv", "format": "csv", "options": {"header": "false"}}, "columns": ["_c1"]},
        {"input": {"path": "ROOT/odd.csv", "format": "csv"}},
        {"input": {"path": "ROOT/records.json", "format": "json"}},
        {"input": {"path": "ROOT/source"}},
        {"output": {"path": "ROOT/made"}},
        {"output": {"path": "ROOT/ours", "other_columns": "keep", "mode": "append", "fresh_noise": "accept"}},
    ],
)  # fmt: skip
def test_both_dry_runs_see_the_same_table(spark, root: Path, settings: dict[str, object]) -> None:
    (root / "odd.csv").write_text("body,,Note,note\n1,2,3,4\n")
    config = config_of(root, settings)
    files, by_spark = check_here(config), check_by_spark(config, silent)
    assert (files.by, by_spark.by) == ("pyarrow", "Spark")
    for name in ("columns", "kept", "target"):
        assert getattr(files, name) == getattr(by_spark, name), name
    assert files.open == by_spark.open
