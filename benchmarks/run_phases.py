"""What a small run takes beside its data: against a plain script, in a session that stays, and phase by phase."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, Goal, Grid, Section, Spread, quotient, seconds_of
from benchmarks.plain_script import append_row
from benchmarks.sizes import Sizes
from benchmarks.spark import BATCH_ROWS, CORES, run_job, write_input
from benchmarks.tables import local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20_000
ROUND = 2  # commits that stand beside the data, before it and after it
OF_SCRIPT = (Goal(1.3, 1.6, "ratio"),)
OF_IDENTITY = (Goal(1.2, 1.6, "ratio"),)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure a run of its own process beside a plain script's, and the next run of a session beside the identity job."""
    rows = min(ROWS, sizes.spark_rows)
    section = Section("run_phases", f"A run of {rows:,} records of {sizes.words_a_row} words, local[{CORES}]")
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        say("run_phases: writing the input")
        with local(CORES, folder, {"spark.sql.execution.arrow.maxRecordsPerBatch": BATCH_ROWS}) as session:
            write_input(session, folder, replace(sizes, spark_rows=rows))
            _in_a_session(section, session, folder, sizes, say)
        _of_its_own(section, folder, sizes, say)
    return section


def _in_a_session(
    section: Section, session: SparkSession, folder: Path, sizes: Sizes, say: Callable[[str], None]
) -> None:
    """Run again and again in a session that stays, after a round that is not counted."""
    from benchmarks.identity_job import identity_job

    runs, data, rounds = [], [], []
    steps: dict[str, list[float]] = {}
    jobs: list[int] = []
    for number in range(sizes.long_rounds + 1):
        say(f"run_phases: round {number} of {sizes.long_rounds} in a session")
        before = _jobs(session)
        seconds, facts, parts = run_job(session, folder)
        between = _jobs(session)
        bare = identity_job(session, folder / "input", folder / "output")[1]
        shutil.rmtree(folder / "output")
        committing = seconds_of(lambda number=number: _two_rounds(session, folder / f"notes{number}"))  # type: ignore[misc]
        if number:
            runs.append(seconds)
            data.append(bare)
            rounds.append(committing)
            jobs.append(between - before)
            for step, took in {**parts, "of these: the write": float(facts["write_seconds"])}.items():
                steps.setdefault(step, []).append(took)
    whole, bare_runs = Spread(tuple(runs)), Spread(tuple(data))
    least = Spread(tuple(one + other for one, other in zip(data, rounds, strict=True)))
    section.figures += [
        Figure(
            "the next run of a session", "s", whole, "identity job and two rounds of commits", least,
            quotient(whole, least), "x its time", OF_IDENTITY,
            note=f"a round of commits: {ROUND} rows appended side by side, each to a small table of its own",
        ),
        Figure(
            "two rounds of commits", "s", Spread(tuple(rounds)), "identity job", bare_runs,
            quotient(Spread(tuple(rounds)), bare_runs), "x its time",
        ),
        Figure("Spark jobs of a run", "jobs", Spread(tuple(float(one) for one in jobs))),
    ]  # fmt: skip
    medians = {step: Spread(tuple(times)).median for step, times in steps.items()}
    section.grids.append(
        Grid(
            "The phases of such a run",
            ("phase", "seconds", "of the run"),
            tuple((step, took, took / whole.median) for step, took in medians.items()),
        )
    )
    section.facts = {"rows": facts["rows"], "text_bytes": facts["text_bytes"], "jobs": jobs}


def _of_its_own(section: Section, folder: Path, sizes: Sizes, say: Callable[[str], None]) -> None:
    """Run in processes of their own, Spark's start included, in turn with the plain script's."""
    pairs = []
    for number in range(sizes.long_rounds + 1):
        say(f"run_phases: round {number} of {sizes.long_rounds} in processes of their own")
        pairs.append(tuple(_process(how, folder, f"{how}{number}") for how in ("job", "plain")))
    ours, plain = (Spread(times) for times in zip(*pairs[1:], strict=True))
    section.figures.insert(
        0,
        Figure(
            "dptext run, Spark's start included", "s", ours, "a plain script", plain, quotient(ours, plain), "x its time",
            OF_SCRIPT,
            note="the plain script starts Spark, reads, passes through mapInArrow, writes Delta and appends one row; "
            "the command starts the Java that suits a small table",
        ),
    )  # fmt: skip


def _process(how: str, folder: Path, name: str) -> float:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.run_worker", how, str(folder), name],
        env=dict(os.environ), cwd=Path(__file__).resolve().parents[1], check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(json.loads(ran.stdout.splitlines()[-1])["seconds"])


def _two_rounds(session: SparkSession, folder: Path) -> None:
    """Append rows to small tables: a round of `ROUND` at once, and another one."""
    for turn in range(2):
        threads = [
            Thread(target=append_row, args=(session, folder / str(number), f"{turn}"))
            for number in range(ROUND)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _jobs(session: SparkSession) -> int:
    """Return how many jobs Spark has begun."""
    return int(session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # type: ignore[union-attr]
