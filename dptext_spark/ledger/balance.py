"""Add up the ε of all releases of an input, and decide whether a run may spend more.

Sums of ε and δ are exact and rounded up. Bounds of different kinds are never added. Each sum is also a sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dptext_spark.errors import RunError
from dptext_spark.guarantee import compared
from dptext_spark.ledger.entry import (
    ADDED,
    BEGUN,
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
from dptext_spark.rounding import exact
from dptext_spark.runtime.validation import Json, Record, Unbounded

WITHIN = "epsilon_dp_within_group"
RECORD = "the longest record"
_UP = Context(prec=1_000, rounding=ROUND_CEILING)
_DOWN = Context(prec=1_000, rounding=ROUND_FLOOR)


@dataclass(frozen=True, kw_only=True)
class Total(Record):
    """Sum of the bounds of releases, where bounds may be added: of a word, or of a record with its draws in all text columns.

    Attributes:
        metric: distance that ε is for; None for bounds between any two compared words.
        unit: word, record or another unit of ε; `RECORD` for the sum over a record.
        epsilon: the sum; infinite where a guarantee among them does not hold.
        delta: the sum, at most 1.
        within: at least one bound compares only words that share an output set.
        times: how often ε was spent.
        without: of a record: releases whose mechanisms give no ε for one.
        more: of a record: the share of the current run.
    """

    metric: str | None = None
    unit: str = RECORD
    epsilon: Unbounded
    delta: float
    within: bool = False
    times: int
    without: int = 0
    more: Unbounded = 0.0

    def as_dict(self) -> dict[str, Json]:
        """Return the fields of a word's or of a record's sum, JSON-able."""
        others = ("metric", "unit", "within") if self.unit == RECORD else ("without", "more")
        return {name: value for name, value in super().as_dict().items() if name not in others}

    def __str__(self) -> str:
        """Return the figure as a part of a sentence."""
        if math.isinf(self.epsilon):
            return f"no ε at all for {self.unit}: a guarantee was refuted, or a key was no secret"
        releases = "release" if self.without == 1 else "releases"
        lacking = f"{self.without:,} {releases} without a figure for a record" if self.without else ""
        if not self.times:
            return lacking or "nothing"
        delta = f" and δ = {exact(self.delta)}" if self.delta else ""
        per = "" if self.metric is None else f" for each unit of distance ({self.metric})"
        words = compared(WITHIN if self.within else METRIC, self.metric)
        within = "" if words == "words" else f", between {words}"
        times = "spent once" if self.times == 1 else f"spent {self.times:,} times"
        also = lacking and f", and {lacking}"
        return f"ε = {exact(self.epsilon)}{delta}{per} for {self.unit}{within} ({times}){also}"


@dataclass(frozen=True)
class Spent(Record):
    """ε spent on one word of a column: by kind of bound, and the total that a limit applies to.

    Attributes:
        column: the text column.
        figures: one for each unit and distance. Figures without a distance add; figures by distances hold side by side.
        total: the sum of all ε, whatever their kind: at least as large as any figure.
        more: the share of the current run.
        left: remainder of the limit, in an account; None without a limit.
    """

    column: str
    figures: tuple[Total, ...]
    total: Unbounded
    more: Unbounded = 0.0
    left: float | None = None

    def __str__(self) -> str:
        """Return the figures as a part of a sentence, with the sum of those that add."""
        plain = [figure for figure in self.figures if figure.metric is None]
        parts = [figure for figure in self.figures if figure.metric is not None]
        added = " and ".join(map(str, plain))
        if self.joint_epsilon is not None:
            added += f", together ε = {exact(self.joint_epsilon)} for a word that stands once"
        beside = "; and beside it, by a distance and not to be added, "
        return beside.join([*([added] if plain else []), *map(str, parts)]) or "nothing"

    @property
    def joint_epsilon(self) -> float | None:
        """The sum of several figures without a distance; None for a single figure, or if one has no ε.

        It holds for a word that occurs once in its record. The losses of independent draws add up.
        """
        plain = [figure.epsilon for figure in self.figures if figure.metric is None]
        if len(plain) < 2 or math.isinf(max(plain)):
            return None
        return _upward(_added(plain))

    @property
    def on(self) -> str:
        """The unit that ε was spent on, as a part of a sentence."""
        return f"one word of {self.column}"


def spent_on_record(entries: Iterable[Entry]) -> Total:
    """Add up the ε that entries of an input spent on its longest record.

    Entries of a release's columns share one figure. Equal draws of a version count once. Records added to a stream are disjoint,
    so only the largest micro-batch counts.
    """
    by_spend: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if entry.status != VOID:
            by_spend.setdefault(entry.spend, []).append(entry)
    # A release is the draws of one attempt of a run. It has one spend for each column, and more for draws of an earlier key.
    releases: dict[tuple[str, str, str], list[list[Entry]]] = {}
    for same in by_spend.values():
        first = same[0]
        releases.setdefault((first.run_id, first.output, first.attempt), []).append(same)
    epsilons, deltas, without, sound = [], [], 0, True
    for spends in releases.values():
        often = max(Counter(same[0].column.lower() for same in spends).values())
        sound &= all(entry.holds for same in spends for entry in same)
        figures = [_of_record(same) for same in spends]
        known = [figure for figure in figures if figure is not None]
        if len(known) < len(figures):
            without += often
            continue
        epsilons += [max(figure[0] for figure in known)] * often
        deltas += [max(figure[1] for figure in known)] * often
    total = _upward(_added(epsilons)) if sound else math.inf
    delta = min(1.0, _upward(_added(deltas)))
    return Total(epsilon=total, delta=delta, times=len(epsilons), without=without)


def _of_record(same: list[Entry]) -> tuple[float, float] | None:
    """Return (ε, δ) of a record in equal draws: the largest of a stream's micro-batches; None where one has no figure."""
    by_run: dict[str, tuple[float, float] | None] = {}
    for entry in same:
        name = entry.run_id if entry.records == ADDED else ""
        figure = (
            None
            if entry.record_epsilon is None
            else (float(entry.record_epsilon), float(entry.record_delta or 0.0))
        )
        largest = by_run.get(name)
        by_run[name] = figure if largest is None else largest if figure is None else max(largest, figure)
    known = [cost for cost in by_run.values() if cost is not None]
    if len(known) < len(by_run):
        return None
    return max(cost[0] for cost in known), max(cost[1] for cost in known)


