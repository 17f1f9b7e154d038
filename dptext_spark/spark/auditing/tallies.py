"""What the one pass of an audit over both tables brings to the driver: equal rows summed, groups of words counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window, functions

from dptext_spark.arrays import I64
from dptext_spark.audit.table.findings import StayedWord
from dptext_spark.spark.auditing.pair_tables import (
    COUNT,
    COUNT_FIELDS,
    GROUP,
    LEVELS,
    STAYED,
    TEXT,
    TOKENS,
    VALUES,
)

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from pyspark.sql import DataFrame

F: Any = functions  # its stubs leave out what Spark adds at run time
MOST_STAYED = 20
_KEY = ("key", "e")  # where the key of a row is


def summed(rows: DataFrame, stayed: bool) -> DataFrame:
    """Sum equal rows; of groups of equal words count those of two words or more, and those with two replacements.

    Args:
        rows: of an audit, see :mod:`dptext_spark.spark.auditing.pair_tables`.
        stayed: whether words that stayed are among them, of which the `MOST_STAYED` most frequent are kept.

    Returns:
        (what, number, field, key, a, ..., f, n, broken); of a group `n` and `broken` count groups, and `a` is NULL.
    """
    numbers, group = ["what", "number", "field", "key"], F.col("what") == GROUP
    ends = [
        end(half).alias(f"{name}_{half}")
        for half in ("low", "high")
        for name, end in (("min", F.min), ("max", F.max))
    ]
    each = rows.groupBy(*numbers, *VALUES).agg(F.sum("n").alias("n"), *ends)
    several = group & (F.col("n") > 1)
    differ = (F.col("min_low") != F.col("max_low")) | (F.col("min_high") != F.col("max_high"))
    of_groups = each.select(
        *numbers,
        F.when(~group, F.col("a")).alias("a"),
        *VALUES[1:],
        F.when(group, several.cast("long")).otherwise(F.col("n")).alias("n"),
        F.when(several & differ, 1).otherwise(0).cast("long").alias("broken"),
    )
    found = of_groups.groupBy(*numbers, *VALUES).agg(F.sum("n").alias("n"), F.sum("broken").alias("broken"))
    if not stayed:
        return found
    place = F.row_number().over(Window.partitionBy("what").orderBy(F.desc("n"), "a"))
    ranked = found.withColumn("place", place)
    return ranked.where((F.col("what") != STAYED) | (F.col("place") <= MOST_STAYED)).drop("place")


@dataclass(frozen=True, eq=False)
class Tallies:
    """What an audit counted and gathered.

    Attributes:
        rows: as :func:`summed` returns them.
    """

    rows: pa.Table

    @cached_property
    def _numbers(self) -> I64:
        """int64[rows, 5], each (what, number, field, n, broken)."""
        names = ("what", "number", "field", "n", "broken")
        columns = [np.asarray(self.rows.column(name).to_numpy(), np.int64) for name in names]
        return np.stack(columns, axis=1).reshape(-1, len(names))

    def _of(self, what: int) -> I64:
        return np.asarray(self._numbers[self._numbers[:, 0] == what])

    def counts(self, column: int) -> dict[str, int]:
        """Return the counts of a column, or of whole rows, by `COUNT_FIELDS`."""
        found = dict.fromkeys(COUNT_FIELDS, 0)
        for _, number, field, n, _ in self._of(COUNT).tolist():
            if number == column:
                found[COUNT_FIELDS[field]] = n
        return found

    @property
    def groups(self) -> dict[str, tuple[int, int]]:
        """Of each level how many groups of equal words there are, and how many have more than one replacement."""
        found = {LEVELS[number]: (n, broken) for _, number, _, n, broken in self._of(GROUP).tolist()}
        return {level: found.get(level, (0, 0)) for level in LEVELS}

    @property
    def stayed(self) -> tuple[StayedWord, ...]:
        """The words that stayed most, the most frequent first: private text."""
        rows = self._rows(STAYED).sort_by([("n", "descending"), ("a", "ascending")])
        words, numbers = rows.column("a").cast(pa.string()).to_pylist(), rows.column("n").to_pylist()
        return tuple(StayedWord(word, n) for word, n in zip(words, numbers, strict=True))

    @property
    def tokens(self) -> PandasFrame:
        """The tokens of each text of the sample; those of a record by column, and by the key of their rows."""
        rows = self._rows(TOKENS).sort_by([(name, "ascending") for name in ("a", "number", *_KEY)])
        names = {"a": "record", "b": "words", "c": "outputs", "d": "drawn"}
        return rows.select(list(names)).rename_columns(list(names.values())).to_pandas()

    def texts(self, use: int) -> pa.Table:
        """Return the texts that serve a use, by the key of their rows: (plain, private, label, attribute, record, test)."""
        rows = self._rows(TEXT)
        rows = rows.filter(pa.array((rows.column("number").to_numpy() & use) > 0))
        rows = rows.sort_by([(name, "ascending") for name in _KEY])
        names = {"a": "plain", "b": "private", "d": "label", "f": "attribute"}
        found = {name: rows.column(place).cast(pa.large_string()) for place, name in names.items()}
        return pa.table({**found, "record": rows.column("c"), "test": pc.equal(rows.column("field"), 1)})

    def _rows(self, what: int) -> pa.Table:
        return self.rows.filter(pc.equal(self.rows.column("what"), what))
