"""The process ends at each point of a run and of a stream, and again in the recovery: what is left, and what comes of it.

A history is a run or a stream whose process ends before an effect, and whose next process ends after that effect; a third one
finishes. What each of the two left is looked at, and is finished by a process that is not disturbed. Between two effects nothing
changes (tests/spark/job/test_effects.py), so that the end after an effect leaves what the end before the next one leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.ledger.entry import RESERVED, SPENT, VOID
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.spark.job.entries import read
from dptext_spark.spark.runner import run
from tests.cluster.faults import TIMED, write_key
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning
from tests.spark.crash_job import DATABASE, ENDED, RUN, know_tables, settings
from tests.spark.effects import OF_A_RUN, Effect

pytestmark = pytest.mark.cluster

CHECKOUT = Path(__file__).resolve().parents[2]
ROWS = 30  # of each of the two files of the source
AT_ONCE = 2  # processes
E = Effect
OF_A_TABLE = (*OF_A_RUN[:2], E.TABLE_CREATION, *OF_A_RUN[2:])
# The checkpoint is the one between the two micro-batches, and what comes before it is of the first.
OF_A_STREAM = (
    E.CHECKPOINT_BINDING, E.STREAM_ROW, *OF_A_RUN, E.CHECKPOINT, E.STREAM_METRICS, E.STREAM_ACCOUNT,
)  # fmt: skip
ORDER = {"run": OF_A_RUN, "named": OF_A_TABLE, "fluent": OF_A_RUN, "stream": OF_A_STREAM}
CALM = {"run": "run", "named": "run", "fluent": "fluent", "stream": "stream"}  # what is compared with


@dataclass(frozen=True)
class History:
    """Where two processes end, one after the other: `before` or `after` an effect, and which effect fails before that."""

    kind: str
    ends: tuple[tuple[str, Effect], tuple[str, Effect]]
    fails: Effect | None = None

    @property
    def name(self) -> str:
        """The folder, and the name of the test."""
        ends = "-".join(f"{when}-{effect.name.lower()}" for when, effect in self.ends)
        return f"{self.kind}-{ends}" + ("-failing" if self.fails else "")

    @property
    def writes(self) -> bool:
        return self.fails is not E.DATA_COMMIT


def _around(kind: str, *effects: Effect) -> list[History]:
    return [History(kind, (("before", effect), ("after", effect))) for effect in effects]


HISTORIES = [
    *_around("run", *OF_A_RUN),
    # The account of a run that had committed writes the row that binds it once more.
    History("run", (("after", E.DATA_COMMIT), ("after", E.RUN_ROW))),
    History("run", (("before", E.SETTLEMENT), ("after", E.ACCOUNT)), fails=E.DATA_COMMIT),
    *_around("named", E.TABLE_CREATION),
    *_around("fluent", E.DATA_COMMIT),
    *_around("stream", *OF_A_STREAM),
]


def test_the_list_is_complete() -> None:
    ended = {(when, effect) for history in HISTORIES for when, effect in history.ends}
    assert ended == {(when, effect) for when in ("before", "after") for effect in Effect}
    for kind in ("run", "stream"):
        ended = {end for history in HISTORIES if history.kind == kind for end in history.ends}
        assert ended >= {(when, effect) for when in ("before", "after") for effect in ORDER[kind]}


def table(folder: Path) -> tuple[int, list[dict[str, Any]], list[Path]]:
    """Return the versions, the rows and the data files of a small Delta table, by the log's text."""
    files: dict[str, dict[str, str]] = {}
    commits = sorted((folder / "_delta_log").glob("*.json")) if folder.is_dir() else []
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            for name, action in json.loads(line).items():
                if name == "add":
                    files[unquote(action["path"])] = action["partitionValues"]
                elif name == "remove":
                    files.pop(unquote(action["path"]), None)
    rows = [
        {**row, **partition}
        for file, partition in files.items()
        for row in pq.read_table(folder / file, partitioning=None).to_pylist()
    ]
    return len(commits), rows, [folder / file for file in files]


