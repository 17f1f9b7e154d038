"""Put a batch together again: gaps and kept words as they were, listed tokens replaced, the case carried over.

The other two phases of the engine: what each draw is for (blocks), and the rebuilding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.arrays import I32, U64
from dptext_spark.lexicon.characters import (
    CAPITALISED,
    LOWER,
    MIXED,
    SPACE,
    UPPER,
    case_into,
    cell,
    decode,
    encode,
)
from dptext_spark.runtime.jit import Int, compiled, inlined, load64, mul_high, prefetch, store64
from dptext_spark.text.tokenizer import letters_of
from dptext_spark.text.word_table import (
    DRAWN_OOV,
    IDENTIFIER,
    LOWERED,
    MASKED_BEYOND,
    MASKED_OOV,
    RANDOM_NUMBER,
)

# Columns of the per-row counters that rebuilding fills.
CHANGED, SAME, DISTINCT = 6, 7, 8
TOKEN, RECORD, DATASET = range(3)
SLACK = 64
AHEAD = 12  # how many words ahead an output cell is asked for
_WORD = np.uint64(1 << 63)


def word_blocks(ids: I32) -> U64:
    """Return the blocks of words at dataset level, uint64[n, 2], as :func:`assign_blocks` makes them."""
    return np.stack([ids.astype(np.uint64), np.full(len(ids), _WORD)], axis=1)


@compiled
def assign_blocks(
    tokens: Any,
    n: Int,
    content: Any,
    bounds: Any,
    rows: Any,
    identity: Any,
    level: Int,
    ids: Any,
    blocks: Any,
    others: Any,
) -> tuple[Int, Int]:
    """Fill the block of each draw (concepts/mechanisms, Draws); return (number of known words, of others).

    A block is identity XOR content. The identity is nothing, the row's or the record's, by `level`. The content is the word:
    its id, or a keyed hash of 122 bits for an unknown word or number. At token level the byte position in the row is added.

    Args:
        tokens: int64[n, 4].
        n: number of tokens.
        content: uint64[n, 2], hashes of unknown words and numbers.
        bounds: int64[rows + 1], of the rows.
        rows: int64[strips], the row of each strip.
        identity: uint64[rows, 2] (one row at dataset level).
        level: TOKEN, RECORD or DATASET.
        ids: int32[n], filled with the known words.
        blocks: uint64[n, 2], filled for the known words.
        others: uint64[n, 2], filled for unknown words and numbers that are drawn.
    """
    known, other = 0, 0
    for i in range(n):
        code = tokens[i, 2]
        if code < 0 and code != DRAWN_OOV and code != RANDOM_NUMBER:
            continue
        row = rows[tokens[i, 3] & 0xFFFFFFFF]
        a, b = np.uint64(0), np.uint64(0)
        if level != DATASET:
            a, b = identity[row, 0], identity[row, 1]
        if level == TOKEN:
            b ^= np.uint64(tokens[i, 0] - bounds[row])
        if code >= 0:
            ids[known] = code
            blocks[known, 0], blocks[known, 1] = a ^ np.uint64(code), b ^ _WORD
            known += 1
        else:
            others[other, 0], others[other, 1] = a ^ content[i, 0], b ^ content[i, 1]
            other += 1
    return known, other


@compiled
def _upper_ascii(out: Any, at: Int, size: Int) -> None:
    for i in range(0, size, 8):
        w = load64(out, at + i)
        store64(out, at + i, w & ~(letters_of(w) >> np.uint64(2)))


@compiled
def _put_long_word(
    word: Int, pattern: Int, word_bytes: Any, offsets: Any, stage: Any, upper: Any, out: Any, at: Int
) -> Int:
    """Write a lexicon word that has no output cell (not ASCII, or over 30 bytes); return where it ends."""
    start = offsets[word]
    shape = LOWER if pattern == MIXED else pattern
    size = offsets[word + 1] - start
    return at + case_into(word_bytes[start : start + size], size, shape, out, at, stage, upper)


@inlined
def _put_word(word: Int, pattern: Int, outputs: Any, out: Any, at: Int) -> Int:
    """Write a lexicon word from its output cell in a case pattern; return its size, 0 without a cell."""
    cell_at = np.int64(word) * 32
    size = np.int64(outputs[cell_at])
    first = load64(outputs, cell_at + 2)
    letter = first & np.uint64(0xFF)
    raised = (pattern == CAPITALISED) & (letter >= np.uint64(97)) & (letter <= np.uint64(122))
    store64(out, at, first - (np.uint64(raised) << np.uint64(5)))
    store64(out, at + 8, load64(outputs, cell_at + 10))
    # All 30 bytes, whatever the size: a branch here cost 40 % of the rebuilding.
    store64(out, at + 16, load64(outputs, cell_at + 18))
    store64(out, at + 22, load64(outputs, cell_at + 24))
    if pattern == UPPER:
        _upper_ascii(out, at, size)
    return size


@compiled
def _put_digits(
    data: Any, i: Int, end: Int, u0: Int, u1: Int, zeros: Any, out: Any, at: Int
) -> tuple[Int, bool]:
    """Write up to 16 uniform digits in the script of data[i:end]; return (where they end, whether any differs)."""
    state, position, count, changed = u0, i, 0, False
    while position < end:
        if count == 8:
            state = u1
        code, length = decode(data, position, end)
        zero = zeros[np.searchsorted(zeros, code, side="right") - 1]
        digit = np.int64(mul_high(state, np.uint64(10)))
        state = state * np.uint64(10)
        at += encode(zero + digit, out, at)
        changed = changed or zero + digit != code
        position += length
        count += 1
    return at, changed


@compiled
def _flush_space(space: Any, out: Any, at: Int, start: Int) -> Int:
    """Write the space that is owed, unless the row has not begun."""
    if space[0] == 1:
        space[0] = 0
        if at > start:
            out[at] = 32
            return at + 1
    return at


@inlined
def _copy_gap(data: Any, i: Int, end: Int, out: Any, at: Int) -> Int:
    """Copy data[i:end] and return where it ends. Reads and writes up to 32 bytes past that."""
    # Most gaps are shorter than 32; how many steps of 8 one takes could not be predicted.
    store64(out, at, load64(data, i))
    store64(out, at + 8, load64(data, i + 8))
    store64(out, at + 16, load64(data, i + 16))
    store64(out, at + 24, load64(data, i + 24))
    for j in range(32, end - i, 8):
        store64(out, at + j, load64(data, i + j))
    return at + (end - i)


@compiled
def _normalise_gap(
    data: Any, i: Int, end: Int, space: Any, stage: Any, classes: Any, out: Any, at: Int, start: Int
) -> Int:
    """Copy data[i:end] with runs of spaces as one; return where it ends. `space[0]`: one is owed.

    Joiners stay, although they are invisible: they hold emoji together. A mark behind a removed joiner would become
    part of the word before.
    """
    while i < end:
        code, length = decode(data, i, end)
        kind = classes[cell(code, stage)] if code >= 0 else SPACE
        if kind == SPACE:
            space[0] = 1
        else:
            at = _flush_space(space, out, at, start)
            for j in range(length):
                out[at + j] = data[i + j]
            at += length
        i += length
    return at


@compiled
def rebuild(
    data: Any, bounds: Any, rows: Any, r0: Int, r1: Int, tokens: Any, n: Int, drawn: Any, other_draws: Any,
    remap: Any, table: Any, chars: Any, masks: Any, identifiers: Any, normalise: bool, shapes: Int, counts: Any, stamp: Any,
    carried: Any, out: Any, at: Int, out_bounds: Any,
) -> Int:  # fmt: skip
    """Write strips r0..r1 to `out`; return where the last one ends.

    Args:
        data: uint8[...], the batch, padded.
        bounds: int64[strips + 1].
        rows: int64[strips], the row of each strip.
        r0: first strip.
        r1: one past the last strip.
        tokens: int64[n, 4], the listed tokens of these strips, in order.
        n: number of tokens.
        drawn: int32[known], the outputs of the known words, in order.
        other_draws: uint64[others, 2], the draws of unknown words and numbers, in order.
        remap: int32[V], the word that is released for each word that an unknown word draws; int32[0]: the drawn word.
        table: (word_bytes, offsets, outputs uint8[V * 32]) of the word table.
        chars: (stage, classes, lower, upper, zeros).
        masks: (uint8[...], uint8[...], uint8[...]), the replacements of unknown words, numbers, and words beyond a budget.
        identifiers: (spans of the strips, int64[...]; replacements, uint8[...]; their bounds, int64[k + 1]; int64[k, 2], filled
            with where each is written).
        normalise: whether gaps are normalised.
        shapes: which bits of a case pattern are carried over: 3, or 0 for lower case only.
        counts: int32[strips, counters], added to.
        stamp: int32[V], the row (plus 1) that drew a word last.
        carried: int64[2], state for a row's next strip: whether a space is owed, and where the row begins.
        out: uint8[...], with room for the strips and `SLACK` more.
        at: where to begin.
        out_bounds: int64[strips + 1], filled for r0 + 1..r1.
    """
    word_bytes, offsets, outputs = table
    stage, classes, upper, zeros = chars[0], chars[1], chars[3], chars[4]
    t, k, o = 0, 0, 0
    last = drawn.shape[0] - 1
    words = np.uint64(outputs.shape[0] // 32)
    for strip in range(r0, r1):
        position, end, row = bounds[strip], bounds[strip + 1], rows[strip]
        if strip == 0 or rows[strip - 1] != row:
            carried[0], carried[1] = 0, at
        begin = carried[1]
        same, changed, distinct = 0, 0, 0
        # A number of over 16 digits is several tokens, but one word.
        number_end, number_changed = np.int64(-1), False
        while t < n and (tokens[t, 3] & 0xFFFFFFFF) == strip:
            start, stop, code = tokens[t, 0], tokens[t, 1], tokens[t, 2]
            pattern = (tokens[t, 3] >> 40) & shapes
            if normalise:
                at = _normalise_gap(data, position, start, carried, stage, classes, out, at, begin)
                at = _flush_space(carried, out, at, begin)
            else:
                at = _copy_gap(data, position, start, out, at)
            if code >= 0:
                ahead = min(k + AHEAD, last)
                prefetch(outputs, np.int64(drawn[ahead]) * 32)
                word = drawn[k]
                k += 1
                same += word == code
                changed += word != code
                distinct += stamp[code] != row + 1
                stamp[code] = row + 1
                size = _put_word(word, pattern, outputs, out, at)
                if size == 0:
                    size = _put_long_word(word, pattern, word_bytes, offsets, stage, upper, out, at) - at
                at += size
            elif code == LOWERED:
                # Every character by the lower-case table; a kept word's apostrophes stay as they are.
                at += case_into(data[start:stop], stop - start, UPPER, out, at, stage, chars[2])
            elif code == DRAWN_OOV:
                word = np.int64(mul_high(other_draws[o, 0], words))
                if remap.shape[0] > 0:
                    word = np.int64(remap[word])
                o += 1
                changed += 1
                size = _put_word(word, pattern, outputs, out, at)
                if size == 0:
                    size = _put_long_word(word, pattern, word_bytes, offsets, stage, upper, out, at) - at
                at += size
            elif code == RANDOM_NUMBER:
                at, differs = _put_digits(
                    data, start, stop, other_draws[o, 0], other_draws[o, 1], zeros, out, at
                )
                o += 1
                number_changed = number_changed and start == number_end
                changed += differs and not number_changed
                number_changed = number_changed or differs
                number_end = stop
            elif code == IDENTIFIER:
                span = identifiers[0][strip]
                identifiers[3][span, 0] = at
                for j in range(identifiers[2][span], identifiers[2][span + 1]):
                    out[at] = identifiers[1][j]
                    at += 1
                identifiers[3][span, 1] = at
            else:
                mask = masks[0] if code == MASKED_OOV else (masks[2] if code == MASKED_BEYOND else masks[1])
                for j in range(mask.shape[0]):
                    out[at + j] = mask[j]
                at += mask.shape[0]
                changed += 1
            position = stop
            t += 1
        if normalise:
            at = _normalise_gap(data, position, end, carried, stage, classes, out, at, begin)
        else:
            at = _copy_gap(data, position, end, out, at)
        out_bounds[strip + 1] = at
        counts[strip, SAME] += same
        counts[strip, CHANGED] += changed
        counts[strip, DISTINCT] += distinct
    return at
