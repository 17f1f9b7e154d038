"""The budget ledger: reserve the ε of a run before its first data file, and settle it after the commit.

A function of SQL is charged before it exists, with an entry for the input that its registration names.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from pyspark.sql import SparkSession

from dptext_spark.config.sections import Input, Ledger, Section
from dptext_spark.config.values import as_settings_error, check_left
from dptext_spark.errors import DataError, DPTextError, RunError
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Balance, allowed, balances, bound_by, kept_limit, record_after
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
from dptext_spark.model.artifact import Manifest, read_manifest
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.model.record import RecordUnits
from dptext_spark.model.target_checks import Commit, our_commits
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.validation import Json
from dptext_spark.spark.column_function import key_column
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.entries import (
    ReleaseSpec,
    Source,
    add,
    appended,
    check_ledger_writable,
    check_single_ledger,
    entries_of,
    ledger_of,
    metric_of,
    metric_of_model,
    release_of,
    shown_mechanism,
    source_at,
    source_of,
)
from dptext_spark.spark.job.planned_run import RunPlan
from dptext_spark.spark.nested_columns import paths_of
from dptext_spark.spark.session import context_of
from dptext_spark.spark.spark_errors import reduced
from dptext_spark.spark.tables import leftover_files, read_input

QUIET = 20.0  # seconds that tasks of a failed write are waited for


@dataclass(frozen=True, eq=False)
class Reservation:
    """The reserved ε of a run.

    Attributes:
        spark: the session.
        path: folder of the ledger.
        entries: that this reservation wrote; none where they were there already.
        earlier: entries that earlier attempts of the run reserved for the same draws.
        balance: balance of the input with them.
        again: an earlier attempt of the run is in the ledger.
        others: further entries of the input; `ours` are this run's.
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
        return json.dumps(self.balance.as_dict(), ensure_ascii=False)

    def cumulative_with(self, bound: RecordBound | None) -> str:
        """Return the same, with what the longest record was found to cost while the run wrote."""
        if bound is None or not self.ours:
            return self.cumulative
        ours = [entry.costing(bound) for entry in self.ours]
        return replace(self, balance=self.balance.with_record(record_after(self.others, ours))).cumulative


@dataclass(frozen=True)
class Request:
    """A request to a ledger for one input.

    Attributes:
        asked: an entry a text column.
        new: the entries to write; none if an earlier attempt wrote them.
        settings: the limit, and the reason to raise it.
        override: the reason to pass the limit.
        told_apart: records have keys, or need no identity.
        mine: entries of earlier attempts.
        is_committed: nothing is refused, and no limit is raised.
        begins: the ledger is begun anew.
        whose: subject of the request, in words.
    """

    asked: list[Entry]
    new: list[Entry]
    settings: Ledger
    override: str | None
    told_apart: bool
    mine: Sequence[Entry] = ()
    is_committed: bool = False
    begins: bool = False
    whose: str = "this run"


def granted(
    spark: SparkSession, path: str, book: Book, request: Request
) -> tuple[list[Entry | Decision], Reservation]:
    """Decide by a ledger's entries whether more may be spent; return the rows to write, and the reservation.

    Raises:
        RunError: the limit would be passed, or is raised, without a reason.
    """
    new, mine, settings, first = request.new, request.mine, request.settings, request.asked[0]
    known_entries, here = book.entries, book.of_input(first.input, first.input_id)
    ledger_limit, named = kept_limit(here), settings.limit
    if request.is_committed and ledger_limit is not None and named is not None and not settings.raise_limit:
        named = min(named, ledger_limit)
    limit, keeps = bound_by(here, first.input, named, settings.raise_limit)
    balance = balance_after(known_entries, new or mine, path)
    override = allowed(balance, limit, request.override, named=named is not None).override
    decisions = []
    if new and request.begins:
        decisions.append(decision(first, here, BEGUN, None, request.override))
    if new and keeps:  # a first limit needs no reason
        decisions.append(
            decision(first, here, LIMIT, limit, None if ledger_limit is None else settings.raise_limit)
        )
    new = [
        replace(entry, limit=limit, override=override)
        for entry in labelled(known_entries, new, told_apart=request.told_apart)
    ]
    if mine:  # messages name the ε of all attempts, and their reason
        balance = balance_after([entry for entry in known_entries if entry not in mine], [*mine, *new], path)
    decided = [*here.decisions, *decisions]
    balance = replace(
        balance,
        limit=limit,
        override=next((entry.override for entry in mine if entry.override), override),
        kept=kept_limit(here._replace(decisions=decided)),
    ).stated(decided, request.whose)
    # Draws of an earlier key were not committed: their reservation stays.
    releases = {entry.release for entry in (request.asked if new else mine)}
    earlier = [entry for entry in mine if entry.release in releases and entry.status == RESERVED]
    ours = {entry.entry: entry for entry in (*mine, *new)}
    others = tuple(entry for entry in here.entries if entry.entry not in ours)
    return [*new, *decisions], Reservation(
        spark, path, tuple(new), tuple(earlier), balance, bool(mine), others, tuple(ours.values())
    )  # fmt: skip


