"""CSV and TSV inputs by RFC 4180: every column a text, columns by their names, and no record dropped.

Quoted fields may hold line breaks (`multiLine`), and a doubled quote stands for one (`escape`). `input.options` may
say otherwise. A first line `sep=;`, as Excel writes it, is no row: it names the separator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.tables.table_files import safe_names
from dptext_spark.spark.tables.paths import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """How the files of an input are written.

    Attributes:
        options: of Spark's reader; names in lower case, as Spark tells no cases apart.
        columns: of the files, in their order.
        partitions: columns that folders are named by.
        files: their addresses, sorted.
        is_named: whether a line of each file names the columns.
        is_marked: whether each file begins with a line `sep=`.
    """

    options: Mapping[str, str]
    columns: tuple[str, ...]
    partitions: tuple[str, ...]
    files: tuple[str, ...]
    is_named: bool
    is_marked: bool

    @property
    def is_multiline(self) -> bool:
        """Whether a quoted field may hold line breaks."""
        return self.options["multiline"].lower() == "true"

    @property
    def encoding(self) -> str:
        """The encoding of the files, by either of the names that Spark has for it."""
        return self.options.get("encoding", self.options.get("charset", "UTF-8"))

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
    """Return a reader of CSV files that drops nothing: what does not fit its columns is in `CORRUPT`, where that is read."""
    # Names are compared in the files' own spelling and order before a run begins: Spark's check would show a line in its message.
    return spark.read.options(**{**options, **LENIENT, "enforceschema": "true"})


def csv_options(source: Input) -> dict[str, str]:
    """Return how CSV files are read, with names in lower case: by RFC 4180, where settings do not say otherwise."""
    options = {name.lower(): value for name, value in source.options.items()}
    quote = options.get("quote", '"')
    defaults = {"multiline": "true", "header": "true", **({"escape": quote} if len(quote) == 1 else {})}
    if source.format == "tsv" and not {"sep", "delimiter"} & set(options):
        defaults["sep"] = "\t"
    return {**defaults, **options}


def partition_columns(
    spark: SparkSession, options: Mapping[str, str], format: str, folder: str
) -> tuple[str, ...]:
    """Return the columns that folders are named by; files are listed and not opened."""
    frame = _listed(spark, options, format, folder)
    return tuple(name for name in frame.columns if name != _NONE)


def _listed(spark: SparkSession, options: Mapping[str, str], format: str, folder: str) -> DataFrame:
    """Return a frame that knows the files of an input and how their folders are named, and nothing of what is in them."""
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
            f"input: column {twice[0]!r} is in the files and in the names of their folders; valid: a name for each, or "
            "input.options: {recursiveFileLookup: true}, which reads files alone."
        )
    return CsvLayout(options, tuple(columns), partitions, files, is_named, separator is not None)


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
    """Return the separator that a first line `sep=` names; None where it is no such line.

    Raises:
        SettingsError: the settings name another one.
    """
    marked = _MARK.fullmatch(first[0]) if first else None
    used = options.get("sep", options.get("delimiter", ","))
    if marked is None or len(first) > 2:
        return None
    if not marked[1]:  # the line ends with the separator by which it was read
        return used if tuple(first[1:]) == ("",) else None
    named = {"sep", "delimiter"} & {name.lower() for name in source.options}
    if named:
        raise SettingsError(
            f"input.options.{min(named)}: {used!r} given, and the files begin with the line sep={marked[1]}; valid: "
            f"{marked[1]!r}, or leave the option out."
        )
    return marked[1]


def read_csv(spark: SparkSession, source: Input, folder: str) -> DataFrame:
    """Open a CSV or TSV input: its columns are texts, those that folders are named by too.

    Raises:
        SettingsError, DataError: as :func:`layout_of`.
    """
    layout = layout_of(spark, source, folder)
    names = [*layout.columns, *layout.partitions]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    # The line `sep=` stands where Spark looks for names, so that it takes the names for a row.
    df = layout.reader(spark, layout.is_named or layout.is_marked).schema(schema).csv(folder)
    if layout.is_marked and layout.is_named and layout.columns:
        df = df.where(~layout.names_columns(layout.columns))
    return df
