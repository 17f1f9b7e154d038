"""The `runs` and `metrics` tables: the record that binds a run before its first data file, and its account afterwards.

Changes of a table that other processes change, too: one after the other on a local disk, elsewhere again until one passes.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dptext_spark.config.locations import normal_path
from dptext_spark.config.sections import is_table_name
from dptext_spark.disclosure.facts import Metrics, RunRecord
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.spark.schemas import METRICS, PROPERTIES, RUNS, frame_of
from dptext_spark.spark.spark_errors import condition_of
from dptext_spark.spark.tables import own_table

Done = TypeVar("Done")
TRIES = 40
PATIENCE = 120.0  # seconds that one process waits for another


def retry_on_conflict(path: str, once: Callable[[], Done | None]) -> Done:
    """Repeat a step on a table until no other commit interferes; the step returns None if one did."""
    for turn in range(TRIES):
        with _alone(path):
            try:
                done = once()
            except Exception as error:
                if not _conflicts(error):
                    raise
                done = None
        if done is not None:
            return done
        time.sleep(min(2.0, 0.05 * 2**turn) * (0.5 + secrets.randbelow(1000) / 1000))
    raise RunError(f"other runs kept changing {path!r}. Try again when they have ended.")


def _conflicts(error: Exception) -> bool:
    """Check by the name of an error, not by its text, whether another commit came first."""
    called = f"{type(error).__name__} {condition_of(error)}".upper()
    return any(
        word in called
        for word in (
            "CONCURRENT",
            "PROTOCOLCHANGED",
            "PROTOCOL_CHANGED",
            "METADATACHANGED",
            "METADATA_CHANGED",
        )
    )


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold the lock of a table on a local disk; elsewhere the log store lets one commit pass."""
    folder = path if is_table_name(path) else normal_path(path)
    handle = None
    if folder.startswith("/"):
        try:
            os.makedirs(folder, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY)
        except OSError:
            handle = (
                None  # not a disk of this machine; a table that cannot be written is refused by its write
            )
    try:
        if handle is not None:
            _lock(handle, path)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int, path: str) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise RunError(
                    f"another process has held {path!r} for {PATIENCE:.0f} s. Try again when it has ended."
                ) from None
            time.sleep(0.05)
        except OSError:
            return  # a file system without locks


FINISHED = ("succeeded", "recovered")


def find(spark: SparkSession, folder: str, run_id: str) -> RunRecord | None:
    """Return the row of a run, or None.

    Raises:
        DataError: the table there is not one of runs.
    """
    table = own_table(spark, folder)
    rows = [] if table is None else table.where(F.col("run_id") == run_id).collect()
    # Two processes that began one run at once may both have appended a row; the one that came to its end counts.
    rows.sort(key=lambda row: row["status"] not in FINISHED)
    return RunRecord.of(rows[0].asDict()) if rows else None


def micro_batches(spark: SparkSession, folder: str, stream: str) -> dict[str, int | None]:
    """Return the run ids of a stream's micro-batches, each with its committed version, or None.

    Raises:
        DataError: the table there is not one of runs.
    """
    table = own_table(spark, folder)
    if table is None:
        return {}
    committed = table.where(F.col("run_id").startswith(f"{stream}."))
    return dict(map(tuple, committed.select("run_id", "output_version").collect()))


def newest(spark: SparkSession, folder: str, count: int, status: str | None = None) -> list[RunRecord]:
    """Return the newest runs, of a status or of any, newest first; none where there is no such table."""
    table = own_table(spark, folder)
    if table is None:
        return []
    chosen = table if status is None else table.where(F.col("status") == status)
    rows = chosen.orderBy(F.col("started_at").desc()).limit(count).collect()
    return [RunRecord.of(row.asDict()) for row in rows]


def is_unfinished(spark: SparkSession, folder: str, output: str) -> bool:
    """Check whether a run that was to write `output` began and did not commit."""
    table = own_table(spark, folder)
    if table is None:
        return False
    begun = table.where(F.col("status").isin("started", "failed") & (F.col("output") == output))
    return bool(begun.limit(1).count())