def reserve(
    plan: RunPlan, *, added_to: str | None = None, committed: bool = False, second: bool = False,
    commits: Sequence[Commit] | None = None,
) -> Reservation:  # fmt: skip
    """Reserve the ε of a run, before its first data file.

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
        DataError: the table is no ledger, a damaged one, or one of another schema version.
    """
    path, config = plan.place.ledger, plan.config
    override = config.ledger.override or ("the run had committed before" if committed else None)
    told_apart = bool(config.row_key or config.record_key) or config.consistency == "dataset"
    try:
        source = source_of(plan)
        if not committed:
            check_single_ledger(plan.spark, config.input, config.ledger, source.place, source.table_id)
        asked = _asked(plan, source, added_to)

        def decide(book: Book) -> tuple[list[Entry | Decision], Reservation]:
            mine = own_entries(book.entries, asked)
            new = [] if committed and mine else [*_earlier_attempt(mine, asked, plan, second), *asked]
            begins = bool(new) and _begins(plan, book, asked[0], commits, override)
            return granted(
                plan.spark, path, book,
                Request(asked, new, config.ledger, override, told_apart, mine, committed, begins),
            )  # fmt: skip

        return appended(plan.spark, path, decide)
    except DPTextError:
        raise
    except Exception as error:
        raise RunError(
            f"ledger: {path!r} cannot be written, and each run needs a ledger. "
            f"{reduced(error, plan.columns)} Nothing was written to the target."
        ) from None


@contextmanager
def reserved(
    plan: RunPlan, *, committed: bool = False, second: bool = False, commits: Sequence[Commit] | None = None
) -> Iterator[Reservation]:
    """Reserve for the block. A failure inside has written no data, so its reservation is void."""
    # No row of a micro-batch can have been released by its stream before, unless rows may come again.
    stream, may_repeat = plan.stream, plan.config.stream.duplicates == "accept"
    added_to = None if stream is None or may_repeat else stream.stream
    reservation = reserve(plan, added_to=added_to, committed=committed, second=second, commits=commits)
    with nullcontext() if committed else void_if_it_fails(reservation, "it failed before the write began"):
        yield reservation


@contextmanager
def void_if_it_fails(reservation: Reservation, why: str) -> Iterator[None]:
    """Void a reservation where the block fails, which releases nothing then."""
    try:
        yield
    except BaseException:
        # Should this fail too, the entries stay reserved and so count; the error to report is the first one.
        with suppress(Exception):
            settle(reservation, VOID, why)
        raise


def standing(plan: RunPlan) -> Balance | None:
    """Compute the balance of a stream's input so far, with the override of its micro-batches; None without entries."""
    source = source_of(plan)
    book = entries_of(plan.spark, plan.place.ledger).of_input(source.place, source.table_id)
    here = book.entries
    if not here:
        return None
    ours = [entry for entry in here if entry.run_id.startswith(f"{plan.run_id}.") and entry.status != VOID]
    others = [entry for entry in here if entry not in ours]
    path = plan.place.ledger
    balance = balance_after(others, ours, path) if ours else balances(here, path)[0]
    reasons = (entry.override for entry in ours if entry.override)
    ledger_limit, named = kept_limit(book), plan.config.ledger.limit
    return replace(
        balance,
        limit=min((limit for limit in (ledger_limit, named) if limit is not None), default=None),
        kept=ledger_limit,
        override=next(reasons, None),
    ).stated(book.decisions, "this stream")


