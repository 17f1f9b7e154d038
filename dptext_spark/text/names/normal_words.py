"""Words in normal form: one form for all spellings of a name.

A normal word is a run of letters, or of digits, in lower case and without accents and other marks. Compatibility forms are
written out (`ß` as `ss`). Letters with a stroke lose it (`ł` as `l`, `þ` as `th`), and the dotless i is `i`. Apostrophes
between letters are dropped (O'Brien is OBrien). A possessive 's at the end is no part of the word. A hyphen separates words
as a space does. A single letter before a full stop is an initial, and keeps the stop.

In scripts without spaces a name may be amid a run of letters. A *piece* of a normal word is a letter of such a script with its
vowel signs, or a run of other letters up to an apostrophe. A name may begin and end at any piece.

Lists of names hold hashes of 64 bits. The hash of a phrase chains its last word to the hash of the preceding words. No key
enters them, so whoever sees them can test guesses. Two phrases share a hash with a chance of 2^-64.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

import numpy as np

from dptext_spark.arrays import I32, read_only
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
from dptext_spark.runtime.jit import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.text.identifiers.skeletons import is_unspaced
from dptext_spark.text.tokenizer import letters_of

# Of SplitMix64 (Steele, Lea and Flood 2014): its step, and the two factors of its finalizer.
_STEP, _FIRST_FACTOR, _SECOND_FACTOR = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_CASE = np.uint64(0x2020202020202020)
_TOP = np.uint64(0x8080808080808080)


@inlined
def chain(before: Int, token: Int) -> Int:
    """Return the hash of a phrase, uint64, from the hash `before` its last token, and the token.

    For one `before` no two tokens have the same hash. `before` is 0 at the beginning.
    """
    state = (before * _STEP) ^ np.uint64(token)
    state = (state ^ (state >> np.uint64(30))) * _FIRST_FACTOR
    state = (state ^ (state >> np.uint64(27))) * _SECOND_FACTOR
    return state ^ (state >> np.uint64(31))


@compiled
def hash_word(form: Any, size: Int) -> Int:
    """Hash the word form[:size], uint64, by chaining its bytes in eights; `form` has eight bytes more than the word."""
    state, at = np.uint64(0), np.int64(0)
    while at < size:
        unused = np.uint64(8 * max(np.int64(0), at + 8 - size))
        state = chain(state, load64(form, at) & (_ALL >> unused))
        at += 8
    return state


@compiled
def plain_word(data: Any, p: Int, end: Int) -> tuple[Int, Int]:
    """Read the word at data[p] as :func:`next_word` does, where it has ASCII letters alone: most words have.

    Returns:
        (where it ends, its hash); end -1 where :func:`next_word` has to read it.
    """
    q, state, run = p, np.uint64(0), np.int64(8)
    while run == 8:
        block = load64(data, q)
        run = min(np.int64(trailing_zeros(letters_of(block) ^ _TOP) >> 3), end - q)
        if run > 0:
            state = chain(state, (block | _CASE) & (_ALL >> np.uint64(64 - 8 * run)))
        q += run
    after = np.int64(data[q]) if q < end else np.int64(0)
    # What may follow within a word, the stop of an initial, and a word that is too long.
    if after >= 128 or after == 0x27 or (after == 0x2E and q == p + 1) or q == p or q > p + LONGEST:
        return np.int64(-1), state
    return q, state


WIDEST = 4  # code points that one is folded to; what needs more stays as it is
FOLDED = 0x30000  # code points; no later one is folded
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


@cache
def folding() -> I32:
    """Fold each code point by this Python's Unicode database: int32[n, 4], read-only.

    A row holds code points, and 0 behind the last. Code points from n on stay as they are.
    """
    every = np.zeros((FOLDED, WIDEST), np.int32)
    every[:, 0] = np.arange(FOLDED)
    for code in range(FOLDED):
        if 0xD800 <= code < 0xE000 or (code < 128 and not 65 <= code <= 90):
            continue
        char = chr(code)
        if unicodedata.category(char) in ("Cn", "Co", "Lo") and not unicodedata.decomposition(char):
            continue
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold()).translate(
            _PLAIN
        )
        letters = [ord(letter) for letter in plain if not unicodedata.combining(letter)]
        if len(letters) <= WIDEST:
            every[code] = [*letters, *[0] * (WIDEST - len(letters))]
    return read_only(every)


@inlined
def _fold(code: Int, fold: Any, form: Any, size: Int) -> Int:
    """Write the folded code point behind form[:size], and return the new size."""
    if code >= fold.shape[0]:
        return size + encode(code, form, size)
    for j in range(WIDEST):
        if fold[code, j] != 0:
            size += encode(fold[code, j], form, size)
    return size


@compiled
def next_word(data: Any, p: Int, end: Int, chars: Any, fold: Any, form: Any) -> tuple[Int, Int, Int, Int]:
    """Find the next normal word in data[p:end], and write it to `form`.

    Args:
        data: uint8[...], UTF-8.
        p: where to begin.
        end: where the text ends.
        chars: (stage, classes) of the character tables.
        fold: int32[n, 4], of :func:`folding`.
        form: uint8[FORM].

    Returns:
        (its beginning, its end, the end with its possessive or its initial's stop, its bytes in `form`: 0 if it is too long); all
        `end` and -1 if there is none.
    """
    stage, classes = chars
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
                size = _fold(code, fold, form, size)
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
    """Classify how the gap data[p:end] joins two words.

    Args:
        data: uint8[...], UTF-8.
        p: where the gap begins.
        end: where it ends.
        chars: (stage, classes) of the character tables.
        titled: whether the first word is a title, behind which a stop may stand.

    Returns:
        `JOINED` by spaces, a hyphen, a middle dot, or one of `_`, `^` and backtick; `APART` by a line break, more than
        `MOST_MARKS` marks or invalid UTF-8; else the marks there, as a number above 0.
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
    """Find the first piece of data[p:end], a normal word or its rest, and write it to `form`.

    In scripts without spaces a letter's vowel signs count, the marks that folding leaves. Marks of other letters never count.

    Args:
        data: uint8[...], UTF-8.
        p: where to begin.
        end: where the word ends.
        chars: (stage, classes) of the character tables.
        fold: int32[n, 4], of :func:`folding`.
        form: uint8[FORM].

    Returns:
        (where it begins, where its last letter or mark ends, where the next piece begins; its bytes in `form`, 0 where there is
        none, or one that is too long).
    """
    stage, classes = chars
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
        if size <= LONGEST and (kind != MARK or alone):
            size = _fold(code, fold, form, size)
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
        _, _, p, size = next_word(data, p, len(raw), (chars.stage, chars.classes), folding(), form)
        if size < 0:
            return words
        if size:
            words.append(form[:size].tobytes().decode())
