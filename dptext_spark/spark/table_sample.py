"""A sample of a table, for a first look. Nothing is written, and no ledger is charged.

It has at most `SAMPLE_ROWS` rows of `MOST_FILES` files, evenly spaced by name. From text files Spark takes the first lines;
:mod:`dptext_spark.model.table_files` parses them into rows.

A file or a folder of this machine wins over a catalog name.

`preview`: a few rows of a table before and after, for a notebook; nothing is written, and nothing is spent.
"""

from __future__ import annotations

import gzip
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dptext_spark.config.locations import TABLE, has_scheme, holds_credentials
from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, NoRowsError, SettingsError, either, require_choice
from dptext_spark.guarantee import Guarantee
from dptext_spark.model.first_look import THROWN_AWAY, draw_rows
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import FORMATS, check_file_names
from dptext_spark.model.table_files import (
    ENCODING,
    ENDINGS,
    FIELD,
    MOST_BYTES,
    MOST_FILES,
    MOST_HEADERS,
    PACKED,
    SAMPLE_ROWS,
    AsText,
    Beginning,
    TableSample,
    encoding_of,
    encoding_of_json,
    evenly_spaced,
    format_of,
    made_sample,
    sample_of_texts,
    with_large_files,
)
from dptext_spark.report.before_and_after import NOTE, RowComparison, compare_rows
from dptext_spark.runtime.display import Steps, by_default, line, side_by_side
from dptext_spark.spark.csv_files import partition_columns
from dptext_spark.spark.nested_columns import quoted, require_columns
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.spark_errors import (
    JAVA_ERROR,
    condition_of,
    reduced,
    reported,
    suppress_sensitive_logs,
)
from dptext_spark.spark.tables import (
    Target,
    check_same_columns,
    delta_version,
    escaped,
    escaped_if_there,
    read_input,
    sizes_of,
    with_texts,
)

if TYPE_CHECKING:
    import pandas as pd

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
LINES = 2_000  # of each text file
_FIRST = "for a table of this format, Spark returns the first rows and counts all"
_MARK_OF_UTF16 = "\ufffd\ufffd"  # as UTF-8 reads it


def place_of(table: str) -> Target:
    """Distinguish paths from catalog names.

    Raises:
        SettingsError: it is neither a path nor the name of a table, it is no file, or its path holds a password.
    """
    if holds_credentials(table):
        raise SettingsError(
            f"{FIELD}: the path holds a password, key or signature, and a file of settings would keep it. "
            "Use a path without, and put credentials into Spark's own settings."
        )
    local = Path(table.removeprefix("file://") if table.startswith("file:///") else table)
    if local.exists():
        if not local.is_file() and not local.is_dir():
            raise SettingsError(
                f"{FIELD}: {table!r} is a pipe, a device or a socket. Name a file or a folder."
            )
        return Target(path=os.path.abspath(local))
    if has_scheme(table) and not table.startswith("file:"):
        return Target(path=table)
    ending = f".{table.lower().rpartition('.')[2]}"
    if TABLE.fullmatch(table) and ending not in ENDINGS and ending not in PACKED:
        return Target(name=table)
    raise SettingsError(
        f"{FIELD}: {table!r} does not exist. Name a local file or folder, a path with a scheme such "
        "as s3a://, or a catalog name such as db.table."
    )


