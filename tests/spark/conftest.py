"""One local Spark with Delta Lake for all tests, and a clean catalog for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy
from tests.core.names import beginning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CHECKOUT = Path(__file__).resolve().parents[2]

# Compiling code for tables of a few rows takes Java longer than evaluating their expressions one by one.
NO_CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that lives as long as the test run. Tests take `spark`, which cleans up behind them."""
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    from dptext_spark.spark.session import spark_session

    folder = tmp_path_factory.mktemp("spark")
    here = Path.cwd()
    # Spark leaves folders where its JVM was started.
    os.chdir(folder)
    try:
        made = spark_session(
            app_name="tests",
            master="local[2]",
            warehouse=folder / "warehouse",
            settings={
                "spark.local.dir": str(folder / "local"),
                "spark.sql.shuffle.partitions": 2,
                # The package is importable in workers even where it is not installed.
                "spark.executorEnv.PYTHONPATH": str(CHECKOUT),
                **NO_CODE,
            },
        )
    finally:
        os.chdir(here)
    yield made
    made.stop()


@pytest.fixture
def small_batches(spark: SparkSession) -> None:
    """Let each batch of a run hold two rows."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2")


@pytest.fixture
def spark(session: SparkSession) -> Iterator[SparkSession]:
    """The session, left without tables, views, cached frames and changed settings."""
    before = session.conf.getAll
    yield session
    session.catalog.clearCache()
    for kind in ("VIEW", "TABLE"):
        for row in session.sql(f"SHOW {kind}S").collect():
            session.sql(f"DROP {kind} IF EXISTS `{row[1]}`")
    after = session.conf.getAll
    for name in after.keys() - before.keys():
        session.conf.unset(name)
    for name, value in before.items():
        if after.get(name) != value:
            session.conf.set(name, value)


@pytest.fixture(scope="session")
def privatizer_at() -> Callable[[str], Privatizer]:
    """CusText over the 600 commonest words at a level of consistency; every word is drawn, unknown ones are masked."""
    words = beginning(Lexicon.default(), 600)
    sampler = CusText(epsilon=1.0, k=10).compile(words)
    return lambda level: Privatizer(words, sampler, Policy(stop_words="draw", oov="mask"), level)


@pytest.fixture(scope="session")
def privatizer(privatizer_at: Callable[[str], Privatizer]) -> Privatizer:
    """The same at token level."""
    return privatizer_at("token")
