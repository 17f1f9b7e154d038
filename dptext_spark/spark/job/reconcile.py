"""The account of a run that committed: counts against the commit, the consistency audit, metrics, and the statement."""

from __future__ import annotations

import json
import time
from typing import Any

from pyspark.sql import functions as F

from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.errors import CountMismatchError, RunError
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.job import consistency, counting, runs
from dptext_spark.spark.job.effects import Effect, Observer, announced, unobserved
from dptext_spark.spark.job.plan import RunPlan, versions
from dptext_spark.spark.session.session import cores_of
from dptext_spark.spark.tables.tables import our_commits, releases
from dptext_spark.spark.udf.batches import batched
from dptext_spark.spark.udf.column import RESULT, applied
from dptext_spark.spark.udf.ship import ship


def reconcile(
    plan: RunPlan, record: dict[str, Any], counts: dict[str, Any] | None, started: float, seconds: float | None,
    say: Steps,
    at: Observer = unobserved,
    *,
    recovered: bool,
    first: bool,
) -> dict[str, Any]:  # fmt: skip
    """Compare the counts with the commit, audit consistency, write the tables, and report.

    `seconds` of the write are None where it was an earlier process's; `first` says that no attempt of the run can have written
    metrics before.
    """
    spark, config = plan.spark, plan.config
    commits = plan.commits()
    commit = our_commits(commits).get(plan.run_id)
    if commit is None:
        raise RunError(
            f"no commit of run {plan.run_id} is in the target's history: nothing of it is in the table."
        )
    written = int((commit["operationMetrics"] or {}).get("numOutputRows", -1))
    guarantee = plan.guarantee
    problems = []
    if counts is None:
        if not recovered:
            problems.append("its counts did not arrive")
    elif written not in (-1, int(counts["rows"])):
        problems.append(f"{counts['rows']:,} rows were counted and {written:,} written")
    audited = consistency.audit(plan, int(commit["version"]), written if written >= 0 else None, say)
    problems += audited.problems
    status = "mismatch" if problems else "recovered" if recovered else "succeeded"
    metrics, restricted = _metrics(plan, counts, seconds, audited)
    facts = {
        "status": status,
        "run_id": plan.run_id,
        "problems": problems,
        "rows": written if written >= 0 else None,
        "seconds": round(time.time() - started, 3),
        "write_seconds": None if seconds is None else round(seconds, 3),
        "tokens_per_second": restricted.get("tokens_per_second"),
        "text_bytes": sum(int(counts[f"bytes_{i}"]) for i in range(len(plan.columns))) if counts else None,
        "counted": None if counts is None else "again" if recovered else "while writing",
        "cores": cores_of(spark),
        "compiled_loops": plan.compiled,
        "guarantee": guarantee.as_dict(),
        "certificate": plan.certificate,
        "consistency": config.consistency,
        "identity": plan.identity.kind,
        "record_epsilon": _formula(restricted.get("record_epsilon")),
        "other_columns": plan.others,
        "mapping": plan.privatizer.sampler.summary.as_dict(),
        "input": record["input"],
        "input_version": plan.input_version,
        "corrupt_records": plan.corrupt,
        "output": str(plan.place.target),
        "output_version": int(commit["version"]),
        "audit": {"runs": plan.place.runs, "metrics": plan.place.metrics},
        "releases_in_history": len(releases(commits)),
        "consistency_audit": audited.as_dict(),
        "key_kind": record["key_kind"],
        "second_release": record["second_release"],
        "ledger": json.loads(record["cumulative"]),
        "versions": versions(),
    }
    facts["disclosure"] = stated(plan, facts)
    facts["restricted"] = restricted
    say("writing the account")
    try:
        with announced(Effect.METRICS, at):
            runs.put_metrics(spark, plan.place.metrics, plan.run_id, metrics, new=first)
        with announced(Effect.ACCOUNT, at):
            runs.put(spark, plan.place.runs, {**record, **_outcome(facts)})
    except Exception:
        if not problems:
            raise
        problems.append("its account could not be written")  # lesser news, which must not hide the other
    if problems:
        raise CountMismatchError(
            f"run {plan.run_id} committed version {commit['version']} of {plan.place.target}, but {'; '.join(problems)}. "
            "Nothing was rolled back; do not share this version."
        )
    return facts


