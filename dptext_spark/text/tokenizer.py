"""Cut an Arrow string batch into words, numbers and gaps, in compiled loops; the first phase of the engine.

Words of up to 15 ASCII letters take a fast path, 8 bytes at a time. They wait for
:func:`~dptext_spark.text.word_table.look_up`. All others are settled where they are found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    CAPITALISED,
    DIGIT,
    EXTEND,
    FEW,
    HYPHEN,
    LETTER,
    LOWER,
    MARK,
    MIXED,
    OTHER,
    SPACE,
    UPPER,
    cell,
    decode,
    lower_into,
    scan_word,
)
from dptext_spark.randomness import hash_bytes
from dptext_spark.runtime.jit import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.text.word_table import (
    AFTER_APOSTROPHE,
    FAST,
    HASH0,
    HASH1,
    IDENTIFIER,
    INVALID,
    MASKED_NUMBER,
    NUMBER_ACTION,
    NUMBERS,
    RANDOM_NUMBER,
    WORDS,
    emit,
    is_known,
    look_up_form,
    settle_unknown,
    settle_word,
)

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
        n = emit(tokens, n, row, i, stop, MASKED_NUMBER, 0)
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
            n = emit(tokens, n, row, first, position, RANDOM_NUMBER, 0)
    return n, stop


@compiled
def cut_words(
    data: Any, bounds: Any, spans: Any, r0: Int, r1: Int, table: Any, chars: Any, counts: Any, options: Any, out: Any
) -> Int:  # fmt: skip
    """Cut strips r0..r1 by the `words` tokenizer; `row` is the number of a strip.

    Args:
        data: uint8[...], at least 32 bytes longer than the last strip.
        bounds: int64[strips + 1].
        spans: int64[strips] or int64[0], of :class:`~dptext_spark.text.chunks.Strips`: an identifier is one token.
        r0: first strip.
        r1: one past the last strip.
        table: (cells, shift, slots, flags, word_bytes, offsets, V) of :class:`WordTable`.
        chars: (stage, classes, lower, upper) of the character tables.
        counts: int32[strips, counters], the first six added to.
        options: uint64[7].
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
        if spans.shape[0] > 0 and spans[row] >= 0:
            n = emit(tokens, n, row, start, end, IDENTIFIER, 0)
            continue
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
                            tokens[n, 3] = row | ((np.int64(pattern) | (np.int64(run == 1) * FEW)) << 40)
                            n += 1
                            p = q
                            continue
                q, joiners = scan_word(data, p, end, stage, classes)
                if q < 0:
                    counts[row, INVALID] += 1
                    break
                work = (tokens, content, counts, options, forms, n)
                n = settle_word(data, p, q, row, start, joiners > 0, table, chars, work)
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
                n = settle_unknown(row, p, q, size, data, (tokens, content, counts, options, forms, n))
                p = q
            else:
                p += 1
    return n


@compiled
def cut_whitespace(
    data: Any, bounds: Any, spans: Any, r0: Int, r1: Int, table: Any, chars: Any, counts: Any, options: Any, out: Any
) -> Int:  # fmt: skip
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
        if spans.shape[0] > 0 and spans[row] >= 0:
            n = emit(tokens, n, row, start, end, IDENTIFIER, 0)
            continue
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
            info = look_up_form(forms[0], lower_into(data, p, q, forms[0], stage, chars[2]), table)
            if is_known(info, size, options) or (spells and not digits):
                n = settle_word(
                    data, p, q, row, start, False, table, chars, (tokens, content, counts, options, forms, n)
                )
            elif digits:
                n, _ = _number(data, p, q, row, chars, work)
            p = q
    return n