def read_sample(
    table: str | Path | Input,
    format: str | None = None,
    as_text: AsText | None = None,
    progress: Steps | None = None,
    spark: SparkSession | None = None,
    columns: Sequence[str] = (),
) -> TableSample:
    """Read a sample of a table.

    Without a `format` the names of the files decide, or Delta. Of a run's input it is the first rows, as the run reads them with
    these text `columns`.

    Raises:
        SettingsError: there is nothing of that name, or files of several formats.
        DataError: it cannot be read, holds no row, or is not written as it should be.
        RunError: Spark failed.
    """
    if format is not None:
        require_choice("format", format, FORMATS)
    say = progress or by_default()
    of_run = table if isinstance(table, Input) else None
    place = Target(of_run.path or "", of_run.table or "") if of_run else place_of(str(table))
    if spark is None:
        say("starting Spark")
    session = spark or spark_session()
    say("reading a sample")
    with suppress_sensitive_logs(session):
        try:
            if of_run:
                read = read_input(session, of_run, list(columns))[0].limit(SAMPLE_ROWS).toArrow()
                return made_sample(str(place), of_run.format, [read], read.num_rows, False, 1, 1)
            sample = _sample(session, place, format, as_text or AsText())
        except PySparkException as error:
            raise reduced(error, [str(place)]) from None
        except pa.ArrowException as error:  # its text may hold private words
            raise DataError(f"{FIELD}: a text is not valid Unicode ({type(error).__name__}).") from None
    return replace(sample, is_name=bool(place.name))


def _sample(spark: SparkSession, table: Target, format: str | None, as_text: AsText) -> TableSample:
    place = str(table)
    if table.name or format == "delta" or (format is None and delta_version(spark, table) is not None):
        source = Input(table=place) if table.name else Input(path=place)
        return _first_rows(read_input(spark, source, [])[0], place)
    files = _files(spark, place)
    if not files and not os.path.isdir(place):  # Spark leaves empty files out
        raise NoRowsError(f"{FIELD}: {place!r} has no row. Use a table with rows.")
    names = [posixpath.basename(file) for file in files]
    is_file = names == [posixpath.basename(place)]
    kind = "text" if format == "text" else format_of(place, names, format, is_file)
    some = evenly_spaced(sorted(files), MOST_FILES)
    folders = (
        ()
        if is_file
        else partition_columns(spark, {}, kind.replace("tsv", "csv"), escaped_if_there(spark, place))
    )
    if kind in ("parquet", "text"):
        return _of_rows(spark, place, kind, files, some, folders)
    encoding = encoding_of_json(as_text.encoding) if kind == "json" else as_text.encoding
    texts = [
        _beginning(spark, file, files[file], encoding)._replace(partitions=_values(file, folders))
        for file in some
    ]
    sample = sample_of_texts(place, kind, texts, sum(files.values()), len(files), as_text)
    if kind != "json" and len(files) <= MOST_HEADERS:
        source = Input.model_validate({"path": place, "format": kind, "options": dict(sample.options)})
        check_same_columns(spark, source, elsewhere=False)
    return with_large_files(sample, files)


