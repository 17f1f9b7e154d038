"""What is counted while a run writes, and the figures that follow from the counts.

Where a driver died after its commit, the counts are made again, if the key is at hand.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from dptext_spark.disclosure.facts import RecordEpsilon
from dptext_spark.guarantee import Guarantee
from dptext_spark.model.record import RecordAccount
from dptext_spark.model.table_checks import RESULT
from dptext_spark.rounding import exact
from dptext_spark.runtime.display import Steps
from dptext_spark.spark.column_function import UNKNOWN_ROWS
from dptext_spark.spark.job.plan import batched
from dptext_spark.spark.nested_columns import Path
from dptext_spark.text.engine import COUNTERS, OF_NAMES, OF_STAYED

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
    # As SQL: each function of a column is a call into the JVM, and here are some hundreds.
    sums = [
        F.expr(f"coalesce(sum({RESULT}.{name}_{i}), 0) AS {name}_{i}")
        for i in range(len(paths))
        for name in COUNTERS
    ]
    units = result.getField("units")
    sizes = [F.coalesce(F.sum(path.size), F.lit(0)).alias(f"bytes_{i}") for i, path in enumerate(paths)]
    return [
        F.count(F.lit(1)).alias("rows"),
        *sums,
        *sizes,
        *unit_figures(units),
        F.expr(f"coalesce(sum({RESULT}.{UNKNOWN_ROWS}), 0) AS {UNKNOWN_ROWS}"),
    ]


def unit_figures(units: Column) -> list[Column]:
    """Return the aggregates of :class:`Units`, one each: of one array Spark 4.0 hands an observation over as a Java object."""
    shares = [F.percentile_approx(units, share, ACCURACY).alias(name) for name, share in PERCENTILES.items()]
    return [F.avg(units).alias("units_mean"), *shares, F.max(units).alias("units_max")]


@dataclass(frozen=True)
class Units:
    """What the draws of a record add up to, over the records; None where there is no record."""

    mean: float | None
    p50: float | None
    p95: float | None
    max: float | None

    @classmethod
    def of(cls, row: Mapping[str, float | None]) -> Units:
        """Read the aggregates."""
        return cls(*(row.get(f"units_{name}") for name in ("mean", "p50", "p95", "max")))


@dataclass(frozen=True)
class Counts:
    """What was counted while a run wrote.

    Attributes:
        rows: of the input.
        columns: of each text column, the counters of the text engine by name.
        text_bytes: of all texts.
        units: of the rows.
        unknown_rows: rows of which most words are unknown.
    """

    rows: int
    columns: tuple[Mapping[str, int], ...]
    text_bytes: int
    units: Units
    unknown_rows: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Counts:
        """Read what :func:`observed` aggregates."""
        number = sum(name.startswith("bytes_") for name in row)
        columns = tuple({name: int(row[f"{name}_{i}"]) for name in COUNTERS} for i in range(number))
        text_bytes = sum(int(row[f"bytes_{i}"]) for i in range(number))
        return cls(int(row["rows"]), columns, text_bytes, Units.of(row), int(row[UNKNOWN_ROWS]))

    @property
    def whole(self) -> dict[str, int]:
        """The counters, summed over the text columns."""
        return {name: sum(column[name] for column in self.columns) for name in COUNTERS}


def counts_of(observation: Observation, seconds: float = WAIT_SECONDS) -> Counts | None:
    """Wait for the counts, not for ever: `get` never returns where the write was skipped.

    Returns:
        The counts, or None if they did not come in time.
    """
    box: list[Mapping[str, float | None]] = []
    waiter = threading.Thread(target=lambda: box.append(observation.get), daemon=True)
    waiter.start()
    waiter.join(seconds)
    return Counts.of(box[0]) if box else None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def shares(c: Mapping[str, int]) -> dict[str, float | None]:
    """Return counters with the shares that follow from them (concepts/mechanisms, Audits).

    `original_share` is over in-lexicon drawn words; `original_share_all` over all words, kept stop words counted as original.
    Words that importance did not choose are what no other counter has.
    """
    not_chosen = c["words"] - c["drawn"] - c["stop_kept"] - c["oov"] - c["numbers"]
    chosen = {"not_chosen": float(not_chosen), "not_chosen_share": _share(not_chosen, c["words"])}
    left_out = {
        "invalid",
        "distinct",
        *(name for name in OF_NAMES if not c[name]),
        *OF_STAYED,
    }  # lists of names are not always given
    return {
        **{name: float(value) for name, value in c.items() if name not in left_out},
        "changed_share": _share(c["changed"], c["words"]),
        "original_share": _share(c["same"], c["drawn"]),
        "original_share_all": _share(c["words"] - c["changed"], c["words"]),
        "oov_share": _share(c["oov"], c["words"]),
        "stop_share": _share(c["stop_kept"], c["words"]),
        **(chosen if not_chosen else {}),
        **_stayed(c),
    }


def _stayed(c: Mapping[str, int]) -> dict[str, float | None]:
    """Return how many words of names were found and came out as they were.

    What nobody found, or looked for, has no figure: none of it can be said to have stayed, or not to have.
    """
    figures: dict[str, float | None] = {}
    for found, kept in zip(OF_STAYED[::2], OF_STAYED[1::2], strict=True):
        if c[found]:
            figures |= {found: float(c[found]), f"{found}_replaced": float(c[found] - c[kept])}
            figures |= {kept: float(c[kept]), f"{kept}_share": _share(c[kept], c[found])}
    return figures


def record_epsilon(
    units: Units, guarantee: Guarantee, consistency: str, columns: int, several_rows: bool, levels: int = 1,
    account: RecordAccount | None = None,
) -> RecordEpsilon:  # fmt: skip
    """Compose ε over a record (concepts/mechanisms, Levels).

    Args:
        units: of the records.
        guarantee: of one of those units: of a draw, unless levels of importance differ in ε.
        consistency: the level.
        columns: number of text columns.
        several_rows: whether a record may span rows.
        levels: of importance.
        account: how the draws compose; None where that is not looked at.
    """
    bounded = "" if account is None or account.budget is None else str(account.budget)
    basis = guarantee.of_record(consistency, levels, bounded)
    if consistency == "dataset":
        return RecordEpsilon(basis)
    if not guarantee.adds_up:
        return RecordEpsilon(f"{basis}; no single figure")
    if consistency == "record" and (columns > 1 or several_rows):
        basis += " (at most: columns and rows are summed)"
    mean, p50, p95, most = (
        None if draws is None else guarantee.compose(draws).epsilon
        for draws in (units.mean, units.p50, units.p95, units.max)
    )  # fmt: skip
    if guarantee.delta and units.max is not None:
        basis += f"; δ of a record at most {exact(guarantee.compose(units.max).delta)}"
    if account is None or units.p50 is None or units.max is None:
        return RecordEpsilon(basis, mean, p50, p95, most)
    return RecordEpsilon(
        basis, mean, p50, p95, most, account.of(math.ceil(units.p50)), account.of(math.ceil(units.max))
    )


def recounted(plan: RunPlan, key_then: str, say: Steps) -> Counts | None:
    """Count what the committed run counted while it wrote: one pass over the same input, which writes nothing.

    The same key draws the same words, so the sums are those that were lost, whatever the batches.

    The input version, the settings and the model are those of before.

    Returns:
        The counts, or None where the key is another one than the commit's.
    """
    if key_then != plan.key.commitment(plan.run_id):
        return None
    say("counting again, since the counts were lost after the commit (one pass over the input)")
    frame, _ = plan.drawn()
    return Counts.of(_only_row(plan, frame.agg(*observed(plan.paths))))


def _only_row(plan: RunPlan, aggregate: DataFrame) -> dict[str, Any]:
    """Return the row of an aggregate without groups: one pass over the text."""
    with batched(plan):
        row = aggregate.first()
    assert row is not None
    return row.asDict()


def several_rows(plan: RunPlan) -> bool:
    """Whether a record may have several rows."""
    return plan.identity.record is not None and plan.config.record_key != plan.config.row_key


def record_units(plan: RunPlan, counts: Counts | None) -> Units | None:
    """Return what the draws of a record add up to: as counted while writing, or by a second pass if it may have several rows."""
    if counts is None or plan.config.consistency == "dataset" or not several_rows(plan):
        return None if counts is None else counts.units
    # Draw as the run does and keep the counts alone, of each record, which may lie in many partitions.
    frame, _ = plan.drawn()
    units = F.col(RESULT).getField("units").alias("units")
    assert plan.identity.record is not None
    records = frame.groupBy(plan.identity.record).agg(F.sum(units).alias("units"))
    return Units.of(_only_row(plan, records.agg(*unit_figures(F.col("units")))))
