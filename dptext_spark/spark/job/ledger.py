"""The budget ledger: what a run asks for, reserved before the first data file and settled after the commit."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from dptext_spark.errors import DPTextError, RunError
from dptext_spark.ledger.balance import (
    Balance,
    allowed,
    balances,
    bound_by,
    kept_limit,
    record_after,
)
from dptext_spark.ledger.balance import after as balance_after
from dptext_spark.ledger.entry import (
    ADDED,
    ALL,
    BEGUN,
    CHANGED,
    LIMIT,
    METRIC,
    RESERVED,
    SPENT,
    VOID,
    Book,
    Decision,
    Entry,
    of_input,
)
from dptext_spark.mechanisms.privacy_loss.accountant import RecordBound, quarter_power
from dptext_spark.model.artifact import read_manifest
from dptext_spark.model.tables.delta_log import Commit, our_commits
from dptext_spark.spark.errors import reduced
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.counting import Units
from dptext_spark.spark.job.entries import add, appended, check_single_ledger, entries_of
from dptext_spark.spark.job.plan import RunPlan
from dptext_spark.spark.job.releases import Source, metric_of, release_of, shown_mechanism, source_of
from dptext_spark.spark.session.session import context_of
from dptext_spark.spark.tables.tables import leftover_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = 20.0  # seconds that tasks of a failed write are waited for


@dataclass(frozen=True, eq=False)
class Reservation:
    """What a run was granted.

    Attributes:
        spark: the session.
        path: folder of the ledger.
        entries: that this reservation wrote; none where they were there already.
        earlier: entries that earlier attempts of the run reserved for the same draws.
        balance: what the input comes to with them.
        again: an earlier attempt of the run is in the ledger.
        others: what else is in the ledger of the input; `ours` what this run has in it.
    """

    spark: SparkSession
    path: str
    entries: tuple[Entry, ...]
    earlier: tuple[Entry, ...]
    balance: Balance
    again: bool
    others: tuple[Entry, ...] = ()
    ours: tuple[Entry, ...] = ()

    @property
    def cumulative(self) -> str:
        """The balance as the `runs` row holds it, JSON."""
        return json.dumps(self.balance.spending.as_dict(), ensure_ascii=False)

    def found(self, bound: RecordBound | None) -> str:
        """Return the same, with what the longest record was found to cost while the run wrote."""
        if bound is None or not self.ours:
            return self.cumulative
        ours = [_costing(one, bound) for one in self.ours]
        balance = replace(self.balance, record=record_after(self.others, ours))
        return json.dumps(balance.spending.as_dict(), ensure_ascii=False)


def reserve(
    plan: RunPlan, *, added_to: str | None = None, committed: bool = False, second: bool = False,
    commits: Sequence[Commit] | None = None,
) -> Reservation:  # fmt: skip
    """Reserve what a run will spend, before its first data file.

    Args:
        plan: the run, or a micro-batch as a run of its own.
        added_to: the run id of the stream of which this is a micro-batch, where all of its records are new to that stream:
            disjoint records, whose ε does not add up (parallel composition). None: they may have been released before.
        committed: the run committed already, and is only accounted for: nothing is refused.
        second: an attempt of the run with another key may have left files: it counts even where no entry is left of it.
        commits: the target's, as the run has read them; None: they are read where they are needed.

    Raises:
        RunError: the limit would be passed and no override is given, or raised without a reason; the entries of the target's
            releases are gone; the ledger cannot be written.
        DataError: what is there is no ledger, a damaged one, or one of another schema version.
    """
    path = plan.place.ledger
    try:
        source, settings = source_of(plan), plan.config
        if not committed:
            check_single_ledger(plan.spark, settings.input, settings.ledger, source.place, source.table_id)
        asked = _asked(plan, source, added_to)

        def decide(book: Book) -> tuple[list[Entry | Decision], Reservation]:
            there, here = book.entries, book.of_input(source.place, source.table_id)
            mine = own_entries(there, asked)
            wanted = [] if committed and mine else [*_earlier_attempt(mine, asked, plan, second), *asked]
            budget = plan.config.ledger
            override = budget.override or ("the run had committed before" if committed else None)
            kept, named = kept_limit(here), budget.limit
            if committed and kept is not None and named is not None and not budget.raise_limit:
                named = min(named, kept)  # nothing is refused, and nothing is raised
            limit, keeps = bound_by(here, source.place, named, budget.raise_limit)
            whole = balance_after(there, wanted or mine, path)
            decided = allowed(whole, limit, override, named=named is not None)
            decisions = []
            if wanted and (forgotten := _forgotten(plan, there, here, commits)):
                if override is None:
                    raise _lost(plan, forgotten)
                decisions.append(decision(asked[0], here, BEGUN, None, override))
            if wanted and keeps:  # a first limit needs no reason
                why = None if kept is None else budget.raise_limit
                decisions.append(decision(asked[0], here, LIMIT, limit, why))
            # What is said of the run is what all of its attempts have spent, and why they might.
            reasons = [one.override for one in mine if one.override] + [decided.override]
            if mine:
                others = [one for one in there if one not in mine]
                whole = balance_after(others, [*mine, *wanted], path)
            balance = replace(
                whole,
                limit=limit,
                override=next(filter(None, reasons), None),
                kept=kept_limit(here._replace(decisions=[*here.decisions, *decisions])),
                decisions=(*here.decisions, *decisions),
            )
            keyed = plan.config.row_key or plan.config.record_key
            told_apart = bool(keyed) or plan.config.consistency == "dataset"
            wanted = [
                replace(one, limit=limit, override=decided.override)
                for one in labelled(there, wanted, told_apart=told_apart)
            ]
            # Draws of an earlier key were not committed: what was reserved for them stays so.
            releases = {one.release for one in (asked if wanted else mine)}
            earlier = [one for one in mine if one.release in releases and one.status == RESERVED]
            ours = {one.entry: one for one in (*mine, *wanted)}
            rest = tuple(one for one in here.entries if one.entry not in ours)
            reservation = Reservation(
                plan.spark, path, tuple(wanted), tuple(earlier), balance, bool(mine), rest, tuple(ours.values())
            )  # fmt: skip
            return [*wanted, *decisions], reservation

        return appended(plan.spark, path, decide)
    except DPTextError:
        raise
    except Exception as error:
        said = reduced(error, list(plan.columns))
        raise RunError(
            f"ledger: {path!r} cannot be written, and no run goes on without it. {said} Nothing was written to the target."
        ) from None


@contextmanager
def reserved(
    plan: RunPlan, *, committed: bool = False, second: bool = False, commits: Sequence[Commit] | None = None
) -> Iterator[Reservation]:
    """Reserve for what follows; what fails inside has written no data, so that its reservation is void."""
    reservation = reserve(
        plan, added_to=_stream_of(plan), committed=committed, second=second, commits=commits
    )
    try:
        yield reservation
    except BaseException:
        if not committed:
            # Should this fail too, the entries stay reserved and so count; the error to report is the first one.
            with suppress(Exception):
                settle(reservation, VOID, "it failed before the write began")
        raise


def _stream_of(plan: RunPlan) -> str | None:
    """Return the run id of the stream whose micro-batch this is, where none of its rows can have been released by it before."""
    known = plan.config.stream.duplicates != "accept"
    return plan.stream.stream if plan.stream is not None and known else None


def standing(plan: RunPlan) -> Balance | None:
    """Return what a stream's input comes to so far, with the override that its micro-batches gave; None without entries."""
    source = source_of(plan)
    book = entries_of(plan.spark, plan.place.ledger).of_input(source.place, source.table_id)
    here = book.entries
    if not here:
        return None
    ours = [one for one in here if one.run_id.startswith(f"{plan.run_id}.") and one.status != VOID]
    others = [one for one in here if one not in ours]
    path = plan.place.ledger
    balance = balance_after(others, ours, path) if ours else balances(here, path)[0]
    reasons = (one.override for one in ours if one.override)
    kept, named = kept_limit(book), plan.config.ledger.limit
    return replace(
        balance,
        whose="this stream",
        limit=min((one for one in (kept, named) if one is not None), default=None),
        kept=kept,
        override=next(reasons, None),
        decisions=tuple(book.decisions),
    )


