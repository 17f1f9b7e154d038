"""Words in normal form: what is the same name, however it is written.

A normal word is a run of letters, or of digits, folded: lower case, without accents and other marks, compatibility forms as
what they stand for (`ß` as `ss`), letters with a stroke as those without (`ł` as `l`, `þ` as `th`), the dotless i as `i`.
Apostrophes between letters are dropped (O'Brien is OBrien), a possessive 's at the end is no part of the word, and a hyphen
separates words as a space does. A single letter before a full stop is an initial, and keeps the stop.

In scripts without spaces a name stands amid a run of letters. A *piece* of a normal word is a letter of such a script with its
vowel signs, or a run of other letters up to an apostrophe; a name may begin and end at any of them.

They are hashed by SipHash-2-4 with 64 bits (Aumasson and Bernstein 2012), chained over the words of a phrase, in compiled
loops. It is a pseudo-random function: whoever sees hashes and guesses words, but lacks the key, can check no guess. The hash of
a phrase is that of its last word with the hash of what stands before it in front.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I32
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    DIGIT,
    EXTEND,
    HYPHEN,
    LETTER,
    MARK,
    SPACE,
    cell,
    decode,
    encode,
    tables,
)
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.identifiers.normalize import is_unspaced

_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)


@inlined
def _round(v0: Int, v1: Int, v2: Int, v3: Int) -> tuple[Int, Int, Int, Int]:
    v0 += v1
    v1 = (v1 << np.uint64(13)) | (v1 >> np.uint64(51))
    v1 ^= v0
    v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
    v2 += v3
    v3 = (v3 << np.uint64(16)) | (v3 >> np.uint64(48))
    v3 ^= v2
    v0 += v3
    v3 = (v3 << np.uint64(21)) | (v3 >> np.uint64(43))
    v3 ^= v0
    v2 += v1
    v1 = (v1 << np.uint64(17)) | (v1 >> np.uint64(47))
    v1 ^= v2
    v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
    return v0, v1, v2, v3


@inlined
def _take(block: Int, v0: Int, v1: Int, v2: Int, v3: Int) -> tuple[Int, Int, Int, Int]:
    v3 ^= block
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= block
    return v0, v1, v2, v3


@inlined
def _end(v0: Int, v1: Int, v2: Int, v3: Int) -> Int:
    v2 ^= np.uint64(0xFF)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@compiled
def siphash_short(k0: Int, k1: Int, before: Int, first: Int, second: Int, size: Int) -> Int:
    """Return :func:`siphash` of at most 15 bytes, which stand in two numbers, zeros behind them."""
    v0, v1, v2, v3 = _take(before, k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3)
    last = first
    if size >= 8:
        v0, v1, v2, v3 = _take(first, v0, v1, v2, v3)
        last = second
    v0, v1, v2, v3 = _take(last | (np.uint64(size + 8) << np.uint64(56)), v0, v1, v2, v3)
    return _end(v0, v1, v2, v3)


@compiled
def siphash(k0: Int, k1: Int, before: Int, data: Any, size: Int) -> Int:
    """Return the hash of eight bytes `before` and data[:size] under the key (k0, k1).

    Args:
        k0: uint64, the first half of the key.
        k1: uint64, the second.
        before: uint64, the hash of what stands before; 0 at the beginning.
        data: uint8[...].
        size: bytes of it.
    """
    v0, v1, v2, v3 = _take(before, k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3)
    at = np.int64(0)
    while at + 8 <= size:
        block = np.uint64(0)
        for j in range(8):
            block |= np.uint64(data[at + j]) << np.uint64(8 * j)
        v0, v1, v2, v3 = _take(block, v0, v1, v2, v3)
        at += 8
    block = np.uint64((size + 8) & 0xFF) << np.uint64(56)
    for j in range(size - at):
        block |= np.uint64(data[at + j]) << np.uint64(8 * j)
    v0, v1, v2, v3 = _take(block, v0, v1, v2, v3)
    return _end(v0, v1, v2, v3)


BLOCK = 128
WIDEST = 4  # code points that one is folded to; what needs more stays as it is
LONGEST = 64  # bytes of a normal word; a longer one is no name
FORM = LONGEST + 16 * WIDEST  # bytes of room for one
APART, JOINED = -1, 0
MOST_MARKS = 2  # between two words of an entry that is found as it is written
_BITS = 21  # of a code point
_HYPHEN = 0x2D
# Letters that Unicode does not take apart, and what people write where a keyboard lacks them.
_PLAIN = str.maketrans(
    {
        "\u0131": "i",
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ħ": "h",
        "ŧ": "t",
        "æ": "ae",
        "œ": "oe",
    }
)


class Folding(NamedTuple):
    """What each code point is folded to, in two stages.

    Attributes:
        stage: uint16[8704], the block of each 128 code points.
        cells: int32[blocks * 128, 4], code points; 0 behind the last.
    """

    stage: np.ndarray
    cells: I32


@cache
def folding() -> Folding:
    """Return the folding by this Python's Unicode database. It goes with a compiled list, so that workers fold as the driver."""
    every = np.zeros((0x110000, WIDEST), np.int32)
    every[:, 0] = np.arange(0x110000)
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or (code < 128 and not 65 <= code <= 90):
            continue
        char = chr(code)
        if unicodedata.category(char) in ("Cn", "Co", "Lo") and not unicodedata.decomposition(char):
            continue
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold()).translate(
            _PLAIN
        )
        kept = [ord(one) for one in plain if not unicodedata.combining(one)]
        if len(kept) <= WIDEST:
            every[code] = [*kept, *[0] * (WIDEST - len(kept))]
    blocks = every.reshape(-1, BLOCK * WIDEST)
    unique, stage = np.unique(blocks, axis=0, return_inverse=True)
    return Folding(
        np.ascontiguousarray(stage.reshape(-1), np.uint16), np.ascontiguousarray(unique.reshape(-1, WIDEST))
    )


