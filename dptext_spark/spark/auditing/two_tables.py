"""A written table and its source, opened at one version each, checked, and joined by their rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql import types as T

from dptext_spark.audit.table.plan import AuditPlan
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.spark.tables.paths import Path, paths_of, quoted
from dptext_spark.spark.tables.tables import (
    Commit,
    Target,
    check_text_columns,
    delta_version,
    history,
    our_commits,
    read_input,
)
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
        target = plan.target(place)
        try:
            is_delta = bool(target.path) and delta_version(spark, Target(path=target.path)) is not None
            named = Input(
                path=target.path or None, table=target.name or None, format="delta" if is_delta else "parquet"
            )
            df, version = read_input(spark, named, list(plan.columns))
            check_text_columns(df, list(plan.columns))
        except DataError as error:
            raise DataError(f"{field}: {_OF_THE_INPUT.sub('', str(error))}") from None
        keys = [("row_key", plan.row_key)]
        if field == "against":
            keys += [(name, key) for name, key in plan.of_source.items() if key is not None]
        for name, key in keys:
            if key not in df.columns:
                raise DataError(
                    f"{name}: {key!r} is not in {place!r}; columns there: {', '.join(df.columns)}."
                )
        frames.append((df, version))
    target = plan.target(plan.table)
    commits = our_commits(history(spark, Target(path=target.path, name=target.name)))
    newest = next(iter(commits.items()), None)  # the history has the newest first
    return TwoTables(frames[0][0], frames[1][0], frames[0][1], frames[1][1], newest)


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
    """Return (scope, row_key, s0, ..., n0, ..., label, attribute) of the source and (row_key, o0, ...) of the table.

    `names` are the columns of the source that hold names, n0 and so on.
    """
    keys = [key_column(frame, plan.row_key, "row_key") for frame in (tables.source, tables.table)]
    kinds = [
        frame.select(column.alias("k")).schema["k"].dataType.simpleString()
        for frame, column in zip((tables.source, tables.table), keys, strict=True)
    ]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"row_key: column {plan.row_key!r} is {kinds[1]} in the table and {kinds[0]} in its source; valid: one type."
        )
    scope = key_column(tables.source, plan.record_key, "record_key") if plan.record_key else keys[0]
    source = tables.source.select(
        scope.alias("scope"),
        keys[0].alias("row_key"),
        *[path.joined.cast("string").alias(f"s{i}") for i, path in enumerate(_texts(tables.source, plan))],
        *[quoted(name).alias(f"n{i}") for i, name in enumerate(names)],
        *[value_of(tables.source, name, field) for field, name in plan.values.items()],
    )
    table = tables.table.select(
        keys[1].alias("row_key"),
        *[path.joined.cast("string").alias(f"o{i}") for i, path in enumerate(_texts(tables.table, plan))],
    )
    return source, table


def _texts(frame: DataFrame, plan: AuditPlan) -> list[Path]:
    """Find the texts of one table; those of an array or a map are compared as one text, a line each."""
    return paths_of(frame.schema, plan.columns)


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


def require_matching(plan: AuditPlan, rows: int, in_table: int, in_source: int) -> None:
    """Refuse tables whose rows do not match; the message holds counts, never a key."""
    said = (
        f"row_key: {rows:,} rows are in both; of the table's {in_table:,} rows {in_table - rows:,} are not in the source, and "
        f"of the source's {in_source:,} rows {in_source - rows:,} are not in the table."
    )
    if not rows:
        raise DataError(f"{said} Name the source of this table, and a key that both have.")
    if (rows != in_table or rows != in_source) and not plan.partial:
        raise DataError(f"{said} With --partial the rows that are in both are audited.")
