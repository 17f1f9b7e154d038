"""What can happen to the job on a cluster, and what must hold afterwards. The tests and `make chaos` share these."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from tests.cluster.standalone import Application, Cluster, eventually
from tests.cluster.two_outputs import scan
from tests.core.unstyled import UNSTYLED

ROWS = 40_000
TASKS = 16
BATCH = 50  # rows: small batches make a write that lasts long enough to be disturbed
RUN = "the-run"
BEGUN = 0.5  # seconds of a core that a Python worker has used before it counts as one at work
# Killing a worker that waits fails no task: Spark makes another. One that is held so many seconds is in the middle of a task, or
# is given one in the meantime.
HELD = 4.0
PATIENCE = 400.0  # seconds to wait for what comes within ten on a quiet machine
TIMED = ("write_seconds", "tokens_per_second")  # what may differ between two runs that did the same
SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.1",
}


def write_input(folder: Path, rows: int = ROWS) -> None:
    """Write a Parquet table of tickets, one row group for each task of the job."""
    names = ("me", "Martin", "sales")
    texts = [f"please call {names[i % 3]} about order {i}, the money is late again" for i in range(rows)]
    customers = [i // 3 for i in range(rows)]
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "customer": customers, "body": texts})
    pq.write_table(table, folder, row_group_size=-(-rows // TASKS), compression="none")


@dataclass(frozen=True)
class Outcome:
    """What a finished run left: the committed rows, and its account."""

    commits: int  # versions of the target
    rows: int  # committed
    digest: str  # of the committed rows, sorted
    status: str  # of the row in `runs`
    counters: dict[tuple[str | None, str], float | None]  # metrics by column and name, but times


def live_rows(folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of versions of a small Delta table, and its rows: by the log's text, without Spark."""
    files: dict[str, None] = {}
    commits = sorted((folder / "_delta_log").glob("*.json")) if folder.is_dir() else []
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            for name in ("add", "remove"):
                if name in action:
                    assert not action[name].get("deletionVector")
                    path = unquote(action[name]["path"])
                    files.update({path: None}) if name == "add" else files.pop(path, None)
    rows = [row for file in files for row in pq.read_table(folder / file, partitioning=None).to_pylist()]
    return len(commits), rows


@dataclass
class Job:
    """The job with one input, key and run id, into a folder of its own."""

    base: Path  # holds the input, the key, and what comes out
    name: str  # of the target
    settings: dict[str, Any] = field(default_factory=dict)  # beside input and output
    attempts: int = 0

    @property
    def target(self) -> Path:
        """The folder of the sanitized table."""
        return self.base / self.name

    def submit(self, cluster: Cluster, conf: dict[str, str] | None = None) -> Application:
        """Submit the job from the unpacked wheel."""
        self.attempts += 1
        config = {
            **UNSTYLED, "input": {"path": str(self.base / "in.parquet"), "format": "parquet"}, "columns": ["body"],
            "output": {"path": str(self.target), "other_columns": "keep"}, "key": {"file": str(self.base / "key")},
            "row_key": "id", "run": {"id": RUN}, **self.settings,
        }  # fmt: skip
        file = self.base / f"{self.name}.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        size = (self.base / "in.parquet").stat().st_size // TASKS + 2_000
        packing = {"spark.sql.files.maxPartitionBytes": str(size), "spark.sql.files.openCostInBytes": "0"}
        packing["spark.sql.execution.arrow.maxRecordsPerBatch"] = str(BATCH)
        script = cluster.installed / "dptext_spark" / "jobs" / "privatize.py"
        name = f"{self.name}-{self.attempts}"
        return cluster.submit(script, str(file), conf={**packing, **(conf or {})}, name=name)

    def data_files(self) -> list[Path]:
        """Return the data files that lie in the target's folder."""
        return [f for f in self.target.rglob("*.parquet") if "_delta_log" not in f.parts]

    def committed(self) -> bool:
        """Whether the target has a version."""
        return any((self.target / "_delta_log").glob("*.json"))

    def outcome(self) -> Outcome:
        """Read what is there."""
        commits, rows = live_rows(self.target)
        audit = self.base / f"{self.name}_audit"
        runs = [row for row in live_rows(audit / "shareable" / "runs")[1] if row["run_id"] == RUN]
        metrics = live_rows(audit / "restricted" / "metrics")[1]
        assert len(runs) == 1, f"{len(runs)} rows of the run in the table of runs"
        lines = sorted(repr(sorted(row.items())) for row in rows)
        return Outcome(
            commits,
            len(rows),
            hashlib.sha256("\n".join(lines).encode()).hexdigest(),
            str(runs[0]["status"]),
            {(m["column"], m["metric"]): m["value"] for m in metrics if m["metric"] not in TIMED},
        )


def write_key(base: Path) -> None:
    """Write a key file: the draws of all runs under `base` are the same."""
    key = base / "key"
    key.write_bytes(hashlib.sha256(b"the key of these tests").digest())
    key.chmod(0o600)


