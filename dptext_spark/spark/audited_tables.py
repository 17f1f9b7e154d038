"""Open a written table and its source at one version each, check and join their rows, and link them as adversaries do.

One pass matches the keys of both tables, and counts the rows of each and of both.

Linkage runs in workers: adversaries look for some rows among all others. The driver collects these rows and ships them to all
workers. They are private text: the file is readable by its user only, and emptied at the end. A worker holds the law and counts
how the others rank; only counts come back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window, functions
from pyspark.sql import types as T

from dptext_spark.arrays import F64, I64
from dptext_spark.audit.attacks.linkage import (
    ROWS,
    Laws,
    Linker,
    Pairs,
    findings_of,
    has_law,
    joined,
    prior_of,
    read_pairs,
)
from dptext_spark.audit.attacks.linkage_scores import DrawBits, Ranks
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.table_audit import Findings
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import check_texts
from dptext_spark.model.target_checks import Commit, our_commits
from dptext_spark.randomness import KeyReference, RunKey, identify
from dptext_spark.spark.column_function import has_row_index, key_column
from dptext_spark.spark.job.planned_run import require_key
from dptext_spark.spark.nested_columns import paths_of, quoted, schema_of
from dptext_spark.spark.pair_tables import side_of
from dptext_spark.spark.run_lists import PrivateFile, ShippedLists, with_lists
from dptext_spark.spark.ship import Shipped, open_shipped
from dptext_spark.spark.spark_errors import TaskError, code_of, worker_key
from dptext_spark.spark.tables import Target, checked_records, history, read_input
from dptext_spark.spark.tables import opened as opened_at

F: Any = functions  # its stubs leave out what Spark adds at run time
# Start of messages on reading: here the table has another name.
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
    """Open both tables and check their columns; messages name the table."""
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
                f"row_key: none given, and {place!r} ({field}) does not record the file and place of a row. Use "
                "--row-key with a column of both tables, or Parquet files of the same names in both."
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

    `whole` reads all commits, else the newest alone.
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
        except PySparkException:  # the reader of inputs describes the problem
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
            f"config: run {run_id} made the table with model {artifact[:12]}, but these settings give "
            f"{privatizer.fingerprint[:12]}. Give the settings of that run."
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
    """Return the row keys of the table and its source for the join; file and place where there is none.

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
            f"row_key: column {plan.row_key!r} is {kinds[0]} in the table, but {kinds[1]} in its source. Use one type."
        )
    return keys[0], keys[1]


def _texts(frame: DataFrame, plan: AuditPlan) -> list[Column]:
    """Find the texts of a table; an array or a map is compared as a text with a line for each element."""
    return [path.joined.cast("string") for path in paths_of(frame.schema, plan.columns)]


def value_of(source: DataFrame, name: str, field: str) -> Column:
    """Return a column of labels or of an attribute as text, under the name of its field; a NaN counts as missing.

    Raises:
        DataError: a type whose values are no classes.
    """
    kind = source.schema[name].dataType
    if not isinstance(kind, _CLASSES):
        raise DataError(
            f"{field}: column {name!r} of type {kind.simpleString()} is not valid. Use text, numbers, booleans or dates."
        )
    value = quoted(name)
    if isinstance(kind, T.FloatType | T.DoubleType):
        value = F.when(~F.isnan(value), value)
    return value.cast("string").alias(field)


PLACE = "file and place"  # identifies rows where no column does


class KeyCounts(NamedTuple):
    """Rows of the table, of its source, and those that are in both."""

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
        rows, not_null, distinct = (int(row[f"{side}_{name}"] or 0) for name in ("rows", "held", "distinct"))
        try:
            require_key("row_key", plan.row_key or PLACE, rows, not_null, distinct)
        except DataError as error:
            raise DataError(f"{field}: {error}") from None
    in_table, in_source = int(row["table_rows"] or 0), int(row["source_rows"] or 0)
    if plan.record_key:
        require_key("record_key", plan.record_key, in_source, in_source - int(row["missing"] or 0))
    return KeyCounts(in_table, in_source, int(row["both"]))