def settle(
    reservation: Reservation, status: str, why: str | None = None, bound: RecordBound | None = None
) -> None:
    """Say what became of a reservation: spent after the commit, void where nothing can have been written.

    Spent marks what earlier attempts of the run reserved for the same draws, too; void and reserved only this attempt's own.

    Args:
        reservation: of the run.
        status: spent, void or reserved.
        why: it has that status.
        bound: what the longest record was found to cost, its number of words rounded up.

    Raises:
        RunError: the ledger cannot be written.
    """
    mine = [one for one in reservation.entries if one.why is None]
    # An earlier attempt that was void is left so: its draws count by the entries of this one.
    earlier = reservation.earlier if status == SPENT else ()
    now = runs.utc(time.time())
    rows = [
        replace(one if bound is None else _costing(one, bound), at=now, status=status, why=why)
        for one in (*mine, *earlier)
    ]
    add(reservation.spark, reservation.path, rows)


def failed(reservation: Reservation, plan: RunPlan, left: list[str], started: float) -> None:
    """Settle a run that failed before its commit: void if it is known that no file of it can be anywhere, else it counts."""
    if left:
        return settle(reservation, RESERVED, f"failed; files of it are left behind: {len(left)}")
    if not plan.place.target.path:
        return settle(reservation, RESERVED, "failed; whether files are left of a table by name is not known")
    if not _quiet(plan.spark) or leftover_files(plan.spark, plan.place.target, started):
        return settle(reservation, RESERVED, "failed; its tasks may have left files behind")
    settle(reservation, VOID, "failed before its commit, and no file is left of it")


