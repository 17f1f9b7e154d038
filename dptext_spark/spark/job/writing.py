"""Write the rows of a run in one commit, count them on the way, and prove that replacements are consistent.

Where a driver died after its commit, the counts are made again, if the key is at hand.

The proof joins source and output by row and groups tokens by (scope, word): each group has one replacement. It runs on a keyed
sample of scopes and uses the run key only to hash, never to draw. So it detects a wrongly drawn replacement. At token level
there is nothing to prove. The job is that of an audit of two tables (:mod:`dptext_spark.spark.pair_tables`), which here takes
texts exactly.

Skewed partitions are split before the write. If one holds far more than a core's share of the rows, its rows are dealt out by
identity. A scan cuts files if their format allows it. A Parquet file with a single row group, or a compressed file of lines, is
one task of any size. Dealing out is a shuffle; it moves whole rows, text included, through Spark's shuffle files.

A new target gets its partitions here, and the mapping that lets column names hold spaces.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window, functions
from pyspark.sql import types as T

from dptext_spark.config.model import AUDITED_ROWS
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import SettingsError
from dptext_spark.model.record import RecordUnits
from dptext_spark.model.table_checks import RESULT
from dptext_spark.model.target_checks import ATTEMPT, CREATED, SEAL, UNUSUAL, Commit, our_commits
from dptext_spark.runtime.display import Steps
from dptext_spark.spark import pair_tables
from dptext_spark.spark.column_function import UNKNOWN_ROWS, replaced
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.idempotency import Binding
from dptext_spark.spark.job.planned_run import SAMPLE_ROWS, RunPlan, batched
from dptext_spark.spark.nested_columns import Path, quoted
from dptext_spark.spark.session import context_of, cores_of, reading, watched
from dptext_spark.spark.ship import ship_for
from dptext_spark.spark.tables import STREAM, Target, history, opened
from dptext_spark.text.engine import COUNTERS, OF_NAMES, OF_STAYED

WAIT_SECONDS = 120.0
PERCENTILES = {"units_p50": 0.5, "units_p95": 0.95}
# Ranks within 1/200. Each task sends its sketch to the driver: 6 KB of a million rows, where the default made 1.5 MB of it and
# `spark.driver.maxResultSize` ended a job of 700 tasks.
ACCURACY = 200


def observed(paths: Sequence[Path]) -> list[Column]:
    """Return the aggregates for `DataFrame.observe`: sums over nothing are 0, percentiles of nothing NULL."""
    result = F.col(RESULT)
    # As SQL: each function of a column is a call into the JVM, and here are some hundreds.
    sums = [
        F.expr(f"coalesce(sum({RESULT}.{name}_{i}), 0) AS {name}_{i}")
        for i in range(len(paths))
        for name in COUNTERS
    ]
    units = result.getField("units")
    sizes = [F.coalesce(F.sum(path.size), F.lit(0)).alias(f"bytes_{i}") for i, path in enumerate(paths)]
    return [
        F.count(F.lit(1)).alias("rows"),
        *sums,
        *sizes,
        *unit_figures(units),
        F.expr(f"coalesce(sum({RESULT}.{UNKNOWN_ROWS}), 0) AS {UNKNOWN_ROWS}"),
    ]


def unit_figures(units: Column) -> list[Column]:
    """Return the aggregates of :class:`RecordUnits`, one each: Spark 4.0 returns an observed array as a Java object."""
    shares = [F.percentile_approx(units, share, ACCURACY).alias(name) for name, share in PERCENTILES.items()]
    return [F.avg(units).alias("units_mean"), *shares, F.max(units).alias("units_max")]


@dataclass(frozen=True)
class Counts:
    """Counts of a run's write.

    Attributes:
        rows: of the input.
        columns: of each text column, the counters of the text engine by name.
        text_bytes: of all texts.
        units: of the rows.
        unknown_rows: rows of which most words are unknown.
    """

    rows: int
    columns: tuple[Mapping[str, int], ...]
    text_bytes: int
    units: RecordUnits
    unknown_rows: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Counts:
        """Read the aggregates of :func:`observed`."""
        number = sum(name.startswith("bytes_") for name in row)
        columns = tuple({name: int(row[f"{name}_{i}"]) for name in COUNTERS} for i in range(number))
        text_bytes = sum(int(row[f"bytes_{i}"]) for i in range(number))
        return cls(int(row["rows"]), columns, text_bytes, RecordUnits.of(row), int(row[UNKNOWN_ROWS]))

    @property
    def whole(self) -> dict[str, int]:
        """The counters, summed over the text columns."""
        return {name: sum(column[name] for column in self.columns) for name in COUNTERS}


def counts_of(observation: Observation) -> Counts | None:
    """Wait for the counts, not for ever: `get` never returns where the write was skipped. None if they do not come in time."""
    box: list[Mapping[str, float | None]] = []
    waiter = threading.Thread(target=lambda: box.append(observation.get), daemon=True)
    waiter.start()
    waiter.join(WAIT_SECONDS)
    return Counts.of(box[0]) if box and box[0] else None  # the client of Spark 4.0 gives an empty one


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def shares(c: Mapping[str, int]) -> dict[str, float | None]:
    """Return counters with the shares that follow from them (concepts/mechanisms, Audits).

    `original_share` is over in-lexicon drawn words; `original_share_all` over all words, kept stop words counted as original.
    `not_chosen` is `words` minus all other counters.
    """
    not_chosen = c["words"] - c["drawn"] - c["stop_kept"] - c["oov"] - c["numbers"]
    chosen = {"not_chosen": float(not_chosen), "not_chosen_share": _share(not_chosen, c["words"])}
    left_out = {
        "invalid",
        "distinct",
        *(name for name in OF_NAMES if not c[name]),
        *OF_STAYED,
    }  # lists of names are not always given
    return {
        **{name: float(value) for name, value in c.items() if name not in left_out},
        "changed_share": _share(c["changed"], c["words"]),
        "original_share": _share(c["same"], c["drawn"]),
        "original_share_all": _share(c["words"] - c["changed"], c["words"]),
        "oov_share": _share(c["oov"], c["words"]),
        "stop_share": _share(c["stop_kept"], c["words"]),
        **(chosen if not_chosen else {}),
        **_stayed(c),
    }


def _stayed(c: Mapping[str, int]) -> dict[str, float | None]:
    """Count the found words of names that came out unchanged.

    Names that were not found, or not looked for, have no figure.
    """
    figures: dict[str, float | None] = {}
    for total, stayed in zip(OF_STAYED[::2], OF_STAYED[1::2], strict=True):
        if c[total]:
            figures |= {total: float(c[total]), f"{total}_replaced": float(c[total] - c[stayed])}
            figures |= {stayed: float(c[stayed]), f"{stayed}_share": _share(c[stayed], c[total])}
    return figures


def recounted(plan: RunPlan, key_then: str, say: Steps) -> Counts | None:
    """Repeat the counts of a committed run: one pass over the same input that writes nothing.

    The same key draws the same words, so the sums are those that were lost, whatever the batches.

    The input version, the settings and the model are those of before.

    Returns:
        The counts, or None where the key is another one than the commit's.
    """
    if key_then != plan.key.commitment(plan.run_id):
        return None
    say("counting again, because the counts were lost after the commit (one pass over the input)")
    frame, _ = plan.drawn()
    return Counts.of(_only_row(plan, frame.agg(*observed(plan.paths))))


def _only_row(plan: RunPlan, aggregate: DataFrame) -> dict[str, Any]:
    """Return the row of an aggregate without groups: one pass over the text."""
    with batched(plan):
        row = aggregate.first()
    assert row is not None
    return row.asDict()


def several_rows(plan: RunPlan) -> bool:
    """Check whether a record may have several rows."""
    return plan.identity.record is not None and plan.config.record_key != plan.config.row_key


def record_units(plan: RunPlan, counts: Counts | None) -> RecordUnits | None:
    """Return the units of ε of records: as counted while writing, or by a second pass if records may have several rows."""
    if counts is None or plan.config.consistency == "dataset" or not several_rows(plan):
        return None if counts is None else counts.units
    # Draw as the run does, but keep only the counts of each record. A record may lie in many partitions.
    frame, _ = plan.drawn()
    units = F.col(RESULT).getField("units").alias("units")
    assert plan.identity.record is not None
    records = frame.groupBy(plan.identity.record).agg(F.sum(units).alias("units"))
    return RecordUnits.of(_only_row(plan, records.agg(*unit_figures(F.col("units")))))


F: Any = functions  # its stubs leave out what Spark adds at run time


@dataclass(frozen=True)
class Audit:
    """Result of the consistency audit.

    Attributes:
        said: one sentence for people.
        figures: scopes_sampled, rows, groups, broken_groups, broken_rows; empty where it did not run.
        problems: reasons to mark the run as failed.
    """

    said: str
    figures: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool | None:
        """True if the audit found no problem; None if it did not run."""
        return not self.problems if self.figures else None


def audit(plan: RunPlan, version: int, rows: int | None, say: Steps) -> Audit:
    """Audit the committed version of a run."""
    config = plan.config
    if config.consistency == "token":
        return Audit("At token level every occurrence has a draw of its own; there is nothing to audit.")
    if not config.row_key:
        return Audit("Consistency was not audited: without a row_key, source and output cannot be joined.")
    say("auditing consistency")
    key, paths, names = quoted(config.row_key), plan.paths, plan.names()
    scope = plan.identity.record if plan.identity.record is not None else plan.identity.row
    assert scope is not None
    texts = [path.text for path in paths]
    source = pair_tables.side_of(plan.df, "s", key, texts, names.columns, scope.alias("scope"))
    if config.is_stream and config.stream.duplicates == "accept":
        # Rows of one micro-batch that share their key cannot be told apart in the output.
        source = (
            source.withColumn("n", F.count(F.lit(1)).over(Window.partitionBy("row_key")))
            .where("n = 1")
            .drop("n")
        )
    output = pair_tables.side_of(_written_rows(plan, version), "o", key, texts)
    rows = source.count() if rows is None else rows
    if not rows:
        return Audit("Consistency was not audited: there are no rows.")
    share = min(1.0, AUDITED_ROWS / rows)
    sampled = pair_tables.sample_of(source, plan.key, share)
    if share < 1.0:
        # Only the keys of the sample travel to every node: a join of the texts would move the whole output between nodes.
        output = output.join(F.broadcast(sampled.select("row_key")), "row_key", "left_semi")
    shipped = ship_for(plan.spark, plan.folder, config)
    requested = pair_tables.Wanted(exact=config.consistency)
    job = pair_tables.PairTables(shipped, plan.key.delivered(), len(paths), names, wanted=requested)
    tallies = job.tallies(sampled.join(output, "row_key"))
    groups = tallies.groups[config.consistency]
    figures = {
        "scopes_sampled": tallies.groups[pair_tables.SCOPES].n,
        "groups": groups.n,
        "broken_groups": groups.broken,
        "broken_rows": sum(tallies.counts(i)[pair_tables.MISFITS] for i in range(len(paths))),
    }
    problems = []
    if figures["broken_groups"]:
        problems.append("groups of equal words have two replacements")
    if figures["broken_rows"]:
        problems.append("texts are not their source with words replaced")
    unit = "records" if config.consistency == "record" else "rows"
    sentence = (
        f"Consistency was audited on a keyed sample of about {100 * share:.3g} % of the {unit}: "
        f"{'every group of equal words has one replacement' if not problems else '; '.join(problems)}."
    )
    return Audit(sentence, figures, problems)


def _written_rows(plan: RunPlan, version: int) -> DataFrame:
    """Return the rows of the run's own commit: a table that it was appended to may hold the same keys with other draws."""
    spark, target = plan.spark, plan.place.target
    written = opened(spark, target, version)
    if plan.config.output.mode != "append" or version == 0:
        return written
    added = set(written.inputFiles()) - set(opened(spark, target, version - 1).inputFiles())
    return written.where(F.col("_metadata.file_name").isin([file.rsplit("/", 1)[1] for file in added]))


