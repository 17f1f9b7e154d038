"""The one write of a run: a single commit to the target, with the counts observed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.spark import counting
from dptext_spark.spark.column import applied, quoted, replaced
from dptext_spark.spark.progress import watched
from dptext_spark.spark.setup import Setup
from dptext_spark.spark.ship import ship
from dptext_spark.spark.tables import CREATED, Target, history, our_commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    commit = {"userMetadata": json.dumps(metadata), "txnAppId": f"dptext-{setup.run_id}", "txnVersion": "1"}
    target = setup.place.target
    made = bool(target.name) and create_empty(spark, target, frame.schema, setup.run_id)
    say("writing")
    try:
        with batched(setup), watched(spark, say):
            began = time.perf_counter()
            if target.path:
                writer = frame.write.format("delta").mode(config.output.mode).options(**commit)
                writer.option("optimizeWrite", "false").save(target.path)
            else:
                named = frame.writeTo(target.sql).options(**commit).option("optimizeWrite", "false")
                named.overwrite(F.lit(True)) if config.output.mode == "overwrite" else named.append()
    except Exception:
        if made and setup.run_id not in our_commits(history(spark, target)):
            spark.sql(f"DROP TABLE IF EXISTS {target.sql}")
        raise
    seconds = time.perf_counter() - began
    committed = setup.run_id in our_commits(history(spark, setup.place.target))
    return (counting.counts_of(observation) if committed else None), seconds


def create_empty(spark: SparkSession, target: Target, schema: T.StructType, run_id: str) -> bool:
    """Make an empty table of that name where there is none, for a write into a table that exists.

    A write that also creates its table is one Spark does not observe: its counts would be lost. The commit says which
    run made it, so that the empty table that a killed driver leaves is not taken for somebody's.

    Returns:
        Whether it was made now.
    """
    if history(spark, target, limit=1):
        return False
    creator = spark.createDataFrame([], schema).writeTo(target.sql).using("delta")
    creator.option("userMetadata", json.dumps({CREATED: run_id})).create()
    return True


@contextmanager
def batched(setup: Setup) -> Iterator[None]:
    """Set how many rows a worker gets at once for the length of a pass over the text, and set it back afterwards."""
    conf, name = setup.spark.conf, "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = conf.get(name, None)
    conf.set(name, str(_batch_rows(setup)))
    try:
        yield
    finally:
        if before is None:
            conf.unset(name)
        else:
            conf.set(name, before)


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
