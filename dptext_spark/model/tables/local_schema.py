"""The schema of a run's input on this machine, read without Spark and as Spark would read it: no row is looked at but of JSON.

What Spark reads in a way that is not known here is left to it: see :class:`dptext_spark.model.tables.delta_log.NeedsSparkError`.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dptext_spark.config.locations import has_scheme, normal_path
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError
from dptext_spark.model.tables.delta_log import DeltaLog, NeedsSparkError, read_log
from dptext_spark.model.tables.schema import (
    Field,
    Kind,
    ListOf,
    Plain,
    Struct,
    of_arrow,
    of_json,
    resolve_all,
)
from dptext_spark.model.tables.table_checks import (
    check_cases,
    check_file_names,
    json_object,
    no_delta_table,
    nothing_there,
    other_header,
    unreadable,
)
from dptext_spark.model.tables.table_files import evenly_spaced, safe_names

MOST_FILES, MOST_BYTES = 10, 400_000  # that are looked at, and of each that is text
ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
# Where a path without a scheme may lead elsewhere than to this machine.
ELSEWHERE = (
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "DATABRICKS_RUNTIME_VERSION",
)
_CSV = ("header", "sep", "delimiter", "encoding", "charset", "multiline", "quote", "escape", "mode")
_PACKED = {".gz": "gzip", ".bz2": "bz2"}
UNKNOWN_PACKING = (".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".xz", ".zip")
_LONG, MOST_DIGITS = 1 << 63, 38  # of a bigint, and of a decimal


@dataclass(frozen=True)
class LocalInput:
    """What was read of an input.

    Attributes:
        schema: of the table.
        files: that hold it; none of a Delta table, whose log was read.
        said: what was read, in words.
        log: of a Delta table.
        sure: whether no other columns or types may be in the rest; else what seems to be missing is for Spark to tell.
    """

    schema: Struct
    files: tuple[Path, ...]
    said: str
    log: DeltaLog | None = None
    sure: bool = True


def is_here(path: str) -> bool:
    """Whether a path leads to a file of this machine, as far as its spelling and the environment tell."""
    if path.startswith("file:"):
        return True
    elsewhere = any(os.environ.get(name) for name in ELSEWHERE)
    return not elsewhere and not has_scheme(path)


def read_schema(source: Input, columns: Sequence[str]) -> LocalInput:
    """Read the schema of an input.

    Args:
        source: of the settings.
        columns: the text columns: what JSON holds in their place is text.

    Raises:
        NeedsSparkError: Spark has to read it.
        DataError: there is nothing, or something else than the format says.
        OSError: a file cannot be read.
    """
    if source.path is None:
        raise NeedsSparkError("is a name in Spark's catalog")
    if not is_here(source.path):
        raise NeedsSparkError("is not on this machine, as far as its path and the environment tell")
    place, options = Path(normal_path(source.path)), {k.lower(): v for k, v in source.options.items()}
    if re.search(r"[*?\[{]", source.path) and not place.exists():
        raise NeedsSparkError("is a pattern of paths")
    if source.format == "delta":
        return _delta(place, source.path, options)
    if not place.exists():
        raise nothing_there(source.path, "no such file or folder")
    files = _files(place)
    check_file_names(source.path, files)
    if source.format == "text":
        return LocalInput(
            Struct((Field("value", Plain("string")),)), tuple(files), "no file, for text has one column"
        )
    unknown = set(options) - set(_CSV if source.format in ("csv", "tsv") else ())
    if unknown:
        raise NeedsSparkError(f"has input.options that Spark alone knows ({', '.join(sorted(unknown))})")
    if not files:
        raise unreadable(source.path, source.format, "it holds no file")
    some, sure = evenly_spaced(files, MOST_FILES), True
    if source.format == "parquet":
        schema, said = _parquet(place, source.path, some), "the footers of"
    elif source.format == "json":
        (schema, sure), said = _json(some, len(files), columns), "the first records of"
    else:
        schema, some, said = _csv(files, source.format, options), files, "the first line of"
    return LocalInput(schema, tuple(files), f"{said} {len(some):,} of {len(files):,} files", sure=sure)


def files_in(place: Path) -> list[Path]:
    """Return the files below a folder, or the file itself, as Spark lists them: without hidden ones, sorted by name."""
    if not place.is_dir():
        return [place] if place.exists() else []
    found = []
    for folder, below, names in os.walk(place):
        below[:] = [name for name in below if not name.startswith(("_", "."))]
        found += [Path(folder, name) for name in names if not name.startswith(("_", "."))]
    return sorted(found, key=str)


def _files(place: Path) -> list[Path]:
    files = files_in(place)
    if any("=" in part for file in files for part in file.relative_to(place).parts[:-1]):
        raise NeedsSparkError("has folders that are named by values of a column")
    if any(file.suffix.lower() in UNKNOWN_PACKING for file in files):
        raise NeedsSparkError("is packed in a way that only Spark unpacks")
    return files


def _delta(place: Path, given: str, options: Mapping[str, str]) -> LocalInput:
    if options:
        raise NeedsSparkError(f"has input.options that Spark alone knows ({', '.join(sorted(options))})")
    log = read_log(place)
    if log is None:
        raise no_delta_table(given)
    return LocalInput(log.schema, (), "the log of the Delta table", log)


def _parquet(place: Path, given: str, some: Sequence[Path]) -> Struct:
    if place.is_dir() and any(name in ("_metadata", "_common_metadata") for name in os.listdir(place)):
        raise NeedsSparkError("has a file of metadata beside its files")
    found: dict[Struct, None] = {}
    for file in some:
        try:
            footer = pq.read_metadata(file)
            found[_of_footer(footer, given)] = None
        except (pa.ArrowException, ValueError) as error:  # its text may hold private words
            raise unreadable(
                given, "parquet", f"a file in it is damaged or none, {type(error).__name__}"
            ) from None
    if len(found) > 1:
        raise NeedsSparkError("has files with different columns")
    return next(iter(found))


def _of_footer(footer: pq.FileMetaData, given: str) -> Struct:
    """Return the columns as Spark has them: those that Spark noted down, else those of the file."""
    noted = (footer.metadata or {}).get(ROW_METADATA)
    if noted is not None:
        schema = of_json(noted.decode())
        if schema is None:
            raise NeedsSparkError("has collations or types that only Spark knows")
        return schema
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        if column.physical_type == "INT64" and "nanoseconds" in str(column.logical_type).lower():
            raise unreadable(
                given, "parquet", f"column {column.path!r} has times in nanoseconds, which Spark refuses"
            )
    return of_arrow(footer.schema.to_arrow_schema())


def _beginning(file: Path, most: int = MOST_BYTES) -> tuple[bytes, bool]:
    """Return the first bytes of a file, unpacked, and whether that is all of it."""
    packing = _PACKED.get(file.suffix.lower())
    with pa.OSFile(str(file)) as plain, pa.input_stream(plain, compression=packing) as stream:
        raw: bytes = stream.read(most + 1)
    return raw[:most], len(raw) <= most


def _csv(files: Sequence[Path], format: str, options: Mapping[str, str]) -> Struct:
    """Return the columns by the first line, which is a row where it names none: then only its fields are counted.

    Raises:
        DataError: files have other columns than the first, by name.
    """
    separator = options.get("sep", options.get("delimiter", "\t" if format == "tsv" else ","))
    separator = {r"\t": "\t"}.get(separator, separator)
    quote = options.get("quote", '"')
    escape = options.get("escape", quote)
    if len(separator) != 1 or len(quote) != 1 or len(escape) != 1:
        raise NeedsSparkError("has a separator, quote or escape that is not one character")
    encoding = options.get("encoding", options.get("charset", "UTF-8"))
    several = options.get("multiline", "true").lower() == "true"
    names = options.get("header", "true").lower() == "true"
    headers: dict[Path, list[str]] = {}
    for file in files:
        text = first_text(file, encoding)
        line = text if several else next((one for one in text.split("\n") if one.strip()), "").rstrip("\r")
        if line.lower().startswith("sep="):
            raise NeedsSparkError("begins with a line that names its separator")
        if escape in line and escape != quote:
            raise NeedsSparkError("has an escape in its first line")
        try:
            rows = csv.reader(io.StringIO(line, newline=""), delimiter=separator, quotechar=quote)
            row = next((one for one in rows if one), [])
        except csv.Error:
            raise NeedsSparkError("has a first line that is no usual CSV") from None
        if row:
            headers[file] = safe_names(row) if names else [f"_c{n}" for n in range(len(row))]
    first = next(iter(headers.values()), [])
    lowered = [name.lower() for name in first]
    others = [file.name for file, header in headers.items() if [name.lower() for name in header] != lowered]
    if others:
        raise other_header(others, len(first), is_named=names)
    return Struct(tuple(Field(name, Plain("string")) for name in first))


def first_text(file: Path, encoding: str, most: int = MOST_BYTES) -> str:
    """Return the beginning of a file, characters that cannot be read replaced, as Spark does."""
    raw, whole = _beginning(file, most)
    if not whole and b"\n" not in raw:
        raise NeedsSparkError("has a very long first line")
    try:
        text = raw.decode(encoding, errors="replace")
    except LookupError:
        raise NeedsSparkError("has an encoding that is not known here") from None
    return text.removeprefix(codecs.BOM_UTF8.decode("utf-8"))


def _json(some: Sequence[Path], count: int, columns: Sequence[str]) -> tuple[Struct, bool]:
    """Return the types of the first records, texts as strings, and whether these are all records."""
    records, sure = [], len(some) == count
    for file in some:
        raw, whole = _beginning(file)
        sure = sure and whole
        lines = raw.split(b"\n")
        for line in lines if whole else lines[:-1]:
            try:
                text = line.decode("utf-8")
                found = json.loads(text, object_pairs_hook=json_object) if text.strip() else None
            except UnicodeDecodeError:
                raise NeedsSparkError("has lines that are no UTF-8") from None
            except (ValueError, RecursionError):  # counted by the run
                continue
            if isinstance(found, dict):
                records.append(found)
    schema = _kind_of(records) if records else None
    if not isinstance(schema, Struct):
        raise NeedsSparkError("has no record in the first lines of its files")
    check_cases(schema, columns)
    try:
        texts = resolve_all(_as_text(schema), columns)
    except DataError:
        if not sure:
            raise NeedsSparkError("does not show every text column in its first records") from None
        raise
    wanted = {path.parts for path in texts}
    typed = tuple(
        Field(f.name, _with_text(f.kind, [p[1:] for p in wanted if p[0] == f.name])) for f in schema.fields
    )
    return Struct(typed), sure


def _as_text(schema: Struct) -> Struct:
    return Struct(tuple(Field(f.name, _with_text(f.kind, [()])) for f in schema.fields))


def _with_text(kind: Kind, wanted: list[tuple[str, ...]]) -> Kind:
    """Return a type with text in place of the values that the paths in `wanted` lead to; `()` means all that is below."""
    if not wanted:
        return kind
    if isinstance(kind, ListOf):
        return ListOf(_with_text(kind.element, wanted))
    if isinstance(kind, Struct):
        below = {f.name: [way[1:] for way in wanted if way[:1] in ((), (f.name,))] for f in kind.fields}
        return Struct(tuple(Field(f.name, _with_text(f.kind, below[f.name])) for f in kind.fields))
    return Plain("string")


def _kind_of(values: Sequence[object]) -> Kind:
    """Return the type that Spark gives values of JSON: of those that differ, a text."""
    held = [value for value in values if value is not None]
    if held and all(isinstance(value, dict) for value in held):
        inner: dict[str, list[object]] = {}
        for value in held:
            assert isinstance(value, dict)
            for name, one in value.items():
                inner.setdefault(name, []).append(one)
        return Struct(tuple(Field(name, _kind_of(inner[name])) for name in sorted(inner)))
    if held and all(isinstance(value, list) for value in held):
        return ListOf(_kind_of([one for value in held if isinstance(value, list) for one in value]))
    kinds = {type(value) for value in held}
    if kinds == {bool}:
        return Plain("boolean")
    if kinds == {int} and all(-_LONG <= value < _LONG for value in held if isinstance(value, int)):
        return Plain("bigint")
    digits = max((len(str(abs(value))) for value in held if isinstance(value, int)), default=0)
    if kinds == {int} and digits <= MOST_DIGITS:  # at least those of a bigint
        return Plain(f"decimal({max(digits, 20)},0)")
    if kinds and kinds <= {int, float}:
        return Plain("double")
    return Plain("string")
