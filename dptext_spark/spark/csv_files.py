"""CSV and TSV inputs by RFC 4180: every column a text, columns by their names, and no record dropped.

Quoted fields may hold line breaks (`multiLine`), and a doubled quote means one (`escape`). `input.options` may change both. A
first line `sep=;`, as Excel writes it, is no row: it names the separator.

A check of the records of a CSV, TSV or JSON input against its columns: one job over its files, before any write.

Each CSV file must pass three checks; no message shows its content:

- its first line names the columns of the others, in their order; without a header it has as many fields;
- every record has as many fields as there are columns;
- its quotes close: their number is even, in the whole file or, with `multiLine: false`, in each line.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.table_checks import named_files, other_header
from dptext_spark.model.table_files import PACKED, safe_names
from dptext_spark.spark.nested_columns import quoted
from dptext_spark.spark.schemas import frame_of
from dptext_spark.spark.session import context_of

CORRUPT = "_dptext_corrupt_record"
# Without pruning every record is parsed whole, so that one with too many fields is seen.
LENIENT = {
    "mode": "PERMISSIVE",
    "columnnameofcorruptrecord": CORRUPT,
    "inferschema": "false",
    "columnpruning": "false",
}
_NONE = "_dptext_none"
_MARK = re.compile(r"(?i)sep=(.?)")


@dataclass(frozen=True)
class CsvLayout:
    """Format of an input's files.

    Attributes:
        options: of Spark's reader; names in lower case, as Spark tells no cases apart.
        columns: of the files, in their order.
        partitions: columns that folders are named by.
        files: their addresses, sorted.
        encoding: of the files.
        is_named: whether a line of each file names the columns.
        is_marked: whether each file begins with a line `sep=`.
    """

    options: Mapping[str, str]
    columns: tuple[str, ...]
    partitions: tuple[str, ...]
    files: tuple[str, ...]
    encoding: str
    is_named: bool
    is_marked: bool

    @property
    def is_multiline(self) -> bool:
        """True if a quoted field may hold line breaks."""
        return self.options["multiline"].lower() == "true"

    @property
    def quote(self) -> str:
        """The quote of a field; empty where there is none."""
        return self.options.get("quote", '"')

    @property
    def escape(self) -> str:
        """The sign before a quote inside a field."""
        return self.options.get("escape", "\\")

    def reader(self, spark: SparkSession, header: bool) -> DataFrameReader:
        """Return a reader of the rows; with `header` the first line of each file is none."""
        return csv_reader(spark, {**self.options, "header": str(header).lower()})

    def names_columns(self, fields: Sequence[str]) -> Column:
        """Return the condition that the fields of a row are the names of the columns, in their order."""
        same = [_is_name(quoted(field), number, self.columns) for number, field in enumerate(fields)]
        return reduce(Column.__and__, same)


def _is_name(field: Column, number: int, names: Sequence[str]) -> Column:
    """Return the condition that a field is a column's name. Spark calls an empty one `_c3`, and numbers those that repeat."""
    lowered = [name.lower() for name in names]
    if lowered[number] == f"_c{number}":
        return F.coalesce(F.lower(field).isin("", lowered[number]), F.lit(True))
    valid = [names[number]]
    base = lowered[number].removesuffix(str(number))
    if any(name == f"{base}{place}" for place, name in enumerate(lowered) if place != number):
        valid.append(names[number].removesuffix(str(number)))
    return F.coalesce(F.lower(field).isin([F.lower(F.lit(name)) for name in valid]), F.lit(False))


def csv_reader(spark: SparkSession, options: Mapping[str, str]) -> DataFrameReader:
    """Return a reader of CSV files that drops nothing: records that do not fit are in `CORRUPT`, if that is read."""
    # Names are compared in the files' own spelling and order before a run begins: Spark's check would show a line in its message.
    return spark.read.options(**{**options, **LENIENT, "enforceschema": "true"})


def csv_options(source: Input) -> dict[str, str]:
    """Return the options for CSV files, with names in lower case: RFC 4180, unless settings differ."""
    quote = source.by_name.get("quote", '"')
    defaults = {"multiline": "true", "header": "true", **({"escape": quote} if len(quote) == 1 else {})}
    if source.format == "tsv" and source.separator is None:
        defaults["sep"] = "\t"
    return {**defaults, **source.by_name}


def partition_columns(
    spark: SparkSession, options: Mapping[str, str], format: str, folder: str
) -> tuple[str, ...]:
    """Return the columns that folders are named by; files are listed and not opened."""
    frame = _listed(spark, options, format, folder)
    return tuple(name for name in frame.columns if name != _NONE)


