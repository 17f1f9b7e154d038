"""How much text a worker gets at once, in rows and in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dptext_spark.spark.job.plan import RunPlan

BATCH_BYTES = 32 << 20
BATCH_ROWS = 50_000
ROWS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"


def batch_rows(plan: RunPlan) -> int:
    """Return the rows of a batch: as many as make `BATCH_BYTES`, or the setting."""
    given = plan.config.run.batch_rows
    if given != "auto":
        return int(given)
    average, largest = plan.sizes.average, plan.sizes.largest
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(average, largest / 8, 1.0))))


@contextmanager
def batched(plan: RunPlan) -> Iterator[None]:
    """Bound the batches of the session for the length of a pass over the text, and set it back afterwards."""
    conf = plan.spark.conf
    wanted = {ROWS: str(batch_rows(plan)), BYTES: str(2 * BATCH_BYTES)}
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
