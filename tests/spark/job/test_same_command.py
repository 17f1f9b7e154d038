"""Two processes that start one command at the same moment: one does it, and the other one changes nothing of that."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import RecordingError
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark.job import job
from dptext_spark.spark.job.entries import read
from dptext_spark.spark.job.job import run_once
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.tables import Target, history, opened
from tests.spark.effects import Effect, observed

KEY = RunKey(hashlib.sha256(b"one").digest())


@pytest.fixture(scope="module")
def source(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("same") / "in"
    frame = session.createDataFrame([(i, f"good news {i}") for i in range(4)], "id long, body string")
    frame.coalesce(1).write.format("delta").save(str(folder))
    return folder


@dataclass
class Command:
    spark: Any
    source: Path
    base: Path

    def config(self, mode: str = "error") -> RunConfig:
        return parse_config({
            "input": {"path": str(self.source)}, "columns": ["body"], "row_key": "id", "consistency": "record",
            "output": {"path": str(self.base / "out"), "mode": mode}, "ledger": {"path": str(self.base / "ledger")},
            "run": {"id": "same"},
        })  # fmt: skip

    def start(self, mode: str = "error") -> str:
        settings = self.config(mode)
        return run_once(lambda: prepare_run(self.spark, settings, KEY, silent), settings, silent).status

    def account(self) -> dict[str, Any]:
        """Return the one row of `runs`; the ledger counted the release once."""
        (balance,) = read(str(self.base / "ledger"), self.spark)
        assert [(column.total, balance.unfinished) for column in balance.columns] == [(1.0, 0)]
        (row,) = opened(self.spark, Target(path=f"{self.config().shareable}/runs")).collect()
        return row.asDict()


@pytest.fixture
def command(spark: Any, source: Path, tmp_path: Path) -> Command:
    return Command(spark, source, tmp_path)


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
def test_one_command_started_twice(command: Command, point: str, mode: str, first: str, second: str) -> None:
    """The other process does all that it does while this one is at a point."""
    ended: list[str] = []

    def other(passed: str) -> None:
        if passed == point and not ended:
            ended.append("begun")
            ended.append(command.start(mode=mode))

    with observed(other):
        assert command.start(mode) == first
    assert ended == ["begun", second]
    row = command.account()
    assert row["status"] == ("succeeded" if first == "succeeded" else second)
    assert (row["rows"], row["output_version"]) == (4, 0)
    assert len(history(command.spark, Target(path=str(command.base / "out")))) == 1
    assert command.start(mode=mode) == "unchanged"


@pytest.mark.long
@pytest.mark.parametrize("point", [Effect.DATA_COMMIT.after, Effect.ACCOUNT.before])
def test_who_counts_again_while_the_other_accounts(command: Command, point: str) -> None:
    """The second begins between the commit and the account of the first: it changes nothing of that account."""
    committed, accounted = threading.Event(), threading.Event()
    ended: list[str] = []

    def at(passed: str) -> None:
        is_first = threading.current_thread() is process
        if is_first and passed == point:
            committed.set()
            assert accounted.wait(120)
        elif not is_first and passed == Effect.RUN_ROW.after:
            accounted.set()
            process.join(120)

    process = threading.Thread(target=lambda: ended.append(command.start()))
    with observed(at):
        process.start()
        assert committed.wait(120)
        assert command.start() == "unchanged"
    assert ended == ["succeeded"]
    assert command.account()["status"] == "succeeded"
    metrics = opened(command.spark, Target(path=f"{command.config().restricted}/metrics"))
    (seconds,) = metrics.where("metric = 'write_seconds'").collect()
    assert seconds["value"] is not None


@pytest.mark.long
def test_who_cannot_count_again_waits_for_nobody(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that committed ended before its account, and the input cannot be read any more."""

    class EndedError(BaseException):
        pass

    def ends(passed: str) -> None:
        if passed == Effect.DATA_COMMIT.after:
            raise EndedError

    def fails(*_: Any) -> None:
        raise RuntimeError("zqxmarker")

    with pytest.raises(EndedError), observed(ends):
        command.start()
    monkeypatch.setattr(job, "WAIT", 0.0)
    monkeypatch.setattr(job, "recounted", fails)
    with pytest.raises(RecordingError) as told:
        command.start()
    assert "Another process" not in str(told.value)
    assert "zqxmarker" not in str(told.value)
    monkeypatch.undo()
    assert command.start() == "recovered"
