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
from dptext_spark.ledger.balance import (
    Balance,
    Spending,
    after,
    allowed,
    allowed_record,
    balances,
    kept_limit,
)
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
from dptext_spark.ledger.sums import left_of, spent_on, spent_on_record
from dptext_spark.report.terminal.summary import spent_text

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
    """A limit of the input that is kept."""
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
        rows = [
            replace(first, status=now, why=because, at=first.at + timedelta(seconds=later + number))
            for number, (now, because) in enumerate(settling)
        ]
        for order in ([first, *rows], [*reversed(rows), first]):
            (found,) = settled(order)
            assert (found.status, found.why, found.entry) == (status, why, first.entry)

    def test_entries_stay_apart_and_in_order(self) -> None:
        one, two = entry(status=RESERVED), entry(status=RESERVED)
        found = settled([replace(two, status=SPENT), two, one])
        assert [(each.entry, each.status, each.at) for each in found] == [
            (one.entry, RESERVED, one.at), (two.entry, SPENT, two.at),
        ]  # fmt: skip


def row_of(one: Entry | Decision, **changes: Any) -> dict[str, Any]:
    """A row as the table gives it."""
    return {**dict.fromkeys(field.name for field in fields(Entry)), **vars(one), **changes}


def columns_of(rows: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
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
        with pytest.raises(
            DataError, match=rf"^ledger: the row of run 'r-bad' .* is damaged: {field} is .*; valid: "
        ):
            Book.of(0, columns_of(rows))

    @pytest.mark.parametrize("limit", [None, 0.0, -4.0, math.nan, math.inf])
    def test_of_a_limit_is_damage_too(self, limit: Any) -> None:
        with pytest.raises(DataError, match=r"the row of run 'r-bad' .* is damaged: limit is "):
            Book.of(0, columns_of([row_of(entry()), row_of(limited(4.0, run_id="r-bad"), limit=limit)]))

    @pytest.mark.parametrize(
        "sound", [{"epsilon": 0.0}, {"epsilon": 5e-324}, {"delta": 1.0}, {"limit": 1}], ids=str
    )
    def test_is_no_row_at_the_edge(self, sound: dict[str, Any]) -> None:
        (found,) = Book.of(0, columns_of([row_of(entry(), **sound)])).entries
        assert vars(found).items() >= sound.items()


class TestAKeptLimit:
    def test_is_none_at_first(self) -> None:
        assert kept_limit(Book(0, [entry(limit=3.0)], [])) is None

    def test_rises_by_a_reason_and_of_those_without_one_the_least_holds(self) -> None:
        def kept(*rows: Decision) -> float | None:
            return kept_limit(Book(0, [], list(rows)))

        assert kept(limited(4.0)) == 4.0
        assert kept(limited(4.0), limited(8.0, why="minute 1")) == 8.0
        # Two inputs had one each, and a run over the folder of both made them one.
        assert kept(limited(4.0), limited(6.0, input="/data")) == 4.0
        assert kept(limited(4.0), limited(6.0, input="/data"), limited(5.0, why="minute 2")) == 5.0

    def test_is_found_wherever_the_input_is_named(self) -> None:
        book = Book(
            0,
            [entry()],
            [limited(4.0, input="/moved", input_id="id-1"), limited(1.0, input="/else", input_id=None)],
        )
        assert kept_limit(book.of_input("/data/tickets/part=1", None)) == 4.0
        assert kept_limit(book.of_input("/unknown", None)) is None

    def test_stands_in_the_balance_with_what_is_left(self) -> None:
        (balance,) = balances(
            [entry(), entry(column="note", consistency="token", epsilon=0.5)], "/l", [limited(4.0)]
        )
        said = balance.spending.as_dict()
        assert (said["limit"], said["kept"], said["left"]) == (4.0, 4.0, 2.5)
        assert [(one["column"], one["left"]) for one in said["columns"]] == [("body", 3.0), ("note", 2.5)]
        text = " ".join(spent_text([balance], 200).split())
        assert "limit ε = 4, spent ε = 1, left ε = 3" in text
        assert "limit ε = 4, spent ε = 1.5, left ε = 2.5" in text
        assert "the limit ε = 4 was set by run r9 on 2026-11-21" in text
        assert "no limit is kept" in spent_text(balances([entry()], "/l"))
        refuted = spent_text(balances([entry(holds=False)], "/l", [limited(4.0)]))
        assert "limit ε = 4, no ε stands for it, left ε = 0" in refuted

    def test_what_is_left_is_never_rounded_up(self) -> None:
        assert left_of(1.0, 1e-20) == math.nextafter(1.0, 0.0)
        assert left_of(0.3, 0.2) == 0.1
        assert left_of(1.0, 2.0) == left_of(1.0, math.inf) == 0.0


class TestWhatAddsUp:
    def test_nothing(self) -> None:
        assert total() == 0.0
        assert str(spent_on([], "body")) == "nothing"

    def test_draws_of_their_own_add_up_in_decimals(self) -> None:
        assert total(entry(), entry(), entry()) == 3.0
        assert total(*(entry(epsilon=0.1) for _ in range(3))) == 0.3
        assert total(entry(epsilon=0.1), entry(epsilon=0.2)) == 0.3

    @pytest.mark.parametrize("times", [1, 2, 7])
    def test_many_alike_come_to_what_one_after_the_other_come_to(self, times: int) -> None:
        some = [0.1, 1 / 3, 5e-324, 1.7e308 / 16, 2.5]
        exact = sum(Fraction(repr(one)) * (times + place) for place, one in enumerate(some))
        found = total(*(entry(epsilon=one) for place, one in enumerate(some) for _ in range(times + place)))
        assert Fraction(repr(found)) >= exact > Fraction(repr(math.nextafter(found, 0.0)))

    def test_a_sum_is_never_rounded_down(self) -> None:
        # 1 + 1e-20 is no float: the next one above 1 is printed.
        assert total(entry(epsilon=1.0), entry(epsilon=1e-20)) == math.nextafter(1.0, 2.0)

    def test_the_same_draws_of_the_same_version_tell_nothing_new(self) -> None:
        first = entry(release="R")
        assert total(first, entry(release="R", run_id="another", output="/elsewhere")) == 1.0
        assert total(first, replace(first, entry="again", attempt="again")) == 1.0

    def test_the_same_draws_of_another_version_do(self) -> None:
        versions = [
            entry(release="R", input_version=f"delta:{n}", records="changed" if n else "all")
            for n in (0, 1, 1, 2)
        ]
        assert total(*versions) == 3.0

    def test_a_table_that_was_made_anew_has_another_first_version(self) -> None:
        assert total(entry(release="R", input_id="one"), entry(release="R", input_id="two")) == 2.0

    def test_records_that_are_new_to_a_stream_add_nothing_for_any_other(self) -> None:
        batches = [
            entry(release="S", records=ADDED, run_id=f"s.{n}", input_version=f"delta:{n}") for n in range(5)
        ]
        assert total(*batches) == 1.0
        # A batch that may hold records again, and a run over the whole table, are releases of their own.
        again = entry(release="S", run_id="s.5", input_version="delta:5")
        assert total(*batches, again) == 2.0
        assert total(*batches, again, entry()) == 3.0
        other_stream = entry(release="T", records=ADDED, run_id="t.0")
        assert total(*batches, other_stream) == 2.0

    @pytest.mark.parametrize(("status", "counts"), [(RESERVED, 1.0), (SPENT, 1.0), (VOID, 0.0)])
    def test_all_but_void_count(self, status: str, counts: float) -> None:
        assert total(entry(status=status)) == counts

    def test_a_void_attempt_does_not_hide_another_of_the_same_draws(self) -> None:
        assert total(entry(release="R", status=VOID), entry(release="R")) == 1.0
        assert total(entry(release="R"), entry(release="R", status=VOID)) == 1.0


class TestColumns:
    def test_at_token_level_each_has_its_own(self) -> None:
        both = [
            entry(consistency="token", column=name, epsilon=size)
            for name, size in (("body", 1.0), ("note", 2.0))
        ]
        assert total(*both) == 1.0
        assert total(*both, column="note") == 2.0

    def test_at_the_other_levels_a_word_is_one_unit_in_all_of_them(self) -> None:
        together = [entry(column=name, release="R") for name in ("body", "note")]
        apart = [entry(column="body"), entry(column="note")]
        for column in ("body", "note"):
            assert total(*together, column=column) == 1.0
            assert total(*apart, column=column) == 2.0

    def test_spark_does_not_tell_upper_from_lower_case(self) -> None:
        assert total(*(entry(consistency="token", column=name) for name in ("body", "BODY"))) == 2.0


class TestKinds:
    def test_probabilities_add_up_whatever_they_compare(self) -> None:
        (figure,) = spent_on(
            [
                entry(),
                entry(kind="epsilon_dp_within_group"),
                entry(kind="approx_dp", delta=1e-5, epsilon=0.5),
            ],
            "body",
        ).figures
        assert (figure.epsilon, figure.delta, figure.within, figure.times) == (2.5, 1e-5, True, 3)
        assert str(figure) == (
            f"ε = 2.5 and δ = 1e-05 for {RECORD}, between words that share an output set (spent 3 times)"
        )

    def test_delta_is_a_probability(self) -> None:
        assert (
            spent_on([entry(kind="approx_dp", delta=0.7) for _ in range(2)], "body").figures[0].delta == 1.0
        )

    def test_only_the_same_distance_is_added(self) -> None:
        metric = {"kind": "metric_dp", "metric": "euclidean, space 1"}
        found = spent_on(
            [
                entry(**metric),
                entry(**metric, epsilon=2.0),
                entry(**{**metric, "metric": "euclidean, space 2"}),
            ],
            "body",
        )
        assert [(one.metric, one.epsilon) for one in found.figures] == [
            ("euclidean, space 1", 3.0),
            ("euclidean, space 2", 1.0),
        ]
        assert "not to be added" in str(found)
        assert "for each unit of distance (euclidean, space 1)" in str(found)
        assert found.total == 4.0  # what a limit is compared with is no smaller than any of them

    def test_a_distance_stands_beside_a_probability(self) -> None:
        found = spent_on([entry(), entry(kind="metric_dp", metric="euclidean")], "body")
        assert [one.metric for one in found.figures] == [None, "euclidean"]
        assert found.total == 2.0

    def test_levels_add_for_a_word_that_stands_once(self) -> None:
        found = spent_on([entry(), entry(consistency="token", epsilon=0.5)], "body")
        assert [one.unit for one in found.figures] == [RECORD, TOKEN]
        assert found.total == found.joint_epsilon == 1.5
        assert "together ε = 1.5 for a word that stands once" in str(found)
        assert "not to be added" not in str(found)
        metric = entry(kind="metric_dp", metric="euclidean", epsilon=11.0)
        mixed = spent_on([entry(), entry(consistency="token", epsilon=0.5), metric], "body")
        assert mixed.joint_epsilon == 1.5
        assert str(mixed).count("not to be added") == 1
        assert spent_on([entry(), metric], "body").joint_epsilon is None
        assert spent_on([entry(), entry(consistency="token", holds=False)], "body").joint_epsilon is None

    @pytest.mark.parametrize("times", [1, 2])
    def test_the_sum_of_two_levels_holds_for_the_joint_law(self, times: int) -> None:
        """By brute force: a word that stands once loses at most the sum; one that stands twice, its first ε once more."""
        law = {"x": {"x": 3, "y": 1}, "y": {"x": 1, "y": 3}}  # of four: ε = ln 3 for a draw
        found = spent_on(
            [entry(consistency="token", epsilon=math.log(3)), entry(epsilon=math.log(3))], "body"
        )
        worst = 0.0
        for tokens in product("xy", repeat=times):  # a release at token level: each occurrence anew
            for record in "xy":  # and one at record level
                joint = {
                    word: math.prod(law[word][out] for out in tokens) * law[word][record] for word in "xy"
                }
                worst = max(worst, abs(math.log(joint["x"] / joint["y"])))
        assert worst == pytest.approx((times + 1) * math.log(3))
        assert found.joint_epsilon is not None
        assert (worst <= found.joint_epsilon + 1e-12) == (times == 1)

    @pytest.mark.parametrize("order", [1, -1])
    def test_no_epsilon_stands_for_a_guarantee_that_was_refuted(self, order: int) -> None:
        entries = [entry(release="R"), entry(release="R", holds=False), entry()][::order]
        found = spent_on(entries, "body")
        assert math.isinf(found.total)
        assert "no ε at all" in str(found)
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
        chain = [
            entry(input="/b", input_id="1"),
            entry(input="/b", input_id="2"),
            entry(input="/c", input_id="2"),
        ]
        assert of_input(chain, "/a", "1") == chain
        assert len(balances(chain, "/ledger")) == 1

    def test_each_input_has_its_balance_in_order(self) -> None:
        found = balances(
            [
                entry(input="/a", input_id=None),
                entry(input="/b", input_id=None),
                entry(input="/a", input_id=None),
            ],
            "/l",
        )
        assert [(one.input, one.columns[0].total) for one in found] == [("/a", 2.0), ("/b", 1.0)]
        assert balances([], "/l") == []


def grown(before: list[Entry], *asked: Entry) -> Balance:
    return after(before, list(asked), "/ledger")


class TestARun:
    def test_says_what_it_added(self) -> None:
        said = grown([entry(epsilon=2.0)], entry(status=RESERVED)).sentence
        assert said == (
            f"All releases of the input that the ledger knows have together spent on one word of body: ε = 3 for "
            f"{RECORD} (spent 2 times); 1 of it is of this run."
        )
        assert "this run added nothing to it" in grown([entry(release="R")], entry(release="R")).sentence

    def test_columns_that_came_to_the_same_are_named_together(self) -> None:
        asked = [entry(consistency="token", column=name) for name in ("body", "note")]
        assert "one word of body, note: ε = 1" in grown([], *asked).sentence
        said = grown([entry(consistency="token", column="note", epsilon=0.5)], *asked).sentence
        assert "one word of note: ε = 1.5" in said
        assert "On one word of body: ε = 1 " in said

    def test_columns_of_other_runs_are_named_too(self) -> None:
        balance = grown([entry(consistency="token", column="note")], entry(consistency="token"))
        assert [(one.column, one.total, one.more) for one in balance.columns] == [
            ("note", 1.0, 0.0),
            ("body", 1.0, 1.0),
        ]

    def test_knows_what_did_not_finish(self) -> None:
        open_run, finished = entry(status=RESERVED), entry(status=RESERVED, release="R")
        balance = grown([open_run, finished, entry(release="R"), entry(status=VOID)], entry(status=RESERVED))
        assert balance.unfinished == 1
        assert any("1 that did not finish" in note for note in balance.notes)

    def test_counts_from_the_first_entry_and_says_what_it_leaves_out(self) -> None:
        balance = grown([entry(at=datetime(2025, 1, 2), input="/other", input_id=None)], entry())
        notes = " ".join(balance.notes)
        assert balance.since == datetime(2025, 1, 2)
        assert "under another ledger" in notes
        assert "a copy, a clone or a view" in notes
        assert "worst record" in notes
        assert "input.where" in notes
        assert "a release of any column" in notes
        assert "a release of any column" not in " ".join(grown([], entry(consistency="token")).notes)

    def test_its_balance_is_json(self) -> None:
        found = allowed(grown([entry(holds=False)], entry()), 1.0, "reviewed")
        read = json.loads(json.dumps(found.spending.as_dict(), allow_nan=False))
        assert Spending.from_dict(read) == found.spending
        assert read["columns"][0]["total"] is None
        assert read["override"] == "reviewed"
        assert read["sentence"] == found.sentence


class TestALimit:
    def test_may_be_met_and_not_passed(self) -> None:
        tenth = [entry(epsilon=0.1), entry(epsilon=0.1)]
        assert allowed(grown(tenth, entry(epsilon=0.1)), 0.3, None).limit == 0.3
        with pytest.raises(RunError) as refused:
            allowed(grown(tenth, entry(epsilon=0.2)), 0.3, None)
        said = str(refused.value)
        assert "ledger.limit: 0.3 given; ε = 0.2 was spent on one word of body in /data/tickets" in said
        assert "asks for 0.2 more, which makes 0.4" in said
        assert "ledger.override" in said

    def test_is_not_asked_for_where_nothing_is_spent(self) -> None:
        balance = allowed(grown([entry(release="R"), entry()], entry(release="R")), 1.0, "unused")
        assert balance.override is None
        assert balance.warnings == ()

    def test_counts_every_kind(self) -> None:
        with pytest.raises(RunError, match="which makes 2"):
            allowed(grown([entry(kind="metric_dp", metric="euclidean")], entry()), 1.5, None)

    def test_another_column_may_pass_it(self) -> None:
        with pytest.raises(RunError, match="one word of note"):
            allowed(grown([entry(column="note", consistency="token")], entry(column="body")), 1.5, None)

    def test_a_refuted_guarantee_passes_any(self) -> None:
        for before, asked in (([], entry(holds=False)), ([entry(holds=False)], entry())):
            with pytest.raises(RunError, match="no ε stands for them"):
                allowed(grown(before, asked), 1e6, None)
        same = entry(holds=False, release="R")
        assert allowed(grown([same], replace(same, entry="again")), 1.0, None).override is None

    def test_an_override_is_said_at_the_top(self) -> None:
        balance = allowed(grown([entry()], entry()), 1.5, "review 7 of the board")
        assert balance.override == "review 7 of the board"
        (warning,) = balance.warnings
        assert "PASSED: ε came to 2 with ledger.limit 1.5" in warning
        assert "review 7 of the board" in warning

    def test_none_refuses_nothing(self) -> None:
        assert allowed(grown([entry(holds=False)], entry(epsilon=1e9)), None, None).limit is None


def test_runs_that_passed_a_limit_are_named_with_their_reason() -> None:
    passed = replace(entry(), run_id="r7", limit=3.0, override="review 7 of the board")
    (balance,) = balances([entry(), passed, replace(entry(), override="never", status=VOID)], "/ledger")
    assert balance.overrides == ("run r7 passed the limit of 3, with the reason: review 7 of the board",)
    assert balance.spending.as_dict()["overrides"] == list(balance.overrides)
    assert "run r7 passed the limit of 3, with the reason: review 7" in " ".join(
        spent_text([balance]).split()
    )


def test_entries_are_rows_of_the_table() -> None:
    one = entry()
    row = {field.name: getattr(one, field.name) for field in fields(Entry)}
    assert Entry.of({**row, "a column of a later version": 1}) == one


def of_record(epsilon: float | None, delta: float = 0.0, **changes: Any) -> Entry:
    """A release with what it cost the longest record."""
    words = None if epsilon is None else 10
    return entry(
        record_words=words, record_epsilon=epsilon, record_delta=None if epsilon is None else delta, **changes
    )


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
        assert str(found) == "ε = 9.5 and δ = 3e-06 for the longest record (spent 2 times)"

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
        assert str(found).endswith("(spent once), and 1 release without a figure for a record")
        balance = after([entry()], [of_record(3.0)], "/ledger")
        assert any("1 release without a figure" in one for one in balance.notes)
        assert Spending.from_dict(balance.spending.as_dict()).record == balance.record

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

    @pytest.mark.parametrize(
        ("there", "asked", "said"),
        [
            ([of_record(7.0)], of_record(4.0), "ε = 7 was spent on the longest record of /data/tickets, and this run asks "),
            ([entry()], of_record(1.0), "1 of the releases of /data/tickets have no figure"),
            ([of_record(1.0)], entry(), "this run has no figure for a record"),
        ],
    )  # fmt: skip
    def test_its_limit_refuses_and_a_reason_lets_it_pass(
        self, there: list[Entry], asked: Entry, said: str
    ) -> None:
        balance, before = after(there, [asked], "/ledger"), spent_on_record(there)
        with pytest.raises(RunError, match=rf"^ledger.limit_record: 10 given; {said}"):
            allowed_record(balance, before, 10.0, None)
        assert allowed_record(balance, before, 10.0, "minute 7").override == "minute 7"
        assert allowed_record(balance, before, None, None) == balance

    def test_what_spends_nothing_is_not_refused(self) -> None:
        first = of_record(20.0)
        balance = after([first], [first], "/ledger")
        assert allowed_record(balance, spent_on_record([first]), 10.0, None).limit_record == 10.0
        enough = allowed_record(after([], [of_record(4.0)], "/l"), spent_on_record([]), 10.0, None)
        assert enough.spending.record is not None
        assert enough.spending.record.left == 6.0
