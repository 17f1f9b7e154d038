"""Where things lie in the texts of a batch: words to be ranked, identifiers to be masked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8
from dptext_spark.errors import DataError
from dptext_spark.runtime.jit import Int, compiled

_WRONG = (
    "is empty or lies outside its text",
    "stands before the one listed ahead of it",
    "overlaps another",
    "cuts a character in two",
)


class Spans(NamedTuple):
    """Stretches of some texts, in order and apart from each other.

    Attributes:
        data: uint8[...], the bytes of the texts.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        starts: int64[n], where each stretch begins in `data`, bytes.
        ends: int64[n], where it ends.
        bounds: int64[r + 1], the stretches of text i are starts[bounds[i]:bounds[i + 1]].
        records: int64[k + 1], record i has the texts records[i]:records[i + 1]; None: each text is one.
    """

    data: U8
    rows: I64
    starts: I64
    ends: I64
    bounds: I64
    records: I64 | None = None

    @property
    def record_bounds(self) -> I64:
        """The stretches of each record: int64[k + 1], as `bounds` has those of each text."""
        return self.bounds if self.records is None else self.bounds[self.records]

    @property
    def owners(self) -> I64:
        """The text of each stretch, int64[n]."""
        return np.repeat(np.arange(len(self.rows) - 1), np.diff(self.bounds))


def check_spans(spans: Spans, source: str) -> None:
    """Refuse what is no :class:`Spans`: a stretch that is empty, out of its text, out of order or cuts a character in two.

    Args:
        spans: of any origin.
        source: who made them, as the message calls it.

    Raises:
        DataError: with the number of the first text that is wrong, and no word of it.
    """
    starts, ends, rows, bounds = spans.starts, spans.ends, spans.rows, spans.bounds
    texts = len(rows) - 1
    if len(starts) != len(ends) or len(bounds) != texts + 1:
        raise DataError(
            f"{source}: {len(starts)} starts, {len(ends)} ends and {len(bounds)} bounds for {texts} texts; "
            "valid: as many starts as ends, and a bound more than texts."
        )
    if bounds[0] != 0 or bounds[-1] != len(starts) or (np.diff(bounds) < 0).any():
        raise DataError(f"{source}: the bounds do not rise from 0 to the number of spans.")
    wrong, text = _first_wrong(spans.data, rows, starts, ends, bounds)
    if text >= 0:
        raise DataError(f"{source}: a span of text {text} of the batch {_WRONG[wrong]}.")


@compiled
def _first_wrong(data: Any, rows: Any, starts: Any, ends: Any, bounds: Any) -> tuple[Int, Int]:
    """Return what is wrong with the first span that is, a place in `_WRONG`, and its text; of none: text -1."""
    for row in range(bounds.shape[0] - 1):
        begin, end = rows[row], rows[row + 1]
        for i in range(bounds[row], bounds[row + 1]):
            start, stop = starts[i], ends[i]
            if not begin <= start < stop <= end:
                return 0, row
            if i > bounds[row] and start < ends[i - 1]:
                return 1 if start < starts[i - 1] else 2, row
            if data[start] & 0xC0 == 0x80 or (stop < end and data[stop] & 0xC0 == 0x80):
                return 3, row
    return 0, -1
