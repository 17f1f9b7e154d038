"""Lists of names in a run: the driver reads and hashes them once, and workers look words up in them.

A file brings the table of all rows' lists to the workers; the lists of each row come from its columns. The file holds hashes
without a key: its readers can test guesses. Only the driver's user may read its folder. It is emptied when the run ends, and goes
with the process. Spark also hands it to executors that start later, and fails their tasks if it is gone. The copies on executors
go with the application.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.arrays import I64, U64
from dptext_spark.errors import DataError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import list_column
from dptext_spark.runtime.display import Steps
from dptext_spark.runtime.paths import PRIVATE
from dptext_spark.spark.nested_columns import Elements, is_list, quoted, schema_of
from dptext_spark.spark.spark_errors import LIST_ENTRY, TaskError, condition_of
from dptext_spark.spark.tables import split_name
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_lists import NameLists
from dptext_spark.text.names.name_table import MOST_ENTRIES, NameTable, WordList, check_size
from dptext_spark.text.names.search import PERSON, ListSource, ListSources


@dataclass(frozen=True)
class ShippedLists:
    """A worker's view of the lists of names of a run; it travels in the function's closure and holds no entry.

    Attributes:
        file: the table, by the name that Spark shipped it under; empty: there is none.
        uses: treatment of the entries of each list, see :class:`NameTable`.
        columns: whose texts are the lists of their rows, those that mask first: an argument each.
        column_uses: treatment of the entries of each.
    """

    file: str = ""
    uses: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    column_uses: tuple[str, ...] = ()


NO_LISTS = ShippedLists()


class PrivateFile:
    """A file on the driver that only its user may read, shipped to all workers under `name`."""

    def __init__(self, spark: SparkSession, kind: str, write: Callable[[BinaryIO], None]) -> None:
        """Write the file, and ship it."""
        folder = Path(tempfile.mkdtemp(prefix=f"dptext-{kind}-"))  # for its user alone
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.name = f"{kind}-{secrets.token_hex(12)}.npy"
        self.path = folder / self.name
        with open(self.path, "wb", opener=lambda path, flags: os.open(path, flags, PRIVATE)) as out:
            write(out)
        spark.addArtifact(str(self.path), file=True)

    def empty(self) -> None:
        """Empty the file: no task of the run needs it any more."""
        if self.path.exists():
            os.truncate(self.path, 0)


def table_file(spark: SparkSession, table: NameTable) -> PrivateFile:
    """Ship a table of names."""
    return PrivateFile(spark, "names", lambda out: np.save(out, table.cells))


def with_lists(
    privatizer: Privatizer, lists: ShippedLists, arrays: Sequence[pa.Array | Elements]
) -> Privatizer:
    """Return a model that looks for the lists of all rows, and in each row of a batch for the row's own.

    `arrays` has for each column of lists string or binary [n], or lists of them, flattened or not.

    Raises:
        TaskError: an invalid entry.
    """
    matcher = matcher_of(lists, arrays)
    return privatizer if matcher is None else privatizer.with_names(matcher)


def matcher_of(lists: ShippedLists, arrays: Sequence[pa.Array | Elements]) -> NameMatcher | None:
    """Return the names to find in a batch, as input of :func:`with_lists`; None without lists."""
    if not lists.file and not lists.columns:
        return None
    table = NameTable(_cells(lists.file), lists.uses)
    if not lists.columns:
        return NameMatcher(table)
    entries, rows = [], []
    for name, values in zip(lists.columns, arrays, strict=True):
        texts, row = _texts_of(values)
        try:
            words = WordList.of_texts(name, texts, needed=False)
        except DataError:
            raise TaskError(LIST_ENTRY, 0, 0, len(texts)) from None
        entries.append(words)
        rows.append(row[words.places])
    try:
        own = NameTable.of(entries, lists.column_uses, rows)
    except DataError:
        raise TaskError(LIST_ENTRY, 0, 0, sum(map(len, entries))) from None
    return NameMatcher(table, own)


@lru_cache(maxsize=8)
def _cells(file: str) -> U64:
    """Map the table of the lists of all rows, once a process; without a file it holds none."""
    from pyspark import SparkFiles

    return np.load(SparkFiles.get(file), mmap_mode="r") if file else NameTable.of([]).cells


def _texts_of(values: pa.Array | Elements) -> tuple[pa.Array, I64]:
    """Return the texts of a column and the row of each."""
    if not isinstance(values, Elements) and is_list(values.type):
        values = Elements.of(values)
    return (values.texts, values.rows) if isinstance(values, Elements) else (values, np.arange(len(values)))


class RunLists:
    """The lists of names of a run, or of a stream, and where its workers find them.

    Attributes:
        lists: the lists as read.
        content: their plain digests, shown nowhere.
    """

    def __init__(self, lists: NameLists, content: tuple[str | None, ...]) -> None:
        """Take lists; nothing is shipped yet."""
        self.lists, self.content = lists, content
        self._file: PrivateFile | None = None

    def shipped(self, spark: SparkSession) -> ShippedLists:
        """Return the workers' view; the first call ships the table."""
        table = self.lists.table
        if table is not None and self._file is None:
            self._file = table_file(spark, table)
        names, uses = zip(*self.lists.columns, strict=True) if self.lists.columns else ((), ())
        return ShippedLists(
            "" if self._file is None else self._file.name, () if table is None else table.uses, names, uses
        )

    def end(self) -> None:
        """Empty the file that was shipped, if any; another call of :meth:`shipped` ships another."""
        if self._file is not None:
            self._file.empty()
            self._file = None