def _listed(spark: SparkSession, options: Mapping[str, str], format: str, folder: str) -> DataFrame:
    """Return a frame that knows the files of an input and the names of their folders, but no content."""
    return spark.read.options(**options).schema(f"{_NONE} string").format(format).load(folder)


def layout_of(spark: SparkSession, source: Input, folder: str) -> CsvLayout:
    """Look at the first line of an input's first file, by name, that has one.

    Raises:
        SettingsError: it names another separator than the settings.
        DataError: a column is in the files and in the names of folders.
    """
    options = csv_options(source)
    is_named = options["header"].lower() == "true"
    listed = _listed(spark, options, "csv", folder)
    partitions = tuple(name for name in listed.columns if name != _NONE)
    files = tuple(sorted(listed.inputFiles()))
    file, fields = _first_line(spark, options, files)
    separator = _marked_separator(fields, source, options)
    if separator is not None:
        options = {
            **{name: value for name, value in options.items() if name != "delimiter"},
            "sep": separator,
        }
        fields = _fields(spark, {**options, "header": "true"}, file) or []
    columns = safe_names(fields) if is_named else [f"_c{number}" for number in range(len(fields))]
    twice = [name for name in columns if name.lower() in {partition.lower() for partition in partitions}]
    if twice:
        raise DataError(
            f"input: column {twice[0]!r} is both in the files and in the names of their folders. Rename "
            f"one, or set input.options: {{recursiveFileLookup: true}} to ignore the folders."
        )
    encoding = source.encoding or "UTF-8"
    return CsvLayout(options, tuple(columns), partitions, files, encoding, is_named, separator is not None)


