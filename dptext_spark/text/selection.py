"""Release the words that were not chosen: the engine's phase between looking words up and drawing them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.lookup import DRAWN, LOWERED, MASKED_BEYOND

BEYOND = 255  # in the place of a level: the word becomes a mask


class Texts(NamedTuple):
    """A column of a batch whose rows are chosen in.

    Attributes:
        values: string, large_string or binary [m].
        rows: int64[m], the row of each text, ascending; None: one text a row.
        weights: list<float> [m], the importance of each word, where a selection takes them from the user.
    """

    values: pa.Array
    rows: I64 | None = None
    weights: pa.Array | None = None


class TokenSelection(NamedTuple):
    """Which words of a column are drawn.

    Attributes:
        starts: int64[n], where each word begins in the bytes of the batch, ascending; every word that the policy draws is one.
        levels: uint8[n], at which level each is drawn; `none` or more: released as it is, but for `BEYOND`.
        none: how many levels there are.
        units: int64[texts], what the draws of each text come to, in units of ε. Where equal words of a row share a draw, it
            counts with the first text that has it.
        rows: int64[texts], the row of each text; None: one each.
    """

    starts: I64
    levels: U8
    none: int
    units: I64
    rows: I64 | None = None


@compiled
def drop_unselected(
    tokens: Any, n: Int, content: Any, starts: Any, levels: Any, none: Int, place: Int, lowered: bool, counts: Any,
    drawn_at: Any,
) -> tuple[Int, Int]:  # fmt: skip
    """Drop the tokens that are not drawn after all, or only lower their case; unknown words and numbers stay listed.

    Args:
        tokens: int64[n, 4], of whole strips, in order.
        n: number of tokens.
        content: uint64[n, 2], which goes with them.
        starts: int64[words], see :class:`TokenSelection`.
        levels: uint8[words].
        none: the first number that is no level.
        place: where to begin in `starts`.
        lowered: whether all words are released in lower case.
        counts: int32[strips, counters]: what is not drawn is not counted as drawn.
        drawn_at: uint8[n], filled with the levels of the words that are drawn, in order.

    Returns:
        (how many tokens remain, where the next call begins in `starts`); -1 tokens where a word is not in `starts`.
    """
    kept, known = np.int64(0), np.int64(0)
    for i in range(n):
        code = tokens[i, 2]
        if code >= 0:
            while place < starts.shape[0] and starts[place] < tokens[i, 0]:
                place += 1
            if place == starts.shape[0] or starts[place] != tokens[i, 0]:
                return np.int64(-1), place
            if levels[place] >= none:
                counts[tokens[i, 3] & 0xFFFFFFFF, DRAWN] -= 1
                if levels[place] == BEYOND:
                    code = np.int64(MASKED_BEYOND)
                elif lowered:
                    code = np.int64(LOWERED)
                else:
                    continue
            else:
                drawn_at[known] = levels[place]
                known += 1
        tokens[kept, 0], tokens[kept, 1], tokens[kept, 2] = tokens[i, 0], tokens[i, 1], code
        tokens[kept, 3] = tokens[i, 3]
        content[kept, 0], content[kept, 1] = content[i, 0], content[i, 1]
        kept += 1
    return kept, place
