"""What must hold of the keys and of the output before a byte is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.config.locations import inside
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.idempotency import engine_of_commit, other_engine
from dptext_spark.spark.job.plan import Place
from dptext_spark.spark.tables.paths import Parts, paths_of, quoted, rebuilt
from dptext_spark.spark.tables.tables import (
    Commit,
    DeltaDetail,
    Target,
    is_no_table,
    only_created,
    opened,
    our_commits,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def place_of(config: RunConfig) -> Place:
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
    return Place(
        target, f"{shareable}/runs", f"{restricted}/metrics", config.ledger.path or f"{shareable}/ledger"
    )


def check_output(
    spark: SparkSession, config: RunConfig, place: Place, df: DataFrame, kept: list[str], commits: Sequence[Commit], *,
    persistent: bool, dropped: frozenset[Parts] = frozenset(), source: DeltaDetail | None = None,
) -> None:  # fmt: skip
    """Refuse a target that would lose data, keep raw text, or release records again unasked.

    Args:
        spark: the session.
        config: the settings.
        place: where the run writes.
        df: the input.
        kept: the target's columns.
        commits: of the target.
        persistent: whether the key outlives the run, so that equal runs draw equal noise.
        dropped: fields beside nested texts that the output leaves out.
        source: the detail of the input's table, where it is known.

    Raises:
        RunError: the target exists under mode `error`.
        SettingsError: what the settings must name first; the target is the input, or something else than a Delta table.
        DataError: the target's schema does not take the output.
    """
    if not commits:
        _check_vacant(spark, place)
        return
    _check_not_the_input(spark, config, df, place.target, source)
    if only_created(commits):
        return
    ours = our_commits(commits)
    mode, output = config.output.mode, config.output
    if config.run.id and config.run.id in ours:
        return
    if mode == "error":
        raise RunError(
            f"output: {str(place.target)!r} exists; valid: output.mode append or overwrite, or another place."
        )
    if not ours and not output.overwrite_raw:
        raise SettingsError(
            f"output.mode: {str(place.target)!r} was not written by a run of this tool and may hold raw text, which stays "
            "readable in its history; name another place, or accept that by output.overwrite_raw=true."
        )
    if ours and not persistent and output.fresh_noise != "accept":
        raise SettingsError(
            f"output.mode: {str(place.target)!r} holds {len(ours)} release(s) of earlier runs; {mode} with a key of this run "
            "only adds independent draws, and ε adds up. Use a persistent key (key.file), or output.fresh_noise=accept."
        )
    # A stream says so of its checkpoint.
    then = ENGINE_VERSION if config.is_stream or not ours else engine_of_commit(next(iter(ours.values())))
    if then != ENGINE_VERSION and output.fresh_noise != "accept":
        raise SettingsError(
            f"output.mode: {str(place.target)!r} holds {len(ours)} release(s) of earlier runs, the newest with another "
            f"{other_engine(then)}. So {mode} adds independent draws, and ε adds up. Valid: another output, or "
            "output.fresh_noise=accept."
        )
    existing = opened(spark, place.target)
    paths = paths_of(df.schema, config.columns)
    texts = {path: path.text for path in paths}
    roots = sorted({path.root for path in paths})
    written = df.select(
        *[rebuilt(df.schema, n, texts, dropped).alias(n) if n in roots else quoted(n) for n in kept]
    )
    check_schema(existing.schema, written.schema, roots, kept, mode)


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
        raise SettingsError(
            f"output.path: {target.path!r} holds files and is no Delta table; valid: a new or empty folder, or a Delta "
            "table."
        )


def _check_not_the_input(
    spark: SparkSession, config: RunConfig, df: DataFrame, target: Target, source: DeltaDetail | None
) -> None:
    """Refuse the input as target where names and paths did not tell: by a catalog name and by its path, or through a view."""
    there = delta_detail(spark, target)
    source = source or detail_of_input(spark, config.input)
    if source is not None and there is not None:
        same = source.id == there.id
    else:
        same = there is not None and any(inside(file, there.location) for file in df.inputFiles())
    if same:
        field = "output.table" if target.name else "output.path"
        raise SettingsError(f"{field}: {str(target)!r} is the input; valid: another place.")


def holds_files(spark: SparkSession, folder: str, besides: str = "") -> bool:
    """Whether a folder holds files, beside those with `besides` in their path."""
    listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        found = listing.load(folder).select("path")
        if not besides:
            return bool(found.inputFiles())  # what was listed, without a job
        return bool(found.where(~found["path"].contains(besides)).limit(1).count())
    except PySparkException as error:
        if str(error.getCondition()).startswith("PATH_NOT_FOUND"):
            return False
        raise


def partitions_of(spark: SparkSession, target: Target) -> list[str] | None:
    """Return the partition columns of a Delta table, None where there is none."""
    found = delta_detail(spark, target)
    return None if found is None else found.partitions


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
    """Return the detail of what is read; None where it is no Delta table."""
    return delta_detail(spark, Target(path=source.path or "", name=source.table or ""))


def check_schema(
    target: T.StructType, source: T.StructType, columns: list[str], kept: list[str], mode: str
) -> None:
    """Refuse a target that cannot take replacements of any length, or has other columns than what is written.

    Overwriting too: Delta Lake would keep the table's columns, and fill those that are missing with NULL.

    Raises:
        DataError: naming the column.
    """
    for field in target.fields:
        if field.name in columns:
            raw = str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", field.dataType.simpleString()))
            if re.search(r"\b(var)?char\(|\bcollate\b", raw):
                raise DataError(
                    f"output: column {field.name!r} of the target is {raw}; replacements vary in length: make it a plain "
                    "string."
                )
    if mode in ("append", "overwrite"):
        wanted = {name: source[name].dataType.simpleString() for name in kept}
        there = {field.name: field.dataType.simpleString() for field in target.fields}
        differ = sorted(set(wanted.items()) ^ set(there.items()))
        untyped = [
            name for name in kept if there.get(name) == "string" and wanted[name] not in ("string", "binary")
        ]
        if differ and {name for name, _ in differ} == set(untyped):
            names = ", ".join(f"{name} ({wanted[name]})" for name in untyped)
            raise DataError(
                f"output.mode: {mode} needs the target's columns; it has as strings what the input holds with a type: {names}. "
                "Numbers of JSON keep their type since this version. Valid: another output, or a target whose columns were "
                "given these types."
            )
        if differ:
            raise DataError(
                f"output.mode: {mode} needs the target's columns; {differ[0][0]!r} differs. Target: "
                f"{', '.join(f'{n} {t}' for n, t in there.items())}. Columns that it lacks are left out by "
                "output.other_columns: drop, or a list; another output takes them all."
            )


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


def check_key(df: DataFrame, name: str, field: str, unique: bool) -> int:
    """Refuse a key column that holds NULLs or, if it must be unique, repeats, as :func:`check_keys`."""
    return check_keys(df, [KeyColumn(name, field, unique)])


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

    Args:
        field: that names the column.
        name: of the column.
        rows: all of them.
        held: those with a value.
        distinct: different values; None where they may repeat.

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


def check_weights(df: DataFrame, names: Sequence[str]) -> None:
    """Refuse columns of weights that are missing or hold no lists of numbers.

    Raises:
        DataError: naming the column and what is valid.
    """
    types = {field.name.lower(): field.dataType for field in df.schema.fields}
    numbers = (T.FloatType, T.DoubleType, T.DecimalType, T.IntegralType)
    for name in names:
        kind = types.get(name.lower())
        if kind is None:
            raise DataError(
                f"importance.weights: {name!r} is not in the input; columns there: {', '.join(df.columns)}."
            )
        if not isinstance(kind, T.ArrayType) or not isinstance(kind.elementType, numbers):
            raise DataError(
                f"importance.weights: column {name!r} is of type {kind.simpleString()}; valid: array<float>."
            )