def differences(job: Job, calm: Outcome) -> list[str]:
    """Return what does not hold of a job that came to its end: one sentence each, none if all is well."""
    found = job.outcome()
    said = []
    if found.commits != 1:
        said.append(f"the target has {found.commits} versions")
    if found.rows != calm.rows:
        said.append(f"{found.rows} rows came out, {calm.rows} of an undisturbed run")
    if found.digest != calm.digest:
        said.append("the output is another one than an undisturbed run's")
    if found.counters != calm.counters:
        names = sorted(
            f"{column}.{name}"
            for column, name in found.counters.keys() | calm.counters.keys()
            if found.counters.get((column, name)) != calm.counters.get((column, name))
        )
        said.append(f"counters differ: {', '.join(names[:5])}")
    if found.status not in ("succeeded", "recovered"):
        said.append(f"the run's status is {found.status}")
    scanned = scan(job.target)
    if scanned.twice:
        said.append(f"records have two outputs in the target's files: {scanned.twice}")
    if scanned.unknown:
        said.append(f"unfinished files are the beginning of no finished one: {scanned.unknown}")
    return said


# What is done to a run. Each returns how often it struck.
Fault = Callable[[Cluster, Job, Application, random.Random], int]


def _awaited(processes: Callable[[], list[psutil.Process]], application: Application) -> list[psutil.Process]:
    """Return the processes as soon as there are any; none where the application ends before."""
    found: list[psutil.Process] = []

    def there() -> bool:
        found[:] = processes()
        return bool(found)

    eventually(lambda: not application.runs or there(), PATIENCE, 0.02)
    return found if application.runs else []


def _struck(
    processes: Callable[[], list[psutil.Process]],
    application: Application,
    chance: random.Random,
    held: float = 0.0,
) -> int:
    """Kill one of the processes as soon as there is one; hold it for so many seconds before."""
    found = _awaited(processes, application)
    if not found:
        return 0
    victim = chance.choice(found)
    try:
        if held:
            victim.send_signal(signal.SIGSTOP)
            after(held, application)
        victim.kill()
    except psutil.NoSuchProcess:
        return 0
    return 1


def _used(worker: psutil.Process) -> float:
    """Return the seconds of a core that a process has used; 0 where it is gone."""
    try:
        used = worker.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(used.user + used.system)


def busy(workers: list[psutil.Process]) -> list[psutil.Process]:
    """Return the Python workers that are at work, or were a moment ago."""
    before = [_used(one) for one in workers]
    time.sleep(0.1)
    return [one for one, used in zip(workers, before, strict=True) if _used(one) > max(used, BEGUN)]


def while_writing(job: Job, application: Application, files: int = 1) -> bool:
    """Wait until so many data files were begun; False if the run ended before."""
    eventually(lambda: len(job.data_files()) >= files or not application.runs, PATIENCE, 0.02)
    return application.runs and not job.committed()


def kill_executor(cluster: Cluster, job: Job, application: Application, chance: random.Random) -> int:
    """Kill an executor."""
    return _struck(cluster.executors, application, chance)


def kill_python_worker(cluster: Cluster, job: Job, application: Application, chance: random.Random) -> int:
    """Kill a Python worker in the middle of a task."""
    return _struck(lambda: busy(cluster.python_workers()), application, chance, HELD)


@contextmanager
def frozen_python_worker(
    cluster: Cluster, application: Application, chance: random.Random
) -> Iterator[int | None]:
    """Stop a Python worker for as long as the block lasts: its task becomes one that Spark begins again elsewhere.

    Yields:
        The process's number, or None where there was none any more.
    """
    found = _awaited(lambda: busy(cluster.python_workers()), application)
    if not found:
        yield None
        return
    victim = chance.choice(found)
    with suppress(psutil.NoSuchProcess):
        victim.send_signal(signal.SIGSTOP)
    try:
        yield victim.pid
    finally:
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGCONT)


def freeze_python_worker(cluster: Cluster, job: Job, application: Application, chance: random.Random) -> int:
    """Stop a Python worker until the run has committed without it, or cannot."""
    with frozen_python_worker(cluster, application, chance) as victim:
        eventually(lambda: job.committed() or not application.runs, PATIENCE)
    return int(victim is not None)


def storm(cluster: Cluster, job: Job, application: Application, chance: random.Random) -> int:
    """Stop a Python worker, kill the executor of another one, and kill the Python worker of the executor that replaces it.

    The run cannot end in between: what is left to do is left to one executor, which is always the one that is struck.
    """
    if not while_writing(job, application, len(job.data_files()) + 1):
        return 0
    with frozen_python_worker(cluster, application, chance) as frozen:
        before = {p.pid for p in cluster.executors()}
        others = [p for p in cluster.executors() if frozen not in {c.pid for c in p.children(recursive=True)}]
        for other in others:
            other.kill()

        def newcomers() -> list[psutil.Process]:
            new = [p for p in cluster.executors() if p.pid not in before]
            below = {c.pid for p in new for c in p.children(recursive=True)}
            return busy([p for p in cluster.python_workers() if p.pid in below])

        struck = _struck(newcomers, application, chance, HELD)
        eventually(lambda: job.committed() or not application.runs, PATIENCE)
    return int(frozen is not None) + len(others) + struck


def kill_driver(cluster: Cluster, job: Job, application: Application, chance: random.Random) -> int:
    """Kill the driver, now."""
    if not application.runs:
        return 0
    application.kill()
    # Its executors notice within seconds; what they still write must be right too.
    eventually(lambda: not cluster.executors(), 60)
    return 1


def kill_driver_after_commit(
    cluster: Cluster, job: Job, application: Application, chance: random.Random
) -> int:
    """Kill the driver as soon as the target has its version, before the account."""
    eventually(lambda: job.committed() or not application.runs, PATIENCE, 0.005)
    return kill_driver(cluster, job, application, chance)


def after(seconds: float, application: Application) -> None:
    """Let time pass, unless the run ends."""
    until = time.monotonic() + seconds
    eventually(lambda: not application.runs or time.monotonic() > until, seconds + 1)
