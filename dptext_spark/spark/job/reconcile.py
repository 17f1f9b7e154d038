"""The account of a run that committed: counts against the commit, the audit of consistency, settlement, metrics, statement."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from dptext_spark.audit.deniability.deniability import expected_change
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import Restricted, RunFacts, RunMetric, RunRecord
from dptext_spark.errors import CountMismatchError, RunError
from dptext_spark.model.tables.delta_log import Commit, our_commits
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.job import consistency, counting, runs
from dptext_spark.spark.job.counting import Counts, Units
from dptext_spark.spark.job.plan import RunPlan
from dptext_spark.spark.session.session import cores_of
from dptext_spark.spark.tables.tables import releases
from dptext_spark.spark.udf.column import UNKNOWN_ROWS


def reconcile(
    plan: RunPlan, record: RunRecord, commits: Sequence[Commit], counts: Counts | None, started: float,
    seconds: float | None, say: Steps,
    *,
    recovered: bool,
    first: bool,
    units: Units | None = None,
) -> RunFacts:  # fmt: skip
    """Compare the counts with the commit, audit consistency, write the tables, and report.

    `commits` are the target's, read after the write; `seconds` of the write are None where it was an earlier process's; `first`
    says that no attempt of the run can have written metrics before. `units` are those of the records, where one has several rows.
    The account comes last, after the settlement and the metrics, for a run that says that it has ended is not made again.
    """
    spark = plan.spark
    commit = our_commits(commits).get(plan.run_id)
    if commit is None:
        raise RunError(
            f"no commit of run {plan.run_id} is in the target's history: nothing of it is in the table."
        )
    problems = []
    if counts is None:
        if not recovered:
            problems.append("its counts did not arrive")
    elif commit.rows not in (None, counts.rows):
        problems.append(f"{counts.rows:,} rows were counted and {commit.rows:,} written")
    audited = consistency.audit(plan, commit.version, commit.rows, say)
    problems += audited.problems
    metrics, restricted = _metrics(plan, counts, seconds, audited, units)
    epsilon = None if restricted is None else restricted.record_epsilon
    facts = replace(
        plan.facts,
        status="mismatch" if problems else "recovered" if recovered else "succeeded",
        problems=tuple(problems),
        rows=commit.rows,
        seconds=round(time.time() - started, 3),
        write_seconds=None if seconds is None else round(seconds, 3),
        tokens_per_second=None if restricted is None else restricted.figures["tokens_per_second"],
        text_bytes=None if counts is None else counts.text_bytes,
        counted=None if counts is None else "again" if recovered else "while writing",
        cores=cores_of(spark),
        record_epsilon=None if epsilon is None else epsilon.basis,
        other_columns=tuple(plan.others),
        input_version=plan.input_version,
        corrupt_records=plan.corrupt,
        output_version=commit.version,
        releases_in_history=len(releases(commits)),
        audited=audited.said,
        passed=audited.passed,
        key_kind=record.key_kind,
        second_release=record.second_release,
        ledger=record.spent,
        expected_change=None if plan.stream is not None else expected_change(plan.privatizer),
        restricted=restricted,
    )
    facts = replace(facts, disclosure=disclosure(facts))
    say("writing the account")
    try:
        runs.put_metrics(spark, plan.place.metrics, plan.run_id, metrics, new=first)
        # What another process writes meanwhile is better news: it succeeded, where this one came after its commit.
        keep = recovered or bool(problems)
        runs.put(spark, plan.place.runs, record.ended(facts), keep_finished=keep)
    except Exception:
        if not problems:
            raise
        problems.append("its account could not be written")  # lesser news, which must not hide the other
    if problems:
        raise CountMismatchError(
            f"run {plan.run_id} committed version {commit.version} of {plan.place.target}, but {'; '.join(problems)}. "
            "Nothing was rolled back; do not share this version."
        )
    return facts


def _metrics(
    plan: RunPlan,
    counts: Counts | None,
    seconds: float | None,
    audited: consistency.Audit,
    units: Units | None,
) -> tuple[list[RunMetric], Restricted | None]:
    """Return the rows of `metrics`, and those of the whole run by name."""
    rows = [RunMetric(None, "write_seconds", seconds)]
    if plan.stream is not None and plan.stream.dropped is not None:
        rows.append(RunMetric(None, "duplicates_dropped", float(plan.stream.dropped)))
    rows += [RunMetric(None, f"consistency_{name}", float(value)) for name, value in audited.figures.items()]
    if counts is None:
        return rows, None
    for column, counters in zip(plan.columns, counts.columns, strict=True):
        rows += [RunMetric(column, name, value) for name, value in counting.shares(counters).items()]
    rows.append(RunMetric(None, UNKNOWN_ROWS, float(counts.unknown_rows)))
    whole = counting.shares(counts.whole)
    rows += [RunMetric(None, name, value) for name, value in whole.items()]
    several = counting.several_rows(plan)
    lists = any(path.over for path in plan.paths)
    # Where words are chosen, that is in all texts of a row, and a word that several of them hold is counted once.
    chosen = plan.config.importance is not None or plan.config.budget is not None
    epsilon = counting.record_epsilon(
        counts.units if units is None else units,
        plan.privatizer.units.of_one, plan.config.consistency, 1 if chosen else len(plan.columns),
        (several or lists) and not chosen,
        len(plan.privatizer.units.multiples), plan.facts.record,
    )  # fmt: skip
    named = {"mean": epsilon.mean, "p50": epsilon.p50, "p95": epsilon.p95, "max": epsilon.max}
    rows += [RunMetric(None, f"record_epsilon_{name}", value) for name, value in named.items()]
    if epsilon.bound_p50 is not None and epsilon.bound_max is not None:
        bound = {
            "p50": epsilon.bound_p50.epsilon, "max": epsilon.bound_max.epsilon, "delta": epsilon.bound_max.delta,
        }  # fmt: skip
        rows += [RunMetric(None, f"record_bound_{name}", value) for name, value in bound.items()]
    speed = None if seconds is None else (whole["words"] or 0.0) / seconds if seconds else 0.0
    rows.append(RunMetric(None, "tokens_per_second", speed))
    return rows, Restricted(
        {**whole, UNKNOWN_ROWS: float(counts.unknown_rows), "tokens_per_second": speed}, epsilon
    )