def spent_on(entries: Iterable[Entry], column: str) -> Spent:
    """Add up the ε that entries of an input spent on each word of a column.

    At record and dataset level all occurrences of a word, in any column, are one unit. There other columns count, too.
    """
    by_spend: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        concerned = entry.consistency != "token" or entry.column.lower() == column.lower()
        if entry.status != VOID and concerned:
            spend = entry.spend
            if spend not in by_spend or not entry.holds:
                by_spend[spend] = entry
    groups: dict[tuple[str | None, str], list[Entry]] = {}
    for entry in by_spend.values():
        groups.setdefault(entry.bound, []).append(entry)
    ordered = sorted(groups.items(), key=lambda group: (group[0][0] or "", group[0][1]))
    figures = tuple(
        Total(
            metric=metric,
            unit=unit,
            epsilon=_sum(each),
            delta=min(1.0, _upward(_added(entry.delta for entry in each))),
            within=any(entry.kind == WITHIN for entry in each),
            times=len(each),
        )
        for (metric, unit), each in ordered
    )
    return Spent(column, figures, _sum(by_spend.values()))


def difference(more: float, less: float) -> float:
    """Return the difference of two finite sums, rounded up."""
    return _upward(_UP.subtract(_decimal(more), _decimal(less)))


def left_of(limit: float, total: float) -> float:
    """Compute the remainder of a limit, rounded down; 0 if it is passed."""
    if math.isinf(total):
        return 0.0
    left = _DOWN.subtract(_decimal(limit), _decimal(total))
    rounded = float(left)
    return max(0.0, rounded if _decimal(rounded) <= left else math.nextafter(rounded, -math.inf))


def over(total: float, limit: float) -> bool:
    """Check whether a sum passes a limit, as both are printed."""
    return math.isinf(total) or _decimal(total) > _decimal(limit)


