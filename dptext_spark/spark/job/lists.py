"""Read and compile the private lists of a run when it starts, on the driver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.errors import DataError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.tables.table_checks import list_column
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.errors import condition_of
from dptext_spark.spark.tables.paths import quoted, schema_of
from dptext_spark.spark.tables.tables import split_name
from dptext_spark.spark.udf.names import NamesFile, ShippedNames
from dptext_spark.text.names.compiled_lists import CompiledLists
from dptext_spark.text.names.listed_parts import Names
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.search import PERSON, ListSource, ListSources
from dptext_spark.text.names.word_list import MOST_ENTRIES, WordList, check_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RunLists:
    """The lists of a run, or of a stream, and where its workers find them.

    Attributes:
        compiled: the lists.
        content: plain digests of what was read, which are shown nowhere.
    """

    def __init__(self, compiled: CompiledLists, content: tuple[str | None, ...]) -> None:
        """Take compiled lists; nothing is shipped yet."""
        self.compiled, self.content = compiled, content
        self._file: NamesFile | None = None

    def shipped(self, spark: SparkSession) -> ShippedNames:
        """Return what workers need to know; the first call ships the lists."""
        compiled, names = self.compiled, self.compiled.names
        if names is not None and self._file is None:
            self._file = NamesFile(spark, names.table)
        return ShippedNames(
            compiled.scope,
            "" if self._file is None else self._file.name,
            0 if names is None else names.masking,
            compiled.columns,
            compiled.masking_columns,
            () if names is None else names.kinds,
            compiled.kinds_of_columns,
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


def compile_lists(
    spark: SparkSession,
    sources: ListSources,
    privatizer: Privatizer,
    key: RunKey,
    scope: str,
    say: Steps,
    known: RunLists | None = None,
) -> RunLists | None:
    """Read and compile the lists of a run; None where the settings name none.

    Args:
        spark: the session.
        sources: resolved.
        privatizer: the model.
        key: the run key.
        scope: run id, or the stream's.
        say: is told.
        known: the lists as they were read before: compiled again only if they have changed.

    Raises:
        SettingsError: too many lists.
        DataError: a list that cannot be read, or cannot be one.
    """
    if not sources:
        return None
    say("reading the lists of names")
    lists = read_lists(spark, sources)
    content = tuple(None if one is None else one.digest for one in lists)
    if known is not None and known.compiled.scope == scope and known.content == content:
        return known
    stop_words = privatizer.policy.kept_words()
    made = CompiledLists.checked(sources, lists, key, scope, privatizer.vocabulary, stop_words)
    if sources.kinds:
        _warm_up(privatizer)
    return RunLists(made, content)


def _warm_up(privatizer: Privatizer) -> None:
    """Compile the loops that make pseudonyms of a list's names, so that workers find them."""
    listed = compile_names([WordList.of("names", [b"Lovelace"])], name_key(RunKey.insecure(0), ""))
    privatizer.with_names(Names(listed, 1, kinds=(PERSON,))).warm_up()
