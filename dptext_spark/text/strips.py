"""Cut long rows into strips, so that what the engine holds at a time does not depend on how long a text is.

A strip begins with a character that no word holds: whatever stands on its two sides, each of them is cut as it would be
within the whole row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.compiled import Int, compiled
from dptext_spark.lexicon.characters import PASS, SPACE, Tokenizer, tables

STRIP_BYTES = 16 * 1024
I64 = npt.NDArray[np.int64]


class Strips(NamedTuple):
    """The strips of a batch, in the order of the rows; a row that is not long is one strip, an empty one too.

    Attributes:
        bounds: int64[strips + 1], where each begins and ends.
        rows: int64[strips], the row that each belongs to, ascending.
        first: int64[rows + 1], the first strip of each row, and their number.
    """

    bounds: I64
    rows: I64
    first: I64


def strips(data: npt.NDArray[np.uint8], bounds: I64, tokenizer: Tokenizer) -> Strips:
    """Cut the rows of more than `STRIP_BYTES` into strips of at least that length.

    A strip is longer where no ASCII character stands that may begin the next one: a space, or, for the tokenizer `words`,
    punctuation or a symbol.

    Args:
        data: uint8[...], the bytes of the batch.
        bounds: int64[rows + 1], where each row begins and ends.
        tokenizer: how words are cut.
    """
    rows = len(bounds) - 1
    sizes = np.diff(bounds)
    if rows == 0 or int(sizes.max()) <= STRIP_BYTES:
        return Strips(bounds, np.arange(rows), np.arange(rows + 1))
    classes = tables().classes[:128]
    gap = (classes == SPACE) | ((classes == PASS) if tokenizer == "words" else False)
    most = rows + int((sizes // STRIP_BYTES).sum())
    found, owners = np.zeros(most + 1, np.int64), np.zeros(most, np.int64)
    count = _cut(data, bounds, gap, STRIP_BYTES, found, owners)
    owners = owners[:count]
    return Strips(found[: count + 1], owners, np.searchsorted(owners, np.arange(rows + 1)))


@compiled
def _cut(data: Any, bounds: Any, gap: Any, least: Int, found: Any, owners: Any) -> Int:
    """Fill `found` and `owners`; return the number of strips. `gap`: bool[128], the characters that may begin one."""
    n = np.int64(0)
    for row in range(bounds.shape[0] - 1):
        start, end = bounds[row], bounds[row + 1]
        while True:
            at = start + least
            while at < end and (data[at] >= 128 or not gap[data[at]]):
                at += 1
            at = min(at, end)
            owners[n] = row
            n += 1
            found[n] = at
            if at == end:
                break
            start = at
    return n
