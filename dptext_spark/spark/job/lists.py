"""Read and hash the lists of names of a run when it starts, on the driver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.errors import DataError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import list_column
from dptext_spark.runtime.display import Steps
from dptext_spark.spark.errors import condition_of
from dptext_spark.spark.tables.paths import quoted, schema_of
from dptext_spark.spark.tables.tables import split_name
from dptext_spark.spark.udf.names import PrivateFile, ShippedLists, table_file
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_lists import NameLists
from dptext_spark.text.names.name_table import MOST_ENTRIES, NameTable, WordList, check_size
from dptext_spark.text.names.search import PERSON, ListSource, ListSources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RunLists:
    """The lists of names of a run, or of a stream, and where its workers find them.

    Attributes:
        lists: what was read.
        content: plain digests of that, which are shown nowhere.
    """

    def __init__(self, lists: NameLists, content: tuple[str | None, ...]) -> None:
        """Take lists; nothing is shipped yet."""
        self.lists, self.content = lists, content
        self._file: PrivateFile | None = None

    def shipped(self, spark: SparkSession) -> ShippedLists:
        """Return what workers need to know; the first call ships the table."""
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
                f"{field}.column: column {name!r} holds lists; valid: a column with a name in each row."
            )
        named = table.select(quoted(name).alias("name")).where("name IS NOT NULL")
        size = named.agg(F.count("name").alias("rows"), F.sum(F.octet_length("name")).alias("bytes")).first()
        assert size is not None  # an aggregate without groups has one row
        check_size(field, size["rows"], size["bytes"] or 0)
        column = named.limit(MOST_ENTRIES + 1).toArrow().column(0)
    except PySparkException as error:
        raise DataError(
            f"{field}.table: {source.table!r} cannot be read ({condition_of(error)}); valid: a table or view of the catalog."
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

    Args:
        spark: the session.
        sources: resolved.
        privatizer: the model.
        say: is told.
        known: the lists as they were read before: hashed again only if they have changed.

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