def _sum(entries: Iterable[Entry]) -> float:
    entries = list(entries)
    if not all(entry.holds for entry in entries):
        return math.inf
    return _upward(_added(entry.epsilon for entry in entries))


def _added(numbers: Iterable[float]) -> Decimal:
    """Add floats as the decimals that they are printed as: 0.1 and 0.2 is 0.3."""
    total = Decimal(0)
    for number, times in Counter(numbers).items():
        total = _UP.add(total, _UP.multiply(_decimal(number), times))
    return total


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))


def _upward(number: Decimal) -> float:
    """Compute the least float that is not printed as less than the number."""
    rounded = float(number)
    return rounded if _decimal(rounded) >= number else math.nextafter(rounded, math.inf)


@dataclass(frozen=True)
class Balance(Record):
    """ε spent on an input so far, as an account keeps it.

    Attributes:
        ledger: the folder of the ledger; it counts since `since`, a day.
        input: where the input is.
        columns: ε spent on each.
        unfinished: runs that count although they did not commit, as far as the ledger knows, without the current run.
        limit: binds the current run, or is kept; `override` is the run's reason to pass it.
        kept: the limit that the ledger keeps for the input.
        left: remainder of the limit, where most was spent.
        sentence: ε of all releases, in words.
        notes: explain which draws count.
        warnings: for the Warnings section.
        record: ε spent on one record.
    """

    ledger: str
    since: str
    input: str
    columns: tuple[Spent, ...]
    unfinished: int = 0
    limit: float | None = None
    kept: float | None = None
    left: float | None = None
    override: str | None = None
    sentence: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    record: Total | None = None

    def stated(self, decisions: Iterable[Decision] = (), whose: str = "this run") -> Balance:
        """Return the balance with what is left of its limit, and with its sentences.

        `whose` names the owner of the figure `more`.
        """
        limit, columns = self.limit, self.columns
        if limit is not None:
            columns = tuple(replace(spent, left=left_of(limit, spent.total)) for spent in columns)
        left = min((spent.left for spent in columns if spent.left is not None), default=limit)
        balance = replace(self, columns=columns, left=left)
        return replace(
            balance,
            sentence=_sentence(columns, whose),
            notes=_notes(balance),
            warnings=_warnings(balance, decisions),
        )

    def with_record(self, record: Total) -> Balance:
        """Return the balance with another figure of a record."""
        balance = replace(self, record=record)
        return replace(balance, notes=_notes(balance))


def _sentence(columns: Sequence[Spent], whose: str) -> str:
    """Return the ε spent on one word over all releases, and the share of the current run, in words. It names no place."""
    parts = []
    for spent, named in _alike(columns):
        if not spent.more:
            more = f"{whose} added nothing"
        elif math.isinf(spent.total):
            more = f"{whose} is one of them"
        else:
            more = f"{whose} added {exact(spent.more)}"
        parts.append(f"{named}: {spent}; {more}")
    return f"All releases of the input in the ledger spent on {'. On '.join(parts)}."


def _notes(balance: Balance) -> tuple[str, ...]:
    """Return sentences on the draws that the figure counts and leaves out."""
    sentences = [
        "This is the figure of the worst record. It changed in every released version, and is in the part that input.where "
        "takes, because an input counts as a whole.",
        "The figure leaves out releases before the ledger began, releases under another ledger, and releases of another "
        "input with the same records, such as a copy, a clone or a view.",
    ]
    if any(
        not figure.unit.startswith("one occurrence") for spent in balance.columns for figure in spent.figures
    ):
        sentences.append(
            "If all occurrences of a word are one unit, a release of any column counts for every column."
        )
    left = balance.left
    if balance.limit is not None and left is not None:
        sentences.append(f"The limit is ε = {exact(balance.limit)}, and ε = {exact(left)} is left.")
        if balance.kept not in (None, balance.limit):
            sentences.append(
                f"The ledger keeps a higher limit for the input: ε = {exact(balance.kept or 0.0)}."
            )
    if balance.record is not None and (balance.record.times or balance.record.without):
        sentences.append(f"On one record, with all its drawn words: {balance.record}.")
    if balance.unfinished:
        sentences.append(
            f"Unfinished releases in this sum: {balance.unfinished:,}. They may have left draws behind."
        )
    return tuple(sentences)


