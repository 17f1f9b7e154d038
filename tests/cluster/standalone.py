"""A standalone Spark cluster of separate processes on this machine, and the job's wheel submitted to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.wheels import build_wheel

CHECKOUT = Path(__file__).resolve().parents[2]
SECONDS = 1800.0  # for one application, on a machine that does other things too
NEEDED = 4 << 30  # bytes: master, two workers, two executors, a driver and their Python
EXECUTOR = "CoarseGrainedExecutorBackend"  # in the command line of one
# Speculation starts a copy on another host only; these are two names of one loopback.
HOSTS = ("127.0.0.1", "localhost")
# Java processes of a minute do not live to win back what compiling costs, nor what checking a release's classes does.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -XX:MetaspaceSize=256m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


class MissingError(Exception):
    """This machine lacks what a cluster needs; the message says what."""


def require_machine() -> None:
    """Raise :class:`MissingError` where a cluster would not come up."""
    if sys.platform != "linux":
        raise MissingError("the cluster's processes are found and stopped by Linux's means")
    if shutil.which("bash") is None or shutil.which("ps") is None:
        raise MissingError("Spark's launchers need bash and ps")
    if psutil.virtual_memory().available < NEEDED:
        raise MissingError(f"{NEEDED >> 30} GiB of free memory are needed for a cluster")


def installed_wheel(folder: Path) -> Path:
    """Build the wheel of the checkout and unpack it into `folder`, which is then what PYTHONPATH names."""
    wheel = build_wheel(folder.parent / f"{folder.name}-wheels")
    shutil.unpack_archive(wheel, folder, "zip")
    return folder


def eventually(found: Callable[[], object], seconds: float, pause: float = 0.05) -> bool:
    """Ask again and again until the answer is true, or the time is over; return the last answer's truth."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found():
            return True
        time.sleep(pause)
    return bool(found())


