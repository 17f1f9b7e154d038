"""Cut an Arrow string batch into words and gaps, and look the words up, in compiled loops (two of the engine's phases).

Only tokens that change are listed; gaps, punctuation and kept words are what lies between them. A word is looked up whole
and, if it is unknown, in its parts between apostrophes and hyphens; a clitic after an apostrophe is a stop word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.compiled import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.draws import hash_bytes
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    CAPITALISED,
    DIGIT,
    EXTEND,
    HYPHEN,
    LETTER,
    LOWER,
    MARK,
    MIXED,
    OTHER,
    SPACE,
    UPPER,
    case_pattern,
    cell,
    decode,
    lower_into,
    scan_word,
)
from dptext_spark.text.words import CLITIC, STOP, find_long, find_short, key_of

# What a listed token becomes: a lexicon id >= 0 is drawn; below 0 the codes.
MASKED_OOV, DRAWN_OOV, RANDOM_NUMBER, MASKED_NUMBER, LOWERED = -1, -2, -3, -4, -5
# Columns of the per-row counters that cutting fills.
WORDS, DRAWN, STOP_KEPT, OOV_WORDS, NUMBERS, INVALID = range(6)
# Columns of `options`: the policy in numbers.
KEEP_STOP, OOV_ACTION, NUMBER_ACTION, LOWER_CASE, HASH0, HASH1 = range(6)
FAST, AFTER_APOSTROPHE = -100, -101
CHUNK = 16  # digits drawn by one block
_ONES = np.uint64(0x0101010101010101)
_TOP = np.uint64(0x8080808080808080)
_CASE = np.uint64(0x2020202020202020)
_A, _Z = np.uint64(0x1F) * _ONES, np.uint64(0x05) * _ONES
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def letters_of(word: Int) -> Int:
    """Return bit 7 of each byte of `word` that is an ASCII letter."""
    low = (word | _CASE) & ~_TOP
    return (low + _A) & ~(low + _Z) & ~word & _TOP


@compiled
def _emit(tokens: Any, n: Int, row: Int, start: Int, end: Int, code: Int, pattern: Int) -> Int:
    tokens[n, 0] = start
    tokens[n, 1] = end
    tokens[n, 2] = code
    tokens[n, 3] = row | (np.int64(pattern) << 40)
    return n + 1


@compiled
def _resolve(info: Int, size: Int, after_apostrophe: bool, counts: Any, row: Int, options: Any) -> Int:
    """Count a looked-up word and return its code: a lexicon id, `MASKED_OOV`, `DRAWN_OOV`, `LOWERED`, or -10 (kept)."""
    counts[row, WORDS] += 1
    keep = np.int64(-10) if options[LOWER_CASE] == 0 else np.int64(LOWERED)
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
def _look_up(form: Any, n: Int, table: Any) -> Int:
    """Look a form of n bytes up: (number | flags << 32), or -1."""
    cells, shift, slots, flags, word_bytes, offsets, _ = table
    if n <= 16:
        k0, k1 = key_of(form, n)
        # Keys are padded with zeros: a NUL at the end would be lost.
        return find_short(cells, shift, k0, k1) if k0 != 0 and form[n - 1] != 0 else np.int64(-1)
    word = find_long(form, n, slots, word_bytes, offsets)
    return word | (np.int64(flags[word]) << 32) if word >= 0 else np.int64(-1)


@compiled
def _is_known(info: Int, size: Int, options: Any) -> Any:
    """Whether a look-up found a word to draw, or one to keep: a stop word that is drawn, but not in the lexicon, is unknown."""
    return info >= 0 and (options[KEEP_STOP] == 1 or (info & 0xFFFFFFFF) < size)


@compiled
def _after_apostrophe(data: Any, i: Int, row_start: Int) -> Any:
    """Whether an apostrophe (U+0027 or U+2019) of the same row stands right before i."""
    if i > row_start and data[i - 1] == 0x27:
        return True
    return i >= row_start + 3 and data[i - 1] == 0x99 and data[i - 2] == 0x80 and data[i - 3] == 0xE2


@compiled
def _settle(data: Any, i: Int, end: Int, row: Int, row_start: Int, found: Any, chars: Any, work: Any) -> Int:
    """Decide on the looked-up word data[i:end] and list it if it changes; return the number of tokens."""
    tokens, content, counts, options, forms, n = work
    info, size, length = found
    code = _resolve(info, size, _after_apostrophe(data, i, row_start), counts, row, options)
    if code > -10:
        pattern = np.int64(LOWER)
        if code >= 0 or code == DRAWN_OOV:
            pattern = np.int64(case_pattern(data, i, end, forms[0], length, chars[0], chars[3]))
        if code == DRAWN_OOV:
            content[n, 0], content[n, 1] = hash_bytes(forms[0], 0, length, options[HASH0], options[HASH1])
        n = _emit(tokens, n, row, i, end, code, pattern)
    return n


@compiled
def _word(
    data: Any, i: Int, end: Int, row: Int, row_start: Int, parts: bool, table: Any, chars: Any, work: Any
) -> Int:
    """Look up the word data[i:end], list it or its parts, and return the number of tokens. The slow, general path."""
    tokens, content, counts, options, forms, n = work
    stage, classes, lower = chars[0], chars[1], chars[2]
    if forms.shape[1] < 4 * (end - i) + 16:
        forms = np.zeros((2, 4 * (end - i) + 16), np.uint8)
    length = lower_into(data, i, end, forms[0], stage, lower)
    info = _look_up(forms[0], length, table)
    if _is_known(info, table[6], options) or not parts:
        work = (tokens, content, counts, options, forms, n)
        return _settle(data, i, end, row, row_start, (info, table[6], length), chars, work)
    # Unknown as a whole: each run between apostrophes and hyphens stands for itself.
    first, position = i, i
    while position <= end:
        joint, step = position == end, np.int64(1)
        if not joint:
            code, step = decode(data, position, end)
            kind = classes[cell(code, stage)]
            joint = kind == APOSTROPHE or kind == HYPHEN
        if joint:
            if position > first:
                length = lower_into(data, first, position, forms[0], stage, lower)
                info = _look_up(forms[0], length, table)
                work = (tokens, content, counts, options, forms, n)
                n = _settle(data, first, position, row, row_start, (info, table[6], length), chars, work)
            first = position + step
        position += step
    return n


@compiled
def _number(data: Any, i: Int, end: Int, row: Int, chars: Any, work: Any) -> tuple[Int, Int]:
    """Emit the run of decimal digits at i; return (number of tokens, end of the run)."""
    tokens, content, counts, options, _, n = work
    stage, classes = chars[0], chars[1]
    stop = i
    while stop < end:
        code, length = decode(data, stop, end)
        if code < 0 or classes[cell(code, stage)] != DIGIT:
            break
        stop += length
    counts[row, WORDS] += 1
    counts[row, NUMBERS] += 1
    if options[NUMBER_ACTION] == 1:
        n = _emit(tokens, n, row, i, stop, MASKED_NUMBER, 0)
    elif options[NUMBER_ACTION] == 0:
        h0, h1 = hash_bytes(data, i, stop, options[HASH0], options[HASH1])
        position, chunk = i, np.uint64(0)
        while position < stop:
            first = position
            for _ in range(CHUNK):
                if position < stop:
                    position += decode(data, position, stop)[1]
            content[n, 0], content[n, 1] = h0, h1 ^ (chunk << np.uint64(32)) ^ np.uint64(1 << 62)
            chunk += np.uint64(1)
            n = _emit(tokens, n, row, first, position, RANDOM_NUMBER, 0)
    return n, stop


@compiled
def _unknown(row: Int, i: Int, end: Int, size: Int, data: Any, work: Any) -> Int:
    """Emit data[i:end], characters that spell but are no letters, as one unknown word; return the number of tokens."""
    tokens, content, counts, options, _, n = work
    code = _resolve(np.int64(-1), size, False, counts, row, options)
    if code > -10:
        if code == DRAWN_OOV:
            content[n, 0], content[n, 1] = hash_bytes(data, i, end, options[HASH0], options[HASH1])
        n = _emit(tokens, n, row, i, end, code, 0)
    return n


@compiled
def cut_words(
    data: Any, bounds: Any, r0: Int, r1: Int, table: Any, chars: Any, counts: Any, options: Any, out: Any
) -> Int:
    """Cut rows r0..r1 by the `words` tokenizer.

    Args:
        data: uint8[...], at least 32 bytes longer than the last row.
        bounds: int64[rows + 1].
        r0: first row.
        r1: one past the last row.
        table: (cells, shift, slots, flags, word_bytes, offsets, V) of :class:`WordTable`.
        chars: (stage, classes, lower, upper) of the character tables.
        counts: int32[rows, 6], added to.
        options: uint64[6].
        out: (tokens int64[n, 4], content uint64[n, 2], keys uint64[n, 2], forms uint8[2, m]).

    Returns:
        The number of tokens. Those of the fast path carry the code `FAST` or `AFTER_APOSTROPHE` and wait in `keys` for
        :func:`look_up`.
    """
    tokens, content, keys, forms = out
    stage, classes = chars[0], chars[1]
    size = table[6]
    n = np.int64(0)
    for row in range(r0, r1):
        start, end = bounds[row], bounds[row + 1]
        p = start
        while p < end:
            c = data[p]
            if c < 128:
                kind = classes[c]
            else:
                code, length = decode(data, p, end)
                if code < 0:
                    counts[row, INVALID] += 1
                    p += 1
                    continue
                kind = classes[cell(code, stage)]
                if kind != LETTER and kind != DIGIT and kind != OTHER and kind != MARK:
                    p += length
                    continue
            if kind == LETTER:
                q = p
                if c < 128:
                    w = load64(data, p)
                    here = letters_of(w)
                    gap = here ^ _TOP
                    run = min(trailing_zeros(gap) >> 3, end - p)
                    second = np.uint64(0)
                    raised1 = np.uint64(0)
                    letters1 = np.uint64(0)
                    if run == 8 and end - p > 8:
                        second = load64(data, p + 8)
                        letters1 = letters_of(second)
                        more = min(trailing_zeros(letters1 ^ _TOP) >> 3, end - p - 8)
                        if more < 8:
                            keep = (np.uint64(1) << np.uint64(8 * more)) - np.uint64(1)
                            letters1 &= keep
                            raised1 = letters1 & ~(second << np.uint64(2))
                            second = (second | _CASE) & keep
                            run += more
                        else:
                            run = np.int64(99)  # 16 letters or more
                    if run <= 15:
                        q = p + run
                        simple = True
                        if q < end:
                            after = data[q]
                            if after >= 128:
                                code, length = decode(data, q, end)
                                other = classes[cell(code, stage)] if code >= 0 else SPACE
                                simple = not (
                                    other == LETTER
                                    or other == MARK
                                    or other == EXTEND
                                    or other == APOSTROPHE
                                    or other == HYPHEN
                                )
                            elif after == 0x27 or after == 0x2D:
                                simple = q + 1 == end or not (
                                    data[q + 1] >= 128 or classes[data[q + 1]] == LETTER
                                )
                        if simple:
                            keep = (np.uint64(1) << np.uint64(8 * run)) - np.uint64(1) if run < 8 else _ALL
                            letters0 = here & keep
                            raised0 = letters0 & ~(w << np.uint64(2))
                            keys[n, 0] = (w | _CASE) & keep
                            keys[n, 1] = second
                            if raised0 | raised1 == 0:
                                pattern = LOWER
                            elif raised0 == 0x80 and raised1 == 0:
                                pattern = CAPITALISED
                            elif raised0 == letters0 and raised1 == letters1:
                                pattern = UPPER
                            else:
                                pattern = MIXED
                            waiting = np.int64(FAST)
                            if p > start and (data[p - 1] == 0x27 or data[p - 1] == 0x99):
                                waiting = np.int64(AFTER_APOSTROPHE)
                            tokens[n, 0], tokens[n, 1] = p, q
                            tokens[n, 2] = waiting
                            tokens[n, 3] = row | (np.int64(pattern) << 40)
                            n += 1
                            p = q
                            continue
                q, joiners = scan_word(data, p, end, stage, classes)
                if q < 0:
                    counts[row, INVALID] += 1
                    break
                work = (tokens, content, counts, options, forms, n)
                n = _word(data, p, q, row, start, joiners > 0, table, chars, work)
                p = q
            elif kind == DIGIT:
                n, p = _number(data, p, end, row, chars, (tokens, content, counts, options, forms, n))
            elif kind == OTHER or kind == MARK:
                q = p
                while q < end:
                    code, length = decode(data, q, end)
                    if code < 0:
                        break
                    kind = classes[cell(code, stage)]
                    if kind != OTHER and kind != MARK:
                        break
                    q += length
                n = _unknown(row, p, q, size, data, (tokens, content, counts, options, forms, n))
                p = q
            else:
                p += 1
    return n


@compiled
def look_up(data: Any, bounds: Any, n: Int, table: Any, counts: Any, options: Any, out: Any) -> Int:
    """Resolve the waiting tokens of :func:`cut_words`, drop those that are kept, and return how many remain."""
    tokens, content, keys, _ = out
    cells, shift, size = table[0], table[1], table[6]
    keeps = options[KEEP_STOP] == 1
    plain = keeps and options[LOWER_CASE] == 0
    kept = np.int64(0)
    for i in range(n):
        code = tokens[i, 2]
        if code == FAST or code == AFTER_APOSTROPHE:
            row = tokens[i, 3] & 0xFFFFFFFF
            info = find_short(cells, shift, keys[i, 0], keys[i, 1])
            if info >= 0 and not keeps:
                info &= 0xFFFFFFFF  # stop words are words like any
            if 0 <= info < size:  # known, and no flags
                counts[row, WORDS] += 1
                counts[row, DRAWN] += 1
                code = info
            elif info >= 0 and (info >> 32) & STOP and plain:
                counts[row, WORDS] += 1
                counts[row, STOP_KEPT] += 1
                continue
            else:
                start = tokens[i, 0]
                quote = code == AFTER_APOSTROPHE and _after_apostrophe(data, start, bounds[row])
                code = _resolve(info, size, quote, counts, row, options)
                if code == DRAWN_OOV:
                    content[i, 0], content[i, 1] = _hash_key(keys, i, tokens[i, 1] - start, options)
        if code > -10:
            tokens[kept, 0], tokens[kept, 1], tokens[kept, 2] = tokens[i, 0], tokens[i, 1], code
            tokens[kept, 3] = tokens[i, 3]
            if code < 0:
                content[kept, 0], content[kept, 1] = content[i, 0], content[i, 1]
            kept += 1
    return kept


@compiled
def _hash_key(keys: Any, i: Int, size: Int, options: Any) -> tuple[Int, Int]:
    """Hash the unknown word whose look-up form is key i."""
    return hash_bytes(keys[i].view(np.uint8), 0, size, options[HASH0], options[HASH1])


@compiled
def cut_whitespace(
    data: Any, bounds: Any, r0: Int, r1: Int, table: Any, chars: Any, counts: Any, options: Any, out: Any
) -> Int:
    """Cut rows r0..r1 at spaces only; same arguments and result as :func:`cut_words`.

    A token is looked up whole. Unknown ones: all digits is a number, punctuation and symbols alone pass, the rest is an
    unknown word.
    """
    tokens, content, _, forms = out
    stage, classes = chars[0], chars[1]
    size = table[6]
    n = np.int64(0)
    for row in range(r0, r1):
        start, end = bounds[row], bounds[row + 1]
        p = start
        while p < end:
            q = p
            digits, spells = True, False
            while q < end:
                code, length = decode(data, q, end)
                if code < 0:
                    counts[row, INVALID] += 1
                    q = end
                    p = end
                    break
                kind = classes[cell(code, stage)]
                if kind == SPACE:
                    break
                digits = digits and kind == DIGIT
                spells = spells or kind == LETTER or kind == DIGIT or kind == OTHER or kind == MARK
                q += length
            if q == p:
                p = min(end, p + (decode(data, p, end)[1] if p < end else 1))
                continue
            work = (tokens, content, counts, options, forms, n)
            if forms.shape[1] < 4 * (q - p) + 16:
                forms = np.zeros((2, 4 * (q - p) + 16), np.uint8)
            info = _look_up(forms[0], lower_into(data, p, q, forms[0], stage, chars[2]), table)
            if _is_known(info, size, options) or (spells and not digits):
                n = _word(
                    data, p, q, row, start, False, table, chars, (tokens, content, counts, options, forms, n)
                )
            elif digits:
                n, _ = _number(data, p, q, row, chars, work)
            p = q
    return n
