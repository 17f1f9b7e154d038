"""A written table and its source, opened at one version each, checked, and joined by their rows.

The keys of both tables, checked and matched in one pass: how many rows each has, and how many are in both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql import types as T

from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import check_texts
from dptext_spark.model.target_checks import Commit, our_commits
from dptext_spark.spark.auditing.pair_tables import side_of
from dptext_spark.spark.job.checks import require_key
from dptext_spark.spark.tables.identity import has_row_index
from dptext_spark.spark.tables.paths import paths_of, quoted, schema_of
from dptext_spark.spark.tables.tables import Target, checked_records, history, read_input
from dptext_spark.spark.tables.tables import opened as opened_at
from dptext_spark.spark.udf.column import key_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F: Any = functions  # its stubs leave out what Spark adds at run time
# What reading begins its messages with: here the table has another name.
_OF_THE_INPUT = re.compile(r"^input(\.\w+)?: ")
_CLASSES = (T.StringType, T.BooleanType, T.NumericType, T.DateType)


@dataclass(frozen=True, eq=False)
class TwoTables:
    """Both tables, opened at one version each."""

    table: DataFrame
    source: DataFrame
    version: str
    source_version: str
    made_by: tuple[str, Commit] | None  # the newest run of ours, and its commit


def opened(spark: SparkSession, plan: AuditPlan) -> TwoTables:
    """Open both tables and check their columns; messages say which of the two is meant."""
    frames = []
    for field, place in (("table", plan.table), ("against", plan.source)):
        try:
            read_as = plan.read_as if field == "against" else None
            if read_as is None:
                df, version, commits = _opened(spark, plan, place, whole=field == "table")
            else:
                df, version = read_input(spark, read_as, list(plan.columns))
                checked_records(spark, read_as, df)
                commits = []
            check_texts(schema_of(df.schema), plan.columns)
        except DataError as error:
            raise DataError(f"{field}: {_OF_THE_INPUT.sub('', str(error))}") from None
        keys = [("row_key", plan.row_key)] if plan.row_key else []
        if plan.row_key is None and not has_row_index(df):
            raise SettingsError(
                f"row_key: none given, and {place!r} ({field}) does not keep the file and the place of a row; valid: --row-key, "
                "a column that identifies a row in both tables, or Parquet files of the same names in both."
            )
        if field == "against":
            keys += [(name, key) for name, key in plan.of_source.items() if key is not None]
        for name, key in keys:
            if key not in df.columns:
                raise DataError(
                    f"{name}: {key!r} is not in {place!r}; columns there: {', '.join(df.columns)}."
                )
        frames.append((df, version, commits))
    (table, version, commits), (source, source_version, _) = frames
    newest = next(iter(our_commits(commits).items()), None)  # the history has the newest first
    return TwoTables(table, source, version, source_version, newest)


def _opened(
    spark: SparkSession, plan: AuditPlan, place: str, *, whole: bool
) -> tuple[DataFrame, str, list[Commit]]:
    """Open a table at its newest version, by one reading of its log: (the frame, its version, its commits).

    Args:
        spark: the session.
        plan: of the audit.
        place: a path or a catalog name.
        whole: whether all commits are wanted, or the newest alone.
    """
    target = plan.target(place)
    is_table = Target(path=target.path, name=target.name)
    commits = history(spark, is_table, None if whole else 1)
    if commits:
        version = commits[0].version
        try:
            df = opened_at(spark, is_table, version)
            df.schema  # noqa: B018  (makes Spark look for it now)
            return df, f"delta:{version}", commits
        except PySparkException:  # what reads inputs says what is wrong
            pass
    named = Input(
        path=target.path or None, table=target.name or None, format="delta" if commits else "parquet"
    )
    return *read_input(spark, named, list(plan.columns)), commits


def require_the_model(plan: AuditPlan, privatizer: Privatizer, tables: TwoTables) -> None:
    """Refuse settings whose model is not the one that the table's commit names."""
    if not plan.attacked or tables.made_by is None:
        return
    run_id, commit = tables.made_by
    artifact = commit.said.get("artifact")
    if artifact is not None and artifact != privatizer.fingerprint:
        raise SettingsError(
            f"config: run {run_id} made the table with the model {artifact[:12]}, and these settings give "
            f"{privatizer.fingerprint[:12]}; valid: the settings of that run."
        )


def sides(plan: AuditPlan, tables: TwoTables, names: tuple[str, ...] = ()) -> tuple[DataFrame, DataFrame]:
    """Return (row_key, s0, ..., n0, ..., scope, label, attribute) of the source and (row_key, o0, ...) of the table.

    `names` are the columns of the source that hold names, n0 and so on.
    """
    of_table, of_source = row_keys(plan, tables)
    scope = key_column(tables.source, plan.record_key, "record_key") if plan.record_key else of_source
    values = [value_of(tables.source, name, field) for field, name in plan.values.items()]
    values += [quoted(plan.author).cast("string").alias("author")] if plan.author else []
    plain, private = (_texts(frame, plan) for frame in (tables.source, tables.table))
    source = side_of(tables.source, "s", of_source, plain, names, scope.alias("scope"), *values)
    return source, side_of(tables.table, "o", of_table, private)


def row_keys(plan: AuditPlan, tables: TwoTables) -> tuple[Column, Column]:
    """Return the row key of the table and of its source, by which their rows are joined; file and place where there is none.

    Raises:
        DataError: they have two types.
    """
    if plan.row_key is None:
        place = F.concat_ws("|", F.col("_metadata.file_name"), F.col("_metadata.row_index").cast("string"))
        return place, place
    frames = (tables.table, tables.source)
    keys = [key_column(frame, plan.row_key, "row_key") for frame in frames]
    kinds = [
        frame.select(column.alias("k")).schema["k"].dataType.simpleString()
        for frame, column in zip(frames, keys, strict=True)
    ]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"row_key: column {plan.row_key!r} is {kinds[0]} in the table and {kinds[1]} in its source; valid: one type."
        )
    return keys[0], keys[1]


def _texts(frame: DataFrame, plan: AuditPlan) -> list[Column]:
    """Find the texts of one table; those of an array or a map are compared as one text, a line each."""
    return [path.joined.cast("string") for path in paths_of(frame.schema, plan.columns)]


def value_of(source: DataFrame, name: str, field: str) -> Column:
    """Return a column of labels or of an attribute as text, under the name of its field; what is not a number is missing.

    Raises:
        DataError: a type whose values are no classes.
    """
    kind = source.schema[name].dataType
    if not isinstance(kind, _CLASSES):
        raise DataError(
            f"{field}: column {name!r} is of type {kind.simpleString()}; valid: a column of text, numbers, booleans or dates."
        )
    value = quoted(name)
    if isinstance(kind, T.FloatType | T.DoubleType):
        value = F.when(~F.isnan(value), value)
    return value.cast("string").alias(field)


PLACE = "file and place"  # what identifies rows where no column does


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
