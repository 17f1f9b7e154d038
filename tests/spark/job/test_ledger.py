"""The budget ledger on real Delta tables: what runs spend, what is refused, and that two processes cannot both pass."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from pyspark.sql import types as T

from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import Input, Ledger
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.ledger.balance import Balance, balances
from dptext_spark.ledger.entry import BEGUN, LIMIT, RESERVED, SPENT, VOID, Book, Decision, Entry
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.target_checks import Commit
from dptext_spark.randomness import RunKey
from dptext_spark.spark import tables
from dptext_spark.spark.job import entries as ledgers_table
from dptext_spark.spark.job import ledger, runs, writing
from dptext_spark.spark.job.entries import Source, read
from dptext_spark.spark.job.planned_run import RunPlan
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.runner import run
from dptext_spark.spark.schemas import LEDGER, SCHEMA
from dptext_spark.spark.tables import Target

CHECKOUT = Path(__file__).resolve().parents[3]
KEY, OTHER = (RunKey(hashlib.sha256(name).digest()) for name in (b"one", b"another"))


def config(base: Path, **changes: Any) -> RunConfig:
    """Record level, a ledger beside all targets, and few words, so that a run is quick."""
    settings: dict[str, Any] = {
        "input": {"path": str(base / "in")},
        "columns": ["body"],
        "row_key": "id",
        "consistency": "record",
        "output": {"path": str(base / "out"), "other_columns": "keep"},
        "ledger": {"path": str(base / "ledger")},
    }
    for name, value in changes.items():
        settings[name] = {**settings[name], **value} if isinstance(settings.get(name), dict) else value
    return parse_config(settings)


@pytest.fixture(scope="module")
def base(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    rows = [(i, f"good news {i}", "a note") for i in range(4)]
    frame = session.createDataFrame(rows, "id long, body string, note string")
    frame.coalesce(1).write.format("delta").save(str(folder / "in"))
    return folder


@pytest.fixture
def here(base: Path, tmp_path: Path) -> Path:
    (tmp_path / "in").symlink_to(base / "in")
    return tmp_path


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """A ledger that is a list, for what has nothing to do with how it is kept; all that is reserved is spent at once."""
    there: list[Entry] = []

    decisions: list[Decision] = []

    def appended(spark: Any, path: str, decide: Any) -> ledger.Reservation:
        wanted, reservation = decide(Book(0, list(there), list(decisions)))
        there.extend(replace(one, status=SPENT) for one in wanted if isinstance(one, Entry))
        decisions.extend(one for one in wanted if isinstance(one, Decision))
        return reservation

    monkeypatch.setattr(ledger, "appended", appended)
    return there


def setup_of(spark: Any, base: Path, key: RunKey = KEY, **changes: Any) -> RunPlan:
    return prepare_run(spark, config(base, **changes), key, lambda step: None)


def total(reservation: ledger.Reservation, column: str = "body") -> float:
    (found,) = [one.total for one in reservation.balance.columns if one.column == column]
    return found


def entries(spark: Any, base: Path) -> list[Entry]:
    return ledger.entries_of(spark, str(base / "ledger"))[1]


def book_of(rows: list[Entry | Decision]) -> Book:
    filled = [dict.fromkeys(LEDGER.fieldNames()) | vars(row) for row in rows]
    return Book.of(len(rows) - 1, {name: [row[name] for row in filled] for name in LEDGER.fieldNames()})


@dataclass
class Kept:
    """A ledger that is a list of rows, and runs that are no more than their settings and one entry each; no session."""

    rows: list[Entry | Decision] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    reads: int = 0

    def run(self, run_id: str, *, committed: bool = False, **settings: Any) -> Balance:
        place = SimpleNamespace(ledger="/ledger", target="/out")
        asked = entry_of(run_id)
        setup = SimpleNamespace(
            run_id=run_id, place=place, spark=None, columns=("body",), commits=self.history, key=KEY, asked=asked,
            config=SimpleNamespace(
                input=Input(path="/data/in"), ledger=Ledger(**settings), consistency="record", row_key="id", record_key=None
            ),
        )  # fmt: skip
        return ledger.reserve(setup, committed=committed).balance  # type: ignore[arg-type]

    def history(self) -> list[Commit]:
        self.reads += 1
        return self.commits

    def appended(self, spark: Any, path: str, decide: Any) -> ledger.Reservation:
        wanted, reservation = decide(book_of(self.rows))
        self.rows += wanted
        return reservation

    @property
    def decisions(self) -> list[tuple[str, float | None, str | None]]:
        return [(one.status, one.limit, one.why) for one in self.rows if isinstance(one, Decision)]


def entry_of(run_id: str, **changes: Any) -> Entry:
    return replace(
        Entry(
            f"{run_id}.0", run_id, datetime(2026, 11, 22, 9), run_id, "/data/in", "id-1", "delta:1", "body", "id", "one word",
            "record", "{}", "epsilon_dp", None, 1.0, 0.0, True, "all", f"release {run_id}", RESERVED, None, None, None, "/out", 2,
        ),
        **changes,
    )  # fmt: skip


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    made = Kept()
    monkeypatch.setattr(ledger, "appended", made.appended)
    monkeypatch.setattr(ledger, "entries_of", lambda spark, path: book_of(made.rows))
    monkeypatch.setattr(ledger, "source_of", lambda setup: Source("/data/in", "id-1", "delta:1", "/data/in"))
    monkeypatch.setattr(ledger, "_asked", lambda setup, source, added_to: [setup.asked])
    return made


class TestALimit:
    def test_is_kept_and_binds_runs_that_name_none(self, kept: Kept) -> None:
        first = kept.run("a", limit=2.0)
        assert (first.limit, first.kept, first.left) == (2.0, 2.0, 1.0)
        second = kept.run("b")
        assert (second.limit, second.kept, second.left) == (2.0, 2.0, 0.0)
        said = (
            r"ledger\.limit: .* 2 \(kept in the ledger\)\. ε = 2 is spent on one word of body in /data/in, and ε = 0 is "
            r"left\. This run needs 1 more, 3 in total\."
        )
        with pytest.raises(RunError, match=said):
            kept.run("c")
        assert kept.decisions == [(LIMIT, 2.0, None)]
        assert [one.limit for one in kept.rows if isinstance(one, Entry)] == [2.0, 2.0]

    def test_a_lower_one_binds_the_run_that_names_it(self, kept: Kept) -> None:
        kept.run("a", limit=3.0)
        with pytest.raises(RunError, match=r"limit: .* 1\.5\. ε = 1 is spent .*, and ε = 0\.5 is left"):
            kept.run("b", limit=1.5)
        own = kept.run("c", limit=2.0)
        assert (own.limit, own.kept, own.left) == (2.0, 3.0, 0.0)
        assert any("keeps a higher limit for the input: ε = 3" in note for note in own.notes)
        assert kept.run("d").left == 0.0
        assert kept.decisions == [(LIMIT, 3.0, None)]

    def test_rises_with_a_reason_only(self, kept: Kept) -> None:
        kept.run("a", limit=1.0)
        said = r"limit: 3 is above 1, .* keeps for /data/in\. So far, ε = 1 is spent, and ε = 0 is left\. .*raise_limit"
        for more in ({}, {"override": "this run may pass"}):
            with pytest.raises(RunError, match=said):
                kept.run("b", limit=3.0, **more)
        raised = kept.run("b", limit=3.0, raise_limit="minute 12")
        assert (raised.limit, raised.kept, raised.left) == (3.0, 3.0, 1.0)
        assert raised.override is None
        # Tried again: it is the same limit.
        assert kept.run("b", limit=3.0, raise_limit="minute 12").left == 1.0
        assert kept.run("c").kept == 3.0
        assert kept.decisions == [(LIMIT, 1.0, None), (LIMIT, 3.0, "minute 12")]
        with pytest.raises(RunError, match=r"3 \(kept in the ledger"):
            kept.run("d")

    def test_that_is_refused_is_not_kept(self, kept: Kept) -> None:
        with pytest.raises(RunError, match=r"would pass 0\.5"):
            kept.run("a", limit=0.5)
        kept.run("a", limit=1.0)
        with pytest.raises(RunError, match=r"would pass 1\.5"):
            kept.run("b", limit=1.5, raise_limit="too little")
        assert kept.decisions == [(LIMIT, 1.0, None)]
        assert kept.run("a").kept == 1.0

    def test_may_be_passed_once_with_a_reason(self, kept: Kept) -> None:
        kept.run("a", limit=1.0)
        passed = kept.run("b", override="minute 7")
        assert (passed.override, passed.kept, passed.left) == ("minute 7", 1.0, 0.0)
        assert "came to 2 with ledger.limit 1" in passed.warnings[0]
        assert kept.decisions == [(LIMIT, 1.0, None)]

    def test_is_of_one_input(self, kept: Kept) -> None:
        kept.rows = [entry_of("x", input="/elsewhere", input_id=None, limit=9.0)]
        assert kept.run("a").limit is None
        assert kept.run("b", limit=2.0).kept == 2.0

    def test_refuses_no_run_that_committed(self, kept: Kept) -> None:
        kept.run("a", limit=1.0)
        balance = kept.run("a", limit=9.0, committed=True)
        assert (balance.limit, balance.kept) == (1.0, 1.0)
        assert kept.decisions == [(LIMIT, 1.0, None)]


class TestALedgerThatIsGone:
    """/out holds a release of run `then`, and the ledger does not know of it."""

    COMMITS: ClassVar = [Commit(0, metadata=json.dumps({"dptext_run": "then"}))]

    def test_is_refused(self, kept: Kept) -> None:
        kept.commits = self.COMMITS
        said = r"ledger\.path: the history of '/out' holds 1 release\(s\).*'/ledger' knows none.*ledger\.override"
        with pytest.raises(RunError, match=said):
            kept.run("a", limit=9.0)
        kept.rows = [entry_of("z", output="/another")]  # one that somebody else began since
        with pytest.raises(RunError, match=said):
            kept.run("a")
        assert kept.decisions == []

    def test_may_begin_anew_with_a_reason_that_is_said_for_good(self, kept: Kept) -> None:
        kept.commits = self.COMMITS
        first = kept.run("a", limit=9.0, override="the disk was lost")
        assert kept.decisions == [(BEGUN, None, "the disk was lost"), (LIMIT, 9.0, None)]
        assert first.override is None  # no limit was passed
        for balance in (first, kept.run("b")):
            (warned,) = balance.warnings
            assert "BEGUN ANEW by run a" in warned
            assert "the disk was lost" in warned
        book = book_of(kept.rows)
        (told,) = balances(book.entries, "/ledger", book.decisions)
        assert (told.warnings, told.kept) == (balance.warnings, 9.0)

    def test_of_a_run_that_failed_was_begun_all_the_same(self, kept: Kept) -> None:
        kept.commits = self.COMMITS
        kept.run("a", override="the disk was lost")
        kept.rows = [replace(one, status=VOID) if isinstance(one, Entry) else one for one in kept.rows]
        assert kept.run("b").left is None
        assert [one[0] for one in kept.decisions] == [BEGUN]

    def test_does_not_stop_an_account_of_what_committed(self, kept: Kept) -> None:
        kept.commits = self.COMMITS
        kept.run("then", committed=True)
        assert kept.decisions == [(BEGUN, None, "the run had committed before")]

    def test_is_none_where_it_counted_a_run_of_the_target(self, kept: Kept) -> None:
        kept.commits = self.COMMITS
        kept.rows = [entry_of("then", output="/where/it/was/before")]  # both were moved
        kept.run("a")
        kept.reads = 0
        kept.run("b")
        assert kept.reads == 0  # the ledger knows the target, so that its history is not read


class TestWhatARunSpends:
    @pytest.mark.long
    def test_by_what_it_draws(self, spark: Any, here: Path, memory: list[Entry]) -> None:
        """One setup for each way in which a second release can differ, all in one ledger: the sum after each."""
        setup = setup_of(spark, here, run={"id": "first"})

        def after(changed: RunPlan, **known: Any) -> float:
            return total(ledger.reserve(changed, **known))

        def with_config(changed: RunPlan, **settings: Any) -> RunPlan:
            return replace(changed, config=config(here, **settings))

        assert after(setup) == 1.0
        assert after(setup) == 1.0  # the same run id again
        assert after(replace(setup, run_id="second")) == 1.0  # the same draws under another name
        elsewhere = with_config(setup, output={"path": str(here / "elsewhere"), "other_columns": "keep"})
        assert after(replace(elsewhere, run_id="third")) == 1.0  # ... into another target
        part = with_config(setup, input={"where": {"id": {"lt": 2}}})
        assert after(replace(part, run_id="fourth")) == 1.0  # ... of a part of the input
        newer = replace(setup, run_id="fifth", input_version="delta:1")
        assert after(newer) == 2.0
        assert after(replace(newer, run_id="sixth")) == 2.0
        assert after(replace(setup, run_id="seventh", key=OTHER)) == 3.0
        strong = setup_of(spark, here, mechanism={"name": "custext", "epsilon": 2.5, "k": 10})
        assert after(strong) == 5.5
        token = setup_of(spark, here, consistency="token", run={"id": "eighth"})
        assert after(token) == 6.5
        elsewhere = replace(token.place, target=Target(path="/x"))
        assert after(replace(token, place=elsewhere)) == 6.5  # the same draws
        assert after(replace(token, run_id="ninth")) == 7.5  # a run id is in the draws
        stream = replace(token, run_id="s.0", input_version="delta:0..1")
        assert after(stream, added_to="s") == 8.5
        assert after(replace(stream, run_id="s.1", input_version="delta:1..2"), added_to="s") == 8.5
        assert after(replace(stream, run_id="s.2")) == 9.5  # it may hold records again
        two = setup_of(spark, here, columns=["body", "note"], run={"id": "tenth"})
        reservation = ledger.reserve(two)  # the draws of the first run, of body and note alike
        assert total(reservation) == 9.5
        assert total(reservation, "note") == 5.5
        assert [one.records for one in memory[:7]] == ["all"] * 5 + ["changed"] * 2
        assert [one.records for one in memory if one.run_id in ("s.0", "s.1")] == ["added"] * 2
        assert reservation.balance.unfinished == 0
        assert len({one.release for one in memory}) == 7

    @pytest.mark.long
    def test_two_engines_make_two_releases(self, spark, here: Path, memory: list[Entry], monkeypatch) -> None:
        setup = setup_of(spark, here, run={"id": "first"})
        with monkeypatch.context() as earlier:
            earlier.setattr(ledgers_table, "ENGINE_VERSION", "1")
            assert total(ledger.reserve(setup)) == 1.0
        assert total(ledger.reserve(replace(setup, run_id="second"))) == 2.0
        assert [json.loads(one.mechanism)["engine"] for one in memory] == ["1", ENGINE_VERSION]
        limited = replace(setup, config=config(here, ledger={"limit": 2}), run_id="third", key=OTHER)
        with pytest.raises(RunError, match="the same model, engine and input version"):
            ledger.reserve(limited)

    @pytest.mark.long
    def test_the_same_table_by_path_name_and_link(self, spark, base: Path, here: Path, memory) -> None:
        place = os.path.realpath(base / "in")
        spark.sql(f"CREATE TABLE tickets USING delta LOCATION '{place}'")
        spark.sql("CREATE VIEW only_some AS SELECT * FROM tickets WHERE id > 1")
        by_path = ledger.reserve(setup_of(spark, here, run={"id": "a"}))
        setup = setup_of(spark, here, run={"id": "b"})

        def of(table: str) -> RunPlan:
            settings = {**config(here).as_dict(), "input": {"table": table}}
            return replace(setup, detail=None, config=parse_config(settings))

        by_name = ledger.reserve(of("tickets"))
        assert total(by_path) == total(by_name) == 1.0
        assert {one.input for one in memory} == {place}
        seen = ledger.reserve(of("only_some"))
        assert seen.balance.input == "table:spark_catalog.default.only_some"
        assert total(seen) == 1.0
        # A view has no version of its own.
        assert total(ledger.reserve(replace(of("only_some"), run_id="c"))) == 2.0

    @pytest.mark.long
    def test_files_by_their_names_and_options(self, spark: Any, here: Path, memory: list[Entry]) -> None:
        (here / "csv").mkdir()
        (here / "csv" / "a.csv").write_text("id,body\n1,good news\n", encoding="utf-8")
        source = {"path": str(here / "csv"), "format": "csv"}
        setup = setup_of(spark, here, input=source, run={"id": "a"})
        assert total(ledger.reserve(setup)) == 1.0
        assert total(ledger.reserve(replace(setup, run_id="b"))) == 1.0
        other = {**source, "path": f"file:{here}/csv/*.csv", "options": {"encoding": "latin1"}}
        assert total(ledger.reserve(replace(setup, run_id="c", config=config(here, input=other)))) == 2.0

    @pytest.mark.long
    def test_distances_of_one_space_and_what_no_epsilon_stands_for(self, spark, here: Path, memory) -> None:
        setup = setup_of(spark, here, run={"id": "a"})

        def promised(run_id: str, **guarantee: Any) -> RunPlan:
            class Promising:
                fingerprint = run_id

                def guarantee(self, *, of_rows: bool) -> Any:
                    return replace(setup.privatizer.guarantee(of_rows=of_rows), **guarantee)

                def __getattr__(self, name: str) -> Any:
                    return getattr(setup.privatizer, name)

            return replace(setup, run_id=run_id, privatizer=Promising())  # type: ignore[arg-type]

        metric = {"kind": "metric_dp", "metric": "euclidean", "epsilon": 3.0}
        for run_id in ("m1", "m2"):
            balance = ledger.reserve(promised(run_id, **metric)).balance
        assert [(figure.epsilon, figure.times) for figure in balance.columns[0].figures] == [(6.0, 2)]
        ledger.reserve(promised("m3", status="refuted"))
        ledger.reserve(replace(setup, run_id="m4", key=RunKey.insecure(1)))
        assert [one.holds for one in memory] == [True] * 2 + [False] * 2


class TestARun:
    @pytest.mark.long
    def test_past_the_limit_is_refused_before_a_byte(self, spark: Any, here: Path, capsys) -> None:
        with pytest.raises(RunError, match=r"ledger.limit: .* 0.5\. ε = 0 is spent .* needs 1 more"):
            run(config(here, ledger={"limit": 0.5}), spark, key=KEY)
        assert sorted(each.name for each in here.iterdir()) == ["in"]
        over = {"limit": 0.5, "override": "it's approved; \\ minute 7"}
        facts = run(config(here, ledger=over, run={"id": "o"}), spark, key=KEY).facts
        (there,) = entries(spark, here)
        assert (there.limit, there.override) == (0.5, over["override"])
        warned = facts["disclosure"]["sections"][0]
        assert warned["heading"] == "Warnings"
        assert over["override"] in " ".join(warned["sentences"])
        written = spark.read.format("delta").load(str(here / "ledger"))
        assert written.schema.fieldNames() == LEDGER.fieldNames()
        # The same draws into another target spend nothing, so that no reason is needed.
        target = {"path": str(here / "o2"), "other_columns": "keep"}
        again = setup_of(spark, here, ledger={"limit": 0.5}, output=target, run={"id": "p"})
        assert ledger.reserve(again).balance.override is None
        assert main(["ledger", str(here / "ledger"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["inputs"][0]["columns"][0]["total"] == 1.0
        assert main(["ledger", str(here / "none")]) == 2

    @pytest.mark.cluster
    def test_that_fails_is_void_only_if_nothing_is_left(self, spark: Any, here: Path, monkeypatch) -> None:
        settings = config(here, run={"id": "f"})
        for module, name in ((runs, "put"), (writing, "watched")):  # the row of `runs`, and the data
            with monkeypatch.context() as patch:
                patch.setattr(module, name, None)
                said = "Nothing was written" if name == "put" else "before its commit"
                with pytest.raises(RunError, match=said):
                    run(settings, spark, key=KEY)
            assert {one.status for one in entries(spark, here)} == {"void"}

        def leave_a_file(*args: Any) -> None:
            spark.range(1).coalesce(1).write.mode("append").parquet(str(here / "out"))
            raise RuntimeError

        with monkeypatch.context() as patch:
            patch.setattr(writing, "watched", leave_a_file)
            with pytest.raises(RunError, match="It left files behind"):
                run(settings, spark, key=KEY)
        assert [(one.status, one.why) for one in entries(spark, here)][-1] == (
            "reserved", "failed; files of it are left behind: 1",
        )  # fmt: skip
        accepted = config(here, run={"id": "f", "second_release": "accept"})
        facts = run(accepted, spark, key=OTHER).facts
        assert facts["second_release"]
        assert facts["ledger"]["columns"][0]["total"] == 2.0
        assert [one.status for one in entries(spark, here)] == ["void", "void", "reserved", "spent"]

    @pytest.mark.long
    def test_that_is_released_twice_counts_twice_even_if_nothing_is_left(self, spark, here: Path) -> None:
        setup = setup_of(spark, here, run={"id": "g"})
        ledger.settle(ledger.reserve(setup), VOID)
        second = ledger.reserve(replace(setup, key=OTHER), second=True)
        assert total(second) == 2.0
        assert second.balance.columns[0].more == 2.0
        assert total(ledger.reserve(replace(setup, key=OTHER), second=True)) == 2.0

    @pytest.mark.cluster
    def test_whose_ledger_is_none_is_refused_before_a_byte(self, spark: Any, here: Path) -> None:
        (here / "file").write_text("x")
        with pytest.raises(SettingsError, match=r"ledger\.path.* cannot be written"):
            run(config(here, ledger={"path": str(here / "file" / "ledger")}), spark, key=KEY)
        spark.range(1).write.parquet(str(here / "raw"))
        with pytest.raises(DataError, match="no ledger"):
            run(config(here, ledger={"path": str(here / "raw")}), spark, key=KEY)
        spark.range(1).write.format("delta").save(str(here / "other"))
        with pytest.raises(DataError, match="has no schema version, but this dptext reads version 1"):
            run(config(here, ledger={"path": str(here / "other")}), spark, key=KEY)
        first = T.StructField("entry", T.StringType(), True, {SCHEMA: 2})
        newer = spark.createDataFrame([("x",)], T.StructType([first]))
        newer.write.format("delta").save(str(here / "newer"))
        with pytest.raises(DataError, match="has schema version 2, but this dptext reads version 1"):
            run(config(here, ledger={"path": str(here / "newer")}), spark, key=KEY)
        assert not (here / "out").exists()
        assert not (here / "out_audit").exists()


class TestARecord:
    @pytest.mark.long
    def test_is_counted_beside_the_word(self, spark: Any, here: Path) -> None:
        mechanism = {"name": "custext", "epsilon": 1.0}
        facts = run(config(here, mechanism=mechanism, run={"id": "first"}), spark, key=KEY).facts
        (first,) = entries(spark, here)
        assert (first.status, first.record_words, first.record_delta) == (SPENT, 2, 0.0)
        epsilon = first.record_epsilon
        assert 1.29 < epsilon < 1.31  # twice what the published law loses at ε = 1
        bound = facts["restricted"]["record_epsilon"]["bound_max"]
        assert (bound["draws"], bound["epsilon"], bound["total"]) == (2, epsilon, 2.0)
        assert bound["by"] == "certified losses"
        spent = facts["ledger"]["record"]
        assert (spent["epsilon"], spent["times"], spent["without"], spent["more"]) == (epsilon, 1, 0, epsilon)
        assert any("On one record" in note for note in facts["ledger"]["notes"])
        said = json.dumps(facts["disclosure"], ensure_ascii=False)
        assert "A record of 25 distinct drawn words has ε = " in said
        assert "protects little by itself" in said
        shared = spark.read.format("delta").load(str(here / "out_audit" / "shareable" / "runs")).first()
        assert "A record of 25" in shared["disclosure"]


@pytest.mark.long
def test_a_settlement_between_two_decisions_hides_neither_from_the_other(spark, tmp_path, monkeypatch):
    """As on object storage, without the lock: one decides, another run settles, and a second decides before the first appends."""
    monkeypatch.setattr(runs, "_alone", lambda path: nullcontext())
    path, decided, appended = str(tmp_path / "ledger"), threading.Event(), threading.Event()
    spent = entry_of("spent")
    ledgers_table.appended(spark, path, lambda book: ([spent], None))

    def one_fits(run_id: str, book: Book) -> tuple[list[Entry | Decision], str]:
        if len(book.entries) > 1:
            raise RunError("ledger.limit")
        return [entry_of(run_id)], run_id

    def first(book: Book) -> tuple[list[Entry | Decision], str]:
        asked = one_fits("first", book)
        if not other.is_alive():
            ledgers_table.add(spark, path, [replace(spent, status=SPENT)])
            other.start()
            assert decided.wait(120)
        return asked

    def second(book: Book) -> tuple[list[Entry | Decision], str]:
        asked = one_fits("second", book)
        decided.set()
        assert appended.wait(120)
        return asked

    ended: list[str] = []

    def ask() -> None:
        try:
            ended.append(ledgers_table.appended(spark, path, second))
        except RunError as refused:
            ended.append(str(refused))

    other = threading.Thread(target=ask)
    assert ledgers_table.appended(spark, path, first) == "first"
    appended.set()
    other.join(120)
    assert ended == ["ledger.limit"]
    standing = {entry.run_id: entry.status for entry in ledger.entries_of(spark, path).entries}
    assert standing == {"spent": SPENT, "first": RESERVED}


@pytest.mark.cluster
@pytest.mark.parametrize("log", ["here", "not readable"])
def test_another_content_of_the_same_version_is_another_release(spark, tmp_path, monkeypatch, log) -> None:
    """A table that was restored from a backup of its files, and then changed, has its identifier and version again."""
    source, backup = tmp_path / "in", tmp_path / "backup"

    def write(*row: Any) -> None:
        frame = spark.createDataFrame([row], "id long, body string").coalesce(1)
        frame.write.format("delta").mode("append").save(str(source))

    write(1, "good news")
    shutil.copytree(source, backup)
    if log == "not readable":
        monkeypatch.setattr(ledgers_table, "escaped", lambda path: f"{path}.gone")
    versions = []
    for text in ("a first letter", "another letter"):
        write(2, text)
        plan = setup_of(spark, tmp_path)
        versions.append(ledgers_table.source_of(plan).version)
        assert versions[-1] == ledgers_table.source_of(plan).version  # of the same content it is the same
        reservation = ledger.reserve(replace(plan, run_id=f"run-{len(versions)}"))
        shutil.rmtree(source)
        shutil.copytree(backup, source)
        spark.catalog.clearCache()
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert [version.partition(" ")[0] for version in versions] == ["delta:1", "delta:1"]
    assert versions[0] != versions[1]
    assert total(reservation) == 2.0


def _without_a_commit(folder: Path, left: str) -> None:
    """Leave of a ledger's first commit what a writer leaves that ended before it."""
    shutil.rmtree(folder / "_delta_log")
    (data,) = folder.glob("part-*.parquet")
    if left == "half a file":  # a full disk; its checksum is that of the whole
        data.write_bytes(data.read_bytes()[:700])
    elif left == "an empty file":
        data.write_bytes(b"")
        (folder / f".{data.name}.crc").unlink()
    if left != "no log":
        (folder / "_delta_log").mkdir()
        (folder / "_delta_log" / ".00000000000000000000.json.0a1b.tmp").write_text("{", encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("left", ["a whole file", "half a file", "an empty file", "no log"])
def test_a_first_commit_that_did_not_come_is_no_obstacle(spark: Any, tmp_path: Path, left: str) -> None:
    ours, path = entry_of("first", at=datetime(1969, 12, 31, 23, 59, 59, 1)), tmp_path / "ledger"
    ledgers_table.appended(spark, str(path), lambda book: ([ours], None))
    _without_a_commit(path, left)
    assert ledger.entries_of(spark, str(path)) == Book(-1, [], [])
    with pytest.raises(SettingsError, match="has no ledger"):
        read(str(path), spark)
    ledgers_table.appended(spark, str(path), lambda book: ([ours], None))
    for zone in ("UTC", "Asia/Tokyo"):  # instants to the microsecond, in whatever zone the session says
        spark.conf.set("spark.sql.session.timeZone", zone)
        assert ledger.entries_of(spark, str(path)).entries == [ours]


@pytest.mark.long
@pytest.mark.parametrize("other", ["note.txt", "part-00000-note.snappy.parquet", "a table", "a folder"])
def test_what_is_no_ledger_is_refused(spark: Any, tmp_path: Path, other: str) -> None:
    ours, path = entry_of("first"), tmp_path / "ledger"
    ledgers_table.appended(spark, str(path), lambda book: ([ours], None))
    _without_a_commit(path, "a whole file")
    if other == "a table":
        spark.range(1).coalesce(1).write.mode("append").parquet(str(path))
    elif other == "a folder":
        spark.range(1).coalesce(1).write.parquet(str(path / "more"))
    else:
        (path / other).write_text("a note\n", encoding="utf-8")
    before = sorted(path.rglob("*"))
    with pytest.raises(DataError, match=r"^ledger\.path"):
        ledgers_table.appended(spark, str(path), lambda book: ([ours], None))
    with pytest.raises(SettingsError, match="has no ledger"):
        read(str(path), spark)
    assert sorted(path.rglob("*")) == before


@pytest.mark.long
def test_says_what_the_entries_say_and_reads_no_history(spark, tmp_path: Path, monkeypatch) -> None:
    path = str(tmp_path / "ledger")
    written = [entry_of("a"), entry_of("b", epsilon=2.0), entry_of("c", input="/data/other", input_id="id-2")]
    for one in written:
        ledgers_table.add(spark, path, [one])
    book = ledgers_table.entries_of(spark, path)
    expected = balances(book.entries, path, book.decisions)
    monkeypatch.setattr(tables, "history", lambda *args: pytest.fail("the history was read"))
    group = "reading a ledger"
    spark.sparkContext.setJobGroup(group, group)
    said: list[str] = []
    try:
        found = read(path, spark, said.append)
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert found == expected
    assert sorted(one.columns[0].total for one in found) == [1.0, 3.0]
    assert said[0] == "reading the ledger"
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    assert 1 <= len(jobs) <= 3  # the table, and what Delta asks of its log


def test_a_folder_without_a_ledger(spark, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    os.mkfifo(tmp_path / "files" / "pipe")  # what is in it is not looked at
    (tmp_path / "files" / "notes.txt").write_text("no table")
    for name in ("nothing", "files"):
        with pytest.raises(SettingsError, match=r"ledger: .*_dptext_ledger"):
            read(str(tmp_path / name), spark)
