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

# Waits for a moment of a run whose undisturbed twin took so many seconds.
Moment = Callable[[Job, Application, random.Random, float], None]
# Token level; and record level, where one record has rows in several places, with the audit of consistency.
LEVELS: dict[str, dict[str, Any]] = {
    "token": {},
    "record": {"record_key": "customer", "consistency": "record"},
}


def at_any_time(job: Job, application: Application, chance: random.Random, calm: float) -> None:
    """Wait for a while, at most as long as the undisturbed twin took."""
    faults.after(chance.uniform(0, calm), application)


def while_writing(job: Job, application: Application, chance: random.Random, calm: float) -> None:
    """Wait until some files are written and several tasks are left."""
    faults.while_writing(job, application, chance.randint(1, faults.TASKS - 4))


def before_commit(job: Job, application: Application, chance: random.Random, calm: float) -> None:
    """Wait until some files are written, perhaps all."""
    faults.while_writing(job, application, chance.randint(1, faults.TASKS))


def at_once(job: Job, application: Application, chance: random.Random, calm: float) -> None:
    """Leave it to the fault to wait."""


# When a fault strikes, and which one.
SCENARIOS: dict[str, tuple[Moment, faults.Fault]] = {
    "executor_writing": (while_writing, faults.kill_executor),
    "driver_before_commit": (before_commit, faults.kill_driver),
    "python_worker": (while_writing, faults.kill_python_worker),
    "driver_after_commit": (at_once, faults.kill_driver_after_commit),
    "speculation": (while_writing, faults.freeze_python_worker),
    "driver": (at_any_time, faults.kill_driver),
    "storm": (at_once, faults.storm),
    "executor": (at_any_time, faults.kill_executor),
}
# Where a worker is stopped and not killed, nothing but a second attempt elsewhere ends the run.
NEED_SPECULATION = ("speculation", "storm")


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
            scenario = list(SCENARIOS)[number % len(SCENARIOS)]
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
            tally.add(scenario, struck, bool(found))
            say(
                f"{number + 1}/{count} {scenario}, {level} level{', speculation' if speculative else ''}: "
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
    scenario: str,
    cluster: Cluster,
    job: Job,
    chance: random.Random,
    calm: tuple[Outcome, float],
    speculative: bool,
) -> tuple[int, list[str], list[str]]:
    """Disturb one run, run it again if its driver died, and return: strikes, ends, and what does not hold."""
    application = job.submit(cluster, faults.SPECULATIVE if speculative else None)
    wait, fault = SCENARIOS[scenario]
    wait(job, application, chance, calm[1])
    struck = fault(cluster, job, application, chance)
    killed = "driver" in scenario and struck
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
