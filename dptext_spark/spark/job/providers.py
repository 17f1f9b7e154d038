"""Let workers import the providers that the settings name, before a run reads or writes anything."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.errors import provider_error
from dptext_spark.text.identifiers.imported import ImportedProvider, ProviderImportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
