"""Which Java a command starts: a brief one where all that it reads is small and here, and nobody chose another."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.locations import ELSEWHERE
from dptext_spark.runtime.progress import silent
from dptext_spark.spark import runner
from dptext_spark.spark.session import session as module
from dptext_spark.spark.session.session import (
    JAVA_VARIABLES,
    SHORT_LIVED,
    SMALL_BYTES,
    SMALL_FILES,
    command_session,
)

WORD = "spark.driver.extraJavaOptions"


@pytest.fixture
def settings_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., object]:
    """The settings that a command's session gets, of a machine where nothing is set."""
    given: list[object] = []
    monkeypatch.setattr(module, "spark_session", lambda **chosen: given.append(chosen["settings"]))
    for name in (*ELSEWHERE, "PYSPARK_GATEWAY_PORT", *JAVA_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    def settings(*places: object) -> object:
        command_session(*map(str, places))
        return given[-1]

    return settings


def sparse(file: Path, size: int) -> Path:
    with file.open("wb") as written:
        written.truncate(size)
    return file


def test_small_tables_of_this_machine(settings_of: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "table" / "part").mkdir(parents=True)
    one = sparse(tmp_path / "table" / "part" / "one.parquet", SMALL_BYTES)
    assert settings_of(tmp_path / "table") == SHORT_LIVED
    assert settings_of(one, tmp_path / "table", f"file://{one}", f"file:{one}") == SHORT_LIVED
    sparse(tmp_path / "table" / "two.parquet", 1)
    assert settings_of(one) == SHORT_LIVED
    assert settings_of(one, tmp_path / "table") is None  # a byte too many


def test_many_files_and_what_is_not_known_here_are_not_small(
    settings_of: Callable[..., object], tmp_path: Path
) -> None:
    (tmp_path / "table").mkdir()
    for number in range(SMALL_FILES):
        (tmp_path / "table" / f"{number}.json").touch()
    assert settings_of(tmp_path / "table") == SHORT_LIVED
    (tmp_path / "table" / "last.json").touch()
    for place in (tmp_path / "table", "s3a://bucket/table", "catalog.schema.table", "/nowhere/table", "/*"):
        assert settings_of(place) is None


@pytest.mark.parametrize(("mode", "brief"), [("batch", True), ("incremental", True), ("streaming", False)])
def test_a_stream_that_stays_has_javas_own_choice(
    settings_of: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mode: str,
    brief: bool,
) -> None:
    class StartedError(Exception):
        """Stands for what a session would do."""

    started: list[object] = []

    def starts(settings: object = None) -> None:
        started.append(settings)
        raise StartedError

    monkeypatch.setattr(module, "spark_session", starts)
    monkeypatch.setattr(runner, "spark_session", starts)
    (tmp_path / "in").mkdir()
    given = {"input": {"path": str(tmp_path / "in")}, "columns": ["body"], "row_key": "id", "mode": mode}
    key = {} if mode == "batch" else {"key": {"env": "RUN_KEY"}}
    monkeypatch.setenv("RUN_KEY", os.urandom(32).hex())
    with pytest.raises(StartedError):
        runner.run_by_command(parse_config({**given, **key, "output": {"path": "/out"}}), silent)
    assert started == [SHORT_LIVED if brief else None]
    with pytest.raises(StartedError):
        runner.dry_run(parse_config({**given, **key, "output": {"path": "/out"}}), silent)
    assert started[1:] == [SHORT_LIVED]  # it ends with its work in every mode


def test_a_java_that_somebody_chose_is_left(
    settings_of: Callable[..., object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = sparse(tmp_path / "table.csv", 10)
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text("spark.driver.memory 2g\n")
    assert settings_of(table) == SHORT_LIVED
    defaults.write_text(f"{WORD} -Dhttps.proxyHost=proxy\n")
    assert settings_of(table) is None
    defaults.unlink()
    for name in JAVA_VARIABLES:
        with monkeypatch.context() as patch:
            patch.setenv(name, "-XX:+UseG1GC")
            assert settings_of(table) is None
    assert settings_of(table) == SHORT_LIVED
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert settings_of(table) is None
