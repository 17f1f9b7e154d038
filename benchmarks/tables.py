"""Tables of any size for the Spark benchmarks: a few files that were written once, repeated by links without a copy."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sources import CHECKOUT, packaged, texts
from benchmarks.workers import watched_workers
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import RunKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Done:
    """What a run took.

    Attributes:
        seconds: of the write, which does all of the work.
        whole_seconds: of the run with its checks and its account.
        rows: written.
        worker_bytes: the most that one Python worker held at a time.
    """

    seconds: float
    whole_seconds: float
    rows: int
    worker_bytes: int


def write_files(folder: Path, files: int, rows: int, words: int, row_group: int | None = None) -> None:
    """Write `files` Parquet files of `rows` texts each, as one column `body`."""
    folder.mkdir(parents=True)
    for part in range(files):
        table = pa.table({"body": texts(packaged(), rows, words, seed=part)})
        pq.write_table(table, folder / f"part-{part:05}.parquet", row_group_size=row_group)


def repeat_files(folder: Path, times: int) -> Path:
    """Return a folder that holds every file of `folder` `times` times, as links."""
    repeated = folder.with_name(f"{folder.name}-{times}")
    repeated.mkdir()
    for number in range(times):
        for file in sorted(folder.iterdir()):
            os.link(file, repeated / f"{number:05}-{file.name}")
    return repeated


@contextmanager
def local(cores: int, folder: Path, settings: dict[str, Any] | None = None) -> Iterator[SparkSession]:
    """Start a session of its own with so many cores; its workers have done nothing before."""
    from dptext_spark.spark.session import spark_session

    session = spark_session(
        "dptext-bench",
        master=f"local[{cores}]",
        warehouse=folder / "warehouse",
        # The Java process outlives a session, and what it was begun with; another section may have logged events.
        settings={"spark.eventLog.enabled": "false", **(settings or {})},
    )
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def standalone(folder: Path) -> Iterator[SparkSession]:
    """Start a master and two workers of one core each as processes of this machine, and a session on them.

    Raises:
        SettingsError: this machine lacks what they need.
    """
    from dptext_spark.spark.session import spark_session
    from tests.cluster.standalone import HOSTS, Cluster, MissingError

    try:
        with Cluster(folder / "cluster", CHECKOUT) as cluster:
            settings = {
                "spark.driver.host": HOSTS[0],
                "spark.executor.memory": "900m",
                "spark.executor.cores": 1,
                "spark.executorEnv.PYTHONPATH": str(CHECKOUT),
                "spark.databricks.delta.snapshotPartitions": 1,
                "spark.sql.shuffle.partitions": 2,
            }
            session = spark_session(
                "dptext-bench", master=cluster.master, settings=settings, warehouse=folder / "warehouse"
            )
            try:
                yield session
            finally:
                session.stop()
    except MissingError as lacking:
        raise SettingsError(str(lacking)) from None


def sanitized(session: SparkSession, source: Path, output: Path, **more: Any) -> Done:
    """Sanitize a folder of Parquet files; what was written is removed."""
    from dptext_spark.config.load import parse_config
    from dptext_spark.spark.runner import run

    settings: dict[str, Any] = {
        "input": {"path": str(source), "format": "parquet"},
        "columns": ["body"],
        "output": {"path": str(output), "other_columns": "keep"},
    }
    config = parse_config(settings | more)
    began = time.perf_counter()
    with watched_workers() as peak:
        facts = run(config, session, key=RunKey.insecure(0)).as_dict()
    whole = time.perf_counter() - began
    for written in (output, Path(f"{output}_audit")):
        shutil.rmtree(written)
    return Done(float(facts["write_seconds"]), whole, int(facts["rows"]), peak.bytes)
