"""The column function: text columns and identities in, sanitized texts and counters out, a batch at a time.

Two thin shells, `arrow_udf` (Spark 4.1 and later) and scalar-iterator `pandas_udf`, over :func:`sanitize`. Spark gives each
Python worker as many threads for matrix products as a task has cores (OMP_NUM_THREADS, from `spark.task.cpus`). So the workers
of a node do not compete for its cores.

Columns with several texts a row are flattened for the engine, each text with its own identity, and put back. A row's identity is
its key column, its file and place, or its place in a bare scan.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql import types as T

from dptext_spark.arrays import I64
from dptext_spark.errors import DataError, DPTextError, SettingsError, require_choice
from dptext_spark.importance.providers import InvalidWeightsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import RESULT, check_key_kind, check_keys_there
from dptext_spark.model.table_schema import Parts, Plain
from dptext_spark.randomness import KeyReference, RunKey
from dptext_spark.spark.nested_columns import (
    Elements,
    is_list,
    paths_of,
    quoted,
    rebuilt,
    schema_of,
    strip_metadata,
)
from dptext_spark.spark.run_lists import NO_LISTS, ShippedLists, with_lists
from dptext_spark.spark.ship import Shipped, open_shipped
from dptext_spark.spark.spark_errors import (
    INVALID_UTF8,
    NULL_KEY,
    WEIGHTS,
    TaskError,
    code_of,
    suppress_sensitive_logs,
    worker_key,
)
from dptext_spark.text.engine import COUNTERS
from dptext_spark.text.selection import Texts, TokenSelection

UDF_KINDS = ("auto", "arrow", "pandas")
ORDINAL_BITS = 40
UNKNOWN_ROWS = "unknown_rows"  # field and metric of rows whose words are mostly unknown
F: Any = functions  # its stubs leave out what Spark adds at run time


@dataclass(frozen=True)
class UdfSpec:
    """Parameters of a worker; they travel in the function's closure.

    Attributes:
        columns: names of the texts as :attr:`Path.name` spells them, in the order of the arguments.
        shipped: where the model is.
        key: the run key, or where each worker reads it.
        run_id: of the run.
        has_row_id: the argument after the texts identifies the row; otherwise (partition, ordinal) does.
        has_record_id: the last argument identifies the record.
        weights: columns with weights for the words of each text, after the texts; none where they are not needed.
        names: the lists of names; columns among them come after the weights.
    """

    columns: tuple[str, ...]
    shipped: Shipped
    key: RunKey | KeyReference
    run_id: str
    has_row_id: bool
    has_record_id: bool
    weights: tuple[str, ...] = ()
    names: ShippedLists = NO_LISTS

    @property
    def text_arguments(self) -> int:
        """Number of arguments that are texts or weights."""
        return len(self.columns) + len(self.weights)

    @property
    def row_arguments(self) -> int:
        """Number of arguments before the row's identity."""
        return self.text_arguments + len(self.names.columns)


def result_type(columns: tuple[str, ...], lists: frozenset[int] = frozenset()) -> T.StructType:
    """Return the type of the function's result: for each column a text and a total of each counter, and two figures of a row.

    The texts in `lists` are several a row.
    """
    text, several = T.StringType(), T.ArrayType(T.StringType())
    fields = [T.StructField(f"text_{i}", several if i in lists else text) for i in range(len(columns))]
    for i in range(len(columns)):
        fields += [T.StructField(f"{name}_{i}", T.LongType()) for name in COUNTERS]
    return T.StructType(
        [*fields, T.StructField("units", T.LongType()), T.StructField(UNKNOWN_ROWS, T.LongType())]
    )


