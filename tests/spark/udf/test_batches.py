"""How large a batch is, and that a pass over the text leaves the session's settings as they were."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dptext_spark.spark.job import planned_run
from dptext_spark.spark.job.planned_run import (
    BATCH_BYTES,
    BATCH_ROWS,
    BYTES,
    ROWS,
    SAMPLE_ROWS,
    TextSizes,
    batched,
    text_sizes,
)
from dptext_spark.spark.nested_columns import paths_of


def rows_of(df) -> int:
    sizes = text_sizes(df, paths_of(df.schema, ["body", "a note"]))
    return planned_run.batch_rows(SimpleNamespace(spark=df.sparkSession, sizes=sizes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("'the day'", BATCH_ROWS),
        ("CAST(NULL AS STRING)", BATCH_ROWS),
        # 10 kB a row: as many rows as make BATCH_BYTES.
        ("repeat('0123456789', 1000)", BATCH_BYTES // 10_000),
        # 3 MB in one of 1000 rows: an eighth of the longest, for the average says little.
        ("IF(id = 7, repeat('0123456789', 300000), 'a')", int(BATCH_BYTES / (3_000_000 / 8))),
        # Bytes, not characters: 4 of them each.
        ("repeat('\U0001f642', 2500)", BATCH_BYTES // 10_000),
    ],
    ids=["short", "null", "long", "one_of_3_MB", "four_bytes_each"],
)
def test_batches_shrink_with_long_texts(spark, body: str, expected: int) -> None:
    df = spark.range(1000).selectExpr("id", f"{body} AS body", "CAST(NULL AS STRING) AS `a note`")
    assert rows_of(df) == expected


def test_sizes_are_those_of_the_first_rows(spark) -> None:
    texts = [None if n % 7 == 0 else "\U0001f642" * (n % 40) for n in range(1200)]
    rows = [(n, text, None if n % 3 else "ab") for n, text in enumerate(texts)]
    df = spark.createDataFrame(rows, "id long, body string, `a note` string").coalesce(1)
    sizes = [len((body or "").encode()) + len((note or "").encode()) for _, body, note in rows[:SAMPLE_ROWS]]
    found = text_sizes(df, paths_of(df.schema, ["body", "a note"]))
    assert found == (SAMPLE_ROWS, sum(sizes) / SAMPLE_ROWS, max(sizes))
    assert text_sizes(df.where("id < 0"), paths_of(df.schema, ["body"])) == (0, 0.0, 0.0)


def test_the_first_rows_are_taken_from_no_more_partitions_than_hold_them(spark) -> None:
    df = spark.range(0, 10_000, 1, 8).selectExpr("id", "string(id) AS body")
    tasks = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("the-first-rows", "")
    try:
        text_sizes(df, paths_of(df.schema, ["body"]))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    jobs = [tasks.getJobInfo(job) for job in tasks.getJobIdsForGroup("the-first-rows")]
    stages = [tasks.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    assert [stage.numTasks for stage in stages if stage is not None] == [1]


def test_one_row_is_the_least_and_no_row_the_most(spark) -> None:
    huge = spark.range(1).selectExpr("repeat('0123456789', 4000000) AS body", "'' AS `a note`")
    assert rows_of(huge) == 1
    assert rows_of(huge.where("false")) == BATCH_ROWS


@pytest.mark.parametrize(("named", "expected"), [("3", 3), ("0", BATCH_ROWS), ("90000", BATCH_ROWS)])
def test_a_smaller_setting_of_the_session_binds(spark, named: str, expected: int) -> None:
    spark.conf.set(ROWS, named)
    assert rows_of(spark.range(5).selectExpr("'the day' AS body", "'' AS `a note`")) == expected


def test_settings_come_back_after_an_error(spark) -> None:
    before = (spark.conf.get(ROWS), spark.conf.get(BYTES, None))
    spark.conf.unset(BYTES)
    unset = spark.conf.get(BYTES, None)
    plan = SimpleNamespace(sizes=TextSizes(1, 4e6, 32_000_000), spark=spark)
    with pytest.raises(ValueError, match="inside"), batched(plan):  # type: ignore[arg-type]  # noqa: PT012
        assert (spark.conf.get(ROWS), spark.conf.get(BYTES)) == ("8", str(2 * BATCH_BYTES))
        raise ValueError("inside")
    assert (spark.conf.get(ROWS), spark.conf.get(BYTES, None)) == (before[0], unset)
