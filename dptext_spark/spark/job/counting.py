"""What is counted while a run writes, and the figures that follow from the counts.

Where a driver died after its commit, the counts are made again, if the key is at hand.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F

from dptext_spark.guarantee import Guarantee
from dptext_spark.rounding import exact
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.job import counting
from dptext_spark.spark.tables.paths import Path
from dptext_spark.spark.udf.batches import batched
from dptext_spark.spark.udf.column import RESULT, applied
from dptext_spark.spark.udf.ship import ship
from dptext_spark.text.engine import COUNTERS

if TYPE_CHECKING:
    from dptext_spark.spark.job.plan import RunPlan


WAIT_SECONDS = 120.0
PERCENTILES = {"units_p50": 0.5, "units_p95": 0.95}
# Ranks within 1/200. Each task sends its sketch to the driver: 6 KB of a million rows, where the default made 1.5 MB of it and
# `spark.driver.maxResultSize` ended a job of 700 tasks.
ACCURACY = 200


def observed(paths: Sequence[Path]) -> list[Column]:
    """Return the aggregates for `DataFrame.observe`: sums over nothing are 0, percentiles of nothing NULL."""
    result = F.col(RESULT)
    sums = [
        F.coalesce(F.sum(result.getField(f"{name}_{i}")), F.lit(0)).alias(f"{name}_{i}")
        for i in range(len(paths))
        for name in COUNTERS
    ]
    units = result.getField("units")
    sizes = [F.coalesce(F.sum(path.size), F.lit(0)).alias(f"bytes_{i}") for i, path in enumerate(paths)]
    return [
        F.count(F.lit(1)).alias("rows"),
        *sums,
        *sizes,
        F.avg(units).alias("units_mean"),
        *percentiles(units),
        F.max(units).alias("units_max"),
    ]


def percentiles(units: Column) -> list[Column]:
    """Return an aggregate for each of `PERCENTILES`; of one array Spark 4.0 hands an observation over as a Java object."""
    return [F.percentile_approx(units, share, ACCURACY).alias(name) for name, share in PERCENTILES.items()]


def counts_of(observation: Observation, seconds: float = WAIT_SECONDS) -> dict[str, Any] | None:
    """Wait for the counts, not for ever: `get` never returns where the write was skipped.

    Returns:
        The counts, or None if they did not come in time.
    """
    box: list[dict[str, Any]] = []
    waiter = threading.Thread(target=lambda: box.append(observation.get), daemon=True)
    waiter.start()
    waiter.join(seconds)
    return dict(box[0]) if box else None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def column_figures(counts: dict[str, Any], index: int) -> dict[str, float | None]:
    """Return the metrics of one text column from its sums.

    The shares follow concepts/mechanisms, Audits: `original_share` over in-lexicon drawn words; `original_share_all` over all
    words, kept stop words counted as original.
    """
    c = {name: int(counts[f"{name}_{index}"]) for name in COUNTERS}
    return shares(c)


def shares(c: dict[str, int]) -> dict[str, float | None]:
    """Return counts with the shares that follow from them; words that importance did not choose are what no other counter has."""
    not_chosen = c["words"] - c["drawn"] - c["stop_kept"] - c["oov"] - c["numbers"]
    chosen = {"not_chosen": float(not_chosen), "not_chosen_share": _share(not_chosen, c["words"])}
    return {
        **{name: float(value) for name, value in c.items() if name not in ("invalid", "distinct")},
        "changed_share": _share(c["changed"], c["words"]),
        "original_share": _share(c["same"], c["drawn"]),
        "original_share_all": _share(c["words"] - c["changed"], c["words"]),
        "oov_share": _share(c["oov"], c["words"]),
        "stop_share": _share(c["stop_kept"], c["words"]),
        **(chosen if not_chosen else {}),
    }


def totals(counts: dict[str, Any], columns: tuple[str, ...]) -> dict[str, int]:
    """Return the counters summed over the text columns."""
    return {name: sum(int(counts[f"{name}_{i}"]) for i in range(len(columns))) for name in COUNTERS}


def record_epsilon(
    counts: dict[str, Any],
    guarantee: Guarantee,
    consistency: str,
    columns: int,
    several_rows: bool,
    levels: int = 1,
) -> dict[str, Any]:
    """Compose ε over a record (concepts/mechanisms, Levels).

    Args:
        counts: with `units_mean`, `units_p50`, `units_p95`, `units_max`.
        guarantee: of one of those units: of a draw, unless levels of importance differ in ε.
        consistency: the level.
        columns: number of text columns.
        several_rows: whether a record may span rows.
        levels: of importance.

    Returns:
        `mean`, `p50`, `p95`, `max` (None where there is no such sum) and `basis`, in words.
    """
    basis = guarantee.of_record(consistency, levels)
    if consistency == "dataset" or not guarantee.adds_up:
        if consistency != "dataset":
            basis += "; no single figure"
        return {"mean": None, "p50": None, "p95": None, "max": None, "basis": basis}
    if consistency == "record" and (columns > 1 or several_rows):
        basis += " (at most: columns and rows are summed)"
    figures: dict[str, float | None] = {}
    for name in ("mean", "p50", "p95", "max"):
        units = counts.get(f"units_{name}")
        figures[name] = None if units is None else guarantee.compose(units).epsilon
    if guarantee.delta and counts.get("units_max") is not None:
        basis += f"; δ of a record at most {exact(guarantee.compose(counts['units_max']).delta)}"
    return {**figures, "basis": basis}


def recounted(plan: RunPlan, key_then: str, say: Steps) -> dict[str, Any] | None:
    """Count what the committed run counted while it wrote: one pass over the same input, which writes nothing.

    The same key draws the same words, so the sums are those that were lost, whatever the batches.

    Args:
        plan: the run, bound to the same input version, settings and model as before.
        key_then: the commitment to the key of the commit.
        say: is told what goes on.

    Returns:
        The counts, or None where the key is another one than the commit's.
    """
    if key_then != plan.key.commitment(plan.run_id):
        return None
    say("counting again, since the counts were lost after the commit (one pass over the input)")
    job = plan.job(ship(plan.spark, plan.folder, plan.config.run.ship))
    frame = applied(plan.df, job, plan.config.run.udf, plan.identity.row, plan.identity.record)
    with batched(plan):
        row = frame.agg(*counting.observed(plan.paths)).first()
    assert row is not None  # an aggregate without groups has one row
    return row.asDict()
