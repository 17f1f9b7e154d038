"""How much text a worker gets at once, in rows and in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark.spark.tables.paths import Path

if TYPE_CHECKING:
    from dptext_spark.spark.job.setup import Setup

BATCH_BYTES = 32 << 20
BATCH_ROWS = 50_000
SAMPLE_ROWS = 1_000
ROWS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"


class TextSizes(NamedTuple):
    """Bytes of text in a row, over the first rows of an input.

    Attributes:
        rows: how many were looked at; fewer than `SAMPLE_ROWS` are all that there are.
        average: over the rows; 0 where there is none.
        largest: of them.
    """

    rows: int
    average: float
    largest: float


def text_sizes(df: DataFrame, paths: Sequence[Path]) -> TextSizes:
    """Look at the texts in the first rows of an input."""
    sizes = [F.coalesce(path.size, F.lit(0)) for path in paths]
    total = sizes[0]
    for size in sizes[1:]:
        total = total + size
    row = df.select(total.alias("size")).limit(SAMPLE_ROWS).agg(F.count("size"), F.avg("size"), F.max("size"))
    rows, average, largest = row.first() or (0, 0.0, 0.0)
    return TextSizes(int(rows), float(average or 0.0), float(largest or 0.0))


def batch_rows(setup: Setup) -> int:
    """Return the rows of a batch: as many as make `BATCH_BYTES`, or the setting."""
    given = setup.config.run.batch_rows
    if given != "auto":
        return int(given)
    average, largest = setup.sizes.average, setup.sizes.largest
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(average, largest / 8, 1.0))))


@contextmanager
def batched(setup: Setup) -> Iterator[None]:
    """Bound the batches of the session for the length of a pass over the text, and set it back afterwards."""
    conf = setup.spark.conf
    wanted = {ROWS: str(batch_rows(setup)), BYTES: str(2 * BATCH_BYTES)}
    before = {name: conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                conf.unset(name)
            else:
                conf.set(name, old)
