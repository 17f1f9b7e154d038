"""Random histories of a target, its ledger and its runs: what holds whatever happens, and in whatever order.

The job's own code decides and keeps its books, with an observer ending the process at random points; only Delta tables (in
memory) and what works on the text stand in for Spark. A file of the target here says which draws of which version it holds.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine as StateMachine
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test
from pyspark.sql import types as T

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import DPTextError
from dptext_spark.ledger.balance import spent_on
from dptext_spark.ledger.entry import RESERVED, Entry, of_input
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import check_input
from dptext_spark.model.target_checks import SEAL, Commit
from dptext_spark.randomness import RunKey
from dptext_spark.spark.column_function import Identity
from dptext_spark.spark.job import entries, job, ledger, planned_run, runs
from dptext_spark.spark.job.idempotency import Binding
from dptext_spark.spark.job.job import run_once
from dptext_spark.spark.job.planned_run import RunPlan, check_output, place_of
from dptext_spark.spark.job.writing import Counts
from dptext_spark.spark.nested_columns import schema_of
from dptext_spark.spark.tables import history
from dptext_spark.text.engine import COUNTERS
from tests.spark.delta_in_memory import Died, Frame, Functions, Memory
from tests.spark.effects import OF_A_RUN, Effect, observed

INPUT, OUT, LEDGER = "mem://a/in", "mem://a/out", "mem://a/ledger"
AUDIT, PRIVATE = "mem://a/audit", "mem://a/private"
KEYS = [RunKey(hashlib.sha256(b"key %d" % number).digest()) for number in range(3)]
SCHEMA = T.StructType([T.StructField("id", T.LongType()), T.StructField("body", T.StringType())])
COUNTS = Counts.of({
    "rows": 1, "bytes_0": 4, "units_mean": 1.0, "units_p50": 1.0, "units_p95": 1.0, "units_max": 1,
    "unknown_rows": 0,
    **{f"{name}_0": 0 for name in COUNTERS},
})  # fmt: skip
WRITTEN = "data files written"  # they are there, and no commit is
POINTS = [WRITTEN, *(point for effect in OF_A_RUN for point in (effect.before, effect.after))]
LIMIT = 6.0
SOMEWHERE = st.none() | st.sampled_from(POINTS)


@dataclass(frozen=True)
class Draws:
    """The draws of a file, by what they depend on; and the version of the input that they were made of."""

    key: int
    level: str
    run_id: str | None  # at token level
    version: str


@dataclass(frozen=True)
class Asked:
    level: str
    mode: str
    key: int


@pytest.fixture(scope="module")
def privatizers(privatizer_at: Any) -> dict[str, Privatizer]:
    return {level: privatizer_at(level) for level in ("token", "record")}


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "F", Functions)
    for module in (entries, planned_run):
        monkeypatch.setattr(module, "holds_files", lambda spark, path, **_: path in spark.tables)
    monkeypatch.setattr(planned_run, "quoted", str)
    monkeypatch.setattr(ledger, "read_manifest", lambda folder: {})
    monkeypatch.setattr(entries, "content_of", lambda spark, location, version: version)
    monkeypatch.setattr(ledger, "_quiet", lambda spark: True)
    monkeypatch.setattr(job, "cores_of", lambda spark: 1)
    monkeypatch.setattr(job, "write", write)
    monkeypatch.setattr(job, "recounted", recounted)
    for module in (job, ledger):
        monkeypatch.setattr(module, "leftover_files", leftover_files)


def draws_of(setup: RunPlan) -> Draws:
    level = setup.config.consistency
    own = setup.run_id if level == "token" else None
    return Draws(KEYS.index(setup.key), level, own, setup.input_version)


def write(
    setup: RunPlan, record: RunRecord, say: Any, *, new: bool
) -> tuple[Counts | None, float, list[Commit]]:
    """Write a file with the run's draws, and commit it with what the real write says in its commit."""
    memory: Any = setup.spark
    memory.at(Effect.DATA_COMMIT.before)
    there = None if new else memory.committed(OUT)
    kept = there.commits[-1].files if there is not None and setup.config.output.mode == "append" else ()
    new = memory.put(OUT, draws_of(setup))
    memory.at(WRITTEN)
    memory.tables[OUT].schema = SCHEMA
    said = {"dptext_run": setup.run_id, SEAL: Binding.sealed(record).as_dict()}
    memory.commit(OUT, "WRITE", [*kept, new], said=json.dumps(said), written=1)
    memory.at(Effect.DATA_COMMIT.after)
    return COUNTS, 0.5, setup.commits()


