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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from dptext_spark.errors import DataError, SettingsError, require_choice

FIELD = "table"
SAMPLE_ROWS, MOST_FILES, MOST_BYTES = 1_000, 10, 400_000
LARGEST_BYTES, LARGEST_FILES = 100 << 30, 10_000  # of a table: larger ones are for Spark
FORMATS = ("delta", "parquet", "csv", "tsv", "json")
ENDINGS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
SEPARATORS = (",", ";", "\t", "|")
MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
LONGEST_NAME = 40  # characters of what may be the name of a column
_NAME = re.compile(r"[^\W\d_][\w .`'\"/#-]*")
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ -]*%?")
_LOG = "_delta_log"
_PACKED = (".gz", ".bz2")


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
        SettingsError: there is nothing at the path, no table, one that is too large, or another format.
        DataError: files are damaged, hold no row, or are not written as they should be.
    """
    if format is not None:
        require_choice("format", format, FORMATS)
    place = Path(os.path.abspath(path))
    if not place.exists():
        raise SettingsError(
            f"{FIELD}: {str(path)!r} is not there; valid: a file or a folder of this machine (a catalog name needs Spark)."
        )
    if format == "delta" or (format is None and (place / _LOG).is_dir()):
        files, found = _delta_files(place), "delta"
    else:
        files, found = _listed(place, format)
    size = sum(one.stat().st_size for one in files)
    if size > LARGEST_BYTES or len(files) > LARGEST_FILES:
        raise SettingsError(
            f"{FIELD}: {str(path)!r} has {len(files):,} files and {size >> 30:,} GiB; valid without Spark: at most "
            f"{LARGEST_FILES:,} files and {LARGEST_BYTES >> 30} GiB. Take a part of it."
        )
    some = _spread(files, MOST_FILES)
    each = -(-SAMPLE_ROWS // max(len(some), 1))
    try:
        if found in ("delta", "parquet"):
            return _parquet(place, found, files, some, each)
        if found == "json":
            return _json(place, files, some, each, size)
        return _csv(place, found, files, some, each, size, as_text or AsText())
    except OSError as error:
        raise DataError(
            f"{FIELD}: a file cannot be read ({error.strerror or type(error).__name__})."
        ) from None
    except pa.ArrowException as error:  # its text may hold private words
        raise DataError(f"{FIELD}: a file is no valid {found} ({type(error).__name__}).") from None


def _listed(place: Path, format: str | None) -> tuple[list[Path], str]:
    """Return the files of a table and their format."""
    if place.is_file():
        kind = format or _kind(place)
        if kind is None:
            raise SettingsError(
                f"{FIELD}: {place.name!r} has no known ending; valid: {', '.join(ENDINGS)}, or --format."
            )
        return [place], kind
    inside = (one for one in sorted(place.rglob("*")) if one.is_file())
    files = [
        one for one in inside if not any(part.startswith(("_", ".")) for part in one.relative_to(place).parts)
    ]
    kinds = Counter(_kind(one) for one in files)
    if format is None:
        known = [kind for kind in kinds if kind is not None]
        if len(known) != 1:
            what = f"files of {', '.join(sorted(known))}" if known else "no file of a known ending"
            raise SettingsError(
                f"{FIELD}: {str(place)!r} holds {what}; valid: a folder of one of {', '.join(FORMATS)}, or --format."
            )
        format = known[0]
    if set(kinds) - {format} and any(kinds):
        raise SettingsError(
            f"{FIELD}: {str(place)!r} holds {kinds.total() - kinds[format]} files that are no {format}, which a run would read, "
            "too; valid: a folder of that format alone."
        )
    if not files:
        raise SettingsError(f"{FIELD}: {str(place)!r} holds no file; valid: a file, or a folder of files.")
    return files, format


def _kind(file: Path) -> str | None:
    name = file.with_suffix("") if file.suffix.lower() in _PACKED else file
    return ENDINGS.get(name.suffix.lower())


def _spread(files: Sequence[Path], most: int) -> list[Path]:
    """Return at most so many, evenly spaced."""
    if len(files) <= most:
        return list(files)
    return [files[(2 * i + 1) * len(files) // (2 * most)] for i in range(most)]


def _delta_files(place: Path) -> list[Path]:
    """Return the files of a plain Delta table's last version, by its log from the first commit on.

    Raises:
        SettingsError: the log was shortened, or uses what this reader does not know: then Spark is needed.
    """
    commits = sorted((place / _LOG).glob("[0-9]" * 20 + ".json"))
    if not commits or int(commits[0].stem) != 0 or int(commits[-1].stem) != len(commits) - 1:
        raise _needs_spark(place, "its log does not begin with the first commit, or is not there")
    live: dict[str, None] = {}
    for commit in commits:
        try:
            actions = [json.loads(one) for one in commit.read_text(encoding="utf-8").splitlines() if one]
        except ValueError:
            raise DataError(f"{FIELD}: the log of the Delta table is damaged ({commit.name}).") from None
        for action in actions:
            if action.get("protocol", {}).get("minReaderVersion", 1) > 1:
                raise _needs_spark(place, "it has mapped columns, deletion vectors or other features")
            if action.get("metaData", {}).get("partitionColumns"):
                raise _needs_spark(place, "it has partitions, whose columns are in no file")
            if "remove" in action:
                live.pop(unquote(action["remove"]["path"]), None)
            if "add" in action:
                live[unquote(action["add"]["path"])] = None
    return sorted(place / name for name in live)


def _needs_spark(place: Path, why: str) -> SettingsError:
    return SettingsError(
        f"{FIELD}: the Delta table {str(place)!r} cannot be read without Spark ({why}); valid: a table without these, or a "
        "Parquet, CSV or JSON file with some of its rows."
    )


def _parquet(place: Path, format: str, files: list[Path], some: list[Path], each: int) -> TableSample:
    """Sample Parquet files."""
    total = sum(pq.read_metadata(one).num_rows for one in files)
    parts = [_of_groups(pq.ParquetFile(one), each) for one in some]
    return _sample(place, format, parts, total, True, files, some)


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


def _beginning(file: Path, encoding: str | None) -> tuple[str, int, bool, str]:
    """Return the whole lines that a file begins with, their bytes in the file, whether that is all, and the encoding."""
    with pa.OSFile(str(file)) as plain, pa.input_stream(plain, compression=_packing(file)) as stream:
        raw = stream.read(MOST_BYTES + 1)
    whole = len(raw) <= MOST_BYTES
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    name = encoding or marked or "UTF-8"
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if name.upper() == "UTF-8" else name)()
        text = decoder.decode(raw[:MOST_BYTES], final=whole)
    except LookupError:
        raise SettingsError(
            f"encoding: {name!r} is not known; valid: such as UTF-8 or windows-1252."
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{FIELD}: {file.name!r} is no {name} at byte {error.start:,}; valid: --encoding with the right one, such as "
            "windows-1252."
        ) from None
    if "\0" in text:
        raise DataError(
            f"{FIELD}: {file.name!r} holds zero bytes, as files of another encoding or kind do; valid: a text file, or "
            "--encoding."
        )
    return text, _packed_size(raw[:MOST_BYTES], file), whole, name


def _packed_size(raw: bytes, file: Path) -> int:
    """Return about how many bytes of a file these are; a stream that unpacks reads far ahead, and does not tell."""
    packing = _packing(file)
    if packing is None:
        return len(raw)
    return len(gzip.compress(raw) if packing == "gzip" else bz2.compress(raw))


def _packing(file: Path) -> str | None:
    return {".gz": "gzip", ".bz2": "bz2"}.get(file.suffix.lower())


def _json(place: Path, files: list[Path], some: list[Path], each: int, size: int) -> TableSample:
    """Sample files of JSON records, one a line."""
    parts, read, used, all_of_it = [], 0, 0, True
    for file in some:
        text, length, whole, _ = _beginning(file, "UTF-8")
        lines, all_of_it = text.split("\n"), all_of_it and whole
        lines = lines if whole else lines[:-1]
        lines = [one for one in lines if one.strip()]
        try:
            records = [json.loads(one) for one in lines[:each]]
        except ValueError:
            records = [None]
        if not all(isinstance(one, dict) for one in records):
            raise DataError(f"{FIELD}: {file.name!r} is not one JSON record a line; valid: JSON lines.")
        read, used = read + len(lines), used + length
        parts.append(pa.Table.from_pylist(records) if records else pa.table({}))
    total, exact = _estimate(read, used, size, all_of_it and len(some) == len(files))
    return _sample(place, "json", parts, total, exact, files, some)


def _csv(
    place: Path, format: str, files: list[Path], some: list[Path], each: int, size: int, given: AsText
) -> TableSample:
    """Sample CSV files."""
    texts = [_beginning(file, given.encoding) for file in some]
    first = next((text for text, *_ in texts if text.strip()), "")
    separator = given.separator or ("\t" if format == "tsv" else _separator(first))
    if len(separator) != 1:
        raise SettingsError(f"separator: {separator!r} given; valid: one character.")
    tables = [_records(text, separator, whole) for text, _, whole, _ in texts]
    assumed = [] if given.encoding or texts[0][3] == "UTF-8" else [f"encoding: {texts[0][3]}, by its mark."]
    beginning = next((rows for rows in tables if rows), [])
    if not beginning:
        raise DataError(f"{FIELD}: {str(place)!r} has no row; valid: a table with rows.")
    header = given.header
    if header is None:
        header = _names_columns(beginning)
        said = "names the columns" if header else "is a row: columns are _c0, _c1, ..., as Spark names them"
        assumed.append(f"the first line {said}; --{'no-' if header else ''}header says otherwise.")
    if given.separator is None and format == "csv":
        assumed.append(f"fields end with {separator!r}; --separator says otherwise.")
    names = beginning[0] if header else [f"_c{n}" for n in range(len(beginning[0]))]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise DataError(
            f"{FIELD}: the {len(names)} names in the first line are empty or stand there twice; valid: names that differ, or "
            "--no-header where the line is a row."
        )
    bodies = [rows[1:] if header else rows for rows in tables]
    odd = sum(len(row) != len(names) for rows in bodies for row in rows)
    count = sum(map(len, bodies))
    if 2 * odd > count:
        raise DataError(
            f"{FIELD}: {odd:,} of {count:,} lines have another number of fields than the first, which has {len(names)}; valid: "
            "--separator with the right one."
        )
    kept = [[row for row in rows if len(row) == len(names)][:each] for rows in bodies]
    parts = [
        pa.table(
            {name: pa.array([row[n] or None for row in rows], pa.string()) for n, name in enumerate(names)}
        )
        for rows in kept
    ]
    used = sum(length for _, length, _, _ in texts)
    read_all = len(some) == len(files) and all(whole for _, _, whole, _ in texts)
    total, exact = _estimate(count, used, size, read_all)
    if odd:
        assumed.append(
            f"{odd:,} lines of the sample have another number of fields than the first, and are left out."
        )
    options: dict[str, str | bool] = {"header": header, "multiLine": True}
    if separator != ("\t" if format == "tsv" else ","):
        options["sep"] = separator
    if texts[0][3].upper() != "UTF-8":
        options["encoding"] = texts[0][3]
    if '""' in first:
        options["escape"] = '"'
    return _sample(place, format, parts, total, exact, files, some, options, tuple(assumed))


def _records(text: str, separator: str, whole: bool) -> list[list[str]]:
    """Return the rows of a text, without the last one where the text goes on behind it."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    except csv.Error:  # its text may hold private words
        raise DataError(
            f"{FIELD}: a file is no valid CSV; valid: fields in double quotes that end."
        ) from None
    return rows if whole else rows[:-1]


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


def _sample(
    place: Path, format: str, parts: list[pa.Table], total: int, exact: bool, files: list[Path], some: list[Path],
    options: Mapping[str, str | bool] | None = None, assumed: tuple[str, ...] = (),
) -> TableSample:  # fmt: skip
    """Join the parts of a sample."""
    filled = [part for part in parts if part.num_rows]
    if not filled:
        raise DataError(f"{FIELD}: {str(place)!r} has no row; valid: a table with rows.")
    filled = [part.cast(_plain(part.schema)) for part in filled]
    rows = pa.concat_tables(filled, promote_options="permissive").slice(0, SAMPLE_ROWS).combine_chunks()
    rows.validate(full=True)
    return TableSample(
        str(place),
        format,
        rows,
        max(total, rows.num_rows),
        exact,
        len(files),
        len(some),
        options or {},
        assumed,
    )
