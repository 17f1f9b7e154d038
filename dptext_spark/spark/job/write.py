"""The one write of a run: a single commit to the target, with the counts observed on the way.

Skewed partitions are split before: where one holds far more than a core's share of the rows, they are dealt out by identity.

A scan cuts files where their format allows it: a Parquet file of one row group, or a compressed file of lines, is one
task however large it is. Dealing out is a shuffle; it moves whole rows, text included, through Spark's shuffle files.

How a new target lies on disk: its partitions, and the mapping that lets column names hold spaces.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import SettingsError
from dptext_spark.model.target_checks import ATTEMPT, CREATED, SEAL, UNUSUAL, Commit, our_commits
from dptext_spark.runtime.display import Steps
from dptext_spark.spark.column_function import replaced
from dptext_spark.spark.job import counting, runs
from dptext_spark.spark.job.idempotency import Binding
from dptext_spark.spark.job.plan import SAMPLE_ROWS, RunPlan, batched
from dptext_spark.spark.nested_columns import quoted
from dptext_spark.spark.session import context_of, cores_of, reading, watched
from dptext_spark.spark.tables import STREAM, Target, history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Layout:
    """What a table is made with; one that exists keeps its own.

    Attributes:
        partition_by: columns whose values are folders.
        mapped: names are mapped.
    """

    partition_by: tuple[str, ...]
    mapped: bool

    @classmethod
    def of(cls, schema: T.StructType, partition_by: Sequence[str]) -> Layout:
        """Return the layout for a schema."""
        return cls(tuple(partition_by), any(UNUSUAL & set(name) for name in _names(schema)))

    def onto(self, writer: Any, new: bool) -> Any:
        """Put the layout of a table by path onto its `DataFrameWriter`."""
        if new and self.mapped:
            writer = writer.option(_MAPPING, "name")
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def of_new(self, creator: Any) -> Any:
        """Put the layout of a new table by name onto its `DataFrameWriterV2`."""
        if self.mapped:
            creator = creator.tableProperty(_MAPPING, "name")
        return creator.partitionedBy(*map(quoted, self.partition_by)) if self.partition_by else creator


def _names(kind: T.DataType) -> Iterator[str]:
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield field.name
            yield from _names(field.dataType)
    elif isinstance(kind, T.ArrayType):
        yield from _names(kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _names(kind.keyType)
        yield from _names(kind.valueType)


ROW = "__dptext_row"
SHARES = 3  # partitions that a core gets: the last of them evens out what the others differ by
SKEWED = 1.5  # the largest partition holds more than that many fair shares of a task
# A task keeps two cores busy: Spark reads and writes while Python draws. Where each word searches the lexicon, Python's alone.
CORES_A_TASK = 2
# Text below which a shuffle does not pay: a second or two of work for a core.
LEAST_BYTES = 64 << 20
LEAST_BYTES_NOISE = 256 << 10  # where each word searches the lexicon


def write(
    plan: RunPlan, record: RunRecord, say: Steps, *, new: bool
) -> tuple[counting.Counts | None, float, list[Commit]]:
    """Write the target in one commit, which bears the seal of the row that binds the run; `new` says that there is no target.

    Returns:
        (the counts, None where they did not arrive; the seconds of the write; the target's commits after it).
    """
    spark = plan.spark
    # The account replaces the run's row. What Delta needs for that of the table's log is read meanwhile; not by a client of Spark
    # Connect, which is told of its tasks as if they were those of the write.
    log: AbstractContextManager[object] = nullcontext()
    if context_of(spark) is not None:
        log = reading(spark, lambda: runs.read_log(spark, plan.place.runs, plan.run_id))
    with log:
        observation, seconds = _written(plan, record, say, new=new)
    commits = plan.commits()
    ours = our_commits(commits).get(plan.run_id)
    # Another process that made the commit has the counts: this one's write was skipped, and counts nothing.
    committed = ours is not None and not is_of_another(plan, ours)
    return (counting.counts_of(observation) if committed else None), seconds, commits


def is_of_another(plan: RunPlan, commit: Commit | None) -> bool:
    """Check whether another process, which began the same command at the same moment, made the run's commit."""
    return commit is not None and commit.said.get(ATTEMPT, plan.attempt) != plan.attempt


def _written(plan: RunPlan, record: RunRecord, say: Steps, *, new: bool) -> tuple[Observation, float]:
    """Write the target; return what will observe the counts, and the seconds of the write."""
    spark, config = plan.spark, plan.config
    observation = Observation(f"dptext-{plan.run_id}")
    frame, spec = repartition_skewed(plan, say).drawn()
    frame = frame.observe(observation, *counting.observed(plan.paths))
    frame = replaced(frame, spec, plan.kept, plan.dropped)
    metadata = {
        "dptext_run": plan.run_id,
        ATTEMPT: plan.attempt,
        "mechanism": config.spec()["mechanism"],
        **({} if config.importance is None else {"importance": config.importance.as_dict()}),
        **({} if config.budget is None else {"budget": config.budget.as_dict()}),
        "guarantee": plan.guarantee.as_dict(),
        "artifact": plan.privatizer.fingerprint,
        SEAL: Binding.sealed(record).as_dict(),
    }
    if plan.stream is not None:
        metadata[STREAM] = plan.stream.stream
    app, number = plan.transaction
    options = {
        "userMetadata": json.dumps(metadata), "txnAppId": app, "txnVersion": number, "optimizeWrite": "false",
    }  # fmt: skip
    target = plan.place.target
    layout = Layout.of(frame.schema, config.output.partition_by)
    made = bool(target.name) and new
    if made:
        create_empty(spark, target, frame.schema, plan.run_id, layout)
    say("writing")
    try:
        with batched(plan), watched(spark, say):
            began = time.perf_counter()
            commit_rows(frame, target, config.output.mode, layout, options, new=new)
            seconds = time.perf_counter() - began
    except Exception:
        if made and plan.run_id not in our_commits(history(spark, target)):
            drop_empty(spark, target)
        raise
    return observation, seconds


def commit_rows(
    frame: DataFrame, target: Target, mode: str, layout: Layout, options: Mapping[str, str], *, new: bool
) -> None:
    """Write data files and commit them; the target is a folder, or a table that exists."""
    if target.path:
        layout.onto(frame.write.format("delta").mode(mode).options(**options), new).save(target.path)
    else:
        named = frame.writeTo(target.sql).options(**options)
        named.overwrite(F.lit(True)) if mode == "overwrite" else named.append()


def drop_empty(spark: SparkSession, target: Target) -> None:
    """Remove the empty table that :func:`create_empty` made for a write that failed."""
    spark.sql(f"DROP TABLE IF EXISTS {target.sql}")


def create_empty(
    spark: SparkSession, target: Target, schema: T.StructType, run_id: str, layout: Layout
) -> None:
    """Make an empty table of a name that has none, for a write into a table that exists.

    A write that also creates its table is one Spark does not observe: its counts would be lost. A property of the table says
    which run made it, so that the empty table that a killed driver leaves is not taken for somebody's. (Delta Lake leaves the
    option `userMetadata` out of a commit that creates a table by name.)
    """
    creator = spark.createDataFrame([], schema).writeTo(target.sql).using("delta")
    layout.of_new(creator).tableProperty(CREATED, run_id).create()


def repartition_skewed(plan: RunPlan, say: Steps) -> RunPlan:
    """Return the run with its rows dealt out over more partitions, or as it is.

    Raises:
        SettingsError: a number of partitions, but rows have no identity that survives the move.
    """
    wanted = plan.config.run.partitions
    if wanted == "keep":
        return plan
    if plan.identity.row is None:
        if wanted == "auto":
            return plan
        raise SettingsError(
            f"run.partitions: {wanted} given, but the input's rows are known by their place only; name a row_key, or use keep."
        )
    number = _needed(plan) if wanted == "auto" else int(wanted)
    if number is None:
        return plan
    say(f"dealing the rows out over {number} partitions")
    dealt = plan.df.withColumn(ROW, plan.identity.row).repartition(number, F.col(ROW))
    return replace(plan, df=dealt, identity=replace(plan.identity, row=F.col(ROW)))


def _needed(plan: RunPlan) -> int | None:
    """Return how many partitions an uneven input needs; None where it is even, small, or the cores are not known."""
    cores, sizes = cores_of(plan.spark), plan.sizes
    noise = any(sampler.searches for sampler in plan.privatizer.samplers)
    least = LEAST_BYTES_NOISE if noise else LEAST_BYTES
    small = sizes.rows < SAMPLE_ROWS and sizes.rows * sizes.average < least
    if cores is None or small:
        return None
    if plan.rows is not None and plan.rows * sizes.average < least:
        return None  # no partition holds more than all of them
    at_once = cores if noise else cores / CORES_A_TASK
    if at_once <= SKEWED:
        return None  # nor more than that many fair shares
    counted = plan.df.groupBy(F.spark_partition_id()).count().agg(F.sum("count"), F.max("count")).first()
    assert counted is not None
    rows, largest = counted[0] or 0, counted[1] or 0
    if largest * sizes.average < least:
        return None
    return SHARES * cores if largest > SKEWED * rows / at_once else None