def recounted(setup: RunPlan, key_then: str, say: Any) -> Counts | None:
    return COUNTS if key_then == setup.key.commitment(setup.run_id) else None


def leftover_files(spark: Any, target: Any, since: float) -> list[str]:
    """Every file of no version: all of this is younger than a second."""
    table = spark.tables.get(OUT)
    if table is None:
        return []
    held = {number for commit in table.commits for number in commit.files}
    return [str(number) for number in table.files if number not in held]


class Histories(StateMachine):
    """Runs of one input into one target, and what else happens to them."""

    privatizers: ClassVar[dict[str, Privatizer]]
    folder: ClassVar[str]
    seen: ClassVar[Counter[str]]

    @initialize(limited=st.booleans())
    def begin(self, limited: bool) -> None:
        self.memory = Memory()
        self.memory.put(INPUT, "private")
        self.memory.commit(INPUT, "WRITE", [])
        self.limit = LIMIT if limited else None
        self.asked: dict[str, Asked] = {}
        self.tried: set[Draws] = set()
        self.second: set[tuple[str, int]] = set()
        self.began = 0

    # What is done.

    @rule(
        level=st.sampled_from(["token", "record"]), mode=st.sampled_from(["error", "append", "overwrite"]),
        key=st.integers(0, 1), point=SOMEWHERE, fails=st.booleans(),
    )  # fmt: skip
    def run(self, level: str, mode: str, key: int, point: str | None, fails: bool) -> None:
        self.began += 1
        run_id = f"r{self.began}"
        self.asked[run_id] = Asked(level, mode, key)
        self._attempt(run_id, key, point, fails)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), key=st.none() | st.just(2), point=SOMEWHERE, accept=st.booleans())
    def run_again(self, data: Any, key: int | None, point: str | None, accept: bool) -> None:
        rows = self._rows()
        ended = {name for name, row in rows.items() if row["status"] not in ("started", "failed")}
        unfinished = [name for name in self.asked if name in rows.keys() - ended]
        run_id = data.draw(st.sampled_from(unfinished or list(self.asked)[-3:]))
        self._attempt(run_id, self.asked[run_id].key if key is None else key, point, False, accept)

    @rule(
        what=st.sampled_from(["input grows", "target deleted", "restore", "vacuum", "runs lost"]),
        back=st.integers(1, 3),
    )
    def meanwhile(self, what: str, back: int) -> None:
        table = self.memory.tables.get(OUT)
        if what == "input grows":
            self.memory.commit(INPUT, "WRITE", [])
        elif what == "runs lost":
            self.memory.tables.pop(f"{AUDIT}/runs", None)
        elif table is None:
            return
        elif what == "target deleted":
            del self.memory.tables[OUT]
        elif what == "vacuum":
            self.memory.vacuum(OUT)
        elif len(table.commits) > back:
            version = len(table.commits) - 1 - back
            if all(number in table.files for number in table.commits[version].files):
                self.memory.restore(OUT, version)

    @precondition(lambda self: self.memory.committed(LEDGER))
    @rule(damage=st.sampled_from(["other columns", "negative", "gone"]))
    def damage_the_ledger(self, damage: str) -> None:
        """No run goes on with a ledger that is none; once it is as it was, all goes on."""
        table = self.memory.tables[LEDGER]
        before, files, schema = list(table.commits), dict(table.files), table.schema
        row = next(row for row in table.files[table.commits[0].files[0]] if row["status"] == RESERVED)
        if damage == "gone" and not self._commits():
            return  # nothing says that there was one
        if damage == "gone":
            del self.memory.tables[LEDGER]
        elif damage == "other columns":
            table.schema = T.StructType([T.StructField("entry", T.StringType())])
        else:
            number = self.memory.put(LEDGER, [{**row, "entry": "x", "epsilon": -1.0}])
            self.memory.commit(LEDGER, "WRITE", [*table.commits[-1].files, number])
        self.began += 1
        target = len(self.memory.tables[OUT].files) if OUT in self.memory.tables else None
        with pytest.raises(DPTextError):
            self._carried_out(f"r{self.began}", Asked("record", "overwrite", 0), 0, None, False, False)
        assert target == (len(self.memory.tables[OUT].files) if OUT in self.memory.tables else None)
        assert damage != "gone" or self.memory.committed(LEDGER) is None
        table.commits, table.files, table.schema = before, files, schema
        self.memory.tables[LEDGER] = table

    # What happens then.

    def _attempt(self, run_id: str, key: int, point: str | None, fails: bool, accept: bool = False) -> None:
        asked = self.asked[run_id]
        row = self._rows().get(run_id)
        committed = self._commits().get(run_id, 0)
        files = set(self.memory.tables[OUT].files) if OUT in self.memory.tables else set()
        if accept:
            self.second.add((run_id, key))
        try:
            status = self._carried_out(run_id, asked, key, point, fails, accept)
        except Died:
            self.memory.dead = False
            status = "died"
        except DPTextError as error:
            status = type(error).__name__
        self.seen[status] += 1
        written = set(self.memory.tables[OUT].files) - files if OUT in self.memory.tables else set()
        if row is not None and row["status"] in ("succeeded", "recovered", "mismatch"):
            assert not written  # it is finished, whoever asks, whatever became of the target
        if committed:
            assert not written
            assert status != "succeeded"
        if row is not None and key != asked.key and not accept and not row["second_release"]:
            assert not written
        if status in ("succeeded", "recovered"):
            now = self._rows()[run_id]
            assert now["status"] == status
            assert now["output_version"] is not None
            assert self._metrics()[run_id, None, "write_seconds"] == 1
            settled = [one for one in self._entries() if one.run_id == run_id and one.status == RESERVED]
            # What stays reserved is of an attempt with another key.
            every = {one.release for one in self._entries() if one.run_id == run_id}
            mine = every - {one.release for one in settled}
            assert mine or not settled
            assert not settled or now["second_release"] or key != asked.key or accept
        if status == "succeeded":
            assert len(written) == 1
            assert self._commits()[run_id] == committed + 1
        if status == "unchanged":
            assert self._rows()[run_id] == row
        if status in ("succeeded", "recovered", "unchanged"):
            assert run_id in self._runs_that_made_it()

    def _carried_out(
        self, run_id: str, asked: Asked, key: int, point: str | None, fails: bool, accept: bool
    ) -> str:
        config = parse_config({
            "input": {"path": INPUT}, "columns": ["body"], "row_key": "id", "consistency": asked.level,
            "output": {"path": OUT, "other_columns": "keep", "mode": asked.mode}, "key": {"file": "/nowhere"},
            "audit": {"shareable": AUDIT, "restricted": PRIVATE},
            "ledger": {"path": LEDGER, "limit": self.limit},
            "run": {"id": run_id, "second_release": "accept" if accept else "refuse"},
            "policy": {"allow_unknown": True},  # a table in memory has no texts to look at
        })  # fmt: skip
        memory: Any = self.memory
        version = len(memory.tables[INPUT].commits) - 1
        df: Any = Frame([], SCHEMA)
        fit = check_input(schema_of(SCHEMA), config)
        setup = RunPlan(
            spark=memory, config=config, run_id=run_id, key=KEYS[key], key_kind="file",
            privatizer=self.privatizers[asked.level], folder=self.folder, df=df, input_version=f"delta:{version}",
            corrupt=None, identity=Identity("row_key", None, None), place=place_of(config), kept=["id", "body"],
            compiled=0, certificate=None,
        )  # fmt: skip

        def prepared() -> RunPlan:
            commits = history(memory, setup.place.target)
            check_output(memory, config, df, fit, commits, persistent=True)
            return setup

        def at(passed: str) -> None:
            if passed == Effect.RESERVATION.after:
                self.tried.add(draws_of(setup))
            if passed == point and fails:
                raise OSError
            if passed == point:
                memory.dead = True
                raise Died

        memory.at = at
        with observed(at):
            return run_once(prepared, config, lambda step: None).status

    # What holds at any time.

    @invariant()
    def what_is_spent_covers_what_is_there_and_no_more_than_was_tried(self) -> None:
        """Equal draws of one version count once; a file counts as long as it lies there, in a version or not.

        A second release that was accepted counts for what the first may have left, of which the ledger need know nothing.
        """
        table = self.memory.tables.get(OUT)
        held = set(table.files.values()) if table is not None else set()
        here = of_input(self._entries(), INPUT, f"id-{self.memory.tables[INPUT].id}")
        spent = spent_on(here, "body").total
        epsilon = self.privatizers["token"].guarantee().epsilon
        assert len(held) * epsilon <= spent <= (len(self.tried) + len(self.second)) * epsilon
        if self.limit is not None:
            assert spent <= self.limit

    @invariant()
    def a_run_id_commits_once_and_has_one_row(self) -> None:
        assert all(times == 1 for times in self._commits().values())
        assert all(times == 1 for times in self._metrics().values())
        rows = self.memory.committed(f"{AUDIT}/runs")
        found = [] if rows is None else self.memory.read.load(f"{AUDIT}/runs").collect()
        assert len({row["run_id"] for row in found}) == len(found)

    @invariant()
    def no_run_committed_without_a_row_and_a_reservation_before(self) -> None:
        reserved = {one.run_id for one in self._entries()}
        assert self._commits().keys() <= reserved

    def _rows(self) -> dict[str, dict[str, Any]]:
        if self.memory.committed(f"{AUDIT}/runs") is None:
            return {}
        return {row["run_id"]: row for row in self.memory.read.load(f"{AUDIT}/runs").collect()}

    def _metrics(self) -> Counter[tuple[str, str | None, str]]:
        if self.memory.committed(f"{PRIVATE}/metrics") is None:
            return Counter()
        rows = self.memory.read.load(f"{PRIVATE}/metrics").collect()
        return Counter((row["run_id"], row["column"], row["metric"]) for row in rows)

    def _entries(self) -> list[Entry]:
        spark: Any = self.memory
        return entries.entries_of(spark, LEDGER)[1]

    def _runs_that_made_it(self) -> set[str]:
        """Whose commits the target came about by, from the newest version back: a restore leads to where it went."""
        commits = self.memory.tables[OUT].commits if OUT in self.memory.tables else []
        found, version = set(), len(commits) - 1
        while version >= 0:
            one = commits[version]
            if one.operation == "RESTORE":
                version = int(one.parameters["version"])
                continue
            found.add(json.loads(one.said or "{}")["dptext_run"])
            version -= 1
        return found

    def _commits(self) -> Counter[str]:
        table = self.memory.tables.get(OUT)
        said = [json.loads(one.said) for one in table.commits if one.said] if table is not None else []
        return Counter(one["dptext_run"] for one in said)


@pytest.mark.long
def test_whatever_happens(privatizers: dict[str, Privatizer], tmp_path: Path) -> None:
    Histories.privatizers, Histories.folder, Histories.seen = privatizers, str(tmp_path), Counter()
    # To shrink what fails takes minutes; the history is printed whole.
    chosen = settings(max_examples=60, stateful_step_count=25, phases=[Phase.generate])
    chosen = settings(chosen, report_multiple_bugs=False)
    run_state_machine_as_test(Histories, settings=chosen)
    # It saw everything that can become of a run.
    assert Histories.seen.keys() >= {
        "succeeded", "recovered", "unchanged", "died", "RunError", "RecordingError",
    }, Histories.seen  # fmt: skip
