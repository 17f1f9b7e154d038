"""The keys of both tables, checked and matched in one pass: how many rows each has, and how many are in both."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import DataFrame, functions

from dptext_spark.audit.table.plan import AuditPlan
from dptext_spark.errors import DataError
from dptext_spark.spark.auditing.two_tables import TwoTables, row_keys
from dptext_spark.spark.job.checks import require_key
from dptext_spark.spark.tables.paths import quoted

PLACE = "file and place"  # what identifies rows where no column does
F: Any = functions  # its stubs leave out what Spark adds at run time


class KeyCounts(NamedTuple):
    """What the keys say.

    Attributes:
        table: rows of the table.
        source: rows of its source.
        both: rows that are in both.
    """

    table: int
    source: int
    both: int


def counted_keys(plan: AuditPlan, tables: TwoTables) -> KeyCounts:
    """Check that the row key is unique and never NULL in both tables, and the record key never NULL, and count rows.

    Raises:
        DataError: a key is NULL or repeats, with the number of rows; or the row key has two types.
    """
    row = _keys(plan, tables).first()
    assert row is not None  # an aggregate without groups has one row
    for side, field in (("table", "table"), ("source", "against")):
        rows, held, distinct = (int(row[f"{side}_{name}"] or 0) for name in ("rows", "held", "distinct"))
        try:
            require_key("row_key", plan.row_key or PLACE, rows, held, distinct)
        except DataError as error:
            raise DataError(f"{field}: {error}") from None
    in_table, in_source = int(row["table_rows"] or 0), int(row["source_rows"] or 0)
    if plan.record_key:
        require_key("record_key", plan.record_key, in_source, in_source - int(row["missing"] or 0))
    return KeyCounts(in_table, in_source, int(row["both"]))


def require_matching(plan: AuditPlan, counts: KeyCounts) -> None:
    """Refuse tables whose rows do not match; the message holds counts, never a key."""
    in_table, in_source, rows = counts
    said = (
        f"row_key: {rows:,} rows are in both; of the table's {in_table:,} rows {in_table - rows:,} are not in the source, and "
        f"of the source's {in_source:,} rows {in_source - rows:,} are not in the table."
    )
    if not rows and plan.row_key is None:
        raise DataError(
            "row_key: none given, and no row has its file and its place in both tables, for files were written anew; valid: "
            "--row-key, a column that identifies a row in both."
        )
    if not rows:
        raise DataError(f"{said} Name the source of this table, and a key that both have.")
    if (rows != in_table or rows != in_source) and not plan.partial:
        raise DataError(f"{said} With --partial the rows that are in both are audited.")


def _keys(plan: AuditPlan, tables: TwoTables) -> DataFrame:
    """Count by key, then over all keys: one row."""
    of_table, of_source = row_keys(plan, tables)
    missing = quoted(plan.record_key).isNull() if plan.record_key else F.lit(False)
    one, none = F.lit(1).cast("long"), F.lit(0).cast("long")
    both = tables.table.select(
        of_table.alias("key"), one.alias("table"), none.alias("source"), none.alias("missing")
    ).unionAll(tables.source.select(of_source.alias("key"), none, one, missing.cast("long")))
    sides = ("table", "source")
    counts = both.groupBy("key").agg(*[F.sum(name).alias(name) for name in (*sides, "missing")])
    held = F.col("key").isNotNull()
    figures = [F.sum("missing").alias("missing")]
    for side in sides:
        there = F.col(side) > 0
        figures += [
            F.sum(side).alias(f"{side}_rows"),
            F.sum(F.when(held, F.col(side))).alias(f"{side}_held"),
            F.count_if(held & there).alias(f"{side}_distinct"),
        ]
    figures.append(F.count_if(held & (F.col("table") > 0) & (F.col("source") > 0)).alias("both"))
    return counts.agg(*figures)