@compiled
def next_word(data: Any, p: Int, end: Int, chars: Any, fold: Any, form: Any) -> tuple[Int, Int, Int, Int]:
    """Find the next normal word in data[p:end], and write it to `form`.

    Args:
        data: uint8[...], UTF-8.
        p: where to begin.
        end: where the text ends.
        chars: (stage, classes) of the character tables.
        fold: (stage, cells) of the folding.
        form: uint8[FORM].

    Returns:
        (where it begins, where it ends, where what belongs to it ends: a possessive, the stop of an initial; its bytes in `form`,
        0 of one that is too long); all `end` and -1 where there is none.
    """
    stage, classes = chars
    folds, cells = fold
    while p < end:
        code, length = decode(data, p, end)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind == LETTER or kind == DIGIT:
            break
        p += length
    if p >= end:
        return end, end, end, np.int64(-1)
    start, size, letters = p, np.int64(0), np.int64(0)
    first = kind
    # Where the last apostrophe stood, and how long the form was before it.
    apostrophe, before, since = np.int64(-1), np.int64(0), np.int64(0)
    stop = p
    while p < end:
        byte = data[p]
        if first == LETTER and 0x61 <= byte | 0x20 <= 0x7A:  # of ASCII: most are
            if size <= LONGEST:
                form[size] = byte | 0x20
                size += 1
            letters += 1
            since += 1
            p += 1
            stop = p
            continue
        code, length = decode(data, p, end)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind == first:
            if size <= LONGEST:
                at = np.int64(folds[code >> 7]) * 128 + (code & 127)
                for j in range(WIDEST):
                    if cells[at, j] != 0:
                        size += encode(cells[at, j], form, size)
            letters += 1
            since += 1
            p += length
            stop = p
        elif kind == MARK or (kind == EXTEND and first == LETTER):
            p += length
            if kind == MARK:
                stop = p
        elif kind == APOSTROPHE and first == LETTER and p + length < end:
            code, _ = decode(data, p + length, end)
            if code < 0 or classes[cell(code, stage)] != LETTER:
                break
            apostrophe, before, since = p, size, np.int64(0)
            p += length
        else:
            break
    after = stop
    if apostrophe >= 0 and since == 1 and size == before + 1 and form[before] == 0x73 and before > 0:
        return start, apostrophe, after, before if before <= LONGEST else np.int64(0)
    if letters == 1 and first == LETTER and stop < end and data[stop] == 0x2E:
        form[size] = 0x2E
        return start, stop + 1, stop + 1, size + 1
    return start, stop, after, size if size <= LONGEST else np.int64(0)


