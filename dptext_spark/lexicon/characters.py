"""The class of each Unicode character for the tokenizer, and the case of words; one packaged table for every Python version.

A *word* is a maximal run of letters with their combining marks. One apostrophe or hyphen between two letters belongs to it, and
so do joiners and direction marks between two letters. Spaces, punctuation and symbols pass. Decimal digits form numbers. Every
other character counts as an unknown word: letter-like numbers, private use, unassigned, enclosed letters, symbols that spell,
marks without a letter, and control characters other than spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.arrays import I32, U8, Bools
from dptext_spark.errors import require_choice
from dptext_spark.runtime.jit import Int, compiled

Tokenizer = Literal["words", "whitespace"]
TOKENIZERS = ("words", "whitespace")

PASS, SPACE, LETTER, MARK, DIGIT, APOSTROPHE, HYPHEN, EXTEND, OTHER = range(9)
BLOCK = 128
# How a word is written: 0 lower, 1 Capitalised, 2 UPPER, 3 mixed (released in lower case).
LOWER, CAPITALISED, UPPER, MIXED = range(4)
FEW = 4  # a bit beside them: fewer than two letters have a capital


@dataclass(frozen=True, eq=False)
class Characters:
    """Two-stage tables over all code points, small enough to stay in the processor's cache.

    Attributes:
        stage: uint16[8704], the block of each 128 code points.
        classes: uint8[blocks * 128].
        lower: int32[blocks * 128], what to add to a code point for its lower case.
        upper: int32[blocks * 128], the same for upper case.
        zeros: int32[68], the digit zero of each decimal script, ascending.
        unicode_version: of the database that the table was made from.
    """

    stage: npt.NDArray[np.uint16]
    classes: U8
    lower: I32
    upper: I32
    zeros: I32
    unicode_version: str


@cache
def tables() -> Characters:
    """Return the packaged tables (read once a process)."""
    with (
        files("dptext_spark.lexicon").joinpath("characters.npz").open("rb") as stream,
        np.load(stream) as packed,
    ):
        starts = packed["starts"].astype(np.int64)
        classes = np.repeat(packed["classes"], np.diff(starts, append=0x110000))
        lower, upper = np.zeros(0x110000, np.int32), np.zeros(0x110000, np.int32)
        lower[packed["lower"][0]] = packed["lower"][1] - packed["lower"][0]
        small, capital = packed["upper"].astype(np.int64)
        # Only where lower case leads back: a word must be the same word in every case that it is written in.
        back = capital + lower[capital] == small
        upper[small[back]] = (capital - small)[back]
        zeros, version = packed["zeros"], str(packed["unicode_version"])
    rows = np.stack([classes.astype(np.int32), lower, upper], axis=1).reshape(-1, BLOCK * 3)
    unique, first, stage = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # so that ASCII, the first block, gets index 0
    stage = np.argsort(order)[stage.reshape(-1)]
    cells = unique[order].reshape(-1, 3)
    return Characters(
        stage=np.ascontiguousarray(stage, dtype=np.uint16),
        classes=np.ascontiguousarray(cells[:, 0], dtype=np.uint8),
        lower=np.ascontiguousarray(cells[:, 1]),
        upper=np.ascontiguousarray(cells[:, 2]),
        zeros=zeros,
        unicode_version=version,
    )


@compiled
def decode(data: Any, i: Int, end: Int) -> tuple[Int, Int]:
    """Decode one code point of `data` (uint8[:]) at `i` < `end`.

    Returns:
        (code point, bytes used); (-1, 1) where the bytes are no valid UTF-8 (overlong, surrogate, too large, cut off).
    """
    first = np.int64(data[i])
    if first < 0x80:
        return first, 1
    if first < 0xC2 or first > 0xF4:
        return np.int64(-1), 1
    length = 2 if first < 0xE0 else (3 if first < 0xF0 else 4)
    if i + length > end:
        return np.int64(-1), 1
    code = first & (0x7F >> length)
    for j in range(1, length):
        follower = np.int64(data[i + j])
        if follower & 0xC0 != 0x80:
            return np.int64(-1), 1
        code = (code << 6) | (follower & 0x3F)
    if length == 3 and (code < 0x800 or 0xD800 <= code < 0xE000):
        return np.int64(-1), 1
    if length == 4 and (code < 0x10000 or code > 0x10FFFF):
        return np.int64(-1), 1
    return code, length


@compiled
def encode(code: Int, out: Any, i: Int) -> Int:
    """Write `code` as UTF-8 to `out` (uint8[:]) at `i`; return the number of bytes."""
    if code < 0x80:
        out[i] = code
        return 1
    if code < 0x800:
        out[i] = 0xC0 | (code >> 6)
        out[i + 1] = 0x80 | (code & 0x3F)
        return 2
    if code < 0x10000:
        out[i] = 0xE0 | (code >> 12)
        out[i + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[i + 2] = 0x80 | (code & 0x3F)
        return 3
    out[i] = 0xF0 | (code >> 18)
    out[i + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[i + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[i + 3] = 0x80 | (code & 0x3F)
    return 4


@compiled
def cell(code: Int, stage: Any) -> Int:
    """Return the index of `code` in the tables' cells."""
    return np.int64(stage[code >> 7]) * 128 + (code & 127)


