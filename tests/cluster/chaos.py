"""`python -m tests.cluster.chaos N [SEED]`: N runs of the job on a cluster, each disturbed at random times, and a tally.

Ends with 1 where anything did not hold.
"""

from __future__ import annotations

import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.cluster import faults
from tests.cluster.faults import Job, Outcome
from tests.cluster.standalone import Application, Cluster, MissingError, installed_wheel
from tests.cluster.tally import Tally

# What is done to a run whose undisturbed twin took so many seconds; returns how often it struck.
Scenario = Callable[[Cluster, Job, Application, random.Random, float], int]
# Token level; and record level, where one record has rows in several places, with the audit of consistency.
LEVELS: dict[str, dict[str, Any]] = {
    "token": {},
    "record": {"record_key": "customer", "consistency": "record", "audit": {"consistency_scopes": 500}},
}


def executor(cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float) -> int:
    """Kill an executor at any time."""
    faults.after(chance.uniform(0, calm), application)
    return faults.kill_executor(cluster, job, application, chance)


def executor_writing(
    cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float
) -> int:
    """Kill an executor while it writes."""
    faults.while_writing(job, application, chance.randint(1, faults.TASKS - 4))
    return faults.kill_executor(cluster, job, application, chance)


def python_worker(
    cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float
) -> int:
    """Kill a Python worker while it writes."""
    faults.while_writing(job, application, chance.randint(1, faults.TASKS - 4))
    return faults.kill_python_worker(cluster, job, application, chance)


def speculation(
    cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float
) -> int:
    """Stop a Python worker, so that another attempt of its task is begun."""
    faults.while_writing(job, application, chance.randint(1, faults.TASKS - 4))
    return faults.freeze_python_worker(cluster, job, application, chance)


def storm(cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float) -> int:
    """All three at once."""
    return faults.storm(cluster, job, application, chance)


def driver(cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float) -> int:
    """Kill the driver at any time."""
    faults.after(chance.uniform(0, calm), application)
    return faults.kill_driver(cluster, job, application, chance)


def driver_before_commit(
    cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float
) -> int:
    """Kill the driver while files are written."""
    faults.while_writing(job, application, chance.randint(1, faults.TASKS))
    return faults.kill_driver(cluster, job, application, chance)


def driver_after_commit(
    cluster: Cluster, job: Job, application: Application, chance: random.Random, calm: float
) -> int:
    """Kill the driver right after its commit."""
    return faults.kill_driver_after_commit(cluster, job, application, chance)


SCENARIOS: tuple[Scenario, ...] = (
    executor_writing, driver_before_commit, python_worker, driver_after_commit, speculation, driver, storm, executor,
)  # fmt: skip
# Where a worker is stopped and not killed, nothing but a second attempt elsewhere ends the run.
NEED_SPECULATION = (speculation, storm)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def chaos(count: int, seed: int, folder: Path) -> int:
    """Run `count` disturbed runs, print a line each and a tally; return of how many something did not hold.

    Half of the runs whose scenario can do without have no speculation, so that retries alone are seen too.
    """
    chance = random.Random(seed)
    faults.write_input(folder / "in.parquet")
    faults.write_key(folder)
    installed = installed_wheel(folder / "installed")
    calm: dict[str, tuple[Outcome, float]] = {}
    tally = Tally()
    with Cluster(folder / "cluster", installed) as cluster:
        for number in range(count):
            scenario = SCENARIOS[number % len(SCENARIOS)]
            level = chance.choice(sorted(LEVELS))
            if level not in calm:
                calm[level] = _undisturbed(cluster, Job(folder, f"calm-{level}", LEVELS[level]))
                say(f"undisturbed, {level} level: {calm[level][0].rows:,} rows in {calm[level][1]:.1f} s")
            job = Job(folder, f"run-{number}", LEVELS[level])
            began = time.monotonic()
            speculative = scenario in NEED_SPECULATION or chance.random() < 0.5
            struck, ends, found = 0, ["not finished"], []
            try:
                struck, ends, found = _one(scenario, cluster, job, chance, calm[level], speculative)
            except Exception as error:  # what cannot be judged has not held, and the others go on
                found = [f"{type(error).__name__}: {str(error)[:500]}"]
            tally.add(scenario.__name__, struck, bool(found))
            say(
                f"{number + 1}/{count} {scenario.__name__}, {level} level{', speculation' if speculative else ''}: "
                f"struck {struck}, {' then '.join(ends)}, {len(job.data_files())} data files, "
                f"{time.monotonic() - began:.0f} s: {'; '.join(found) or 'holds'}"
            )
            shutil.rmtree(job.target, ignore_errors=True)
    say("")
    for line in tally.lines():
        say(line)
    say(f"{count} runs, {tally.failures} failures (seed {seed})")
    return tally.failures


def _undisturbed(cluster: Cluster, job: Job) -> tuple[Outcome, float]:
    """Run a job that nothing happens to; return what it left, and its seconds."""
    application = job.submit(cluster)
    if application.wait() != 0:
        raise RuntimeError(application.said[-3000:])
    return job.outcome(), application.seconds


def _one(
    scenario: Scenario,
    cluster: Cluster,
    job: Job,
    chance: random.Random,
    calm: tuple[Outcome, float],
    speculative: bool,
) -> tuple[int, list[str], list[str]]:
    """Disturb one run, run it again if its driver died, and return: strikes, ends, and what does not hold."""
    application = job.submit(cluster, faults.SPECULATIVE if speculative else None)
    struck = scenario(cluster, job, application, chance, calm[1])
    killed = "driver" in scenario.__name__ and struck
    code = application.wait()
    ends = ["killed with its commit" if job.committed() else "killed"] if killed else [f"ended with {code}"]
    if not killed and code != 0:
        return struck, ends, [f"the run ended with {code}: {application.said[-500:]}"]
    if killed:
        again = job.submit(cluster)
        code = again.wait()
        ends.append(f"ended with {code}")
        if code != 0:
            return struck, ends, [f"the re-run ended with {code}: {again.said[-500:]}"]
    ends[-1] += f" ({job.outcome().status})"
    return struck, ends, faults.differences(job, calm[0])


def main(arguments: Sequence[str]) -> int:
    """Read N and SEED; return the exit code."""
    count = int(arguments[0]) if arguments else 20
    seed = int(arguments[1]) if len(arguments) > 1 else secrets.randbelow(1 << 31)
    say(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="dptext-chaos-") as folder:
        try:
            return 1 if chaos(count, seed, Path(folder)) else 0
        except MissingError as lacking:
            say(f"not here: {lacking}")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
