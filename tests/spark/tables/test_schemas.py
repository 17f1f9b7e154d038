"""Rows of the tables beside a target, on their way to Spark."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

import pytest

from dptext_spark.spark.schemas import LEDGER, METRICS, RUNS, frame_of

BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
VALUES: dict[str, list[Any]] = {
    "string": ["a word, and \u00e9", "", None],
    "long": [2**40, -1, None],
    "integer": [2**31 - 1, 0, None],
    "double": [0.1, math.inf, None],
    "boolean": [True, False, None],
    "timestamp": [datetime(2026, 3, 29, 2, 30, 0, 123456), datetime(2026, 7, 1, tzinfo=timezone.utc), None],
}


@pytest.mark.parametrize("bound", ["1", "50000", "0", "-1"])
@pytest.mark.parametrize("schema", [RUNS, METRICS, LEDGER])
def test_a_frame_is_what_spark_makes_of_the_rows_whatever_bounds_its_batches(spark, schema, bound) -> None:
    spark.conf.set(BATCH, bound)
    rows = [tuple(VALUES[field.dataType.typeName()][n] for field in schema.fields) for n in range(3)]
    found = frame_of(spark, rows, schema)
    assert found.schema.json() == schema.json()
    assert found.collect() == spark.createDataFrame(rows, schema).collect()
    assert found.rdd.getNumPartitions() == 1
