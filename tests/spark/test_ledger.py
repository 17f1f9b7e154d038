"""The budget ledger on real Delta tables: what runs spend, what is refused, and that two processes cannot both pass."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.budget.entries import SPENT, VOID, Entry
from dptext_spark.config import RunConfig
from dptext_spark.draws import RunKey
from dptext_spark.errors import DataError, NotAccounted, RunError
from dptext_spark.spark import entries as ledgers_table
from dptext_spark.spark import ledger, runs, write
from dptext_spark.spark.job import run
from dptext_spark.spark.schemas import LEDGER
from dptext_spark.spark.setup import Setup, validated
from dptext_spark.spark.tables import Target, history

CHECKOUT = Path(__file__).resolve().parents[2]
KEY, OTHER = RunKey(bytes(range(32))), RunKey(bytes(range(1, 33)))


def config(base: Path, **changes: Any) -> RunConfig:
    """Record level, a ledger beside all targets, and few words, so that a run is quick."""
    settings: dict[str, Any] = {
        "input": {"path": str(base / "in")},
        "columns": ["body"],
        "row_key": "id",
        "consistency": "record",
        "output": {"path": str(base / "out")},
        "ledger": {"path": str(base / "ledger")},
        "audit": {"consistency_scopes": 0},
    }
    for name, value in changes.items():
        settings[name] = {**settings[name], **value} if isinstance(settings.get(name), dict) else value
    return RunConfig.of(settings)


@pytest.fixture(scope="module")
def base(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An input that tests share; each has a ledger of its own."""
    folder = tmp_path_factory.mktemp("ledger")
    rows = [(i, f"good news {i}", "a note") for i in range(4)]
    frame = session.createDataFrame(rows, "id long, body string, note string")
    frame.coalesce(1).write.format("delta").save(str(folder / "in"))
    return folder


@pytest.fixture
def here(base: Path, tmp_path: Path) -> Path:
    """A folder with the input in it."""
    (tmp_path / "in").symlink_to(base / "in")
    return tmp_path


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """A ledger that is a list, for what has nothing to do with how it is kept; all that is reserved is spent at once."""
    there: list[Entry] = []

    def appended(spark: Any, path: str, decide: Any) -> ledger.Reservation:
        wanted, reservation = decide(list(there))
        there.extend(replace(one, status=SPENT) for one in wanted)
        return reservation

    monkeypatch.setattr(ledger, "appended", appended)
    return there


def setup_of(spark: Any, base: Path, key: RunKey = KEY, **changes: Any) -> Setup:
    return validated(spark, config(base, **changes), key, lambda step: None)


def total(reservation: ledger.Reservation, column: str = "body") -> float:
    (found,) = [one.total for one in reservation.balance.columns if one.column == column]
    return found


def entries(spark: Any, base: Path) -> list[Entry]:
    return ledger.entries_of(spark, str(base / "ledger"))[1]