def _of_rows(
    spark: SparkSession,
    place: str,
    kind: str,
    files: Mapping[str, int],
    some: Sequence[str],
    folders: Sequence[str],
) -> TableSample:
    """Sample Parquet files, or lines of text."""
    reader = spark.read.option("basePath", place) if folders else spark.read
    each = -(-SAMPLE_ROWS // max(len(some), 1))
    parts, counts = [], []
    for file in some:
        try:
            frame = reader.format(kind).load(escaped(file))
            if folders:
                frame = reader.schema(with_texts(frame.schema, folders)).format(kind).load(escaped(file))
            parts.append(frame.limit(each).toArrow())
            counts.append(frame.count() if kind == "parquet" else parts[-1].num_rows)
        except (PySparkException, JAVA_ERROR) as error:
            raise DataError(
                f"{FIELD}: {posixpath.basename(file)!r} cannot be read as {kind} ({condition_of(error)}). "
                "Name a table with files of one format."
            ) from None
    is_all, size = len(some) == len(files), sum(files.values())
    rows, exact = sum(counts), is_all and (kind == "parquet" or all(count < each for count in counts))
    if not exact:
        # A line has an offset of 4 bytes there, and a line feed in its file.
        lines = sum(part.nbytes - 3 * part.num_rows for part in parts)
        read = sum(files[file] for file in some) if kind == "parquet" else lines
        rows = round(rows * size / max(read, 1))
    return made_sample(place, kind, parts, rows, exact, len(files), len(some))


def _values(file: str, columns: Sequence[str]) -> dict[str, str | None]:
    """Return the columns in the names of a file's folders, as Spark reads them."""
    named = {
        unquote(name): unquote(value) for name, _, value in (part.partition("=") for part in file.split("/"))
    }
    return {name: None if named[name] == _NULL_FOLDER else named[name] for name in columns if name in named}


def _first_rows(df: DataFrame, place: str) -> TableSample:
    """Sample a table of the catalog, or a Delta table, whose files need not hold its rows."""
    read = df.limit(SAMPLE_ROWS).toArrow()
    files = max(len(df.inputFiles()), 1)
    return made_sample(place, "delta", [read], df.count(), True, files, 1, assumed=(f"{_FIRST}.",))


def _files(spark: SparkSession, place: str) -> dict[str, int]:
    """Return the files that a run would read, with their bytes; their contents stay where they are."""
    try:
        files = sizes_of(spark, place)
    except PySparkException as error:
        if str(error.getCondition()).startswith("PATH_NOT_FOUND"):
            raise SettingsError(
                f"{FIELD}: {place!r} does not exist or is empty. Name a path that exists where Spark runs."
            ) from None
        raise
    check_file_names(place, (Path(file) for file in files if file.startswith("file:")))
    return files


def _beginning(spark: SparkSession, file: str, size: int, encoding: str | None) -> Beginning:
    """Return the lines that a text file begins with: in UTF-8, or in UTF-16 behind its mark, where no encoding is given."""
    name = "UTF-8" if encoding is None else encoding_of(encoding)
    lines = _lines(spark, file, size, name)
    if encoding is None and lines and lines[0].startswith(_MARK_OF_UTF16):
        name = "UTF-16"
        lines = _lines(spark, file, size, name)
    text = "".join(f"{line}\n" for line in lines).removeprefix("\ufeff")
    if "\ufffd" in text:
        raise DataError(
            f"{FIELD}: {posixpath.basename(file)!r} is not {name}. Name another encoding: {ENCODING}, such as ISO-8859-1."
        )
    is_all = len(lines) < LINES and len(text) <= MOST_BYTES
    text = text[:MOST_BYTES]
    raw = text.encode(name, "replace")
    used = len(gzip.compress(raw)) if file.lower().endswith(PACKED) else len(raw)
    return Beginning(text, used, is_all, name, posixpath.basename(file))


def _lines(spark: SparkSession, file: str, size: int, encoding: str) -> list[str]:
    """Return the first lines of a file, those that begin in its first `MOST_BYTES` characters, the last one cut.

    Nothing is a separator or a quote here, so that a line is one field. Of a large file only the lengths of its lines come to
    the driver first, so that all lines that come are shorter than 1 MB.
    """
    reader = spark.read.schema("line string").options(sep="\x01", quote="", header=False, multiLine=True)
    read = reader.option("encoding", encoding).csv(escaped(file)).limit(LINES).na.fill("")
    if size > MOST_BYTES or file.lower().endswith(PACKED):
        ends = accumulate(read.select(F.length("line") + 1).toArrow().column(0).to_pylist())
        # A byte order mark may be the first character.
        read = read.limit(1 + sum(end <= MOST_BYTES + 1 for end in ends))
    return [*read.select(F.substring("line", 1, MOST_BYTES + 1)).toArrow().column(0).to_pylist()]


MOST_ROWS = 20


@dataclass(frozen=True, repr=False)
class TablePreview:
    """A few rows before and after one draw under a key that is thrown away. A notebook shows them side by side.

    Attributes:
        columns: the rows of each text column, by its name.
        guarantee: of a drawn word.

    Examples:
        >>> shown = dps.preview(df, ["body"], model)
        >>> shown.columns["body"].before
        ('Please send the parcel.',)
    """

    columns: Mapping[str, RowComparison]
    guarantee: Guarantee

    def __repr__(self) -> str:
        """Return the numbers of rows and columns, without the rows: they are private."""
        size, wide = len(next(iter(self.columns.values())).before), len(self.columns)
        rows = f"{size:,} {'row' if size == 1 else 'rows'}"
        return line(
            "TablePreview",
            rows,
            f"{wide:,} {'column' if wide == 1 else 'columns'}",
            "not shown",
            "key thrown away",
            "not for sharing",
        )

    def _repr_html_(self) -> str:
        """Return the rows side by side, and why nothing is spent, for a notebook."""
        by_column = [
            [
                (f"row {number}, {name}", *pair)
                for number, pair in enumerate(zip(comparison.before, comparison.after, strict=True), start=1)
            ]
            for name, comparison in self.columns.items()
        ]
        rows = list(chain.from_iterable(zip(*by_column, strict=True)))
        return side_by_side("Preview of rows", rows, note=f"{THROWN_AWAY} {NOTE} {self.guarantee}")


def preview(
    df: DataFrame | pd.DataFrame | pa.Table, columns: Sequence[str], model: Privatizer, *, rows: int = 5
) -> TablePreview:
    """Show a few rows before and after one draw, under a fresh key that is thrown away.

    Nothing is written, and nothing is spent of the ledger. That holds only while nobody shares the output: for everybody who
    sees it, it is one more release of these rows. Each row is a record of its own here.

    Args:
        df: a Spark DataFrame, a pandas one, or an Arrow table; of Spark's the rows that come first, in no certain order. Their
            texts come to the driver, by Spark Connect to the client, and are drawn there.
        columns: the text columns; not those inside nested ones.
        model: the compiled model.
        rows: how many, 1 to 20.

    Raises:
        SettingsError: another number of rows, no columns, or a model whose importance needs weights or counts.
        DataError: a column is missing, is there twice or is no text; a text is no valid Unicode; what is given is no table.
        RunError: Spark cannot give the rows: named by Spark's own condition, without its message.

    Examples:
        >>> dps.preview(df, ["body"], model)
        TablePreview(1 row, 1 column, not shown, key thrown away, not for sharing)
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise SettingsError(f"rows: {rows!r} is not valid. Use 1 to {MOST_ROWS:,}.")
    require_columns(columns)
    names = _names(df, list(columns))
    for name in columns:
        if names.count(name) != 1 or list(columns).count(name) != 1:
            raise DataError(
                f"columns: {name!r} is not exactly once in the table. Choose {either(names) or 'a table with columns'}."
            )
    texts = {name: _text(name, values) for name, values in _first(df, list(columns), rows).items()}
    after = draw_rows(model, texts)
    return TablePreview(
        {name: compare_rows(texts[name], after[name]) for name in texts}, model.guarantee(of_rows=True)
    )


def _names(df: DataFrame | pd.DataFrame | pa.Table, columns: list[str]) -> list[str]:
    """Return the names of all columns that are there."""
    if isinstance(df, DataFrame):
        with reported(df.sparkSession, columns):
            return list(df.columns)
    return list(df.column_names if isinstance(df, pa.Table) else getattr(df, "columns", ()))


def _first(
    df: DataFrame | pd.DataFrame | pa.Table, columns: list[str], rows: int
) -> dict[str, pa.ChunkedArray]:
    """Return the first rows of some columns, by their names."""
    if isinstance(df, DataFrame):
        with reported(df.sparkSession, columns):
            table = df.select(*(quoted(name) for name in columns)).limit(rows).toArrow()
        return dict(zip(columns, table.columns, strict=True))
    if isinstance(df, pa.Table):
        return {name: df.column(name).slice(0, rows) for name in columns}
    try:
        return {name: pa.chunked_array([pa.array(df[name].head(rows), from_pandas=True)]) for name in columns}
    except (AttributeError, TypeError, ValueError):  # Arrow's own message would show the value
        raise DataError(
            f"columns {', '.join(columns)}: the input is no table of texts. Give text columns of a Spark "
            "DataFrame, a pandas DataFrame or an Arrow table."
        ) from None


def _text(name: str, values: pa.ChunkedArray) -> pa.Array:
    """Return the texts of a column as one array, string or large_string."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise DataError(f"{name}: a column of type {values.type} is not valid. Name a text column.")
    # Together, so that a slice of a large table holds no more than its rows.
    return pa.concat_arrays([*values.cast(pa.large_string()).chunks, pa.array([], pa.large_string())])
