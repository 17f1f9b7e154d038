"""In how many of a run's own texts each word occurs: one pass over the text, before the model is complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions

from dptext_spark.importance.idf import Frequencies
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.code_ahead import begin_code
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.jit import compilations
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.errors import TaskError, code_of, suppress_sensitive_logs
from dptext_spark.spark.session.session import workers_here
from dptext_spark.spark.tables.paths import Path, paths_of
from dptext_spark.spark.tables.tables import check_text_columns
from dptext_spark.spark.udf.batches import batched
from dptext_spark.spark.udf.ship import Shipped, open_shipped, ship_for, shipped_model

if TYPE_CHECKING:
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
        check_text_columns(df, list(columns))
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
    begin_code(plan.config, say, here=workers_here(plan.spark), model=folder)
    privatizer.warm_up()
    found_there = certificate_of(folder)
    return replace(
        plan, privatizer=privatizer, folder=str(folder), certificate=found_there, compiled=compilations()
    )


def count_documents(df: DataFrame, paths: Sequence[Path], shipped: Shipped, words: int) -> Frequencies:
    """Count in how many texts each word occurs; each text of each column, and of each list, is a document.

    Args:
        df: the input.
        paths: its texts.
        shipped: a model of the same words and policy.
        words: how many its word table has.
    """
    parts = [df.select((F.explode(path.text) if path.over else path.text).alias("text")) for path in paths]
    whole = reduce(lambda one, other: one.union(other), parts)
    counted = whole.mapInArrow(_Counts(shipped), COUNTED).groupBy("word").agg(F.sum("documents").alias("n"))
    rows = counted.toArrow()
    numbers, held = (np.asarray(rows.column(name).to_numpy()) for name in ("word", "n"))
    counts = np.zeros(words, np.int64)
    counts[numbers[numbers != ALL]] = held[numbers != ALL]
    return Frequencies(int(held[numbers == ALL].sum()), counts)
