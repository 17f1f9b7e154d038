"""Link the rows of a written table with those of its source, in workers: adversaries look for some rows among all others.

The rows that are looked for come to the driver, which ships them to all workers: private text, in a file that only its user may
read, emptied at the end. A worker holds the law, and counts how the others stand; only counts come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Window, functions

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
from dptext_spark.audit.attacks.linkage_scores import Fit, Told
from dptext_spark.audit.table_audit import Findings
from dptext_spark.audit.text_classifier import Both
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import KeyReference, RunKey, identify
from dptext_spark.spark.errors import TaskError, code_of, worker_key
from dptext_spark.spark.udf.names import NO_LISTS, PrivateFile, ShippedLists, with_lists
from dptext_spark.spark.udf.ship import Shipped, open_shipped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F: Any = functions  # its stubs leave out what Spark adds at run time
MOST_CANDIDATES = 1_000_000  # of more rows a sample are candidates
WORDS_AT_ONCE = 1_500_000  # of the rows that a worker scores at a time
SHARES = 1 << 30
SCHEMA = (
    f"adversary string, query bigint, standing bigint, {', '.join(f'{name} bigint' for name in Fit._fields)}"
)


@dataclass(frozen=True)
class LinkTables:
    """Maps batches of (s0, ..., o0, ..., n0, ..., row_key[, author]) to rows of `SCHEMA`, one for each adversary and query.

    Attributes:
        shipped: where the model is.
        key: of hashes and of what adversaries know.
        columns: how many text columns there are.
        names: the lists of names that the run was given.
        file: what is looked for, by the name that Spark shipped it under.
        law: whether adversaries know the law.
    """

    shipped: Shipped
    key: RunKey | KeyReference
    columns: int
    names: ShippedLists
    file: str
    law: bool = True

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Map the batches of a task; what goes wrong leaves as a code."""
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
        texts: Both[Sequence[pa.Array]] = Both(
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
    """Read what is looked for, once a process."""
    from pyspark import SparkFiles

    with np.load(SparkFiles.get(file)) as arrays:
        tables = [
            pa.ipc.open_stream(arrays[name].tobytes()).read_all() if name in arrays else None
            for name in ("queries", "authors")
        ]
        assert tables[0] is not None
        return tables[0], tables[1], arrays.get("marginal")


def _counts(name: str, standing: I64, *counts: I64) -> pa.RecordBatch:
    """Return what an adversary counted, a row for each query."""
    every = np.arange(len(standing))
    columns = [pa.array([name] * len(every), pa.string()), *map(pa.array, (every, standing, *counts))]
    return pa.RecordBatch.from_arrays(columns, ["adversary", "query", "standing", *Fit._fields])


@dataclass(frozen=True)
class LinkPlan:
    """What is linked.

    Attributes:
        queries: rows that are looked for, at most.
        rows: that are in both tables.
        columns: how many text columns there are.
        has_author: whether the frame has whose each row is.
        asked: figures for a number of candidates, as requirements name them: `linkage_top1(10000)`.
        knows_law: whether it is known how the release was made.
    """

    queries: int
    rows: int
    columns: int
    has_author: bool
    asked: Sequence[str] = ()
    knows_law: bool = True


def link(
    spark: SparkSession, frame: DataFrame, plan: LinkPlan, privatizer: Privatizer, shipped: Shipped, key: RunKey,
    names: ShippedLists = NO_LISTS,
) -> Findings:  # fmt: skip
    """Measure how often rows are linked.

    Args:
        spark: the session.
        frame: both tables, joined: (row_key, s0, ..., n0, ..., o0, ...[, author]).
        plan: what is linked.
        privatizer: the model that made the release.
        shipped: the same, where the workers find it.
        key: of this audit.
        names: the lists of names that the run was given.
    """
    columns = [f"{side}{i}" for side in "so" for i in range(plan.columns)]
    columns += [f"n{i}" for i in range(len(names.columns))]
    both = frame.select("row_key", *columns, *(["author"] if plan.has_author else []))
    place = F.xxhash64(F.col("row_key").cast("string"), F.lit(_salt(key, "queries")))
    queries = both.drop("author").orderBy(place).limit(plan.queries).toArrow()
    authors = _authors(both, columns, plan.queries, key).toArrow() if plan.has_author else None
    told = (
        Told.of(privatizer.sampler, prior_of(privatizer)) if plan.knows_law and has_law(privatizer) else None
    )
    marginal = None if told is None else told.marginal
    file = PrivateFile(spark, "queries", partial(_write, queries, authors, marginal))
    try:
        job = LinkTables(shipped, key, plan.columns, names, file.name, told is not None)
        share = min(1.0, MOST_CANDIDATES / plan.rows)
        if share < 1.0:
            chosen = F.pmod(
                F.xxhash64(F.col("row_key").cast("string"), F.lit(_salt(key, "rows"))), F.lit(SHARES)
            )
            both = both.where(chosen < int(share * SHARES))
        counted = both.mapInArrow(job, SCHEMA).groupBy("adversary", "query")
        sums = [F.sum(name).alias(name) for name in Fit._fields]
        summed = counted.agg(F.max("standing").alias("standing"), *sums).toArrow()
    finally:
        file.empty()
    return findings_of(summed, plan.asked, told)


def _salt(key: RunKey, use: str) -> int:
    return int.from_bytes(key.derive("linkage", use, length=8), "little") >> 1


def _authors(both: DataFrame, columns: Sequence[str], most: int, key: RunKey) -> DataFrame:
    """Return a text of each of some authors beside the release of another: (s0, ..., n0, ..., o0, ..., row_key, author)."""
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
