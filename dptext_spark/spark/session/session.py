"""The Spark session of a run: the active one as it is, else a local one with Delta Lake.

What Spark prints while it starts is held back: ninety lines about its JARs, of use only where it fails.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import pwd
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dptext_spark.config.locations import is_here, normal_path
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.runtime.paths import user_cache
from dptext_spark.spark.session.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Setting = str | int | float | bool

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OLDEST, NEWEST = (4, 0), (4, 2)

# A Java that lives for a minute: what its second compiler and a collector of several threads would gain comes too late.
SHORT_LIVED: dict[str, Setting] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
}
SMALL_BYTES, SMALL_FILES = 64 << 20, 1_000  # of a table that takes less than a minute
JAVA_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")

WAITING = "Waiting until another process of this user has started Spark"
PATIENCE = 600.0  # seconds that one start waits for another's; the first one fetches JARs
POLL = 0.1

_CURE = "It comes with the extra [spark]: pip install 'dptext-spark[spark]'."
_MEBIBYTE = 1 << 20
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# Names that a platform sets where Delta Lake is built in and needs no extension.
_DELTA_BUILT_IN = ("DATABRICKS_RUNTIME_VERSION",)

_log = logging.getLogger(__name__)
_KEPT_BYTES = 1 << 16


def spark_session(
    app_name: str = "dptext",
    *,
    master: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
) -> SparkSession:
    """Return the active session as it is; where there is none, start one.

    An active session keeps all of its settings: `app_name`, `master`, `settings` and `warehouse` are then
    not used. Under spark-submit, or with SPARK_REMOTE set, Spark's own settings stand and only `settings` is
    added. Otherwise a local session with Delta Lake is started; the first time Spark downloads its JARs.

    Args:
        app_name: the name that Spark shows.
        master: where to run; ``local[*]`` if None.
        settings: Spark settings by name, such as ``spark.driver.memory``; they win over those chosen here.
        warehouse: the folder of managed tables; Spark's own choice (in the working directory) if None.

    Raises:
        SettingsError: pyspark, Delta Lake or a Java is missing or too old, or a setting has no Spark name.
        RunError: Spark did not start: the message holds the last lines that it printed, or says which other start it waited
            for in vain.

    Examples:
        >>> spark = dps.spark_session()
        >>> dps.spark_session(master="local[2]") is spark  # the active one, as it is
        True
    """
    require_pyspark()
    given = _spelled(settings or {})
    session = _active()
    if session is None and _is_submitted():
        session = _submitted(given)
    if session is not None:
        _require_delta(session)
        return session
    return _local(app_name, master or "local[*]", given, warehouse)


def brief_session() -> SparkSession:
    """Return the active session, or start one that reads a small table and ends; see :func:`spark_session`.

    A local one compiles by the JVM's first compiler alone and collects on one thread, which halves its work up to there. The
    folder of managed tables, which Spark makes when it starts, is a temporary one: nothing is left in the working directory.
    """
    if _is_submitted():
        return spark_session()
    warehouse = tempfile.mkdtemp(prefix="dptext-warehouse-")
    atexit.register(shutil.rmtree, warehouse, ignore_errors=True)
    return spark_session(settings=short_lived(), warehouse=warehouse)


def command_session(*places: str) -> SparkSession:
    """Return the active session, or start the one of a command that reads these places and ends with its work.

    Where all that it reads lies on this machine and is small, a local one has the Java of :func:`brief_session`.

    Args:
        places: paths, or names of tables, whose size is not known here.
    """
    brief = not _is_submitted() and all(map(_is_small, places))
    return spark_session(settings=short_lived() if brief else None)


def _is_small(place: str) -> bool:
    """Whether a path leads to few files of this machine with few bytes."""
    root = Path(normal_path(place))
    if not is_here(place) or not root.exists():
        return False
    size = count = 0
    for folder, _, names in os.walk(root) if root.is_dir() else [(str(root.parent), [], [root.name])]:
        for name in names:
            with suppress(OSError):  # it is gone meanwhile, and its size with it
                size += os.stat(os.path.join(folder, name)).st_size
            count += 1
            if size > SMALL_BYTES or count > SMALL_FILES:
                return False
    return True


def short_lived() -> Mapping[str, Setting] | None:
    """Return the settings of a Java that lives for a minute; None where the user chose another."""
    return None if _chooses_java() else SHORT_LIVED


def _chooses_java() -> bool:
    """Whether the user says how Java is to run: ours would stand in the place of that, or contradict it."""
    if any("-XX:" in os.environ.get(name, "") for name in JAVA_VARIABLES):
        return True
    require_pyspark()
    import pyspark

    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    file = Path(os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")) / "spark-defaults.conf"
    try:
        return "spark.driver.extraJavaOptions" in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def context_of(spark: SparkSession) -> Any:
    """Return the context of a classic session; None on Spark Connect, which has none."""
    return getattr(spark, "_sc", None)


def is_stopped(spark: SparkSession) -> bool:
    """Whether a session was stopped. A classic one is not asked for anything then: it would start another Spark."""
    context = context_of(spark)
    if context is None:
        return bool(getattr(spark, "is_stopped", False))
    return context._jsc is None or bool(context._jsc.sc().isStopped())


def cores_of(spark: SparkSession) -> int | None:
    """Return how many tasks run at once (classic sessions)."""
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
        raise SettingsError(f"Spark: pyspark {pyspark.__version__} is not supported; valid: {valid}.")


def _active() -> SparkSession | None:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _is_submitted() -> bool:
    """Whether something else configures the session that this process would start."""
    return bool(os.environ.get("SPARK_REMOTE")) or "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted(given: Mapping[str, str]) -> SparkSession:
    """The session of a driver that something else configured; its master and name are not ours to choose."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in given.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _require_delta(session: SparkSession) -> None:
    if any(name in os.environ for name in _DELTA_BUILT_IN):
        return
    if _answers_as_delta(session) if context_of(session) is None else _has_extension(session):
        return
    raise SettingsError(
        "Spark: the active session has no Delta Lake. Stop it, or start it with the package "
        f"io.delta:delta-spark that fits Spark {session.version} and with the settings "
        f"spark.sql.extensions={DELTA_EXTENSION} and spark.sql.catalog.spark_catalog={DELTA_CATALOG}."
    )


