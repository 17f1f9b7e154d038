"""Split skewed partitions: where one holds far more than a core's share of the rows, they are dealt out by their identity.

A scan cuts files where their format allows it: a Parquet file of one row group, or a compressed file of lines, is one
task however large it is. Dealing out is a shuffle; it moves whole rows, text included, through Spark's shuffle files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.spark.job.plan import SAMPLE_ROWS
from dptext_spark.spark.session.session import cores_of

if TYPE_CHECKING:
    from dptext_spark.spark.job.plan import Setup

ROW = "__dptext_row"
SHARES = 3  # partitions that a core gets: the last of them evens out what the others differ by
SKEWED = 1.5  # the largest partition holds more than that many fair shares of a task
# A task keeps two cores busy: Spark reads and writes while Python draws. Where each word searches the lexicon, Python's alone.
CORES_A_TASK = 2
# Text below which a shuffle does not pay: a second or two of work for a core.
LEAST_BYTES = 64 << 20
LEAST_BYTES_NOISE = 256 << 10  # where each word searches the lexicon


def spread(setup: Setup, say: Callable[[str], None]) -> Setup:
    """Return the run with its rows dealt out over more partitions, or as it is.

    Args:
        setup: the run; `run.partitions` says what is wanted.
        say: is told.

    Raises:
        SettingsError: a number of partitions, but rows have no identity that survives the move.
    """
    wanted = setup.config.run.partitions
    if wanted == "keep":
        return setup
    if setup.identity.row is None:
        if wanted == "auto":
            return setup
        raise SettingsError(
            f"run.partitions: {wanted} given, but the input's rows are known by their place only; name a row_key, or use keep."
        )
    number = _needed(setup) if wanted == "auto" else int(wanted)
    if number is None:
        return setup
    say(f"dealing the rows out over {number} partitions")
    dealt = setup.df.withColumn(ROW, setup.identity.row).repartition(number, F.col(ROW))
    return replace(setup, df=dealt, identity=replace(setup.identity, row=F.col(ROW)))


def _needed(setup: Setup) -> int | None:
    """Return how many partitions an uneven input needs; None where it is even, small, or the cores are not known."""
    cores, sizes = cores_of(setup.spark), setup.sizes
    noise = any(isinstance(sampler, NoiseSampler) for sampler in setup.privatizer.samplers)
    least = LEAST_BYTES_NOISE if noise else LEAST_BYTES
    small = sizes.rows < SAMPLE_ROWS and sizes.rows * sizes.average < least
    if cores is None or small:
        return None
    counted = setup.df.groupBy(F.spark_partition_id()).count().agg(F.sum("count"), F.max("count")).first()
    assert counted is not None
    rows, largest = counted[0] or 0, counted[1] or 0
    if largest * sizes.average < least:
        return None
    at_once = cores if noise else cores / CORES_A_TASK
    return SHARES * cores if largest > SKEWED * rows / at_once else None