@compiled
def joint(data: Any, p: Int, end: Int, chars: Any, titled: bool) -> Int:
    """Return how the gap data[p:end] joins two words.

    Args:
        data: uint8[...], UTF-8.
        p: where the gap begins.
        end: where it ends.
        chars: (stage, classes) of the character tables.
        titled: whether the first word is a title, behind which a stop may stand.

    Returns:
        `JOINED` by spaces, a hyphen, a middle dot, or one of `_`, `^` and backtick; `APART` by a line break, more than
        `MOST_MARKS` marks or what is no UTF-8; else the marks that stand there, as a number above 0.
    """
    stage, classes = chars
    marks, count, hyphens = np.int64(0), 0, 0
    if titled and p < end and data[p] == 0x2E:
        p += 1
    while p < end:
        code, length = decode(data, p, end)
        if code < 0 or 0x0A <= code <= 0x0D or code == 0x85 or 0x2028 <= code <= 0x2029:
            return np.int64(APART)
        kind = classes[cell(code, stage)]
        if kind != SPACE:
            if count == MOST_MARKS:
                return np.int64(APART)
            middle = code == 0xB7 or code == 0x30FB or code == 0xFF65
            if kind == HYPHEN or middle or 0x5E <= code <= 0x60:
                code = np.int64(_HYPHEN)
                hyphens += 1
            marks |= np.int64(code) << (_BITS * count)
            count += 1
        p += length
    return np.int64(JOINED) if count == hyphens <= 1 else marks


@compiled
def next_piece(data: Any, p: Int, end: Int, chars: Any, fold: Any, form: Any) -> tuple[Int, Int, Int, Int]:
    """Find the first piece of data[p:end], which is a normal word or the rest of one, and write it to `form`.

    Of the marks of a letter of a script without spaces those count that folding leaves, vowel signs; of other letters none does.

    Args:
        data: uint8[...], UTF-8.
        p: where to begin.
        end: where the word ends.
        chars: (stage, classes) of the character tables.
        fold: (stage, cells) of the folding.
        form: uint8[FORM].

    Returns:
        (where it begins, where its last letter or mark ends, where the next piece begins; its bytes in `form`, 0 where there is
        none, or one that is too long).
    """
    stage, classes = chars
    folds, cells = fold
    start, stop, size = p, p, np.int64(0)
    alone = False
    while p < end:
        code, length = decode(data, p, end)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind == LETTER or kind == DIGIT:
            unspaced = kind == LETTER and is_unspaced(code)
            if stop > start and (alone or unspaced):
                break
            if stop == start:
                start, alone = p, unspaced
        elif kind == APOSTROPHE or kind == EXTEND or (kind == MARK and stop == start):
            p += length
            if kind == APOSTROPHE and stop > start:
                break
            continue
        elif kind != MARK:
            break
        if kind != MARK or alone:
            at = np.int64(folds[code >> 7]) * 128 + (code & 127)
            for j in range(WIDEST):
                if size <= LONGEST and cells[at, j] != 0:
                    size += encode(cells[at, j], form, size)
        p += length
        stop = p
    return start, stop, p, size if size <= LONGEST else np.int64(0)


def normal_words_of(text: str) -> list[str]:
    """Return the normal words of a text, without those that are too long."""
    raw, chars, form = text.encode(), tables(), np.zeros(FORM, np.uint8)
    data = np.frombuffer(raw + bytes(32), np.uint8)
    words: list[str] = []
    p = 0
    while True:
        _, _, p, size = next_word(data, p, len(raw), (chars.stage, chars.classes), tuple(folding()), form)
        if size < 0:
            return words
        if size:
            words.append(form[:size].tobytes().decode())
