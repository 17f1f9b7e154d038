"""Check a run and prepare its model: everything that can be refused is refused here, before the first byte is written.

Let workers import the providers that the settings name, before a run reads or writes anything.

In how many of a run's own texts each word occurs: one pass over the text, before the model is complete.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions

from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.statement import check_measurable
from dptext_spark.importance.providers import Frequencies
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer, providers_of
from dptext_spark.model.table_checks import check_input, check_texts
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps
from dptext_spark.runtime.jit import compilations
from dptext_spark.spark.column_function import identify_rows
from dptext_spark.spark.job.checks import KeyColumn, check_keys, check_output, detail_of_input, place_of
from dptext_spark.spark.job.entries import check_ledger_writable, entries_of, ledger_of
from dptext_spark.spark.job.plan import RunPlan, batched
from dptext_spark.spark.nested_columns import Path, paths_of, schema_of
from dptext_spark.spark.run_lists import hash_lists, resolve_columns
from dptext_spark.spark.secrets import key_of
from dptext_spark.spark.session import reading
from dptext_spark.spark.ship import Shipped, open_shipped, ship_for, shipped_model
from dptext_spark.spark.spark_errors import TaskError, code_of, provider_error, suppress_sensitive_logs
from dptext_spark.spark.tables import checked_records, history, read_input
from dptext_spark.text.identifiers.provider import ImportedProvider, ProviderImportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dptext_spark.spark.job.plan import RunPlan

F: Any = functions  # its stubs leave out what Spark adds at run time
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
            found = np.flatnonzero(total.counts)
            words = np.append(found, ALL).astype(np.int32)
            counts = np.append(total.counts[found], total.documents).astype(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(words), pa.array(counts)], names=["word", "documents"])
        except GeneratorExit:
            raise
        except BaseException as error:
            raise TaskError(code_of(error, "FREQUENCIES_"), 0, 0, 0) from None


def document_frequencies(df: DataFrame, columns: Sequence[str], model: Privatizer) -> Frequencies:
    """Count in how many texts of a frame each word occurs, for importance by document frequency.

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
    """Return the run with its model complete: where importance is measured by the run's own texts, they are counted now."""
    selection = plan.config.importance
    if selection is None or not selection.own_data:
        return plan
    say("counting in how many texts each word occurs (one pass over the text)")
    with batched(plan):
        shipped = ship_for(plan.spark, plan.folder, plan.config)
        found = count_documents(plan.df, plan.paths, shipped, len(plan.privatizer.engine.table.flags))
    privatizer, folder = prepare(plan.config, lambda step, _: say(step), found)
    privatizer.warm_up()
    found_there = certificate_of(folder)
    return replace(
        plan, privatizer=privatizer, folder=str(folder), certificate=found_there, compiled=compilations()
    )


def count_documents(df: DataFrame, paths: Sequence[Path], shipped: Shipped, words: int) -> Frequencies:
    """Count in how many texts each word occurs; each text of each column, and of each list, is a document.

    `shipped` is a model of the same words and policy; its word table has `words` of them.
    """
    parts = [df.select((F.explode(path.text) if path.over else path.text).alias("text")) for path in paths]
    whole = reduce(lambda one, other: one.union(other), parts)
    counted = whole.mapInArrow(_Counts(shipped), COUNTED).groupBy("word").agg(F.sum("documents").alias("n"))
    rows = counted.toArrow()
    numbers, held = (np.asarray(rows.column(name).to_numpy()) for name in ("word", "n"))
    counts = np.zeros(words, np.int64)
    counts[numbers[numbers != ALL]] = held[numbers != ALL]
    return Frequencies(int(held[numbers == ALL].sum()), counts)


WHERE = "a worker that was asked before anything was read or written"
_ROWS = 1 << 10  # Spark deals them to as many tasks as run at a time


@dataclass(frozen=True)
class _Importer:
    """Maps the rows of a task to the code of the first provider that cannot be imported where it runs; none where all can."""

    imported: tuple[ImportedProvider, ...]

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in rows:
            pass
        try:
            for one in self.imported:
                one.require()
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
    # Neither the target nor the model has to do with what is counted in the input. Nor has the ledger: what Delta needs of its
    # log is read meanwhile, and a reservation decides on what is there then.
    with (
        reading(spark, lambda: _counted(spark, df, config)) as counted,
        reading(spark, lambda: entries_of(spark, place.ledger)),
    ):
        key = key_of(spark, config.key, key)
        # The log of the target is read beside that of the input.
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

    Raises:
        DataError: records that do not fit; a key that is NULL, or not unique.
    """
    corrupt = checked_records(spark, config.input, df)
    keys = [KeyColumn(config.row_key, "row_key", unique=True)] if config.row_key else []
    keys += [KeyColumn(config.record_key, "record_key", unique=False)] if config.record_key else []
    if config.is_stream:
        rows = None
    elif keys:
        rows = check_keys(df, keys)
    else:
        rows = 0 if df.isEmpty() else None
    return rows, corrupt


def with_lists(plan: RunPlan, say: Steps) -> RunPlan:
    """Return the plan with the lists of names as they are now, read and hashed where they have changed."""
    sources = resolve_columns(plan.df, plan.config.lists)
    lists = hash_lists(plan.spark, sources, plan.privatizer, say, plan.lists)
    return replace(plan, lists=lists)
