"""Count the names of a run for publication: its source and its table are read once more, for the count is capped by record."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dptext_spark.audit.table.plan import AuditPlan
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import Progress
from dptext_spark.spark.auditing.names import shipped_lists
from dptext_spark.spark.auditing.pair_tables import PairTables
from dptext_spark.spark.auditing.two_tables import sides
from dptext_spark.spark.reporting.own_tables import own_tables
from dptext_spark.spark.udf.ship import ship_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def capped_names(
    spark: SparkSession, config: RunConfig | None, record: RunRecord, most: int, say: Progress
) -> dict[str, int]:
    """Count the words of names that stand in the source of a run, and those of them that stand in its table as they were.

    Args:
        spark: the session.
        config: the settings of the run.
        record: of the run.
        most: how many words of each record count, in each of the two.
        say: progress callback.

    Returns:
        Each of :data:`dptext_spark.report.sections.published.NAMES`.

    Raises:
        SettingsError: no settings, none with a row key, or those of another run.
        DataError: the input has changed since.
    """
    tables = own_tables(spark, config, record, "publish")
    assert config is not None  # else there are no tables
    places = ((one.path or one.table) for one in (config.output, config.input))
    plan = AuditPlan.of(*(str(one) for one in places), config=config)
    say("preparing the model", None)
    privatizer, folder = prepare(plan.model, say)
    key = RunKey.generate()
    with ExitStack() as at_the_end:
        names = shipped_lists(
            spark, tables.source, plan, privatizer, key, lambda step: say(step, None), at_the_end
        )
        job = PairTables(
            ship_for(spark, str(folder), plan.model),
            key,
            len(plan.columns),
            "names",
            names,
        )
        left, right = sides(plan, tables, names.columns)
        say("counting names by record (a pass over source and table)", None)
        records = job.over(left.join(right, "row_key")).groupBy("scope")
        sums = [F.least(F.sum(name), F.lit(most)).alias(name) for name in ("found", "kept")]
        row = records.agg(*sums).agg(F.sum("found").alias("found"), F.sum("kept").alias("kept")).first()
    assert row is not None  # an aggregate without groups has one row
    return {"names_found": int(row["found"] or 0), "names_kept": int(row["kept"] or 0)}