def _first_line(
    spark: SparkSession, options: Mapping[str, str], addresses: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the first file that has a line, as Spark opens it, and the fields of that line."""
    for address in addresses:
        file = re.sub(r"([\[\]{}*?\\])", r"\\\1", unquote(address))  # a name, and no pattern
        fields = _fields(spark, {**options, "header": "false"}, file)
        if fields is not None:
            return file, fields
    return "", []


def _fields(spark: SparkSession, options: Mapping[str, str], file: str) -> list[str] | None:
    """Return the fields of a file's first row; None where it has none.

    Spark's own look at a first line takes a name for a pattern again, and finds no file `letters[1].csv`.
    """
    reader = csv_reader(spark, options).schema(f"_0 string, {CORRUPT} string")
    row = reader.csv(file).select("_0", CORRUPT).first()
    if row is None:
        return None
    whole = row[CORRUPT]
    if whole is None:  # it has one field
        return [row["_0"] or ""]
    kind = spark.range(1).select(F.schema_of_csv(F.lit(whole), dict(options))).first()
    count = len(re.findall(r"\b_c\d+: ", kind[0] if kind else ""))
    schema = ", ".join(f"_c{number} string" for number in range(count))
    values = spark.range(1).select(F.from_csv(F.lit(whole), schema, dict(options))).first()
    return ["" if value is None else value for value in (values[0] if values else ())]


def _marked_separator(first: Sequence[str], source: Input, options: Mapping[str, str]) -> str | None:
    """Return the separator that a first line `sep=` names; None where it is no such line."""
    marked = _MARK.fullmatch(first[0]) if first else None
    used = source.separator or options.get("sep", ",")
    if marked is None or len(first) > 2:
        return None
    if not marked[1]:  # the line ends with the separator by which it was read
        return used if tuple(first[1:]) == ("",) else None
    named = {"sep", "delimiter"}.intersection(source.by_name)
    if named:
        raise SettingsError(
            f"input.options.{min(named)}: {used!r} differs from the files' first line, sep={marked[1]}. "
            f"Use {marked[1]!r}, or leave the option out."
        )
    return marked[1]


def read_csv(spark: SparkSession, source: Input, folder: str) -> DataFrame:
    """Open a CSV or TSV input: its columns are texts, those that folders are named by too."""
    layout = layout_of(spark, source, folder)
    names = [*layout.columns, *layout.partitions]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    # Spark reads the line `sep=` as the names, and so the names as a row.
    df = layout.reader(spark, layout.is_named or layout.is_marked).schema(schema).csv(folder)
    if layout.is_marked and layout.is_named and layout.columns:
        df = df.where(~layout.names_columns(layout.columns))
    return df


_NOTHING = "\ufdd0"  # separates the fields of a line that is one field; it is no character, by Unicode
_BEGINNING = 65_536  # bytes of a file in which its first record ends; else Spark reads the files
_PACKED = {".gz": "gzip", ".bz2": "bz2"}
_PACKED_FOR_SPARK = {*PACKED, ".zstd", ".xz", ".zip"} - {*_PACKED}
# Options and encodings that a first record is read by here.
_READ_HERE = {
    "header", "sep", "delimiter", "encoding", "charset", "multiline", "quote", "escape", "mode", "recursivefilelookup",
    "pathglobfilter",
}  # fmt: skip
_DECODED_HERE = ("UTF-8", "UTF-16LE", "UTF-16BE", "ISO-8859-1", "US-ASCII")


class _NotHereError(Exception):
    """The first record of a file is for Spark to read."""


class UnfitFile(NamedTuple):
    """A file that differs from its table: its address, whether it is headed as the others, and its records that do not fit."""

    file: str
    is_headed: bool
    records: int


def checked_csv(spark: SparkSession, source: Input, folder: str) -> int:
    """Check the files of a CSV or TSV input; count records that do not fit: none unless settings accept them.

    Raises:
        DataError: with the files and the number of records.
    """
    layout = layout_of(spark, source, folder)
    if not layout.columns:
        return 0
    _compared_here(spark, layout, source)
    both = _rows(spark, layout, folder)
    if len(layout.quote) == 1:
        both = both.unionByName(_quotes(spark, layout, folder))
    of_file = both.groupBy("file").agg(
        _first_is_headed(),
        F.sum("unfit").alias("unfit"),
        (F.sum("quotes") % 2 if layout.is_multiline else F.sum("quotes")).alias("open"),
    )
    records = F.greatest("unfit", "open").alias("records")
    files = [
        UnfitFile(*row)
        for row in of_file.select("file", "is_headed", records)
        .where("not is_headed or records > 0")
        .collect()
    ]
    _refuse_others([file.file for file in files if not file.is_headed], layout, source)
    return _accepted(files, source)


def check_headers(spark: SparkSession, source: Input, folder: str, *, elsewhere: bool = True) -> None:
    """Check that all files of a CSV or TSV input have the columns of the first.

    Spark reads remote files whole; they are compared only if `elsewhere` is true.

    Raises:
        DataError: naming those that have others.
    """
    layout = layout_of(spark, source, folder)
    if layout.columns and not _compared_here(spark, layout, source) and elsewhere:
        of_file = _rows(spark, layout, folder).groupBy("file").agg(_first_is_headed())
        _refuse_others([row["file"] for row in of_file.where("not is_headed").collect()], layout, source)


def _refuse_others(files: Sequence[str], layout: CsvLayout, source: Input) -> None:
    if files:
        names = [_name(file, source.path or "") for file in files]
        raise other_header(names, len(layout.columns), is_named=layout.is_named)


def _compared_here(spark: SparkSession, layout: CsvLayout, source: Input) -> bool:
    """Compare the first records of files of this machine, in one small job; return whether those are all files."""
    is_read_here = set(layout.options) <= _READ_HERE and layout.encoding.upper() in _DECODED_HERE
    if context_of(spark) is None or not is_read_here:
        return False
    try:
        firsts = {address: _first_record(address, layout) for address in layout.files}
    except (OSError, _NotHereError):
        return False
    distinct = [(record,) for record in {*firsts.values()} if record is not None]
    names = [f"_{number}" for number in range(len(layout.columns))]
    schema = ", ".join(f"{name} string" for name in [*names, CORRUPT])
    records = frame_of(spark, distinct, T.StructType().add("record", "string"))
    rows = records.select(
        "record", F.from_csv("record", schema, {**layout.options, **LENIENT}).alias("row")
    ).select("record", "row.*")
    other = {row["record"] for row in rows.where(~_is_headed(layout, names)).select("record").collect()}
    _refuse_others([address for address, record in firsts.items() if record in other], layout, source)
    return True


def _first_record(address: str, layout: CsvLayout) -> str | None:
    """Return the first record of a file of this machine; None where it has none.

    Raises:
        _NotHereError: it is elsewhere, or its record does not end where a first look ends.
        OSError: it cannot be read.
    """
    parsed = urlparse(address)
    file = Path(unquote(parsed.path))
    if parsed.scheme != "file" or file.suffix.lower() in _PACKED_FOR_SPARK:
        raise _NotHereError
    with pa.OSFile(str(file)) as plain:
        stream = pa.input_stream(plain, compression=_PACKED.get(file.suffix.lower()))
        raw = stream.read(_BEGINNING)
    if len(raw) == _BEGINNING and b"\n" not in raw:
        raise _NotHereError
    text = raw.decode(layout.encoding, errors="replace").removeprefix("\ufeff")
    lines = io.StringIO(text, newline="")
    if layout.is_marked:
        next(lines, None)
    quote, escape = layout.quote, layout.escape
    record = ""
    for line in lines:
        if not record and not line.strip("\r\n"):
            continue
        record += line
        plain = record if escape in (quote, "") else re.sub(f"(?s){re.escape(escape)}.", "", record)
        if not layout.is_multiline or not quote or plain.count(quote) % 2 == 0:
            return record.rstrip("\r\n")
    if record:
        raise _NotHereError
    return None


def _rows(spark: SparkSession, layout: CsvLayout, folder: str) -> DataFrame:
    """Return for each record its file, its place, whether it could be the first line, and whether it does not fit."""
    names = [f"_{number}" for number in range(len(layout.columns))]
    schema = ", ".join(f"{name} string" for name in [*names, CORRUPT])
    rows = layout.reader(spark, layout.is_marked).schema(schema).csv(folder)
    fits = quoted(CORRUPT).isNull()
    # The beginning of a file that is read in parts comes first.
    place = F.when(F.expr("input_file_block_start()") == 0, F.monotonically_increasing_id())
    return rows.select(
        F.input_file_name().alias("file"),
        place.alias("place"),
        _is_headed(layout, names).alias("is_headed"),
        (~fits).cast("long").alias("unfit"),
        F.lit(0).cast("long").alias("quotes"),
    )


def _is_headed(layout: CsvLayout, names: Sequence[str]) -> Column:
    """Return the condition that a record could be the first of its file."""
    return quoted(CORRUPT).isNull() & (layout.names_columns(names) if layout.is_named else _reads(names[0]))


def _first_is_headed() -> Column:
    return F.coalesce(F.min_by("is_headed", "place"), F.lit(True)).alias("is_headed")


def _reads(name: str) -> Column:
    """Return a true condition that reads a column: Spark refuses to read the column of corrupt records alone."""
    return F.coalesce(F.length(quoted(name)), F.lit(0)) >= 0


def _quotes(spark: SparkSession, layout: CsvLayout, folder: str) -> DataFrame:
    """Return for each line its file and number of quotes; without `multiLine`, whether the number is odd."""
    quote, escape = layout.quote, layout.escape
    options = {**layout.options, "header": "false", "sep": _NOTHING, "quote": "", "escape": "\\"}
    options.pop("delimiter", None)
    lines = csv_reader(spark, options).schema("line string").csv(folder)
    line: Column = F.coalesce("line", F.lit(""))
    if escape != quote:
        line = F.regexp_replace(line, f"(?s){re.escape(escape)}.", "")
    count = F.length(line) - F.length(F.replace(line, F.lit(quote), F.lit("")))
    return lines.select(
        F.input_file_name().alias("file"),
        F.lit(None).cast("long").alias("place"),
        F.lit(None).cast("boolean").alias("is_headed"),
        F.lit(0).cast("long").alias("unfit"),
        (count if layout.is_multiline else count % 2).cast("long").alias("quotes"),
    )


def checked_json(rows: DataFrame, source: Input) -> int:
    """Check the records of a JSON input.

    Its last column holds records that are no JSON or have other types.

    Returns:
        Number of records that do not fit: none unless settings accept them.

    Raises:
        DataError: with the files and the number of records.
    """
    # Spark refuses to read that column alone.
    if len(rows.columns) < 2:
        return 0
    of_file = rows.groupBy(F.input_file_name().alias("file")).agg(
        F.count(quoted(CORRUPT)).alias("records"), F.count(quoted(rows.columns[0])).alias("read")
    )
    files = [UnfitFile(row["file"], True, row["records"]) for row in of_file.where("records > 0").collect()]
    return _accepted(files, source)


def _accepted(files: Sequence[UnfitFile], source: Input) -> int:
    count = sum(file.records for file in files)
    if not count or "mode" in source.by_name:
        return count
    named = named_files([_name(file.file, source.path or "") for file in files])
    records = f"{count:,} record{' of ' if count == 1 else 's of '}{named}"
    if source.format == "json":
        what, how = "are no JSON, or have other types than the rest", "Write one JSON record a line"
    else:
        what = "have another number of fields than the header, or an open quote"
        how = "Write the files by RFC 4180, or set their sep, quote, escape or multiLine in input.options"
    raise DataError(
        f"input: {records} {what}. Text may have moved to another column. Nothing was written. {how}. "
        f"To release these records as Spark reads them, set input.options: {{mode: PERMISSIVE}}."
    )


def _name(address: str, folder: str) -> str:
    name = unquote(address)
    return name.partition(f"{folder.rstrip('/')}/")[2] or posixpath.basename(name)