def settle(
    reservation: Reservation, status: str, why: str | None = None, bound: RecordBound | None = None
) -> None:
    """Record the end of a reservation: spent after the commit, void if nothing can have been written.

    Spent also marks reservations of earlier attempts for the same draws; void and reserved mark only this attempt's own.

    `bound` is the ε of the longest record, its number of words rounded up.

    Raises:
        RunError: the ledger cannot be written.
    """
    mine = [entry for entry in reservation.entries if entry.why is None]
    # An earlier attempt that was void is left so: its draws count by the entries of this one.
    earlier = reservation.earlier if status == SPENT else ()
    now = runs.utc(time.time())
    rows = [
        replace(entry if bound is None else entry.costing(bound), at=now, status=status, why=why)
        for entry in (*mine, *earlier)
    ]
    add(reservation.spark, reservation.path, rows)


def failed(reservation: Reservation, plan: RunPlan, left: list[str], started: float) -> None:
    """Settle a run that failed before its commit: void if surely none of its files exists, else it counts."""
    if left:
        return settle(reservation, RESERVED, f"failed; files of it are left behind: {len(left)}")
    if not plan.place.target.path:
        return settle(reservation, RESERVED, "failed; whether files are left of a table by name is not known")
    if not _quiet(plan.spark) or leftover_files(plan.spark, plan.place.target, started):
        return settle(reservation, RESERVED, "failed; its tasks may have left files behind")
    settle(reservation, VOID, "failed before its commit, and no file is left of it")


def _begins(
    plan: RunPlan, book: Book, asked: Entry, commits: Sequence[Commit] | None, override: str | None
) -> bool:
    """Check whether the ledger is begun anew: it neither knows a run of ours in the target's history nor was begun for it.

    An empty ledger, or none, would take the releases of such a target for nothing. The history is read only where no entry is of
    the target.
    """
    output = str(plan.place.target)
    if any(entry.output == output and entry.status != VOID for entry in book.entries):
        return False
    decisions = book.of_input(asked.input, asked.input_id).decisions
    if any(row.status == BEGUN and row.output == output for row in decisions):
        return False
    released = our_commits(plan.commits() if commits is None else commits).keys()
    if not released or released & {entry.run_id for entry in book.entries if entry.status != VOID}:
        return False
    if override is None:
        raise RunError(
            f"ledger.path: the history of {output!r} holds {len(released):,} release(s) of dptext, but the ledger in "
            f"{plan.place.ledger!r} knows none. Use the ledger that counted them. If it is lost, set ledger.override "
            "with the reason: the ledger begins anew and records it. Nothing was written."
        )
    return True


def decision(asked: Entry, here: Book, status: str, limit: float | None, why: str | None) -> Decision:
    """Return the row of a run's decision; it comes after all present rows, independent of clocks."""
    latest = [earlier.at + timedelta(microseconds=1) for earlier in here.decisions]
    return Decision(
        f"{asked.attempt}.{status}", asked.attempt, max([asked.at, *latest]), asked.run_id, asked.input, asked.input_id, status,
        limit, why, asked.output,
    )  # fmt: skip


def ledger_bound(plan: RunPlan, units: RecordUnits | None) -> RecordBound | None:
    """Compute the ε of the longest record, its words rounded up to a quarter power of two; None without ε.

    The ledger may be shared, and the number of drawn words depends on the text.
    """
    account = plan.facts.record
    if account is None or plan.facts.is_refuted or units is None or units.max is None:
        return None
    if plan.stream is not None and plan.config.record_key not in (None, plan.config.row_key):
        return None  # other rows of a record may come in other micro-batches
    return account.of(quarter_power(math.ceil(units.max)))


def _asked(plan: RunPlan, source: Source, added_to: str | None) -> list[Entry]:
    """Return the requested entries of a run, one a text column."""
    guarantee, config = plan.guarantee, plan.config
    attempt, made_from = secrets.token_hex(8), read_manifest(plan.folder)
    metric = metric_of(guarantee, config.mechanism, made_from) if guarantee.kind == METRIC else None
    return [
        entry_of(
            source,
            guarantee,
            entry=f"{attempt}.{number}",
            attempt=attempt,
            run_id=plan.run_id,
            column=column,
            record_key=config.record_key or config.row_key or "row",
            consistency=config.consistency,
            mechanism=shown_mechanism(config),
            metric=metric,
            holds=not plan.facts.is_refuted and not plan.key.is_insecure,
            records=ADDED if added_to else ALL,
            release=release_of(plan, source, column, added_to or plan.run_id),
            output=str(plan.place.target),
        )
        for number, column in enumerate(plan.columns)
    ]


