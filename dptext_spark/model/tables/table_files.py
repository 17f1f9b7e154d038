"""A sample of a table of files, read once by pyarrow and without Spark: Parquet, CSV, JSON lines, a folder of these, or Delta.

At most `SAMPLE_ROWS` rows of at most `MOST_FILES` files, evenly spaced by name. Of a Parquet file they are the beginnings of row
groups that are evenly spaced; of a text file those of its first `MOST_BYTES` bytes. Messages hold no word of a file.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from dptext_spark.config.locations import has_scheme
from dptext_spark.errors import DataError, NoRowsError, SettingsError, require_choice
from dptext_spark.model.tables.schema import of_arrow
from dptext_spark.model.tables.table_checks import check_cases, check_file_names, json_object, other_header

FIELD = "table"
SAMPLE_ROWS, MOST_FILES, MOST_BYTES = 1_000, 10, 400_000
MOST_HEADERS, HEADER_BYTES = 1_000, 65_536  # files whose first lines are compared, and what is read of each
LARGE_FILE = 10**9  # bytes of a CSV file that is worth reading in parts
LARGEST_BYTES, LARGEST_FILES = 100 << 30, 10_000  # of a table: larger ones are for Spark
MOST_NESTED = 50  # levels of a JSON record
FORMATS = ("delta", "parquet", "csv", "tsv", "json")
ENDINGS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
SEPARATORS = (",", ";", "\t", "|")
MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
# Python's names of the encodings that Spark reads, and Spark's.
ENCODINGS = {
    "ascii": "US-ASCII", "iso8859-1": "ISO-8859-1", "utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16",
    "utf-16-be": "UTF-16BE", "utf-16-le": "UTF-16LE", "utf-32": "UTF-32",
}  # fmt: skip
LONGEST_NAME = 40  # characters of what may be the name of a column
_MARK = re.compile(r"(?i)sep=(.)\r?\n")
_NAME = re.compile(r"[^\W\d_][\w .`'\"/#-]*")
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ -]*%?")
_LOG = "_delta_log"
T = TypeVar("T")
_PACKED = (".gz", ".bz2")
_PACKED_FOR_SPARK = (".zst", ".lz4", ".snappy", ".deflate")
PACKED = (*_PACKED, *_PACKED_FOR_SPARK)
_PARTITION = re.compile(r"[^=/]+=[^/]*")  # the name of a folder that holds the rows of one value of a column


class SampleNeedsSparkError(SettingsError):
    """A table that Spark reads, and this reader does not.

    Attributes:
        why: in a few words, with no word of a file.
    """

    def __init__(self, place: str, why: str) -> None:
        """Take the table and the reason."""
        self.why = why
        super().__init__(
            f"{FIELD}: {place!r} cannot be read without Spark ({why}); valid: a table without these, or a Parquet, CSV or JSON "
            "file with some of its rows."
        )


@dataclass(frozen=True)
class AsText:
    """How CSV files are written, as far as the user says.

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
    """Some rows of a table.

    Attributes:
        path: of the table, absolute.
        format: as `input.format` has it.
        options: as `input.options` needs them.
        rows: the sample; text files other than JSON have text columns only.
        total: rows of the table; an estimate unless `is_exact`.
        is_exact: whether the files say how many rows they hold.
        files: of the table; `read`: of which rows are in the sample.
        assumed: sentences on what no file says, such as whether a first line names columns.
        is_name: whether `path` is a name in Spark's catalog.
        way: what read it, and why that.
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
    way: str = "pyarrow, without Spark"

    def __repr__(self) -> str:
        """Return sizes; not the rows, which are private."""
        return f"TableSample({self.format}, {self.rows.num_rows:,} of {self.total:,} rows, {self.read} of {self.files} files)"


def read_sample(path: str | Path, format: str | None = None, as_text: AsText | None = None) -> TableSample:
    """Read a sample of a table.

    Args:
        path: a file, or a folder of files of one format.
        format: one of `FORMATS`; None: by the names of the files.
        as_text: how CSV files are written; None: looked for.

    Raises:
        SampleNeedsSparkError: it is too large, or of a kind that Spark alone reads.
        SettingsError: there is nothing at the path, no table, or another format.
        DataError: files are damaged, hold no row, or are not written as they should be.
    """
    if format is not None:
        require_choice("format", format, FORMATS)
    place = Path(os.path.abspath(path))
    if not place.exists():
        raise SettingsError(
            f"{FIELD}: {str(path)!r} is not there; valid: a file or a folder of this machine (a catalog name needs Spark)."
        )
    if not place.is_file() and not place.is_dir():
        raise SettingsError(
            f"{FIELD}: {str(path)!r} is a pipe, a device or a socket; valid: a file or a folder."
        )
    if format == "delta" or (format is None and (place / _LOG).is_dir()):
        files, found = _delta_files(place), "delta"
    else:
        files, found = _listed(place, format)
        check_file_names(str(path), files)
    size = sum(one.stat().st_size for one in files)
    if size > LARGEST_BYTES or len(files) > LARGEST_FILES:
        raise SampleNeedsSparkError(
            str(path),
            f"it has {len(files):,} files and {size >> 30:,} GiB, and without Spark {LARGEST_FILES:,} files and "
            f"{LARGEST_BYTES >> 30} GiB are the most",
        )
    some = evenly_spaced(files, MOST_FILES)
    each = -(-SAMPLE_ROWS // max(len(some), 1))
    try:
        if found in ("delta", "parquet"):
            return _parquet(place, found, files, some, each)
        given = as_text or AsText()
        encoding = encoding_of_json(given.encoding) if found == "json" else given.encoding
        texts = [_beginning(one, encoding) for one in some]
        sizes = {str(one): one.stat().st_size for one in files}
        sample = sample_of_texts(str(place), found, texts, size, len(files), given)
        if found != "json":
            _check_columns(evenly_spaced(files, MOST_HEADERS), sample, given)
        return with_large_files(sample, sizes)
    except OSError as error:
        raise DataError(
            f"{FIELD}: a file cannot be read ({error.strerror or type(error).__name__})."
        ) from None
    except pa.ArrowException as error:  # its text may hold private words
        raise DataError(f"{FIELD}: a file is no valid {found} ({type(error).__name__}).") from None


def _listed(place: Path, format: str | None) -> tuple[list[Path], str]:
    """Return the files of a table and their format: those that lie in a folder itself, as a run reads them."""
    if place.is_file():
        files = [place]
    else:
        files = sorted(
            one for one in place.iterdir() if one.is_file() and not one.name.startswith(("_", "."))
        )
        if not files and any(one.is_dir() and _PARTITION.fullmatch(one.name) for one in place.iterdir()):
            raise SampleNeedsSparkError(str(place), "it has partitions, whose columns are in no file")
    found = format_of(str(place), [one.name for one in files], format, place.is_file())
    if any(one.suffix.lower() in _PACKED_FOR_SPARK for one in files):
        raise SampleNeedsSparkError(str(place), "its files are packed in a way that is not read here")
    return files, found


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
    kinds = Counter(_kind(Path(one)) for one in files)
    if is_file:
        kind = format or next(iter(kinds))
        if kind is None:
            raise SettingsError(
                f"{FIELD}: {Path(place).name!r} has no known ending; valid: {', '.join(ENDINGS)}, or --format."
            )
        return kind
    if format is None:
        known = [kind for kind in kinds if kind is not None]
        if len(known) != 1:
            what = f"files of {', '.join(sorted(known))}" if known else "no file of a known ending"
            raise SettingsError(
                f"{FIELD}: {place!r} holds {what}; valid: a folder of one of {', '.join(FORMATS)}, or --format."
            )
        format = known[0]
    if set(kinds) - {format} and any(kinds):
        raise SettingsError(
            f"{FIELD}: {place!r} holds {kinds.total() - kinds[format]} files that are no {format}, which a run would read, "
            "too; valid: a folder of that format alone."
        )
    if not files:
        raise SettingsError(f"{FIELD}: {place!r} holds no file; valid: a file, or a folder of files.")
    return format


def _kind(file: Path) -> str | None:
    name = file.with_suffix("") if file.suffix.lower() in PACKED else file
    return ENDINGS.get(name.suffix.lower())


def evenly_spaced(files: Sequence[T], most: int) -> list[T]:
    """Return at most so many, evenly spaced."""
    if len(files) <= most:
        return list(files)
    return [files[(2 * i + 1) * len(files) // (2 * most)] for i in range(most)]


def _delta_files(place: Path) -> list[Path]:
    """Return the files of a plain Delta table's last version, by its log from the first commit on.

    Raises:
        SampleNeedsSparkError: the log was shortened, or uses what this reader does not know.
    """
    commits = sorted((place / _LOG).glob("[0-9]" * 20 + ".json"))
    if not commits or int(commits[0].stem) != 0 or int(commits[-1].stem) != len(commits) - 1:
        raise SampleNeedsSparkError(
            str(place), "its log does not begin with the first commit, or is not there"
        )
    live: dict[str, None] = {}
    for commit in commits:
        try:
            actions = [json.loads(one) for one in commit.read_text(encoding="utf-8").splitlines() if one]
        except ValueError:
            raise DataError(f"{FIELD}: the log of the Delta table is damaged ({commit.name}).") from None
        for action in actions:
            if action.get("protocol", {}).get("minReaderVersion", 1) > 1:
                raise SampleNeedsSparkError(
                    str(place), "it has mapped columns, deletion vectors or other features"
                )
            if action.get("metaData", {}).get("partitionColumns"):
                raise SampleNeedsSparkError(str(place), "it has partitions, whose columns are in no file")
            if "remove" in action:
                live.pop(unquote(action["remove"]["path"]), None)
            if "add" in action:
                live[unquote(action["add"]["path"])] = None
    if any(has_scheme(name) or name.startswith("/") for name in live):
        raise SampleNeedsSparkError(str(place), "it has files of another table, as a shallow clone has")
    return sorted(place / name for name in live)


def _parquet(place: Path, format: str, files: list[Path], some: list[Path], each: int) -> TableSample:
    """Sample Parquet files."""
    total = sum(_rows_of(one) for one in files)
    parts = [_of_groups(pq.ParquetFile(one), each) for one in some]
    return made_sample(str(place), format, parts, total, True, len(files), len(some))


def _rows_of(file: Path) -> int:
    """Return how many rows a Parquet file says that it has."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except pa.ArrowException as error:  # its text may hold private words
        raise DataError(
            f"{FIELD}: {file.name!r} is no Parquet file ({type(error).__name__}); valid: a table whose files all are."
        ) from None