def stated(plan: RunPlan, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the statement of a run or a stream, from its facts and its settings."""
    config = {**plan.config.as_dict(), "input": plan.shown_settings(plan.run_id)["input"]}
    selector = plan.privatizer.selector
    more = {"config": config, "policy": config["policy"], "mechanism_summary": facts["mapping"]}
    more["importance"] = None if selector is None else selector.provider.sentence
    return disclosure({**facts, **more}).as_dict()


def _outcome(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what the row of `runs` gains at the end."""
    same = ("status", "output_version", "rows", "seconds", "tokens_per_second")
    disclosed = json.dumps(facts["disclosure"], ensure_ascii=False)
    return {**{name: facts[name] for name in same}, "disclosure": disclosed}


def _formula(epsilon: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return how ε of a record composes, without the figures: how many words were drawn depends on the text."""
    return None if epsilon is None else {"basis": epsilon["basis"]}


def _metrics(
    plan: RunPlan, counts: dict[str, Any] | None, seconds: float | None, audited: consistency.Audit
) -> tuple[list[tuple[str | None, str, float | None]], dict[str, Any]]:
    """Return the rows of `metrics`, and the same figures by name."""
    rows: list[tuple[str | None, str, float | None]] = [(None, "write_seconds", seconds)]
    if plan.stream is not None and plan.stream.dropped is not None:
        rows.append((None, "duplicates_dropped", float(plan.stream.dropped)))
    rows += [(None, f"consistency_{name}", float(value)) for name, value in audited.figures.items()]
    if counts is None:
        return rows, {}
    for index, column in enumerate(plan.columns):
        rows += [(column, name, value) for name, value in counting.column_figures(counts, index).items()]
    whole = counting.shares(counting.totals(counts, plan.columns))
    rows += [(None, name, value) for name, value in whole.items()]
    several = plan.identity.record is not None and plan.config.record_key != plan.config.row_key
    lists = any(path.over for path in plan.paths)
    if several and plan.config.consistency != "dataset":
        counts = {**counts, **_units_by_record(plan)}
    # Where words are chosen, that is in all texts of a row, and a word that several of them hold is counted once.
    chosen = plan.config.importance is not None
    epsilon = counting.record_epsilon(
        counts, plan.privatizer.units.of_one, plan.config.consistency, 1 if chosen else len(plan.columns),
        (several or lists) and not chosen,
        len(plan.privatizer.units.multiples),
    )  # fmt: skip
    rows += [(None, f"record_epsilon_{name}", epsilon[name]) for name in ("mean", "p50", "p95", "max")]
    speed = None if seconds is None else (whole["words"] or 0.0) / seconds if seconds else 0.0
    rows.append((None, "tokens_per_second", speed))
    return rows, {**whole, "record_epsilon": epsilon, "tokens_per_second": speed}


def _units_by_record(plan: RunPlan) -> dict[str, Any]:
    """Sum the draws of each record over its rows: a second pass, since a record may lie in many partitions."""
    job = plan.job(ship(plan.spark, plan.folder, plan.config.run.ship))
    frame = applied(plan.df, job, plan.config.run.udf, plan.identity.row, plan.identity.record)
    records = frame.groupBy(plan.identity.record).agg(F.sum(F.col(RESULT).getField("units")).alias("units"))  # type: ignore[arg-type]
    figures = records.agg(
        F.avg("units").alias("units_mean"),
        *counting.percentiles(F.col("units")),
        F.max("units").alias("units_max"),
    )
    with batched(plan):
        row = figures.first()
    assert row is not None
    return row.asDict()
