"""What entries come to: sums of ε and δ that are exact, rounded up, and never of bounds of different kinds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dptext_spark.guarantee import compared
from dptext_spark.ledger.entry import ADDED, METRIC, VOID, Entry
from dptext_spark.rounding import exact
from dptext_spark.runtime.validation import Record, Unbounded

WITHIN = "epsilon_dp_within_group"
_UP = Context(prec=1_000, rounding=ROUND_CEILING)
_DOWN = Context(prec=1_000, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class Total(Record):
    """What releases come to, where their bounds may be added.

    Attributes:
        metric: the distance that ε is for; None for bounds between any words that are compared.
        unit: what ε is for.
        epsilon: the sum; infinite where a guarantee among them does not hold.
        delta: the sum, at most 1.
        within: one of them compares only words that share an output set.
        times: how often ε was spent.
    """

    metric: str | None
    unit: str
    epsilon: Unbounded
    delta: float
    within: bool
    times: int

    def __str__(self) -> str:
        """Return the figure as a part of a sentence."""
        if math.isinf(self.epsilon):
            return f"no ε at all for {self.unit}: a guarantee was refuted, or a key was no secret"
        delta = f" and δ = {exact(self.delta)}" if self.delta else ""
        per = "" if self.metric is None else f" for each unit of distance ({self.metric})"
        words = compared(WITHIN if self.within else METRIC, self.metric)
        within = "" if words == "words" else f", between {words}"
        times = "spent once" if self.times == 1 else f"spent {self.times:,} times"
        return f"ε = {exact(self.epsilon)}{delta}{per} for {self.unit}{within} ({times})"


@dataclass(frozen=True)
class Spent(Record):
    """What was spent on one word of a column: by kind of bound, and what a limit is compared with.

    Attributes:
        column: the text column.
        figures: one for each unit and distance. Those without a distance add; those by distances hold beside each other.
        total: the sum of all ε, whatever their kind: at least as large as any figure.
        more: what of it the run in hand added.
        left: of the limit, in an account; None where there is none.
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
        """The sum of several figures without a distance; None where there are not several, or no ε stands for one.

        It holds for a word that stands once in its record. The losses of independent draws add up.
        """
        plain = [figure.epsilon for figure in self.figures if figure.metric is None]
        if len(plain) < 2 or math.isinf(max(plain)):
            return None
        return _upward(_added(plain))

    @property
    def on(self) -> str:
        """What it was spent on, as a part of a sentence."""
        return f"one word of {self.column}"


@dataclass(frozen=True)
class RecordSpent(Record):
    """What releases come to over one record: its draws in all text columns of a release together.

    Attributes:
        epsilon: the sum over the releases whose figure is known; infinite where a guarantee among them does not hold.
        delta: the sum, at most 1.
        times: how many releases have a figure.
        without: how many have none: those of mechanisms whose records have no ε.
        more: what of it the run in hand added.
    """

    epsilon: Unbounded
    delta: float
    times: int
    without: int
    more: Unbounded = 0.0

    def __str__(self) -> str:
        """Return the figure as a part of a sentence."""
        if math.isinf(self.epsilon):
            return "no ε at all for a record: a guarantee was refuted, or a key was no secret"
        lacking = (
            f"{self.without:,} {'release' if self.without == 1 else 'releases'} without a figure for a record"
            if self.without
            else ""
        )
        if not self.times:
            return lacking or "nothing"
        delta = f" and δ = {exact(self.delta)}" if self.delta else ""
        times = "spent once" if self.times == 1 else f"spent {self.times:,} times"
        return f"ε = {exact(self.epsilon)}{delta} for the longest record ({times}){f', and {lacking}' if lacking else ''}"


def spent_on_record(entries: Iterable[Entry]) -> RecordSpent:
    """Add up what entries of one input spent on one record, the longest.

    Entries of the columns of one release have one figure together. Equal draws of one version count once; of records that were
    added to a stream, which are disjoint, the largest micro-batch counts.
    """
    by_spend: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if entry.status != VOID:
            by_spend.setdefault(entry.spend, []).append(entry)
    # A release is what one attempt of a run draws; it has one spend for each column, and others for draws of an earlier key.
    releases: dict[tuple[str, str, str], list[list[Entry]]] = {}
    for same in by_spend.values():
        first = same[0]
        releases.setdefault((first.run_id, first.output, first.attempt), []).append(same)
    epsilons, deltas, without, sound = [], [], 0, True
    for spends in releases.values():
        often = max(Counter(same[0].column.lower() for same in spends).values())
        sound &= all(entry.holds for same in spends for entry in same)
        figures = [_of_record(same) for same in spends]
        known = [one for one in figures if one is not None]
        if len(known) < len(figures):
            without += often
            continue
        epsilons += [max(one[0] for one in known)] * often
        deltas += [max(one[1] for one in known)] * often
    total = _upward(_added(epsilons)) if sound else math.inf
    return RecordSpent(total, min(1.0, _upward(_added(deltas))), len(epsilons), without)


def _of_record(same: list[Entry]) -> tuple[float, float] | None:
    """Return (ε, δ) of a record in equal draws; of a stream's micro-batches the largest, and None where one has no figure."""
    by_run: dict[str, tuple[float, float] | None] = {}
    for entry in same:
        name = entry.run_id if entry.records == ADDED else ""
        figure = (
            None
            if entry.record_epsilon is None
            else (float(entry.record_epsilon), float(entry.record_delta or 0.0))
        )
        held = by_run.get(name)
        by_run[name] = figure if held is None else held if figure is None else max(held, figure)
    known = [one for one in by_run.values() if one is not None]
    if len(known) < len(by_run):
        return None
    return max(one[0] for one in known), max(one[1] for one in known)


def spent_on(entries: Iterable[Entry], column: str) -> Spent:
    """Add up what entries of one input spent on one word of a column.

    At record and dataset level all occurrences of a word, in whichever column, are one unit: there the releases of other columns
    count, too.
    """
    found: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        concerned = entry.consistency != "token" or entry.column.lower() == column.lower()
        if entry.status != VOID and concerned:
            spend = entry.spend
            if spend not in found or not entry.holds:
                found[spend] = entry
    groups: dict[tuple[str | None, str], list[Entry]] = {}
    for entry in found.values():
        groups.setdefault(entry.bound, []).append(entry)
    ordered = sorted(groups.items(), key=lambda group: (group[0][0] or "", group[0][1]))
    figures = tuple(
        Total(
            metric, unit, _sum(each),
            min(1.0, _upward(_added(entry.delta for entry in each))),
            any(entry.kind == WITHIN for entry in each), len(each),
        )
        for (metric, unit), each in ordered
    )  # fmt: skip
    return Spent(column, figures, _sum(found.values()))


def difference(more: float, less: float) -> float:
    """Return the difference of two finite sums, rounded up."""
    return _upward(_UP.subtract(_decimal(more), _decimal(less)))


def left_of(limit: float, total: float) -> float:
    """Return what is left of a limit, rounded down; 0 where it is passed."""
    if math.isinf(total):
        return 0.0
    left = _DOWN.subtract(_decimal(limit), _decimal(total))
    found = float(left)
    return max(0.0, found if _decimal(found) <= left else math.nextafter(found, -math.inf))


def over(total: float, limit: float) -> bool:
    """Whether a sum passes a limit, as both are printed."""
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
    """Return the least float that is not printed as less than the number."""
    found = float(number)
    return found if _decimal(found) >= number else math.nextafter(found, math.inf)
