"""Errors of Spark reach people as a condition and an SQLSTATE; the text that Spark puts into them goes no further."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.randomness import RunKey
from dptext_spark.spark import session
from dptext_spark.spark.runner import dry_run, run
from dptext_spark.spark.spark_errors import TaskError, condition_of, reduced, suppress_sensitive_logs

MARKER = "zanzibarmarker"
MEMORY = "memory of a JVM was full. Raise spark.driver.memory"
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def malformed(spark):
    return spark.createDataFrame([(MARKER,)], "body string").select(F.col("body").cast("int"))


def of_a_worker(code: str) -> Exception:
    return ValueError(f"Traceback {MARKER}\n{TaskError(code, 4, 5, 3)}\n SQLSTATE: 38000 {MARKER}")


@pytest.fixture
def fragments(monkeypatch: pytest.MonkeyPatch) -> list[logging.LogRecord]:
    """What PySpark's query-context loggers say, in a process where nobody has asked for them before."""
    records: list[logging.LogRecord] = []
    for name in LOGGERS:
        monkeypatch.delitem(logging.Logger.manager.loggerDict, name, raising=False)
        with suppress_sensitive_logs():
            pass
        handler = logging.Handler()
        handler.emit = records.append  # type: ignore[method-assign]
        logging.getLogger(name).addHandler(handler)
    return records


def raised_by(spark) -> Exception:
    with suppress_sensitive_logs(), pytest.raises(Exception, match=MARKER) as caught:
        malformed(spark).collect()
    return caught.value


