"""The Spark job against an identity job: the same read, kind of UDF, struct, observe and Delta write, without the work."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Figure, Goal, Section, Spread, quotient
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged, texts
from benchmarks.tables import local
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import RunKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
BATCH_ROWS = 50_000
FILES = 8
KEY = RunKey.insecure(0)
GOALS = (Goal(1.4, 1.6, "ratio"),)
OF_FLUENT = (Goal(1.7, 1.8, "ratio"),)
FLUENT = {"name": "custext", "fluent": True}


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure `run`, by plain and by fluent draws, and the identity job in turn, on local Spark with Delta Lake."""
    title = f"Spark job, {sizes.spark_rows:,} records of {sizes.words_a_row} words, local[{CORES}]"
    section = Section("spark", title)
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        say("spark: starting a session")
        settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": BATCH_ROWS}
        try:
            with local(CORES, folder, settings) as session:
                say("spark: writing the input")
                write_input(session, folder, sizes)
                _measure_jobs(section, session, folder, sizes, say)
        except SettingsError as error:
            section.skipped = [f"spark: {error}"]
    return section


def write_input(session: SparkSession, folder: Path, sizes: Sizes) -> None:
    """Write the input as a Delta table: `id`, `customer`, `body`."""
    lexicon = packaged()
    raw = folder / "raw"
    raw.mkdir()
    rows = -(-sizes.spark_rows // FILES)
    for part in range(FILES):
        first = part * rows
        ids = pa.array(range(first, min(first + rows, sizes.spark_rows)), pa.int64())
        body = texts(lexicon, len(ids), sizes.words_a_row, seed=part)
        customer = pa.array([f"C-{i.as_py() // 3}" for i in ids])
        table = pa.table({"id": ids, "customer": customer, "body": body})
        pq.write_table(table, raw / f"part-{part}.parquet")
    session.read.parquet(str(raw)).write.format("delta").save(str(folder / "input"))


def _measure_jobs(
    section: Section, session: SparkSession, folder: Path, sizes: Sizes, say: Callable[[str], None]
) -> None:
    """Run all jobs in turn, after a round that is not counted: it starts the workers and compiles the model."""
    from benchmarks.identity_job import identity_job

    writes: list[tuple[float, float]] = []  # of the job and of the identity job
    wholes: list[tuple[float, float]] = []
    fluent: list[float] = []  # the whole run, by fluent draws
    facts: dict[str, Any] = {}
    steps: dict[str, list[float]] = {}
    for number in range(sizes.long_rounds + 1):
        say(f"spark: round {number} of {sizes.long_rounds}")
        in_context, _, _ = run_job(session, folder, mechanism=FLUENT)
        seconds, facts, parts = run_job(session, folder)
        passed = identity_job(session, folder / "input", folder / "output")
        shutil.rmtree(folder / "output")
        if number:
            writes.append((float(facts["write_seconds"]), passed[0]))
            wholes.append((seconds, passed[1]))
            fluent.append(in_context)
            for step, took in parts.items():
                steps.setdefault(step, []).append(took)
    (write, bare), (whole, bare_whole) = (map(Spread, zip(*both, strict=True)) for both in (writes, wholes))
    drawn, note = (
        Spread(tuple(fluent)),
        "with checks of input and key, audit and account, which an identity job has none of",
    )
    for name, value, beside, peer, goals, more in (
        ("read, privatize, observe, write", write, "identity job", bare, GOALS, ""),
        ("the whole run", whole, "identity job", bare_whole, (), f"the whole run: {note}"),
        ("the whole run, fluent draws", drawn, "plain draws", whole, OF_FLUENT, ""),
    ):
        section.figures.append(
            Figure(name, "s", value, beside, peer, quotient(value, peer), "x its time", goals, more)
        )
    section.facts = {
        "rows": facts["rows"],
        "words_a_row": sizes.words_a_row,
        "batch_rows": BATCH_ROWS,
        "text_bytes": facts["text_bytes"],
        "identity": facts["identity"],
        "consistency": facts["consistency"],
        "mechanism": "CusText, default settings, packaged lexicon",
        "status": facts["status"],
        "tokens_per_second": [round(sizes.spark_rows * sizes.words_a_row / seconds) for seconds, _ in writes],
        "steps": {step: Spread(tuple(times)).as_dict() for step, times in steps.items()},
    }


def run_job(
    session: SparkSession, folder: Path, **settings: Any
) -> tuple[float, dict[str, Any], dict[str, float]]:
    """Run the job; return its seconds, its report and the seconds of each step. What it wrote is removed."""
    from dptext_spark.config.load import parse_config
    from dptext_spark.spark.runner import run

    output = folder / "sanitized"
    settings |= {"columns": ["body"], "row_key": "id"}
    settings |= {
        "input": {"path": str(folder / "input")},
        "output": {"path": str(output), "other_columns": "keep"},
    }
    config = parse_config(settings)
    began: list[tuple[str, float]] = []

    def note(step: str) -> None:
        began.append((step.split(":")[0], time.perf_counter()))  # behind a colon stands how far it is

    started = time.perf_counter()
    facts = run(config, session, key=KEY, progress=note).as_dict()
    ended = time.perf_counter()
    parts: dict[str, float] = {}
    for (step, begin), (_, end) in pairwise([*began, ("", ended)]):
        parts[step] = parts.get(step, 0.0) + end - begin
    for written in (output, Path(f"{output}_audit")):
        shutil.rmtree(written)
    return ended - started, facts, parts