def _forgotten(
    plan: RunPlan, there: list[Entry], here: Book, commits: Sequence[Commit] | None
) -> Collection[str]:
    """Return the runs of ours in the target's history, where the ledger neither knows one of them nor was begun anew for it.

    An empty ledger, or none, beside such a target would take what was released for nothing. The history is read only where no
    entry is of the target.
    """
    output = str(plan.place.target)
    counted = {one.run_id for one in there if one.status != VOID}
    if any(one.output == output and one.status != VOID for one in there):
        return ()
    if any(one.status == BEGUN and one.output == output for one in here.decisions):
        return ()
    released = set(our_commits(plan.commits() if commits is None else commits))
    return () if counted & released else released


def _lost(plan: RunPlan, released: Collection[str]) -> RunError:
    return RunError(
        f"ledger.path: the history of {str(plan.place.target)!r} holds {len(released):,} release(s) of this tool, and the "
        f"ledger in {plan.place.ledger!r} knows none of them: it is empty or gone, or another one. Valid: the ledger that "
        "counted them; or ledger.override with the reason, which lets it begin anew and is recorded. Nothing was written."
    )


def decision(asked: Entry, here: Book, status: str, limit: float | None, why: str | None) -> Decision:
    """Return the row for what a run's settings decide; it comes after those that are there, whatever the clocks say."""
    latest = [one.at + timedelta(microseconds=1) for one in here.decisions]
    return Decision(
        f"{asked.attempt}.{status}", asked.attempt, max([asked.at, *latest]), asked.run_id, asked.input, asked.input_id, status,
        limit, why, asked.output,
    )  # fmt: skip


def _costing(entry: Entry, bound: RecordBound | None) -> Entry:
    """Return an entry with what its longest record was found to cost."""
    if bound is None:
        return entry.costing(None, None, None)
    return entry.costing(bound.draws, bound.epsilon, bound.delta)