def require_matching(plan: AuditPlan, counts: KeyCounts) -> None:
    """Refuse tables whose rows do not match; the message holds counts, never a key."""
    in_table, in_source, rows = counts
    mismatch = (
        f"row_key: {rows:,} rows are in both tables. The source lacks {in_table - rows:,} of the table's {in_table:,} "
        f"rows, and the table lacks {in_source - rows:,} of the source's {in_source:,}."
    )
    if not rows and plan.row_key is None:
        raise DataError(
            "row_key: none given, and no file and place is in both tables, because files were written "
            "anew. Use --row-key with a column that identifies a row in both."
        )
    if not rows:
        raise DataError(f"{mismatch} Name the source of this table, and a key of both.")
    if (rows != in_table or rows != in_source) and not plan.partial:
        raise DataError(f"{mismatch} To audit the rows of both alone, use --partial.")


def _keys(plan: AuditPlan, tables: TwoTables) -> DataFrame:
    """Count by key, then over all keys: one row."""
    of_table, of_source = row_keys(plan, tables)
    missing = quoted(plan.record_key).isNull() if plan.record_key else F.lit(False)
    unit, none = F.lit(1).cast("long"), F.lit(0).cast("long")
    both = tables.table.select(
        of_table.alias("key"), unit.alias("table"), none.alias("source"), none.alias("missing")
    ).unionAll(tables.source.select(of_source.alias("key"), none, unit, missing.cast("long")))
    sides = ("table", "source")
    counts = both.groupBy("key").agg(*[F.sum(name).alias(name) for name in (*sides, "missing")])
    not_null = F.col("key").isNotNull()
    figures = [F.sum("missing").alias("missing")]
    for side in sides:
        in_side = F.col(side) > 0
        figures += [
            F.sum(side).alias(f"{side}_rows"),
            F.sum(F.when(not_null, F.col(side))).alias(f"{side}_held"),
            F.count_if(not_null & in_side).alias(f"{side}_distinct"),
        ]
    figures.append(F.count_if(not_null & (F.col("table") > 0) & (F.col("source") > 0)).alias("both"))
    return counts.agg(*figures)


MOST_CANDIDATES = 1_000_000  # of more rows a sample are candidates
WORDS_AT_ONCE = 1_500_000  # of the rows that a worker scores at a time
SHARES = 1 << 30
SCHEMA = f"adversary string, query bigint, standing bigint, {', '.join(f'{name} bigint' for name in Ranks._fields)}"


@dataclass(frozen=True)
class LinkTables:
    """Maps batches of (s0, ..., o0, ..., n0, ..., row_key[, author]) to rows of `SCHEMA`, one for each adversary and query.

    Attributes:
        shipped: where the model is.
        key: of hashes and of the adversaries' knowledge.
        columns: how many text columns there are.
        names: the lists of names that the run was given.
        file: Spark's name for the shipped queries.
        law: whether adversaries know the law.
    """

    shipped: Shipped
    key: RunKey | KeyReference
    columns: int
    names: ShippedLists
    file: str
    law: bool

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Map the batches of a task; failures leave as a code."""
        context = TaskContext.get()
        partition, number, rows = context.partitionId() if context is not None else 0, 0, 0
        try:
            model, key = open_shipped(self.shipped), worker_key(self.key)
            linker = self._linker(model, key)
            parts: list[Pairs] = []
            for batch in stream:
                parts.append(self._pairs(model, key, batch))
                rows += len(batch)
                number += 1
                if sum(len(part.source.ids) for part in parts) > WORDS_AT_ONCE:
                    linker.add(joined(parts))
                    parts = []
            if parts:
                linker.add(joined(parts))
            if rows:
                yield _counts(ROWS, np.zeros(1, np.int64), *np.full((3, 1), rows))
                for name, standing, fit in linker.standings:
                    yield _counts(name, standing, *fit)
        except (GeneratorExit, TaskError):
            raise
        except BaseException as error:
            raise TaskError(code_of(error, "AUDIT_"), partition, number, 0) from None

    def _pairs(self, model: Privatizer, key: RunKey, batch: pa.RecordBatch | pa.Table) -> Pairs:
        texts: Pair[Sequence[pa.Array]] = Pair(
            *([_flat(batch, f"{side}{i}") for i in range(self.columns)] for side in "so")
        )
        lists = [_flat(batch, f"n{i}") for i in range(len(self.names.columns))]
        authors = None
        if "author" in batch.schema.names:
            authors = identify(_flat(batch, "author").fill_null(""), key, "linkage author")[:, 0]
        rows = identify(_flat(batch, "row_key"), key, "linkage row")[:, 0]
        return read_pairs(model, with_lists(model, self.names, lists), texts, rows, key, authors)

    def _linker(self, model: Privatizer, key: RunKey) -> Linker:
        queries, authors, marginal = _read(self.file)
        authored = None if authors is None else self._pairs(model, key, authors)
        laws = Laws(model, marginal) if self.law else None
        return Linker(
            self._pairs(model, key, queries), key, authored, laws, shared=model.consistency != "token"
        )


def _flat(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


@lru_cache(maxsize=2)
def _read(file: str) -> tuple[pa.Table, pa.Table | None, F64 | None]:
    """Read the queries, once a process."""
    from pyspark import SparkFiles

    with np.load(SparkFiles.get(file)) as arrays:
        tables = [
            pa.ipc.open_stream(arrays[name].tobytes()).read_all() if name in arrays else None
            for name in ("queries", "authors")
        ]
        assert tables[0] is not None
        return tables[0], tables[1], arrays.get("marginal")


def _counts(name: str, standing: I64, *counts: I64) -> pa.RecordBatch:
    """Return an adversary's counts, a row for each query."""
    every = np.arange(len(standing))
    columns = [pa.array([name] * len(every), pa.string()), *map(pa.array, (every, standing, *counts))]
    return pa.RecordBatch.from_arrays(columns, ["adversary", "query", "standing", *Ranks._fields])