def _warnings(balance: Balance, decisions: Iterable[Decision]) -> tuple[str, ...]:
    """Return sentences for the Warnings section."""
    sentences = [
        f"THE LEDGER WAS BEGUN ANEW by run {decision.run_id} on {decision.at:%Y-%m-%d}, because its entries were gone. It "
        f"does not count earlier releases. The reason given: {decision.why}"
        for decision in decisions
        if decision.status == BEGUN
    ]
    passed = [
        spent.total
        for spent in balance.columns
        if balance.limit is not None and over(spent.total, balance.limit)
    ]
    if balance.override is not None and passed:
        worst = max(passed)
        came = "no ε holds" if math.isinf(worst) else f"ε came to {exact(worst)}"
        sentences.append(
            f"THE LIMIT OF THE BUDGET WAS PASSED: {came} with ledger.limit {exact(balance.limit or 0.0)}, overridden with the "
            f"reason: {balance.override}"
        )
    return tuple(sentences)


def after(before: Sequence[Entry], asked: Sequence[Entry], ledger: str) -> Balance:
    """Compute the balance of an input after the requested entries are added to those of the ledger.

    All requested entries share an input and a run; there is at least one.
    """
    first = asked[0]
    earlier = of_input(before, first.input, first.input_id)
    columns = []
    for column in _columns([*earlier, *asked]):
        old, new = spent_on(earlier, column), spent_on([*earlier, *asked], column)
        columns.append(
            Spent(column, new.figures, new.total, _more(old.total, new.total, earlier, asked, column))
        )
    since = min(entry.at for entry in [*before, *asked])
    return Balance(
        ledger, f"{since:%Y-%m-%d}", first.input, tuple(columns), _unfinished(earlier, {entry.run_id for entry in asked}),
        record=record_after(earlier, asked),
    ).stated()  # fmt: skip


def record_after(there: Sequence[Entry], asked: Sequence[Entry]) -> Total:
    """Compute the ε spent on a record with the requested entries, and their share."""
    old, new = spent_on_record(there), spent_on_record([*there, *asked])
    if math.isinf(new.epsilon):
        return replace(new, more=0.0 if new == old else math.inf)
    return replace(new, more=difference(new.epsilon, old.epsilon))


def kept_limit(book: Book) -> float | None:
    """Return the limit that a ledger keeps for an input.

    Only a row with a reason raises it. Two inputs may turn out to be one: of their rows without a reason the least limit holds.
    """
    limit: float | None = None
    for decision in book.decisions:
        if decision.status == LIMIT and decision.limit is not None:
            limit = (
                decision.limit if limit is None or decision.why is not None else min(limit, decision.limit)
            )
    return limit


def bound_by(book: Book, place: str, named: float | None, why: str | None) -> tuple[float | None, bool]:
    """Return the limit that binds a run, and whether the ledger keeps it from now on.

    A `named` limit below the kept one binds this run only.

    Raises:
        RunError: the settings name a higher limit than the kept one without a reason.
    """
    ledger_limit = kept_limit(book)
    if ledger_limit is None or named is None:
        return (ledger_limit if named is None else named), named is not None
    if named <= ledger_limit:
        return named, False
    if why is not None:
        return named, True
    worst = _worst(book)
    spent = "no ε covers the releases" if math.isinf(worst) else f"ε = {exact(worst)} is spent"
    raise RunError(
        f"ledger.limit: {exact(named)} is above {exact(ledger_limit)}, the limit that the ledger keeps for {place}. So far, "
        f"{spent}, and ε = {exact(left_of(ledger_limit, worst))} is left. Choose null, or at most {exact(ledger_limit)}. Or "
        "raise the limit: give the reason as ledger.raise_limit, and the ledger keeps both. Nothing was written."
    )