def ledger_bound(plan: RunPlan, units: Units | None) -> RecordBound | None:
    """Return what the longest record costs, its words counted up to the next quarter power of two; None where there is no ε.

    The ledger may be shared, and how many words were drawn depends on the text.

    Args:
        plan: the run.
        units: of its records; None where they are not known.
    """
    account = plan.facts.record
    if account is None or plan.facts.is_refuted or units is None or units.max is None:
        return None
    if plan.stream is not None and plan.config.record_key not in (None, plan.config.row_key):
        return None  # other rows of a record may come in other micro-batches
    return account.of(quarter_power(math.ceil(units.max)))


def _asked(plan: RunPlan, source: Source, added_to: str | None) -> list[Entry]:
    """Return what a run asks for: an entry a text column."""
    guarantee, config = plan.guarantee, plan.config
    attempt = secrets.token_hex(8)
    made_from = read_manifest(plan.folder)
    return [
        Entry(
            entry=f"{attempt}.{number}",
            attempt=attempt,
            at=runs.utc(time.time()),
            run_id=plan.run_id,
            input=source.place,
            input_id=source.table_id,
            input_version=source.version,
            column=column,
            record_key=config.record_key or config.row_key or "row",
            unit=guarantee.unit,
            consistency=config.consistency,
            mechanism=shown_mechanism(config),
            kind=guarantee.kind,
            metric=metric_of(guarantee, config.mechanism, made_from) if guarantee.kind == METRIC else None,
            epsilon=float(guarantee.epsilon),
            delta=float(guarantee.delta),
            holds=not plan.facts.is_refuted and not plan.key.is_insecure,
            records=ADDED if added_to else ALL,
            release=release_of(plan, source, column, added_to or plan.run_id),
            status=RESERVED,
            why=None,
            limit=None,
            override=None,
            output=str(plan.place.target),
        )
        for number, column in enumerate(plan.columns)
    ]


def labelled(there: list[Entry], wanted: list[Entry], *, told_apart: bool) -> list[Entry]:
    """Say of entries which records they draw anew: those that changed, where the same draws were made of another version.

    That is known only where records are `told_apart` by their keys, or not at all: a place in a file is another one in the next
    version.
    """
    if not told_apart:
        return wanted
    here = (
        [one for one in of_input(there, wanted[0].input, wanted[0].input_id) if one.status != VOID]
        if wanted
        else []
    )
    again = {one.spend for one in wanted}
    known = {(one.release, one.column) for one in here if one.spend not in again}
    return [
        replace(one, records=CHANGED) if one.records == ALL and (one.release, one.column) in known else one
        for one in wanted
    ]


def own_entries(there: list[Entry], asked: list[Entry]) -> list[Entry]:
    """Return the entries of this run and target that count; void ones are left out."""
    here = of_input(there, asked[0].input, asked[0].input_id)
    named = (asked[0].run_id, asked[0].output)
    return [one for one in here if (one.run_id, one.output) == named and one.status != VOID]


def _earlier_attempt(mine: list[Entry], asked: list[Entry], plan: RunPlan, second: bool) -> list[Entry]:
    """Return entries for draws of an earlier key, where a second release was accepted and no entry stands for the first."""
    if not second or {one.release for one in mine} - {one.release for one in asked}:
        return []
    release, why = (
        plan.key.commitment(f"an earlier attempt of {plan.run_id}"),
        "an earlier attempt with another key",
    )
    return [replace(one, entry=f"{one.entry}.earlier", release=release, why=why) for one in asked]


def _quiet(spark: SparkSession) -> bool:
    """Wait until no task runs any more: a task of a failed job may still be writing. False where that is not known."""
    context = context_of(spark)
    if context is None:
        return False
    until = time.monotonic() + QUIET
    while time.monotonic() < until:
        executors = context._jsc.sc().statusTracker().getExecutorInfos()
        if not any(one.numRunningTasks() for one in executors):
            return True
        time.sleep(0.1)
    return False