_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Layout:
    """Layout of a new table: its partition columns, and whether names are mapped. An existing one keeps its own."""

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
SHARES = 3  # partitions that a core gets: the last one evens out differences of the others
SKEWED = 1.5  # the largest partition holds more than that many fair shares of a task
# A task keeps two cores busy: Spark reads and writes while Python draws. Where each word searches the lexicon, Python's alone.
CORES_A_TASK = 2
# Text below which a shuffle does not pay: a second or two of work for a core.
LEAST_BYTES = 64 << 20
LEAST_BYTES_NOISE = 256 << 10  # where each word searches the lexicon


def write(
    plan: RunPlan, record: RunRecord, say: Steps, *, new: bool
) -> tuple[Counts | None, float, list[Commit]]:
    """Write the target in one commit with the seal of the row that binds the run; `new` is true without a target.

    Returns:
        (the counts, None where they did not arrive; the seconds of the write; the target's commits after it).
    """
    spark = plan.spark
    # The account replaces the run's row. Meanwhile Delta reads the table's log for that. A client of Spark Connect does not: it
    # would see these tasks as those of the write.
    log: AbstractContextManager[object] = nullcontext()
    if context_of(spark) is not None:
        log = reading(spark, lambda: runs.read_log(spark, plan.place.runs, plan.run_id))
    with log:
        observation, seconds = _written(plan, record, say, new=new)
    commits = plan.commits()
    ours = our_commits(commits).get(plan.run_id)
    # Another process that made the commit has the counts: this one's write was skipped, and counts nothing.
    committed = ours is not None and not is_of_another(plan, ours)
    return (counts_of(observation) if committed else None), seconds, commits