def entry_of(source: Source, guarantee: Guarantee, **known: Any) -> Entry:
    """Return an entry that reserves a release of an input now; `known` are its fields of the release."""
    return Entry(
        at=runs.utc(time.time()),
        input=source.place,
        input_id=source.table_id,
        input_version=source.version,
        unit=guarantee.unit,
        kind=guarantee.kind,
        epsilon=float(guarantee.epsilon),
        delta=float(guarantee.delta),
        status=RESERVED,
        why=None,
        limit=None,
        override=None,
        **known,
    )


def labelled(known_entries: list[Entry], new: list[Entry], *, told_apart: bool) -> list[Entry]:
    """Mark which records entries draw anew: the changed ones, if the same draws were made of another version.

    That is known only if records are `told_apart` by keys, or need no identity: places in files change with versions.
    """
    if not told_apart or not new:
        return new
    again = {entry.spend for entry in new}
    known = {
        (entry.release, entry.column)
        for entry in of_input(known_entries, new[0].input, new[0].input_id)
        if entry.status != VOID and entry.spend not in again
    }
    return [
        replace(entry, records=CHANGED)
        if entry.records == ALL and (entry.release, entry.column) in known
        else entry
        for entry in new
    ]


def own_entries(known_entries: list[Entry], asked: list[Entry]) -> list[Entry]:
    """Return the entries of this run and target that count; void ones are left out."""
    here = of_input(known_entries, asked[0].input, asked[0].input_id)
    named = (asked[0].run_id, asked[0].output)
    return [entry for entry in here if (entry.run_id, entry.output) == named and entry.status != VOID]


def _earlier_attempt(mine: list[Entry], asked: list[Entry], plan: RunPlan, second: bool) -> list[Entry]:
    """Return entries for draws of an earlier key, if a second release was accepted and the first has no entry."""
    if not second or {entry.release for entry in mine} - {entry.release for entry in asked}:
        return []
    release = plan.key.commitment(f"an earlier attempt of {plan.run_id}")
    why = "an earlier attempt with another key"
    return [replace(entry, entry=f"{entry.entry}.earlier", release=release, why=why) for entry in asked]


def _quiet(spark: SparkSession) -> bool:
    """Wait until no task runs any more: a task of a failed job may still be writing. False where that is not known."""
    context = context_of(spark)
    if context is None:
        return False
    until = time.monotonic() + QUIET
    while time.monotonic() < until:
        executors = context._jsc.sc().statusTracker().getExecutorInfos()
        if not any(executor.numRunningTasks() for executor in executors):
            return True
        time.sleep(0.1)
    return False


class ChargeSettings(Section):
    """Ledger and input of a registration: two sections of the settings."""

    input: Input
    ledger: Ledger

    @classmethod
    def of(cls, ledger: str | Mapping[str, str | float] | None, source: Mapping[str, str]) -> ChargeSettings:
        """Read the caller's values.

        Raises:
            SettingsError: a field that is not one of these sections.
        """
        settings = {"path": ledger} if isinstance(ledger, str) else dict(ledger or {})
        check_left({"ledger": settings})
        try:
            return cls.model_validate({"input": dict(source), "ledger": settings})
        except ValidationError as error:
            raise as_settings_error(error, cls) from None