def _has_extension(session: SparkSession) -> bool:
    return DELTA_EXTENSION in (session.conf.get("spark.sql.extensions", "") or "")


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

    try:
        from delta import configure_spark_with_delta_pip
    except ImportError:
        raise SettingsError(f"Spark: delta-spark is not installed. {_CURE}") from None
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    # Workers would take whatever python3 stands first on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    chosen = {**local_settings(master), **given}
    if warehouse is not None:
        chosen["spark.sql.warehouse.dir"] = str(Path(warehouse).absolute())
    extensions = [name for name in chosen.get("spark.sql.extensions", "").split(",") if name]
    if DELTA_EXTENSION not in extensions:
        chosen["spark.sql.extensions"] = ",".join([*extensions, DELTA_EXTENSION])
    builder: Any = SparkSession.builder.appName(app_name).master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    packages = [name for name in given.get("spark.jars.packages", "").split(",") if name]
    builder = configure_spark_with_delta_pip(builder, extra_packages=packages)

    _leave_no_empty(Path("spark-warehouse").absolute(), chosen)
    _log.info("Starting Spark on %s with Java %d from %s.", master, java.version, java.source)
    with _one_at_a_time(), held_stderr() as printed:
        try:
            session: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise RunError(_did_not_start(error, printed())) from None
    return session


def _leave_no_empty(folder: Path, chosen: Mapping[str, str]) -> None:
    """See to it that Spark's own folder of managed tables goes when this process ends, if this start makes it and it is empty."""
    if "spark.sql.warehouse.dir" not in chosen and not folder.exists():
        atexit.register(_remove_if_empty, folder)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # it holds a table, or is gone
        folder.rmdir()


