"""What identifies a row: a key column, the file and the row in it, or the place in a bare scan."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dptext_spark.errors import SettingsError
from dptext_spark.model.table_checks import check_keys_there
from dptext_spark.spark.errors import suppress_sensitive_logs
from dptext_spark.spark.tables.paths import schema_of
from dptext_spark.spark.udf.column import key_column

# Plan nodes that neither move rows between partitions nor change their order or number before the function. A plain `Scan`
# is none of them: it reads an RDD or a database, which may give its rows in another order the next time.
BARE = {
    "FileScan",
    "BatchScan",
    "ColumnarToRow",
    "Project",
    "Filter",
    "InputAdapter",
    "WholeStageCodegen",
    "Physical",
}
# What decides how files are cut into partitions and packed together.
_PACKING = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.leafNodeDefaultParallelism",
)


@dataclass(frozen=True, eq=False)
class Identity:
    """The identities of a run.

    Attributes:
        kind: `row_key`, `file_row`, or `ordinal:` and the layout of the scan.
        row: the row's identity; None for the ordinal.
        record: the record's identity; None where it is the row's.
    """

    kind: str
    row: Column | None
    record: Column | None


def identify_rows(df: DataFrame, row_key: str | None, record_key: str | None, ordinal: bool) -> Identity:
    """Choose the identity of rows and records.

    The place (partition, ordinal) is one only in a single batch write over a bare scan, where `ordinal` says so.

    Raises:
        DataError: a key column is missing.
        SettingsError: there is no stable identity; `row_key` is the cure.
    """
    check_keys_there(schema_of(df.schema), row_key, record_key)
    record = key_column(df, record_key, "record_key") if record_key else None
    if row_key:
        return Identity("row_key", key_column(df, row_key, "row_key"), record)
    if has_row_index(df):
        place = F.concat_ws("|", F.col("_metadata.file_path"), F.col("_metadata.row_index").cast("string"))
        return Identity("file_row", place, record)
    if ordinal and is_bare_scan(df):
        return Identity(f"ordinal:{_layout(df)}", None, record)
    raise SettingsError(
        "row_key: none given, and the input has no other stable identity of its rows; name a unique column as row_key."
    )


def has_row_index(df: DataFrame) -> bool:
    """Whether every row knows its file and its place in it (Parquet, and Delta with deletion vectors), once only."""
    if any(name.lower() == "_metadata" for name in df.columns):
        return False  # the input's own column, which hides Spark's
    try:
        with suppress_sensitive_logs():
            resolved = df.select("_metadata.file_path", "_metadata.row_index")
            resolved.schema  # noqa: B018  (resolves the columns)
    except PySparkException:
        return False
    return is_bare_scan(df, "Sample")


def plan_nodes(df: DataFrame) -> list[str]:
    """Return the node names of a frame's physical plan (classic sessions; none for a stream, which has no plan yet)."""
    if not hasattr(df, "_jdf") or df.isStreaming:
        return []
    plan: Any = df._jdf.queryExecution().executedPlan().toString()
    names = []
    for line in plan.splitlines():
        found = re.match(r"^[\s:+\-|*]*(?:\(\d+\)\s+)?([A-Za-z]+)", line)
        if found:
            names.append(found.group(1))
    return names


def is_bare_scan(df: DataFrame, *more: str) -> bool:
    """Check that the plan is a scan with projections and filters only, and `more` nodes."""
    nodes = plan_nodes(df)
    return bool(nodes) and set(nodes) <= BARE.union(more)


def _layout(df: DataFrame) -> str:
    """Return what ordinals depend on beside the files: the number of partitions of the scan, and how they are packed.

    The number alone does not tell: the same files make as many partitions in other ways.
    """
    if not hasattr(df, "_jdf"):
        return "unknown"
    spark = df.sparkSession
    packing = [str(spark.conf.get(name, None)) for name in _PACKING]
    packing.append(str(spark.sparkContext.defaultParallelism))
    return f"{df.rdd.getNumPartitions()}:{hashlib.sha256('|'.join(packing).encode()).hexdigest()[:8]}"
