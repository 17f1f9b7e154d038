"""The `runs` and `metrics` tables: the record that binds a run before its first data file, and its account afterwards."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dptext_spark.errors import DataError
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
        raise DataError(f"audit.shareable: the table in {folder!r} lacks {', '.join(missing)}; name another folder.")
    rows = table.where(F.col("run_id") == run_id).collect()
    return rows[0].asDict() if rows else None


def put(spark: SparkSession, folder: str, row: dict[str, Any]) -> None:
    """Write the row of a run: append it, or replace the one with its run id."""
    values = tuple(row.get(name) for name in RUNS.fieldNames())
    frame = spark.createDataFrame([values], RUNS).coalesce(1)
    target = Target(path=folder)
    if delta_version(spark, target) is None:
        frame.write.format("delta").mode("append").save(folder)
        return
    view = f"dptext_run_{abs(hash(row['run_id']))}"
    frame.createOrReplaceTempView(view)
    try:
        spark.sql(
            f"MERGE INTO {target.sql} AS t USING {view} AS s ON t.run_id = s.run_id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    finally:
        spark.catalog.dropTempView(view)


def put_metrics(spark: SparkSession, folder: str, run_id: str, metrics: list[tuple[str | None, str, float | None]]) -> None:
    """Replace the metrics of a run: (column or None, name, value) each."""
    rows = [(run_id, column, name, None if value is None else float(value)) for column, name, value in metrics]
    target = Target(path=folder)
    if delta_version(spark, target) is not None:
        spark.sql(f"DELETE FROM {target.sql} WHERE run_id = :run_id", args={"run_id": run_id})
    spark.createDataFrame(rows, METRICS).coalesce(1).write.format("delta").mode("append").save(folder)


def disagreements(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in which bound fields two records of one run id differ."""
    return [name for name in BOUND if before.get(name) != now.get(name)]


def utc(seconds: float) -> datetime:
    """Return a time for a TIMESTAMP column."""
    return datetime.fromtimestamp(seconds)
