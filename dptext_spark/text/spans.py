"""Where things lie in the texts of a batch: words to be ranked, identifiers to be masked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8
from dptext_spark.errors import DataError


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
    if not len(starts):
        return
    owner = spans.owners
    inside = (starts >= rows[owner]) & (starts < ends) & (ends <= rows[owner + 1])
    _refuse(source, owner[~inside], "is empty or lies outside its text")
    follows = owner[1:] == owner[:-1]
    _refuse(
        source, owner[1:][follows & (starts[1:] < starts[:-1])], "stands before the one listed ahead of it"
    )
    _refuse(source, owner[1:][follows & (starts[1:] < ends[:-1])], "overlaps another")
    cut = (spans.data[starts] & 0xC0) == 0x80
    last = np.minimum(ends, len(spans.data) - 1)
    cut |= (ends < rows[owner + 1]) & ((spans.data[last] & 0xC0) == 0x80)
    _refuse(source, owner[cut], "cuts a character in two")


def _refuse(source: str, owners: I64, what: str) -> None:
    if len(owners):
        raise DataError(f"{source}: a span of text {int(owners[0])} of the batch {what}.")
