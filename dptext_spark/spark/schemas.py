"""The tables that a run writes in addition to its target; the only definition of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T

from dptext_spark.errors import SCHEMA_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_S, _L, _D = T.StringType(), T.LongType(), T.DoubleType()
_ARROW: dict[T.DataType, pa.DataType] = {
    _S: pa.string(), _L: pa.int64(), _D: pa.float64(), T.IntegerType(): pa.int32(), T.BooleanType(): pa.bool_(),
    T.TimestampType(): pa.timestamp("us", "UTC"),
}  # fmt: skip
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Of a table when it is made. They are small and read whole: bounds of each file's values would be computed in vain.
PROPERTIES = {"delta.dataSkippingNumIndexedCols": "0"}
SCHEMA = "dptext.schema"  # in the metadata of a table's first column: the version of its schema


def _table(*fields: tuple[str, T.DataType, str]) -> T.StructType:
    schema = T.StructType(
        [T.StructField(name, kind, True, {"comment": comment}) for name, kind, comment in fields]
    )
    schema.fields[0].metadata[SCHEMA] = SCHEMA_VERSION
    return schema


RUNS = _table(
    ("run_id", _S, "of the run; of a micro-batch STREAM.NUMBER"),
    ("status", _S, "started, succeeded, failed, mismatch (counts or consistency disagree) or recovered"),
    ("started_at", T.TimestampType(), "UTC"),
    ("config", _S, "the settings, JSON; no secrets"),
    ("guarantee", _S, "JSON"),
    ("certificate", _S, "JSON, of the model; NULL where none was made"),
    ("disclosure", _S, "the statement, JSON"),
    ("key_commitment", _S, "binds the run to its key and tells nothing of it"),
    ("key_kind", _S, "os, file, env, secret, given or insecure"),
    ("artifact", _S, "fingerprint of the compiled model"),
    ("input", _S, "path or name"),
    ("input_version", _S, "delta:N, files:digest, or of a micro-batch delta:FROM..TO"),
    ("identity", _S, "what identifies a row: row_key, file_row or ordinal and the layout"),
    ("output", _S, "path or name"),
    ("output_version", _L, "the commit of this run"),
    ("second_release", T.BooleanType(), "an unfinished run's records were released again with another key"),
    (
        "cumulative",
        _S,
        "what all releases of the input that the ledger knows have spent, with the sentence, JSON",
    ),
    ("rows", _L, "written"),
    ("seconds", _D, "wall time"),
    ("tokens_per_second", _D, "words of the input over wall time of the write"),
    ("versions", _S, "of this package, its engine, Spark, Delta and Python, JSON"),
)

METRICS = _table(
    ("run_id", _S, "of the run"),
    ("column", _S, "text column; NULL for the whole run"),
    ("metric", _S, "name"),
    ("value", _D, "depends on the private text: restricted"),
)

LEDGER = _table(
    (
        "entry",
        _S,
        "a text column of a run; one row reserves it, a later one with the same name settles it; or a decision",
    ),
    ("attempt", _S, "the reservation that wrote it; a run that is tried again makes another"),
    ("at", T.TimestampType(), "when it was reserved, or settled, UTC"),
    ("run_id", _S, "of the run; of a micro-batch, the stream's and its number"),
    ("input", _S, "where the input is"),
    ("input_id", _S, "identifier of the Delta table; NULL for other inputs"),
    (
        "input_version",
        _S,
        "delta:N and a digest of its log entry, or files:digest; with the run where the input has no version that can be trusted",
    ),
    ("column", _S, "text column"),
    ("record_key", _S, "column that says what a record is, or row"),
    ("unit", _S, "what epsilon is for"),
    ("consistency", _S, "token, record or dataset"),
    ("mechanism", _S, "with its parameters and the engine, JSON; long lists as a digest"),
    ("kind", _S, "of the guarantee"),
    ("metric", _S, "distance of the guarantee and the space it is taken in; NULL where it has none"),
    ("epsilon", _D, "what one release was promised to cost"),
    ("delta", _D, "likewise"),
    (
        "holds",
        T.BooleanType(),
        "false: the guarantee was refuted or the key is no secret, and no epsilon stands for it",
    ),
    ("records", _S, "all, changed (another version under the same draws) or added (new records of a stream)"),
    ("release", _S, "equal ones are equal draws; bound to the key, tells nothing of it"),
    (
        "status",
        _S,
        "reserved, spent or void, all but void count; limit (kept from now on) or begun (anew) spend nothing",
    ),
    ("why", _S, "it has that status, where that is not plain"),
    ("limit", _D, "that bound the run when it was reserved; of a row limit, the one that is kept"),
    ("override", _S, "the reason for which the limit was passed"),
    ("output", _S, "where the release is; `function NAME` of a function of SQL"),
    (
        "record_words",
        _L,
        "drawn words of the longest record, rounded up to a quarter power of two; NULL where a record has no epsilon",
    ),
    (
        "record_epsilon",
        _D,
        "what one release was found to cost such a record; NULL where a record has no epsilon",
    ),
    ("record_delta", _D, "up to which probability"),
)


BINDING = _table(
    ("stream", _S, "the run id of the stream that a checkpoint is of"),
    ("bound", _S, "what it is bound to, JSON"),
)


def frame_of(spark: SparkSession, rows: Sequence[Sequence[object]], schema: T.StructType) -> DataFrame:
    """Return a few rows as a frame of one partition, so that they are written as one file.

    They go to Spark as an Arrow table, and its driver holds them as values. A Python worker would convert plain rows anew in each
    write.

    Args:
        spark: the session.
        rows: values in the order of the schema's fields; times as `datetime`, without a zone in that of this machine.
        schema: flat, of strings, numbers, booleans and timestamps.
    """
    if (
        int(spark.conf.get(_BATCH) or 0) < 1
    ):  # PySpark cuts a table by that setting, and not where it sets no bound
        return spark.createDataFrame(rows, schema).coalesce(1)
    columns = [
        pa.array([field.dataType.toInternal(row[place]) for row in rows], _ARROW[field.dataType])
        for place, field in enumerate(schema.fields)
    ]
    return spark.createDataFrame(pa.table(columns, names=schema.fieldNames()), schema).coalesce(1)
