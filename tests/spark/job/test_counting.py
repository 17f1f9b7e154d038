"""What follows from the counts of a run, and what a task sends to the driver for them."""

from __future__ import annotations

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.privacy_loss import RecordLoss
from dptext_spark.model.record import RecordAccount, RecordEpsilon, RecordUnits
from dptext_spark.spark.job.writing import counts_of, shares, unit_figures
from dptext_spark.text.engine import COUNTERS

NAMES = ("mean", "p50", "p95", "max")
UNITS = RecordUnits(2.5, 2, 7, 11)
WITHIN = Guarantee("epsilon_dp_within_group", 0.1)


def account(guarantee: Guarantee, consistency: str) -> RecordAccount:
    return RecordAccount(RecordLoss(guarantee.epsilon, guarantee.delta), guarantee, consistency)


@pytest.mark.parametrize("consistency", ["token", "record"])
def test_epsilon_of_a_record_is_what_its_draws_compose_to(consistency: str) -> None:
    found = account(WITHIN, consistency).over(UNITS)
    composed = [WITHIN.compose(getattr(UNITS, name)).epsilon for name in NAMES]
    assert [getattr(found, name) for name in NAMES] == [0.25, 0.2, 0.7, 1.1] == composed
    assert "δ" not in found.basis


@pytest.mark.parametrize(
    ("guarantee", "consistency"),
    [
        (WITHIN, "dataset"),  # all records share the draws
        (Guarantee("metric_dp", 1.0, metric="euclidean"), "token"),
        (Guarantee("metric_dp", 1.0, metric="euclidean"), "dataset"),
    ],
)
def test_where_nothing_adds_up_a_sentence_stands(guarantee: Guarantee, consistency: str) -> None:
    found = account(guarantee, consistency).over(UNITS)
    assert found == RecordEpsilon(found.basis)


def test_delta_is_named_beside_epsilon() -> None:
    found = account(Guarantee("approx_dp", 1.0, 0.01), "token").over(UNITS)
    assert found.max == 11.0
    assert found.basis.endswith("; δ of a record at most 0.11")


def test_no_rows_have_no_figures() -> None:
    none = RecordUnits(None, None, None, None)
    said = "ε times the drawn words of the record"
    assert account(WITHIN, "token").over(none) == RecordEpsilon(said)
    assert "at most" in account(WITHIN, "record").over(UNITS, summed=True).basis


def test_what_nobody_found_has_no_figure_and_what_was_found_has_a_zero() -> None:
    counts = dict.fromkeys(COUNTERS, 0) | {"words": 9}
    assert not [name for name in shares(counts) if name.startswith(("person", "location", "listed"))]
    found = shares(counts | {"person_words": 8, "person_words_kept": 2, "location_words": 3})
    assert {name: value for name, value in found.items() if name.startswith(("person", "location", "listed"))} == {
        "person_words": 8.0, "person_words_replaced": 6.0, "person_words_kept": 2.0, "person_words_kept_share": 0.25,
        "location_words": 3.0, "location_words_replaced": 3.0, "location_words_kept": 0.0, "location_words_kept_share": 0.0,
    }  # fmt: skip


def test_what_a_task_sends_does_not_grow_with_its_rows(spark) -> None:
    """A job of ten thousand tasks must stay below `spark.driver.maxResultSize`, 1 GB by default."""
    rows = 300_000
    units = spark.range(0, rows, 1, 1).withColumn("units", F.pmod(F.hash("id"), F.lit(20_000)))
    observation = Observation("units")
    figures = [F.count("units").alias("rows"), F.sum(F.lit(0)).alias("unknown_rows")]
    observed = units.observe(observation, *figures, *unit_figures(F.col("units")))
    observed.write.format("noop").mode("overwrite").save()
    counts = counts_of(observation)
    assert counts.units.p50 == pytest.approx(0.5 * 20_000, abs=0.01 * 20_000)
    assert counts.units.p95 == pytest.approx(0.95 * 20_000, abs=0.01 * 20_000)
    store = spark._jsc.sc().statusStore()
    job = int(store.jobsList(None).head().jobId())
    stage = spark.sparkContext.statusTracker().getJobInfo(job).stageIds[0]
    assert store.taskList(stage, 0, 1).head().taskMetrics().get().resultSize() < 30_000
