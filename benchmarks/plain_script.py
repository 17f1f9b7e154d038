"""The plain script and the plain stream: every text through Python and back, with no work and no books."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOTE = "run_id string, status string, ended timestamp, rows long"


def passed(stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give every batch back as it came."""
    yield from stream


def plain_script(session: SparkSession, source: Path, target: Path, notes: Path) -> None:
    """Read a Delta table, pass it through Python, write Delta, append one row that says so."""
    df = session.read.format("delta").load(str(source))
    df.mapInArrow(passed, df.schema).write.format("delta").save(str(target))
    append_row(session, notes, "plain")


def append_row(session: SparkSession, folder: Path, run_id: str) -> None:
    """Append one row to a small Delta table."""
    row = (run_id, "succeeded", datetime.now(timezone.utc), None)
    session.createDataFrame([row], NOTE).coalesce(1).write.format("delta").mode("append").save(str(folder))


def plain_stream(session: SparkSession, source: Path, target: Path, checkpoint: Path) -> None:
    """Pass what was added to a Delta table since the last time through Python into another one."""
    df: DataFrame = session.readStream.format("delta").load(str(source))
    writer = df.mapInArrow(passed, df.schema).writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start(str(target)).awaitTermination()
