"""A list of words and phrases as it was given: entries in UTF-8, and what is refused before any of them is looked at."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.errors import DataError
from dptext_spark.randomness.draws import byte_view, is_bytes

MOST_ENTRIES = 20_000_000
LARGEST = 1 << 30  # bytes of a list
LONGEST_ENTRY = 1_000  # bytes
PADDING = 32
BLOCK = 1 << 20  # bytes that are looked at together before a file is read
AT_ONCE = 1 << 20  # entries that are decoded together


@dataclass(frozen=True, eq=False)
class WordList:
    """Entries of a list.

    Attributes:
        name: what errors call it; no entry is ever named.
        data: uint8[...], UTF-8, padded.
        bounds: int64[n + 1], entry i is data[bounds[i]:bounds[i + 1]].
        places: int64[n], which line or row of what was given each is, from 0.
    """

    name: str
    data: U8
    bounds: I64
    places: I64

    def __len__(self) -> int:
        """How many entries."""
        return len(self.places)

    @property
    def digest(self) -> str:
        """A plain sha256 of the entries in their order, which tells two readings apart; it is shown nowhere."""
        return hashlib.sha256(self.data.tobytes() + self.bounds.tobytes()).hexdigest()

    @classmethod
    def of(cls, name: str, entries: Sequence[bytes]) -> WordList:
        """Return entries as a list."""
        bounds = np.cumsum([0, *(len(entry) for entry in entries)]).astype(np.int64)
        data = np.frombuffer(b"".join(entries) + bytes(PADDING), np.uint8)
        return cls(name, data, bounds, np.arange(len(entries)))

    @classmethod
    def of_texts(cls, name: str, texts: pa.Array, *, needed: bool = True) -> WordList:
        """Return the texts of a column as a list; NULL and blank ones are no entries.

        Args:
            name: what errors call it.
            texts: string, large_string or binary [n].
            needed: refuse a column without an entry.

        Raises:
            DataError: a column that is no text, or without an entry, or an entry that is no UTF-8 or too long.
        """
        if not is_bytes(texts.type):
            raise DataError(f"{name}: a column of type {texts.type}; valid: a text column.")
        offsets, content = byte_view(texts.fill_null(b"" if pa.types.is_binary(texts.type) else ""))
        low, high = int(offsets[0]), int(offsets[-1])
        return cls._checked(name, content[low:high], offsets[:-1] - low, offsets[1:] - low, needed)

    @classmethod
    def read(cls, name: str, path: str) -> WordList:
        """Read a file of an entry a line; blank lines are none.

        Raises:
            DataError: it cannot be read, is empty or too large, or a line is no UTF-8 or too long.
        """
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                check_size(name, _lines(file), size, f" {path}")
                file.seek(0)
                data = np.fromfile(file, np.uint8, size)
        except OSError as error:
            raise DataError(f"{name}: {path} cannot be read ({error.strerror}).") from None
        if data[:3].tobytes() == b"\xef\xbb\xbf":
            data = data[3:]
        breaks = np.flatnonzero(data == 0x0A)
        return cls._checked(name, data, np.append(0, breaks + 1), np.append(breaks, len(data)), True)

    @classmethod
    def _checked(cls, name: str, data: U8, starts: I64, ends: I64, needed: bool) -> WordList:
        """Drop blank entries, and refuse what cannot be a list; what is made of each byte takes a byte."""
        places = np.flatnonzero(ends > starts)
        if len(places):
            # What stands between an entry and the next is blank.
            highest = np.maximum.reduceat(data, starts[places])
            places = places[highest > 0x20]
        starts, ends = starts[places], ends[places]
        if needed and not len(starts):
            raise DataError(f"{name}: no entry; valid: a word or phrase a line, at least one.")
        check_size(name, len(starts), 0)
        sizes = ends - starts
        if int(sizes.max(initial=0)) > LONGEST_ENTRY:
            first = int(np.argmax(sizes > LONGEST_ENTRY))
            raise DataError(
                f"{name}: entry {places[first] + 1:,} has {sizes[first]:,} bytes; valid: at most {LONGEST_ENTRY:,}."
            )
        bounds = np.append(0, np.cumsum(sizes))
        turns = np.zeros(len(data) + 1, np.int8)
        turns[starts] += 1
        turns[ends] -= 1
        taken = np.cumsum(turns[:-1], dtype=np.int8).view(np.bool_)
        packed = np.zeros(int(bounds[-1]) + PADDING, np.uint8)
        packed[: bounds[-1]] = data[taken]
        for first in range(0, len(places), AT_ONCE):
            part = bounds[first : first + AT_ONCE + 1]
            try:
                packed[part[0] : part[-1]].tobytes().decode("utf-8")
            except UnicodeDecodeError as error:
                wrong = first + int(np.searchsorted(part, part[0] + error.start, side="right")) - 1
                raise DataError(f"{name}: entry {places[wrong] + 1:,} is no UTF-8.") from None
        return cls(name, packed, bounds, places)


def check_size(name: str, entries: int, size: int, path: str = "") -> None:
    """Refuse what is too large for a list.

    Args:
        name: what errors call it.
        entries: how many it has.
        size: in bytes; 0 where that is not known.
        path: of a file, behind a space.

    Raises:
        DataError: more than `MOST_ENTRIES`, or more than `LARGEST` bytes.
    """
    if size > LARGEST:
        raise DataError(f"{name}:{path} holds {size:,} bytes; valid: at most {LARGEST:,}.")
    if entries > MOST_ENTRIES:
        raise DataError(f"{name}: {entries:,} entries; valid: at most {MOST_ENTRIES:,}.")


def _lines(file: BinaryIO) -> int:
    """Count the lines of a file that are not blank, a block of `BLOCK` bytes at a time, up to `LARGEST` bytes."""
    count, filled = 0, False
    for _ in range(0, LARGEST, BLOCK):
        block = np.frombuffer(file.read(BLOCK), np.uint8)
        if not len(block):
            break
        breaks = np.flatnonzero(block == 0x0A)
        starts = np.append(0, breaks + 1)
        held = np.maximum.reduceat(np.append(block, np.uint8(0)), starts) > 0x20
        held[0] |= filled
        count += int(held[:-1].sum())
        filled = bool(held[-1])
    return count + filled
