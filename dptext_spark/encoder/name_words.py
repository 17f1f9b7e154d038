"""The words of a batch as the engine cuts them, and which texts hold one that is written like a name; a compiled pass each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8, Bools, read_only
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    EXTEND,
    HYPHEN,
    LETTER,
    MARK,
    SPACE,
    cell,
    decode,
    scan_word,
    tables,
)
from dptext_spark.runtime.jit import Int, compiled


class NameWords(NamedTuple):
    """The words of some texts.

    Attributes:
        starts: int64[n], where each begins in the bytes of the batch.
        ends: int64[n], where it ends.
        texts: int64[n], its text.
        joined: bool[n], whether it may go on with the name of the word before it: between the two stand spaces of one line,
            hyphens or apostrophes, and a full stop only behind a single letter.
    """

    starts: I64
    ends: I64
    texts: I64
    joined: Bools


@compiled
def _joins(data: Any, start: Int, stop: Int, initial: Any, stage: Any, classes: Any) -> Any:
    """Whether data[start:stop], the gap between two words, may stand within a name."""
    p = start
    if initial and p < stop and data[p] == 0x2E:
        p += 1
    while p < stop:
        code, length = decode(data, p, stop)
        if code < 0:
            return False
        kind = classes[cell(code, stage)]
        broken = 0x0A <= code <= 0x0D or code == 0x85 or 0x2028 <= code <= 0x2029
        if broken or (kind != SPACE and kind != HYPHEN and kind != APOSTROPHE):
            return False
        p += length
    return True


@compiled
def _cut(data: Any, rows: Any, chars: Any, found: Any) -> Int:
    """Fill int64[n, 4], (begin, end, text, whether joined), as far as there is room; return how many words there are."""
    stage, classes = chars
    n = 0
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        before, initial = np.int64(-1), False
        while p < end:
            code, length = decode(data, p, end)
            if code < 0 or classes[cell(code, stage)] != LETTER:
                p += length
                continue
            stop = scan_word(data, p, end, stage, classes)[0]
            if stop < 0:  # bytes that are not UTF-8 follow: what stands before them is no word that is known
                p += length
                before = np.int64(-1)
                continue
            if n < found.shape[0]:
                joined = before >= 0 and _joins(data, before, p, initial, stage, classes)
                found[n, 0], found[n, 1], found[n, 2], found[n, 3] = p, stop, row, np.int64(joined)
            n += 1
            before, initial = stop, p + length == stop
            p = stop
    return n


@compiled
def _capitals(data: Any, rows: Any, chars: Any, found: Any) -> None:
    """Set found[row] where a text holds a part of a word that is written like a name, see :func:`capitalised`."""
    stage, classes, lower, upper = chars
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        lone = False  # behind a capital and an apostrophe, as in D'Arcy and I'm
        while p < end:
            c = data[p]
            if c < 128 and classes[c] != LETTER:
                lone = lone and c == 0x27
                p += 1
                continue
            code, length = decode(data, p, end)
            if code < 0 or classes[cell(code, stage)] != LETTER:
                lone = lone and code == 0x2019
                p += length
                continue
            place = cell(code, stage)
            written_so: Any = lower[place] != 0 or upper[place] == 0
            letters = 0
            while p < end:
                code, length = decode(data, p, end)
                if code < 0:
                    break
                kind = classes[cell(code, stage)]
                if kind != LETTER and kind != MARK and kind != EXTEND:
                    break
                letters += kind == LETTER
                p += length
            if (written_so and letters > 1) or (lone and letters > 2):
                found[row] = True
                break
            lone = written_so and letters == 1


def name_words(data: U8, rows: I64) -> NameWords:
    """Return the words of texts.

    Args:
        data: uint8[...], their bytes.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
    """
    chars = tables()
    room = 1024 + len(data) // 4
    while True:
        found = np.empty((room, 4), np.int64)
        count = int(_cut(read_only(data), read_only(rows), (chars.stage, chars.classes), found))
        if count <= room:
            break
        room = count
    starts, ends, texts, joined = np.ascontiguousarray(found[:count].T)
    return NameWords(starts, ends, texts, joined.astype(np.bool_))


def capitalised(data: U8, rows: I64) -> Bools:
    """Return which texts hold a word that is written like a name: bool[r].

    That is one of two letters or more that begins with a capital, as a part of it behind a hyphen or an apostrophe may, or with
    a letter that has no capital, as those of many scripts; of I'm, I'll and the like neither part counts.

    Args:
        data: uint8[...], their bytes.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
    """
    chars = tables()
    found = np.zeros(len(rows) - 1, np.bool_)
    _capitals(read_only(data), read_only(rows), (chars.stage, chars.classes, chars.lower, chars.upper), found)
    return found


@compiled
def _small(data: Any, starts: Any, ends: Any, chars: Any, found: Any) -> None:
    """Fill bool[n]: which words hold a letter that has a capital, and no capital."""
    stage, lower, upper = chars
    for i in range(starts.shape[0]):
        p, small, capital = starts[i], False, False
        while p < ends[i]:
            code, length = decode(data, p, ends[i])
            if code >= 0:
                place = cell(code, stage)
                small = small or upper[place] != 0
                capital = capital or lower[place] != 0
            p += length
        found[i] = small and not capital


def in_small_letters(data: U8, words: NameWords) -> Bools:
    """Return which words are written in small letters throughout, of those that have capitals: bool[n].

    Args:
        data: uint8[...], the bytes that the words are of.
        words: of them.
    """
    chars = tables()
    found = np.zeros(len(words.starts), np.bool_)
    _small(
        read_only(data),
        read_only(words.starts),
        read_only(words.ends),
        (chars.stage, chars.lower, chars.upper),
        found,
    )
    return found