@dataclass(frozen=True, eq=False)
class RegistrationSpec:
    """A request to register a function.

    Attributes:
        name: of the function.
        model: that draws.
        column: the text column, in its one spelling.
        run_id: that token-level draws are for.
        key: the run key.
        row_key: the column that the identity is, where it is the row's.
        record_key: the same, where it is the record's.
    """

    name: str
    model: Privatizer
    column: str
    run_id: str
    key: RunKey
    row_key: str | None
    record_key: str | None

    @property
    def output(self) -> str:
        """The ledger's substitute for a target."""
        return f"function {self.name}"

    @property
    def release_spec(self) -> ReleaseSpec:
        """All that the draws depend on; the same as in a run over this column alone."""
        by_record = self.model.consistency == "record" and self.record_key is not None
        identity = ("record_key", self.record_key) if by_record else ("row_key", self.row_key)
        chosen_in = () if self.model.selector is None else (self.column,)
        return ReleaseSpec(self.model, self.column, self.run_id, identity, chosen_in)

    def entry(self, charge: ChargeSettings, source: Source) -> Entry:
        """Return the ledger's entry, without the unknown ε of its longest record."""
        guarantee, attempt = self.model.guarantee(), secrets.token_hex(8)
        return entry_of(
            source,
            guarantee,
            entry=f"{attempt}.0",
            attempt=attempt,
            run_id=self.run_id,
            column=self.column,
            record_key=self.record_key or self.row_key or "row",
            consistency=self.model.consistency,
            mechanism=_mechanism_json(self.model),
            metric=metric_of_model(guarantee, self.model) if guarantee.kind == METRIC else None,
            holds=guarantee.status != "refuted" and not self.key.is_insecure,
            records=ALL,
            release=self.release_spec.release(self.key, charge.input, source),
            output=self.output,
        )


def _mechanism_json(model: Privatizer) -> str:
    """Return the mechanism as JSON, by the model's fingerprint: a compiled model does not know its settings."""
    described = Manifest.of_privatizer(model)
    description: dict[str, Json] = {"sampler": described.sampler.sampler, "model": model.fingerprint}
    if described.importance is not None:
        description["importance"] = described.importance.selection.as_dict()
    if described.budget is not None:
        description["budget"] = described.budget.budget.as_dict()
    return json.dumps({**description, "engine": ENGINE_VERSION}, ensure_ascii=False)


def checked_source(spark: SparkSession, spec: RegistrationSpec, charge: ChargeSettings) -> Source:
    """Find the input of a registration's charge, and check its schema; no row is read.

    Raises:
        DataError: it cannot be read, or lacks one of the columns that are named; the text is no text, or one of a list.
        SettingsError: an identity of a type that identifies nothing.
    """
    df, version = read_input(spark, charge.input, [spec.column])
    (path,) = paths_of(df.schema, [spec.column])
    if path.name != spec.column:
        raise DataError(
            f"column: {spec.column!r} is spelt {path.name!r} in the input, and token-level draws depend "
            f"on the spelling. Use {path.name!r}."
        )
    if path.over:
        raise DataError(
            f"column: {spec.column!r} holds several texts in a row. Name a column with one text, or use "
            "dps.privatize or `dptext run` for lists."
        )
    for field, name in (("row_key", spec.row_key), ("record_key", spec.record_key)):
        if name is not None:
            if name not in df.columns:
                raise DataError(
                    f"{field}: {name!r} is not in the input; columns there: {', '.join(df.columns)}."
                )
            key_column(df, name, field)
    return source_at(spark, charge.input, df, version, spec.run_id, None)


@contextmanager
def charged(spark: SparkSession, spec: RegistrationSpec, charge: ChargeSettings) -> Iterator[Balance]:
    """Charge a registration before what follows, which makes the function: spent where that succeeds, else void.

    Raises:
        RunError: the limit would be passed, or the ledger cannot be written; nothing was charged.
        DataError: what is there is no ledger, or a damaged one.
    """
    path = ledger_of(spark, charge.input, charge.ledger)
    check_ledger_writable(spark, charge.input, path)
    try:
        source = checked_source(spark, spec, charge)
        check_single_ledger(spark, charge.input, charge.ledger, source.place, source.table_id)
        entry = spec.entry(charge, source)
        told_apart = spec.model.consistency == "dataset" or bool(spec.row_key or spec.record_key)
        request = Request(
            [entry], [entry], charge.ledger, charge.ledger.override, told_apart, whose="this registration"
        )
        reservation = appended(spark, path, lambda book: granted(spark, path, book, request))
    except DPTextError:
        raise
    except Exception as error:
        raise RunError(
            f"ledger: {path!r} cannot be written, and each registration needs a ledger. {reduced(error, [spec.column])}"
        ) from None
    with void_if_it_fails(reservation, "the function was not registered"):
        yield reservation.balance
    settle(reservation, SPENT, "charged when the function was registered")
