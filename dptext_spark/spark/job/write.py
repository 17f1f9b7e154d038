"""The one write of a run: a single commit to the target, with the counts observed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.spark.job import counting
from dptext_spark.spark.job.binding import SEAL, seal
from dptext_spark.spark.job.effects import Effect, Observer, announced, unobserved
from dptext_spark.spark.job.plan import Setup
from dptext_spark.spark.job.spread import spread
from dptext_spark.spark.session.progress import watched
from dptext_spark.spark.tables.layout import Layout
from dptext_spark.spark.tables.tables import CREATED, STREAM, Target, history, our_commits
from dptext_spark.spark.udf.batches import batched
from dptext_spark.spark.udf.column import applied, replaced
from dptext_spark.spark.udf.ship import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(
    setup: Setup, record: dict[str, Any], say: Callable[[str], None], at: Observer = unobserved
) -> tuple[dict[str, Any] | None, float]:
    """Write the target in one commit, which bears the seal of the row that binds the run; return the counts and the seconds."""
    spark, config = setup.spark, setup.config
    dealt = spread(setup, say)
    job = setup.job(ship(spark, setup.folder, config.run.ship))
    observation = Observation(f"dptext-{setup.run_id}")
    frame = applied(dealt.df, job, config.run.udf, dealt.identity.row, dealt.identity.record)
    frame = frame.observe(observation, *counting.observed(setup.paths))
    frame = replaced(frame, job, setup.kept, setup.dropped)
    metadata = {
        "dptext_run": setup.run_id,
        "mechanism": config.spec()["mechanism"],
        **({} if config.importance is None else {"importance": config.importance.as_dict()}),
        "guarantee": setup.guarantee.as_dict(),
        "artifact": setup.privatizer.fingerprint,
        SEAL: seal(record),
    }
    if setup.stream is not None:
        metadata[STREAM] = setup.stream.stream
    app, number = setup.transaction
    commit = {"userMetadata": json.dumps(metadata), "txnAppId": app, "txnVersion": number}
    target = setup.place.target
    layout = Layout.of(frame.schema, config.output.partition_by)
    new = not history(spark, target, limit=1)
    made = bool(target.name) and new
    if made:
        with announced(Effect.TABLE_CREATION, at):
            create_empty(spark, target, frame.schema, setup.run_id, layout)
    say("writing")
    try:
        with batched(setup), watched(spark, say), announced(Effect.DATA_COMMIT, at):
            began = time.perf_counter()
            if target.path:
                writer = frame.write.format("delta").mode(config.output.mode).options(**commit)
                layout.onto(writer, new).option("optimizeWrite", "false").save(target.path)
            else:
                named = frame.writeTo(target.sql).options(**commit).option("optimizeWrite", "false")
                named.overwrite(F.lit(True)) if config.output.mode == "overwrite" else named.append()
    except Exception:
        if made and setup.run_id not in our_commits(history(spark, target)):
            with announced(Effect.TABLE_CREATION, at):
                spark.sql(f"DROP TABLE IF EXISTS {target.sql}")
        raise
    seconds = time.perf_counter() - began
    committed = setup.run_id in our_commits(setup.commits())
    return (counting.counts_of(observation) if committed else None), seconds


def create_empty(
    spark: SparkSession, target: Target, schema: T.StructType, run_id: str, layout: Layout
) -> None:
    """Make an empty table of a name that has none, for a write into a table that exists.

    A write that also creates its table is one Spark does not observe: its counts would be lost. A property of the table says
    which run made it, so that the empty table that a killed driver leaves is not taken for somebody's. (Delta Lake leaves the
    option `userMetadata` out of a commit that creates a table by name.)
    """
    creator = spark.createDataFrame([], schema).writeTo(target.sql).using("delta")
    layout.of_new(creator).tableProperty(CREATED, run_id).create()
