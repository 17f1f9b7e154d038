"""Word vectors as text (GloVe, word2vec, fastText .vec): an entry a line, fields split on the ASCII space.

A line is a key and d numbers. The last d fields are the numbers and what stands before them is the key,
which may so hold ASCII spaces itself (some keys of GloVe's Common Crawl do); but its last part must then
be neither a number nor empty, or the line has a field too many. One space at the end of a line and a
carriage return are no part of it. Where there is no header, the first line gives d: its key is one field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dptext_spark.errors import DataError
from dptext_spark.lexicon.readers.decimals import DOUBTFUL, MALFORMED, PLAIN, WORD, exact_float32, scan_number
from dptext_spark.lexicon.readers.stream import Block, ByteSource, Entries, check_dimensions, keys_of
from dptext_spark.runtime.jit import compiled

CHUNK = 1 << 22
LONGEST_LINE = CHUNK
TOO_LONG = f"longer than {LONGEST_LINE:,} bytes, so these are no vectors as text"
HEADER = re.compile(rb"(\d{1,18}) (\d{1,9})", re.ASCII)
ZIPPED_RATIO = 4  # text is seldom more than this many times larger than its gzip file
FINE, SHORT, LONG, NO_NUMBER = range(4)


def read_text(source: ByteSource, *, header_required: bool) -> Entries:
    """Open text vectors.

    Args:
        source: at its beginning.
        header_required: the first line must be "words dimensions" (word2vec, fastText); else it may be
            (GloVe): it is one if it is two whole numbers and the line after it has more than two fields, or
            the second number is 1.

    Raises:
        DataError: an empty file, no header where there must be one, or a first line that is no entry.
    """
    head = source.peek(CHUNK)
    if not head:
        raise DataError(f"{source.path}: the file is empty.")
    if b"\n" not in head and len(head) == CHUNK:
        raise DataError(f"{source.path}, line 1: {TOO_LONG}.")
    first, second = (*(_stripped(line) for line in head.split(b"\n", 2)[:2]), b"")[:2]
    found = HEADER.fullmatch(first)
    announced = None
    if found and (header_required or int(found[2]) == 1 or second.count(b" ") != 1):
        announced, dimensions = int(found[1]), int(found[2])
        source.read(len(head.split(b"\n", 1)[0]) + 1)
    elif header_required:
        raise DataError(f"{source.path}, line 1: must be a header, the numbers of words and of dimensions.")
    else:
        dimensions = first.count(b" ")
    check_dimensions(source.path, dimensions)
    size = source.total * (ZIPPED_RATIO if source.zipped else 1)
    likely = size // (2 * dimensions + 1) + 1 if announced is not None else size // (8 * dimensions) + 1
    return Entries(
        dimensions=dimensions,
        announced=announced,
        likely=likely if announced is None else min(announced, likely),
        blocks=_blocks(source, dimensions, announced),
    )


def _stripped(line: bytes) -> bytes:
    """Return a line without a carriage return and then one space at its end."""
    return line.removesuffix(b"\r").removesuffix(b" ")


def _blocks(source: ByteSource, dimensions: int, announced: int | None) -> Iterator[Block]:
    """Yield the entries of the lines that are left; raise where one is malformed, after those before it."""
    line = 1 if announced is None else 2
    entries = 0
    carry = b""
    while True:
        chunk = source.read(CHUNK)
        text = carry + (chunk if chunk or not carry else b"\n")
        if not text:
            break
        used = 0
        while used < len(text):
            keys, rows, size, trouble, field = _block(text[used:] if used else text, dimensions)
            if len(rows):
                yield keys, rows
                entries += len(rows)
                line += len(rows)
            if trouble != FINE:
                raise DataError(f"{source.path}, line {line}: {_account(trouble, field, dimensions)}.")
            if size == 0:
                break
            used += size
        carry = text[used:]
        if len(carry) > LONGEST_LINE:
            raise DataError(f"{source.path}, line {line}: {TOO_LONG}.")
        if not chunk:
            break
    if announced is not None and entries != announced:
        raise DataError(
            f"{source.path}: line 1 announces {announced:,} entries, the file holds {entries:,}; "
            "it is truncated or its header is wrong."
        )


def _account(trouble: int, field: int, dimensions: int) -> str:
    """Say what is wrong with a line, without showing it."""
    if trouble == NO_NUMBER:
        return f"field {field} is not a number"
    return f"{field} fields, but a key and {dimensions} numbers are {dimensions + 1}"


def _block(text: bytes, dimensions: int) -> tuple[Any, Any, int, int, int]:
    """Parse the whole lines of `text`.

    Returns:
        (keys, rows, bytes used, trouble, its field): the entries before the first malformed line.
    """
    data = np.frombuffer(text, np.uint8)
    most = len(text) // (2 * dimensions + 1) + 1
    rows = np.empty((most, dimensions), np.float32)
    offsets = np.zeros(most + 1, np.int64)
    keys = np.empty(len(text), np.uint8)
    doubts = np.empty((max(4096, dimensions), 5), np.int64)
    lines, used, trouble, field, doubtful = _parse(data, rows, keys, offsets, doubts)
    for row, column, start, end, place in doubts[:doubtful].tolist():
        value = exact_float32(text[start:end])
        if value is None:
            lines, trouble, field = row, NO_NUMBER, place  # before any other trouble: doubts are in order
            break
        rows[row, column] = value
    names = keys_of(keys[: offsets[lines]].copy(), offsets[: lines + 1])
    return names, rows[:lines], used, trouble, field


@compiled
def _parse(data: Any, rows: Any, keys: Any, offsets: Any, doubts: Any) -> tuple[int, int, int, int, int]:
    """Parse lines up to the last line feed, to a malformed line, or until `doubts` could overflow.

    Args:
        data: uint8[...].
        rows: float32[most, d], filled.
        keys: uint8[...], filled with the keys one after the other.
        offsets: int64[most + 1], filled: where each key begins.
        doubts: int64[m, 5] with m >= d, filled: row, column, start, end and place in its line of fields to
            look at again.

    Returns:
        (lines, bytes used, trouble, its field, number of doubts).
    """
    dimensions = rows.shape[1]
    line, position, doubtful, size = 0, 0, 0, 0
    while position < data.shape[0] and doubtful + dimensions <= doubts.shape[0]:
        end, spaces = position, 0
        while end < data.shape[0] and data[end] != 10:
            spaces += 1 if data[end] == 32 else 0
            end += 1
        if end == data.shape[0]:
            break
        after = end + 1
        if end > position and data[end - 1] == 13:
            end -= 1
        if end > position and data[end - 1] == 32:
            end -= 1
            spaces -= 1
        if spaces < dimensions:
            return line, position, SHORT, spaces + 1, doubtful
        i, part = position, position
        for _ in range(spaces - dimensions + 1):
            part = i
            while data[i] != 32:
                i += 1
            i += 1
        if spaces > dimensions:
            kind = scan_number(data, part, i - 1)[1]
            if kind in (PLAIN, DOUBTFUL) or part == i - 1:
                return line, position, LONG, spaces + 1, doubtful
        for j in range(position, i - 1):
            keys[size] = data[j]
            size += 1
        offsets[line + 1] = size
        for column in range(dimensions):
            value, kind, stop = scan_number(data, i, end)
            place = spaces - dimensions + column + 2
            if kind == MALFORMED:
                return line, position, NO_NUMBER, place, doubtful
            if kind in (DOUBTFUL, WORD):
                doubts[doubtful, 0], doubts[doubtful, 1], doubts[doubtful, 2] = line, column, i
                doubts[doubtful, 3], doubts[doubtful, 4] = stop, place
                doubtful += 1
            rows[line, column] = value
            i = stop + 1
        line += 1
        position = after
    return line, position, FINE, 0, doubtful
