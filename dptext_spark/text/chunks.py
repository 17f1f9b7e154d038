"""Cut rows into strips: at identifiers, each a strip of its own, and inside long rows.

The engine's memory does not depend on the length of a text. A strip of a long row begins with a character that no word holds. So
the text on its two sides is cut as it would be within the whole row. An identifier belongs to no word: the words on its two
sides end there.

`Spans` are positions in the texts of a batch: of words to be ranked, or of identifiers to be masked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I32, I64, U8, Bools, bounds_of
from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import PASS, SPACE, Tokenizer, tables
from dptext_spark.randomness import byte_view
from dptext_spark.runtime.jit import Int, compiled

_WRONG = (
    "is empty or lies outside its text",
    "begins before the one listed ahead of it",
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
    """Refuse invalid :class:`Spans`. A stretch must not be empty, leave its text, break the order or split a character.

    Raises:
        DataError: with the number of the first wrong text, and none of its words.
    """
    starts, ends, rows, bounds = spans.starts, spans.ends, spans.rows, spans.bounds
    texts = len(rows) - 1
    if len(starts) != len(ends) or len(bounds) != texts + 1:
        raise DataError(
            f"{source}: {len(starts)} starts, {len(ends)} ends and {len(bounds)} bounds do not fit {texts} texts. Give as "
            "many starts as ends, and one bound more than texts."
        )
    if bounds[0] != 0 or bounds[-1] != len(starts) or (np.diff(bounds) < 0).any():
        raise DataError(f"{source}: the bounds do not rise from 0 to the number of spans.")
    wrong, text = _first_wrong(spans.data, rows, starts, ends, bounds)
    if text >= 0:
        raise DataError(f"{source}: a span of text {text} of the batch {_WRONG[wrong]}.")


@compiled
def _first_wrong(data: Any, rows: Any, starts: Any, ends: Any, bounds: Any) -> tuple[Int, Int]:
    """Find the first invalid span; return its fault (a position in `_WRONG`) and its text, which is -1 if all are valid."""
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


STRIP_BYTES = 16 * 1024
TEXT = -1  # a strip that is no identifier


class Strips(NamedTuple):
    """The strips of a batch, in the order of the rows. A row that is not long, or empty, is one strip.

    Attributes:
        bounds: int64[strips + 1], where each begins and ends.
        rows: int64[strips], the row that each belongs to, ascending.
        first: int64[rows + 1], the first strip of each row, and their number.
        spans: int64[strips], the number of the identifier that a strip is, or `TEXT`; int64[0] where there are none.
    """

    bounds: I64
    rows: I64
    first: I64
    spans: I64


def strips(data: U8, bounds: I64, tokenizer: Tokenizer, identifiers: Spans | None = None) -> Strips:
    """Cut the rows of more than `STRIP_BYTES` into strips of at least that length, and all at their identifiers.

    The next strip begins at an ASCII space or, for the tokenizer `words`, also at punctuation or a symbol. Without
    such a character a strip is longer.

    Args:
        data: uint8[...], the bytes of the batch.
        bounds: int64[rows + 1], where each row begins and ends.
        tokenizer: how words are cut.
        identifiers: of the batch; None where none are looked for.
    """
    rows = len(bounds) - 1
    sizes = np.diff(bounds)
    none = np.zeros(0, np.int64)
    starts, ends, at = (none, none, np.zeros(rows + 1, np.int64)) if identifiers is None else identifiers[2:5]
    if not len(starts) and (rows == 0 or int(sizes.max()) <= STRIP_BYTES):
        return Strips(bounds, np.arange(rows), np.arange(rows + 1), none)
    classes = tables().classes[:128]
    gap = (classes == SPACE) | ((classes == PASS) if tokenizer == "words" else False)
    most = rows + int((sizes // STRIP_BYTES).sum()) + 2 * len(starts)
    strip_bounds, owners, spans = (
        np.zeros(most + 1, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )
    count = _cut(data, bounds, gap, STRIP_BYTES, starts, ends, at, strip_bounds, owners, spans)
    owners = owners[:count]
    of = spans[:count] if len(starts) else none
    return Strips(strip_bounds[: count + 1], owners, bounds_of(owners, rows), of)


@compiled
def _cut(
    data: Any,
    bounds: Any,
    gap: Any,
    least: Int,
    starts: Any,
    ends: Any,
    at: Any,
    found: Any,
    owners: Any,
    spans: Any,
) -> Int:
    """Fill `found`, `owners` and `spans`; return the number of strips. `gap`: bool[128], the characters that may begin one."""
    n = np.int64(0)
    for row in range(bounds.shape[0] - 1):
        start, end = bounds[row], bounds[row + 1]
        k = at[row]
        while True:
            # Up to the next identifier, or the end of the row; an empty row is a strip, too.
            until = starts[k] if k < at[row + 1] else end
            while start < until or (start == end and (n == 0 or owners[n - 1] != row)):
                stop = start + least
                while stop < until and (data[stop] >= 128 or not gap[data[stop]]):
                    stop += 1
                stop = min(stop, until)
                owners[n], spans[n] = row, TEXT
                n += 1
                found[n] = stop
                start = stop
                if start == end:
                    break
            if k == at[row + 1]:
                break
            owners[n], spans[n] = row, k
            n += 1
            found[n] = ends[k]
            start = ends[k]
            k += 1
    return n


def summed(counts: I32, owners: I64, rows: int) -> I32:
    """Return int32[rows, n], the sums of the counts in the strips of each row: int32[strips, n], int64[strips]."""
    sums = np.zeros((rows, counts.shape[1]), np.int32)
    _add(counts, owners, sums)
    return sums


@compiled
def _add(counts: Any, owners: Any, sums: Any) -> None:
    """Add the counts of each strip to those of its row."""
    for strip in range(counts.shape[0]):
        row = owners[strip]
        for column in range(counts.shape[1]):
            sums[row, column] += counts[strip, column]


def padded(texts: pa.Array) -> tuple[U8, I64]:
    """Copy the bytes of a string or binary array, followed by 32 zeros: (uint8[...], bounds int64[rows + 1])."""
    offsets, content = byte_view(texts)
    if texts.null_count and bool((np.diff(offsets)[~validity(texts)] > 0).any()):
        # Arrow allows bytes under a NULL; they are nobody's text and must not be read.
        offsets, content = byte_view(texts.fill_null(""))
    low, high = int(offsets[0]), int(offsets[-1])
    data = np.empty(high - low + 32, np.uint8)
    data[: high - low] = content[low:high]
    data[high - low :] = 0
    return data, offsets - low


def validity(texts: pa.Array) -> Bools:
    """Return bool[n]: which rows are not NULL."""
    return np.asarray(texts.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
