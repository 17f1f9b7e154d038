"""Check a run and prepare its model: all refusals come here, before the first byte is written.

Workers import the providers that the settings name before a run reads or writes anything. Where importance is measured in the
run's own texts, one pass over them counts the texts of each word, before the model is complete.

A sample of the rows shows whether they are in the language of the lexicon. It does not depend on Spark's partitions: it takes ten
files, evenly spaced by their names, and their rows with the least hashes of identity. If an input has no more files, is no file,
or ten files hold too little, it takes the least hashes of all rows: one pass over the texts.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions

from dptext_spark.arrays import I64
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.statement import check_measurable
from dptext_spark.errors import DataError
from dptext_spark.importance.providers import Frequencies
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer, providers_of
from dptext_spark.model.table_checks import check_input, check_texts
from dptext_spark.model.table_files import evenly_spaced
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps
from dptext_spark.runtime.jit import compilations
from dptext_spark.spark.column_function import identify_rows, key_column
from dptext_spark.spark.job.entries import check_ledger_writable, entries_of, ledger_of
from dptext_spark.spark.job.planned_run import (
    SAMPLE_ROWS,
    RunPlan,
    batched,
    check_keys,
    check_output,
    detail_of_input,
    place_of,
)
from dptext_spark.spark.nested_columns import Elements, Path, is_list, paths_of, schema_of, selected
from dptext_spark.spark.run_lists import hash_lists, resolve_columns
from dptext_spark.spark.secrets import key_of
from dptext_spark.spark.session import reading
from dptext_spark.spark.ship import Shipped, open_shipped, ship_for, shipped_model
from dptext_spark.spark.spark_errors import TaskError, code_of, provider_error, suppress_sensitive_logs
from dptext_spark.spark.tables import checked_records, escaped, history, read_input
from dptext_spark.text.engine import Engine
from dptext_spark.text.identifiers.provider import ImportedProvider, ProviderError, ProviderImportError
from dptext_spark.text.unknown_words import UnknownWords, can_tell, count_unknown, likely_language, refusal

F: Any = functions  # its stubs leave out what Spark adds at run time
MOST_FILES = 10
CHARACTERS = 4_000  # of a row, shared among its texts
LEAST_CHARACTERS = 100  # of a text
ELEMENTS = 10  # of a list
SPARE, SMALL_PART = 2, 0.1  # of hashes that are spread evenly, as those of distinct keys are
REPLACED = "\N{REPLACEMENT CHARACTER}".encode()
PLAIN_READER = 1  # of a Delta table whose files hold just its rows, by the names of its columns
ORDER, SAMPLED = "order", "text"
_PLAIN = "/:=@!$&'()*+,;~"  # what a path holds unescaped in an address, beside letters and digits


@dataclass(frozen=True, eq=False)
class Sample:
    """The texts of some rows: binary or list<binary> [rows], a column of texts each."""

    columns: tuple[pa.Array, ...]

    def count(self, engine: Engine) -> UnknownWords:
        """Count words outside the lexicon, row by row."""
        words, unknown = _zeros(self.columns[0]), _zeros(self.columns[0])
        for column in self.columns:
            if is_list(column.type):
                elements = Elements.of(column)
                counts = [elements.sums(counter) for counter in count_unknown(engine, elements.texts)]
            else:
                counts = list(count_unknown(engine, column))
            words, unknown = words + counts[0], unknown + counts[1]
        return UnknownWords.of_rows(words, unknown)

    def holds(self, part: bytes) -> bool:
        """Check whether a text has these bytes in it."""
        return any(pc.any(pc.match_substring(column, part)).as_py() for column in self._flat())

    def texts(self) -> list[bytes | None]:
        """Return all texts."""
        return [text for column in self._flat() for text in column.to_pylist()]

    def _flat(self) -> list[pa.Array]:
        return [column.flatten() if is_list(column.type) else column for column in self.columns]


def _zeros(column: pa.Array) -> I64:
    return np.zeros(len(column), np.int64)


def check_language(plan: RunPlan, say: Steps) -> bool:
    """Refuse texts that were read in another encoding, or whose words are mostly unknown, unless the settings allow it.

    Returns:
        Whether the sample was large enough, or no check was needed.

    Raises:
        DataError: most of the words of most of the rows of a sample are unknown, or texts were not read in their encoding.
        RunError: a provider that the settings name fails on the sample.
    """
    # Spark reads bytes in an encoding that nobody named, and says nothing of those that do not fit.
    source = plan.config.input
    guessed = not source.table and source.format in ("csv", "tsv") and source.encoding is None
    if plan.config.allow_unknown:
        if guessed:
            say(f"checking {SAMPLE_ROWS:,} rows for words in another encoding")
            _require_decoded(sample_of_files(plan) or sampled(plan.df, plan))
        return True
    say(f"checking {SAMPLE_ROWS:,} rows for unknown words")
    engine = _engine(plan)
    # The write asks how large the first texts are: another small job over the same files.
    sizes: AbstractContextManager[object] = nullcontext()
    if not plan.config.is_stream:
        sizes = reading(plan.spark, lambda: plan.sizes)
    try:
        with sizes:
            sample = sample_of_files(plan)
            unknown_words = UnknownWords() if sample is None else sample.count(engine)
            if not unknown_words.is_enough:
                sample = sampled(plan.df, plan)
                unknown_words = sample.count(engine)
    except ProviderError as error:
        where = f"the driver's sample of {SAMPLE_ROWS:,} rows,"
        raise provider_error(error.code, where) from None
    if guessed and sample is not None:
        _require_decoded(sample)
    if sample is not None and unknown_words.is_mostly_unknown:
        raise refusal(unknown_words, likely_language(sample.texts()), can_tell=can_tell())
    return unknown_words.is_enough


def _require_decoded(sample: Sample) -> None:
    """Refuse texts with a reader's mark for bytes that do not fit its encoding."""
    if sample.holds(REPLACED):
        raise DataError(
            "input.options: no encoding given, and some texts hold U+FFFD, the mark of bytes that are not UTF-8. Use "
            "files in UTF-8, or set input.options: {encoding: ISO-8859-1} or another encoding of Spark. If the texts "
            "themselves hold U+FFFD, set {encoding: UTF-8}. Nothing was written to the target."
        )


