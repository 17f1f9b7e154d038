"""The budget ledger: what a run asks for, reserved before the first data file and settled after the commit."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dptext_spark.artifact import read_manifest
from dptext_spark.budget.balance import Balance, allowed, balances
from dptext_spark.budget.balance import after as balance_after
from dptext_spark.budget.entries import (
    ADDED,
    ALL,
    CHANGED,
    FORMAT,
    METRIC,
    RESERVED,
    SPENT,
    VOID,
    Entry,
    of_input,
)
from dptext_spark.errors import DPTextError, RunError, SettingsError
from dptext_spark.settings.locations import absolute
from dptext_spark.spark import runs
from dptext_spark.spark.entries import add, appended, entries_of
from dptext_spark.spark.failures import reduced, silenced
from dptext_spark.spark.releases import Source, metric_of, release_of, shown_mechanism, source_of
from dptext_spark.spark.session import context_of, spark_session
from dptext_spark.spark.setup import Setup
from dptext_spark.spark.tables import leftover_files

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
    """

    spark: SparkSession
    path: str
    entries: tuple[Entry, ...]
    earlier: tuple[Entry, ...]
    balance: Balance

    @property
    def cumulative(self) -> str:
        """The balance as the `runs` row holds it, JSON."""
        return json.dumps(self.balance.as_dict(), ensure_ascii=False)


def reserve(
    setup: Setup, *, added_to: str | None = None, committed: bool = False, second: bool = False
) -> Reservation:
    """Reserve what a run will spend, before its first data file.

    Args:
        setup: the run, or a micro-batch as a run of its own.
        added_to: the run id of the stream of which this is a micro-batch, where all of its records are new to that stream:
            disjoint records, whose ε does not add up (parallel composition). None: they may have been released before.
        committed: the run committed already, and is only accounted for: nothing is refused.
        second: an attempt of the run with another key may have left files: it counts even where no entry is left of it.

    Raises:
        RunError: the limit would be passed and no override is given; the ledger cannot be written.
        DataError: what is there is no ledger, or one of a newer version.
    """
    path = setup.place.ledger
    try:
        source = source_of(setup)
        asked = _asked(setup, source, added_to)

        def decide(there: list[Entry]) -> tuple[list[Entry], Reservation]:
            mine = _mine(there, asked)
            wanted = [] if committed and mine else [*_earlier_attempt(mine, asked, setup, second), *asked]
            budget = setup.config.ledger
            override = budget.override or ("the run had committed before" if committed else None)
            decided = allowed(balance_after(there, wanted or mine, path), budget.limit, override)
            # What is said of the run is what all of its attempts have spent, and why they might.
            reasons = [one.override for one in mine if one.override] + [decided.override]
            others = [one for one in there if one not in mine]
            balance = replace(
                balance_after(others, [*mine, *wanted], path),
                limit=budget.limit,
                override=next(filter(None, reasons), None),
            )
            wanted = [
                replace(one, limit=budget.limit, override=decided.override)
                for one in _labelled(there, wanted, setup)
            ]
            # Draws of an earlier key were not committed: what was reserved for them stays so.
            releases = {one.release for one in (asked if wanted else mine)}
            earlier = [one for one in mine if one.release in releases and one.status == RESERVED]
            return wanted, Reservation(setup.spark, path, tuple(wanted), tuple(earlier), balance)

        return appended(setup.spark, path, decide)
    except DPTextError:
        raise
    except Exception as error:
        said = reduced(error, list(setup.columns))
        raise RunError(
            f"ledger: {path!r} cannot be written, and no run goes on without it. {said} Nothing was written to the target."
        ) from None


@contextmanager
def reserved(setup: Setup, *, committed: bool = False, second: bool = False) -> Iterator[Reservation]:
    """Reserve for what follows; what fails inside has written no data, so that its reservation is void."""
    reservation = reserve(setup, added_to=_stream_of(setup), committed=committed, second=second)
    try:
        yield reservation
    except BaseException:
        if not committed:
            with suppress(Exception):  # what stays reserved counts, and the other error is the news
                settle(reservation, VOID, "it failed before the write began")
        raise


def _stream_of(setup: Setup) -> str | None:
    """Return the run id of the stream whose micro-batch this is, where none of its rows can have been released by it before."""
    known = setup.config.stream.duplicates != "accept" and setup.config.row_key in setup.kept
    return setup.stream.stream if setup.stream is not None and known else None


def standing(setup: Setup) -> Balance | None:
    """Return what a stream's input comes to so far, with what its own micro-batches passed the limit for; None where nothing."""
    source = source_of(setup)
    _, entries = entries_of(setup.spark, setup.place.ledger)
    here = of_input(entries, source.place, source.table_id)
    if not here:
        return None
    ours = [one for one in here if one.run_id.startswith(f"{setup.run_id}.") and one.status != VOID]
    others = [one for one in here if one not in ours]
    path = setup.place.ledger
    balance = balance_after(others, ours, path) if ours else balances(here, path)[0]
    reasons = (one.override for one in ours if one.override)
    limit = setup.config.ledger.limit
    return replace(balance, whose="this stream", limit=limit, override=next(reasons, None))


