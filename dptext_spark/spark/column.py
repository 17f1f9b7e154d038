"""The column function: text columns and identities in, sanitized texts and counters out, a batch at a time.

Two thin shells, `arrow_udf` (Spark 4.1 and later) and scalar-iterator `pandas_udf`, over :func:`sanitize`.
Spark gives each Python worker as many threads for matrix products as a task has cores (OMP_NUM_THREADS, from `spark.task.cpus`),
so the workers of a node do not compete for its cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql import types as T

from dptext_spark.draws import RunKey
from dptext_spark.errors import DPTextError, SettingsError, require_choice
from dptext_spark.privatizer import Privatizer
from dptext_spark.spark.failures import INVALID_UTF8, NULL_KEY, TaskError
from dptext_spark.spark.ship import Shipped, open_shipped
from dptext_spark.text.engine import COUNTERS

UDF_KINDS = ("auto", "arrow", "pandas")
ORDINAL_BITS = 40
F: Any = functions  # its stubs leave out what Spark adds at run time
RESULT = "__dptext"


@dataclass(frozen=True)
class Job:
    """What a worker needs to know; it travels in the function's closure.

    Attributes:
        columns: names of the text columns, in the order of the arguments.
        shipped: where the model is.
        key: the run key.
        run_id: of the run.
        has_row_id: the argument after the texts identifies the row; otherwise (partition, ordinal) does.
        has_record_id: the last argument identifies the record.
    """

    columns: tuple[str, ...]
    shipped: Shipped
    key: RunKey
    run_id: str
    has_row_id: bool
    has_record_id: bool


def result_type(columns: tuple[str, ...]) -> T.StructType:
    """Return the struct that the function gives: a text and a total of each counter a column, and `units` a row."""
    fields = [T.StructField(f"text_{i}", T.StringType()) for i in range(len(columns))]
    for i in range(len(columns)):
        fields += [T.StructField(f"{name}_{i}", T.LongType()) for name in COUNTERS]
    return T.StructType([*fields, T.StructField("units", T.LongType())])


def sanitize(
    arrays: tuple[pa.Array, ...], job: Job, privatizer: Privatizer, row_ids: pa.Array
) -> pa.StructArray:
    """Sanitize one batch.

    Args:
        arrays: the arguments: texts, then the row's identity, then the record's, where the job has them.
        job: what to do.
        privatizer: the model.
        row_ids: the row's identity [n].

    Returns:
        struct[n] of :func:`result_type`. `units` is, for each row, how many draws count for its ε: drawn words, or
        distinct drawn words at record level. Counters stand as totals in the batch's first row, 0 elsewhere.

    Raises:
        TaskError: invalid UTF-8 or a NULL key.
    """
    record_ids = arrays[-1] if job.has_record_id else None
    if row_ids.null_count or (record_ids is not None and record_ids.null_count):
        raise TaskError(
            NULL_KEY, 0, 0, row_ids.null_count or (record_ids.null_count if record_ids is not None else 0)
        )
    rows = len(row_ids)
    texts, totals = [], []
    units = np.zeros(rows, np.int64)
    counted = "distinct" if privatizer.consistency == "record" else "drawn"
    for column, values in zip(job.columns, arrays, strict=False):
        text, counters = privatizer.privatize(
            values, column=column, row_ids=row_ids, record_ids=record_ids, key=job.key, run_id=job.run_id
        )
        invalid = int((counters.column("invalid") > 0).sum())
        if invalid:
            raise TaskError(INVALID_UTF8, 0, 0, invalid)
        units += counters.column(counted)
        sums = counters.totals()
        for name in COUNTERS:
            total = np.zeros(rows, np.int64)
            total[:1] = sums[name]
            totals.append(pa.array(total))
        texts.append(text if text.type == pa.string() else text.cast(pa.string()))
    names = [field.name for field in result_type(job.columns)]
    return pa.StructArray.from_arrays([*texts, *totals, pa.array(units)], names=names)


def batches(job: Job, stream: Iterator[Any]) -> Iterator[pa.StructArray]:
    """Sanitize the batches of a task; whatever goes wrong leaves as a code, a partition and a batch number."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    number, ordinal = 0, 0
    try:
        privatizer = open_shipped(job.shipped)
        for batch in stream:
            arrays = batch if isinstance(batch, tuple) else (batch,)
            rows = len(arrays[0])
            if job.has_row_id:
                row_ids = arrays[len(job.columns)]
            else:
                first = (partition << ORDINAL_BITS) + ordinal
                row_ids = pa.array(np.arange(first, first + rows, dtype=np.int64))
            result = sanitize(arrays, job, privatizer, row_ids)
            yield result
            number += 1
            ordinal += rows
    except GeneratorExit:
        raise
    except TaskError as error:
        code, rows = str(error).split("[")[1].split("]")[0], int(str(error).rsplit("=", 1)[1])
        raise TaskError(code, partition, number, rows) from None
    except BaseException as error:
        code = (
            type(error).__name__ if not isinstance(error, DPTextError) else f"DPText_{type(error).__name__}"
        )
        raise TaskError(code, partition, number, 0) from None