@compiled
def scan_word(data: Any, i: Int, end: Int, stage: Any, classes: Any) -> tuple[Int, Int]:
    """Find the end of the word whose first letter is at `i`.

    Returns:
        (end of the word, number of inner apostrophes and hyphens); (-1, 0) for invalid UTF-8 inside it.
    """
    stop, position, joiners, pending = i, i, 0, 0
    joined = False  # bytes between `stop` and `position` are one joiner, or extenders, awaiting a letter
    while position < end:
        code, length = decode(data, position, end)
        if code < 0:
            return (np.int64(-1), 0) if not joined else (stop, joiners)
        kind = classes[cell(code, stage)]
        if kind == LETTER:
            position += length
            stop, joined = position, False
            joiners += pending
            pending = 0
        elif kind == MARK and pending == 0:
            position += length
            stop, joined = position, False
        elif (kind == APOSTROPHE or kind == HYPHEN) and not joined:
            position += length
            joined, pending = True, 1
        elif kind == EXTEND and pending == 0:
            position += length
            joined = True
        else:
            break
    return stop, joiners


@compiled
def lower_into(data: Any, i: Int, end: Int, out: Any, stage: Any, lower: Any) -> Int:
    """Write the look-up form of data[i:end] (valid UTF-8) to `out`: lower case, U+2019 as an apostrophe.

    Returns:
        The number of bytes, or -1 where `out` is too short (4 bytes a character are enough).
    """
    n = 0
    position = i
    while position < end:
        if n + 4 > out.shape[0]:
            return -1
        code, length = decode(data, position, end)
        if code == 0x2019:
            code = np.int64(0x27)
        n += encode(code + lower[cell(code, stage)], out, n)
        position += length
    return n


def look_up_form(text: str) -> str:
    """Return the look-up form of a word: lower case by the packaged table, U+2019 as an apostrophe.

    Python's own lower case differs (a sigma at the end of a word, the dotted capital I), and would change the look-up.
    """
    table, raw = tables(), text.encode()
    form = np.empty(4 * len(raw) + 4, np.uint8)
    size = lower_into(np.frombuffer(bytearray(raw), np.uint8), 0, len(raw), form, table.stage, table.lower)
    return form[:size].tobytes().decode()


@compiled
def case_into(word: Any, size: Int, pattern: Int, out: Any, at: Int, stage: Any, upper: Any) -> Int:
    """Write word[:size] (lower case) to `out` at `at` in a case pattern; return the number of bytes."""
    n = 0
    position = 0
    while position < size:
        code, length = decode(word, position, size)
        if pattern == UPPER or (pattern == CAPITALISED and position == 0):
            code += upper[cell(code, stage)]
        n += encode(code, out, at + n)
        position += length
    return n


@compiled
def case_pattern(data: Any, i: Int, end: Int, low: Any, size: Int, stage: Any, upper: Any) -> Int:
    """Return the pattern that restores data[i:end] from its look-up form low[:size], or MIXED if none does; with `FEW`.

    U+2019 counts as an apostrophe. It is not carried over: an output with it would say that the input held one.
    """
    is_lower, is_capitalised, is_upper = True, True, True
    position, at, letters = i, 0, 0
    while position < end:
        code, length = decode(data, position, end)
        base, step = decode(low, at, size)
        if code == 0x2019:
            code = np.int64(0x27)
        raised = base + upper[cell(base, stage)]
        letters += raised != base
        is_lower = is_lower and code == base
        is_capitalised = is_capitalised and code == (raised if at == 0 else base)
        is_upper = is_upper and code == raised
        position += length
        at += step
    few = FEW if letters < 2 else 0
    if is_lower:
        return LOWER | few
    if is_capitalised:
        return CAPITALISED | few
    return (UPPER if is_upper else MIXED) | few


@compiled
def _producible(data: Any, offsets: Any, whitespace: bool, stage: Any, classes: Any, lower: Any) -> Any:
    """Per word: could the tokenizer cut it whole, and look it up in just this form?"""
    n = offsets.shape[0] - 1
    result = np.zeros(n, np.bool_)
    for w in range(n):
        start, end = offsets[w], offsets[w + 1]
        form = np.empty(4 * (end - start) + 4, np.uint8)
        good = end > start and data[end - 1] != 0  # a NUL at the end is lost in the padding of a look-up key
        position = start
        while good and position < end:
            code, length = decode(data, position, end)
            if code < 0 or (whitespace and classes[cell(code, stage)] == SPACE):
                good = False
            position += length
        if good and not whitespace:
            code, length = decode(data, start, end)
            good = (
                classes[cell(code, stage)] == LETTER and scan_word(data, start, end, stage, classes)[0] == end
            )
        if good:
            size = lower_into(data, start, end, form, stage, lower)
            good = size == end - start
            for j in range(size):
                if good and form[j] != data[start + j]:
                    good = False
        result[w] = good
    return result


def producible(words: pa.Array, tokenizer: Tokenizer = "words") -> Bools:
    """Return, for each entry of a lexicon, whether the tokenizer can ever look it up: bool[n].

    Args:
        words: string[n]; no NULLs.
        tokenizer: `words` (a maximal run of letters) or `whitespace` (anything between spaces).

    Raises:
        SettingsError: an unknown tokenizer.
    """
    require_choice("tokenizer", tokenizer, TOKENIZERS)
    table = tables()
    array = words.cast(pa.large_string()) if not pa.types.is_large_string(words.type) else words
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(buffers[2], dtype=np.uint8) if buffers[2] is not None else np.zeros(0, np.uint8)
    marks = _producible(data, offsets, tokenizer == "whitespace", table.stage, table.classes, table.lower)
    return np.asarray(marks, dtype=np.bool_)