def link(
    frame: DataFrame, plan: AuditPlan, rows: int, privatizer: Privatizer, shipped: Shipped, key: RunKey, names: ShippedLists
) -> Findings:  # fmt: skip
    """Measure how often rows are linked.

    `frame` holds the `rows` of both tables, joined: (row_key, s0, ..., n0, ..., o0, ...[, author]).
    """
    columns = [f"{side}{i}" for side in "so" for i in range(len(plan.columns))]
    columns += [f"n{i}" for i in range(len(names.columns))]
    both = frame.select("row_key", *columns, *(["author"] if plan.author else []))
    place = F.xxhash64(F.col("row_key").cast("string"), F.lit(_salt(key, "queries")))
    queries = both.drop("author").orderBy(place).limit(plan.queries).toArrow()
    authors = _authors(both, columns, plan.queries, key).toArrow() if plan.author else None
    is_known = plan.attacked and has_law(privatizer)
    told = DrawBits.of(privatizer.sampler, prior_of(privatizer)) if is_known else None
    marginal = None if told is None else told.marginal
    file = PrivateFile(frame.sparkSession, "queries", partial(_write, queries, authors, marginal))
    try:
        job = LinkTables(shipped, key, len(plan.columns), names, file.name, told is not None)
        share = min(1.0, MOST_CANDIDATES / rows)
        if share < 1.0:
            chosen = F.pmod(
                F.xxhash64(F.col("row_key").cast("string"), F.lit(_salt(key, "rows"))), F.lit(SHARES)
            )
            both = both.where(chosen < int(share * SHARES))
        counted = both.mapInArrow(job, SCHEMA).groupBy("adversary", "query")
        sums = [F.sum(name).alias(name) for name in Ranks._fields]
        summed = counted.agg(F.max("standing").alias("standing"), *sums).toArrow()
    finally:
        file.empty()
    return findings_of(summed, plan.asked, told)


def _salt(key: RunKey, use: str) -> int:
    return int.from_bytes(key.derive("linkage", use, length=8), "little") >> 1


def _authors(both: DataFrame, columns: Sequence[str], most: int, key: RunKey) -> DataFrame:
    """Pair a text of each sampled author with the release of another: (s0, ..., n0, ..., o0, ..., row_key, author)."""
    place = F.xxhash64(F.col("row_key").cast("string"), F.lit(_salt(key, "authors")))
    numbered = both.where(F.col("author").isNotNull()).withColumn(
        "place", F.row_number().over(Window.partitionBy("author").orderBy(place))
    )
    known, sought = (numbered.where(F.col("place") == number) for number in (1, 2))
    of_source = [name for name in columns if name[0] != "o"]
    of_output = [name for name in columns if name[0] == "o"]
    pairs = known.select("author", *of_source).join(sought.select("author", "row_key", *of_output), "author")
    return pairs.orderBy(F.xxhash64("author", F.lit(_salt(key, "queries")))).limit(most)


def _write(queries: pa.Table, authors: pa.Table | None, marginal: F64 | None, out: BinaryIO) -> None:
    arrays: dict[str, Any] = {
        name: np.frombuffer(_stream(table), np.uint8)
        for name, table in (("queries", queries), ("authors", authors))
        if table is not None
    }
    if marginal is not None:
        arrays["marginal"] = marginal
    np.savez(out, **arrays)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
