"""Choose the entries of a lexicon file that become words. The table grows as they come, and each number is stored once.

Every reader takes the bytes of a file, plain or gzipped. It hands over entries: blocks of keys with their vectors, in the
file's order. Every entry that is dropped is counted under exactly one reason.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F32, I64, U8
from dptext_spark.errors import DataError, file_errors
from dptext_spark.lexicon.characters import Tokenizer, producible
from dptext_spark.lexicon.vocabulary import Vocabulary

GZIP_MAGIC = b"\x1f\x8b"
Block = tuple[pa.Array, F32]
MOST_DIMENSIONS = 1 << 16


class ByteSource:
    """Reads a file from its beginning to its end, once.

    Attributes:
        total: bytes on disk.
        zipped: whether it is gzipped (by its first bytes, whatever its name).
        position: bytes handed out so far, after decompression.
    """

    def __init__(self, path: Path) -> None:
        """Open the file; :class:`DataError`: there is no such file, or it cannot be read."""
        with file_errors("vectors", path):
            self._file = path.open("rb")
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

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, or the rest, without using them up."""
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
            raise DataError(f"{self.path}: {kind} after {known:,} unpacked bytes.") from reason


@dataclass(frozen=True)
class VectorEntries:
    """The entries of a lexicon file, in order.

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
        raise DataError(f"{path}: {dimensions:,} dimensions are not valid. Choose 1 to {MOST_DIMENSIONS:,}.")


def keys_of(data: U8, offsets: I64) -> pa.Array:
    """Return large_string[n] over bytes that nobody has checked yet.

    Args:
        data: uint8[...], the keys one after the other.
        offsets: int64[n+1].
    """
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


GROWTH = 1.5
REASONS = ("unproducible", "not_in_vocabulary", "non_finite", "duplicates")  # 1 to 4, as ReadCounts has them


class Intake:
    """Takes blocks of entries, keeps those that pass, and counts the others by the first reason.

    `full`: the limit is reached; nothing more is taken.
    """

    def __init__(
        self, entries: VectorEntries, *, tokenizer: Tokenizer, wanted: pa.Array | None, limit: int | None
    ) -> None:
        """Prepare for the entries of a file.

        Args:
            entries: the file.
            tokenizer: whose words are kept.
            wanted: large_string, the only words to keep; None for all.
            limit: how many words to keep at most; None for all.
        """
        self._announced = entries.announced
        self._tokenizer = tokenizer
        self._wanted = wanted
        self._limit = limit
        rows = entries.likely if limit is None else min(entries.likely, limit)
        self._table = np.empty((rows, entries.dimensions), np.float32)
        self._words: list[pa.Array] = []
        self._seen: set[str] = set()
        self.read = 0
        self._dropped = np.zeros(4, np.int64)
        self.kept = 0
        self.full = False

    def add(self, keys: pa.Array, rows: F32) -> None:
        """Take one block.

        Args:
            keys: large_string[n], unchecked bytes.
            rows: float32[n, d]; copied.
        """
        passed = self._sieve(keys, rows)
        if self._limit is not None and self.kept + int((passed == 0).sum()) >= self._limit:
            last = np.flatnonzero(passed == 0)[self._limit - self.kept - 1]
            passed, self.full = passed[: last + 1], True
        chosen = np.flatnonzero(passed == 0)
        self.read += len(passed)
        self._dropped += np.bincount(passed, minlength=5)[1:]
        self._reserve(self.kept + len(chosen))
        self._table[self.kept : self.kept + len(chosen)] = rows[chosen]
        self._words.append(keys.take(pa.array(chosen)))
        self.kept += len(chosen)

    def finish(self) -> tuple[Vocabulary, F32, ReadCounts]:
        """Return the words, float32[kept, d] and the counts; the intake is used up."""
        vocabulary = Vocabulary.of(pa.chunked_array(self._words, pa.large_string()))
        self._table.resize((self.kept, self._table.shape[1]), refcheck=False)
        counts = ReadCounts(
            read=self.read,
            kept=self.kept,
            **dict(zip(REASONS, self._dropped.tolist(), strict=True)),
            over_limit=max(0, self._announced - self.read) if self.full and self._announced else 0,
            limit_reached=self.full,
        )
        return vocabulary, self._table, counts

    def account(self) -> str:
        """Return a phrase that says what became of the entries so far."""
        dropped = zip(REASONS, self._dropped.tolist(), strict=True)
        reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in dropped)
        return f"{self.read:,} entries read, {self.kept:,} usable ({reasons})"

    def _sieve(self, keys: pa.Array, rows: F32) -> I64:
        """Return int64[n]: 0 for an entry to keep, else the number of the reason to drop it."""
        reason = np.zeros(len(keys), np.int64)
        reason[~np.isfinite(rows).all(axis=1)] = 3
        if self._wanted is not None:
            reason[~pc.is_in(keys, value_set=self._wanted).to_numpy(zero_copy_only=False)] = 2
        reason[~producible(keys, self._tokenizer)] = 1
        left = np.flatnonzero(reason == 0)
        for index, word in zip(left.tolist(), keys.take(pa.array(left)).to_pylist(), strict=True):
            if word in self._seen:
                reason[index] = 4
            self._seen.add(word)
        return reason

    def _reserve(self, rows: int) -> None:
        """Make room for `rows` words; the table is enlarged in place where the system can."""
        if rows > len(self._table):
            more = max(rows, int(len(self._table) * GROWTH))
            if self._limit is not None:
                more = min(more, self._limit)
            self._table.resize((more, self._table.shape[1]), refcheck=False)


@dataclass(frozen=True)
class ReadCounts:
    """Counts of entries: `read` is the sum of `kept` and the four reasons that follow it.

    The reasons are tried in this order.

    Attributes:
        read: entries looked at.
        kept: entries that became words of the lexicon.
        unproducible: keys that the tokenizer can never produce, so neither inputs nor outputs; keys that are
            empty, hold an ASCII space or are no valid UTF-8 are among them.
        not_in_vocabulary: keys outside the given vocabulary.
        non_finite: vectors with a NaN or an infinity, or a number too large for float32.
        duplicates: keys that an earlier kept entry has: the first one wins.
        over_limit: entries that were not looked at because the limit was reached, where the file announces
            how many it holds (else 0); they are not part of `read`.
        limit_reached: as many words were kept as the limit allows, and reading stopped there.
    """

    read: int = 0
    kept: int = 0
    unproducible: int = 0
    not_in_vocabulary: int = 0
    non_finite: int = 0
    duplicates: int = 0
    over_limit: int = 0
    limit_reached: bool = False
