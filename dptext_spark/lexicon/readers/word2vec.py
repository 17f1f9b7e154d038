"""word2vec's binary form: a header line, then each key, one space and d little-endian float32 numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dptext_spark.errors import DataError
from dptext_spark.lexicon.readers.builder import Block, ByteSource, Entries, check_dimensions, keys_of
from dptext_spark.runtime.jit import compiled

CHUNK = 1 << 22
LONGEST_KEY = 1 << 16
HEADER = re.compile(rb"(\d{1,18}) (\d{1,9}) ?\r?\n", re.ASCII)


def read_word2vec_binary(source: ByteSource) -> Entries:
    """Open binary vectors.

    Args:
        source: at its beginning. A line feed after an entry, as the original program writes it, is skipped.

    Raises:
        DataError: no header, or one that cannot be.
    """
    found = HEADER.match(source.peek(64))
    if not found:
        raise DataError(f"{source.path}: no header line with the numbers of words and of dimensions.")
    announced, dimensions = int(found[1]), int(found[2])
    check_dimensions(source.path, dimensions)
    source.read(found.end())
    likely = source.total * (2 if source.zipped else 1) // (4 * dimensions + 2) + 1
    return Entries(
        dimensions=dimensions,
        announced=announced,
        likely=min(announced, likely),
        blocks=_blocks(source, dimensions, announced),
    )


def _blocks(source: ByteSource, dimensions: int, announced: int) -> Iterator[Block]:
    """Yield the announced entries; raise where the file ends too early or too late."""
    entries = 0
    carry = b""
    while entries < announced:
        chunk = source.read(max(CHUNK, 8 * dimensions))
        text = carry + chunk
        data = np.frombuffer(text, np.uint8)
        most = min(announced - entries, len(text) // (4 * dimensions + 1) + 1)
        rows = np.empty((most, dimensions), "<f4")
        offsets = np.zeros(most + 1, np.int64)
        keys = np.empty(len(text), np.uint8)
        count, used = _parse(data, rows.view(np.uint8).reshape(most, 4 * dimensions), keys, offsets)
        if count:
            names = keys_of(keys[: offsets[count]].copy(), offsets[: count + 1])
            yield names, rows[:count].astype(np.float32)
            entries += count
        carry = text[used:]
        begin = source.position - len(carry)
        if entries < announced and b" " not in carry[:LONGEST_KEY] and len(carry) >= LONGEST_KEY:
            raise DataError(
                f"{source.path}, entry {entries + 1:,} at byte {begin:,}: "
                f"no space within {LONGEST_KEY:,} bytes, so these are no vectors in binary form."
            )
        if not chunk and entries < announced:
            raise DataError(
                f"{source.path}: ends at byte {source.position:,} within entry {entries + 1:,} of the "
                f"{announced:,} that its header announces."
            )
    rest = carry + source.read(CHUNK)
    if rest.strip(b"\n"):
        raise DataError(
            f"{source.path}: data after byte {source.position - len(rest):,}, where the last of the "
            f"{announced:,} announced entries ends."
        )


@compiled
def _parse(data: Any, rows: Any, keys: Any, offsets: Any) -> tuple[int, int]:
    """Fill rows (uint8[most, 4d]), keys and offsets with whole entries; return (entries, bytes used)."""
    width = rows.shape[1]
    entry, position, size = 0, 0, 0
    while entry < rows.shape[0]:
        start = position
        while start < data.shape[0] and data[start] == 10:
            start += 1
        space = start
        while space < data.shape[0] and data[space] != 32:
            space += 1
        if space + 1 + width > data.shape[0]:
            break
        for j in range(start, space):
            keys[size] = data[j]
            size += 1
        entry += 1
        offsets[entry] = size
        for j in range(width):
            rows[entry - 1, j] = data[space + 1 + j]
        position = space + 1 + width
    return entry, position
