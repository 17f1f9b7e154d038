"""The `runs` and `metrics` tables: the record that binds a run before its first data file, and its account afterwards."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark.schemas import METRICS, RUNS
from dptext_spark.spark.tables import Target, delta_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A run that finishes an unfinished one must agree with it in these.
BOUND = ("key_commitment", "config", "artifact", "input", "input_version", "identity", "output")


def find(spark: SparkSession, folder: str, run_id: str) -> dict[str, Any] | None:
    """Return the row of a run, or None.

    Raises:
        DataError: the table there is not one of runs.
    """
    if delta_version(spark, Target(path=folder)) is None:
        return None
    table = spark.read.format("delta").load(folder)
    missing = [name for name in RUNS.fieldNames() if name not in table.columns]
    if missing:
        raise DataError(
            f"audit.shareable: the table in {folder!r} lacks {', '.join(missing)}; name another folder."
        )
    rows = table.where(F.col("run_id") == run_id).collect()
    return rows[0].asDict() if rows else None


def is_unfinished(spark: SparkSession, folder: str, output: str) -> bool:
    """Whether a run that was to write `output` began and did not commit."""
    if delta_version(spark, Target(path=folder)) is None:
        return False
    begun = spark.read.format("delta").load(folder).where(F.col("status").isin("started", "failed"))
    return bool(begun.where(F.col("output") == output).limit(1).count())


def put(spark: SparkSession, folder: str, row: dict[str, Any]) -> None:
    """Write the row of a run: append it, or replace the one with its run id."""
    values = tuple(row.get(name) for name in RUNS.fieldNames())
    frame = spark.createDataFrame([values], RUNS).coalesce(1)
    target = Target(path=folder)
    if delta_version(spark, target) is None:
        frame.write.format("delta").mode("append").save(folder)
        return
    view = f"dptext_run_{secrets.token_hex(4)}"
    frame.createOrReplaceTempView(view)
    try:
        spark.sql(
            f"MERGE INTO {target.sql} AS t USING {view} AS s ON t.run_id = s.run_id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    finally:
        spark.catalog.dropTempView(view)


def put_metrics(
    spark: SparkSession,
    folder: str,
    run_id: str,
    metrics: list[tuple[str | None, str, float | None]],
    prefix: str = "",
) -> None:
    """Replace the metrics of a run whose names begin with `prefix`: (column or None, name, value) each."""
    rows = [
        (run_id, column, name, None if value is None else float(value)) for column, name, value in metrics
    ]
    frame = spark.createDataFrame(rows, METRICS).coalesce(1)
    replaced = f"run_id = '{checked(run_id)}'" + (f" AND startswith(metric, '{prefix}')" if prefix else "")
    writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", replaced)
    if delta_version(spark, Target(path=folder)) is None:
        writer = frame.write.format("delta").mode("append")
    writer.save(folder)


def checked(run_id: str) -> str:
    """Return a run id that may stand in a predicate.

    Raises:
        SettingsError: other characters than letters, digits, dot, dash and underscore.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", run_id):
        raise SettingsError(
            "run.id: letters, digits, dots, dashes and underscores are valid, at most 128 of them."
        )
    return run_id


def disagreements(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in which bound fields two records of one run id differ."""
    return [name for name in BOUND if before.get(name) != now.get(name)]


def utc(seconds: float) -> datetime:
    """Return a time for a TIMESTAMP column."""
    return datetime.fromtimestamp(seconds)
