"""What releases cost together: the arithmetic of the ledger, from entries alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from dptext_spark.errors import DataError, RunError
from dptext_spark.ledger import balance as ledger
from dptext_spark.ledger.balance import Balance, after, allowed, balances, spent_on, spent_on_record
from dptext_spark.ledger.entry import (
    ADDED,
    LIMIT,
    RESERVED,
    SPENT,
    VOID,
    Book,
    Decision,
    Entry,
    of_input,
    settled,
)
from dptext_spark.report.summary import spent
from tests.frozen.written import assert_as_frozen

NOW = datetime(2026, 11, 21, 9, 30)
TOKEN, RECORD = "one occurrence of a word", "all occurrences of a word in a record"
numbers = iter(range(10**6))


def entry(**changes: Any) -> Entry:
    """A release of `body` at record level that committed; every one with draws of its own unless it is said."""
    number = next(numbers)
    plain: dict[str, Any] = {
        "entry": f"e{number}", "attempt": f"a{number}", "at": NOW + timedelta(seconds=number), "run_id": f"r{number}",
        "input": "/data/tickets", "input_id": "id-1", "input_version": "delta:1", "column": "body", "record_key": "ticket",
        "unit": RECORD, "consistency": "record", "mechanism": "{}", "kind": "epsilon_dp", "metric": None, "epsilon": 1.0,
        "delta": 0.0, "holds": True, "records": "all", "release": f"release {number}", "status": SPENT, "why": None,
        "limit": None, "override": None, "output": "/out",
    }  # fmt: skip
    if changes.get("consistency") == "token":
        plain["unit"] = TOKEN
    return Entry(**{**plain, **changes})


def limited(limit: float, **changes: Any) -> Decision:
    number = next(numbers)
    plain: dict[str, Any] = {
        "entry": f"d{number}", "attempt": f"a{number}", "at": NOW + timedelta(seconds=number), "run_id": "r9",
        "input": "/data/tickets", "input_id": "id-1", "status": LIMIT, "limit": limit, "why": None, "output": "/out",
    }  # fmt: skip
    return Decision(**{**plain, **changes})


def total(*entries: Entry, column: str = "body") -> float:
    return spent_on(entries, column).total


class TestRowsOfOneEntry:
    """A row reserves, another settles; in whichever order a table gives them, and with clocks that went back."""

    @pytest.mark.parametrize("later", [10, -10])
    @pytest.mark.parametrize(
        ("settling", "status", "why"),
        [
            ([(SPENT, None)], SPENT, None),
            ([(VOID, "nothing is left")], VOID, "nothing is left"),
            ([(RESERVED, "files are left")], RESERVED, "files are left"),
            ([(RESERVED, "files are left"), (SPENT, None)], SPENT, None),
            ([(VOID, "no"), (SPENT, None)], SPENT, None),
        ],
    )
    def test_the_weightier_counts(self, settling: Any, status: str, why: str | None, later: int) -> None:
        first = entry(status=RESERVED)
        times = [first.at + timedelta(seconds=later + number) for number in range(len(settling))]
        changes = zip(times, settling, strict=True)
        rows = [replace(first, status=now, why=because, at=at) for at, (now, because) in changes]
        for order in ([first, *rows], [*reversed(rows), first]):
            (found,) = settled(order)
            assert (found.status, found.why, found.entry) == (status, why, first.entry)

    def test_entries_stay_apart_and_in_order(self) -> None:
        one, two = entry(status=RESERVED), entry(status=RESERVED)
        found = settled([replace(two, status=SPENT), two, one])
        expected = [(one.entry, RESERVED, one.at), (two.entry, SPENT, two.at)]
        assert [(each.entry, each.status, each.at) for each in found] == expected


def row_of(one: Entry | Decision, **changes: Any) -> dict[str, Any]:
    return {**dict.fromkeys(field.name for field in fields(Entry)), **vars(one), **changes}


def columns_of(rows: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in rows[0]}


class TestADamagedRow:
    """What cannot be counted is not left out, and nothing is counted with it."""

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": -math.inf}, {"epsilon": None},
            {"delta": -1e-9}, {"delta": math.nan}, {"delta": math.inf}, {"delta": 1.5}, {"delta": None},
            {"limit": -1.0}, {"limit": 0.0}, {"limit": math.nan}, {"limit": math.inf},
            {"status": "Spent"}, {"status": None}, {"records": None}, {"holds": None}, {"at": None}, {"release": None},
            {"column": ""}, {"unit": None},
        ],
        ids=str,
    )  # fmt: skip
    @pytest.mark.parametrize("status", [RESERVED, SPENT, VOID])
    def test_is_named_by_its_run(self, change: dict[str, Any], status: str) -> None:
        rows = [row_of(entry()), row_of(entry(run_id="r-bad", status=status), **change), row_of(entry())]
        (field,) = change
        said = rf"^ledger: the row of run 'r-bad' .* is damaged: {field} is .* Choose "
        with pytest.raises(DataError, match=said):
            Book.of(0, columns_of(rows))

    @pytest.mark.parametrize("limit", [None, 0.0, -4.0, math.nan, math.inf])
    def test_of_a_limit_is_damage_too(self, limit: Any) -> None:
        with pytest.raises(DataError, match=r"the row of run 'r-bad' .* is damaged: limit is "):
            Book.of(0, columns_of([row_of(entry()), row_of(limited(4.0, run_id="r-bad"), limit=limit)]))

    @pytest.mark.parametrize("sound", [{"epsilon": 0.0}, {"epsilon": 5e-324}, {"delta": 1.0}, {"limit": 1}])
    def test_is_no_row_at_the_edge(self, sound: dict[str, Any]) -> None:
        (found,) = Book.of(0, columns_of([row_of(entry(), **sound)])).entries
        assert vars(found).items() >= sound.items()


MOVED = {"input": "/moved", "input_id": "id-1"}
FOLDER = {"input": "/data"}


class TestAKeptLimit:
    @pytest.mark.parametrize(
        ("rows", "kept"),
        [
            ([], None),
            ([limited(4.0)], 4.0),
            ([limited(4.0), limited(8.0, why="minute 1")], 8.0),
            # Two inputs had one each, and a run over the folder of both made them one.
            ([limited(4.0), limited(6.0, **FOLDER)], 4.0),
            ([limited(4.0), limited(6.0, **FOLDER), limited(5.0, why="minute 2")], 5.0),
        ],
    )
    def test_rises_by_a_reason_else_the_least_holds(self, rows: list[Decision], kept: float | None) -> None:
        assert ledger.kept_limit(Book(0, [entry(limit=3.0)], rows)) == kept

    def test_is_found_wherever_the_input_is_named(self) -> None:
        elsewhere = limited(1.0, input="/else", input_id=None)
        book = Book(0, [entry()], [limited(4.0, **MOVED), elsewhere])
        assert ledger.kept_limit(book.of_input("/data/tickets/part=1", None)) == 4.0
        assert ledger.kept_limit(book.of_input("/unknown", None)) is None

    def test_stands_in_the_balance_with_what_is_left(self) -> None:
        releases = [entry(), entry(column="note", consistency="token", epsilon=0.5)]
        (balance,) = balances(releases, "/l", [limited(4.0)])
        spending = balance.as_dict()
        assert (spending["limit"], spending["kept"], spending["left"]) == (4.0, 4.0, 2.5)
        lefts = [(column["column"], column["left"]) for column in spending["columns"]]
        assert lefts == [("body", 3.0), ("note", 2.5)]

    def test_what_is_left_is_never_rounded_up(self) -> None:
        assert ledger.left_of(1.0, 1e-20) == math.nextafter(1.0, 0.0)
        assert ledger.left_of(0.3, 0.2) == 0.1
        assert ledger.left_of(1.0, 2.0) == ledger.left_of(1.0, math.inf) == 0.0


def tokens(**epsilons: float) -> list[Entry]:
    """Releases at token level, each of a column with its ε."""
    return [entry(consistency="token", column=name, epsilon=epsilon) for name, epsilon in epsilons.items()]


def batches(many: int) -> list[Entry]:
    """Micro-batches of a stream, whose records are new to it."""
    added: dict[str, Any] = {"release": "S", "records": ADDED}
    return [entry(run_id=f"s.{n}", input_version=f"delta:{n}", **added) for n in range(many)]


def versions(*numbers: int) -> list[Entry]:
    """Releases with the same draws, of versions of which the first holds all records."""
    first, *later = (entry(release="R", input_version=f"delta:{n}", records="changed") for n in numbers)
    return [replace(first, records="all"), *later]


FIRST = entry(release="R")
AGAIN = entry(release="S", run_id="s.5", input_version="delta:5")
# (entries, what they have spent on a word of `body`).
SUMS: dict[str, tuple[list[Entry], float]] = {
    "nothing": ([], 0.0),
    "draws of their own": ([entry(), entry(), entry()], 3.0),
    "in decimals": ([entry(epsilon=0.1) for _ in range(3)], 0.3),
    "in other decimals": ([entry(epsilon=0.1), entry(epsilon=0.2)], 0.3),
    # 1 + 1e-20 is no float: the next one above 1 is printed.
    "never rounded down": ([entry(), entry(epsilon=1e-20)], math.nextafter(1.0, 2.0)),
    "the same draws of the same version": ([FIRST, entry(release="R", run_id="x", output="/elsewhere")], 1.0),
    "the same entry again": ([FIRST, replace(FIRST, entry="again", attempt="again")], 1.0),
    "the same draws of other versions": (versions(0, 1, 1, 2), 3.0),
    "a table that was made anew": ([entry(release="R", input_id=name) for name in ("one", "two")], 2.0),
    "new records of a stream": (batches(5), 1.0),
    "a batch that may hold records again": ([*batches(5), AGAIN], 2.0),
    "a run over the whole table besides": ([*batches(5), AGAIN, entry()], 3.0),
    "two streams": ([*batches(5), entry(release="T", records=ADDED, run_id="t.0")], 2.0),
    "reserved": ([entry(status=RESERVED)], 1.0),
    "void": ([entry(status=VOID)], 0.0),
    "void before the same draws": ([entry(release="R", status=VOID), FIRST], 1.0),
    "void after the same draws": ([FIRST, entry(release="R", status=VOID)], 1.0),
    # At token level each column has its own; else a word is one unit in all of them.
    "another column, token": (tokens(body=1.0, note=2.0), 1.0),
    "another column, the same draws": ([entry(column=name, release="R") for name in ("body", "note")], 1.0),
    "another column, other draws": ([entry(column=name) for name in ("body", "note")], 2.0),
    "upper case, which Spark does not tell": (tokens(body=1.0, BODY=1.0), 2.0),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_adds_up(name: str) -> None:
    entries, spent = SUMS[name]
    assert total(*entries) == spent
    if name.startswith("another column"):
        assert total(*entries, column="note") == (2.0 if "token" in name else spent)


@pytest.mark.parametrize("times", [1, 2, 7])
def test_many_alike_come_to_what_one_after_the_other_come_to(times: int) -> None:
    some = [0.1, 1 / 3, 5e-324, 1.7e308 / 16, 2.5]
    exact = sum(Fraction(repr(one)) * (times + place) for place, one in enumerate(some))
    found = total(*(entry(epsilon=one) for place, one in enumerate(some) for _ in range(times + place)))
    assert Fraction(repr(found)) >= exact > Fraction(repr(math.nextafter(found, 0.0)))


class TestKinds:
    def test_probabilities_add_up_whatever_they_compare(self) -> None:
        within = entry(kind="epsilon_dp_within_group")
        asked = [entry(), within, entry(kind="approx_dp", delta=1e-5, epsilon=0.5)]
        (figure,) = spent_on(asked, "body").figures
        assert (figure.epsilon, figure.delta, figure.within, figure.times) == (2.5, 1e-5, True, 3)

    def test_delta_is_a_probability(self) -> None:
        releases = [entry(kind="approx_dp", delta=0.7) for _ in range(2)]
        assert spent_on(releases, "body").figures[0].delta == 1.0

    def test_only_the_same_distance_is_added(self) -> None:
        first, second = ({"kind": "metric_dp", "metric": f"euclidean, space {space}"} for space in (1, 2))
        found = spent_on([entry(**first), entry(**first, epsilon=2.0), entry(**second)], "body")
        figures = {figure.metric: figure.epsilon for figure in found.figures}
        assert figures == {"euclidean, space 1": 3.0, "euclidean, space 2": 1.0}
        assert found.total == 4.0  # what a limit is compared with is no smaller than any of them

    def test_a_distance_stands_beside_a_probability(self) -> None:
        found = spent_on([entry(), entry(kind="metric_dp", metric="euclidean")], "body")
        assert [one.metric for one in found.figures] == [None, "euclidean"]
        assert found.total == 2.0

    def test_levels_add_for_a_word_that_stands_once(self) -> None:
        found = spent_on([entry(), entry(consistency="token", epsilon=0.5)], "body")
        assert [one.unit for one in found.figures] == [RECORD, TOKEN]
        assert found.total == found.joint_epsilon == 1.5
        metric = entry(kind="metric_dp", metric="euclidean", epsilon=11.0)
        mixed = spent_on([entry(), entry(consistency="token", epsilon=0.5), metric], "body")
        assert mixed.joint_epsilon == 1.5
        assert spent_on([entry(), metric], "body").joint_epsilon is None
        assert spent_on([entry(), entry(consistency="token", holds=False)], "body").joint_epsilon is None

    @pytest.mark.parametrize("times", [1, 2])
    def test_the_sum_of_two_levels_holds_for_the_joint_law(self, times: int) -> None:
        """By brute force: a word that stands once loses at most the sum; one that stands twice, its first ε once more."""
        law = {"x": {"x": 3, "y": 1}, "y": {"x": 1, "y": 3}}  # of four: ε = ln 3 for a draw
        token = entry(consistency="token", epsilon=math.log(3))
        found = spent_on([token, entry(epsilon=math.log(3))], "body")
        worst = 0.0
        for tokens in product("xy", repeat=times):  # a release at token level: each occurrence anew
            for record in "xy":  # and one at record level
                chances = {word: math.prod(law[word][out] for out in (*tokens, record)) for word in "xy"}
                worst = max(worst, abs(math.log(chances["x"] / chances["y"])))
        assert worst == pytest.approx((times + 1) * math.log(3))
        assert found.joint_epsilon is not None
        assert (worst <= found.joint_epsilon + 1e-12) == (times == 1)

    @pytest.mark.parametrize("order", [1, -1])
    def test_no_epsilon_stands_for_a_guarantee_that_was_refuted(self, order: int) -> None:
        entries = [entry(release="R"), entry(release="R", holds=False), entry()][::order]
        found = spent_on(entries, "body")
        assert math.isinf(found.total)
        assert found.as_dict()["total"] is None
        assert found.as_dict()["figures"][0]["epsilon"] is None


class TestInputs:
    @pytest.mark.parametrize(
        ("place", "input_id", "same"),
        [
            ("/data/tickets", None, True),
            ("file:/data/tickets/", None, True),
            ("/data/tickets/day=1", None, True),
            ("/data", None, True),
            ("/data/tickets2", None, False),
            ("/elsewhere", "id-1", True),  # moved
            ("/data/tickets", "id-2", True),  # made anew in its place
            ("/elsewhere", "id-2", False),
            ("table:spark_catalog.default.tickets", None, False),
        ],
    )
    def test_the_same_table_or_the_same_place(self, place: str, input_id: str | None, same: bool) -> None:
        assert bool(of_input([entry()], place, input_id)) == same

    def test_a_name_is_the_same_name_only(self) -> None:
        named = entry(input="table:a.b.v", input_id=None)
        assert of_input([named], "table:a.b.v", None) == [named]
        assert of_input([named], "table:a.b.w", None) == []

    def test_what_was_moved_and_made_anew_is_followed(self) -> None:
        chain = [entry(input=place, input_id=name) for place, name in (("/b", "1"), ("/b", "2"), ("/c", "2"))]
        assert of_input(chain, "/a", "1") == chain
        assert len(balances(chain, "/ledger")) == 1

    def test_each_input_has_its_balance_in_order(self) -> None:
        found = balances([entry(input=place, input_id=None) for place in ("/a", "/b", "/a")], "/l")
        assert [(one.input, one.columns[0].total) for one in found] == [("/a", 2.0), ("/b", 1.0)]
        assert balances([], "/l") == []


def grown(before: list[Entry], *asked: Entry) -> Balance:
    return after(before, list(asked), "/ledger")


class TestARun:
    def test_columns_of_other_runs_are_named_too(self) -> None:
        balance = grown([entry(consistency="token", column="note")], entry(consistency="token"))
        columns = [(column.column, column.total, column.more) for column in balance.columns]
        assert columns == [("note", 1.0, 0.0), ("body", 1.0, 1.0)]

    def test_knows_what_did_not_finish(self) -> None:
        open_run, finished = entry(status=RESERVED), entry(status=RESERVED, release="R")
        balance = grown([open_run, finished, entry(release="R"), entry(status=VOID)], entry(status=RESERVED))
        assert balance.unfinished == 1

    def test_counts_from_the_first_entry(self) -> None:
        balance = grown([entry(at=datetime(2025, 1, 2), input="/other", input_id=None)], entry())
        assert balance.since == "2025-01-02"

    def test_its_balance_is_json(self) -> None:
        found = allowed(grown([entry(holds=False)], entry()), 1.0, "reviewed")
        read = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert Balance.from_dict(read) == found
        assert read["columns"][0]["total"] is None
        assert read["override"] == "reviewed"
        assert read["sentence"] == found.sentence


class TestALimit:
    def test_may_be_met_and_not_passed(self) -> None:
        tenth = [entry(epsilon=0.1), entry(epsilon=0.1)]
        assert allowed(grown(tenth, entry(epsilon=0.1)), 0.3, None).limit == 0.3
        with pytest.raises(RunError, match=r"^ledger\.limit: .* 0\.3\. ε = 0\.2 .* body .* 0\.2 more.* 0\.4"):
            allowed(grown(tenth, entry(epsilon=0.2)), 0.3, None)

    def test_is_not_asked_for_where_nothing_is_spent(self) -> None:
        balance = allowed(grown([entry(release="R"), entry()], entry(release="R")), 1.0, "unused")
        assert balance.override is None
        assert balance.warnings == ()

    @pytest.mark.parametrize(
        ("change", "figure"),
        [
            ({"kind": "metric_dp", "metric": "euclidean"}, "2 in total"),  # every kind counts
            ({"column": "note", "consistency": "token"}, "one word of note"),  # and any column
        ],
    )
    def test_is_of_any_kind_and_column(self, change: dict[str, Any], figure: str) -> None:
        with pytest.raises(RunError, match=figure):
            allowed(grown([entry(**change)], entry()), 1.5, None)

    def test_a_refuted_guarantee_passes_any(self) -> None:
        for before, asked in (([], entry(holds=False)), ([entry(holds=False)], entry())):
            with pytest.raises(RunError, match="No ε covers them"):
                allowed(grown(before, asked), 1e6, None)
        same = entry(holds=False, release="R")
        assert allowed(grown([same], replace(same, entry="again")), 1.0, None).override is None

    def test_an_override_is_said_at_the_top(self) -> None:
        balance = allowed(grown([entry()], entry()), 1.5, "review 7 of the board")
        assert balance.override == "review 7 of the board"
        (warning,) = balance.warnings
        assert "ε came to 2 with ledger.limit 1.5" in warning

    def test_none_refuses_nothing(self) -> None:
        assert allowed(grown([entry(holds=False)], entry(epsilon=1e9)), None, None).limit is None


def test_entries_are_rows_of_the_table() -> None:
    one = entry()
    row = {field.name: getattr(one, field.name) for field in fields(Entry)}
    assert Entry.of({**row, "a column of a later version": 1}) == one


def of_record(epsilon: float | None, delta: float = 0.0, **changes: Any) -> Entry:
    counted = {} if epsilon is None else {"record_words": 10, "record_delta": delta}
    return entry(record_epsilon=epsilon, **counted, **changes)


class TestARecord:
    """What releases come to over one record: all columns of a release together, equal draws once."""

    def test_columns_of_a_release_are_one_figure(self) -> None:
        same: dict[str, Any] = {"attempt": "a", "run_id": "r", "consistency": "token"}
        found = spent_on_record([of_record(7.0, 1e-6, **same), of_record(7.0, 1e-6, column="title", **same)])
        assert (found.epsilon, found.delta, found.times, found.without) == (7.0, 1e-6, 1, 0)

    def test_releases_add_up_and_equal_draws_do_not(self) -> None:
        first, other = of_record(7.0, 1e-6), of_record(2.5, 2e-6)
        again = replace(first, entry="again", attempt="again", run_id="again", record_epsilon=None)
        found = spent_on_record([first, again, other])
        assert (found.epsilon, found.delta, found.times, found.without) == (9.5, 3e-6, 2, 0)

    def test_draws_of_an_earlier_key_count_beside_those_of_this_one(self) -> None:
        now = of_record(7.0)
        assert spent_on_record([now, replace(now, entry="e", release="earlier")]).epsilon == 14.0

    def test_of_a_stream_the_largest_micro_batch_counts(self) -> None:
        added: dict[str, Any] = {"records": ADDED, "release": "stream"}
        batches = [of_record(epsilon, run_id=f"s.{n}", **added) for n, epsilon in enumerate((3.0, 8.0, 5.0))]
        assert spent_on_record(batches).epsilon == 8.0
        assert spent_on_record([*batches, of_record(None, run_id="s.3", **added)]).without == 1

    def test_what_is_void_is_not_of_a_record(self) -> None:
        assert spent_on_record([of_record(3.0, status=VOID)]).times == 0

    def test_entries_without_a_figure_say_so(self) -> None:
        found = spent_on_record([entry(), of_record(3.0)])
        assert (found.epsilon, found.times, found.without) == (3.0, 1, 1)
        balance = after([entry()], [of_record(3.0)], "/ledger")
        assert Balance.from_dict(balance.as_dict()).record == balance.record

    def test_a_refuted_guarantee_leaves_none(self) -> None:
        assert math.isinf(spent_on_record([of_record(3.0, holds=False)]).epsilon)

    def test_the_settling_row_brings_the_figure(self) -> None:
        first = entry(status=RESERVED)
        (found,) = settled([first, replace(first, status=SPENT, record_words=12, record_epsilon=4.0)])
        assert (found.record_words, found.record_epsilon, found.status) == (12, 4.0, SPENT)
        (kept,) = settled([of_record(2.0, entry="e", status=RESERVED), replace(entry(), entry="e")])
        assert kept.record_epsilon == 2.0

    @pytest.mark.parametrize(
        "change", [{"record_epsilon": -1.0}, {"record_delta": 2.0}, {"record_epsilon": math.inf}]
    )
    def test_a_damaged_figure_is_named(self, change: dict[str, Any]) -> None:
        with pytest.raises(DataError, match="is damaged: record_"):
            Book.of(0, columns_of([row_of(of_record(1.0), **change)]))


def test_what_is_said_is_as_it_was() -> None:
    joint = [entry(), entry(consistency="token", epsilon=0.5)]
    metric = entry(kind="metric_dp", metric="euclidean, space 1")
    within = [entry(kind="epsilon_dp_within_group"), entry(kind="approx_dp", delta=1e-5)]
    columns = tokens(body=1.0, note=1.0)
    sums = {"probabilities": within, "levels and a distance": [*joint, metric]}
    sums["refuted"] = [entry(holds=False)]
    runs = {
        "further": after([entry(epsilon=2.0), entry(status=RESERVED)], [entry(status=RESERVED)], "/l"),
        "same draws": after([FIRST], [FIRST], "/l"),
        "columns": after(tokens(note=0.5), columns, "/l"),
        "record": after([entry()], [of_record(3.0, 1e-6)], "/l"),
    }
    listed = {
        "no limit": balances([entry()], "/l"),
        "limit": balances(joint, "/l", [limited(4.0, at=NOW)]),
        "refuted": balances(sums["refuted"], "/l", [limited(4.0, at=NOW)]),
    }
    texts = {name: str(spent_on(entries, "body")) for name, entries in sums.items()}
    texts |= {f"run, {name}": "\n".join([run.sentence, *run.notes]) for name, run in runs.items()}
    texts |= {f"balances, {name}": spent(some).text(200) for name, some in listed.items()}
    assert_as_frozen("terminal", "ledger", texts)