def put(
    spark: SparkSession, folder: str, record: RunRecord, *, new: bool = False, keep_finished: bool = False
) -> RunRecord:
    """Write the row of a run: append it, or replace the one with its run id.

    Each run is a partition: replacing its row is a commit without a scan, and runs beside it do not conflict.

    `new` is quicker, where there is no such row. With `keep_finished` the row of a successful run stays: another process of the
    same command may have written it.

    Returns:
        The row that is in the table now.
    """
    values = tuple(getattr(record, name) for name in RUNS.fieldNames())
    frame = frame_of(spark, [values], RUNS)
    replaced = f"run_id = '{checked(record.run_id)}'"

    def once() -> RunRecord:
        stands = find(spark, folder, record.run_id) if keep_finished and not new else None
        if stands is not None and stands.status in FINISHED:
            return stands
        exists = not new and own_table(spark, folder) is not None
        _write(folder, frame, replaced if exists else None, "run_id")
        return record

    return retry_on_conflict(folder, once)


def read_log(spark: SparkSession, folder: str, run_id: str) -> None:
    """Have Delta read the log of the table of runs and keep it, as far as a run needs it that then replaces its row."""
    table = own_table(spark, folder)
    if table is not None:
        table.where(F.col("run_id") == run_id).inputFiles()


def _write(folder: str, frame: DataFrame, replaced: str | None, partition: str | None = None) -> None:
    """Append rows to a table, or replace those of a predicate, in one commit; the first rows make the table."""
    writer = frame.write.format("delta").options(**PROPERTIES)
    if partition is not None:
        writer = writer.partitionBy(partition)
    if replaced is None:
        writer.mode("append").save(folder)
    else:
        writer.mode("overwrite").option("replaceWhere", replaced).save(folder)


def put_metrics(
    spark: SparkSession,
    folder: str,
    run_id: str,
    metrics: Iterable[tuple[str | None, str, float | None]],
    prefix: str = "",
    new: bool = False,
) -> None:
    """Replace the metrics of a run whose names begin with `prefix`: (column or None, name, value) each; `new`: there are none.

    Each run is a partition, as in `runs`.
    """
    rows = [
        (run_id, column, name, None if value is None else float(value)) for column, name, value in metrics
    ]
    frame = frame_of(spark, rows, METRICS)
    replaced = f"run_id = '{checked(run_id)}'" + (f" AND startswith(metric, '{prefix}')" if prefix else "")

    def once() -> tuple[()]:
        exists = own_table(spark, folder) is not None
        _write(folder, frame, replaced if exists and not new else None, None if exists else "run_id")
        return ()

    retry_on_conflict(folder, once)


def add_metrics(
    spark: SparkSession, folder: str, run_id: str, metrics: Iterable[tuple[str | None, str, float | None]]
) -> None:
    """Append metrics of a run; present ones stay."""
    rows = [(run_id, *metric) for metric in metrics]
    if rows:
        _write(folder, frame_of(spark, rows, METRICS), None)


def rows_of(metrics: Metrics) -> Iterator[tuple[str | None, str, float | None]]:
    """Yield metrics as rows of their table."""
    return ((column, name, value) for column, figures in metrics.items() for name, value in figures.items())


def metrics_of(spark: SparkSession, folder: str, run_id: str) -> Metrics | None:
    """Return the metrics of a run; None where there are none."""
    table = own_table(spark, folder)
    if table is None:
        return None
    rows = table.where(F.col("run_id") == run_id).select("column", "metric", "value").collect()
    metrics: dict[str | None, dict[str, float | None]] = {None: {}}
    for column, name, value in rows:
        metrics.setdefault(column, {})[name] = value
    return metrics if rows else None


def checked(run_id: str) -> str:
    """Check that a run id is safe in a predicate, and return it.

    Raises:
        SettingsError: other characters than letters, digits, dot, dash and underscore.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", run_id):
        raise SettingsError(
            "run.id: only letters, digits, dots, dashes and underscores are valid, at most 128 of them."
        )
    return run_id


def utc(seconds: float) -> datetime:
    """Return a time for a TIMESTAMP column."""
    return datetime.fromtimestamp(seconds)
