"""`mode: incremental` and `streaming`: rows added to a Delta table, one run for each micro-batch.

Spark plans a micro-batch (which files of the source), writes the plan to its checkpoint, and calls us. After our return it notes
that the micro-batch is done. Each is a separate run, `<stream>.<number>`, written and accounted for as any other. A driver that
dies in between leaves one micro-batch that is planned but not done. The next start repeats it under the same run id with the same
draws, or finds its commit and only accounts for it.

Row keys that come again in a stream: refused, left out, or released once more, by `stream.duplicates`.

The account of a stream as a whole: the sums over its micro-batches, and its statement.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession, Window, functions

from dptext_spark.audit.deniability import expected_change
from dptext_spark.config.model import TRIGGER, RunConfig
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import Metrics, MicroBatches, RunFacts
from dptext_spark.errors import DataError, DPTextError, RunError, SettingsError
from dptext_spark.model.record import RecordEpsilon
from dptext_spark.model.target_checks import Commit, our_commits
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps
from dptext_spark.spark.column_function import UNKNOWN_ROWS
from dptext_spark.spark.job import runs, writing
from dptext_spark.spark.job.idempotency import begin, begun, check_still_there, part_of_source, settings_of
from dptext_spark.spark.job.job import run_once
from dptext_spark.spark.job.ledger import standing
from dptext_spark.spark.job.planned_run import MicroBatch, RunPlan, require_key
from dptext_spark.spark.job.prepare import check_language, prepare_run, with_lists
from dptext_spark.spark.nested_columns import quoted, selected
from dptext_spark.spark.session import context_of, reading
from dptext_spark.spark.spark_errors import condition_of, reduced, suppress_sensitive_logs
from dptext_spark.spark.tables import opened, own_table, releases
from dptext_spark.text.engine import COUNTERS

F: Any = functions
KEY, PLACE = "__dptext_key", "__dptext_place"


def deduplicate(plan: RunPlan, commits: Sequence[Commit]) -> tuple[DataFrame, int, int | None]:
    """Check the keys of a micro-batch: one pass over them, and a join with the target's keys where those are kept.

    A micro-batch that committed before is compared with the target before that commit, so that it has the same rows again.

    Returns:
        (the rows that go on, how many they are at most, how many were left out; None where rows may come again).

    Raises:
        DataError: a NULL key, or one that comes again and is refused.
    """
    config, df = plan.config, plan.df
    key, handling = str(config.row_key), config.stream.duplicates
    if config.record_key:
        _refuse_null(df, config.record_key, "record_key")
    rows, distinct = _refuse_null(df, key, "row_key")
    ours = our_commits(commits).get(plan.run_id)
    if handling == "accept":
        return df, rows, None
    if handling == "refuse" and ours is not None:
        return df, rows, 0  # it would not have committed otherwise
    released = _released(plan, commits, ours)
    again = 0
    if released is not None:
        released_keys = released.select(quoted(key).alias(KEY)).distinct()
        matched = quoted(key) == F.col(KEY)
        again = df.join(released_keys, matched, "left_semi").count()
        df = df.join(released_keys, matched, "left_anti") if again else df
    if handling == "refuse" and (again or distinct < rows):
        raise DataError(
            f"row_key: {again:,} rows of this micro-batch have a {key!r} that the target holds, and "
            f"{rows - distinct:,} repeat another row. Nothing of the micro-batch was written. Give each "
            "row once, or set stream.duplicates to drop (leave them out) or accept (release them again)."
        )
    if distinct < rows:
        # One row of each key, the same whatever the order: the least by all of its values, written as JSON.
        order = F.to_json(F.struct(*[quoted(name) for name in df.columns]))
        place = F.row_number().over(Window.partitionBy(quoted(key)).orderBy(order))
        df = df.withColumn(PLACE, place).where(F.col(PLACE) == 1).drop(PLACE)
    return df, rows, rows - df.count() if again or distinct < rows else 0


def _refuse_null(df: DataFrame, name: str, field: str) -> tuple[int, int]:
    """Return (rows, distinct keys)."""
    row = df.agg(F.count(F.lit(1)), F.count(quoted(name)), F.countDistinct(quoted(name))).first()
    assert row is not None
    rows, valued, distinct = (int(value) for value in row)
    require_key(field, name, rows, valued)
    return rows, distinct


def _released(plan: RunPlan, commits: Sequence[Commit], ours: Commit | None) -> DataFrame | None:
    """Return the target before this micro-batch; None if there was none."""
    if not commits:
        return None
    version = commits[0].version if ours is None else ours.version - 1
    if version < 0:
        return None
    return opened(plan.spark, plan.place.target, version)


RECENT = 100  # commits of the target that are read to find the one a micro-batch has just made
POLL = 0.5  # seconds between looks at whether to stop
CHANGED = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")
EVOLVED = "DELTA_SCHEMA_CHANGED"  # a column was added: the next start reads it
# A column was renamed, dropped or made of another type: no later start of this checkpoint reads past that.
RENAMED = ("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE", "DELTA_STREAMING_CANNOT_CONTINUE")


class MicroBatchError(Exception):
    """Error for Spark on a micro-batch that failed or may not begin. It holds the number only, for Spark logs and keeps it."""


def stream(session: SparkSession, config: RunConfig, key: RunKey | None, say: Steps) -> RunFacts:
    """Read rows added since the last run, or until the stream is stopped, and return the facts.

    Raises:
        DPTextError: of the failed micro-batch, as a run's. Earlier ones are committed, and the next start repeats it.
    """
    started = time.time()
    with suppress_sensitive_logs(session):
        try:
            plan, unseen, known = _prepared(session, config, key, say)
            runs.put(session, plan.place.runs, plan.record("started", started))
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise _reduced(error, config, "Nothing was written to the target.") from None
        batches = _Batches(plan, unseen, known, say)
        failure: DPTextError | None = None
        try:
            _carried(plan, batches)
        except Exception as error:
            failure = batches.failure or _reduced(error, config, "No unfinished micro-batch was found.")
        finally:
            batches.end()
        try:
            facts, metrics = totals(plan, batches.facts, started, failed=failure is not None)
            put_totals(plan, facts, metrics, started)
        except Exception as error:
            failure = failure or RunError(
                f"{reduced(error, list(config.columns))} The micro-batches are written and accounted for, but "
                "their totals are not. The next run writes the totals."
            )
        if failure is not None:
            raise failure from None
        if batches.failure is not None:  # somebody stopped the query, and not us
            problem = "its last micro-batch was interrupted; the next start repeats it"
            facts = replace(facts, problems=(*facts.problems, problem))
        return facts


def _prepared(
    session: SparkSession, config: RunConfig, key: RunKey | None, say: Steps
) -> tuple[RunPlan, bool, Collection[str]]:
    """Check everything that can be checked before the first micro-batch, and bind the checkpoint.

    Returns:
        (the plan, whether the stream is new and the language of its source unknown, the run ids of its micro-batches in the table
        of runs).
    """
    if context_of(session) is None:
        raise SettingsError(
            f"mode: {config.mode!r} needs a classic Spark session. On Spark Connect, use mode batch, or a "
            "job of spark-submit."
        )
    with reading(session, lambda: begun(session, config)) as awaited:
        plan = prepare_run(session, config, key, say)
        earlier = awaited()
    if not plan.input_version.startswith("delta:"):
        raise DataError(
            f"input.table: {config.input.table!r} is a view or no Delta table. Name a Delta table for "
            f"mode {config.mode}."
        )
    # Before anything is bound to the settings: with another lexicon the stream may begin anew in the same place.
    unseen = earlier is None
    if unseen and not config.stream.starting_version:
        unseen = not check_language(plan, say)
    plan = with_lists(replace(plan, run_id=begin(plan, earlier)), say)
    known = runs.micro_batches(session, plan.place.runs, plan.run_id) if earlier is None else earlier.batches
    _check_target(plan, known)
    return plan, unseen, known


def _check_target(plan: RunPlan, known: Mapping[str, int | None]) -> None:
    """Refuse to continue a stream whose target lost its rows: earlier rows of the source would be missing."""
    done = {version: run_id for run_id, version in known.items() if version is not None}
    if done:
        newest = max(done)
        remedy = "Restore the target as it was, or begin a new target with a new checkpoint and a new run id"
        check_still_there(plan.place.target, done[newest], newest, plan.commits(), remedy)


def _carried(plan: RunPlan, batches: _Batches) -> None:
    """Run the stream to its end: all that is there, or until somebody stops it."""
    config = plan.config
    writer = _source(plan).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", str(config.checkpoint)).queryName(f"dptext-{plan.run_id}")
    if config.mode == "incremental":
        query = writer.trigger(availableNow=True).start()
    else:
        query = writer.trigger(processingTime=config.stream.trigger or TRIGGER).start()
    with _asked_to_stop() as asked:
        try:
            while not query.awaitTermination(POLL):  # type: ignore[arg-type]  # it takes parts of a second
                if asked.is_set():
                    batches.close()
                    query.stop()
        except Exception:  # a stopped query ends with an error that is none of ours
            if not batches.closed or batches.failure is not None:
                raise
        finally:
            if query.isActive:
                query.stop()


def _source(plan: RunPlan) -> DataFrame:
    config, source = plan.config, plan.config.input
    options = {
        "skipChangeCommits": str(config.stream.changes == "ignore").lower(),
        "maxFilesPerTrigger": config.stream.max_files,
        "startingVersion": config.stream.starting_version,
    }
    reader = plan.spark.readStream.format("delta")
    for name, value in options.items():
        if value is not None:
            reader = reader.option(name, str(value))
    df = reader.table(source.table) if source.table else reader.load(source.path)
    return selected(df, source.where)


class _Batches:
    """Spark's callback for each micro-batch, in a separate thread."""

    def __init__(self, plan: RunPlan, unseen: bool, known: Collection[str], say: Steps) -> None:
        self.facts: list[RunFacts] = []
        self._done = 0
        self.failure: DPTextError | None = None
        self.closed = False
        self._plan, self._say = plan, say
        self._busy = threading.Lock()
        self._bound = settings_of(plan, plan.run_id)
        self._lists = plan.lists
        self._unseen, self._known = unseen, known

    def end(self) -> None:
        """Release the files of the workers."""
        if self._lists is not None:
            self._lists.end()

    def close(self) -> None:
        """Wait until the micro-batch in hand is finished, and let no other begin."""
        with self._busy:
            self.closed = True

    def __call__(self, df: DataFrame, number: int) -> None:
        """Carry out one micro-batch. An error is kept here; Spark gets only the number."""
        with self._busy:
            if not self.closed and self.failure is None:
                try:
                    self._one(df, number)
                    return
                except BaseException as error:
                    self.failure = _reduced(
                        error, self._plan.config, f"It was micro-batch {number} of the stream."
                    )
        raise MicroBatchError(f"micro-batch {number}")

    def _with_lists(self, plan: RunPlan, say: Steps) -> RunPlan:
        """Return a micro-batch with the lists of names as they are now."""
        listed, before = with_lists(replace(plan, lists=self._lists), say), self._lists
        if before is not None and listed.lists is not before:
            before.end()
        self._lists = listed.lists
        return listed

    def _one(self, df: DataFrame, number: int) -> None:
        config, base = self._plan.config, self._plan
        first = not self._done  # only that one can have been begun by another process before
        unseen = self._unseen and number == 0
        place = MicroBatch(base.run_id, number, None if first else RECENT, is_unseen=unseen)
        place = replace(place, is_begun=place.run_id in self._known)
        part = part_of_source(df.sparkSession, str(config.checkpoint), number)
        plan = replace(
            base,
            spark=df.sparkSession,
            df=df,
            run_id=place.run_id,
            input_version=part,
            stream=place,
            bound=self._bound,
        )

        def prepared() -> RunPlan:
            listed = self._with_lists(plan, tell)
            admitted, rows, dropped = deduplicate(listed, listed.commits())
            return replace(listed, df=admitted, rows=rows, stream=replace(place, dropped=dropped))

        def tell(step: str) -> None:
            self._say(f"micro-batch {number}: {step}")

        outcome = run_once(prepared, config, tell).outcome
        self._done += 1
        if isinstance(outcome, RunFacts):
            self.facts.append(outcome)


