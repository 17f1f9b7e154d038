"""What happened to the rows of a batch, as numbers that may be summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import I32, I64
from dptext_spark.runtime.display import line
from dptext_spark.text.engine import COUNTERS


@dataclass(frozen=True, eq=False)
class Counters:
    """What happened to each row of a batch.

    Attributes:
        rows: int32[n, len(COUNTERS)].
        units: int64[n], how many units of ε the draws of each row come to: drawn words, or distinct ones at record level; where
            levels of importance differ in ε, see :func:`dptext_spark.importance.selection.common_unit`.

    Examples:
        >>> import pyarrow as pa
        >>> _, counters = model.privatize(
        ...     pa.array(["Please send the parcel."]), column="body", row_ids=pa.array([1]), key=dp.RunKey.generate()
        ... )
        >>> totals = counters.totals()
        >>> totals["words"], totals["drawn"], totals["stop_kept"]
        (4, 3, 1)
    """

    rows: I32
    units: I64

    def __repr__(self) -> str:
        """Return how many rows; what was counted in them depends on their text."""
        return line("Counters", f"{len(self.rows):,} rows")

    def column(self, name: str) -> I32:
        """Return one counter, int32[n]."""
        return self.rows[:, COUNTERS.index(name)]

    def totals(self) -> dict[str, int]:
        """Return the sums by name, with the number of rows."""
        sums = self.rows.sum(axis=0, dtype=np.int64)
        return {
            "rows": len(self.rows),
            **{name: int(value) for name, value in zip(COUNTERS, sums, strict=True)},
        }

    def __add__(self, other: Counters) -> Counters:
        """Join the rows of two batches."""
        return Counters(np.concatenate([self.rows, other.rows]), np.concatenate([self.units, other.units]))
