"""Texts beside what they became: what a notebook shows of them, with the words marked that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from dptext_spark.errors import DataError
from dptext_spark.runtime.display import line, side_by_side

Texts: TypeAlias = str | Sequence[str | None] | pa.Array | pa.ChunkedArray
"""One text, or many; None is a NULL."""

NOTE = "These are the texts that were given: as private as they are, and part of this notebook where it is kept with its outputs."
_VALID = (
    "valid: one text, or a list, a pandas column or an Arrow array of texts; a column of a Spark DataFrame by "
    'df.limit(20).toPandas()["body"]'
)


@dataclass(frozen=True, repr=False)
class RowComparison:
    """Texts and what they became. In a notebook they stand side by side, with the words marked that differ.

    Attributes:
        before: the texts; None is a NULL.
        after: what they became, in the same order.

    Examples:
        >>> dps.compare_rows("Send the parcel.", "Send the letter.").after
        ('Send the letter.',)
    """

    before: tuple[str | None, ...]
    after: tuple[str | None, ...]

    def __repr__(self) -> str:
        """Return how many texts it holds; they may be private."""
        size = len(self.before)
        return line("RowComparison", f"{size:,} {'row' if size == 1 else 'rows'}", "not shown")

    def _repr_html_(self) -> str:
        """Return the texts side by side, for a notebook."""
        numbered = zip(self.before, self.after, strict=True)
        rows = [(f"{number:,}", first, second) for number, (first, second) in enumerate(numbered, start=1)]
        return side_by_side("Before and after", rows, note=NOTE)


def compare_rows(before: Texts, after: Texts) -> RowComparison:
    """Set texts beside what they became.

    As the last line of a notebook's cell it is a table with the words marked that differ, everything escaped. It holds the texts
    as they are: a notebook that is kept with its outputs holds them, too.

    Args:
        before: one text, or a list, a pandas column or an Arrow array of texts.
        after: what became of them: as many, in the same order.

    Raises:
        DataError: no texts, no valid Unicode, or not equally many.

    Examples:
        >>> dps.compare_rows(["Send the parcel.", None], ["Send the letter.", None])
        RowComparison(2 rows, not shown)
    """
    if isinstance(before, str) != isinstance(after, str):
        raise DataError("before, after: one text and several given; valid: both one text, or both as many.")
    first, second = _texts("before", before), _texts("after", after)
    if len(first) != len(second):
        raise DataError(
            f"before, after: {len(first):,} and {len(second):,} texts given; valid: equally many, in the same order."
        )
    return RowComparison(first, second)


def _texts(field: str, given: Texts) -> tuple[str | None, ...]:
    """Return texts by one door, whatever held them; what does not fit is named by its type, never by its content."""
    try:
        one = [given] if isinstance(given, str) else given
        texts = one if isinstance(one, pa.Array | pa.ChunkedArray) else pa.array(one, from_pandas=True)
        values = texts.to_pylist()
    except (TypeError, ValueError):  # Arrow's own message would show the value
        raise DataError(f"{field}: what was given holds no texts, or no valid Unicode; {_VALID}.") from None
    if any(not isinstance(value, str | None) for value in values):
        raise DataError(f"{field}: values of type {texts.type} given; {_VALID}.")
    return tuple(values)
