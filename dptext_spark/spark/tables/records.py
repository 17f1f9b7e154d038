"""Whether the records of a CSV, TSV or JSON input are what its columns say: one job over its files, before anything is written.

Of CSV three things are checked of each file, and no message shows what stands in one:

- its first line names the columns of the others, in their order; without a header it has as many fields;
- every record has as many fields as there are columns;
- its quotes close: their number is even, in the whole file or, with `multiLine: false`, in each line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError
from dptext_spark.model.tables.table_checks import named_files, other_header
from dptext_spark.spark.tables.csv_files import CORRUPT, CsvLayout, csv_reader, layout_of
from dptext_spark.spark.tables.paths import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTHING = "\ufdd0"  # separates the fields of a line that is one field; it is no character, by Unicode


class UnfitFile(NamedTuple):
    """A file that is not as its table.

    Attributes:
        file: its address.
        is_headed: whether its first line is as those of the others.
        records: of it that do not fit, or whose quote does not close.
    """

    file: str
    is_headed: bool
    records: int


def checked_csv(spark: SparkSession, source: Input, folder: str) -> int:
    """Check the files of a CSV or TSV input; return how many records do not fit, which are none unless settings accept them.

    Raises:
        DataError: with the files and the number of records.
    """
    layout = layout_of(spark, source, folder)
    if not layout.columns:
        return 0
    both = _rows(spark, layout, folder)
    if len(layout.options.get("quote", '"')) == 1:
        both = both.unionByName(_quotes(spark, layout, folder))
    of_file = both.groupBy("file").agg(
        F.coalesce(F.min_by("is_headed", "place"), F.lit(True)).alias("is_headed"),
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
    others = [_name(file.file, source.path or "") for file in files if not file.is_headed]
    if others:
        raise other_header(others, len(layout.columns), is_named=layout.is_named)
    return _accepted(files, source)


def _rows(spark: SparkSession, layout: CsvLayout, folder: str) -> DataFrame:
    """Return of each record its file, its place there, whether it could be the first line, and whether it does not fit."""
    names = [f"_{number}" for number in range(len(layout.columns))]
    schema = ", ".join(f"{name} string" for name in [*names, CORRUPT])
    rows = layout.reader(spark, layout.is_marked).schema(schema).csv(folder)
    fits = quoted(CORRUPT).isNull()
    is_headed = fits & (layout.names_columns(names) if layout.is_named else _reads(names[0]))
    # The beginning of a file that is read in parts comes first.
    place = F.when(F.expr("input_file_block_start()") == 0, F.monotonically_increasing_id())
    return rows.select(
        F.input_file_name().alias("file"),
        place.alias("place"),
        is_headed.alias("is_headed"),
        (~fits).cast("long").alias("unfit"),
        F.lit(0).cast("long").alias("quotes"),
    )


def _reads(name: str) -> Column:
    """Return a condition that holds and reads a column: Spark refuses to read the column of corrupt records alone."""
    return F.coalesce(F.length(quoted(name)), F.lit(0)) >= 0


def _quotes(spark: SparkSession, layout: CsvLayout, folder: str) -> DataFrame:
    """Return of each line its file and how many quotes it has; without `multiLine`, whether their number is odd."""
    quote = layout.options.get("quote", '"')
    escape = layout.options.get("escape", "\\")
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

    Args:
        rows: the input, and last the column of records that are no JSON, or not of its types.
        source: the input's settings.

    Returns:
        How many records do not fit, which are none unless settings accept them.

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
    if not count or any(name.lower() == "mode" for name in source.options):
        return count
    named = named_files([_name(file.file, source.path or "") for file in files])
    records = f"{count:,} record{' of ' if count == 1 else 's of '}{named}"
    if source.format == "json":
        what, how = "are no JSON, or not of the types of the others", "one JSON record a line"
    else:
        what = "have another number of fields than the columns, or a quote that does not close"
        how = "files by RFC 4180; input.options with the sep, quote, escape or multiLine by which they are written"
    raise DataError(
        f"input: {records} {what}. Text may stand in another column than its own. Nothing was written. Valid: {how}; or "
        "input.options: {mode: PERMISSIVE}, which releases these records as far as they go."
    )


def _name(address: str, folder: str) -> str:
    name = unquote(address)
    return name.partition(f"{folder.rstrip('/')}/")[2] or posixpath.basename(name)
