"""A list of words and phrases as it was given: entries in UTF-8, and what is refused before any of them is looked at."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.errors import DataError
from dptext_spark.randomness.draws import byte_view, is_bytes

MOST_ENTRIES = 20_000_000
LARGEST = 1 << 30  # bytes of a list
LONGEST_ENTRY = 1_000  # bytes
PADDING = 32


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
            size = os.stat(path).st_size
            if size > LARGEST:
                raise DataError(f"{name}: {path} holds {size:,} bytes; valid: at most {LARGEST:,}.")
            data = np.fromfile(path, np.uint8)
        except OSError as error:
            raise DataError(f"{name}: {path} cannot be read ({error.strerror}).") from None
        if data[:3].tobytes() == b"\xef\xbb\xbf":
            data = data[3:]
        breaks = np.flatnonzero(data == 0x0A)
        return cls._checked(name, data, np.append(0, breaks + 1), np.append(breaks, len(data)), True)

    @classmethod
    def _checked(cls, name: str, data: U8, starts: I64, ends: I64, needed: bool) -> WordList:
        """Drop blank entries, and refuse what cannot be a list."""
        filled = np.append(0, np.cumsum(data > 0x20))
        places = np.flatnonzero(filled[ends] > filled[starts])
        starts, ends = starts[places], ends[places]
        if needed and not len(starts):
            raise DataError(f"{name}: no entry; valid: a word or phrase a line, at least one.")
        if len(starts) > MOST_ENTRIES:
            raise DataError(f"{name}: {len(starts):,} entries; valid: at most {MOST_ENTRIES:,}.")
        sizes = ends - starts
        if int(sizes.max(initial=0)) > LONGEST_ENTRY:
            first = int(np.argmax(sizes > LONGEST_ENTRY))
            raise DataError(
                f"{name}: entry {places[first] + 1:,} has {sizes[first]:,} bytes; valid: at most {LONGEST_ENTRY:,}."
            )
        bounds = np.append(0, np.cumsum(sizes))
        taken = np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])
        packed = np.append(data[taken], np.zeros(PADDING, np.uint8))
        try:
            packed.tobytes().decode("utf-8")
        except UnicodeDecodeError as error:
            first = int(np.searchsorted(bounds, error.start, side="right")) - 1
            raise DataError(f"{name}: entry {places[first] + 1:,} is no UTF-8.") from None
        return cls(name, packed, bounds, places)