def resolve_columns(df: DataFrame, sources: ListSources) -> ListSources:
    """Return the sources, columns of the input by their exact names.

    Raises:
        DataError: a column that is missing, or holds neither text nor lists of text.
    """
    schema = schema_of(df.schema)
    return sources.changed(
        lambda field, source: (
            replace(source, column=list_column(schema, field, str(source.column)))
            if source.of_rows
            else source
        )
    )


def read_lists(spark: SparkSession, sources: ListSources) -> tuple[WordList | None, ...]:
    """Read the lists that are files and tables; None in the place of a column of the input.

    Raises:
        DataError: one cannot be read, or is none; the message names its setting, and no entry.
    """
    return tuple(_read(spark, field, source) for field, source in sources.named())


def _read(spark: SparkSession, field: str, source: ListSource) -> WordList | None:
    if source.of_rows:
        return None
    if source.file is not None:
        return WordList.read(field, source.file)
    try:
        table = spark.table(".".join(f"`{part}`" for part in split_name(str(source.table))))
        name = list_column(schema_of(table.schema), field, str(source.column))
        if isinstance(table.schema[name].dataType, T.ArrayType):
            raise DataError(
                f"{field}.column: column {name!r} holds lists. Use a column with one name in each row."
            )
        named = table.select(quoted(name).alias("name")).where("name IS NOT NULL")
        size = named.agg(F.count("name").alias("rows"), F.sum(F.octet_length("name")).alias("bytes")).first()
        assert size is not None  # an aggregate without groups has one row
        check_size(field, size["rows"], size["bytes"] or 0)
        column = named.limit(MOST_ENTRIES + 1).toArrow().column(0)
    except PySparkException as error:
        raise DataError(
            f"{field}.table: {source.table!r} cannot be read ({condition_of(error)}). Name a table or view."
        ) from None
    return WordList.of_texts(field, column.combine_chunks())


def hash_lists(
    spark: SparkSession,
    sources: ListSources,
    privatizer: Privatizer,
    say: Steps,
    known: RunLists | None = None,
) -> RunLists | None:
    """Read and hash the lists of names of a run; None where the settings name none.

    `known` are the lists as they were read before: they are hashed again only if they have changed.

    Raises:
        SettingsError: too many lists.
        DataError: a list that cannot be read, or cannot be one.
    """
    if not sources:
        return None
    say("reading the lists of names")
    lists = read_lists(spark, sources)
    content = tuple(None if words is None else words.digest for words in lists)
    if known is not None and known.content == content:
        return known
    read = NameLists.of(sources, lists, privatizer.vocabulary, privatizer.policy.kept_words())
    # Compile the loops that this process did not need, so that workers find them.
    if read.table is None:
        NameMatcher(NameTable.of([])).find(pa.array(["warm"]))
    if sources.kinds:
        table = NameTable.of([WordList.of("names", [b"Lovelace"])], [PERSON])
        privatizer.with_names(NameMatcher(table)).warm_up()
    return RunLists(read, content)
