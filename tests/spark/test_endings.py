"""What a run says when it ends badly: whether it committed, and never both. Every step is a stand-in; no session."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import CountMismatchError, DataError, DPTextError, RecordingError, RunError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.target_checks import Commit
from dptext_spark.spark import runner
from dptext_spark.spark.job import job
from dptext_spark.spark.job.idempotency import SETTINGS
from dptext_spark.spark.job.planned_run import MicroBatch

CONFIG = parse_config({
    "input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}, "run": {"id": "r1"},
})  # fmt: skip
BAD_ROW = ValueError("DPTEXT[INVALID_UTF8] partition=1 batch=2 rows=3")
AUDIT = ValueError("DPTEXT[AUDIT_KeyError] partition=0 batch=0 rows=0")
MARKER = KeyError("marker")
BOUND = RunRecord.of({
    "key_commitment": "a", "key_kind": "os", "second_release": False, **dict.fromkeys(SETTINGS, "same"),
    "versions": json.dumps({"engine": ENGINE_VERSION}),
})  # fmt: skip

COMMIT = Commit(0, "WRITE", metadata=json.dumps({"dptext_run": "r1"}))


class Stage:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.fails: dict[str, Exception] = {}
        self.commits: list[bool] = []
        self.earlier: RunRecord | None = None
        self.restored: list[Commit] = []
        self.rows: list[RunRecord] = []
        self.settled: list[str] = []
        setup = SimpleNamespace(
            run_id="r1", config=CONFIG, spark=None, lists=None, stream=None, place=SimpleNamespace(target="/out", runs="/runs"),
            record=lambda status, started: replace(BOUND, status=status, key_commitment="b"), commits=self.history,
            rows=None, attempt="a", paths=(),
        )  # fmt: skip
        steps = {
            "prepare_run": setup, "check_language": True, "write": (None, 1.0, [COMMIT]), "recounted": None,
            "leftover_files": ["f"],
        }  # fmt: skip
        for name, result in steps.items():
            patch.setattr(runner if name == "prepare_run" else job, name, self.step(name, result))
        patch.setattr(job, "reconcile", self.step("account", SimpleNamespace(status="succeeded")))
        granted = SimpleNamespace(cumulative="{}", again=False, cumulative_with=lambda bound: "{}")
        patch.setattr(job.ledger, "reserved", lambda setup, **known: nullcontext(granted))
        patch.setattr(job, "record_units", lambda *args: None)
        patch.setattr(job.ledger, "ledger_bound", lambda *args: None)
        patch.setattr(job.ledger, "settle", self.settle)
        patch.setattr(job.ledger, "failed", lambda *args: self.settled.append("failed"))
        patch.setattr(job.runs, "find", lambda *args: self.earlier)
        patch.setattr(job.runs, "put", self.put)

    def put(self, spark: Any, folder: str, row: RunRecord, **known: bool) -> RunRecord:
        self.rows.append(row)
        return row

    def settle(self, reservation: Any, status: str, **known: Any) -> None:
        if "settle" in self.fails:
            raise self.fails["settle"]
        self.settled.append(status)

    def step(self, name: str, result: Any) -> Any:
        def taken(*args: Any, **more: Any) -> Any:
            if name in self.fails:
                raise self.fails[name]
            return result

        return taken

    def history(self) -> list[Commit]:
        """The next of `commits`; the last of them fails where history is to fail."""
        committed = self.commits.pop(0) if self.commits else False
        if "history" in self.fails and not self.commits:
            raise self.fails["history"]
        return [*self.restored, COMMIT] if committed else []

    def ended(self) -> DPTextError:
        with pytest.raises(DPTextError) as found:
            runner.run(CONFIG, spark=object())  # type: ignore[arg-type]
        said = str(found.value)
        assert "marker" not in said
        assert found.value.__cause__ is None
        assert found.value.__suppress_context__
        not_committed = "before its commit" in said or "Nothing was written to" in said
        committed = "was committed" in said or "committed version" in said
        assert not_committed + committed + ("may have committed" in said) <= 1
        return found.value


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


@pytest.mark.parametrize(
    ("step", "error", "kind"),
    [
        ("prepare_run", MARKER, RunError), ("prepare_run", DataError("columns: x."), DataError),
        ("check_language", MARKER, RunError), ("check_language", DataError("policy.allow_unknown: x."), DataError),
    ],
)  # fmt: skip
def test_before_the_write(stage: Stage, step: str, error: Exception, kind: type) -> None:
    stage.fails = {step: error}
    ended = stage.ended()
    assert type(ended) is kind
    assert kind is RunError or str(error) in str(ended)
    assert (stage.rows, stage.settled) == ([], [])


def test_what_committed_is_not_looked_at_again(stage: Stage) -> None:
    stage.commits = [True]
    stage.earlier = BOUND
    stage.fails = {"check_language": DataError("policy.allow_unknown: x.")}
    assert runner.run(CONFIG, spark=object()) is not None  # type: ignore[arg-type]  # accounted for, and no more
    assert stage.settled == ["spent"]


@pytest.mark.parametrize(("error", "kind"), [(MARKER, RunError), (BAD_ROW, DataError)])
def test_a_write_that_did_not_commit(stage: Stage, error: Exception, kind: type) -> None:
    stage.fails = {"write": error}
    ended = stage.ended()
    assert type(ended) is kind
    assert "before its commit. It left files behind" in str(ended)
    assert [row.status for row in stage.rows] == ["started", "failed"]
    assert stage.settled == ["failed"]
    stage.fails["leftover_files"] = MARKER
    assert "could not be listed" in str(stage.ended())


def test_a_write_that_committed_and_then_failed(stage: Stage) -> None:
    stage.fails, stage.commits = {"write": MARKER}, [False, True]
    ended = stage.ended()
    assert type(ended) is RecordingError
    assert "Run again with run.id=r1" in str(ended)
    assert ([row.status for row in stage.rows], stage.settled) == (["started"], [])


def test_a_write_of_which_nothing_is_known(stage: Stage) -> None:
    stage.fails, stage.commits = {"write": MARKER, "history": MARKER}, [False, False]
    ended = stage.ended()
    assert type(ended) is RunError
    assert "may have committed" in str(ended)
    assert stage.settled == []


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("account", MARKER), ("account", AUDIT), ("account", DataError("audit.shareable: lacks x.")),
        ("account", RunError("other runs kept changing '/runs'; try again when they have ended.")),
        ("settle", RunError("ledger: other runs kept changing it.")),
    ],
)  # fmt: skip
def test_an_account_that_failed(stage: Stage, step: str, error: Exception) -> None:
    stage.fails = {step: error}
    ended = stage.ended()
    assert type(ended) is RecordingError
    assert ended.exit_code == 6
    assert "was committed, but not accounted for" in str(ended)


def test_a_run_of_another_process_that_cannot_be_noted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(*row: Any, **known: bool) -> RunRecord:
        if stage.earlier is not None:
            raise RunError("other runs kept changing '/runs'; try again when they have ended.")
        stage.earlier = replace(BOUND, status="succeeded", output_version=0)
        return stage.earlier

    monkeypatch.setattr(job.runs, "put", put)
    assert (type(stage.ended()), stage.settled) == (RecordingError, ["spent"])


def test_a_write_without_a_commit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "write", lambda *args, **known: (None, 1.0, []))
    with pytest.raises(RunError, match="no commit of run r1"):
        runner.run(CONFIG, spark=object())  # type: ignore[arg-type]
    assert stage.settled == []


def test_a_mismatch_is_said_as_it_is(stage: Stage) -> None:
    stage.fails = {"account": CountMismatchError("run r1 committed version 0 of /out, but x.")}
    assert str(stage.ended()) == "run r1 committed version 0 of /out, but x."
    stage.earlier = replace(BOUND, status="mismatch", output_version=0)
    ended = stage.ended()
    assert type(ended) is CountMismatchError
    assert "Nothing was written again" in str(ended)


def test_a_commit_that_the_target_no_longer_holds_is_not_accounted_for(stage: Stage) -> None:
    stage.commits = [True]
    stage.restored = [Commit(2, "RESTORE")]
    ended = stage.ended()
    assert "version 2 restored the table" in str(ended)
    assert stage.rows == []


@pytest.mark.parametrize("second", [False, True])
def test_a_run_that_committed_is_accounted_for_without_its_key(stage: Stage, second: bool) -> None:
    stage.earlier = replace(BOUND, status="started", second_release=second)
    assert "began with another key" in str(stage.ended())
    stage.commits, stage.fails = [True], {"write": AssertionError("nothing is written again")}
    assert runner.run(CONFIG, spark=object()).status == "succeeded"  # type: ignore[arg-type]
    assert (stage.rows[-1].key_commitment, stage.rows[-1].second_release) == ("a", second)
    stage.commits, stage.earlier = [True], replace(stage.earlier, config="other")
    assert "began with another config" in str(stage.ended())


def test_a_second_count_that_failed(stage: Stage) -> None:
    stage.earlier, stage.commits = replace(BOUND, status="started"), [True, True]
    stage.fails = {"write": AssertionError("nothing is written again"), "recounted": BAD_ROW}
    ended = stage.ended()
    assert type(ended) is RecordingError
    assert "Run again with run.id=r1" in str(ended)


@pytest.mark.parametrize(
    ("named", "stream", "read"),
    [
        ("r1", None, "find"),
        (None, None, "require"),
        (None, MicroBatch("s", 3, is_begun=True), "find"),
        ("s", MicroBatch("s", 3), "require"),
    ],
)
def test_a_row_is_looked_for_where_there_can_be_one(monkeypatch, named, stream, read: str) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(job.runs, "find", lambda spark, *place: asked.append(("find", *place)))
    monkeypatch.setattr(job, "own_table", lambda spark, *place: asked.append(("require", *place)))
    run_id = named if stream is None else stream.run_id
    plan = SimpleNamespace(
        spark=None, stream=stream, run_id=run_id, place=SimpleNamespace(runs="/runs"),
        config=SimpleNamespace(run=SimpleNamespace(id=named)),
    )  # fmt: skip
    assert job._earlier(plan) is None  # type: ignore[arg-type]
    assert asked == [(read, "/runs", *([run_id] if read == "find" else []))]


def test_wrong_settings_end_the_job_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("columns: [body]\nrow_key: id\nmechanism: {k: 1}\n", encoding="utf-8")
    job = Path(__file__).resolve().parents[2] / "jobs" / "privatize.py"
    ended = subprocess.run([sys.executable, str(job), "s.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "mechanism.k" in ended.stderr
    assert "spark" not in ended.stderr.lower()
