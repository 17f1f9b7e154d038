"""Pair the words of a text with those of its rewritten form, whatever tool rewrote it: no key and no model is needed.

Both are cut as the engine cuts them. A text and its rewritten form are aligned by their pieces, which lie between spaces and
hold a word; within a piece word by word, where it holds as many on both sides. A text with more or fewer pieces is not
aligned at all, and a piece with more or fewer words not within.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I32, I64, U8, U64, Bools
from dptext_spark.lexicon.characters import PASS, SPACE, cell, decode, lower_into, tables
from dptext_spark.randomness.draws import hash_bytes
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.engine import Engine
from dptext_spark.text.lookup import IDENTIFIER, INVALID, LOWERED, MASKED_NUMBER, look_up_form
from dptext_spark.text.spans import Spans
from dptext_spark.text.tokens import UNKNOWN, listed

DRAWN_WORD, KEPT_WORD, UNKNOWN_WORD, NUMBER, NO_WORD = range(5)


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some texts, numbers and identifiers among them.

    Attributes:
        ids: int32[n], of the lexicon, or `UNKNOWN`.
        kind: uint8[n]: `DRAWN_WORD` (the policy draws it), `KEPT_WORD`, `UNKNOWN_WORD`, `NUMBER` or `NO_WORD` (an identifier).
        form: uint64[n, 2], keyed hash of the word in look-up form.
        marked: bool[n], punctuation stands between the word and the one before it.
        starts: int64[p + 1], piece i is the words starts[i]:starts[i + 1].
        pieces: int64[rows + 1], text i is the pieces pieces[i]:pieces[i + 1].
        invalid: bool[rows], invalid UTF-8.
        spans: where the words stand.
        numbers: int32[n], `ids` with the stop words that the lexicon lacks, by their numbers in the word table.
    """

    ids: I32
    kind: U8
    form: U64
    marked: Bools
    starts: I64
    pieces: I64
    invalid: Bools
    spans: Spans
    numbers: I32

    @property
    def bounds(self) -> I64:
        """Text i is the words bounds[i]:bounds[i + 1]: int64[rows + 1]."""
        return self.spans.bounds


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which word stands in whose place.

    Attributes:
        partner: int64[n], of each source word; -1 where it is not aligned.
        alone: bool[n], whether it is aligned and the only word of its piece: no joiner makes its ends uncertain.
        rows: bool[rows], which texts are aligned.
    """

    partner: I64
    alone: Bools
    rows: Bools


@compiled
def _describe(
    data: Any, bounds: Any, tokens: Any, n: Int, table: Any, chars: Any, k0: Int, k1: Int, ids: Any, kind: Any,
    form: Any, marked: Any, starts: Any, pieces: Any, numbers: Any,
) -> Int:  # fmt: skip
    """Fill what :class:`Words` holds; return how many pieces there are."""
    stage, classes, lower = chars
    spelt = np.zeros(4096, np.uint8)
    t, piece = np.int64(0), np.int64(0)
    for row in range(bounds.shape[0] - 1):
        position = bounds[row]
        first = True
        while t < n and (tokens[t, 3] & 0xFFFFFFFF) == row:
            start, stop, code = tokens[t, 0], tokens[t, 1], tokens[t, 2]
            fresh, mark = first, False
            while position < start:
                point, length = decode(data, position, start)
                between = classes[cell(point, stage)] if point >= 0 else SPACE
                fresh = fresh or between == SPACE
                mark = mark or between == PASS
                position += length
            if fresh:
                starts[piece] = t
                piece += 1
            first = False
            if spelt.shape[0] < 4 * (stop - start) + 16:
                spelt = np.zeros(4 * (stop - start) + 16, np.uint8)
            size = lower_into(data, start, stop, spelt, stage, lower)
            form[t, 0], form[t, 1] = hash_bytes(spelt, 0, size, k0, k1)
            marked[t] = mark
            ids[t] = numbers[t] = UNKNOWN
            if code >= 0:
                ids[t], numbers[t], kind[t] = code, code, DRAWN_WORD
            elif code == LOWERED:
                kind[t] = KEPT_WORD
                info = look_up_form(spelt, size, table)
                if info >= 0:
                    numbers[t] = info & 0xFFFFFFFF
                    ids[t] = numbers[t] if numbers[t] < table[6] else UNKNOWN
            elif code == IDENTIFIER:
                kind[t] = NO_WORD
            else:
                kind[t] = NUMBER if code == MASKED_NUMBER else UNKNOWN_WORD
            position = stop
            t += 1
        pieces[row + 1] = piece
    starts[piece] = n
    return piece


def words_of(engine: Engine, texts: pa.Array, keys: tuple[np.uint64, np.uint64]) -> Words:
    """Read the words of texts.

    Args:
        engine: whose tokenizer, words and stop words count.
        texts: string, large_string or binary [rows]; NULLs have no words.
        keys: of the hashes.
    """
    # In this policy every word and every number is listed, and each kind has a code of its own.
    listing = replace(engine, policy=replace(engine.policy, case="lower", numbers="mask", oov="mask"))
    found = listed(listing, texts, keys)
    n, chars = found.size, tables()
    ids, kind = np.empty(n, np.int32), np.empty(n, np.uint8)
    form, marked = np.empty((n, 2), np.uint64), np.empty(n, np.bool_)
    starts, pieces = np.zeros(n + 1, np.int64), np.zeros(len(texts) + 1, np.int64)
    numbers = np.empty(n, np.int32)
    count = _describe(
        found.data, found.bounds, found.tokens, n, listing.lookup,
        (chars.stage, chars.classes, chars.lower), keys[0], keys[1], ids, kind, form, marked, starts, pieces, numbers,
    )  # fmt: skip
    starts = starts[: count + 1]
    spans = Spans(
        found.data,
        found.bounds.astype(np.int64),
        found.tokens[:n, 0].copy(),
        found.tokens[:n, 1].copy(),
        starts[pieces],
    )
    return Words(ids, kind, form, marked, starts, pieces, found.counts[:, INVALID] > 0, spans, numbers)


def pair(source: Words, output: Words) -> Pairing:
    """Pair the words of texts with those of their rewritten forms; both have as many rows."""
    rows = np.diff(source.pieces) == np.diff(output.pieces)
    row = np.repeat(np.arange(len(rows)), np.diff(source.pieces))
    at = np.flatnonzero(rows[row])
    there = at - source.pieces[row[at]] + output.pieces[row[at]]
    sizes = np.diff(source.starts)
    good = sizes[at] == np.diff(output.starts)[there]
    first = np.full(len(sizes), -1, np.int64)
    first[at[good]] = output.starts[there[good]]
    within = np.arange(len(source.ids)) - np.repeat(source.starts[:-1], sizes)
    beginning = np.repeat(first, sizes)
    partner = np.where(beginning >= 0, beginning + within, -1)
    return Pairing(partner, (partner >= 0) & (np.repeat(sizes, sizes) == 1), rows)