@contextmanager
def _one_at_a_time(patience: float = PATIENCE) -> Iterator[None]:
    """Let one session of this user start at a time: what fetches the JARs does not expect company in its cache.

    Raises:
        RunError: another process held the lock for `patience` seconds.
    """
    place = user_cache() / "spark-start.lock"
    with place.open("w") as file:
        _lock(file.fileno(), place, patience)
        yield


def _lock(handle: int, place: Path, patience: float) -> None:
    """Take a lock; say once that another process holds it, and wait for so many seconds."""
    until, said = time.monotonic() + patience, False
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise RunError(
                    f"Spark did not start: another process of this user has been starting Spark for {patience:g} s and holds "
                    f"{str(place)!r}. End that process, or try again when its session has started."
                ) from None
        if not said:
            # A warning, which Python prints where nobody set up logging: who waits wants to know for what.
            _log.warning("%s (it holds %s), for %g s at most.", WAITING, place, patience)
            said = True
        time.sleep(POLL)


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
        chosen |= {
            # Nothing of a local session is to be seen from the network.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{_driver_mebibytes()}m",
            "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
            # Delta reads a table's log in as many tasks as a cluster would want: 50.
            "spark.databricks.delta.snapshotPartitions": "1",
        }
    if not _account_home_writable():
        chosen["spark.jars.ivy"] = str(user_cache() / "ivy")
    return chosen


def _account_home_writable() -> bool:
    """Whether Spark can keep downloaded JARs where it wants to: under the account's home, whatever HOME says."""
    try:
        return os.access(pwd.getpwuid(os.getuid()).pw_dir, os.W_OK)
    except KeyError:
        return False


def _driver_mebibytes() -> int:
    """A quarter of the memory that this process may use, from 1 to 8 GiB; Python's workers need theirs."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for place in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(place).read_text()))
        except (OSError, ValueError):
            continue
    return max(1024, min(8192, min(limits) // 4 // _MEBIBYTE))


def _spelled(settings: Mapping[str, Setting]) -> dict[str, str]:
    """The settings as Spark spells their values."""
    for name in settings:
        if not name.startswith("spark."):
            raise SettingsError(f"settings: {name!r} is no Spark setting; their names begin with 'spark.'.")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def _did_not_start(error: Exception, printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith("\tat ")]
    if any("unresolved dependenc" in line or "UNRESOLVED DEPENDENC" in line for line in lines):
        cause = "its packages could not be had; no network, and no mirror in spark.jars.ivySettings?"
    else:
        cause = f"{type(error).__name__}; the last lines that it printed follow."
    return "\n".join([f"Spark did not start: {cause}", *lines[-12:]])


class _Relay:
    """A pipe in the place of standard error, read by a thread: kept at first, passed on after `open`."""

    def __init__(self) -> None:
        self._target = os.dup(2)
        self._source, sink = os.pipe()
        os.dup2(sink, 2, inheritable=True)
        os.close(sink)
        self._lock = threading.Lock()
        self._kept = bytearray()
        self._passing = False
        threading.Thread(target=self._pump, name="stderr-relay", daemon=True).start()

    def _pump(self) -> None:
        # Ends when the last holder of the other end is gone: the JVM keeps it as its own standard error.
        while chunk := os.read(self._source, _KEPT_BYTES):
            with self._lock:
                if self._passing:
                    os.write(self._target, chunk)
                else:
                    self._kept = (self._kept + chunk)[-_KEPT_BYTES:]
        os.close(self._source)
        os.close(self._target)

    def open(self) -> None:
        os.dup2(self._target, 2, inheritable=True)
        with self._lock:
            self._passing = True

    def kept(self) -> str:
        with self._lock:
            return self._kept.decode("utf-8", "replace")


@contextmanager
def held_stderr() -> Iterator[Callable[[], str]]:
    """Keep what this process and the children that it starts write to standard error, while the block runs.

    Afterwards the process has its own standard error back, and what those children still write is passed on.

    Yields:
        a function that returns the last 64 kB kept so far, as text.
    """
    relay = _Relay()
    try:
        yield relay.kept
    finally:
        relay.open()
