"""A sample of a table for a first look, and the parsing of text files: rows, separator, header and encoding.

A sample has at most `SAMPLE_ROWS` rows of at most `MOST_FILES` files, evenly spaced by name. A text file gives rows of its
first `MOST_BYTES` bytes. Spark reads the files: see :mod:`dptext_spark.spark.table_sample`. Messages hold no word of a file.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from dptext_spark.errors import DataError, NoRowsError, SettingsError, either
from dptext_spark.model.table_checks import FORMATS, check_cases, json_object, other_header
from dptext_spark.model.table_schema import of_arrow

FIELD = "table"
ENCODING = "--encoding of `dptext start`, or input.options.encoding of the settings"
SAMPLE_ROWS, MOST_FILES, MOST_BYTES = 1_000, 10, 400_000
MOST_HEADERS = 1_000  # files whose first lines are compared
LARGE_FILE = 10**9  # bytes of a CSV file that is worth reading in parts
MOST_NESTED = 50  # levels of a JSON record
ENDINGS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
SEPARATORS = (",", ";", "\t", "|")
# Python's names of the encodings that Spark reads, and Spark's.
ENCODINGS = {
    "ascii": "US-ASCII", "iso8859-1": "ISO-8859-1", "utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16",
    "utf-16-be": "UTF-16BE", "utf-16-le": "UTF-16LE", "utf-32": "UTF-32",
}  # fmt: skip
LONGEST_NAME = 40  # characters of what may be the name of a column
_MARK = re.compile(r"(?i)sep=(.)\r?\n")
_NAME = re.compile(r"[^\W\d_][\w .`'\"/#-]*")
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ -]*%?")
T = TypeVar("T")
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


@dataclass(frozen=True)
class AsText:
    """The user's statements on the format of CSV files.

    Attributes:
        separator: one character; None: looked for among `SEPARATORS`.
        header: whether the first line names the columns; None: looked for.
        encoding: of the characters; None: UTF-8, or UTF-16 behind its mark.
    """

    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None


@dataclass(frozen=True, eq=False)
class TableSample:
    """Sample rows of a table.

    Attributes:
        format: as `input.format` has it.
        options: as `input.options` needs them.
        rows: the sample; text files other than JSON have text columns only.
        total: rows of the table; an estimate unless `is_exact`.
        is_exact: whether the files say how many rows they hold.
        files: of the table; `read`: of which rows are in the sample.
        assumed: sentences on what no file says, such as whether a first line names columns.
        is_name: whether `path` is a name in Spark's catalog.
    """

    path: str
    format: str
    rows: pa.Table
    total: int
    is_exact: bool
    files: int
    read: int
    options: Mapping[str, str | bool] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    is_name: bool = False

    def __repr__(self) -> str:
        """Return sizes; not the rows, which are private."""
        return f"TableSample({self.format}, {self.rows.num_rows:,} of {self.total:,} rows, {self.read} of {self.files} files)"


def format_of(place: str, files: Sequence[str], format: str | None, is_file: bool) -> str:
    """Return the format of files by their names.

    Args:
        place: the table.
        files: their names.
        format: what it has to be; None: what they say.
        is_file: whether the table is one file, which may have any name where the format is given.

    Raises:
        SettingsError: there is no file, or they say nothing, several things, or another one.
    """
    kinds = Counter(_kind(Path(file)) for file in files)
    if is_file:
        kind = format or next(iter(kinds))
        if kind is None:
            raise SettingsError(
                f"{FIELD}: {Path(place).name!r} has no known ending. Choose {either(ENDINGS)}, or set --format."
            )
        return kind
    if format is None:
        known = [kind for kind in kinds if kind is not None]
        if len(known) != 1:
            what = f"files of {', '.join(sorted(known))}" if known else "no file of a known ending"
            raise SettingsError(
                f"{FIELD}: {place!r} has {what}. Choose a folder with one of {either(FORMATS)}, or set --format."
            )
        format = known[0]
    if set(kinds) - {format} and any(kinds):
        raise SettingsError(
            f"{FIELD}: {place!r} has {kinds.total() - kinds[format]} files in other formats than {format}, and a run would "
            "read them, too. Choose a folder with that format alone."
        )
    if not files:
        raise SettingsError(f"{FIELD}: {place!r} has no file. Choose a file, or a folder of files.")
    return format


def _kind(file: Path) -> str | None:
    name = file.with_suffix("") if file.suffix.lower() in PACKED else file
    return ENDINGS.get(name.suffix.lower())


def evenly_spaced(files: Sequence[T], most: int) -> list[T]:
    """Return at most so many, evenly spaced."""
    if len(files) <= most:
        return list(files)
    return [files[(2 * i + 1) * len(files) // (2 * most)] for i in range(most)]


class Beginning(NamedTuple):
    """Beginning of a text file.

    Attributes:
        text: whole lines, or all but the last of them.
        size: bytes of it in the file.
        is_all: whether the file ends there.
        name: of the file, for messages.
        partitions: columns that its folders name, with their values.
    """

    text: str
    size: int
    is_all: bool
    encoding: str
    name: str
    partitions: Mapping[str, str | None] = MappingProxyType({})


def encoding_of(given: str) -> str:
    """Return Spark's name of an encoding: a run reads the files by it. :class:`SettingsError`: Spark reads no such files."""
    try:
        known = ENCODINGS.get(codecs.lookup(given).name)
    except LookupError:
        known = None
    if known is None:
        raise SettingsError(
            f"encoding: {given!r} is not valid, because Spark does not read it. Choose "
            f"{either(dict.fromkeys(ENCODINGS.values()))}, or convert the file to UTF-8, for example by iconv."
        )
    return known