def sanitize(
    arrays: tuple[pa.Array, ...], spec: UdfSpec, privatizer: Privatizer, row_ids: pa.Array
) -> pa.StructArray:
    """Sanitize one batch.

    Args:
        arrays: the arguments: texts, or lists of texts, then the weights of their words, the columns that are lists of names,
            the row's identity and the record's, where `spec` has them.
        spec: what to do.
        privatizer: the model.
        row_ids: the row's identity [n].

    Returns:
        struct[n] of :func:`result_type`. `units` is each row's number of spent units of ε, see :attr:`Counters.units`; a list has
        the sum of its texts. `unknown_rows` is the row's :func:`mostly_unknown`. Counters are totals in the batch's first row, 0
        elsewhere.

    Raises:
        TaskError: invalid UTF-8, a NULL key, weights that are not one number for each word, a name that cannot be looked for, or
            no run key here.
        DataError: records of several rows whose words importance would choose.
    """
    record_ids = arrays[-1] if spec.has_record_id else None
    if row_ids.null_count or (record_ids is not None and record_ids.null_count):
        raise TaskError(
            NULL_KEY, 0, 0, row_ids.null_count or (record_ids.null_count if record_ids is not None else 0)
        )
    key = worker_key(spec.key)
    privatizer = with_lists(privatizer, spec.names, arrays[spec.text_arguments : spec.row_arguments])
    rows = len(row_ids)
    lists = [Elements.of(values) if is_list(values.type) else None for values in arrays[: len(spec.columns)]]
    chosen = _chosen(arrays, lists, spec, privatizer, row_ids, record_ids)
    texts, totals = [], []
    units, words, unknown = (np.zeros(rows, np.int64) for _ in range(3))
    for index, (column, values, elements) in enumerate(zip(spec.columns, arrays, lists, strict=False)):
        ids, records, model = row_ids, record_ids, privatizer
        if elements is not None:  # each text is a row of its own to the engine, and of its row's record
            records = (row_ids if record_ids is None else record_ids).take(pa.array(elements.rows))
            values, ids = elements.texts, elements.identities(row_ids)
            model = privatizer.of_rows(elements.rows)
        text, counters = model.privatize(
            values,
            column=column,
            row_ids=ids,
            record_ids=records,
            key=key,
            run_id=spec.run_id,
            chosen=None if chosen is None else chosen[index],
        )
        invalid = int((counters.column("invalid") > 0).sum())
        if invalid:
            raise TaskError(INVALID_UTF8, 0, 0, invalid)
        for total, count in (
            (units, counters.units), (words, counters.column("words")), (unknown, counters.column("oov"))
        ):  # fmt: skip
            total += count if elements is None else elements.sums(count)
        sums = counters.totals()
        for name in COUNTERS:
            total = np.zeros(rows, np.int64)
            total[:1] = sums[name]
            totals.append(pa.array(total))
        text = text if text.type == pa.string() else text.cast(pa.string())
        texts.append(text if elements is None else elements.whole(text))
    names = [field.name for field in result_type(spec.columns)]
    return pa.StructArray.from_arrays(
        [*texts, *totals, pa.array(units), pa.array(mostly_unknown(words, unknown))], names=names
    )


def mostly_unknown(words: I64, unknown: I64) -> I64:
    """Compute 1 for each row with more than half of its words unknown, in all texts together, else 0: int64[n]."""
    return (2 * unknown > words).astype(np.int64)


def _chosen(
    arrays: tuple[pa.Array, ...],
    lists: list[Elements | None],
    spec: UdfSpec,
    privatizer: Privatizer,
    row_ids: pa.Array,
    record_ids: pa.Array | None,
) -> tuple[TokenSelection, ...] | None:
    """Choose the words that are drawn, in all texts of a row together; None: all are."""
    if privatizer.selector is None:
        return None
    if privatizer.chooses_in_records and record_ids is not None and not record_ids.equals(row_ids):
        raise DataError("record_key: records of several rows, with importance at record level or a budget.")
    columns = []
    for index, (values, elements) in enumerate(zip(arrays, lists, strict=False)):
        weights = arrays[len(lists) + index] if spec.weights else None
        if elements is None:
            columns.append(Texts(values, None, weights))
        else:
            columns.append(Texts(elements.texts, elements.rows, weights))
    try:
        return privatizer.choose(columns)
    except InvalidWeightsError as error:
        raise TaskError(WEIGHTS, 0, 0, error.count) from None


