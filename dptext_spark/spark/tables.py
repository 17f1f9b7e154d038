"""Find, read and write tables by path or by catalog name, and read their history."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.config.locations import absolute, is_here, normal_path
from dptext_spark.config.sections import Input, is_table_name
from dptext_spark.errors import DataError, SettingsError, check_schema
from dptext_spark.model.table_checks import (
    check_cases,
    check_file_names,
    check_header,
    colon_in_name,
    no_delta_table,
    not_utf8,
    nothing_there,
    unreadable,
)
from dptext_spark.model.target_checks import Commit, our_commits
from dptext_spark.spark.csv_files import (
    CORRUPT,
    check_headers,
    checked_csv,
    checked_json,
    partition_columns,
    read_csv,
)
from dptext_spark.spark.nested_columns import paths_of, schema_of, selected
from dptext_spark.spark.schemas import SCHEMA
from dptext_spark.spark.spark_errors import JAVA_ERROR, condition_of

_PATTERN = re.compile(r"[\\{}\[\]*?]")  # what Spark's file readers take for a part of a pattern
_COLON = "URISyntaxException: Relative path in absolute URI"  # a name with a colon, which Hadoop takes for a scheme
STREAM = "dptext_stream"  # in the commit of a micro-batch: the run id of its stream
_NO_TABLE = (
    "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_ONLY_OPERATION", "DELTA_ONLY_OPERATION", "PATH_NOT_FOUND", "DELTA_MISSING_TRANSACTION_LOG",
    "DELTA_NOT_A_DELTA_TABLE", "EXPECT_TABLE_NOT_VIEW", "SCHEMA_NOT_FOUND",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A Delta table, by path or by catalog name.

    Attributes:
        path: the folder, made absolute; empty where `name` is given.
        name: the catalog name; empty where `path` is given.
    """

    path: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Make the path absolute."""
        if self.path:
            object.__setattr__(self, "path", absolute(self.path))

    @classmethod
    def of_ledger(cls, place: str) -> Target:
        """Return the table of a ledger: a folder, or a catalog name."""
        return cls(name=place) if is_table_name(place) else cls(path=place)

    @property
    def sql(self) -> str:
        """The table's name in SQL."""
        if self.path:
            return "delta.`" + self.path.replace("`", "``") + "`"
        return ".".join("`" + part.replace("`", "``") + "`" for part in split_name(self.name))

    def __str__(self) -> str:
        """Return the path or the name."""
        return self.path or self.name


class DeltaDetail(NamedTuple):
    """The identity of a Delta table.

    Attributes:
        id: its identifier.
        location: where it lies.
        partitions: its partition columns.
        reader: the version of the protocol that readers need; above 1 its files need not hold its rows by their names.
        files: how many it has; None where that is not said.
    """

    id: str
    location: str
    partitions: list[str]
    reader: int
    files: int | None = None


def split_name(name: str) -> list[str]:
    """Split `catalog.schema.table` at its dots, back-ticks respected.

    Raises:
        SettingsError: no table name.
    """
    parts = [a or b for a, b in re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name)]
    if not 1 <= len(parts) <= 3:
        raise SettingsError(f"table: {name!r} is not valid. Use table, schema.table or catalog.schema.table.")
    return parts


def read_input(spark: SparkSession, source: Input, columns: list[str]) -> tuple[DataFrame, str]:
    """Open the input.

    Text columns are read as strings, as all of CSV is; what else JSON holds keeps its type.

    Returns:
        (the frame, its version: `delta:N`, or `files:` and a digest of names, sizes and times).

    Raises:
        DataError: it does not exist or cannot be read.
        SettingsError: a condition that does not fit the columns.
    """
    try:
        if source.table:
            version = delta_version(spark, Target(name=source.table))
            reader = spark.read if version is None else spark.read.option("versionAsOf", version)
            df = reader.table(source.table)
        else:
            of_table = source.format == "delta"
            version = delta_version(spark, Target(path=str(source.path))) if of_table else None
            df = _read_path(spark, source, version, columns)
        named = f"delta:{version}" if version is not None else file_version(df)
    except PySparkException as error:
        raise _unreadable(source, error) from None
    except JAVA_ERROR as error:  # PySpark leaves it as it came where a task fails that reads a schema
        condition = condition_of(error)
        if not condition.startswith("FAILED_READ_FILE"):
            raise
        raise unreadable(str(source.path), source.format, condition) from None
    files = df.inputFiles() if source.format in ("csv", "tsv") else ()
    check_header(schema_of(df.schema), source, columns, files)
    return selected(df, source.where), named


