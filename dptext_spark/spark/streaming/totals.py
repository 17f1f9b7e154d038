"""The account of a stream as a whole: the sums over its micro-batches, and its statement."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dptext_spark.audit.deniability.deniability import expected_change
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import MicroBatches, Restricted, RunFacts, RunMetric
from dptext_spark.spark.job import counting, runs
from dptext_spark.spark.job.beside import reading
from dptext_spark.spark.job.ledger import standing
from dptext_spark.spark.job.plan import RunPlan
from dptext_spark.spark.tables.tables import own_table, releases
from dptext_spark.spark.udf.column import UNKNOWN_ROWS
from dptext_spark.text.engine import COUNTERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

SUMMED = (
    *(name for name in COUNTERS if name not in ("invalid", "distinct")),
    UNKNOWN_ROWS,
    "duplicates_dropped",
    "write_seconds",
)


def totals(
    plan: RunPlan, done: Sequence[RunFacts], started: float, *, failed: bool
) -> tuple[RunFacts, list[RunMetric]]:
    """Add up the micro-batches.

    Args:
        plan: of the stream.
        done: the facts of the micro-batches that this process made.
        started: when it began, in epoch seconds.
        failed: whether the last micro-batch failed.

    Returns:
        The facts: `rows` and `seconds` are those of this process, `batches` says how many there were and what the whole stream
        came to. And the metrics of the whole stream, of which `restricted` holds those that are of no column.
    """
    config, spark = plan.config, plan.spark
    # Four tables, which say nothing of each other.
    with (
        reading(spark, lambda: _metrics(plan)) as summed,
        reading(spark, lambda: standing(plan)) as standing_now,
        reading(spark, plan.commits) as commits,
    ):
        whole, rows, seconds, version, last, mismatched, second = _summed(plan)
        metrics, spent, released = summed(), standing_now(), releases(commits())
    shares = {name: value for column, name, value in metrics if column is None}
    newest = done[-1] if done else None
    facts = replace(
        plan.facts,
        status="mismatch" if mismatched else "failed" if failed else "succeeded",
        rows=sum(facts.rows or 0 for facts in done),
        seconds=round(time.time() - started, 3),
        write_seconds=round(sum(facts.write_seconds or 0.0 for facts in done), 3),
        tokens_per_second=shares.get("tokens_per_second"),
        text_bytes=sum(facts.text_bytes or 0 for facts in done),
        cores=None if newest is None else newest.cores,
        batches=MicroBatches(config.mode, len(done), int(whole), int(rows), float(seconds)),
        record_epsilon=None if newest is None else newest.record_epsilon,
        other_columns=tuple(name for name in plan.kept if name not in plan.columns),
        input_version=None if last is None else f"delta:{last.rpartition('..')[2]}",
        output_version=version,
        releases_in_history=len(released),
        audited="" if newest is None else f"In each micro-batch: {newest.audited}",
        second_release=bool(second),
        ledger=None if spent is None else spent.spending,
        expected_change=expected_change(plan.privatizer),  # once, and not of every micro-batch
        restricted=Restricted(shares),
    )
    return replace(facts, disclosure=disclosure(facts)), metrics


def put_totals(plan: RunPlan, facts: RunFacts, metrics: Sequence[RunMetric], started: float) -> None:
    """Write the rows of `metrics` and the row of `runs` that stand for the whole stream.

    Neither proves the other: the next start of the stream adds up its micro-batches anew, and writes both.
    """
    assert facts.batches is not None
    spent = facts.ledger
    record = replace(
        plan.record(facts.status, started).ended(facts),
        rows=facts.batches.rows,
        seconds=facts.batches.seconds,
        second_release=facts.second_release,
        input_version=facts.input_version,
        cumulative=None if spent is None else json.dumps(spent.as_dict(), ensure_ascii=False),
    )
    runs.put_metrics(plan.spark, plan.place.metrics, plan.run_id, metrics)
    runs.put(plan.spark, plan.place.runs, record)


def _summed(plan: RunPlan) -> Row:
    """Add up the rows of `runs` of the micro-batches that committed."""
    # The part of the source in its numbers' order: as text 10 comes before 9.
    number = F.element_at(F.split("run_id", r"\."), -1).cast("long")
    found = _batches(plan).agg(
        F.count(F.lit(1)), F.coalesce(F.sum("rows"), F.lit(0)), F.coalesce(F.sum("seconds"), F.lit(0.0)),
        F.max("output_version"), F.max_by("input_version", number), F.sum((F.col("status") == "mismatch").cast("long")),
        F.max(F.col("second_release").cast("int")),
    ).first()  # fmt: skip
    assert found is not None  # an aggregate without groups has one row
    return found


def _batches(plan: RunPlan) -> DataFrame:
    """Return the rows of `runs` of the micro-batches that committed."""
    # A few numbers each: one partition takes them without a shuffle.
    table = plan.spark.read.format("delta").load(plan.place.runs).coalesce(1)
    return table.where(F.col("run_id").startswith(f"{plan.run_id}.") & F.col("output_version").isNotNull())


def _metrics(plan: RunPlan) -> list[RunMetric]:
    """Sum the metrics of the micro-batches, and compute the shares anew.

    Figures of one record do not add up over micro-batches; of those the largest is kept, and only where no record can have
    rows in two of them.
    """
    table = own_table(plan.spark, plan.place.metrics)
    if table is None:
        return []
    summed = (
        table.where(F.col("run_id").startswith(f"{plan.run_id}."))
        .coalesce(1)
        .groupBy("column", "metric")
        .agg(F.sum("value").alias("sum"), F.max("value").alias("max"))
        .collect()
    )
    found = {(row["column"], row["metric"]): row for row in summed}
    metrics: list[RunMetric] = []
    for column in (*plan.columns, None):
        sums = {name: found[column, name]["sum"] for name in SUMMED if (column, name) in found}
        counters = {name: int(value or 0) for name, value in sums.items() if name in COUNTERS}
        if counters:
            whole = counting.shares({**dict.fromkeys(COUNTERS, 0), **counters})
            metrics += [RunMetric(column, name, value) for name, value in whole.items()]
        metrics += [RunMetric(column, name, value) for name, value in sums.items() if name not in counters]
        if column is None and counters and sums.get("write_seconds"):
            metrics.append(RunMetric(None, "tokens_per_second", counters["words"] / sums["write_seconds"]))
    if (None, "record_epsilon_max") in found and plan.config.record_key in (None, plan.config.row_key):
        metrics.append(RunMetric(None, "record_epsilon_max", found[None, "record_epsilon_max"]["max"]))
        metrics += [
            RunMetric(None, name, found[None, name]["max"])
            for name in ("record_bound_max", "record_bound_delta")
            if (None, name) in found
        ]
    return metrics
