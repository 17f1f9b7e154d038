"""The look-up table of the text engine, and the look-up of each word that was cut.

The table has every word of the lexicon and every stop word. A cell is 32 bytes: the first 16 bytes of the word, its number and
its flags. So a look-up touches one cache line. Words of more than 16 bytes lie in a second table and are compared byte for byte.
An ASCII word of up to 30 bytes has a 32-byte output cell too: its length and its bytes. So writing it is four unconditional
8-byte stores.

The look-up is the engine's second phase. It takes a word whole and, if that is unknown, in its parts. Only tokens that
change are listed; a kept word is part of the gap that it lies in. A clitic after an apostrophe is a stop word. A single
capital is Capitalised and UPPER at once. It is UPPER if the last released word of two letters or more before it in its
text is UPPER. Without such a word the first one that begins in the text's first `OPENING` bytes decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.arrays import I32, I64, U8, U64, ReadOnlyArrays
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
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.randomness import hash_bytes
from dptext_spark.runtime.jit import Int, compiled, inlined, load64

CLITICS = ("s", "t", "d", "m", "ll", "re", "ve")
STOP, CLITIC = 1, 2
SHORT = 16
INLINE = 30
PADDING = 32  # bytes after the last word, because loads of 16 bytes may touch them
PATIENCE = 64  # slots that a word of a stored table may be away from its first, on average
_MIX0, _MIX1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@inlined
def slot_of(k0: Int, k1: Int, shift: Int) -> Int:
    """Return the first slot of a 16-byte key."""
    mixed = (k0 * _MIX0) ^ ((k1 + k0) * _MIX1)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX0
    return np.int64(mixed >> np.uint64(shift))


@inlined
def find_short(cells: Any, shift: Int, k0: Int, k1: Int) -> Int:
    """Return (number | flags << 32) of the word with this key, or -1."""
    slot = slot_of(k0, k1, shift)
    mask = cells.shape[0] - 1
    while cells[slot, 0] != 0:
        if cells[slot, 0] == k0 and cells[slot, 1] == k1:
            return np.int64(cells[slot, 2])
        slot = (slot + 1) & mask
    return np.int64(-1)


@compiled
def _hash_long(data: Any, start: Int, end: Int) -> Int:
    state = np.uint64(end - start)
    for i in range(start, end):
        state = (state ^ np.uint64(data[i])) * _MIX0
        state ^= state >> np.uint64(32)
    return state


@compiled
def find_long(data: Any, size: Int, slots: Any, word_bytes: Any, offsets: Any) -> Int:
    """Return the number of the word data[:size] (more than 16 bytes), or -1."""
    mask = slots.shape[0] - 1
    slot = np.int64(_hash_long(data, 0, size) & np.uint64(mask))
    while slots[slot] >= 0:
        word = slots[slot]
        start = offsets[word]
        if offsets[word + 1] - start == size:
            same = True
            for j in range(size):
                if word_bytes[start + j] != data[j]:
                    same = False
                    break
            if same:
                return np.int64(word)
        slot = (slot + 1) & mask
    return np.int64(-1)


@compiled
def key_of(data: Any, size: Int) -> tuple[Int, Int]:
    """Return the two key halves of data[:size], size <= 16; `data` holds at least 16 bytes."""
    k0, k1 = load64(data, np.int64(0)), load64(data, np.int64(8))
    if size < 8:
        k0 &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        k1 = np.uint64(0)
    elif size < 16:
        k1 &= (np.uint64(1) << np.uint64(8 * (size - 8))) - np.uint64(1)
    return k0, k1


@compiled
def _fill(word_bytes: Any, offsets: Any, flags: Any, cells: Any, shift: Int, slots: Any) -> None:
    key = np.zeros(16, np.uint8)
    mask = cells.shape[0] - 1
    long_mask = slots.shape[0] - 1
    for word in range(offsets.shape[0] - 1):
        start, end = offsets[word], offsets[word + 1]
        size = end - start
        if size <= SHORT:
            key[:] = 0
            for j in range(size):
                key[j] = word_bytes[start + j]
            k0, k1 = key_of(key, size)
            if k0 == 0 or word_bytes[end - 1] == 0:
                continue  # a key is padded with zeros: a NUL at the end would be lost
            slot = slot_of(k0, k1, shift)
            while cells[slot, 0] != 0:
                slot = (slot + 1) & mask
            cells[slot, 0], cells[slot, 1] = k0, k1
            cells[slot, 2] = np.uint64(word) | (np.uint64(flags[word]) << np.uint64(32))
        else:
            slot = np.int64(_hash_long(word_bytes, start, end) & np.uint64(long_mask))
            while slots[slot] >= 0:
                slot = (slot + 1) & long_mask
            slots[slot] = word


@compiled
def _output_cells(word_bytes: Any, offsets: Any, words: Int) -> Any:
    out = np.zeros((words, 32), np.uint8)
    for word in range(words):
        start, end = offsets[word], offsets[word + 1]
        ascii_only = True
        for j in range(start, end):
            ascii_only = ascii_only and word_bytes[j] < 128
        if ascii_only and end - start <= INLINE:
            out[word, 0] = end - start
            for j in range(end - start):
                out[word, 2 + j] = word_bytes[start + j]
    return out


@dataclass(frozen=True, eq=False)
class WordTable(ReadOnlyArrays):
    """Arrays of the table.

    Attributes:
        cells: uint64[2^n, 4]: key, key, number | flags << 32, unused.
        slots: int32[2^m], numbers of the words over 16 bytes; -1 is empty.
        flags: uint8[W], `STOP` and `CLITIC` bits of each word.
        word_bytes: uint8[...] and offsets: int64[W + 1]: the lexicon's V words, then stop words that it lacks.
        outputs: uint8[V, 32], the output cells; length 0 sends the writer to `word_bytes`.
        size: int64[1], V.
    """

    cells: U64
    slots: I32
    flags: U8
    word_bytes: U8
    offsets: I64
    outputs: U8
    size: I64

    @classmethod
    def build(cls, vocabulary: Vocabulary, stop_words: Iterable[str]) -> WordTable:
        """Build the table of a vocabulary and a stop-word list (in look-up form: lower case, ASCII apostrophes)."""
        # Where texts are tokenized already, a clitic comes with its apostrophe: " 's", " 've".
        stop = list(dict.fromkeys([*stop_words, *(f"'{clitic}" for clitic in CLITICS)]))
        named = list(dict.fromkeys([*stop, *CLITICS]))
        known = vocabulary.ids(pa.array(named, pa.string()))
        extra = [word for word, number in zip(named, known, strict=True) if number < 0]
        position = {word: len(vocabulary) + i for i, word in enumerate(extra)}
        encoded = [word.encode() for word in extra]
        ends = vocabulary.offsets[-1] + np.cumsum([len(word) for word in encoded], dtype=np.int64)
        offsets = np.concatenate([np.asarray(vocabulary.offsets, np.int64), ends]).astype(np.int64)
        tail = np.frombuffer(b"".join(encoded) + bytes(PADDING), dtype=np.uint8)
        word_bytes = np.concatenate([np.asarray(vocabulary.data)[: int(vocabulary.offsets[-1])], tail])
        flags = np.zeros(len(offsets) - 1, np.uint8)
        numbers = {word: int(i) if i >= 0 else position[word] for word, i in zip(named, known, strict=True)}
        for word in stop:
            flags[numbers[word]] |= STOP
        for word in CLITICS:
            flags[numbers[word]] |= CLITIC
        sizes = np.diff(offsets)
        bits = max(4, int(1.25 * (sizes <= SHORT).sum()).bit_length())
        long_bits = max(2, int(2 * (sizes > SHORT).sum()).bit_length())
        cells = np.zeros((1 << bits, 4), np.uint64)
        slots = np.full(1 << long_bits, -1, np.int32)
        _fill(word_bytes, offsets, flags, cells, 64 - bits, slots)
        outputs = _output_cells(word_bytes, offsets, len(vocabulary))
        return cls(cells, slots, flags, word_bytes, offsets, outputs, np.array([len(vocabulary)], np.int64))

    @property
    def shift(self) -> int:
        """Shift of a 64-bit mix for a slot of `cells`."""
        return 64 - (int(self.cells.shape[0]).bit_length() - 1)

    @property
    def lookup(self) -> tuple[Any, ...]:
        """The arrays as compiled loops take them: (cells, shift, slots, flags, word_bytes, offsets, V)."""
        return (
            self.cells, self.shift, self.slots, self.flags, self.word_bytes, self.offsets, int(self.size[0])
        )  # fmt: skip

    def beyond(self) -> tuple[str, ...]:
        """Return the words after the lexicon's: stop words that it lacks, in their order."""
        places = self.offsets[int(self.size[0]) :]
        data = np.asarray(self.word_bytes)
        return tuple(data[a:b].tobytes().decode() for a, b in pairwise(places))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> WordTable:
        """Build again from :meth:`arrays`."""
        return cls(**{f.name: arrays[f.name] for f in fields(cls)})


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
    """Check whether an apostrophe (U+0027 or U+2019) of the same row is right before i."""
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
    """Check that a look-up found a word to draw or keep. A drawn stop word that the lexicon lacks is unknown."""
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
    """Find the end of the run data[first:...] before the next apostrophe or hyphen, and the beginning of the run behind."""
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
    # Unknown as a whole: each run between apostrophes and hyphens is a word of its own.
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
    """Note the first slot's content for each waiting token. No branch waits for a cell, so their loads overlap."""
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

    Where the word is listed, it is tokens[kept], and `place` its last column. `near`: it begins in the `OPENING` of its text.
    `told`: whether the last word of two letters or more in the text is UPPER, `_UNTOLD` where there was none. `pending` is the
    number of the first single capital that waits for one, -1 where none does.
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
    remaining, strip, pending = np.int64(0), np.int64(-1), np.int64(-1)
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
                tokens[remaining, 0], tokens[remaining, 1], tokens[remaining, 2] = start, tokens[i, 1], info
                tokens[remaining, 3] = place
                if told >= 0 and place & _FEW == 0:
                    told = np.int64((place >> 40) & 3 == UPPER)
                else:
                    near = start - begin < OPENING
                    told, pending = _follow(tokens, remaining, place, near, stop == 0, told, pending)
                remaining += 1 - stop
                continue
            quote = code == AFTER_APOSTROPHE and behind_apostrophe(data, start, bounds[row])
            code = _resolve(info, size, quote, counts, row, options)
            if code == DRAWN_OOV:
                form = keys[i].view(np.uint8)
                content[i, 0], content[i, 1] = hash_bytes(
                    form, 0, tokens[i, 1] - start, options[HASH0], options[HASH1]
                )
        if code > KEPT:
            tokens[remaining, 0], tokens[remaining, 1], tokens[remaining, 2] = start, tokens[i, 1], code
            tokens[remaining, 3] = place
            if code < 0:
                content[remaining, 0], content[remaining, 1] = content[i, 0], content[i, 1]
        if code >= 0 or code == DRAWN_OOV or code == LOWERED or code == KEPT:  # else its case is not released
            drawn = code >= 0 or code == DRAWN_OOV
            told, pending = _follow(tokens, remaining, place, start - begin < OPENING, drawn, told, pending)
        remaining += code > KEPT
    last[0], last[1] = text, told
    return remaining