def files_in(place: Path) -> list[Path]:
    """Return the files below a folder, or the file itself, as Spark lists them: without hidden ones, sorted by name."""
    if not place.is_dir():
        return [place] if place.exists() else []
    files = []
    for folder, below, names in os.walk(place):
        below[:] = [name for name in below if not name.startswith(("_", "."))]
        files += [Path(folder, name) for name in names if not name.startswith(("_", "."))]
    return sorted(files, key=str)


def escaped(path: str) -> str:
    """Return a path for Spark's readers of files: pattern characters are escaped.

    Only these readers take patterns. Delta Lake, SQL, writers and `basePath` take a path as it is.
    """
    return _PATTERN.sub(r"\\\g<0>", path)


def listed(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """Return the files at and below a path, as Spark's reader of any file knows them; none is opened for that."""
    reader = spark.read.format("binaryFile").options(recursiveFileLookup="true", **options)
    return reader.load(escaped(path))


def _listed_if_there(spark: SparkSession, path: str) -> DataFrame | None:
    """List what is at and below a path; None where there is nothing of that name."""
    if is_missing(spark, path):
        return None
    try:
        files = listed(spark, path)
        files.schema  # noqa: B018  (makes Spark look for it now)
    except PySparkException as error:
        if str(error.getCondition()).startswith("PATH_NOT_FOUND"):
            return None
        raise
    return files


def holds_files(spark: SparkSession, folder: str, besides: str = "") -> bool:
    """Check whether a folder holds files, beside those with `besides` in their path."""
    files = _listed_if_there(spark, folder)
    if files is None:
        return False
    if not besides:
        return bool(files.inputFiles())  # the listed files, without a job
    return bool(files.select("path").where(~files["path"].contains(besides)).limit(1).count())


def escaped_if_there(spark: SparkSession, path: str) -> str:
    """Return a path escaped where there is a file or folder of that very name; else it is a pattern."""
    return path if _PATTERN.search(path) is None or _listed_if_there(spark, path) is None else escaped(path)


def _unreadable(source: Input, error: PySparkException) -> DataError:
    if _COLON in str(error):
        return colon_in_name(str(source.path))
    place, condition = str(source.table or source.path), str(error.getCondition() or type(error).__name__)
    if condition.startswith("PATH_NOT_FOUND"):
        return nothing_there(place, condition)
    if condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
        return DataError(
            f"input.table: there is no {place!r} ({condition}). Name a table or view of this session's catalog, or a path."
        )
    return unreadable(place, source.format, condition)


def _read_path(spark: SparkSession, source: Input, version: int | None, columns: list[str]) -> DataFrame:
    if source.format == "delta":
        if version is None:
            raise no_delta_table(str(source.path))
        reader = spark.read.options(**source.options).option("versionAsOf", version)
        return reader.format("delta").load(str(source.path))
    if is_here(str(source.path)):
        check_file_names(str(source.path), files_in(Path(normal_path(str(source.path)))))
    place = escaped_if_there(spark, str(source.path))
    if source.format in ("csv", "tsv"):
        return read_csv(spark, source, place)
    if source.format == "json":
        return _lenient(spark, source).schema(_json_schema(spark, source, columns)).json(place)

    df = spark.read.options(**source.options).format(source.format).load(place)
    folders = partition_columns(spark, source.options, source.format, place)
    if not folders:
        return df
    texts = with_texts(df.schema, folders)
    return spark.read.options(**source.options).schema(texts).format(source.format).load(place)


def with_texts(schema: T.StructType, names: Sequence[str]) -> T.StructType:
    """Return a schema with strings in place of some columns: a folder `branch=007` is not the number 7."""
    return T.StructType(
        [T.StructField(f.name, T.StringType(), f.nullable) if f.name in names else f for f in schema.fields]
    )


def _json_schema(spark: SparkSession, source: Input, columns: list[str]) -> T.StructType:
    """Return the types of all records of a JSON input, its text columns as strings: a number in their place is its digits.

    Read with them, a record that does not fit is counted, and no message holds its values. Spark gives records that are no JSON
    a column of their own: raw text, which must not pass through.
    """
    place = escaped_if_there(spark, str(source.path))
    schema = _lenient(_by_case(spark), source).option("samplingRatio", "1.0").json(place).schema
    if CORRUPT in schema.names and source.encoding is None:
        lines = spark.read.options(**source.options).text(place)
        if undecoded := lines.where(~F.is_valid_utf8("value")).count():
            raise not_utf8(undecoded)
    schema = T.StructType([field for field in schema.fields if field.name != CORRUPT])
    check_cases(schema_of(schema), columns)
    schema = with_texts(schema, partition_columns(spark, source.options, "json", place))
    as_text = T.StructType([T.StructField(f.name, _with_strings(f.dataType, [()])) for f in schema.fields])
    texts = paths_of(as_text, columns)
    return T.StructType(
        [
            T.StructField(f.name, _with_strings(f.dataType, [p.parts[1:] for p in texts if p.root == f.name]))
            for f in schema.fields
        ]
    )


def _by_case(spark: SparkSession) -> SparkSession:
    """Return a session with case-sensitive fields: a copy, so no setting of the user's own is changed.

    A server of Spark Connect before 4.1 makes no copies; there Spark refuses only a record that holds both spellings.
    """
    if hasattr(spark, "_jsparkSession"):
        copy = type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())
    elif hasattr(spark, "cloneSession"):
        copy = spark.cloneSession()
    else:
        return spark
    copy.conf.set("spark.sql.caseSensitive", "true")
    return copy


