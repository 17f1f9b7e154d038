"""Two processes that start one command at the same moment: one does it, and the other one changes nothing of that."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import RecordingError
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.job import job
from dptext_spark.spark.job.beside import Effect
from dptext_spark.spark.job.entries import read
from dptext_spark.spark.job.job import RunResult, run_once
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.tables.tables import Target, history, opened

KEY = RunKey(hashlib.sha256(b"one").digest())


def config(base: Path, mode: str = "error") -> RunConfig:
    return parse_config(
        {
            "input": {"path": str(base / "in")},
            "columns": ["body"],
            "row_key": "id",
            "consistency": "record",
            "output": {"path": str(base / "out"), "mode": mode},
            "ledger": {"path": str(base / "ledger")},
            "run": {"id": "same"},
        }
    )


def command(spark: Any, base: Path, at: Callable[[str], None], mode: str = "error") -> RunResult:
    settings = config(base, mode)
    return run_once(
        lambda: prepare_run(spark, settings, KEY, lambda step: None), settings, lambda step: None, at
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "mode", "first", "second"),
    [
        (Effect.RESERVATION.before, "append", "unchanged", "succeeded"),
        (Effect.RUN_ROW.before, "error", "unchanged", "succeeded"),
        (Effect.DATA_COMMIT.before, "error", "unchanged", "succeeded"),
        (Effect.DATA_COMMIT.before, "append", "unchanged", "succeeded"),
        (Effect.DATA_COMMIT.after, "append", "succeeded", "recovered"),
        (Effect.ACCOUNT.before, "append", "succeeded", "recovered"),
    ],
)
def test_one_command_started_twice(
    spark: Any, tmp_path: Path, point: str, mode: str, first: str, second: str
) -> None:
    """The other process does all that it does while this one is at a point."""
    rows = [(i, f"good news {i}") for i in range(4)]
    spark.createDataFrame(rows, "id long, body string").coalesce(1).write.format("delta").save(
        str(tmp_path / "in")
    )
    ended: list[str] = []

    def other(passed: str) -> None:
        if passed == point and not ended:
            ended.append("begun")
            ended.append(command(spark, tmp_path, lambda point: None, mode).status)

    assert command(spark, tmp_path, other, mode).status == first
    assert ended == ["begun", second]
    (row,) = opened(spark, Target(path=f"{config(tmp_path).shareable}/runs")).collect()
    assert row["status"] == ("succeeded" if first == "succeeded" else second)
    assert (row["rows"], row["output_version"]) == (4, 0)
    assert len(history(spark, Target(path=str(tmp_path / "out")))) == 1
    (balance,) = read(str(tmp_path / "ledger"), spark)
    assert [(column.total, balance.unfinished) for column in balance.columns] == [(1.0, 0)]
    assert command(spark, tmp_path, lambda point: None, mode).status == "unchanged"


@pytest.mark.long
@pytest.mark.parametrize("point", [Effect.DATA_COMMIT.after, Effect.ACCOUNT.before])
def test_who_counts_again_while_the_other_accounts(spark: Any, tmp_path: Path, point: str) -> None:
    """The second begins between the commit and the account of the first: it changes nothing of that account."""
    rows = [(i, f"good news {i}") for i in range(4)]
    spark.createDataFrame(rows, "id long, body string").coalesce(1).write.format("delta").save(
        str(tmp_path / "in")
    )
    committed, accounted = threading.Event(), threading.Event()
    ended: list[str] = []

    def first(passed: str) -> None:
        if passed == point:
            committed.set()
            assert accounted.wait(120)

    def run_first() -> None:
        ended.append(command(spark, tmp_path, first).status)

    def second(passed: str) -> None:
        if passed == Effect.RUN_ROW.after:
            accounted.set()
            process.join(120)

    process = threading.Thread(target=run_first)
    process.start()
    assert committed.wait(120)
    assert command(spark, tmp_path, second).status == "unchanged"
    assert ended == ["succeeded"]
    (row,) = opened(spark, Target(path=f"{config(tmp_path).shareable}/runs")).collect()
    assert row["status"] == "succeeded"
    metrics = opened(spark, Target(path=f"{config(tmp_path).restricted}/metrics"))
    (seconds,) = metrics.where("metric = 'write_seconds'").collect()
    assert seconds["value"] is not None
    (balance,) = read(str(tmp_path / "ledger"), spark)
    assert [(column.total, balance.unfinished) for column in balance.columns] == [(1.0, 0)]


@pytest.mark.long
def test_who_cannot_count_again_waits_for_nobody(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that committed ended before its account, and the input cannot be read any more."""

    class EndedError(BaseException):
        pass

    def ends(passed: str) -> None:
        if passed == Effect.DATA_COMMIT.after:
            raise EndedError

    def fails(*_: Any) -> None:
        raise RuntimeError("zqxmarker")

    spark.createDataFrame([(1, "good news")], "id long, body string").write.format("delta").save(
        str(tmp_path / "in")
    )
    with pytest.raises(EndedError):
        command(spark, tmp_path, ends)
    monkeypatch.setattr(job, "WAIT", 0.0)
    monkeypatch.setattr(job, "recounted", fails)
    with pytest.raises(RecordingError) as told:
        command(spark, tmp_path, lambda point: None)
    assert "Another process" not in str(told.value)
    assert "zqxmarker" not in str(told.value)
    monkeypatch.undo()
    assert command(spark, tmp_path, lambda point: None).status == "recovered"