def _of_groups(file: pq.ParquetFile, most: int) -> pa.Table:
    """Return the first rows of row groups that are evenly spaced."""
    groups = [n for n in range(file.num_row_groups) if file.metadata.row_group(n).num_rows]
    chosen = [
        groups[(2 * i + 1) * len(groups) // (2 * min(len(groups), 4))] for i in range(min(len(groups), 4))
    ]
    parts = []
    for group in chosen:
        batches = file.iter_batches(batch_size=-(-most // len(chosen)), row_groups=[group])
        parts.append(pa.Table.from_batches([next(batches)]))
    return pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()


class Beginning(NamedTuple):
    """What a text file begins with.

    Attributes:
        text: whole lines, or all but the last of them.
        size: bytes of it in the file.
        is_all: whether the file ends there.
        encoding: of its characters.
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
    """Return Spark's name of an encoding: a run reads the files by it.

    Raises:
        SettingsError: Spark reads no such files.
    """
    try:
        known = ENCODINGS.get(codecs.lookup(given).name)
    except LookupError:
        known = None
    if known is None:
        raise SettingsError(
            f"encoding: {given!r} given; valid, for Spark reads no other: {', '.join(dict.fromkeys(ENCODINGS.values()))}. Make "
            "the file UTF-8 first, such as by iconv."
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
            f"encoding: {given!r} given; valid of JSON, for Spark reads no other by lines: {valid}."
        )
    return name


def _beginning(file: Path, encoding: str | None, most: int = MOST_BYTES) -> Beginning:
    """Return what a file begins with, of at most so many bytes."""
    with pa.OSFile(str(file)) as plain, pa.input_stream(plain, compression=_packing(file)) as stream:
        raw = stream.read(most + 1)
    whole, raw = len(raw) <= most, raw[:most]
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    name = marked or "UTF-8" if encoding is None else encoding_of(encoding)
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if name == "UTF-8" else name)()
        text = decoder.decode(raw, final=whole)
    except UnicodeDecodeError as error:
        cure = "--encoding with the right one, such as ISO-8859-1" if encoding is None else "a file that is"
        raise DataError(
            f"{FIELD}: {file.name!r} is no {name} at byte {error.start:,}; valid: {cure}."
        ) from None
    return Beginning(text, _packed_size(raw, file), whole, name, file.name)


def _packed_size(raw: bytes, file: Path) -> int:
    """Return about how many bytes of a file these are; a stream that unpacks reads far ahead, and does not tell."""
    packing = _packing(file)
    if packing is None:
        return len(raw)
    return len(gzip.compress(raw) if packing == "gzip" else bz2.compress(raw))


def _packing(file: Path) -> str | None:
    return {".gz": "gzip", ".bz2": "bz2"}.get(file.suffix.lower())


def sample_of_texts(
    place: str, format: str, texts: Sequence[Beginning], size: int, files: int, given: AsText
) -> TableSample:
    """Make a sample of what some text files begin with.

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
    odd = next((one.name for one in texts if "\0" in one.text), None)
    if odd is not None:
        raise DataError(
            f"{FIELD}: {odd!r} holds zero bytes, as files of another encoding or kind do; valid: a text file, or --encoding."
        )
    each = -(-SAMPLE_ROWS // max(len(texts), 1))
    if format == "json":
        return _json(place, texts, each, size, files)
    return _csv(place, format, texts, each, size, files, given)


def _json(place: str, texts: Sequence[Beginning], each: int, size: int, files: int) -> TableSample:
    """Sample files of JSON records, one a line."""
    found: list[dict[str, Any]] = []
    read, used, all_of_it = 0, 0, True
    for text, length, whole, _, name, partitions in texts:
        lines, all_of_it = text.split("\n"), all_of_it and whole
        lines = lines if whole else lines[:-1]
        lines = [one for one in lines if one.strip()]
        try:
            records = [_loaded(one) for one in lines[:each]]
        except (ValueError, RecursionError):
            records = [None]
        if any(map(_nests_deep, records)):
            raise DataError(
                f"{FIELD}: a record of {name!r} nests more than {MOST_NESTED} levels deep; valid: {MOST_NESTED} or fewer."
            )
        if not all(isinstance(one, dict) for one in records):
            raise DataError(f"{FIELD}: {name!r} is not one JSON record a line; valid: JSON lines.")
        read, used = read + len(lines), used + length
        found += [record | partitions for record in records]
    total, exact = _estimate(read, used, size, all_of_it and len(texts) == files)
    names = dict.fromkeys(name for record in found for name in record)
    rows = pa.table({name: _column([record.get(name) for record in found]) for name in names})
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
    """Return values of JSON as a column; where no type holds all of them they are text, as Spark reads them."""
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
    """Return a sample that says, beside what was assumed, which files a run reads on one core each."""
    count = large_files(sizes) if sample.format in ("csv", "tsv") else 0
    return replace(sample, assumed=(*sample.assumed, f"{on_one_core(count)}.")) if count else sample


def large_files(sizes: Mapping[str, int]) -> int:
    """Count files above `LARGE_FILE` bytes that Spark could read in parts; packed ones it never can."""
    return sum(size > LARGE_FILE and not name.lower().endswith(PACKED) for name, size in sizes.items())


def on_one_core(count: int) -> str:
    """Say that a run reads some large files slowly, and what to do."""
    files = "1 file" if count == 1 else f"{count:,} files"
    return f"{files} above 1 GB: one core reads each; input.options: {{multiLine: false}} uses all"


def _csv(
    place: str, format: str, texts: Sequence[Beginning], each: int, size: int, files: int, given: AsText
) -> TableSample:
    """Sample CSV files."""
    first, encoding = next((one.text for one in texts if one.text.strip()), ""), texts[0].encoding
    marked = _MARK.match(first)
    if marked is not None:  # Excel's own line, and no row
        first = first[marked.end() :]
        texts = [one._replace(text=_MARK.sub("", one.text)) for one in texts]
        given = replace(given, separator=given.separator or marked[1])
    separator = given.separator or ("\t" if format == "tsv" else _separator(first))
    if len(separator) != 1:
        raise SettingsError(f"separator: {separator!r} given; valid: one character.")
    tables = [_records(one.text, separator, one.is_all) for one in texts]
    assumed = [] if given.encoding or encoding == "UTF-8" else [f"encoding: {encoding}, by its mark."]
    beginning = next((rows for rows in tables if rows), [])
    if not beginning:
        raise NoRowsError(f"{FIELD}: {place!r} has no row; valid: a table with rows.")
    header = given.header
    if header is None and sum(map(len, tables)) == 1:
        raise DataError(
            f"{FIELD}: {place!r} has one line alone, which may name the columns; valid: a table with rows, or --no-header where "
            "it is one."
        )
    if header is None:
        header = _names_columns(beginning)
        said = "names the columns" if header else "is a row: columns are _c0, _c1, ..., as Spark names them"
        assumed.append(f"the first line {said}; --{'no-' if header else ''}header says otherwise.")
    if given.separator is None and format == "csv":
        ends = f"fields end with {separator!r}"
        if len(beginning[0]) == 1:
            ends = f"a line is one field, for none of {' '.join(map(repr, SEPARATORS))} separates fields"
        assumed.append(f"{ends}; --separator says otherwise.")
    names = safe_names(beginning[0]) if header else [f"_c{n}" for n in range(len(beginning[0]))]
    if header and names != beginning[0]:
        assumed.append(
            "names in the first line that are empty or stand there twice are numbered, as by a run."
        )
    other = [
        one.name
        for one, rows in zip(texts, tables, strict=True)
        if header and rows and not _same_names(rows[0], names)
    ]
    if other:
        raise other_header(other, len(names), is_named=True)
    bodies = [rows[1:] if header else rows for rows in tables]
    odd = sum(len(row) != len(names) for rows in bodies for row in rows)
    count = sum(map(len, bodies))
    if 2 * odd > count:
        raise DataError(
            f"{FIELD}: {odd:,} of {count:,} lines have another number of fields than the first, which has {len(names)}; valid: "
            "--separator with the right one."
        )
    kept = [[row for row in rows if len(row) == len(names)][:each] for rows in bodies]
    parts = []
    for text, rows in zip(texts, kept, strict=True):
        fields = {name: [row[n] or None for row in rows] for n, name in enumerate(names)}
        folders = {name: [value] * len(rows) for name, value in text.partitions.items()}
        parts.append(
            pa.table({name: pa.array(values, pa.string()) for name, values in (fields | folders).items()})
        )
    used = sum(one.size for one in texts)
    read_all = len(texts) == files and all(one.is_all for one in texts)
    total, exact = _estimate(count, used, size, read_all)
    if odd:
        assumed.append(
            f"{odd:,} lines of the sample have another number of fields than the first, and are left out."
        )
    options: dict[str, str | bool] = {"header": header}
    if separator != ("\t" if format == "tsv" else ",") and marked is None:
        options["sep"] = separator
    if encoding != "UTF-8":
        options["encoding"] = encoding
    return made_sample(place, format, parts, total, exact, files, len(texts), options, tuple(assumed))


def _check_columns(files: Sequence[Path], sample: TableSample, given: AsText) -> None:
    """Check that CSV files have the columns of a sample, by the first row of each.

    Raises:
        DataError: naming those that have others.
    """
    names, other = sample.rows.column_names, []
    for file in files:
        text, _, is_all, _, name, _ = _beginning(file, given.encoding, HEADER_BYTES)
        marked = _MARK.match(text)
        usual = "\t" if sample.format == "tsv" else ","
        separator = given.separator or (marked[1] if marked else sample.options.get("sep", usual))
        rows = _rows(_MARK.sub("", text, count=1) if marked else text, str(separator))
        first, more = next(rows, []), next(rows, None)
        if not first or (more is None and not is_all):
            continue
        if not (_same_names(first, names) if sample.options["header"] else len(first) == len(names)):
            other.append(name)
    if other:
        raise other_header(other, len(names), is_named=bool(sample.options["header"]))


def _same_names(first: Sequence[str], names: Sequence[str]) -> bool:
    return [name.lower() for name in safe_names(first)] == [name.lower() for name in names]


def safe_names(names: Sequence[str]) -> list[str]:
    """Return names of columns as Spark makes them of a first line: none is empty, none stands there twice."""
    often = Counter(name.lower() for name in names if name)
    return [
        f"_c{n}" if not name else f"{name}{n}" if often[name.lower()] > 1 else name
        for n, name in enumerate(names)
    ]


def _records(text: str, separator: str, whole: bool) -> list[list[str]]:
    """Return the rows of a text, without the last one where the text goes on behind it."""
    rows = [*_rows(text, separator)]
    return rows if whole else rows[:-1]


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """Yield the rows of a text but empty ones."""
    try:
        csv.field_size_limit(MOST_BYTES + 1)  # Python's own limit is shorter than some letters
        yield from filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:  # its text may hold private words
        raise DataError(
            f"{FIELD}: a file is no valid CSV; valid: fields in double quotes that end."
        ) from None


def _separator(text: str) -> str:
    """Return what most lines agree on as their separator; a comma where none is."""

    def agreed(separator: str) -> tuple[float, int]:
        sizes = Counter(map(len, _records(text[:65_536], separator, whole=False) or [[""]]))
        width, often = max(sizes.items(), key=lambda item: (item[1], item[0]))
        return (often / sizes.total() if width > 1 else 0.0, width)

    found = {separator: agreed(separator) for separator in SEPARATORS if separator in text}
    best = max(found, key=lambda one: found[one], default=",")
    return best if found.get(best, (0.0, 0))[0] > 0 else ","


def _names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first line surely names columns: it looks so, and the rows below look otherwise.

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
        if below and all(_NUMBER.fullmatch(one) for one in below):
            return True
        words = sorted(len(one.split()) for one in below)
        if len(words) >= 3 and words[len(words) // 2] >= 4 and " " not in name and name not in below:
            return True
    return False


def _estimate(count: int, used: int, size: int, read_all: bool) -> tuple[int, bool]:
    """Return how many rows a table of text files has, and whether that was counted."""
    return (count, True) if read_all else (round(count * size / max(used, 1)), False)


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionaries: a table's type is that of the values."""
    kinds = (one.type for one in schema)
    return pa.schema(
        [
            (name, kind.value_type if pa.types.is_dictionary(kind) else kind)
            for name, kind in zip(schema.names, kinds, strict=True)
        ]
    )


def made_sample(
    place: str, format: str, parts: Sequence[pa.Table], total: int, exact: bool, files: int, read: int,
    options: Mapping[str, str | bool] | None = None, assumed: tuple[str, ...] = (),
) -> TableSample:  # fmt: skip
    """Join the parts of a sample; see :class:`TableSample`.

    Raises:
        DataError: they hold no row.
    """
    filled = [part for part in parts if part.num_rows]
    if not filled:
        raise NoRowsError(f"{FIELD}: {place!r} has no row; valid: a table with rows.")
    filled = [part.cast(_plain(part.schema)) for part in filled]
    rows = pa.concat_tables(filled, promote_options="permissive").slice(0, SAMPLE_ROWS).combine_chunks()
    rows.validate(full=True)
    total = max(total, rows.num_rows)
    return TableSample(place, format, rows, total, exact, files, read, options or {}, assumed)