def encoding_of_json(given: str | None) -> str:
    """Return Spark's name of an encoding of JSON records, one a line; UTF-8 where none is given.

    Raises:
        SettingsError: Spark reads no lines of it.
    """
    name = "UTF-8" if given is None else encoding_of(given)
    if name in ("UTF-16", "UTF-32"):
        valid = ", ".join(
            name for name in dict.fromkeys(ENCODINGS.values()) if name not in ("UTF-16", "UTF-32")
        )
        raise SettingsError(
            f"encoding: {given!r} is not valid for JSON, because Spark cannot read its lines. Choose {valid}."
        )
    return name


def sample_of_texts(
    place: str, format: str, texts: Sequence[Beginning], size: int, files: int, given: AsText
) -> TableSample:
    """Make a sample from the beginnings of text files.

    Args:
        place: the table.
        format: csv, tsv or json.
        texts: of the chosen files.
        size: bytes of all files.
        files: how many there are.
        given: how CSV files are written, as far as the user says.

    Raises:
        SettingsError: a separator that is no character.
        DataError: they hold no row, or are not written as they should be.
    """
    odd = next((beginning.name for beginning in texts if "\0" in beginning.text), None)
    if odd is not None:
        raise DataError(
            f"{FIELD}: {odd!r} has zero bytes, so that it is not text in this encoding. Choose a text file, or name "
            f"its encoding: {ENCODING}."
        )
    each = -(-SAMPLE_ROWS // max(len(texts), 1))
    if format == "json":
        return _json(place, texts, each, size, files)
    return _csv(place, format, texts, each, size, files, given)


def _json(place: str, texts: Sequence[Beginning], each: int, size: int, files: int) -> TableSample:
    """Sample files of JSON records, one a line."""
    objects: list[dict[str, Any]] = []
    read, used, all_of_it = 0, 0, True
    for text, length, whole, _, name, partitions in texts:
        lines, all_of_it = text.split("\n"), all_of_it and whole
        lines = lines if whole else lines[:-1]
        lines = [line for line in lines if line.strip()]
        try:
            records = [_loaded(line) for line in lines[:each]]
        except (ValueError, RecursionError):
            records = [None]
        if any(map(_nests_deep, records)):
            raise DataError(
                f"{FIELD}: a record of {name!r} nests more than {MOST_NESTED} levels. Use {MOST_NESTED} or fewer."
            )
        if not all(isinstance(record, dict) for record in records):
            raise DataError(
                f"{FIELD}: {name!r} does not have one JSON record a line. Choose a file of JSON lines."
            )
        read, used = read + len(lines), used + length
        objects += [record | partitions for record in records]
    exact = all_of_it and len(texts) == files
    total = read if exact else round(read * size / max(used, 1))
    names = dict.fromkeys(name for record in objects for name in record)
    rows = pa.table({name: _column([record.get(name) for record in objects]) for name in names})
    check_cases(of_arrow(rows.schema))
    encoding = texts[0].encoding
    options = {} if encoding == "UTF-8" else {"encoding": encoding}
    return made_sample(place, "json", [rows], total, exact, files, len(texts), options)


def _loaded(line: str) -> Any:
    """Read a record; half a pair of surrogates is a question mark, as Spark reads it."""
    record = json.loads(line, object_pairs_hook=json_object)
    if "\\ud" in line.lower():
        record = json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
    return record


def _column(values: list[Any]) -> pa.Array:
    """Return values of JSON as a column. Without a common type they are text, as Spark reads them."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        texts = (
            value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for value in values
        )
        return pa.array(texts, pa.string())


def _nests_deep(record: object) -> bool:
    """Check that a record nests too many levels: types of so many take minutes to compare."""
    level = [record]
    for _ in range(MOST_NESTED + 1):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def with_large_files(sample: TableSample, sizes: Mapping[str, int]) -> TableSample:
    """Return a sample that also names the files that a run reads on one core each."""
    count = large_files(sizes) if sample.format in ("csv", "tsv") else 0
    return replace(sample, assumed=(*sample.assumed, f"{on_one_core(count)}.")) if count else sample


def large_files(sizes: Mapping[str, int]) -> int:
    """Count files above `LARGE_FILE` bytes that Spark could read in parts; packed ones it never can."""
    return sum(size > LARGE_FILE and not name.lower().endswith(PACKED) for name, size in sizes.items())


def on_one_core(count: int) -> str:
    """Warn that a run reads some large files slowly, with a remedy."""
    files = "1 file" if count == 1 else f"{count:,} files"
    return f"{files} above 1 GB, one core for each; input.options: {{multiLine: false}} uses all"


def _csv(
    place: str, format: str, texts: Sequence[Beginning], each: int, size: int, files: int, given: AsText
) -> TableSample:
    """Sample CSV files."""
    first, encoding = next((head.text for head in texts if head.text.strip()), ""), texts[0].encoding
    marked = _MARK.match(first)
    if marked is not None:  # Excel's own line, and no row
        first = first[marked.end() :]
        texts = [head._replace(text=_MARK.sub("", head.text)) for head in texts]
        given = replace(given, separator=given.separator or marked[1])
    separator = given.separator or ("\t" if format == "tsv" else _separator(first))
    if len(separator) != 1:
        raise SettingsError(f"separator: {separator!r} is not valid. Choose one character.")
    tables = [_records(head.text, separator, head.is_all) for head in texts]
    assumed = [] if given.encoding or encoding == "UTF-8" else [f"encoding: {encoding}, by the file's mark."]
    beginning = next((rows for rows in tables if rows), [])
    if not beginning:
        raise NoRowsError(f"{FIELD}: {place!r} has no row. Choose a table with rows.")
    header = given.header
    if header is None and sum(map(len, tables)) == 1:
        raise DataError(
            f"{FIELD}: {place!r} has a single line, and it may name the columns. Choose a table with rows, or say "
            "that this line is a row: --no-header of `dptext start`, or input.options.header of the settings."
        )
    if header is None:
        header = _names_columns(beginning)
        verdict = "names the columns" if header else "is a row: columns are _c0, _c1, ..., as in Spark"
        assumed.append(f"the first line {verdict}. --{'no-' if header else ''}header changes that.")
    if given.separator is None and format == "csv":
        ends = f"the separator is {separator!r}"
        if len(beginning[0]) == 1:
            ends = f"none of {' '.join(map(repr, SEPARATORS))} separates fields, so that a line is one field"
        assumed.append(f"{ends}. --separator changes that.")
    names = safe_names(beginning[0]) if header else [f"_c{n}" for n in range(len(beginning[0]))]
    if header and names != beginning[0]:
        assumed.append("empty or repeated names in the first line get numbers, as in a run.")
    other = [
        head.name
        for head, rows in zip(texts, tables, strict=True)
        if header and rows and [*map(str.lower, safe_names(rows[0]))] != [*map(str.lower, names)]
    ]
    if other:
        raise other_header(other, len(names), is_named=True)
    bodies = [rows[1:] if header else rows for rows in tables]
    odd = sum(len(row) != len(names) for rows in bodies for row in rows)
    count = sum(map(len, bodies))
    if 2 * odd > count:
        raise DataError(
            f"{FIELD}: {odd:,} of {count:,} lines have another number of fields than the first ({len(names)}). Name "
            "their separator: --separator of `dptext start`, or input.options.sep of the settings."
        )
    fitting = [[row for row in rows if len(row) == len(names)][:each] for rows in bodies]
    parts = []
    for text, rows in zip(texts, fitting, strict=True):
        fields = {name: [row[n] or None for row in rows] for n, name in enumerate(names)}
        folders = {name: [value] * len(rows) for name, value in text.partitions.items()}
        parts.append(
            pa.table({name: pa.array(values, pa.string()) for name, values in (fields | folders).items()})
        )
    used = sum(head.size for head in texts)
    exact = len(texts) == files and all(head.is_all for head in texts)
    total = count if exact else round(count * size / max(used, 1))
    if odd:
        assumed.append(
            f"{odd:,} lines of the sample have another number of fields than the first, and are not shown."
        )
    options: dict[str, str | bool] = {"header": header}
    if separator != ("\t" if format == "tsv" else ",") and marked is None:
        options["sep"] = separator
    if encoding != "UTF-8":
        options["encoding"] = encoding
    return made_sample(place, format, parts, total, exact, files, len(texts), options, tuple(assumed))


def safe_names(names: Sequence[str]) -> list[str]:
    """Return Spark's names of columns for a first line: none is empty, none repeats."""
    often = Counter(name.lower() for name in names if name)
    return [
        f"_c{n}" if not name else f"{name}{n}" if often[name.lower()] > 1 else name
        for n, name in enumerate(names)
    ]


def _records(text: str, separator: str, whole: bool) -> list[list[str]]:
    """Return the rows of a text. Where it goes on, the last one is left out, or filled up if it is the first or second."""
    rows = [*_rows(text, separator)]
    if not whole and len(rows) <= 2:
        return [row + [""] * (len(rows[0]) - len(row)) for row in rows]
    return rows if whole else rows[:-1]


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """Yield the rows of a text but empty ones."""
    try:
        csv.field_size_limit(MOST_BYTES + 1)  # Python's own limit is shorter than some letters
        yield from filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:  # its text may hold private words
        raise DataError(f"{FIELD}: a file is not valid CSV. Close the double quotes of each field.") from None


def _separator(text: str) -> str:
    """Return the separator that most lines agree on; a comma where there is none."""

    def agreed(separator: str) -> tuple[float, int]:
        rows = [*_rows(text[:65_536], separator)]
        sizes = Counter(map(len, rows[:-1] or rows or [[""]]))
        width, often = max(sizes.items(), key=lambda item: (item[1], item[0]))
        return (often / sizes.total() if width > 1 else 0.0, width)

    scores = {separator: agreed(separator) for separator in SEPARATORS if separator in text}
    best = max(scores, key=lambda separator: scores[separator], default=",")
    return best if scores.get(best, (0.0, 0))[0] > 0 else ","


def _names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Check whether a first line surely names columns: it looks so, and the rows below look otherwise.

    Where it cannot be told, it is a row: else private words would be names of columns.
    """
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    empty = {n for n, name in enumerate(first) if not name and not any(row[n] for row in rest)}
    first = [name for n, name in enumerate(first) if n not in empty]
    rest = [[field for n, field in enumerate(row) if n not in empty] for row in rest]
    if not rest or not all(_NAME.fullmatch(name) and len(name) <= LONGEST_NAME for name in first):
        return False
    if len({name.lower() for name in first}) < len(first) or any(len(name.split()) > 3 for name in first):
        return False
    for n, name in enumerate(first):
        below = [row[n] for row in rest if row[n]]
        if below and all(_NUMBER.fullmatch(value) for value in below):
            return True
        words = sorted(len(value.split()) for value in below)
        if len(words) >= 3 and words[len(words) // 2] >= 4 and " " not in name and name not in below:
            return True
    return False


def made_sample(
    place: str, format: str, parts: Sequence[pa.Table], total: int, exact: bool, files: int, read: int,
    options: Mapping[str, str | bool] | None = None, assumed: tuple[str, ...] = (),
) -> TableSample:  # fmt: skip
    """Join the parts of a sample; see :class:`TableSample`. :class:`DataError`: they hold no row."""
    filled = [part for part in parts if part.num_rows]
    if not filled:
        raise NoRowsError(f"{FIELD}: {place!r} has no row. Choose a table with rows.")
    rows = pa.concat_tables(filled, promote_options="permissive").slice(0, SAMPLE_ROWS).combine_chunks()
    rows.validate(full=True)
    total = max(total, rows.num_rows)
    return TableSample(place, format, rows, total, exact, files, read, options or {}, assumed)
