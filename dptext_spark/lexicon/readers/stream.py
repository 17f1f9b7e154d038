"""The bytes of a file, plain or gzipped, with a look ahead and a known place."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from dptext_spark.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"


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