@pytest.mark.long
def test_a_map_with_one_key_twice_names_its_column_and_the_cure(spark, tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    notes = pa.array([[(MARKER, "good news"), (MARKER, "the people of the day")]], kind)
    (tmp_path / "in").mkdir()
    table = pa.table({"id": [1], "body": ["good news"], "notes": notes})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    settings = {
        "input": {"path": str(tmp_path / "in"), "format": "parquet"}, "columns": ["body", "notes"], "row_key": "id",
        "output": {"path": str(tmp_path / "out")}, "run": {"id": "r1"}, "policy": {"allow_unknown": True},
    }  # fmt: skip
    config = parse_config(settings)
    assert "whether a map of notes has the same key twice" in dry_run(config, lambda _: None).open
    with pytest.raises(DataError, match=r"^columns: notes: a map has the same key twice.*LAST_WIN") as error:
        run(config, spark, key=RunKey.insecure(1))
    assert MARKER not in str(error.value)
    spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    try:
        assert run(config, spark, key=RunKey.insecure(1)).facts["rows"] == 1
    finally:
        spark.conf.unset("spark.sql.mapKeyDedupPolicy")


class TestReduced:
    def test_a_spark_exception_keeps_condition_and_state_only(self, spark) -> None:
        error = raised_by(spark)
        assert MARKER in str(error)
        said = reduced(error, ["body"])
        assert type(said) is RunError
        assert str(said) == "Spark failed with CAST_INVALID_INPUT (SQLSTATE 22018)."

    def test_a_worker_that_raises_on_its_own_says_nothing_of_the_text(self, spark) -> None:
        fails = F.udf(lambda text: {}[text], "string")
        with suppress_sensitive_logs(), pytest.raises(Exception, match=MARKER) as caught:
            spark.createDataFrame([(MARKER,)], "body string").select(fails("body")).collect()
        assert MARKER not in str(reduced(caught.value, ["body"]))

    @pytest.mark.parametrize(
        ("error", "kind", "begins", "holds"),
        [
            (ConnectionRefusedError(111, MARKER), RunError, "Spark's JVM has ended (ConnectionRefusedError). ", MEMORY),
            (Py4JNetworkError(MARKER), RunError, "Spark's JVM has ended (Py4JNetworkError). ", MEMORY),
            (ValueError(f"{MARKER} java.lang.OutOfMemoryError: Java"), RunError, "Spark failed with ValueError: ", MEMORY),
            (of_a_worker("INVALID_UTF8"), DataError, "columns body, note: 3 rows hold invalid UTF-8 in partition 4, batch 5", ""),
            (of_a_worker("NULL_KEY"), DataError, "row_key or record_key: 3 rows have a NULL key in partition 4, batch 5", ""),
            (of_a_worker("ArrowInvalid"), RunError, "a worker failed with ArrowInvalid in partition 4, batch 5", ""),
            (of_a_worker("CLASSIFIER_DIFFERS_3"), RunError, "in partition 4", "policy.names.model: 3 of 10"),
            (Exception(f"{MARKER} No module named 'dptext_spark'"), RunError, "", "PYSPARK_PYTHON"),
        ],
    )  # fmt: skip
    def test_what_happened_is_told_without_the_text(self, error, kind: type, begins: str, holds: str) -> None:
        told = reduced(error, ["body", "note"])
        assert type(told) is kind
        assert str(told).startswith(begins)
        assert holds in str(told)
        assert MARKER not in str(told)

    def test_a_jvm_that_ends_meanwhile_leaves_no_traceback_of_the_progress(self, spark, monkeypatch) -> None:
        asked, raised = threading.Event(), []

        def of_a_dead_jvm() -> list[int]:
            asked.set()
            raise Py4JNetworkError(MARKER)

        tracker = SimpleNamespace(getActiveStageIds=of_a_dead_jvm)
        monkeypatch.setattr(spark.sparkContext, "statusTracker", lambda: tracker)
        monkeypatch.setattr(session, "INTERVAL", 0.01)
        monkeypatch.setattr(threading, "excepthook", raised.append)
        with session.watched(spark, print):
            assert asked.wait(10.0)
        assert raised == []

    def test_an_error_of_ours_stays_itself(self) -> None:
        error = SettingsError("mechanism.k: 0 given")
        assert reduced(error, ["body"]) is error

    @pytest.mark.parametrize("condition", [f"{MARKER} is bad", "", None, 7])
    def test_what_is_no_condition_is_not_repeated(self, condition: object) -> None:
        class OddError(Exception):
            def getCondition(self) -> object:
                return condition

        assert str(reduced(OddError(MARKER), [])) == "Spark failed with OddError."


@pytest.mark.long
def test_a_run_that_spark_fails_is_not_chained_to_the_text(spark, tmp_path: Path, fragments: list) -> None:
    spark.createDataFrame([(1, MARKER)], "id long, body string").write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in"))
    frame.withColumn("score", F.col("body").cast("int")).createOrReplaceTempView("scored")
    settings = {
        "input": {"table": "scored"}, "columns": ["body"], "row_key": "id",
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }  # fmt: skip
    with pytest.raises(RunError, match=r"CAST_INVALID_INPUT \(SQLSTATE 22018\)") as caught:
        run(parse_config(settings), spark, key=RunKey.insecure(1))
    assert MARKER not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert fragments == []


class TestSilenced:
    def test_pysparks_logger_is_quiet_inside_and_speaks_after(self, spark, fragments: list) -> None:
        """A plain logger of that name would make PySpark's own call fail: TypeError, chained to the text."""
        raised_by(spark)
        assert fragments == []
        with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
            malformed(spark).collect()
        assert [record.name for record in fragments] == ["DataFrameQueryContextLogger"]

    def test_a_logger_that_was_off_before_stays_off(self) -> None:
        logger = logging.getLogger("SQLQueryContextLogger")
        logger.disabled = True
        try:
            with suppress_sensitive_logs():
                pass
            assert logger.disabled
        finally:
            logger.disabled = False

    def test_an_error_inside_lets_the_loggers_speak_again(self) -> None:
        with pytest.raises(ValueError, match="inside"), suppress_sensitive_logs():
            raise ValueError("inside")
        assert not logging.getLogger("SQLQueryContextLogger").disabled


def test_delta_does_not_inform_of_a_tables_values_meanwhile(spark) -> None:
    """At INFO it logs the files of a small table with the least and the greatest text in them."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j

    def levels() -> list[str]:
        names = ("org.apache.spark.sql.delta.Snapshot", "org.apache.spark.sql.delta", "org.apache.spark.sql")
        return [str(log4j.LogManager.getLogger(name).getLevel()) for name in names]

    before = levels()
    spark.sparkContext.setLogLevel("INFO")
    try:
        assert levels() == ["INFO"] * 3
        with pytest.raises(ValueError, match="inside"), suppress_sensitive_logs(spark):  # noqa: PT012
            assert levels() == ["WARN", "WARN", "INFO"]
            with suppress_sensitive_logs(spark):
                assert levels() == ["WARN", "WARN", "INFO"]
            assert levels() == ["WARN", "WARN", "INFO"]
            other = suppress_sensitive_logs(spark)  # another run of this process, which ends later
            other.__enter__()
            raise ValueError("inside")
        assert levels() == ["WARN", "WARN", "INFO"]
        other.__exit__(None, None, None)
        assert levels() == ["INFO"] * 3
    finally:
        spark.sparkContext.setLogLevel("ERROR")  # and the loggers below the root follow it
    assert levels() == before
    with suppress_sensitive_logs(spark):
        assert levels() == before  # which says less than a warning already


def test_what_ended_a_stream_is_named_by_its_own_condition() -> None:
    """Some causes stand in the message of the query's error only, of which nothing but the name is taken."""

    class EndedError(Exception):
        def getCondition(self) -> str:
            return "STREAM_FAILED"

    told = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
    changed = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert condition_of(EndedError(f"{told}[{changed}] a private")) == changed
    assert condition_of(EndedError(f"{told}a private [word]")) == "STREAM_FAILED"
