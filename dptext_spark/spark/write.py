"""The one write of a run: a single commit to the target, with the counts observed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Observation
from pyspark.sql import functions as F

from dptext_spark.spark import counting
from dptext_spark.spark.column import applied, quoted, replaced
from dptext_spark.spark.progress import watched
from dptext_spark.spark.setup import Setup
from dptext_spark.spark.ship import ship
from dptext_spark.spark.tables import history, our_commits

BATCH_BYTES = 32 << 20
BATCH_ROWS = 50_000
SAMPLE_ROWS = 1_000


def write(setup: Setup, say: Callable[[str], None]) -> tuple[dict[str, Any] | None, float]:
    """Write the target in one commit; return the counts and the seconds."""
    spark, config = setup.spark, setup.config
    job = setup.job(ship(spark, setup.folder, config.run.ship))
    observation = Observation(f"dptext-{setup.run_id}")
    frame = applied(setup.df, job, config.run.udf, setup.identity.row, setup.identity.record)
    frame = frame.observe(observation, *counting.observed(job.columns))
    frame = replaced(frame, job, setup.kept)
    metadata = {
        "dptext_run": setup.run_id,
        "mechanism": config.spec()["mechanism"],
        "guarantee": setup.privatizer.guarantee().as_dict(),
        "artifact": setup.privatizer.fingerprint,
    }
    writer = (
        frame.write.format("delta")
        .mode("append" if config.output.mode == "append" else config.output.mode)
        .option("optimizeWrite", "false")
        .option("userMetadata", json.dumps(metadata))
        .option("txnAppId", f"dptext-{setup.run_id}")
        .option("txnVersion", "1")
    )
    say("writing")
    began = time.perf_counter()
    with _batch_size(setup), watched(spark, say):
        if setup.place.target.path:
            writer.save(setup.place.target.path)
        else:
            writer.saveAsTable(setup.place.target.name)
    seconds = time.perf_counter() - began
    committed = setup.run_id in our_commits(history(spark, setup.place.target))
    return (counting.counts_of(observation) if committed else None), seconds


@contextmanager
def _batch_size(setup: Setup) -> Iterator[None]:
    """Set the rows of an Arrow batch for the length of the texts, and set the session back afterwards."""
    names = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(_batch_rows(setup))}
    before = {name: setup.spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        setup.spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                setup.spark.conf.unset(name)
            else:
                setup.spark.conf.set(name, old)


def _batch_rows(setup: Setup) -> int:
    """Return how many rows of average length make `BATCH_BYTES`, or the setting."""
    given = setup.config.run.batch_rows
    if given != "auto":
        return int(given)
    sizes = [F.coalesce(F.octet_length(quoted(name)), F.lit(0)) for name in setup.columns]
    total = sizes[0]
    for size in sizes[1:]:
        total = total + size
    row = setup.df.select(total.alias("size")).limit(SAMPLE_ROWS).agg(F.avg("size"), F.max("size")).first()
    if row is None or row[0] is None:
        return BATCH_ROWS
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(float(row[0]), float(row[1]) / 8, 1.0))))
