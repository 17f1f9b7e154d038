"""Which Java a command starts: a brief one where all that it reads is small and here, and nobody chose another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dptext_spark.model.tables.local_schema import ELSEWHERE
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


def test_many_files(settings_of: Callable[..., object], tmp_path: Path) -> None:
    tmp_path = tmp_path / "table"
    tmp_path.mkdir()
    for number in range(SMALL_FILES):
        (tmp_path / f"{number}.json").touch()
    assert settings_of(tmp_path) == SHORT_LIVED
    (tmp_path / "last.json").touch()
    assert settings_of(tmp_path) is None


@pytest.mark.parametrize("place", ["s3a://bucket/table", "catalog.schema.table", "/nowhere/table", "/*"])
def test_what_is_not_known_here_is_not_small(settings_of: Callable[..., object], place: str) -> None:
    assert settings_of(place) is None


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