def settle(reservation: Reservation, status: str, why: str | None = None) -> None:
    """Say what became of a reservation: spent after the commit, void where nothing can have been written.

    Spent marks what earlier attempts of the run reserved for the same draws, too; void and reserved only this attempt's own.

    Raises:
        RunError: the ledger cannot be written.
    """
    mine = [one for one in reservation.entries if one.why is None]
    # An earlier attempt that was void is left so: its draws count by the entries of this one.
    earlier = reservation.earlier if status == SPENT else ()
    now = runs.utc(time.time())
    rows = [replace(one, at=now, status=status, why=why) for one in (*mine, *earlier)]
    add(reservation.spark, reservation.path, rows)


def failed(reservation: Reservation, setup: Setup, left: list[str], started: float) -> None:
    """Settle a run that failed before its commit: void if it is known that no file of it can be anywhere, else it counts."""
    if left:
        return settle(reservation, RESERVED, f"failed; files of it are left behind: {len(left)}")
    if not setup.place.target.path:
        return settle(reservation, RESERVED, "failed; whether files are left of a table by name is not known")
    if not _quiet(setup.spark) or leftover_files(setup.spark, setup.place.target, started):
        return settle(reservation, RESERVED, "failed; its tasks may have left files behind")
    settle(reservation, VOID, "failed before its commit, and no file is left of it")


def read(
    path: str, spark: SparkSession | None = None, progress: Callable[[str], None] | None = None
) -> list[Balance]:
    """Return what a ledger says of each of its inputs.

    Raises:
        SettingsError: there is none.
        DataError: what is there is no ledger, or one of a newer version.
    """
    say = progress or (lambda step: None)
    path = absolute(path)
    session = spark or spark_session()
    say("reading the ledger")
    with silenced(session):
        try:
            version, entries = entries_of(session, path)
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise reduced(error, []) from None
    if version < 0:
        raise SettingsError(
            f"ledger: there is none in {path!r}; valid: the folder that a run named, <target>_audit/shareable/ledger unless "
            "ledger.path says otherwise."
        )
    return balances(entries, path)


def _asked(setup: Setup, source: Source, added_to: str | None) -> list[Entry]:
    """Return what a run asks for: an entry a text column."""
    guarantee, config = setup.privatizer.guarantee(), setup.config
    attempt = secrets.token_hex(8)
    refuted = "refuted" in (guarantee.status, (setup.certificate or {}).get("verdict"))
    manifest = read_manifest(setup.folder)
    return [
        Entry(
            entry=f"{attempt}.{number}",
            attempt=attempt,
            at=runs.utc(time.time()),
            run_id=setup.run_id,
            input=source.place,
            input_id=source.table_id,
            input_version=source.version,
            column=column,
            record_key=config.record_key or config.row_key or "row",
            unit=guarantee.unit,
            consistency=config.consistency,
            mechanism=shown_mechanism(config.spec()),
            kind=guarantee.kind,
            metric=metric_of(guarantee, config.spec(), manifest) if guarantee.kind == METRIC else None,
            epsilon=float(guarantee.epsilon),
            delta=float(guarantee.delta),
            holds=not refuted and not setup.key.is_insecure,
            records=ADDED if added_to else ALL,
            release=release_of(setup, source, column, added_to or setup.run_id),
            status=RESERVED,
            why=None,
            limit=None,
            override=None,
            output=str(setup.place.target),
            format_version=FORMAT,
        )
        for number, column in enumerate(setup.columns)
    ]


def _labelled(there: list[Entry], wanted: list[Entry], setup: Setup) -> list[Entry]:
    """Say of entries which records they draw anew: those that changed, where the same draws were made of another version.

    That is known only where records are told apart by their keys: a place in a file is another one in the next version.
    """
    if setup.config.consistency != "dataset" and not (setup.config.row_key or setup.config.record_key):
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


def _mine(there: list[Entry], asked: list[Entry]) -> list[Entry]:
    """Return what stands there of the run that asks, and counts."""
    here = of_input(there, asked[0].input, asked[0].input_id)
    named = (asked[0].run_id, asked[0].output)
    return [one for one in here if (one.run_id, one.output) == named and one.status != VOID]


def _earlier_attempt(mine: list[Entry], asked: list[Entry], setup: Setup, second: bool) -> list[Entry]:
    """Return entries for draws of an earlier key, where a second release was accepted and no entry stands for the first."""
    if not second or {one.release for one in mine} - {one.release for one in asked}:
        return []
    release, why = (
        setup.key.commitment(f"an earlier attempt of {setup.run_id}"),
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
