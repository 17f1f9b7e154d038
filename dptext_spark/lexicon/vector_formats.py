"""Read lexicons from published files of word vectors: choose the reader and the words.

| format            | what it is                                                                     |
|-------------------|--------------------------------------------------------------------------------|
| `glove`           | text, a header "words dimensions" allowed                                      |
| `word2vec`        | text with that header                                                          |
| `word2vec-binary` | that header, then keys and float32 numbers                                     |
| `fasttext`        | a .vec file: as `word2vec`                                                     |

All formats may be gzipped. Every file is read once, by blocks: memory holds the vectors that are kept and a
few blocks.

word2vec's binary form has a header line, then each key, one space and d little-endian float32 numbers.

Word vectors as text (GloVe, word2vec, fastText .vec): an entry a line, fields split on the ASCII space.

A line is a key and d numbers. The last d fields are the numbers and the rest is the key. So a key may hold
ASCII spaces (some keys of GloVe's Common Crawl do). Its last part must then be neither a number nor empty, or
the line has a field too many. A space and a carriage return at the end of a line are dropped. Where there is
no header, the first line gives d: its key is one field.

A compiled loop splits the lines. Arrow reads the numbers and rounds each once, to the nearest float32.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F32, I32, U8
from dptext_spark.errors import DataError, SettingsError, either, file_errors, require_choice, unknown
from dptext_spark.lexicon import vector_intake
from dptext_spark.lexicon.characters import TOKENIZERS
from dptext_spark.lexicon.vector_intake import Block, ByteSource, Intake, ReadCounts, VectorEntries
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.runtime.jit import compiled

CHUNK = 1 << 22
LONGEST_LINE = CHUNK
TOO_LONG = f"the line is longer than {LONGEST_LINE:,} bytes, so that this is not a text file of vectors"
TEXT_HEADER = re.compile(rb"(\d{1,18}) (\d{1,9})", re.ASCII)
ZIPPED_RATIO = 4  # text is seldom more than this many times larger than its gzip file
FINE, SHORT, LONG, NO_NUMBER = range(4)
DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
NUMBER = re.compile(DECIMAL.pattern + rb"|[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_text(source: ByteSource, *, header_required: bool) -> VectorEntries:
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
    header = TEXT_HEADER.fullmatch(first)
    announced = None
    if header and (header_required or int(header[2]) == 1 or second.count(b" ") != 1):
        announced, dimensions = int(header[1]), int(header[2])
        source.read(len(head.split(b"\n", 1)[0]) + 1)
    elif header_required:
        raise DataError(
            f"{source.path}, line 1: not a header. It must have the number of words and the number of dimensions."
        )
    else:
        dimensions = first.count(b" ")
    vector_intake.check_dimensions(source.path, dimensions)
    size = source.total * (ZIPPED_RATIO if source.zipped else 1)
    likely = size // (2 * dimensions + 1) + 1 if announced is not None else size // (8 * dimensions) + 1
    return VectorEntries(
        dimensions=dimensions,
        announced=announced,
        likely=likely if announced is None else min(announced, likely),
        blocks=_text_blocks(source, dimensions, announced),
    )


def _stripped(line: bytes) -> bytes:
    """Return a line without a carriage return and then one space at its end."""
    return line.removesuffix(b"\r").removesuffix(b" ")


def _text_blocks(source: ByteSource, dimensions: int, announced: int | None) -> Iterator[Block]:
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
            f"{source.path}: line 1 announces {announced:,} entries, but the file has {entries:,}. It is truncated, or its "
            "header is wrong."
        )


def _account(trouble: int, field: int, dimensions: int) -> str:
    """Name the fault of a line, without showing it."""
    if trouble == NO_NUMBER:
        return f"field {field} is not a number"
    return f"{field} fields do not fit a word and {dimensions} numbers ({dimensions + 1} fields)"


def _block(text: bytes, dimensions: int) -> tuple[Any, Any, int, int, int]:
    """Parse the whole lines of `text` before the first malformed one: (keys, rows, bytes used, trouble, its field)."""
    data = np.frombuffer(text, np.uint8)
    most = len(text) // (2 * dimensions + 1) + 1
    names, numbers = _Fields.of(len(text), most), _Fields.of(len(text), most * dimensions)
    extra, parts = np.zeros(most, np.int64), np.zeros((most, 2), np.int64)
    lines, used, trouble = _split(
        data, dimensions, names.data, names.offsets, numbers.data, numbers.offsets, extra, parts
    )
    field = int(extra[lines]) + dimensions + 1 if trouble == SHORT else 0
    for line in np.flatnonzero(extra[:lines]).tolist():
        part = text[parts[line, 0] : parts[line, 1]]
        if not part or DECIMAL.fullmatch(part):
            lines, trouble, field = line, LONG, int(extra[line]) + dimensions + 1
            break
    fields = pa.StringArray.from_buffers(
        lines * dimensions, pa.py_buffer(numbers.offsets), pa.py_buffer(numbers.data)
    )
    wrong = _first_that_is_no_number(fields)
    if wrong is not None:
        lines, column = divmod(wrong, dimensions)
        trouble, field = NO_NUMBER, int(extra[lines]) + column + 2
    values = fields[: lines * dimensions].cast(pa.float32()).to_numpy().reshape(lines, dimensions)
    keys = vector_intake.keys_of(
        names.data[: names.offsets[lines]].copy(), names.offsets[: lines + 1].astype(np.int64)
    )
    return keys, values, used, trouble, field


class _Fields(NamedTuple):
    """Fields one after the other: uint8[...], and where each begins, int32[n + 1]."""

    data: U8
    offsets: I32

    @classmethod
    def of(cls, size: int, most: int) -> _Fields:
        return cls(np.empty(size, np.uint8), np.zeros(most + 1, np.int32))


def _first_that_is_no_number(fields: pa.StringArray) -> int | None:
    """Return the place of the first field that Arrow reads as no number, or None."""

    def reads(first: int, last: int) -> bool:
        try:
            fields[first:last].cast(pa.float32())
        except pa.ArrowInvalid:
            return False
        return True

    low, high = 0, len(fields)
    if reads(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reads(low, middle) else (low, middle)
    return low


@compiled
def _split(
    data: Any,
    dimensions: int,
    keys: Any,
    key_offsets: Any,
    numbers: Any,
    number_offsets: Any,
    extra: Any,
    parts: Any,
) -> tuple[int, int, int]:
    """Split lines into keys and fields of numbers, up to the last line feed or the first line that is too short.

    Fills `keys` and `numbers` uint8[...], and where each of them begins: `key_offsets` int32[most + 1] and `number_offsets`
    int32[most * d + 1]. Fills `extra` int64[most], spaces in a key (of a line that is too short, spaces less d), and `parts`
    int64[most, 2], where the last part of a key with spaces begins and ends. Returns (lines, bytes used, trouble).
    """
    line, position, size, digits, fields = 0, 0, 0, 0, 0
    while position < data.shape[0]:
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
        extra[line] = spaces - dimensions
        if spaces < dimensions:
            return line, position, SHORT
        i, part = position, position
        for _ in range(spaces - dimensions + 1):
            part = i
            while data[i] != 32:
                i += 1
            i += 1
        parts[line, 0], parts[line, 1] = part, i - 1
        for j in range(position, i - 1):
            keys[size] = data[j]
            size += 1
        key_offsets[line + 1] = size
        while i <= end:
            if i == end or data[i] == 32:
                fields += 1
                number_offsets[fields] = digits
            else:
                numbers[digits] = data[i]
                digits += 1
            i += 1
        line += 1
        position = after
    return line, position, FINE


LONGEST_KEY = 1 << 16
HEADER = re.compile(rb"(\d{1,18}) (\d{1,9}) ?\r?\n", re.ASCII)


def read_word2vec_binary(source: ByteSource) -> VectorEntries:
    """Open binary vectors.

    Args:
        source: at its beginning. A line feed after an entry, as the original program writes it, is skipped.

    Raises:
        DataError: no header, or one that cannot be.
    """
    header = HEADER.match(source.peek(64))
    if not header:
        raise DataError(
            f"{source.path}: the header is missing. It must have the number of words and the number of dimensions."
        )
    announced, dimensions = int(header[1]), int(header[2])
    vector_intake.check_dimensions(source.path, dimensions)
    source.read(header.end())
    likely = source.total * (2 if source.zipped else 1) // (4 * dimensions + 2) + 1
    return VectorEntries(
        dimensions=dimensions,
        announced=announced,
        likely=min(announced, likely),
        blocks=_binary_blocks(source, dimensions, announced),
    )


def _binary_blocks(source: ByteSource, dimensions: int, announced: int) -> Iterator[Block]:
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
            names = vector_intake.keys_of(keys[: offsets[count]].copy(), offsets[: count + 1])
            yield names, rows[:count].astype(np.float32)
            entries += count
        carry = text[used:]
        begin = source.position - len(carry)
        if entries < announced and b" " not in carry[:LONGEST_KEY] and len(carry) >= LONGEST_KEY:
            raise DataError(
                f"{source.path}, entry {entries + 1:,} at byte {begin:,}: no space within {LONGEST_KEY:,} bytes, so that "
                "these are not binary vectors."
            )
        if not chunk and entries < announced:
            raise DataError(
                f"{source.path}: the file ends at byte {source.position:,}, within entry {entries + 1:,} of {announced:,} "
                "that its header announces."
            )
    rest = carry + source.read(CHUNK)
    if rest.strip(b"\n"):
        raise DataError(
            f"{source.path}: data follows the last of {announced:,} announced entries, at byte "
            f"{source.position - len(rest):,}."
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


READERS: dict[str, Callable[[ByteSource], VectorEntries]] = {
    "glove": lambda source: read_text(source, header_required=False),
    "word2vec": lambda source: read_text(source, header_required=True),
    "word2vec-binary": read_word2vec_binary,
    "fasttext": lambda source: read_text(source, header_required=True),
}
FORMATS = tuple(READERS)
ENDINGS = (".gz", ".txt", ".vec", ".bin")
FASTTEXT_MODEL = (793712314).to_bytes(4, "little")
PEEK = 1 << 16

Read = tuple[Vocabulary, F32, ReadCounts, str]


def read_file(
    path: Path,
    *,
    format: str = "auto",
    limit: int | None = None,
    vocabulary: str | Path | Iterable[str] | None = None,
    tokenizer: Literal["words", "whitespace"] = "words",
    progress: Callable[[int, int], None] | None = None,
) -> Read:
    """Read a file of word vectors; the arguments are those of :meth:`Lexicon.read`.

    Returns:
        (words, vectors float32[V, d], counts, a name taken from the file's).

    Raises:
        SettingsError: an unknown format or tokenizer, or a limit below 2.
        DataError: a missing, malformed or truncated file, or fewer than two usable words.
    """
    if format != "auto" and format not in FORMATS:
        raise unknown("format", format, ("auto", *FORMATS))
    require_choice("tokenizer", tokenizer, TOKENIZERS)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 2):
        raise SettingsError(f"limit: {limit!r} is not valid. Choose an integer of 2 or more, or none.")
    listed_words = None if vocabulary is None else _words_to_keep(vocabulary)
    if path.is_dir():
        raise DataError(f"{path}: this is a folder. Open a saved lexicon with Lexicon.open.")
    with ByteSource(path) as source:
        if source.peek(len(BOM_UTF8)) == BOM_UTF8:
            source.read(len(BOM_UTF8))
        chosen = detect(source) if format == "auto" else format
        entries = READERS[chosen](source)
        intake = Intake(entries, tokenizer=tokenizer, wanted=listed_words, limit=limit)
        for keys, rows in entries.blocks:
            intake.add(keys, rows)
            if progress is not None:
                progress(source.done, source.total)
            if intake.full:
                break
    if intake.kept < 2:
        raise DataError(f"{path}: {intake.account()}. A lexicon needs at least two words.")
    return (*intake.finish(), _name(path))


def detect(source: ByteSource) -> str:
    """Return the format of a file by its first bytes, and by its name where those fit several.

    Raises:
        DataError: it is empty, or none that is known; the message lists the valid ones.
    """
    head = source.peek(PEEK)
    whole = len(head) < PEEK
    if not head:
        raise DataError(f"{source.path}: the file is empty.")
    if head[:4] in (b"PK\x03\x04", b"PAR1"):
        raise DataError(
            f"{source.path}: .npz and Parquet files are not valid. Choose text with a word and its numbers in each line "
            "(word2vec, .vec)."
        )
    if head[:4] == FASTTEXT_MODEL:
        raise DataError(
            f"{source.path}: this is a fastText model. Choose the .vec file beside it, because it has the vectors."
        )
    header = HEADER.match(head)
    if header:
        if not _is_text(head[header.end() :], int(header[2]), whole):
            return "word2vec-binary"
        return "fasttext" if ".vec" in source.path.suffixes else "word2vec"
    if _is_text(head, 1, whole):
        return "glove"
    raise DataError(f"{source.path}: the format is not recognised. Set format to {either(FORMATS)}.")


def _is_text(head: bytes, dimensions: int, whole: bool) -> bool:
    """Check whether the first line of `head`, behind the header, is a key and numbers; `whole`: nothing follows.

    The last `dimensions` fields are looked at, as far as that number is known.
    """
    line, end, _ = head.partition(b"\n")
    fields = line.removesuffix(b"\r").removesuffix(b" ").split(b" ")
    if not end and not whole:
        fields.pop()  # it may be cut in the middle
    numbers = fields[1:][-dimensions:]
    return bool(numbers) and all(NUMBER.fullmatch(field) for field in numbers)


def _words_to_keep(vocabulary: str | Path | Iterable[str]) -> pa.Array:
    """Return large_string, the words to keep, from an iterable or from a text file with one word a line."""
    if isinstance(vocabulary, str | Path):
        with file_errors("vocabulary", vocabulary):
            text = Path(vocabulary).read_text(encoding="utf-8-sig")
        return pa.array([line.removesuffix("\r") for line in text.split("\n")], pa.large_string())
    words = list(vocabulary)
    if not all(isinstance(word, str) for word in words):
        raise SettingsError("vocabulary: every word must be a string. A path can be given instead.")
    return pa.array(words, pa.large_string())


def _name(path: Path) -> str:
    """Return the file's name without the endings of its format."""
    name = path.name
    while name.lower().endswith(ENDINGS) and name[: name.rindex(".")]:
        name = name[: name.rindex(".")]
    return name