@dataclass
class Application:
    """A running spark-submit."""

    process: subprocess.Popen[bytes]  # the launcher; the driver's Java, whose child is the driver's Python
    output: Path  # what both say
    ui: int  # port of the driver's pages
    seconds: float = 0.0
    _begun: float = field(default_factory=time.monotonic)

    @property
    def said(self) -> str:
        """What the driver printed so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def runs(self) -> bool:
        """Whether the driver lives."""
        return self.process.poll() is None

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        code = self.process.wait(SECONDS)
        self.seconds = time.monotonic() - self._begun
        return code

    def kill(self) -> None:
        """End the driver, both its halves at once, as a machine that loses power does."""
        if not self.runs:
            return  # its number may be another process's by now
        tree = psutil.Process(self.process.pid)
        for one in [tree, *tree.children(recursive=True)]:
            with _gone_already():
                one.kill()
        self.process.wait(SECONDS)


@contextmanager
def _gone_already() -> Iterator[None]:
    try:
        yield
    except psutil.NoSuchProcess:
        return


class Cluster:
    """One master and two workers of one core each. A context manager: afterwards none of its processes is left.

    Attributes:
        folder: everything that its processes write: `logs`, `work` (of executors), `local` (shuffles and spills), `tmp`,
            `events`.
        installed: the unpacked wheel.
        master: its address.
        pages: addresses of the master's and the workers' pages.
    """

    def __init__(self, folder: Path, installed: Path) -> None:
        """Take an empty folder, and the folder of :func:`built_wheel`."""
        import pyspark

        require_machine()
        self.folder, self.installed = folder, installed
        self.home = Path(pyspark.__file__).parent
        self.master = ""
        self.pages: list[str] = []
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._submitted: list[Application] = []
        self._jars = _delta_jars()
        for name in ("logs", "work", "local", "tmp", "events"):
            (folder / name).mkdir(parents=True)

    def __enter__(self) -> Cluster:
        """Start it, and wait until the workers are with the master."""
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *of: object) -> None:
        """End every process of it, and every driver that is still there."""
        for application in self._submitted:
            application.kill()
        for process in self.processes():
            with _gone_already():
                process.kill()
        for daemon in self._daemons:
            daemon.wait(30)

    def _start(self) -> None:
        deploy = "org.apache.spark.deploy"
        here = ["--host", HOSTS[0], "--port", "0", "--webui-port", "0"]
        log = self._daemon("master", f"{deploy}.master.Master", *here)
        self.master = self._told(log, r"Starting Spark master at (spark://\S+)")
        self.pages.append(self._page(log))
        logs = []
        for number, host in enumerate(HOSTS):
            work = str(self.folder / "work" / str(number))
            places = ["--host", host, "--webui-port", "0", "--work-dir", work]
            size = ["--cores", "1", "--memory", "1g"]
            logs.append(
                self._daemon(f"worker-{number}", f"{deploy}.worker.Worker", *places, *size, self.master)
            )
        for log in logs:
            self._told(log, r"(Successfully registered) with master")
            self.pages.append(self._page(log))

    def environment(self) -> dict[str, str]:
        """Return the environment of its processes: nothing of the checkout is importable there, only the wheel."""
        from dptext_spark.spark.session import find_java

        own = ("PYSPARK_", "SPARK_", "PYTHONPATH", "OMP_", "COV_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        return kept | {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_LOCAL_IP": HOSTS[0],
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{SHORT_LIVED} -Djava.io.tmpdir={self.folder / 'tmp'}",
            "PYSPARK_PYTHON": sys.executable,
            "TMPDIR": str(self.folder / "tmp"),
        }

    def _daemon(self, name: str, *command: str) -> Path:
        log = self.folder / "logs" / f"{name}.log"
        with log.open("wb") as sink:
            started = subprocess.Popen(
                [str(self.home / "bin" / "spark-class"), *command],
                env=self.environment(), cwd=self.folder / "tmp", stdout=sink, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._daemons.append(started)
        return log

    def _told(self, log: Path, pattern: str) -> str:
        def said() -> re.Match[str] | None:
            return re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))

        eventually(said, 180)
        found = said()
        if found is None:
            raise RuntimeError(f"{log.stem} did not start:\n{log.read_text(errors='replace')[-2000:]}")
        return found[1]

    def _page(self, log: Path) -> str:
        port = self._told(log, r"Successfully started service '(?:MasterUI|WorkerUI)' on port (\d+)")
        return f"http://{HOSTS[0]}:{port}"

    def processes(self) -> list[psutil.Process]:
        """Return the daemons and everything below them."""
        found = []
        for daemon in self._daemons:
            with _gone_already():
                top = psutil.Process(daemon.pid)
                found += [top, *top.children(recursive=True)]
        return found

    def executors(self) -> list[psutil.Process]:
        """Return the executors' Java processes."""
        return [p for p in self.processes() if EXECUTOR in _command(p)]

    def python_workers(self) -> list[psutil.Process]:
        """Return the Python processes that work on tasks: children of the process that a living executor forks them from.

        Those of an executor that was killed work on for a while, and nobody waits for them.
        """
        found = []
        for process in self.processes():
            with _gone_already():
                above = process.parent()
                if above is None or not all("pyspark.daemon" in _command(p) for p in (process, above)):
                    continue
                executor = above.parent()
                if executor is not None and EXECUTOR in _command(executor):
                    found.append(process)
        return found

    def submit(
        self,
        script: str | Path,
        *arguments: str,
        conf: dict[str, str],
        name: str,
        py_files: Sequence[Path] = (),
    ) -> Application:
        """Submit a Python application; return when it is with the master (or has ended already).

        Args:
            script: its file.
            arguments: its arguments.
            conf: further Spark settings.
            name: of the file with what it says.
            py_files: modules and ZIP files of packages that go along.
        """
        port = _free_port()
        java = f"{SHORT_LIVED} -Djava.io.tmpdir={self.folder / 'tmp'}"
        settings = {
            "spark.driver.host": HOSTS[0],
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": java,
            "spark.executor.memory": "768m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": java,
            "spark.executorEnv.PYTHONPATH": str(self.installed),
            "spark.deploy.maxExecutorRetries": "-1",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{self.folder / 'events'}",
            "spark.eventLog.compress": "false",
            "spark.ui.port": str(port),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            **conf,
        }
        options = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
        if py_files:
            options += ["--py-files", ",".join(map(str, py_files))]
        command = [
            str(self.home / "bin" / "spark-submit"), "--master", self.master, "--jars", self._jars,
            *options, str(script), *arguments,
        ]  # fmt: skip
        output = self.folder / "logs" / f"{name}.log"
        known = set(self._applications())
        with output.open("wb") as sink:
            process = subprocess.Popen(
                command, env=self.environment() | {"PYTHONPATH": str(self.installed)}, cwd=self.folder / "tmp",
                stdout=sink, stderr=subprocess.STDOUT,
            )  # fmt: skip
            application = Application(process, output, port)
            self._submitted.append(application)
            eventually(lambda: set(self._applications()) - known or not application.runs, 240)
        return application

    @contextmanager
    def power_cut(self, application: Application) -> Iterator[None]:
        """Kill driver and executors at once, and let the workers tidy nothing up for as long as the block lasts."""
        workers = [psutil.Process(daemon.pid) for daemon in self._daemons[1:]]
        for worker in workers:
            worker.suspend()
        try:
            for executor in self.executors():
                with _gone_already():
                    executor.kill()
            application.kill()
            yield
        finally:
            for worker in workers:
                worker.resume()

    def _applications(self) -> list[str]:
        state = json.loads(fetched(f"{self.pages[0]}/json/") or b"{}")
        return [one["id"] for part in ("activeapps", "completedapps") for one in state.get(part, ())]

    def failed_tasks(self) -> dict[str, int]:
        """Return how many task attempts ended otherwise than well, by Spark's reason, in all event logs so far.

        Attempts of speculation that lost the race count as TaskKilled; started copies as `speculative`.
        """
        counted: dict[str, int] = {}
        for file in (self.folder / "events").rglob("*"):
            if not file.is_file() or file.suffix == ".crc":
                continue
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if not line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    continue
                try:
                    event = json.loads(line)
                except ValueError:  # the driver was killed in the middle of it
                    continue
                reason = event["Task End Reason"]["Reason"]
                if reason != "Success":
                    counted[reason] = counted.get(reason, 0) + 1
                if event["Task Info"]["Speculative"]:
                    counted["speculative"] = counted.get("speculative", 0) + 1
        return counted


def fetched(address: str) -> bytes | None:
    """Return a page, or None where there is none (yet, or any more)."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return bytes(answer.read())
    except (OSError, urllib.error.HTTPError):
        return None


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it ended, or has not begun, while we looked
        return ""


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind((HOSTS[0], 0))
        return int(probe.getsockname()[1])


def _delta_jars() -> str:
    """Return the files of the Delta Lake that fits what is installed."""
    from dptext_spark.spark.session import delta_jars

    return delta_jars({})