def _as_bytes(values: Any) -> pa.Array:
    """Turn a pandas series of bytes back into Arrow binary."""
    return pa.array(values.to_numpy(dtype=object), pa.binary(), from_pandas=True)


def build(job: Job, kind: Literal["auto", "arrow", "pandas"] = "auto") -> Any:
    """Return the Spark function of a job: columns in, struct out.

    Raises:
        SettingsError: an unknown kind, or `arrow` where this Spark has none.
    """
    require_choice("run.udf", kind, UDF_KINDS)
    has_arrow = hasattr(F, "arrow_udf")
    if kind == "arrow" and not has_arrow:
        raise SettingsError("run.udf: 'arrow' needs Spark 4.1 or later; valid here: auto, pandas.")
    returns = result_type(job.columns)
    if has_arrow and kind != "pandas":

        def over_arrow(stream: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
            return batches(job, stream)

        made = F.arrow_udf(over_arrow, returns)
    else:
        texts = len(job.columns)

        def over_pandas(stream: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
            def arrow() -> Iterator[tuple[pa.Array, ...]]:
                for batch in stream:
                    series = batch if isinstance(batch, tuple) else (batch,)
                    yield tuple(
                        _as_bytes(s) if i < texts else pa.Array.from_pandas(s) for i, s in enumerate(series)
                    )

            for result in batches(job, arrow()):
                yield pd.DataFrame(
                    {field.name: result.field(i).to_pandas() for i, field in enumerate(result.type)}
                )

        made = F.pandas_udf(over_pandas, returns)
    return made.asNondeterministic() if not job.has_row_id else made


def applied(df: DataFrame, job: Job, kind: Any, row_id: Column | None, record_id: Column | None) -> DataFrame:
    """Return `df` with the struct column `RESULT` beside its own columns."""
    function = build(job, kind)
    pandas_shell = kind == "pandas" or not hasattr(F, "arrow_udf")
    texts = [quoted(c).cast("binary") if pandas_shell else quoted(c) for c in job.columns]
    identities = [c for c in (row_id, record_id) if c is not None]
    return df.withColumn(RESULT, function(*texts, *identities))


def replaced(df: DataFrame, job: Job, keep: list[str]) -> DataFrame:
    """Select `keep` from a frame that has `RESULT`, the text columns replaced by their sanitized form."""
    out = []
    for name in keep:
        if name in job.columns:
            out.append(F.col(RESULT).getField(f"text_{job.columns.index(name)}").alias(name))
        else:
            # Metadata of the source is not carried over: what is computed has none, and coalesce of one column is that
            # column. (Spark 4.0 takes an empty `metadata` of an alias for none, and keeps what there was.)
            out.append(functions.coalesce(quoted(name)).alias(name))
    return df.select(*out)


def quoted(name: str) -> Column:
    """Return a top-level column by its exact name, whatever characters it holds."""
    return functions.col("`" + name.replace("`", "``") + "`")


def key_column(df: DataFrame, name: str, field: str) -> Column:
    """Return an identity column in a type that workers take: bigint, string or binary."""
    kind = df.schema[name].dataType
    if isinstance(kind, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        return quoted(name).cast("bigint")
    if isinstance(kind, T.StringType):
        return quoted(name).cast("string")
    if isinstance(kind, T.BinaryType):
        return quoted(name)
    if isinstance(kind, T.TimestampType):
        # Its text depends on the session's time zone, and two instants share one when the clocks go back.
        return functions.unix_micros(quoted(name))
    if isinstance(kind, T.DateType | T.TimestampNTZType | T.DecimalType):
        return quoted(name).cast("string")
    raise SettingsError(
        f"{field}: column {name!r} is of type {kind.simpleString()}; valid: an integer, string, binary, decimal, date or "
        "timestamp column."
    )
