"""The look-up table of the text engine: every word of the lexicon and every stop word, in one hash table.

A cell is 32 bytes: the first 16 bytes of the word, its number and its flags, so that a look-up touches one cache line.
Words of more than 16 bytes lie in a second table and are compared byte for byte. An ASCII word of up to 30 bytes has
a 32-byte output cell too: its length and its bytes, so that writing it is four unconditional 8-byte stores.
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
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.runtime.jit import Int, compiled, inlined, load64

CLITICS = ("s", "t", "d", "m", "ll", "re", "ve")
STOP, CLITIC = 1, 2
SHORT = 16
INLINE = 30
PADDING = 32  # bytes after the last word, which loads of 16 may touch
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
        extra = [word for word, found in zip(named, known, strict=True) if found < 0]
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
        """How far a 64-bit mix is shifted for a slot of `cells`."""
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