class TestWhatARunSpends:
    def test_by_what_it_draws(self, spark: Any, here: Path, memory: list[Entry]) -> None:
        """One setup for each way in which a second release can differ, all in one ledger: the sum after each."""
        setup = setup_of(spark, here, run={"id": "first"})

        def after(changed: Setup, **known: Any) -> float:
            return total(ledger.reserve(changed, **known))

        def with_config(changed: Setup, **settings: Any) -> Setup:
            return replace(changed, config=config(here, **settings))

        assert after(setup) == 1.0
        assert after(setup) == 1.0  # the same run id again
        assert after(replace(setup, run_id="second")) == 1.0  # the same draws under another name
        elsewhere = with_config(setup, output={"path": str(here / "elsewhere")})
        assert after(replace(elsewhere, run_id="third")) == 1.0  # ... into another target
        part = with_config(setup, input={"where": "id < 2"})
        assert after(replace(part, run_id="fourth")) == 1.0  # ... of a part of the input
        newer = replace(setup, run_id="fifth", input_version="delta:1")
        assert after(newer) == 2.0
        assert after(replace(newer, run_id="sixth")) == 2.0
        assert after(replace(setup, run_id="seventh", key=OTHER)) == 3.0
        strong = setup_of(spark, here, mechanism={"name": "custext", "epsilon": 2.5, "k": 10})
        assert after(strong) == 5.5
        token = setup_of(spark, here, consistency="token", run={"id": "eighth"})
        assert after(token) == 6.5
        assert (
            after(replace(token, place=replace(token.place, target=Target(path="/x")))) == 6.5
        )  # the same draws
        assert after(replace(token, run_id="ninth")) == 7.5  # a run id is in the draws
        stream = replace(token, run_id="s.0", input_version="delta:0..1")
        assert after(stream, added_to="s") == 8.5
        assert after(replace(stream, run_id="s.1", input_version="delta:1..2"), added_to="s") == 8.5
        assert after(replace(stream, run_id="s.2")) == 9.5  # it may hold records again
        two = setup_of(spark, here, columns=["body", "note"], run={"id": "tenth"})
        reservation = ledger.reserve(two)  # the draws of the first run, of body and note alike
        assert total(reservation) == 9.5 and total(reservation, "note") == 5.5
        assert [one.records for one in memory[:7]] == ["all"] * 5 + ["changed"] * 2
        assert [one.records for one in memory if one.run_id in ("s.0", "s.1")] == ["added"] * 2
        assert reservation.balance.unfinished == 0 and len({one.release for one in memory}) == 7

    def test_the_same_table_by_path_name_and_link(
        self, spark: Any, base: Path, here: Path, memory: list[Entry]
    ) -> None:
        place = os.path.realpath(base / "in")
        spark.sql(f"CREATE TABLE tickets USING delta LOCATION '{place}'")
        spark.sql("CREATE VIEW only_some AS SELECT * FROM tickets WHERE id > 1")
        by_path = ledger.reserve(setup_of(spark, here, run={"id": "a"}))
        setup = setup_of(spark, here, run={"id": "b"})
        named = replace(setup, config=RunConfig.of({**config(here).as_dict(), "input": {"table": "tickets"}}))
        by_name = ledger.reserve(named)
        assert total(by_path) == total(by_name) == 1.0
        assert {one.input for one in memory} == {place}
        view = replace(
            setup, config=RunConfig.of({**config(here).as_dict(), "input": {"table": "only_some"}})
        )
        seen = ledger.reserve(view)
        assert seen.balance.input == "table:spark_catalog.default.only_some" and total(seen) == 1.0
        assert total(ledger.reserve(replace(view, run_id="c"))) == 2.0  # a view has no version of its own

    def test_files_by_their_names_and_options(self, spark: Any, here: Path, memory: list[Entry]) -> None:
        (here / "csv").mkdir()
        (here / "csv" / "a.csv").write_text("id,body\n1,good news\n", encoding="utf-8")
        source = {"path": str(here / "csv"), "format": "csv"}
        setup = setup_of(spark, here, input=source, run={"id": "a"})
        assert total(ledger.reserve(setup)) == 1.0
        assert total(ledger.reserve(replace(setup, run_id="b"))) == 1.0
        other = {**source, "path": f"file:{here}/csv/*.csv", "options": {"encoding": "latin1"}}
        assert total(ledger.reserve(replace(setup, run_id="c", config=config(here, input=other)))) == 2.0

    def test_distances_of_one_space_and_what_no_epsilon_stands_for(
        self, spark: Any, here: Path, memory: list[Entry]
    ) -> None:
        setup = setup_of(spark, here, run={"id": "a"})

        def promised(run_id: str, **guarantee: Any) -> Setup:
            class Promising:
                fingerprint = run_id

                def guarantee(self) -> Any:
                    return replace(setup.privatizer.guarantee(), **guarantee)

            return replace(setup, run_id=run_id, privatizer=Promising())  # type: ignore[arg-type]

        metric = {"kind": "metric_dp", "metric": "euclidean", "epsilon": 3.0}
        ledger.reserve(promised("m1", **metric))
        balance = ledger.reserve(promised("m2", **metric)).balance
        assert [(figure.epsilon, figure.times) for figure in balance.columns[0].figures] == [(6.0, 2)]
        balance = ledger.reserve(promised("m3", **{**metric, "metric": "list places"})).balance
        assert len(balance.columns[0].figures) == 2 and "not to be added" in balance.sentence
        refuted = ledger.reserve(promised("m4", status="refuted")).balance
        assert "no ε at all" in refuted.sentence
        insecure = replace(setup, run_id="m5", key=RunKey.insecure(1))
        ledger.reserve(insecure)
        assert [one.holds for one in memory] == [True] * 3 + [False] * 2