def _digest(file: Path) -> str:
    """Return a digest of a Parquet file up to its footer, where each JVM lists encodings in an order of its own."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    assert content[-4:] == b"PAR1"
    assert footer < len(content)
    return hashlib.sha256(content[:-footer]).hexdigest()


def _holds_rows(file: Path) -> bool:
    """Whether a data file, or what was written of one, holds rows: where Delta makes an empty table, it leaves a file of none."""
    try:
        return bool(pq.read_metadata(file).num_rows)
    except pa.ArrowInvalid:  # it has no footer
        return True


@dataclass(frozen=True)
class Left:
    """What lies in a folder."""

    versions: int
    rows: dict[int, str]  # by their key
    digests: list[str]  # of the data files
    loose: int  # files that hold rows of no version
    status: dict[str, str]  # of the rows of `runs`
    metrics: dict[tuple[str, str | None, str], float | None]  # by run, column and name, but times
    ledger: dict[str, set[str]] = field(default_factory=dict)  # the last statuses of each run's entries
    bound: bool = False  # the checkpoint is
    planned: int = 0
    noted: int = 0

    @classmethod
    def of(cls, folder: Path) -> Left:
        versions, found, files = table(folder / "out")
        rows = {row["id"]: row["body"] for row in found}
        assert len(rows) == len(found), "a row came twice"
        runs = table(folder / "shareable" / "runs")[1]
        status = {row["run_id"]: row["status"] for row in runs}
        assert len(status) == len(runs), "a run has two rows"
        measured = table(folder / "restricted" / "metrics")[1]
        metrics = {(m["run_id"], m["column"], m["metric"]): m["value"] for m in measured}
        assert len(metrics) == len(measured), "a metric was written twice"
        entries: dict[str, tuple[str, str]] = {}
        # A row that settles comes after the one that reserves.
        for row in table(folder / "ledger")[1]:
            said = entries.get(row["entry"], (row["run_id"], RESERVED))[1]
            entries[row["entry"]] = (row["run_id"], row["status"] if said == RESERVED else said)
        ledger: dict[str, set[str]] = {}
        for run_id, said in entries.values():
            ledger.setdefault(run_id, set()).add(said)
        there = {file for file in (folder / "out").rglob("*.parquet") if "_delta_log" not in file.parts}
        checkpoint = folder / "checkpoint"
        return cls(
            versions, rows, sorted(map(_digest, files)),
            sum(map(_holds_rows, there - set(files))), status,
            {name: value for name, value in metrics.items() if name[2] not in TIMED},
            ledger, any((checkpoint / "dptext").rglob("*.json")),
            *(len(list((checkpoint / part).glob("[0-9]*"))) for part in ("offsets", "commits")),
        )  # fmt: skip


@dataclass
class Made:
    """Everything that processes ended in, while they are made two at a time."""

    base: Path
    spark: Any
    pending: dict[str, Future[None]]
    calm: dict[str, Left]
    epsilon: float

    def run(self, kind: str, name: str) -> dict[str, Any]:
        """Run in the process of the tests, which is not disturbed."""
        folder = self.base / name
        # Another process wrote these tables since, or they were put back to what they were.
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        if kind == "named":
            know_tables(self.spark, folder)
        try:
            return run(parse_config(settings(self.base, name, kind)), self.spark).facts
        finally:
            if kind == "named":
                # What the session made goes with the database, and so does the folder.
                kept = shutil.copytree(folder, folder.with_name(f"{name}.kept"))
                self.spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
                shutil.rmtree(folder, ignore_errors=True)
                kept.rename(folder)


def _ended(base: Path, history: History) -> None:
    """Let two processes end where the history says; keep what the first one left."""
    folder = base / history.name
    folder.mkdir()
    for number, (when, effect) in enumerate(history.ends):
        plan = {
            "base": str(base), "name": history.name, "kind": history.kind, "point": getattr(effect, when),
            "times": 2 if effect is E.CHECKPOINT else 1, "fails": history.fails.before if history.fails else None,
        }  # fmt: skip
        file = base / f"{history.name}.{number}.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        done = subprocess.run(  # it returns when the JVM has ended, too: that holds the pipes
            [sys.executable, str(Path(__file__).with_name("crash_job.py")), str(file)],
            cwd=base, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, timeout=900,
        )  # fmt: skip
        assert done.returncode == ENDED, done.stderr.decode("utf-8", "replace")[-3000:]
        if number == 0:
            shutil.copytree(folder, base / f"{history.name}.first")


@pytest.fixture(scope="module")
def made(session, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Made]:
    base = tmp_path_factory.mktemp("crashes")
    words = beginning(Lexicon.default(), 600)
    with_pairs(words).save(base / "lexicon")
    write_key(base)
    for first in (0, ROWS):
        text = "concat('please call me about the good money ', id)"
        frame = session.range(first, first + ROWS).selectExpr("id", f"{text} AS body").coalesce(1)
        frame.write.format("delta").mode("append").save(str(base / "in"))
    asked = {
        item.callspec.params["history"].name for item in request.session.items if "history" in _params(item)
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pending = {h.name: pool.submit(_ended, base, h) for h in HISTORIES if h.name in asked}
        all_of_it = Made(
            base, session, pending, {}, parse_config(settings(base, "x", "run")).mechanism.epsilon
        )
        for kind in {"run", *(CALM[h.kind] for h in HISTORIES if h.name in asked)}:
            (base / f"calm-{kind}").mkdir()
            all_of_it.run(kind, f"calm-{kind}")
            all_of_it.calm[kind] = Left.of(base / f"calm-{kind}")
        try:
            yield all_of_it
        finally:
            for one in pending.values():
                one.cancel()


def _params(item: pytest.Item) -> Any:
    return getattr(getattr(item, "callspec", None), "params", ())


def _done(history: History, processes: int) -> list[Effect]:
    order = ORDER[history.kind]
    reached = [order.index(effect) + (when == "after") for when, effect in history.ends[:processes]]
    return [effect for effect in order[: max(reached)] if effect is not history.fails]


def _status(history: History, processes: int) -> str:
    """How a run that is finished after so many processes ended says that it ended."""
    if not history.writes:
        return "succeeded"
    commits, ends = ORDER[history.kind].index(E.DATA_COMMIT), []
    for when, effect in history.ends[:processes]:
        ends.append(ORDER[history.kind].index(effect) + (when == "after"))
    accounts = ORDER[history.kind].index(E.ACCOUNT)
    committed = next((number for number, end in enumerate(ends) if end > commits), processes)
    accounted = next((number for number, end in enumerate(ends) if end > accounts), processes)
    return "succeeded" if committed == accounted else "recovered"


def _check_left(history: History, processes: int, left: Left, calm: Left) -> None:
    """Compare what is there with what the effects that were come to."""
    done = _done(history, processes)
    first, stream = f"{RUN}.0" if history.kind == "stream" else RUN, history.kind == "stream"
    whole = E.STREAM_METRICS in history.ends[processes - 1] or E.STREAM_ACCOUNT in history.ends[processes - 1]
    expected = {first: "started"} if E.RUN_ROW in done else {}
    if E.ACCOUNT in done:
        expected[first] = _status(history, processes)
    ledger = {first: {SPENT if E.SETTLEMENT in done else RESERVED}} if E.RESERVATION in done else {}
    if stream and whole:
        expected[f"{RUN}.1"], ledger[f"{RUN}.1"] = "succeeded", {SPENT}
    if E.STREAM_ROW in done:
        expected[RUN] = "succeeded" if E.STREAM_ACCOUNT in done else "started"
    assert left.status == expected
    assert left.ledger == ledger
    made_empty = E.TABLE_CREATION in done
    assert left.versions == made_empty + ((2 if whole else 1) if E.DATA_COMMIT in done else 0)
    assert left.loose == 0
    assert left.rows.items() <= calm.rows.items()
    assert bool(left.rows) == (E.DATA_COMMIT in done)
    assert {name for name, *_ in left.metrics} == {
        *([first] if E.METRICS in done else []),
        *([f"{RUN}.1"] if whole else []),
        *([RUN] if E.STREAM_METRICS in done else []),
    }
    if stream:
        assert left.bound == (E.CHECKPOINT_BINDING in done)
        planned = E.RESERVATION in done or history.ends[processes - 1][1] is E.RESERVATION
        assert left.planned == (2 if E.CHECKPOINT in done else 1 if planned else 0)
        assert left.noted == (2 if whole else 1 if E.CHECKPOINT in done else 0)


def _check_finished(history: History, processes: int, left: Left, made: Made) -> None:
    """Compare what came of it with what comes of a run, or a stream, that nothing happens to."""
    stream = history.kind == "stream"
    calm = made.calm[CALM[history.kind]]
    assert left.rows == calm.rows
    assert left.digests == calm.digests
    assert left.loose == 0
    assert left.versions == calm.versions + (history.kind == "named")
    assert left.metrics == calm.metrics
    first = f"{RUN}.0" if stream else RUN
    assert left.status == {**calm.status, first: _status(history, processes)}
    assert left.ledger.keys() == calm.ledger.keys()
    assert set().union(*left.ledger.values()) - {VOID} == {SPENT}
    (balance,) = read(str(made.base / history.name / "ledger"), made.spark)
    assert (balance.columns[0].total, balance.unfinished) == (made.epsilon, 0)
    assert (left.planned, left.noted) == (calm.planned, calm.noted)


def _finish(history: History, processes: int, made: Made) -> None:
    folder = made.base / history.name
    calm = made.calm[CALM[history.kind]]
    if history.writes:
        _check_left(history, processes, Left.of(folder), calm)
    else:
        _check_failed(processes, Left.of(folder))
    facts = made.run(history.kind, history.name)
    if history.kind != "stream":
        accounted = E.ACCOUNT in _done(history, processes) and history.writes
        assert facts["status"] == ("unchanged" if accounted else _status(history, processes))
    _check_finished(history, processes, Left.of(folder), made)


def _check_failed(processes: int, left: Left) -> None:
    """A run whose write failed: its reservation is void once that is noted, for nothing of it is anywhere."""
    assert (left.versions, left.loose, left.metrics) == (0, 0, {})
    assert left.status == {RUN: "failed" if processes == 2 else "started"}
    assert left.ledger == {RUN: {RESERVED} if processes == 1 else {RESERVED, VOID}}


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_the_process_ends(history: History, made: Made) -> None:
    made.pending[history.name].result()
    _finish(history, 2, made)
    folder = made.base / history.name
    shutil.rmtree(folder)
    shutil.copytree(made.base / f"{history.name}.first", folder)
    _finish(history, 1, made)


def _raced(made: Made, name: str, point: Effect, *settings: dict[str, Any]) -> Counter[str]:
    """Start a process with each of the settings, let all go on from before an effect at once; return how often each ended how."""
    folder = made.base / name
    folder.mkdir(exist_ok=True)
    files = [folder.with_name(f"{name}.{number}.json") for number in range(len(settings))]
    here = [str(file.with_suffix(".here")) for file in files]
    for file, own, more in zip(files, here, settings, strict=True):
        plan = {
            "base": str(made.base), "name": name, "kind": "run", "meets": point.before, "own": own, "all": here, "more": more,
        }  # fmt: skip
        file.write_text(json.dumps(plan), encoding="utf-8")
    started = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("crash_job.py")), str(file)], cwd=made.base, text=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for file in files
    ]  # fmt: skip
    try:
        told = [process.communicate(timeout=900) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * len(started), [
        error[-3000:] for _, error in told
    ]
    return Counter(out.rpartition("ENDED ")[2].strip() for out, _ in told)


@pytest.mark.parametrize("point", [E.RESERVATION, E.RUN_ROW, E.DATA_COMMIT], ids=lambda point: point.name)
def test_two_runs_with_one_command(made: Made, point: Effect) -> None:
    name = f"command-{point.name.lower()}"
    assert _raced(made, name, point, {}, {}) == {"succeeded": 1, "unchanged": 1}
    left, calm = Left.of(made.base / name), made.calm["run"]
    assert (left.rows, left.digests, left.versions) == (calm.rows, calm.digests, calm.versions)
    assert (left.status, left.metrics) == (calm.status, calm.metrics)
    # The one that did not commit may have written its files: they hold the same draws.
    files = [file for file in (made.base / name / "out").glob("*.parquet") if _holds_rows(file)]
    assert {*map(_digest, files)} == {*calm.digests}
    (balance,) = read(str(made.base / name / "ledger"), made.spark)
    assert (balance.columns[0].total, balance.unfinished) == (made.epsilon, 0)


@pytest.mark.parametrize("mode", ["append", "error"])
def test_two_runs_on_one_target(made: Made, mode: str) -> None:
    """Both are added to one that is there; of two that make it one does. What is counted covers what is there."""
    name = f"target-{mode}"
    if mode == "append":
        (made.base / name).mkdir()
        made.run("run", name)
    before = len(table(made.base / name / "out")[1]) // (2 * ROWS)
    out = {"path": str(made.base / name / "out"), "other_columns": "keep", "mode": mode}
    ended = _raced(made, name, E.DATA_COMMIT, *({"output": out, "run": {"id": one}} for one in ("a", "b")))
    passed = 2 if before else 1
    versions, rows, _ = table(made.base / name / "out")
    assert (ended["succeeded"], versions) == (passed, before + passed), ended
    assert Counter(row["id"] for row in rows) == dict.fromkeys(range(2 * ROWS), versions)
    runs = table(made.base / name / "shareable" / "runs")[1]
    assert Counter(row["status"] for row in runs) == Counter(succeeded=versions, failed=2 - passed)
    (balance,) = read(str(made.base / name / "ledger"), made.spark)
    assert versions * made.epsilon <= balance.columns[0].total <= (before + 2) * made.epsilon


def test_five_drivers_under_one_limit(made: Made) -> None:
    """Two releases pass, whoever asks first, and the other three are refused before anything is written."""
    name = "limit"
    ledger = {"path": str(made.base / name / "ledger"), "limit": 2 * made.epsilon}
    runs = [
        {
            "ledger": ledger, "run": {"id": f"run-{number}"},
            "output": {"path": str(made.base / name / f"out-{number}"), "other_columns": "keep"},
        }
        for number in range(5)
    ]  # fmt: skip
    assert _raced(made, name, E.RESERVATION, *runs) == {"succeeded": 2, "ledger.limit": 3}
    assert len(list((made.base / name).glob("out-*/_delta_log"))) == 2
    (balance,) = read(str(made.base / name / "ledger"), made.spark)
    assert (balance.columns[0].total, balance.unfinished) == (2 * made.epsilon, 0)
