"""Row keys that come again in a stream: refused, left out, or released once more, by `stream.duplicates`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window, functions

from dptext_spark.errors import DataError
from dptext_spark.model.tables.delta_log import Commit, our_commits
from dptext_spark.spark.tables.paths import quoted
from dptext_spark.spark.tables.tables import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dptext_spark.spark.job.plan import RunPlan

F: Any = functions
KEY, PLACE = "__dptext_key", "__dptext_place"


@dataclass(frozen=True, eq=False)
class Admitted:
    """The rows of a micro-batch that go on.

    Attributes:
        df: the rows.
        rows: how many they are at most.
        dropped: how many were left out; None where rows may come again.
    """

    df: DataFrame
    rows: int
    dropped: int | None


def deduplicate(plan: RunPlan, commits: Sequence[Commit]) -> Admitted:
    """Check the keys of a micro-batch: one pass over them, and a join with the target's keys where those are kept.

    A micro-batch that committed before is compared with the target as it was before that commit, so that it is the same
    rows again.

    Raises:
        DataError: a NULL key, or one that comes again and is refused.
    """
    config, df = plan.config, plan.df
    key, handling = str(config.row_key), config.stream.duplicates
    if config.record_key:
        _refuse_null(df, config.record_key, "record_key")
    rows, distinct = _refuse_null(df, key, "row_key")
    ours = our_commits(commits).get(plan.run_id)
    if handling == "accept":
        return Admitted(df, rows, None)
    if handling == "refuse" and ours is not None:
        return Admitted(df, rows, 0)  # it would not have committed otherwise
    released = _released(plan, commits, ours)
    again = 0
    if released is not None:
        seen = released.select(quoted(key).alias(KEY)).distinct()
        matched = quoted(key) == F.col(KEY)
        again = df.join(seen, matched, "left_semi").count()
        df = df.join(seen, matched, "left_anti") if again else df
    if handling == "refuse" and (again or distinct < rows):
        raise DataError(
            f"row_key: in this micro-batch {again:,} rows have a {key!r} that the target holds, and {rows - distinct:,} repeat "
            "one of the micro-batch; nothing of it was written. Valid: a source whose rows come once, or stream.duplicates=drop "
            "(leave them out) or accept (release them again)."
        )
    if distinct < rows:
        df = _first_of_each(df, key)
    return Admitted(df, rows, rows - df.count() if again or distinct < rows else 0)


def _refuse_null(df: DataFrame, name: str, field: str) -> tuple[int, int]:
    """Return (rows, distinct keys)."""
    row = df.agg(F.count(F.lit(1)), F.count(quoted(name)), F.countDistinct(quoted(name))).first()
    assert row is not None
    rows, held, distinct = (int(value) for value in row)
    if held != rows:
        raise DataError(
            f"{field}: column {name!r} is NULL in {rows - held:,} of {rows:,} rows of this micro-batch; nothing of it was "
            "written."
        )
    return rows, distinct


def _released(plan: RunPlan, commits: Sequence[Commit], ours: Commit | None) -> DataFrame | None:
    """Return the target as it was before this micro-batch; None where it was not."""
    if not commits:
        return None
    version = commits[0].version if ours is None else ours.version - 1
    if version < 0:
        return None
    return opened(plan.spark, plan.place.target, version)


def _first_of_each(df: DataFrame, key: str) -> DataFrame:
    """Keep one row of each key, the same whatever the order: the least by all of its values, written as JSON."""
    order = Window.partitionBy(quoted(key)).orderBy(
        F.to_json(F.struct(*[quoted(name) for name in df.columns]))
    )
    return df.withColumn(PLACE, F.row_number().over(order)).where(F.col(PLACE) == 1).drop(PLACE)