def _reduced(error: BaseException, config: RunConfig, more: str) -> DPTextError:
    """Turn an error into one that is safe to print, with a remedy for users of streams."""
    if isinstance(error, DPTextError):
        return type(error)(f"{error} {more}") if more.startswith("It was") else error
    condition = str(condition_of(error))
    if condition.startswith(CHANGED):
        return DataError(
            f"input: rows of the source were updated or deleted ({condition}), and a stream reads additions only. Add "
            "rows only, or set stream.changes=ignore: it leaves out each such commit, with the rows that it adds."
        )
    if condition.startswith(RENAMED):
        return DataError(
            f"input: a column of the source was renamed or dropped ({condition}), and this checkpoint cannot go on. Set "
            "a new stream.checkpoint, and stream.starting_version to the version that changed the columns (DESCRIBE "
            "HISTORY shows it). Earlier rows that this stream has not read are left out."
        )
    if condition.startswith(EVOLVED):
        return DataError(
            f"input: the source's columns changed while the stream ran ({condition}). Run again. Keep the text columns "
            "and keys. New columns are left out with output.other_columns drop or a list, and refused with keep."
        )
    failure = reduced(error, list(config.columns))
    return type(failure)(f"{failure} {more}")


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C and SIGTERM set, in place of ending the process in the middle of a micro-batch."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: asked.set())
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