def _engine(plan: RunPlan) -> Engine:
    """Return the counting engine, with the lists of names for all rows: their entries are no unknown words."""
    names = None if plan.lists is None else plan.lists.lists.matcher
    return plan.privatizer.engine if names is None else plan.privatizer.with_names(names).engine


def sampled(df: DataFrame, plan: RunPlan) -> Sample:
    """Return the rows of least hash of their identity."""
    most = max(CHARACTERS // len(plan.paths), LEAST_CHARACTERS)
    texts = [_beginning(path, most).alias(f"{SAMPLED}_{i}") for i, path in enumerate(plan.paths)]
    names = [f"{SAMPLED}_{i}" for i in range(len(texts))]
    key = _identity(df, plan)
    if key is None:
        # Equal rows have no identity that is independent of partitions: each text counts once. Hashes are made distinct first,
        # and texts after that: those of all rows would have to move.
        frame = df.select(*texts).withColumn(ORDER, F.xxhash64(*names))
        least = frame.select(ORDER).distinct().orderBy(ORDER).limit(SAMPLE_ROWS).agg(F.max(ORDER)).first()
        last = F.lit(None if least is None else least[0]).cast("bigint")
        frame = frame.where(F.col(ORDER) <= last).dropDuplicates([ORDER])
    else:
        frame = df.select(F.xxhash64(*key).alias(ORDER), *texts)
        highest = _highest(plan.rows)
        if highest is not None and df is plan.df:
            # Hashes select the rows: no text of the others is cut.
            some = _of_least_hash(frame.where(F.col(ORDER) < highest), names)
            if len(some.columns[0]) == SAMPLE_ROWS:
                return some
    return _of_least_hash(frame, names)


def _of_least_hash(frame: DataFrame, names: Sequence[str]) -> Sample:
    """Return the texts of the first rows by their order."""
    rows = frame.orderBy(ORDER).limit(SAMPLE_ROWS).select(*names).toArrow()
    return Sample(tuple(column.combine_chunks() for column in rows.columns))


def _highest(rows: int | None) -> int | None:
    """Return a hash below which `SPARE` times the rows of a sample are expected; None if that is no small part."""
    part = SPARE * SAMPLE_ROWS / rows if rows else 1.0
    return int(2**64 * part) - 2**63 if part < SMALL_PART else None


def _identity(df: DataFrame, plan: RunPlan) -> list[Column] | None:
    """Return the identity of rows, independent of partitions; None where there is none."""
    if plan.config.row_key is not None:
        return [key_column(df, plan.config.row_key, "row_key")]
    if plan.identity.kind == "file_row":
        return [F.col("_metadata.file_path"), F.col("_metadata.row_index")]
    return None


def _beginning(path: Path, most: int) -> Column:
    """Return the first characters of a text, as bytes; of a list those of its first elements."""
    if not path.over:
        return functions.substring(path.text, 1, most).cast("binary")
    each = max(most // ELEMENTS, LEAST_CHARACTERS)
    some = functions.slice(path.text, 1, ELEMENTS)
    return functions.transform(some, lambda text: functions.substring(text, 1, each).cast("binary"))


def sample_of_files(plan: RunPlan) -> Sample | None:
    """Return the sample of a few files; None where there are no more, or rows do not know their file."""
    if plan.stream is not None or any(name.lower() == "_metadata" for name in plan.df.columns):
        return None  # a micro-batch is small, and is not all of its files; a column of the input's own hides Spark's
    files_now = None if plan.detail is None else plan.detail.files
    # The table's log gives the files without a job; not those of an older version, which an option may ask for.
    if files_now is not None and files_now <= MOST_FILES and not plan.config.input.options:
        return None
    files = few(plan.df.inputFiles())
    if not files:
        return None
    try:
        direct = _read_directly(plan, files)
        if direct is not None:
            return sampled(direct, plan)
    except PySparkException:
        pass  # files that may not be read past the table, or not so: through the table they may
    try:
        return sampled(plan.df.where(F.col("_metadata.file_path").isin(_spelled(files))), plan)
    except PySparkException:
        return None  # a view that joins or sums up: its rows are of no file


def few(files: Sequence[str]) -> list[str]:
    """Return ten files, evenly spaced by name; none where there are no more."""
    names = sorted(set(files))
    return evenly_spaced(names, MOST_FILES) if len(names) > MOST_FILES else []


def _spelled(files: Sequence[str]) -> list[str]:
    """Return files as rows name them: listings write them otherwise, Delta's with what an address would escape."""
    named = [name.replace("file:///", "file:/", 1) for name in files]
    return [*named, *(quote(name, safe=_PLAIN) for name in named)]


def _read_directly(plan: RunPlan, files: Sequence[str]) -> DataFrame | None:
    """Read files of a plain Delta table by their own format: Delta opens all files of a table to find the rows of some.

    Returns:
        None for other inputs, where Spark reads only the requested files, and for Delta tables whose files hold other rows or
        names than the table.
    """
    source = plan.config.input
    if not plan.input_version.startswith("delta:") or plan.identity.kind == "file_row":
        return None
    table = plan.detail or detail_of_input(plan.spark, source)
    if table is None or table.reader > PLAIN_READER:
        return None
    reader = plan.spark.read.schema(plan.df.schema).option("basePath", table.location)
    return selected(reader.parquet(*map(escaped, files)), source.where)


COUNTED = "word int, documents bigint"
ALL = -1  # in the place of a word: all documents


@dataclass(frozen=True)
class _Counts:
    """Counts in a worker: numbers of words leave, no words."""

    shipped: Shipped

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            engine = open_shipped(self.shipped).engine
            total = Frequencies(0, np.zeros(len(engine.table.flags), np.int64))
            for batch in stream:
                total = total + Frequencies.of(engine, batch.column(0))
            occurring = np.flatnonzero(total.counts)
            words = np.append(occurring, ALL).astype(np.int32)
            counts = np.append(total.counts[occurring], total.documents).astype(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(words), pa.array(counts)], names=["word", "documents"])
        except GeneratorExit:
            raise
        except BaseException as error:
            raise TaskError(code_of(error, "FREQUENCIES_"), 0, 0, 0) from None


def document_frequencies(df: DataFrame, columns: Sequence[str], model: Privatizer) -> Frequencies:
    """Count the texts of a frame that hold each word, for importance by document frequency.

    Args:
        df: any frame.
        columns: its text columns; text in nested ones by a path with dots.
        model: whose words and policy count.

    Raises:
        DataError: a column is missing or no text.

    Examples:
        >>> counted = dps.document_frequencies(df, ["body"], model)
        >>> counted.documents
        1
        >>> some = dp.compile(dp.CusText(), lexicon, importance=dp.Importance(percent=50), frequencies=counted)
        >>> dps.privatize(df, ["body"], some, row_key="id").columns
        ['id', 'body']
    """
    with suppress_sensitive_logs(df.sparkSession):
        check_texts(schema_of(df.schema), columns)
        words = len(model.engine.table.flags)
        return count_documents(df, paths_of(df.schema, columns), shipped_model(df.sparkSession, model), words)


def with_document_frequencies(plan: RunPlan, say: Steps) -> RunPlan:
    """Complete the model of a run: if importance is measured by the run's own texts, they are counted now."""
    selection = plan.config.importance
    if selection is None or not selection.own_data:
        return plan
    say("counting the texts of each word (one pass over the text)")
    with batched(plan):
        shipped = ship_for(plan.spark, plan.folder, plan.config)
        frequencies = count_documents(plan.df, plan.paths, shipped, len(plan.privatizer.engine.table.flags))
    privatizer, folder = prepare(plan.config, lambda step, _: say(step), frequencies)
    privatizer.warm_up()
    certificate = certificate_of(folder)
    return replace(
        plan, privatizer=privatizer, folder=str(folder), certificate=certificate, compiled=compilations()
    )


def count_documents(df: DataFrame, paths: Sequence[Path], shipped: Shipped, words: int) -> Frequencies:
    """Count the texts that hold each word; each text of each column, and of each list, is a document.

    `shipped` is a model of the same words and policy; its word table has `words` of them.
    """
    parts = [df.select((F.explode(path.text) if path.over else path.text).alias("text")) for path in paths]
    whole = reduce(lambda one, other: one.union(other), parts)
    counted = whole.mapInArrow(_Counts(shipped), COUNTED).groupBy("word").agg(F.sum("documents").alias("n"))
    rows = counted.toArrow()
    numbers, documents = (np.asarray(rows.column(name).to_numpy()) for name in ("word", "n"))
    counts = np.zeros(words, np.int64)
    counts[numbers[numbers != ALL]] = documents[numbers != ALL]
    return Frequencies(int(documents[numbers == ALL].sum()), counts)


WHERE = "a worker, before anything was read or written,"
_ROWS = 1 << 10  # Spark deals them to as many tasks as run at a time


@dataclass(frozen=True)
class _Importer:
    """Maps the rows of a task to the code of the first provider that cannot be imported where it runs; none where all can."""

    imported: tuple[ImportedProvider, ...]

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in rows:
            pass
        try:
            for provider in self.imported:
                provider.require()
        except ProviderImportError as error:
            yield pa.RecordBatch.from_pydict({"code": [error.code]})
        time.sleep(0.2)  # so that no executor takes the tasks of all


def require_in_workers(spark: SparkSession, imported: Sequence[ImportedProvider], say: Steps) -> None:
    """Import providers on the executors that are there, by a job of as many tasks as run at a time.

    An executor that comes later imports them with its first batch, and ends the run by the same code.

    Raises:
        RunError: a worker lacks a provider; the setting and what to do are named.
    """
    if not imported:
        return
    say("importing the providers on the executors")
    codes = spark.range(_ROWS).mapInArrow(_Importer(tuple(imported)), "code string").collect()
    if codes:
        raise provider_error(min(row["code"] for row in codes), WHERE)


def prepare_run(spark: SparkSession, config: RunConfig, key: RunKey | None, say: Steps) -> RunPlan:
    """Check the settings against the input and the target, and prepare the model.

    Raises:
        SettingsError, DataError, RunError: nothing was written.
    """
    require_in_workers(spark, providers_of(config.policy, tried=True), say)
    place = place_of(config, ledger_of(spark, config.input, config.ledger))
    check_ledger_writable(spark, config.input, place.ledger)
    say("reading the input's schema")
    columns = list(config.columns)
    df, input_version = read_input(spark, config.input, columns)
    fit = check_input(schema_of(df.schema), config)
    identity = identify_rows(df, config.row_key, config.record_key, ordinal=True)
    # Neither target nor model nor ledger depend on counts of the input. Delta reads the ledger's log meanwhile, and a reservation
    # decides on its content at that time.
    with (
        reading(spark, lambda: _counted(spark, df, config)) as counted,
        reading(spark, lambda: entries_of(spark, place.ledger)),
    ):
        key = key_of(spark, config.key, key)
        # The logs of target and input are read at the same time.
        with reading(spark, lambda: history(spark, place.target)) as commits:
            detail = detail_of_input(spark, config.input)
        check_output(spark, config, df, fit, commits(), persistent=key.kind != "os", source=detail)
        say("preparing the model")
        privatizer, folder = prepare(config, lambda step, _: say(step))
        guarantee = privatizer.guarantee(of_rows=True)
        check_measurable(config.require, guarantee, bounded=config.budget is not None)
        if privatizer.chooses:
            privatizer.warm_up()
        if config.row_key and not config.is_stream:
            say("checking that row_key is unique (one pass over the key)")
        rows, corrupt = counted()
    plan = RunPlan(
        spark=spark,
        config=config,
        run_id=config.run.id or f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}",
        key=key,
        key_kind="insecure" if key.is_insecure else key.kind,
        privatizer=privatizer,
        folder=str(folder),
        df=df,
        input_version=input_version,
        corrupt=corrupt,
        identity=identity,
        place=place,
        kept=list(fit.kept),
        compiled=compilations(),
        certificate=certificate_of(folder),
        dropped=fit.dropped,
        rows=rows,
        detail=detail,
    )
    return with_lists(with_document_frequencies(plan, say), say)


def _counted(spark: SparkSession, df: DataFrame, config: RunConfig) -> tuple[int | None, int | None]:
    """Check the records and the keys; return (rows, records that do not fit and are accepted).

    Rows are counted where a key is checked. Else they are None, or 0 where there are none; of a stream they are None.
    """
    corrupt = checked_records(spark, config.input, df)
    if config.is_stream:
        return None, corrupt
    if config.row_key or config.record_key:
        return check_keys(df, config.row_key, config.record_key), corrupt
    return 0 if df.isEmpty() else None, corrupt


def with_lists(plan: RunPlan, say: Steps) -> RunPlan:
    """Return the plan with the lists of names as they are now, read and hashed where they have changed."""
    sources = resolve_columns(plan.df, plan.config.lists)
    lists = hash_lists(plan.spark, sources, plan.privatizer, say, plan.lists)
    return replace(plan, lists=lists)