def is_of_another(plan: RunPlan, commit: Commit | None) -> bool:
    """Check whether another process, which began the same command at the same moment, made the run's commit."""
    return commit is not None and commit.said.get(ATTEMPT, plan.attempt) != plan.attempt


def _written(plan: RunPlan, record: RunRecord, say: Steps, *, new: bool) -> tuple[Observation, float]:
    """Write the target; return the observation of the counts, and the seconds of the write."""
    spark, config = plan.spark, plan.config
    observation = Observation(f"dptext-{plan.run_id}")
    frame, spec = repartition_skewed(plan, say).drawn()
    frame = frame.observe(observation, *observed(plan.paths))
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
    is_created = bool(target.name) and new
    if is_created:
        create_empty(spark, target, frame.schema, plan.run_id, layout)
    say("writing")
    try:
        with batched(plan), watched(spark, say):
            began = time.perf_counter()
            commit_rows(frame, target, config.output.mode, layout, options, new=new)
            seconds = time.perf_counter() - began
    except Exception:
        if is_created and plan.run_id not in our_commits(history(spark, target)):
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

    A write that also creates its table is one Spark does not observe: its counts would be lost. A property of the table names the
    run: the empty table of a killed driver is then recognised. (Delta Lake leaves the option `userMetadata` out of a commit that
    creates a table by name.)
    """
    creator = spark.createDataFrame([], schema).writeTo(target.sql).using("delta")
    layout.of_new(creator).tableProperty(CREATED, run_id).create()


def repartition_skewed(plan: RunPlan, say: Steps) -> RunPlan:
    """Return the run with its rows dealt out over more partitions, or as it is.

    Raises:
        SettingsError: a number of partitions, but rows have no identity that survives the move.
    """
    setting = plan.config.run.partitions
    if setting == "keep":
        return plan
    if plan.identity.row is None:
        if setting == "auto":
            return plan
        raise SettingsError(
            f"run.partitions: {setting} needs a row_key, because rows are known by place only. Name one, or use keep."
        )
    number = _needed(plan) if setting == "auto" else int(setting)
    if number is None:
        return plan
    say(f"distributing the rows over {number} partitions")
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
