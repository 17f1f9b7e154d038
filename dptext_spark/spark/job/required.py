"""How the requirements of the settings stand after a run: by its counts, its ledger, and the newest audit of its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.verdict import Verdict, of_metrics, verdict
from dptext_spark.config.model import RunConfig
from dptext_spark.config.requirements import COUNTED, Requirement, is_restricted
from dptext_spark.disclosure.facts import RunFacts, RunRecord, Unchanged
from dptext_spark.importance.budget import Budget
from dptext_spark.ledger.balance import Spending
from dptext_spark.model.certificate import NO_BOUND
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.checks import place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARES_NONE = "its guarantee compares no two words: no ε stands for it"
REFUTED = "its guarantee is refuted, or its key was no secret: no ε stands for it"
MISMATCH = "its counts or its consistency audit do not agree with what was written"
DONE = ("succeeded", "recovered", "unchanged")


def after_run(spark: SparkSession, config: RunConfig, outcome: RunFacts | Unchanged) -> Verdict:
    """Judge a run that has just ended. One that was made before is judged by its account, with the newest audit of its table."""
    if isinstance(outcome, Unchanged):
        return of_account(spark, config.require, outcome.record, place_of(config).metrics)
    figures = {} if outcome.restricted is None else dict(outcome.restricted.figures)
    epsilon = None if outcome.restricted is None else outcome.restricted.record_epsilon
    if epsilon is not None:
        figures["record_epsilon_max"] = epsilon.max
    against = _unsound(
        refuted=outcome.is_refuted or outcome.key_kind == "insecure", unbounded=outcome.is_unbounded
    )
    return _judged(config.require, figures, outcome.ledger, config.budget, against, outcome.status)


def of_account(
    spark: SparkSession, require: Sequence[Requirement[str]], record: RunRecord, metrics: str
) -> Verdict:
    """Judge a run by its account; its metrics are read only where a requirement needs them.

    Args:
        spark: the session.
        require: of the settings; all else is the run's own.
        record: of the run.
        metrics: the folder of its metrics. One that is not there measured nothing.
    """
    budget = record.settings.budget
    needed = any(is_restricted(one.subject, bounded=budget is not None) for one in require)
    found = runs.metrics_of(spark, metrics, record.run_id) if needed else None
    figures = {name: value for column, name, value in found or () if column is None}
    verdicts = (record.promised.status, "" if record.certified is None else record.certified.verdict)
    against = _unsound(
        refuted="refuted" in verdicts or record.key_kind == "insecure", unbounded=NO_BOUND in verdicts
    )
    return _judged(require, figures, record.spent, budget, against, record.status)


def _unsound(*, refuted: bool, unbounded: bool) -> list[str]:
    """Return why no ε stands for a run."""
    return [*([REFUTED] if refuted else []), *([COMPARES_NONE] if unbounded else [])]


def _judged(
    require: Sequence[Requirement[str]], figures: Mapping[str, float | None], spent: Spending | None,
    budget: Budget | None, unsound: Sequence[str], status: str,
) -> Verdict:  # fmt: skip
    found = of_metrics(figures, COUNTED)
    largest = figures.get("record_epsilon_max") if budget is None else budget.record
    found.append(Metric("record_epsilon", math.inf if unsound and largest is not None else largest))
    if spent is not None and spent.columns:
        found.append(Metric("ledger_epsilon", max(one.total for one in spent.columns)))
    against = [*unsound, *([MISMATCH] if status == "mismatch" else [])]
    return verdict(require, found, bounded=budget is not None, against=against, unfinished=status not in DONE)