def _with_strings(kind: T.DataType, wanted: list[tuple[str, ...]]) -> T.DataType:
    """Return a type with strings in place of the values that the paths in `wanted` lead to; `()` means all that is below."""
    if not wanted:
        return kind
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_strings(kind.elementType, wanted))
    if isinstance(kind, T.StructType):
        below = {f.name: [way[1:] for way in wanted if way[:1] in ((), (f.name,))] for f in kind.fields}
        return T.StructType(
            [T.StructField(f.name, _with_strings(f.dataType, below[f.name])) for f in kind.fields]
        )
    return T.StringType()


def _lenient(spark: SparkSession, source: Input) -> DataFrameReader:
    """Return a reader of JSON that drops nothing: what does not fit is counted."""
    reader = spark.read.options(**{"allowsinglequotes": "false"} | source.by_name | {"mode": "PERMISSIVE"})
    if source.encoding is not None and "linesep" not in source.by_name:
        reader = reader.option("lineSep", "\n")  # Spark looks for the end of a line in UTF-8 alone
    return reader.option("columnNameOfCorruptRecord", CORRUPT)


def checked_records(spark: SparkSession, source: Input, df: DataFrame) -> int | None:
    """Check that the records of a CSV, TSV or JSON input fit its columns: one job over the files.

    Returns:
        How many do not, which settings then accept; None for other formats.

    Raises:
        DataError: some do not, with their number and the files.
    """
    if source.table or source.format not in ("csv", "tsv", "json"):
        return None
    place = escaped_if_there(spark, str(source.path))
    if source.format != "json":
        return checked_csv(spark, source, place)
    schema = T.StructType([*df.schema.fields, T.StructField(CORRUPT, T.StringType())])
    return checked_json(_lenient(spark, source).schema(schema).json(place), source)


def check_same_columns(spark: SparkSession, source: Input, *, elsewhere: bool = True) -> None:
    """Check that all files of a CSV or TSV input have the columns of the first; see :func:`check_headers`.

    Raises:
        DataError: naming those that have others.
    """
    if not source.table and source.format in ("csv", "tsv"):
        place = escaped_if_there(spark, str(source.path))
        check_headers(spark, source, place, elsewhere=elsewhere)


def file_version(df: DataFrame) -> str:
    """Name the content of file inputs: a digest of names, and of sizes and times where the files are local."""
    digest = hashlib.sha256()
    for name in sorted(df.inputFiles()):
        digest.update(name.encode())
        parsed = urlparse(name)
        local = unquote(parsed.path)
        if parsed.scheme in ("", "file") and os.path.exists(local):
            status = os.stat(local)
            digest.update(f"|{status.st_size}|{status.st_mtime_ns}".encode())
    return f"files:{digest.hexdigest()[:32]}"


def sizes_of(spark: SparkSession, place: str) -> dict[str, int]:
    """Return the files that a run would read, with their bytes; their contents stay where they are."""
    listing = spark.read.format("binaryFile").load(escaped_if_there(spark, place))
    return {row["path"]: row["length"] for row in listing.select("path", "length").collect()}


def on_disk(spark: SparkSession, path: str) -> bool:
    """Check whether Spark takes a path for one of this machine's disks; a server of Spark Connect has files of its own."""
    java = getattr(spark, "_jsc", None)
    if java is None:
        return False
    default = str(java.hadoopConfiguration().get("fs.defaultFS", "file:///"))
    return path.startswith("file:") or (path.startswith("/") and default.startswith("file:"))


