"""Decide what becomes of each word that was cut: looked up whole and, if it is unknown, in its parts; the engine's second phase.

Only tokens that change are listed; a kept word is part of the gap that it lies in. A clitic after an apostrophe is a stop
word. A single capital is Capitalised and UPPER at once: it is UPPER where the released word of two letters or more that stands
last before it in its text is; where there is none, where the first one is that begins in the text's first `OPENING` bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    CAPITALISED,
    FEW,
    HYPHEN,
    LOWER,
    UPPER,
    case_pattern,
    cell,
    decode,
    lower_into,
)
from dptext_spark.randomness import hash_bytes
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.word_table import CLITIC, STOP, find_long, find_short, key_of, slot_of

# What a listed token becomes: a lexicon id >= 0 is drawn; below 0 the codes.
MASKED_OOV, DRAWN_OOV, RANDOM_NUMBER, MASKED_NUMBER, LOWERED, IDENTIFIER = -1, -2, -3, -4, -5, -6
MASKED_BEYOND = -8  # -7 is punctuation where words are listed
KEPT = -10  # listed only until its case was seen
# What waits for its look-up.
FAST, AFTER_APOSTROPHE = -100, -101
OPENING = 1024
_FEW = np.int64(FEW) << np.int64(40)
_RAISED = np.int64(CAPITALISED ^ UPPER) << np.int64(40)
_UNTOLD = np.int64(-1)
# Columns of the per-row counters that cutting and settling fill.
WORDS, DRAWN, STOP_KEPT, OOV_WORDS, NUMBERS, INVALID = range(6)
# Columns of `options`: the policy in numbers.
KEEP_STOP, OOV_ACTION, NUMBER_ACTION, LOWER_CASE, HASH0, HASH1 = range(6)


@compiled
def emit(tokens: Any, n: Int, row: Int, start: Int, end: Int, code: Int, pattern: Int) -> Int:
    """List a token; return the number of tokens."""
    tokens[n, 0] = start
    tokens[n, 1] = end
    tokens[n, 2] = code
    tokens[n, 3] = row | (np.int64(pattern) << 40)
    return n + 1


@compiled
def _resolve(info: Int, size: Int, after_apostrophe: bool, counts: Any, row: Int, options: Any) -> Int:
    """Count a looked-up word and return its code: a lexicon id, `MASKED_OOV`, `DRAWN_OOV`, `LOWERED` or `KEPT`."""
    counts[row, WORDS] += 1
    keep = np.int64(KEPT) if options[LOWER_CASE] == 0 else np.int64(LOWERED)
    word = info & 0xFFFFFFFF if info >= 0 else np.int64(-1)
    flags = info >> 32 if info >= 0 else np.int64(0)
    if options[KEEP_STOP] == 1 and (flags & STOP or (after_apostrophe and flags & CLITIC)):
        counts[row, STOP_KEPT] += 1
        return keep
    if 0 <= word < size:
        counts[row, DRAWN] += 1
        return word
    counts[row, OOV_WORDS] += 1
    if options[OOV_ACTION] == 0:
        return np.int64(MASKED_OOV)
    return np.int64(DRAWN_OOV) if options[OOV_ACTION] == 1 else keep


@compiled
def behind_apostrophe(data: Any, i: Int, row_start: Int) -> Any:
    """Whether an apostrophe (U+0027 or U+2019) of the same row stands right before i."""
    if i > row_start and data[i - 1] == 0x27:
        return True
    return i >= row_start + 3 and data[i - 1] == 0x99 and data[i - 2] == 0x80 and data[i - 3] == 0xE2


@compiled
def look_up_form(form: Any, n: Int, table: Any) -> Int:
    """Look a form of n bytes up: (number | flags << 32), or -1."""
    cells, shift, slots, flags, word_bytes, offsets, _ = table
    if n <= 16:
        k0, k1 = key_of(form, n)
        # Keys are padded with zeros: a NUL at the end would be lost.
        return find_short(cells, shift, k0, k1) if k0 != 0 and form[n - 1] != 0 else np.int64(-1)
    word = find_long(form, n, slots, word_bytes, offsets)
    return word | (np.int64(flags[word]) << 32) if word >= 0 else np.int64(-1)


@compiled
def is_known(info: Int, size: Int, options: Any) -> Any:
    """Whether a look-up found a word to draw, or one to keep: a stop word that is drawn, but not in the lexicon, is unknown."""
    return info >= 0 and (options[KEEP_STOP] == 1 or (info & 0xFFFFFFFF) < size)


@compiled
def settle(data: Any, i: Int, end: Int, row: Int, row_start: Int, found: Any, chars: Any, work: Any) -> Int:
    """Decide on the looked-up word data[i:end] and list it if it changes; return the number of tokens."""
    tokens, content, counts, options, forms, n = work
    info, size, length = found
    code = _resolve(info, size, behind_apostrophe(data, i, row_start), counts, row, options)
    pattern = np.int64(LOWER)
    if code != MASKED_OOV:
        pattern = np.int64(case_pattern(data, i, end, forms[0], length, chars[0], chars[3]))
    if code == DRAWN_OOV:
        content[n, 0], content[n, 1] = hash_bytes(forms[0], 0, length, options[HASH0], options[HASH1])
    return emit(tokens, n, row, i, end, code, pattern)


@compiled
def part_end(data: Any, first: Int, end: Int, stage: Any, classes: Any) -> tuple[Int, Int]:
    """Return where the run data[first:...] before the next apostrophe or hyphen ends, and where the one behind it begins."""
    position = first
    while position < end:
        code, step = decode(data, position, end)
        kind = classes[cell(code, stage)]
        if kind == APOSTROPHE or kind == HYPHEN:
            return position, position + step
        position += step
    return position, position


@compiled
def settle_word(
    data: Any, i: Int, end: Int, row: Int, row_start: Int, parts: bool, table: Any, chars: Any, work: Any
) -> Int:
    """Look up the word data[i:end], list it or its parts, and return the number of tokens. The slow, general path."""
    tokens, content, counts, options, forms, n = work
    stage, classes, lower = chars[0], chars[1], chars[2]
    if forms.shape[1] < 4 * (end - i) + 16:
        forms = np.zeros((2, 4 * (end - i) + 16), np.uint8)
    length = lower_into(data, i, end, forms[0], stage, lower)
    info = look_up_form(forms[0], length, table)
    if is_known(info, table[6], options) or not parts:
        work = (tokens, content, counts, options, forms, n)
        return settle(data, i, end, row, row_start, (info, table[6], length), chars, work)
    # Unknown as a whole: each run between apostrophes and hyphens stands for itself.
    first = i
    while first < end:
        stop, following = part_end(data, first, end, stage, classes)
        if stop > first:
            length = lower_into(data, first, stop, forms[0], stage, lower)
            info = look_up_form(forms[0], length, table)
            work = (tokens, content, counts, options, forms, n)
            n = settle(data, first, stop, row, row_start, (info, table[6], length), chars, work)
        first = following
    return n


@compiled
def settle_unknown(row: Int, i: Int, end: Int, size: Int, data: Any, work: Any) -> Int:
    """Emit data[i:end], characters that spell but are no letters, as one unknown word; return the number of tokens."""
    tokens, content, counts, options, _, n = work
    code = _resolve(np.int64(-1), size, False, counts, row, options)
    if code > KEPT:
        if code == DRAWN_OOV:
            content[n, 0], content[n, 1] = hash_bytes(data, i, end, options[HASH0], options[HASH1])
        n = emit(tokens, n, row, i, end, code, FEW)
    return n


@compiled
def _probe(n: Int, cells: Any, shift: Int, tokens: Any, keys: Any, content: Any) -> None:
    """Note what the first slot of each waiting token holds: no branch waits for a cell, so that their loads overlap."""
    for i in range(n):
        code = tokens[i, 2]
        if code <= FAST:
            k0, k1 = keys[i, 0], keys[i, 1]
            slot = slot_of(k0, k1, shift)
            hit = np.uint64((cells[slot, 0] == k0) & (cells[slot, 1] == k1))
            content[i, 0] = cells[slot, 2] | (hit - np.uint64(1))


@compiled
def _follow(
    tokens: Any, kept: Int, place: Int, near: Any, listed: Any, told: Int, pending: Int
) -> tuple[Int, Int]:
    """Take in how a released word is written; return `told` and `pending` as they are after it.

    Args:
        tokens: int64[n, 4]; where the word is listed, it is tokens[kept].
        kept: how many tokens are listed before it.
        place: its last column.
        near: whether it begins in the `OPENING` of its text.
        listed: whether it is.
        told: whether the last word of two letters or more in the text is UPPER, `_UNTOLD` where there was none.
        pending: the number of the first single capital that waits for one, -1 where none does.
    """
    case = (place >> 40) & 3
    if place & _FEW == 0:
        if pending >= 0 and case == UPPER and near:
            for j in range(pending, kept):
                if tokens[j, 3] & _FEW and (tokens[j, 3] >> 40) & 3 == CAPITALISED:
                    tokens[j, 3] ^= _RAISED
        return np.int64(case == UPPER), np.int64(-1)
    if listed and case == CAPITALISED:
        if told == 1:
            tokens[kept, 3] ^= _RAISED
        elif told == _UNTOLD and pending < 0:
            pending = kept
    return told, pending


@compiled
def look_up(
    data: Any, bounds: Any, rows: Any, texts: Any, last: Any, n: Int, table: Any, counts: Any, options: Any, out: Any
) -> Int:  # fmt: skip
    """Resolve the waiting tokens of :func:`cut_words`, drop those that are kept, and return how many remain.

    Args:
        data: uint8[...], the batch, padded.
        bounds: int64[strips + 1].
        rows: int64[strips], the text of each strip.
        texts: int64[texts + 1], where each begins.
        last: int64[2], carried from block to block: a text (-1 before the first), and what its words told last of case.
        n: number of tokens.
        table: as in :func:`cut_words`; and `counts`, `options`, `out`.
        counts: added to.
        options: the policy in numbers.
        out: the tokens and what goes with them.
    """
    tokens, content, keys, _ = out
    cells, shift, size = table[0], table[1], table[6]
    keeps = options[KEEP_STOP] == 1
    plain = keeps and options[LOWER_CASE] == 0
    mask = np.int64(-1) if keeps else np.int64(0xFFFFFFFF)  # stop words that are drawn are words like any
    stops = np.int64(STOP) if plain else np.int64(0)
    _probe(n, cells, shift, tokens, keys, content)
    kept, strip, pending = np.int64(0), np.int64(-1), np.int64(-1)
    text, told = last[0], last[1]
    begin = texts[text] if text >= 0 else np.int64(0)
    for i in range(n):
        code, place, start = tokens[i, 2], tokens[i, 3], tokens[i, 0]
        row = place & 0xFFFFFFFF
        if row != strip:
            strip = row
            if rows[strip] != text:
                text, told, pending = rows[strip], _UNTOLD, np.int64(-1)
                begin = texts[text]
        if code <= FAST:
            info = np.int64(content[i, 0])
            if info < 0:
                info = find_short(cells, shift, keys[i, 0], keys[i, 1])
            if info >= 0:
                info &= mask
            flags = info >> 32
            if (info >= 0) & ((flags == stops) & (flags != 0) | (info < size)):
                # Drawn or kept cannot be predicted: written in either case, and overwritten if kept.
                stop = np.int64(flags != 0)
                counts[row, WORDS] += 1
                counts[row, DRAWN] += 1 - stop
                counts[row, STOP_KEPT] += stop
                tokens[kept, 0], tokens[kept, 1], tokens[kept, 2] = start, tokens[i, 1], info
                tokens[kept, 3] = place
                if told >= 0 and place & _FEW == 0:
                    told = np.int64((place >> 40) & 3 == UPPER)
                else:
                    near = start - begin < OPENING
                    told, pending = _follow(tokens, kept, place, near, stop == 0, told, pending)
                kept += 1 - stop
                continue
            quote = code == AFTER_APOSTROPHE and behind_apostrophe(data, start, bounds[row])
            code = _resolve(info, size, quote, counts, row, options)
            if code == DRAWN_OOV:
                form = keys[i].view(np.uint8)
                content[i, 0], content[i, 1] = hash_bytes(
                    form, 0, tokens[i, 1] - start, options[HASH0], options[HASH1]
                )
        if code > KEPT:
            tokens[kept, 0], tokens[kept, 1], tokens[kept, 2] = start, tokens[i, 1], code
            tokens[kept, 3] = place
            if code < 0:
                content[kept, 0], content[kept, 1] = content[i, 0], content[i, 1]
        if code >= 0 or code == DRAWN_OOV or code == LOWERED or code == KEPT:  # else its case is not released
            drawn = code >= 0 or code == DRAWN_OOV
            told, pending = _follow(tokens, kept, place, start - begin < OPENING, drawn, told, pending)
        kept += code > KEPT
    last[0], last[1] = text, told
    return kept