def allowed(balance: Balance, limit: float | None, override: str | None, *, named: bool = True) -> Balance:
    """Return the balance with its limit, and with the reason if the limit needs one.

    `named` tells whether the run named the limit; else the ledger keeps it.

    Raises:
        RunError: the run spends, passes the limit, and no reason is given.
    """
    passed = [
        spent for spent in balance.columns if spent.more and limit is not None and over(spent.total, limit)
    ]
    if not passed or limit is None:
        return replace(balance, limit=limit).stated()
    if override is not None:
        return replace(balance, limit=limit, override=override).stated()
    worst = max(passed, key=lambda spent: spent.total)
    if math.isinf(worst.total):
        why = (
            "A guarantee of its releases was refuted, or their key is not secret. No ε covers them, so that nothing of the "
            "limit is left."
        )
    else:
        before = difference(worst.total, worst.more)
        why = (
            f"ε = {exact(before)} is spent on {worst.on} in {balance.input}, and ε = {exact(left_of(limit, before))} is "
            f"left. This run needs {exact(worst.more)} more, {exact(worst.total)} in total."
        )
    origin = "" if named else " (kept in the ledger)"
    raise RunError(
        f"ledger.limit: the run would pass {exact(limit)}{origin}. {why} Choose a greater limit; if the ledger keeps one, "
        "give the reason as ledger.raise_limit. The same draws spend nothing again: use a persistent key at record or "
        "dataset level, and the same model, engine and input version. Or give a reason as ledger.override: the ledger "
        "records it, and this run passes. Nothing was written."
    )


def balances(
    entries: Sequence[Entry], ledger: str, decisions: Sequence[Decision] = ()
) -> list[Balance]:  # fmt: skip
    """Compute the ε spent on each input of a ledger, in the order of their first releases."""
    inputs, left = [], Book(0, sorted(entries, key=lambda entry: entry.at), list(decisions))
    while left.entries:
        first = left.entries[0]
        here = left.of_input(first.input, first.input_id)
        columns = tuple(spent_on(here.entries, column) for column in _columns(here.entries))
        ledger_limit = kept_limit(here)
        inputs.append(
            Balance(
                ledger, f"{first.at:%Y-%m-%d}", first.input, columns, _unfinished(here.entries, set()), ledger_limit,
                ledger_limit, record=spent_on_record(here.entries),
            ).stated(here.decisions)
        )  # fmt: skip
        entered, decided = ({entry.entry for entry in rows} for rows in (here.entries, here.decisions))
        left = Book(
            0,
            [entry for entry in left.entries if entry.entry not in entered],
            [decision for decision in left.decisions if decision.entry not in decided],
        )
    return inputs


def _worst(book: Book) -> float:
    """Compute the greatest sum of any column of an input."""
    return max((spent_on(book.entries, column).total for column in _columns(book.entries)), default=0.0)


def _more(
    old: float, new: float, there: Sequence[Entry], asked: Sequence[Entry], column: str
) -> float:  # fmt: skip
    """Compute the added ε. Infinity has no difference: there the new spends decide."""
    if not math.isinf(new):
        return difference(new, old)
    known = {entry.spend for entry in there if entry.status != VOID}
    fresh = [entry for entry in asked if entry.spend not in known]
    concerned = spent_on(fresh, column).total
    return math.inf if concerned else 0.0


def _unfinished(entries: Iterable[Entry], but: set[str]) -> int:
    """Count runs that are reserved and not known to have committed."""
    done = {entry.spend for entry in entries if entry.status == SPENT}
    open_runs = {entry.run_id for entry in entries if entry.status == RESERVED and entry.spend not in done}
    return len(open_runs - but)


def _columns(entries: Iterable[Entry]) -> list[str]:
    """Return the columns, each once, in order."""
    return list({entry.column.lower(): entry.column for entry in entries}.values())


def _alike(columns: Sequence[Spent]) -> list[tuple[Spent, str]]:
    """Group columns that share one sentence."""
    groups: dict[tuple[str, float], list[Spent]] = {}
    for spent in columns:
        groups.setdefault((str(spent), spent.more), []).append(spent)
    return [
        (each[0], ", ".join((each[0].on, *(spent.column for spent in each[1:])))) for each in groups.values()
    ]
