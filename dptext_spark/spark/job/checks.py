"""What must hold of the keys and of the output before a byte is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark.config.locations import inside
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.table_checks import Fit, check_partitions
from dptext_spark.model.table_schema import resolve_all, without
from dptext_spark.model.target_checks import (
    Commit,
    check_releases,
    check_schema,
    check_writable,
    holds_other_files,
    is_the_input,
    places_written,
)
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.plan import Place
from dptext_spark.spark.nested_columns import quoted, schema_of
from dptext_spark.spark.tables import DeltaDetail, Target, is_no_table, listed, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def place_of(config: RunConfig, ledger: str = "") -> Place:
    """Return the places of a run: the two audit folders stand beside the target unless they are named.

    Raises:
        SettingsError: a target by name without named audit folders.
    """
    target = Target(path=config.output.path or "", name=config.output.table or "")
    shareable, restricted = config.shareable, config.restricted
    if not shareable or not restricted:
        raise SettingsError(
            "audit.shareable and audit.restricted: name both folders where output.table is a catalog name."
        )
    return Place(target, f"{shareable}/runs", f"{restricted}/metrics", ledger or config.ledger.place or "")


def check_output(
    spark: SparkSession, config: RunConfig, df: DataFrame, fit: Fit, commits: Sequence[Commit], *, persistent: bool,
    source: DeltaDetail | None = None,
) -> None:  # fmt: skip
    """Refuse a target that would lose data, keep raw text, or release records again unasked, and places that cannot be written.

    Args:
        spark: the session.
        config: the settings.
        df: the input.
        fit: how the settings fit it.
        commits: of the target.
        persistent: whether the key outlives the run, so that equal runs draw equal noise.
        source: the detail of the input's table, where it is known.

    Raises:
        RunError: the target exists under mode `error`.
        SettingsError: what the settings must name first; the target is the input, or something else than a Delta table.
        DataError: the target does not take the output's columns or partitions.
    """
    place, schema = place_of(config), schema_of(df.schema)
    target = delta_detail(spark, place.target) if commits else None
    partitions = None if target is None else target.partitions
    check_partitions(config.output.partition_by, schema, fit.kept, fit.paths, partitions)
    if not commits:
        _check_vacant(spark, place)
    else:
        _check_not_the_input(spark, config, df, target, source)
        if check_releases(config, str(place.target), commits, persistent=persistent):
            before = schema_of(opened(spark, place.target).schema)
            roots = {path.root for path in resolve_all(schema, config.columns)}
            check_schema(before, without(schema, fit.kept, fit.dropped), roots, fit.kept, config.output.mode)
    # Of other folders than this machine's nothing is known here.
    check_writable({field: path for field, path in places_written(config).items() if is_here(spark, path)})


def _check_vacant(spark: SparkSession, place: Place) -> None:
    """Refuse a name or a folder that is taken by something else than a Delta table: raw files would lie beside the output."""
    target = place.target
    if target.name and spark.catalog.tableExists(target.name):
        raise SettingsError(
            f"output.table: {target.name!r} is a view or no Delta table; valid: a new name, or a Delta table."
        )
    if target.path and holds_files(spark, target.path):
        # What a run that did not finish left there may stay: it is known, and in no version of the table.
        if runs.is_unfinished(spark, place.runs, target.path):
            return
        raise holds_other_files(target.path)


def _check_not_the_input(
    spark: SparkSession,
    config: RunConfig,
    df: DataFrame,
    target: DeltaDetail | None,
    source: DeltaDetail | None,
) -> None:
    """Refuse the input as target where names and paths did not tell: by a catalog name and by its path, or through a view."""
    source = source or detail_of_input(spark, config.input)
    if source is not None and target is not None:
        same = source.id == target.id
    else:
        same = target is not None and any(
            inside(name, target.location) for file in df.inputFiles() for name in (file, unquote(file))
        )
    if same:
        raise is_the_input(config, str(config.output.table or config.output.path))


def is_here(spark: SparkSession, path: str) -> bool:
    """Check whether Spark takes a path for one of this machine; a server of Spark Connect has files of its own."""
    if not hasattr(spark, "_jsc"):
        return False
    context: Any = spark.sparkContext
    default = str(context._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))
    return path.startswith("file:") or (path.startswith("/") and default.startswith("file:"))


def holds_files(spark: SparkSession, folder: str, besides: str = "") -> bool:
    """Whether a folder holds files, beside those with `besides` in their path."""
    try:
        files = listed(spark, folder).select("path")
        if not besides:
            return bool(files.inputFiles())  # what was listed, without a job
        return bool(files.where(~files["path"].contains(besides)).limit(1).count())
    except PySparkException as error:
        if str(error.getCondition()).startswith("PATH_NOT_FOUND"):
            return False
        raise


def delta_detail(spark: SparkSession, target: Target) -> DeltaDetail | None:
    """Return the detail of a Delta table; None for a view or another format."""
    try:
        row = spark.sql(f"DESCRIBE DETAIL {target.sql}").first()
    except PySparkException as error:
        if is_no_table(error):
            return None
        raise
    if row is None or row["format"] != "delta":
        return None
    files = row.asDict().get("numFiles")
    return DeltaDetail(
        row["id"], row["location"], list(row["partitionColumns"]), int(row["minReaderVersion"]), files
    )


def detail_of_input(spark: SparkSession, source: Input) -> DeltaDetail | None:
    """Return the detail of what is read; None where it is no Delta table: files of another format, or a view."""
    if not source.table and source.format != "delta":
        return None
    return delta_detail(spark, Target(path=source.path or "", name=source.table or ""))


class KeyColumn(NamedTuple):
    """A column that tells rows or records apart.

    Attributes:
        name: of the column.
        field: the setting that names it.
        unique: whether it must be.
    """

    name: str
    field: str
    unique: bool


def check_keys(df: DataFrame, keys: Sequence[KeyColumn]) -> int:
    """Refuse key columns that hold NULLs or, if they must be unique, repeats. One pass, with a shuffle of those that must.

    Returns:
        The number of rows.

    Raises:
        DataError: with the number of rows concerned.
    """
    held = [F.count(quoted(key.name)) for key in keys]
    distinct = [F.countDistinct(quoted(key.name)) if key.unique else F.lit(None) for key in keys]
    row = df.agg(F.count(F.lit(1)), *held, *distinct).first()
    assert row is not None
    rows = int(row[0])
    for number, (name, field, unique) in enumerate(keys, start=1):
        require_key(field, name, rows, row[number], row[number + len(keys)] if unique else None)
    return rows


def require_key(field: str, name: str, rows: int, held: int, distinct: int | None = None) -> None:
    """Refuse what was counted of a key column.

    Of `rows` rows `held` have a value; `distinct` is None where values may repeat.

    Raises:
        DataError: with the number of rows concerned.
    """
    if rows != held:
        raise DataError(f"{field}: column {name!r} is NULL in {rows - held:,} of {rows:,} rows.")
    if distinct is not None and distinct != rows:
        raise DataError(
            f"{field}: column {name!r} is not unique: {rows:,} rows, {distinct:,} distinct values. "
            "Name a unique column, or leave row_key out."
        )