def is_missing(spark: SparkSession, path: str) -> bool:
    """Check whether a path of this machine leads to nothing. Spark says so by an error, which takes it a tenth of a second."""
    return bool(path) and on_disk(spark, path) and not os.path.lexists(normal_path(path))


def delta_version(spark: SparkSession, target: Target) -> int | None:
    """Return the current version of a Delta table, or None where there is no such table."""
    rows = history(spark, target, limit=1)
    return rows[0].version if rows else None


def opened(spark: SparkSession, target: Target, version: int | None = None) -> DataFrame:
    """Open a Delta table by its path or its name, as it is or as it was at a version."""
    reader = spark.read if version is None else spark.read.option("versionAsOf", version)
    return reader.table(target.sql) if target.name else reader.format("delta").load(target.path)


def history(spark: SparkSession, target: Target, limit: int | None = None) -> list[Commit]:
    """Return the commits of a Delta table, newest first; none where there is no such table."""
    if is_missing(spark, target.path):
        return []
    try:
        log = spark.sql(f"DESCRIBE HISTORY {target.sql}{f' LIMIT {limit}' if limit else ''}")
        return [_commit(row) for row in log.collect()]
    except PySparkException as error:
        if is_no_table(error):
            return []
        raise


def _commit(row: Row) -> Commit:
    """Read a row of `DESCRIBE HISTORY`."""
    parameters, metrics = (row[name] or {} for name in ("operationParameters", "operationMetrics"))
    return Commit(int(row["version"]), row["operation"], parameters, row["userMetadata"], metrics)


def is_no_table(error: PySparkException) -> bool:
    """Check whether an error says that there is no Delta table at a place: nothing at all, or something else."""
    return str(error.getCondition()).startswith(_NO_TABLE)


def opened_if_there(spark: SparkSession, place: str | Target) -> DataFrame | None:
    """Open a Delta table, by its path or as a target; None where there is none."""
    target = place if isinstance(place, Target) else Target(path=place)
    if is_missing(spark, target.path):
        return None
    try:
        frame = opened(spark, target)
        frame.schema  # noqa: B018  (makes Spark look for it now)
    except PySparkException as error:
        if is_no_table(error):
            return None
        raise
    return frame


def own_table(spark: SparkSession, place: str | Target) -> DataFrame | None:
    """Open a table of dptext's own; None where there is none.

    Raises:
        DataError: it has another schema version, or is another's.
    """
    table = opened_if_there(spark, place)
    return None if table is None else checked_table(table, place)


def checked_table(table: DataFrame, place: str | Target) -> DataFrame:
    """Return a table of dptext's own whose schema version is known.

    Raises:
        DataError: it has another schema version, or is another's.
    """
    check_schema(
        table.schema.fields[0].metadata.get(SCHEMA) if table.columns else None, f"the table {str(place)!r}"
    )
    return table


def undone_by(commits: Sequence[Commit], version: int) -> int | None:
    """Return the RESTORE that took a version back out of a table; None where the table holds that version or came after it.

    What was restored to a time counts as gone: that time is written in the zone of a session that is not known.
    """
    restores = {commit.version: commit for commit in commits if commit.operation == "RESTORE"}
    now = max((commit.version for commit in commits), default=version)
    while restore := max((each for each in restores if version < each <= now), default=None):
        back_to = restores[restore].parameters.get("version")
        if back_to is None or int(back_to) < version:
            return restore
        now = int(back_to)  # what came between is out of the table, other restores with it
    return None


def releases(commits: Iterable[Commit]) -> set[str]:
    """Return the run ids that released records: the micro-batches of a stream, which hold other rows each, are one release."""
    return {str(commit.said.get(STREAM, run_id)) for run_id, commit in our_commits(commits).items()}


def leftover_files(spark: SparkSession, target: Target, since: float) -> list[str]:
    """List data files in a target's folder that are newer than `since` (epoch seconds): what a failed run left.

    Only for targets by path: of a table by name the folder may be out of reach.
    """
    if not target.path:
        return []
    try:
        files = listed(spark, target.path, pathGlobFilter="*.parquet")
        dated = files.select("path", F.col("modificationTime").cast("double").alias("at")).collect()
        return sorted(row["path"] for row in dated if row["at"] >= since - 1)
    except PySparkException as error:
        if str(error.getCondition()).startswith(("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")):
            return []
        raise