class TestARun:
    def test_says_what_was_spent_everywhere(
        self, spark: Any, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from dptext_spark.cli import main
        from dptext_spark.report.summary import summary
        from dptext_spark.spark.reporting import Account, report

        reported = run(config(here, run={"id": "one"}), spark, key=KEY)
        said = reported.facts["ledger"]["sentence"]
        assert "one word of body: ε = 1 " in said and "1 of it is of this run" in said
        assert said in json.dumps(reported.facts["disclosure"], ensure_ascii=False)
        assert said in " ".join(summary(reported.facts, columns=10_000).split())
        row = runs.find(spark, str(here / "out_audit/shareable/runs"), "one")
        assert row is not None and json.loads(row["cumulative"])["sentence"] == said
        (there,) = entries(spark, here)
        assert (there.status, there.run_id, there.epsilon, there.record_key) == ("spent", "one", 1.0, "id")
        table = spark.read.format("delta").load(str(here / "ledger"))
        assert table.schema.fieldNames() == LEDGER.fieldNames()
        # One row reserves, another settles, and none is ever changed.
        assert sorted((row["entry"], row["status"]) for row in table.collect()) == [
            (there.entry, "reserved"), (there.entry, "spent"),
        ]  # fmt: skip
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{here}/ledger`").first()
        assert detail["properties"]["delta.appendOnly"] == "true"
        facts = report("one", Account.of(None, str(here / "out_audit")), spark=spark, examine=False)
        assert facts["run"]["cumulative"]["sentence"] == said
        assert main(["ledger", str(here / "ledger"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["inputs"][0]["columns"][0]["total"] == 1.0
        assert main(["ledger", str(here / "ledger")]) == 0
        assert "body  ε = 1 for all occurrences" in capsys.readouterr().out
        assert main(["ledger", str(here / "none")]) == 2

    def test_past_the_limit_is_refused_before_a_byte(self, spark: Any, here: Path) -> None:
        with pytest.raises(RunError, match=r"ledger.limit: 0.5 given; ε = 0 was spent .* asks for 1 more"):
            run(config(here, ledger={"limit": 0.5}), spark, key=KEY)
        assert sorted(each.name for each in here.iterdir()) == ["in"]
        over = {"limit": 0.5, "override": "it's approved; \\ minute 7"}
        facts = run(config(here, ledger=over, run={"id": "o"}), spark, key=KEY).facts
        (there,) = entries(spark, here)
        assert (there.limit, there.override) == (0.5, over["override"])
        warned = facts["disclosure"]["sections"][0]
        assert warned["heading"] == "Warnings" and over["override"] in " ".join(warned["sentences"])
        # The same draws into another target spend nothing, so that no reason is needed.
        again = setup_of(
            spark, here, ledger={"limit": 0.5}, output={"path": str(here / "o2")}, run={"id": "p"}
        )
        assert ledger.reserve(again).balance.override is None

    def test_that_fails_is_void_only_if_nothing_is_left(
        self, spark: Any, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = config(here, run={"id": "f"})
        with monkeypatch.context() as patch:
            patch.setattr(write, "watched", None)
            with pytest.raises(RunError, match="before its commit"):
                run(settings, spark, key=KEY)
        assert [one.status for one in entries(spark, here)] == ["void"]

        def leave_a_file(*args: Any) -> None:
            spark.range(1).coalesce(1).write.mode("append").parquet(str(here / "out"))
            raise RuntimeError

        with monkeypatch.context() as patch:
            patch.setattr(write, "watched", leave_a_file)
            with pytest.raises(RunError, match="Files that it left behind"):
                run(settings, spark, key=KEY)
        assert [(one.status, one.why) for one in entries(spark, here)][1] == (
            "reserved", "failed; files of it are left behind: 1",
        )  # fmt: skip
        accepted = config(here, run={"id": "f", "second_release": "accept"})
        facts = run(accepted, spark, key=OTHER).facts
        assert facts["second_release"] and facts["ledger"]["columns"][0]["total"] == 2.0
        assert [one.status for one in entries(spark, here)] == ["void", "reserved", "spent"]

    def test_that_is_released_twice_counts_twice_even_if_nothing_is_left(
        self, spark: Any, here: Path
    ) -> None:
        setup = setup_of(spark, here, run={"id": "g"})
        ledger.settle(ledger.reserve(setup), VOID)
        second = ledger.reserve(replace(setup, key=OTHER), second=True)
        assert total(second) == 2.0 and second.balance.columns[0].more == 2.0
        assert total(ledger.reserve(replace(setup, key=OTHER), second=True)) == 2.0

    def test_that_committed_is_settled_when_it_is_accounted_for(
        self, spark: Any, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = config(here, run={"id": "c"}, ledger={"limit": 1.0})
        with monkeypatch.context() as patch:
            patch.setattr(ledgers_table, "_retried", self.failing_at(2))
            with pytest.raises(NotAccounted):
                run(settings, spark, key=KEY)
        assert [one.status for one in entries(spark, here)] == ["reserved"]
        recovered = run(settings, spark, key=OTHER)  # its key is gone, and nothing is drawn again
        assert recovered.status == "recovered" and recovered.facts["ledger"]["columns"][0]["total"] == 1.0
        assert [one.status for one in entries(spark, here)] == ["spent"]

    @staticmethod
    def failing_at(turn: int) -> Any:
        real, turns = ledgers_table._retried, iter(range(1, 100))

        def retried(path: str, once: Any) -> Any:
            if next(turns) == turn:
                raise OSError
            return real(path, once)

        return retried

    def test_whose_ledger_is_none_is_refused_before_a_byte(self, spark: Any, here: Path) -> None:
        (here / "file").write_text("x")
        with pytest.raises(RunError, match="cannot be written, and no run goes on without it"):
            run(config(here, ledger={"path": str(here / "file" / "ledger")}), spark, key=KEY)
        spark.range(1).write.parquet(str(here / "raw"))
        with pytest.raises(DataError, match="holds files and is no ledger"):
            run(config(here, ledger={"path": str(here / "raw")}), spark, key=KEY)
        spark.range(1).write.format("delta").save(str(here / "other"))
        with pytest.raises(DataError, match="is no ledger: it lacks entry, attempt"):
            run(config(here, ledger={"path": str(here / "other")}), spark, key=KEY)
        newer = spark.createDataFrame([("x", 2)], "what string, format_version int")
        newer.write.format("delta").save(str(here / "newer"))
        with pytest.raises(DataError, match="has format 2, and this version of the package knows 1"):
            run(config(here, ledger={"path": str(here / "newer")}), spark, key=KEY)
        assert not (here / "out").exists() and not (here / "out_audit").exists()

    def test_whose_record_cannot_be_written_spends_nothing(
        self, spark: Any, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runs, "put", None)
        with pytest.raises(RunError, match="Nothing was written"):
            run(config(here), spark, key=KEY)
        assert [one.status for one in entries(spark, here)] == ["void"]


def test_threads_that_race_are_held_apart_by_delta_alone(
    spark: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process the log store lets one commit pass, so that this shows the transaction without the lock."""
    monkeypatch.setattr(ledgers_table, "_alone", lambda path: nullcontext())
    setup = setup_of(spark, here, run={"id": "t"}, ledger={"limit": 3.0})
    start, ended = threading.Barrier(4), []

    def ask(number: int) -> None:
        start.wait()
        for turn in range(2):
            try:
                ledger.reserve(replace(setup, run_id=f"t{number}{turn}", key=RunKey(os.urandom(32))))
                ended.append("passed")
            except RunError as refused:
                ended.append("refused" if "ledger.limit" in str(refused) else str(refused))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["passed"] * 3 + ["refused"] * 5
    assert len(entries(spark, here)) == 3


DRIVER = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from dptext_spark.draws import RunKey
from dptext_spark.errors import RunError
from dptext_spark.spark import ledger
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.setup import validated
from dptext_spark.spark.tables import Target
from dptext_spark.config import RunConfig

name, base, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
settings = {
    "input": {"path": str(base / "in")}, "columns": ["body"], "row_key": "id", "consistency": "record",
    "output": {"path": str(base / name)}, "run": {"id": name},
}
spark = spark_session(master="local[1]", warehouse=base / ("warehouse-" + name), settings={
    "spark.local.dir": str(base / "local"), "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 1,
})
setup = validated(spark, RunConfig.of(settings), RunKey(os.urandom(32)), lambda step: None)

def meet(what):
    (base / (what + "-" + name)).touch()
    until = time.time() + 400
    while not all((base / (what + "-" + other)).exists() for other in ("left", "right")):
        assert time.time() < until, "the other process is gone"
        time.sleep(0.002)

for turn in range(rounds):
    # A limit of one release: only one of the two may pass, each time in another ledger.
    limited = RunConfig.of({**settings, "ledger": {"path": str(base / ("race%d" % turn)), "limit": 1.0}})
    place = replace(setup.place, ledger=limited.ledger.path)
    meet("turn%d" % turn)
    try:
        ledger.reserve(replace(setup, config=limited, place=place))
        print("RESULT passed", flush=True)
    except RunError as refused:
        print("RESULT", "refused" if "ledger.limit" in str(refused) else str(refused), flush=True)
if name == "right":
    # What a driver leaves that is killed between its reservation and its commit.
    killed = RunConfig.of({**settings, "ledger": {"path": str(base / "ledger")}})
    key = RunKey(bytes(range(32)))
    place = replace(setup.place, ledger=killed.ledger.path, target=Target(path=str(base / "out")))
    ledger.reserve(replace(setup, config=killed, key=key, run_id="k", place=place))
    print("RESULT reserved", flush=True)
    time.sleep(600)
"""


@pytest.mark.cluster
def test_processes_that_race_and_one_that_is_killed(spark: Any, here: Path) -> None:
    rounds = 3
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, name, str(here), str(rounds)], cwd=here, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )
        for name in ("left", "right")
    ]  # fmt: skip
    said: dict[str, list[str]] = {"left": [], "right": []}
    try:
        for name, process in zip(said, started, strict=True):
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("RESULT "):
                    said[name].append(line.removeprefix("RESULT ").strip())
                if said[name][-1:] == ["reserved"]:
                    break
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert len(said["left"]) == rounds and len(said["right"]) == rounds + 1, said
    for turn in range(rounds):
        assert sorted([said["left"][turn], said["right"][turn]]) == ["passed", "refused"]
        assert len(ledger.entries_of(spark, str(here / f"race{turn}"))[1]) == 1
    (left_open,) = entries(spark, here)
    assert left_open.status == "reserved" and history(spark, Target(path=str(here / "out"))) == []
    facts = run(config(here, run={"id": "k"}, ledger={"limit": 1.0}), spark, key=KEY).facts
    assert facts["ledger"]["columns"][0]["total"] == 1.0 and facts["ledger"]["unfinished"] == 0
    assert {one.status for one in entries(spark, here)} == {"spent"}
