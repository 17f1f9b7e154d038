"""The bytes of a file, plain or gzipped, with a look ahead and a known place.

Every reader hands over entries: blocks of keys with their vectors, as the file holds them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F32, I64, U8
from dptext_spark.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
Block = tuple[pa.Array, F32]
MOST_DIMENSIONS = 1 << 16


class ByteSource:
    """Reads a file from its beginning to its end, once.

    Attributes:
        path: the file.
        total: bytes on disk.
        zipped: whether it is gzipped (by its first bytes, whatever its name).
        position: bytes handed out so far, after decompression.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            DataError: there is no such file, or it cannot be read.
        """
        try:
            self._file = path.open("rb")
        except OSError as reason:
            raise DataError(f"{path}: cannot be read ({reason.strerror}).") from reason
        self.path = path
        self.total = path.stat().st_size
        self.zipped = self._file.read(2) == GZIP_MAGIC
        self._file.seek(0)
        self._bytes = gzip.GzipFile(fileobj=self._file) if self.zipped else self._file
        self._ahead = b""
        self.position = 0

    def __enter__(self) -> ByteSource:
        """Return itself; the file is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._bytes.close()
        self._file.close()

    @property
    def done(self) -> int:
        """Bytes of the file on disk that were used so far."""
        return min(self._file.tell(), self.total)

    def rewound(self) -> BinaryIO:
        """Return the file on disk as it is, at its beginning, for readers that jump about in it."""
        self._file.seek(0)
        return self._file

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, or what is left, without using them up."""
        while len(self._ahead) < size:
            more = self._next(size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end.

        Raises:
            DataError: a damaged or truncated gzip file; the message says after how many bytes.
        """
        if self._ahead:
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            taken = self._next(size)
        self.position += len(taken)
        return taken

    def _next(self, size: int) -> bytes:
        try:
            return self._bytes.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as reason:
            known = self.position + len(self._ahead)
            kind = "a truncated gzip file" if isinstance(reason, EOFError) else "damaged gzip data"
            raise DataError(f"{self.path}: {kind}, after {known:,} unpacked bytes.") from reason


@dataclass(frozen=True)
class Entries:
    """The entries of one lexicon file, in order.

    Attributes:
        dimensions: d.
        announced: how many entries the file says that it holds; None where it does not say.
        likely: how many it may hold, to reserve memory for.
        blocks: (keys large_string[n], not checked to be UTF-8; rows float32[n, d], valid until the next
            block); raises :class:`~dptext_spark.errors.DataError` when it comes to a malformed entry.
    """

    dimensions: int
    announced: int | None
    likely: int
    blocks: Iterator[Block]


def check_dimensions(path: Path, dimensions: int) -> None:
    """Raise :class:`~dptext_spark.errors.DataError` for a number of dimensions that cannot be."""
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise DataError(f"{path}: {dimensions:,} dimensions; valid: 1 to {MOST_DIMENSIONS:,}.")


def keys_of(data: U8, offsets: I64) -> pa.Array:
    """Return large_string[n] over bytes that nobody has checked yet.

    Args:
        data: uint8[...], the keys one after the other.
        offsets: int64[n+1].
    """
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def keys_from(array: pa.Array) -> pa.Array:
    """Return large_string[n] with the bytes of a string or binary array, unchecked."""
    plain = array.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    start = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    return keys_of(np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), start)
