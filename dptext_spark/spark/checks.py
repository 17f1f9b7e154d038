"""What must hold of the output before a byte is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dptext_spark.config import RunConfig
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.spark.tables import Target, history, only_created, our_commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Place:
    """Where a run writes.

    Attributes:
        target: the sanitized table.
        runs: folder of the shareable `runs` table.
        metrics: folder of the restricted `metrics` table.
    """

    target: Target
    runs: str
    metrics: str


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
    return Place(target, f"{shareable}/runs", f"{restricted}/metrics")


def check_output(
    spark: SparkSession, config: RunConfig, place: Place, df: DataFrame, kept: list[str], *, persistent: bool
) -> None:
    """Refuse a target that would lose data, keep raw text, or release records again unasked.

    Args:
        spark: the session.
        config: the settings.
        place: where the run writes.
        df: the input.
        kept: the target's columns.
        persistent: whether the key outlives the run, so that equal runs draw equal noise.

    Raises:
        RunError: the target exists under mode `error`.
        SettingsError: what the settings must name first.
        DataError: the target's schema does not take the output.
    """
    commits = history(spark, place.target)
    if only_created(commits):  # or none at all
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
    existing = (
        spark.read.table(place.target.name)
        if place.target.name
        else spark.read.format("delta").load(place.target.path)
    )
    check_schema(existing.schema, df.schema, list(config.columns), kept, mode)


def check_schema(
    target: T.StructType, source: T.StructType, columns: list[str], kept: list[str], mode: str
) -> None:
    """Refuse a target that cannot take replacements of any length, or, to append to, other columns.

    Raises:
        DataError: naming the column.
    """
    for field in target.fields:
        if field.name in columns:
            raw = str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", field.dataType.simpleString()))
            if raw.startswith(("varchar", "char")) or "collate" in raw:
                raise DataError(
                    f"output: column {field.name!r} of the target is {raw}; replacements vary in length: make it a plain "
                    "string."
                )
    if mode == "append":
        wanted = {name: source[name].dataType.simpleString() for name in kept}
        there = {field.name: field.dataType.simpleString() for field in target.fields}
        differ = sorted(set(wanted.items()) ^ set(there.items()))
        if differ:
            raise DataError(
                f"output.mode: append needs the target's columns; {differ[0][0]!r} differs. Target: "
                f"{', '.join(f'{n} {t}' for n, t in there.items())}."
            )
