"""`run`: the whole job, as one run, or as a stream of them.

Judgement of the requirements after a run: by its counts, its ledger, and the newest audit of its table.

The dry run: a check by the run's own rules whether it would be refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dptext_spark.config.load import require_lasting
from dptext_spark.config.model import RunConfig
from dptext_spark.config.requirements import COUNTED, Metric, Requirement, Verdict, is_restricted, of_metrics
from dptext_spark.config.sections import refuse_given, taken
from dptext_spark.disclosure.facts import RunFacts, RunRecord, UnchangedRun
from dptext_spark.disclosure.statement import not_audited
from dptext_spark.errors import DPTextError, RecordingError
from dptext_spark.importance.budget import Budget
from dptext_spark.ledger.balance import Balance
from dptext_spark.model.certificate import NO_BOUND
from dptext_spark.model.table_checks import NEW, DryRunResult, check_input, only_the_run
from dptext_spark.model.table_files import large_files, on_one_core
from dptext_spark.model.target_checks import only_created, our_commits
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps, by_default
from dptext_spark.spark.column_function import identify_rows
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.entries import check_ledger_writable, ledger_of
from dptext_spark.spark.job.job import RunResult, run_once
from dptext_spark.spark.job.planned_run import check_output, place_of
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.nested_columns import schema_of
from dptext_spark.spark.run_lists import read_lists
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.spark_errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.stream import stream
from dptext_spark.spark.tables import check_same_columns, checked_records, history, read_input, sizes_of
from dptext_spark.text.names.name_table import WordList

COMPARES_NONE = "its guarantee compares no two words, so no ε holds for it"
REFUTED = "its guarantee is refuted or its key is not secret, so no ε holds for it"
MISMATCH = "its counts or its consistency audit disagree with the written table"
DONE = ("succeeded", "recovered", "unchanged")


def after_run(spark: SparkSession, config: RunConfig, outcome: RunFacts | UnchangedRun) -> Verdict:
    """Judge a run that has just ended. One that was made before is judged by its account, with the newest audit of its table."""
    if isinstance(outcome, UnchangedRun):
        return of_account(spark, config.require, outcome.record, place_of(config).metrics)
    epsilon = {} if outcome.record_epsilon is None else outcome.record_epsilon.figures
    figures = {**epsilon, **(outcome.figures or {})}
    against = _unsound(
        refuted=outcome.is_refuted or outcome.key_kind == "insecure", unbounded=outcome.is_unbounded
    )
    return _judged(config.require, figures, outcome.ledger, config.budget, against, outcome.status)


def of_account(
    spark: SparkSession, require: Sequence[Requirement[str]], record: RunRecord, metrics: str, *,
    internal: bool = False,
) -> Verdict:  # fmt: skip
    """Judge a run by its account; its metrics are read only where a requirement needs them.

    Of the settings it takes the requirements; all else is the run's own. A folder of metrics that is not there measured nothing.
    """
    budget = record.settings.budget
    needed = any(is_restricted(requirement.subject, bounded=budget is not None) for requirement in require)
    figures = (runs.metrics_of(spark, metrics, record.run_id) if needed else None) or {}
    verdicts = (record.promised.status, "" if record.certified is None else record.certified.verdict)
    against = _unsound(
        refuted="refuted" in verdicts or record.key_kind == "insecure", unbounded=NO_BOUND in verdicts
    )
    return _judged(
        require, figures.get(None, {}), record.spent, budget, against, record.status, internal=internal
    )


def _unsound(*, refuted: bool, unbounded: bool) -> list[str]:
    """Return the reason why a run has no ε."""
    return [*([REFUTED] if refuted else []), *([COMPARES_NONE] if unbounded else [])]


def _judged(
    require: Sequence[Requirement[str]], figures: Mapping[str, float | None], spent: Balance | None,
    budget: Budget | None, unsound: Sequence[str], status: str, internal: bool = False,
) -> Verdict:  # fmt: skip
    measured = of_metrics(figures, COUNTED)
    largest = figures.get("record_epsilon_max") if budget is None else budget.record
    measured.append(Metric("record_epsilon", math.inf if unsound and largest is not None else largest))
    if spent is not None and spent.columns:
        measured.append(Metric("ledger_epsilon", max(column.total for column in spent.columns)))
    against = [*unsound, *([MISMATCH] if status == "mismatch" else [])]
    return Verdict.of(
        require, measured, bounded=budget is not None, against=against, unfinished=status not in DONE, internal=internal
    )  # fmt: skip


def run(
    config: RunConfig,
    spark: SparkSession | None = None,
    *,
    key: RunKey | None = None,
    progress: Steps | None = None,
) -> RunResult:
    """Run the job.

    Args:
        config: the settings.
        spark: a session; None takes the active one, or starts a local one.
        key: the run key; None takes the source that the settings name, or 32 bytes of the operating system. Refused with
            `key.deliver: executors`, where each worker reads that source.
        progress: progress callback, called with each step, never with data. None prints steps on stderr in a notebook or
            terminal.

    Returns:
        The result of a committed run.

    Raises:
        SettingsError, DataError: nothing was committed.
        RunError: the run failed before its commit; the target's versions are as they were. (Where the target's history
            cannot be read after a failure, the message says that this is not known.)
        CountMismatchError: the run committed, now or before, but its counts or the consistency audit do not agree.
        RecordingError: the run committed, but its account could not be made.

    Examples:
        >>> result = dps.run(dp.load_config("reviews.yaml", ["run.id=first"]))
        >>> result.run_id, result.status
        ('first', 'succeeded')
    """
    say = progress or by_default()
    refuse_given(config.key, key)
    key = key or taken(config.key)  # before Spark starts: it would inherit a variable
    if key is None and config.is_stream:
        require_lasting(config.key.kind, config.mode)
    unaudited = not_audited(config.row_key)
    if unaudited:
        say(unaudited)
    session = spark or spark_session()
    if config.is_stream:
        result = RunResult(stream(session, config, key, say))
    else:
        with suppress_sensitive_logs(session):
            result = run_once(lambda: prepare_run(session, config, key, say), config, say)
    return _required(session, config, result) if config.require else result


def _required(session: SparkSession, config: RunConfig, result: RunResult) -> RunResult:
    """Return the result of a committed and accounted run, with the outcome of its requirements."""
    with suppress_sensitive_logs(session):
        try:
            return replace(result, verdict=after_run(session, config, result.outcome))
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise RecordingError(
                f"{reduced(error, list(config.columns))} Run {result.run_id} was committed and accounted for, but not "
                "its requirements checked. Run again with that run.id, or see `dptext report`. Do not share it before."
            ) from None


def dry_run(config: RunConfig, say: Steps) -> DryRunResult:
    """Check a run by its session; nothing is written.

    Rows are read only of JSON, where Spark infers types from all records, of remote CSV files, and of lists of names in tables.

    Raises:
        SettingsError, DataError, RunError: as the run would.
    """
    check_beside(config)
    say("starting Spark")
    spark = spark_session()
    with suppress_sensitive_logs(spark):
        check_ledger_writable(spark, config.input, ledger_of(spark, config.input, config.ledger), dry=True)
        say("reading the input's schema")
        df, version = read_input(spark, config.input, list(config.columns))
        schema = schema_of(df.schema)
        fit = check_input(schema, config)
        identify_rows(df, config.row_key, config.record_key, ordinal=True)
        if config.input.format == "json":
            checked_records(spark, config.input, df)
        check_same_columns(spark, config.input)
        commits = history(spark, place_of(config).target)
        check_output(spark, config, df, fit, commits, persistent=config.key.kind != "os")
        if config.lists:
            say("reading the lists of names")
            read_lists(spark, config.lists)
        # CSV whose fields may hold line breaks: each file is read on one core, however large.
        reads_whole = config.input.by_name.get("multiline", "true").lower() == "true"
        large = 0
        if reads_whole and config.input.format in ("csv", "tsv"):
            large = large_files(sizes_of(spark, config.input.path or ""))
    if not commits:
        target = NEW
    elif only_created(commits):
        target = "exists, empty"
    else:
        ours = len(our_commits(commits))
        releases = f"{ours:,} release{'' if ours == 1 else 's'} of runs"
        target = f"exists, with {releases}; output.mode {config.output.mode}"
    slow = on_one_core(large) if large else ""
    read = f"the schema of {'the Delta table, ' + version if version.startswith('delta:') else 'its files'}"
    return DryRunResult(read, schema.names, fit.kept, target, tuple(only_the_run(config, fit.paths)), slow)


def check_beside(config: RunConfig) -> None:
    """Check points that need no table: a stream's key outlives it, and files of lists of names are readable.

    Raises:
        SettingsError: there is no such key.
        DataError: a list cannot be read, or is none; no entry is shown.
    """
    if config.is_stream:
        require_lasting(config.key.kind, config.mode)
    for field, source in config.lists.named():
        if source.file is not None:
            WordList.read(field, source.file)