SUMMED = (
    *(name for name in COUNTERS if name not in ("invalid", "distinct")),
    UNKNOWN_ROWS,
    "duplicates_dropped",
    "write_seconds",
)


def totals(
    plan: RunPlan, done: Sequence[RunFacts], started: float, *, failed: bool
) -> tuple[RunFacts, Metrics]:
    """Add up the micro-batches.

    `done` are the facts of the micro-batches that this process made.

    Returns:
        The facts: `rows` and `seconds` are those of this process, `batches` holds number and totals of the whole stream. Then the
        metrics of the whole stream: `restricted` holds those without a column.
    """
    config, spark = plan.config, plan.spark
    # Four independent tables.
    with (
        reading(spark, lambda: _metrics(plan)) as summed,
        reading(spark, lambda: standing(plan)) as standing_now,
        reading(spark, plan.commits) as commits,
    ):
        whole, rows, seconds, version, last, mismatched, second = _summed(plan)
        metrics, spent, released = summed(), standing_now(), releases(commits())
    shares = metrics.get(None, {})
    newest = done[-1] if done else None
    composed = None if newest is None else newest.record_epsilon
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
        record_epsilon=None if composed is None else RecordEpsilon(composed.basis),
        other_columns=tuple(name for name in plan.kept if name not in plan.columns),
        input_version=None if last is None else f"delta:{last.rpartition('..')[2]}",
        output_version=version,
        releases_in_history=len(released),
        audited="" if newest is None else f"In each micro-batch: {newest.audited}",
        second_release=bool(second),
        ledger=spent,
        expected_change=expected_change(plan.privatizer),  # once, and not of every micro-batch
        figures=shares,
    )
    return replace(facts, disclosure=disclosure(facts)), metrics


