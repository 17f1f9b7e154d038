"""The demo: a sample table of support tickets, written as Delta, sanitized by the whole job, and shown.

The demo shows one ticket that has something of everything. You see it as it was, as the run released it, and by the files of
settings in conf/ that most users choose among.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dptext_spark.config.model import RunConfig
from dptext_spark.demo.tickets import FILE, ReleasedText, demo_config, side_by_side, tickets
from dptext_spark.errors import SettingsError, require_extra
from dptext_spark.randomness import RunKey
from dptext_spark.report.console import Screen
from dptext_spark.report.summary import summary
from dptext_spark.runtime.display import Progress
from dptext_spark.runtime.validation import Json
from dptext_spark.spark.job.job import RunResult
from dptext_spark.spark.run_report import report
from dptext_spark.spark.runner import run
from dptext_spark.spark.session import spark_session

SIDES = ("subject", "body")  # the columns of them that are shown
PUBLIC = 2_000  # tickets whose text the report's adversary learns from and attacks
WHOSE = (
    "The tickets are invented: a grammar of this project wrote them, under the project's licence. Their names are "
    "random combinations of the project's own lists and the public lists (dptext_spark/text/names/public)."
)
MADE = (FILE, "tickets", "sanitized", "sanitized_audit", "report.html")
# What else lies there then: the ledger beside the tickets, and what conf/tickets.yaml makes of them.
BESIDE = ("_dptext_ledger", "sanitized_again", "sanitized_again_audit")


@dataclass(frozen=True)
class DemoResult:
    """Result of a demo.

    Attributes:
        run: what its run did.
        examples: the texts of the first ticket, which has something of everything, before and after.
        released: one ticket by each of the files of settings.
        page: the file of the report; None where what it is made with is not installed.
        place: where everything lies.
    """

    run: RunResult
    examples: tuple[dict[str, str], ...]
    released: tuple[ReleasedText, ...]
    page: str | None
    place: Path


def demo(folder: Path | None, rows: int, say: Progress) -> DemoResult:
    """Run the demo.

    Without a folder it writes to `dptext-demo`. What an earlier demo wrote there is replaced.

    Raises:
        SettingsError: `folder` holds something else.
    """
    place = (folder or Path("dptext-demo")).resolve()
    _clear(place)
    source, target = str(place / MADE[1]), str(place / MADE[2])
    config = demo_config(source, target)
    say("starting Spark (the first time it downloads Delta Lake)", None)
    spark = spark_session("dptext demo")
    sample = tickets(rows)
    bodies = sample.column("body").to_pylist()
    say("writing the tickets as a Delta table", None)
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(sample, place / MADE[0])
    spark.read.parquet(str(place / MADE[0])).write.format("delta").save(source)
    result = run(config, spark, progress=lambda step: say(step, None))
    page = _report(config, result.run_id, bodies[:PUBLIC], spark, place / MADE[4], say)
    examples = tuple(_examples(spark, sample.slice(0, 1), target))
    say("releasing a ticket with each style", None)
    released = tuple(side_by_side(bodies[0], RunKey.generate(), say))
    return DemoResult(result, examples, released, page, place)


def as_record(result: DemoResult) -> dict[str, Json]:
    """Return the result of a demo, JSON-able."""
    return {
        **result.run.as_dict(),
        "examples": list(result.examples),
        "settings": [released._asdict() for released in result.released],
        "report": result.page,
    }


def screen(result: DemoResult) -> Screen:
    """Return a ticket before and after, as the files of settings would release it, and the summary of the run."""
    ran = summary(result.run.outcome, internal=True)
    examples = [
        (f"{example['column']} {side}", example[side])
        for example in result.examples
        for side in ("before", "after")
    ]
    examples += [(f"body, {released.settings}", released.text) for released in result.released]
    shown = [row for row in ran.rows if row[0] in ("rows", "guarantee")]
    return replace(
        ran,
        rows=[*((name, " ".join(text.split())) for name, text in examples), *shown],
        table=(),
        places=[*ran.places, ("report", result.page or ""), ("tickets", str(result.place / MADE[1]))],
        next="dptext start TABLE writes settings for a table of yours",
        more=[("origin of the tickets", [("", WHOSE)]), ("the run", [*ran.rows, *ran.table]), *ran.more],
        restricted=False,  # the tickets are invented
    )


def _report(
    config: RunConfig, run_id: str, public: Sequence[str], spark: SparkSession, file: Path, say: Progress,
) -> str | None:  # fmt: skip
    """Write the report of the run; None where a package for reports is not installed."""
    try:
        require_extra("audit", "jinja2", "matplotlib")
    except SettingsError as error:
        say(f"no report: {error}", None)
        return None
    # The tickets are invented, so they may serve as the public text that the adversary learns from.
    page = report(run_id, config, public=True, public_text=public, spark=spark, progress=say)
    return str(page.save(file))


def _clear(place: Path) -> None:
    """Remove what an earlier demo wrote; refuse a folder with anything else in it."""
    if not place.exists():
        return
    others = sorted(entry.name for entry in place.iterdir() if entry.name not in MADE + BESIDE)
    if others:
        raise SettingsError(f"folder: {str(place)!r} holds {others[0]!r}. Name a new or empty folder.")
    shutil.rmtree(place)


def _examples(spark: SparkSession, before: pa.Table, target: str) -> Iterator[dict[str, str]]:
    """Yield the texts of tickets before and after. The sample is invented: showing it gives nothing away."""
    ids = before.column("ticket_id").to_pylist()
    table = spark.read.format("delta").load(target).where(F.col("ticket_id").isin(ids))
    after = {row["ticket_id"]: row for row in table.select("ticket_id", *SIDES).collect()}
    for row in before.to_pylist():
        for name in SIDES:
            yield {
                "ticket": str(row["ticket_id"]),
                "column": name,
                "before": row[name],
                "after": after[row["ticket_id"]][name],
            }
