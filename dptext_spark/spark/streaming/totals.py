"""The account of a stream as a whole: the sums over its micro-batches, and its statement."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dptext_spark.spark.job import counting, runs
from dptext_spark.spark.job.effects import Effect, Observer, announced, unobserved
from dptext_spark.spark.job.ledger import standing
from dptext_spark.spark.job.plan import RunPlan, versions
from dptext_spark.spark.job.reconcile import stated
from dptext_spark.spark.tables.tables import opened_if_there, releases
from dptext_spark.text.engine import COUNTERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUMMED = (
    *(name for name in COUNTERS if name not in ("invalid", "distinct")),
    "duplicates_dropped",
    "write_seconds",
)


def totals(plan: RunPlan, done: list[dict[str, Any]], started: float, *, failed: bool) -> dict[str, Any]:
    """Add up the micro-batches.

    Args:
        plan: of the stream.
        done: the facts of the micro-batches of this process.
        started: when it began, in epoch seconds.
        failed: whether the last micro-batch failed.

    Returns:
        The facts of a report: `rows` and `seconds` are those of this process, `batches` says how many there were and what the
        whole stream came to; `restricted` are the metrics of the whole stream.
    """
    config = plan.config
    batches = _batches(plan)
    # The part of the source in its numbers' order: as text 10 comes before 9.
    number = F.element_at(F.split("run_id", r"\."), -1).cast("long")
    summed = batches.agg(
        F.count(F.lit(1)), F.coalesce(F.sum("rows"), F.lit(0)), F.coalesce(F.sum("seconds"), F.lit(0.0)),
        F.max("output_version"), F.max_by("input_version", number), F.sum((F.col("status") == "mismatch").cast("long")),
        F.max(F.col("second_release").cast("int")),
    ).first()  # fmt: skip
    assert summed is not None
    whole, rows, seconds, version, last, mismatched, second = summed
    new = [facts for facts in done if facts["status"] != "unchanged"]
    metrics = _metrics(plan)
    guarantee = plan.guarantee
    shares = {name: value for column, name, value in metrics if column is None}
    spent = standing(plan)
    audited = [facts["consistency_audit"]["said"] for facts in new[-1:]]
    facts = {
        "status": "mismatch" if mismatched else "failed" if failed else "succeeded",
        "run_id": plan.run_id,
        "problems": [],
        "rows": sum(int(facts["rows"] or 0) for facts in new),
        "seconds": round(time.time() - started, 3),
        "write_seconds": round(sum(facts["write_seconds"] or 0.0 for facts in new), 3),
        "tokens_per_second": shares.get("tokens_per_second"),
        "text_bytes": sum(facts["text_bytes"] or 0 for facts in new),
        "cores": new[-1]["cores"] if new else None,
        "compiled_loops": plan.compiled,
        "batches": {
            "mode": config.mode, "now": len(new), "in_all": int(whole), "rows": int(rows), "seconds": float(seconds),
        },
        "guarantee": guarantee.as_dict(),
        "certificate": plan.certificate,
        "consistency": config.consistency,
        "identity": plan.identity.kind,
        "record_epsilon": new[-1]["record_epsilon"] if new else None,
        "other_columns": [name for name in plan.kept if name not in plan.columns],
        "mapping": plan.privatizer.sampler.summary.as_dict(),
        "input": str(config.input.table or config.input.path),
        "input_version": None if last is None else f"delta:{last.rpartition('..')[2]}",
        "output": str(plan.place.target),
        "output_version": version,
        "audit": {"runs": plan.place.runs, "metrics": plan.place.metrics},
        "releases_in_history": len(releases(plan.commits())),
        "consistency_audit": {"said": f"In each micro-batch: {audited[0]}"} if audited else {"said": ""},
        "key_kind": plan.key_kind,
        "second_release": bool(second),
        "ledger": None if spent is None else spent.as_dict(),
        "versions": versions(),
        "restricted": {**shares, "record_epsilon": None},
        "metrics": metrics,
    }  # fmt: skip
    return {**facts, "disclosure": stated(plan, facts)}


def put_totals(plan: RunPlan, facts: dict[str, Any], started: float, at: Observer = unobserved) -> None:
    """Write the row of `runs` and the rows of `metrics` that stand for the whole stream."""
    with announced(Effect.STREAM_METRICS, at):
        runs.put_metrics(plan.spark, plan.place.metrics, plan.run_id, facts.pop("metrics"))
    row = {
        **plan.record(facts["status"], started),
        **{name: facts["batches"][name] for name in ("rows", "seconds")},
        **{name: facts[name] for name in ("output_version", "tokens_per_second", "second_release")},
        "input_version": facts["input_version"],
        "disclosure": json.dumps(facts["disclosure"], ensure_ascii=False),
        "cumulative": None if facts["ledger"] is None else json.dumps(facts["ledger"], ensure_ascii=False),
    }
    with announced(Effect.STREAM_ACCOUNT, at):
        runs.put(plan.spark, plan.place.runs, row)


def _batches(plan: RunPlan) -> DataFrame:
    """Return the rows of `runs` of the micro-batches that committed."""
    table = plan.spark.read.format("delta").load(plan.place.runs)
    return table.where(F.col("run_id").startswith(f"{plan.run_id}.") & F.col("output_version").isNotNull())


def _metrics(plan: RunPlan) -> list[tuple[str | None, str, float | None]]:
    """Sum the metrics of the micro-batches, and compute the shares anew.

    Figures of one record do not add up over micro-batches; of those the largest is kept, and only where no record can have
    rows in two of them.
    """
    table = opened_if_there(plan.spark, plan.place.metrics)
    if table is None:
        return []
    summed = (
        table.where(F.col("run_id").startswith(f"{plan.run_id}."))
        .groupBy("column", "metric")
        .agg(F.sum("value").alias("sum"), F.max("value").alias("max"))
        .collect()
    )
    found = {(row["column"], row["metric"]): row for row in summed}
    metrics: list[tuple[str | None, str, float | None]] = []
    for column in (*plan.columns, None):
        sums = {name: found[column, name]["sum"] for name in SUMMED if (column, name) in found}
        counters = {name: int(value or 0) for name, value in sums.items() if name in COUNTERS}
        if counters:
            whole = counting.shares({**dict.fromkeys(COUNTERS, 0), **counters})
            metrics += [(column, name, value) for name, value in whole.items()]
        metrics += [(column, name, value) for name, value in sums.items() if name not in counters]
        if column is None and counters and sums.get("write_seconds"):
            metrics.append((None, "tokens_per_second", counters["words"] / sums["write_seconds"]))
    if (None, "record_epsilon_max") in found and plan.config.record_key in (None, plan.config.row_key):
        metrics.append((None, "record_epsilon_max", found[None, "record_epsilon_max"]["max"]))
    return metrics