def batches(spec: UdfSpec, stream: Iterator[Any]) -> Iterator[pa.StructArray]:
    """Sanitize the batches of a task; whatever goes wrong leaves as a code, a partition and a batch number."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    number, ordinal = 0, 0
    try:
        privatizer = open_shipped(spec.shipped)
        for batch in stream:
            arrays = batch if isinstance(batch, tuple) else (batch,)
            rows = len(arrays[0])
            if spec.has_row_id:
                row_ids = arrays[spec.row_arguments]
            else:
                first = (partition << ORDINAL_BITS) + ordinal
                row_ids = pa.array(np.arange(first, first + rows, dtype=np.int64))
            result = sanitize(arrays, spec, privatizer, row_ids)
            yield result
            number += 1
            ordinal += rows
    except GeneratorExit:
        raise
    except TaskError as error:
        code, rows = str(error).split("[")[1].split("]")[0], int(str(error).rsplit("=", 1)[1])
        raise TaskError(code, partition, number, rows) from None
    except BaseException as error:
        code = code_of(error, "DPText_" if isinstance(error, DPTextError) else "")
        raise TaskError(code, partition, number, 0) from None


def _as_arrow(values: Any, index: int, spec: UdfSpec, lists: frozenset[int]) -> pa.Array:
    """Turn an argument that came as a pandas series back into Arrow: texts and names as binary, weights as float32."""
    if index >= spec.row_arguments:
        return pa.Array.from_pandas(values)
    is_weight = len(spec.columns) <= index < spec.text_arguments
    kind = pa.float32() if is_weight else pa.binary()
    several = is_weight or index in lists
    return pa.array(values.to_numpy(dtype=object), pa.list_(kind) if several else kind, from_pandas=True)


def build(
    spec: UdfSpec, kind: Literal["auto", "arrow", "pandas"] = "auto", lists: frozenset[int] = frozenset()
) -> Any:
    """Return the Spark function of a job: columns in, struct out.

    The arguments in `lists` hold several texts a row.

    Raises:
        SettingsError: an unknown kind, or `arrow` where this Spark has none.
    """
    require_choice("run.udf", kind, UDF_KINDS)
    has_arrow = hasattr(F, "arrow_udf")
    if kind == "arrow" and not has_arrow:
        raise SettingsError("run.udf: 'arrow' needs Spark 4.1 or later. Choose auto or pandas.")
    returns = result_type(spec.columns, frozenset(i for i in lists if i < len(spec.columns)))
    if has_arrow and kind != "pandas":

        def over_arrow(stream: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
            return batches(spec, stream)

        udf = F.arrow_udf(over_arrow, returns)
    else:

        def over_pandas(stream: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
            def arrow() -> Iterator[tuple[pa.Array, ...]]:
                for batch in stream:
                    series = batch if isinstance(batch, tuple) else (batch,)
                    yield tuple(_as_arrow(s, i, spec, lists) for i, s in enumerate(series))

            for result in batches(spec, arrow()):
                yield pd.DataFrame(
                    {field.name: result.field(i).to_pandas() for i, field in enumerate(result.type)}
                )

        udf = F.pandas_udf(over_pandas, returns)
    return udf.asNondeterministic() if not spec.has_row_id else udf


def applied(
    df: DataFrame, spec: UdfSpec, kind: Any, row_id: Column | None, record_id: Column | None
) -> DataFrame:
    """Return `df` with the struct column `RESULT` beside its own columns."""
    paths = paths_of(df.schema, spec.columns, exact=True)
    several = {i for i, path in enumerate(paths) if path.over}
    several |= {
        spec.text_arguments + i
        for i, name in enumerate(spec.names.columns)
        if isinstance(df.schema[name].dataType, T.ArrayType)
    }
    function = build(spec, kind, frozenset(several))
    texts = {i: path.text for i, path in enumerate(paths)}
    names = {spec.text_arguments + i: quoted(name) for i, name in enumerate(spec.names.columns)}
    if kind == "pandas" or not hasattr(F, "arrow_udf"):
        for columns in (texts, names):
            for i, column in columns.items():
                columns[i] = column.cast("array<binary>" if i in several else "binary")
    weights = [quoted(name).cast("array<float>") for name in spec.weights]
    identities = [c for c in (row_id, record_id) if c is not None]
    return df.withColumn(RESULT, function(*texts.values(), *weights, *names.values(), *identities))


def replaced(
    df: DataFrame, spec: UdfSpec, keep: list[str], dropped: frozenset[Parts] = frozenset()
) -> DataFrame:
    """Select `keep` from a frame that has `RESULT`, the texts replaced by their sanitized form.

    `dropped` fields beside nested texts are left out.
    """
    schema = df.schema
    texts = {
        path: F.col(RESULT).getField(f"text_{i}")
        for i, path in enumerate(paths_of(schema, spec.columns, exact=True))
    }
    roots = {path.root for path in texts}
    out = []
    for name in keep:
        # Metadata of the source is not carried over: a computed column has none, and coalesce of one column is that column.
        # (Spark 4.0 takes an empty `metadata` of an alias for none, and keeps what there was.)
        column = rebuilt(schema, name, texts, dropped) if name in roots else functions.coalesce(quoted(name))
        out.append(column.alias(name))
    return _unnoted(df.select(*out))


def _unnoted(df: DataFrame) -> DataFrame:
    """Take the metadata off fields inside of columns, where there is any."""
    bare = {field.name: strip_metadata(field.dataType) for field in df.schema.fields}
    noted = [field.name for field in df.schema.fields if field.dataType != bare[field.name]]
    if not noted:
        return df
    return df.select(
        *[quoted(name).cast(bare[name]).alias(name) if name in noted else quoted(name) for name in df.columns]
    )


def key_column(df: DataFrame, name: str, field: str) -> Column:
    """Return an identity column in a type that workers take: bigint, string or binary."""
    kind = df.schema[name].dataType
    check_key_kind(field, name, Plain(kind.simpleString()))
    if isinstance(kind, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        return quoted(name).cast("bigint")
    if isinstance(kind, T.StringType):
        return quoted(name).cast("string")
    if isinstance(kind, T.BinaryType):
        return quoted(name)
    if isinstance(kind, T.TimestampType):
        # Its text depends on the session's time zone, and two instants share one when the clocks go back.
        return functions.unix_micros(quoted(name))
    return quoted(name).cast("string")  # of dates, decimals, and times without a zone


# Plan nodes that neither move rows between partitions nor change their order or number before the function. A plain `Scan`
# is none of them: it reads an RDD or a database, which may give its rows in another order the next time.
BARE = {
    "FileScan",
    "BatchScan",
    "ColumnarToRow",
    "Project",
    "Filter",
    "InputAdapter",
    "WholeStageCodegen",
    "Physical",
}
# Settings that decide how files are cut into partitions and packed together.
_PACKING = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.leafNodeDefaultParallelism",
)


@dataclass(frozen=True, eq=False)
class Identity:
    """The identities of a run.

    Attributes:
        kind: `row_key`, `file_row`, or `ordinal:` and the layout of the scan.
        row: the row's identity; None for the ordinal.
        record: the record's identity; None where it is the row's.
    """

    kind: str
    row: Column | None
    record: Column | None


def identify_rows(df: DataFrame, row_key: str | None, record_key: str | None, ordinal: bool) -> Identity:
    """Choose the identity of rows and records.

    The place (partition, ordinal) is an identity only in a single batch write over a bare scan, if `ordinal` allows it.

    Raises:
        DataError: a key column is missing.
        SettingsError: there is no stable identity; `row_key` is the cure.
    """
    check_keys_there(schema_of(df.schema), row_key, record_key)
    record = key_column(df, record_key, "record_key") if record_key else None
    if row_key:
        return Identity("row_key", key_column(df, row_key, "row_key"), record)
    if has_row_index(df):
        place = F.concat_ws("|", F.col("_metadata.file_path"), F.col("_metadata.row_index").cast("string"))
        return Identity("file_row", place, record)
    if ordinal and is_bare_scan(df):
        return Identity(f"ordinal:{_layout(df)}", None, record)
    raise SettingsError("row_key: none given, and rows have no other identity. Name a unique column.")


def has_row_index(df: DataFrame) -> bool:
    """Check whether every row knows its file and its place in it (Parquet, and Delta with deletion vectors), once only."""
    if any(name.lower() == "_metadata" for name in df.columns):
        return False  # the input's own column, which hides Spark's
    try:
        with suppress_sensitive_logs():
            resolved = df.select("_metadata.file_path", "_metadata.row_index")
            resolved.schema  # noqa: B018  (resolves the columns)
    except PySparkException:
        return False
    return is_bare_scan(df, "Sample")


def plan_nodes(df: DataFrame) -> list[str]:
    """Return the node names of a frame's physical plan (classic sessions; none for a stream, which has no plan yet)."""
    if not hasattr(df, "_jdf") or df.isStreaming:
        return []
    plan: Any = df._jdf.queryExecution().executedPlan().toString()
    names = []
    for line in plan.splitlines():
        node = re.match(r"^[\s:+\-|*]*(?:\(\d+\)\s+)?([A-Za-z]+)", line)
        if node:
            names.append(node.group(1))
    return names


def is_bare_scan(df: DataFrame, *more: str) -> bool:
    """Check that the plan is a scan with projections and filters only, and `more` nodes."""
    nodes = plan_nodes(df)
    return bool(nodes) and set(nodes) <= BARE.union(more)


def _layout(df: DataFrame) -> str:
    """Describe the layout that ordinals depend on, apart from files: number of the scan's partitions, and their packing.

    The number alone is not enough: the same files can make as many partitions in other ways.
    """
    if not hasattr(df, "_jdf"):
        return "unknown"
    spark = df.sparkSession
    packing = [str(spark.conf.get(name, None)) for name in _PACKING]
    packing.append(str(spark.sparkContext.defaultParallelism))
    return f"{df.rdd.getNumPartitions()}:{hashlib.sha256('|'.join(packing).encode()).hexdigest()[:8]}"