def put_totals(plan: RunPlan, facts: RunFacts, metrics: Metrics, started: float) -> None:
    """Write the rows of `metrics` and the row of `runs` for the whole stream.

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
    runs.put_metrics(plan.spark, plan.place.metrics, plan.run_id, runs.rows_of(metrics))
    runs.put(plan.spark, plan.place.runs, record)


def _summed(plan: RunPlan) -> Row:
    """Add up the rows of `runs` of the micro-batches that committed."""
    # The part of the source in its numbers' order: as text 10 comes before 9.
    number = F.element_at(F.split("run_id", r"\."), -1).cast("long")
    # A few numbers each: one partition takes them without a shuffle.
    table = plan.spark.read.format("delta").load(plan.place.runs).coalesce(1)
    batches = table.where(F.col("run_id").startswith(f"{plan.run_id}.") & F.col("output_version").isNotNull())
    totals = batches.agg(
        F.count(F.lit(1)), F.coalesce(F.sum("rows"), F.lit(0)), F.coalesce(F.sum("seconds"), F.lit(0.0)),
        F.max("output_version"), F.max_by("input_version", number), F.sum((F.col("status") == "mismatch").cast("long")),
        F.max(F.col("second_release").cast("int")),
    ).first()  # fmt: skip
    assert totals is not None  # an aggregate without groups has one row
    return totals


def _metrics(plan: RunPlan) -> Metrics:
    """Sum the metrics of the micro-batches, and compute the shares anew.

    Figures of a record do not add up over micro-batches. The largest is kept, and only if no record can have rows in two
    micro-batches.
    """
    table = own_table(plan.spark, plan.place.metrics)
    if table is None:
        return {}
    summed = (
        table.where(F.col("run_id").startswith(f"{plan.run_id}."))
        .coalesce(1)
        .groupBy("column", "metric")
        .agg(F.sum("value").alias("sum"), F.max("value").alias("max"))
        .collect()
    )
    totals = {(row["column"], row["metric"]): row for row in summed}
    metrics: dict[str | None, dict[str, float | None]] = {}
    for column in (*plan.columns, None):
        sums = {name: totals[column, name]["sum"] for name in SUMMED if (column, name) in totals}
        counters = {name: int(value or 0) for name, value in sums.items() if name in COUNTERS}
        figures = writing.shares({**dict.fromkeys(COUNTERS, 0), **counters}) if counters else {}
        metrics[column] = figures | {name: value for name, value in sums.items() if name not in counters}
        if column is None and counters and sums.get("write_seconds"):
            metrics[None]["tokens_per_second"] = counters["words"] / sums["write_seconds"]
    if (None, "record_epsilon_max") in totals and plan.config.record_key in (None, plan.config.row_key):
        largest = ("record_epsilon_max", "record_bound_max", "record_bound_delta")
        metrics[None] |= {name: totals[None, name]["max"] for name in largest if (None, name) in totals}
    return metrics
