"""The peer of the Spark job: every text through Python and back as it is, in the same frame, struct and write."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Observation, functions

from dptext_spark.spark.column_function import RESULT, result_type
from dptext_spark.spark.job.writing import counts_of, observed
from dptext_spark.spark.nested_columns import paths_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F: Any = functions  # its stubs leave out what Spark adds at run time
COLUMNS = ("body",)
UNITS = 25  # the made-up counter of a row runs from 0 to this, so that percentiles have something to do


def identity_job(spark: SparkSession, source: Path, target: Path) -> tuple[float, float]:
    """Read, pass every text through, observe as many aggregates, write as Delta, wait for the counts.

    Args:
        spark: the session.
        source: a table with the columns `id` and `body`, and any others.
        target: a folder that does not exist.

    Returns:
        (seconds of the write alone, in which Spark does all of it; seconds with the planning before it).
    """
    started = time.perf_counter()
    source_frame = spark.read.format("delta").load(str(source))
    observation = Observation("identity")
    frame = source_frame.withColumn(RESULT, identity_function()(F.col("body"), F.col("id")))
    frame = frame.observe(observation, *observed(paths_of(source_frame.schema, COLUMNS)))
    text = F.col(RESULT).getField("text_0").alias("body")
    frame = frame.select(*[text if name == "body" else name for name in source_frame.columns])
    writer = frame.write.format("delta").mode("error").option("optimizeWrite", "false")
    began = time.perf_counter()
    writer.option("userMetadata", json.dumps({"job": "identity"})).save(str(target))
    ended = time.perf_counter()
    counts_of(observation)
    return ended - began, time.perf_counter() - started


def identity_function() -> Any:
    """Return the Spark function: of the kind that the job takes here, and with its struct, counters made up."""
    returns = result_type(COLUMNS)
    names = returns.fieldNames()
    if hasattr(F, "arrow_udf"):

        def over_arrow(stream: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
            for text, _ in stream:
                yield pa.StructArray.from_arrays(
                    [text, *map(pa.array, _counters(len(text), names))], names=names
                )

        return F.arrow_udf(over_arrow, returns)

    def over_pandas(stream: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        for text, _ in stream:
            counters = zip(names[1:], _counters(len(text), names), strict=True)
            yield pd.DataFrame({names[0]: text, **dict(counters)})

    return F.pandas_udf(over_pandas, returns)


def _counters(rows: int, names: list[str]) -> list[Any]:
    """Return int64[rows] for every field of the struct but the text."""
    zeros = [np.zeros(rows, np.int64) for _ in names[2:]]
    return [*zeros, np.arange(rows, dtype=np.int64) % UNITS]
