"""The counts of a run whose driver died after its commit: counted again, where its key is at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dptext_spark.spark.job import counting
from dptext_spark.spark.udf.batches import batched
from dptext_spark.spark.udf.column import applied
from dptext_spark.spark.udf.ship import ship

if TYPE_CHECKING:
    from dptext_spark.spark.job.plan import Setup


def recounted(setup: Setup, key_then: str, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Count what the committed run counted while it wrote: one pass over the same input, which writes nothing.

    The same key draws the same words, so the sums are those that were lost, whatever the batches.

    Args:
        setup: the run, bound to the same input version, settings and model as before.
        key_then: the commitment to the key of the commit.
        say: is told what goes on.

    Returns:
        The counts, or None where the key is another one than the commit's.
    """
    if key_then != setup.key.commitment(setup.run_id):
        return None
    say("counting again, since the counts were lost after the commit (one pass over the input)")
    job = setup.job(ship(setup.spark, setup.folder, setup.config.run.ship))
    frame = applied(setup.df, job, setup.config.run.udf, setup.identity.row, setup.identity.record)
    with batched(setup):
        row = frame.agg(*counting.observed(setup.paths)).first()
    assert row is not None  # an aggregate without groups has one row
    return row.asDict()
