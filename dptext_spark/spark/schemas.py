"""The tables that a run writes in addition to its target; the only definition of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dptext_spark.errors import SCHEMA_VERSION

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
    ("run_id", _S, "id of the run; of a micro-batch STREAM.NUMBER"),
    ("status", _S, "started, succeeded, failed, mismatch (counts or consistency do not agree) or recovered"),
    ("started_at", T.TimestampType(), "start, UTC"),
    ("config", _S, "settings without secrets, JSON"),
    ("guarantee", _S, "guarantee of a draw, JSON"),
    ("certificate", _S, "certificate of the model, JSON; NULL without one"),
    ("disclosure", _S, "disclosure statement, JSON"),
    ("key_commitment", _S, "binds the run to its key without revealing it"),
    ("key_kind", _S, "source of the key: os, file, env, secret, given or insecure"),
    ("artifact", _S, "fingerprint of the compiled model"),
    ("input", _S, "path or catalog name"),
    ("input_version", _S, "delta:N, files:DIGEST, or for a micro-batch delta:FROM..TO"),
    ("identity", _S, "identity of a row: row_key, file_row, or ordinal with the layout"),
    ("output", _S, "path or catalog name"),
    ("output_version", _L, "Delta version that this run committed"),
    ("second_release", T.BooleanType(), "an unfinished run's records were released again with another key"),
    ("cumulative", _S, "ε of all releases of the input in the ledger, with its sentence, JSON"),
    ("rows", _L, "rows written"),
    ("seconds", _D, "wall time"),
    ("tokens_per_second", _D, "input words per second of the write"),
    ("versions", _S, "versions of this package, its engine, Spark, Delta and Python, JSON"),
)

METRICS = _table(
    ("run_id", _S, "id of the run"),
    ("column", _S, "text column; NULL for the whole run"),
    ("metric", _S, "name of the figure"),
    ("value", _D, "the figure; restricted, for it depends on the private text"),
)

LEDGER = _table(
    (
        "entry",
        _S,
        "one text column of a run, or a decision. A first row reserves the entry, a later row of the same name settles it",
    ),
    ("attempt", _S, "reservation that wrote the row; each new attempt of a run makes one"),
    ("at", T.TimestampType(), "time of the reservation or settlement, UTC"),
    ("run_id", _S, "id of the run; of a micro-batch STREAM.NUMBER"),
    ("input", _S, "path or catalog name"),
    ("input_id", _S, "id of the Delta table; NULL for other inputs"),
    (
        "input_version",
        _S,
        "delta:N with a digest of its log entry, or files:DIGEST; with the run id if the input has no reliable version",
    ),
    ("column", _S, "text column"),
    ("record_key", _S, "column whose equal values form a record, or row"),
    ("unit", _S, "unit that epsilon protects"),
    ("consistency", _S, "token, record or dataset"),
    ("mechanism", _S, "mechanism with its parameters and the engine, JSON; long lists as a digest"),
    ("kind", _S, "kind of the guarantee"),
    ("metric", _S, "distance of the guarantee and its space; NULL without one"),
    ("epsilon", _D, "promised ε of one release"),
    ("delta", _D, "promised δ of one release"),
    (
        "holds",
        T.BooleanType(),
        "false: epsilon does not hold, because the guarantee was refuted or the key is not secret",
    ),
    ("records", _S, "all, changed (another version, same draws) or added (new records of a stream)"),
    ("release", _S, "digest of the draws: equal values mean equal draws; it does not reveal the key"),
    (
        "status",
        _S,
        "reserved and spent count, void does not; limit (a new limit) and begun (a new ledger) spend nothing",
    ),
    ("why", _S, "reason for an unusual status"),
    ("limit", _D, "limit on the run at its reservation; of a limit row, the new limit"),
    ("override", _S, "reason to pass the limit"),
    ("output", _S, "path or catalog name of the release; `function NAME` for a SQL function"),
    (
        "record_words",
        _L,
        "drawn words of the longest record, rounded up to a quarter power of two; NULL if a record has no ε",
    ),
    ("record_epsilon", _D, "ε of one release for such a record; NULL if a record has no ε"),
    ("record_delta", _D, "δ of record_epsilon"),
)


BINDING = _table(
    ("stream", _S, "run id of the stream that uses the checkpoint"),
    ("bound", _S, "settings that bind the stream, JSON"),
)


def frame_of(spark: SparkSession, rows: Sequence[Sequence[object]], schema: T.StructType) -> DataFrame:
    """Return a few rows as a frame of one partition, so that they are written as one file.

    They go to Spark as an Arrow table, and its driver holds them as values. A Python worker would convert plain rows anew in each
    write.

    `schema` is flat, of strings, numbers, booleans and timestamps; times are `datetime`, without a zone in that of this machine.
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
