"""What the releases of one input cost together: entries of the budget ledger in, figures and their sentences out.

Sequential composition: what is told about one word by releases with draws of their own adds up, ε and δ each. The same draws of
the same input tell nothing new, whatever the run is called. Records that were never in the input before add nothing for any other
record (parallel composition). Where it is not known which of these holds, the release counts: a figure may be too large, and is
never too small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from dptext_spark.errors import RunError
from dptext_spark.figures import exact
from dptext_spark.settings.locations import inside, same_path

FORMAT = 1
RESERVED, SPENT, VOID = "reserved", "spent", "void"
ALL, CHANGED, ADDED = "all", "changed", "added"
METRIC = "metric_dp"
WITHIN = "epsilon_dp_within_group"
TABLE = "table:"  # before the name of an input that has no place of its own
_WEIGHT = {RESERVED: 0, VOID: 1, SPENT: 2}
_WHOLE = Context(prec=1_000, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Entry:
    """One text column of one run, as a row of the ledger says it: one row reserves, and another may settle it.

    Attributes:
        entry: names the entry; the row that settles it bears the same name.
        attempt: the reservation that wrote it; a run that is tried again makes another.
        at: when it was reserved; of a row that settles, when that was.
        run_id: of the run; of a micro-batch, the stream's and its number.
        input: where the input is; `input_id` is the identifier of a Delta table.
        input_version: what was read.
        column: the text column.
        record_key: the column that says what a record is; `row` where it is the row.
        unit: what ε is for; `consistency` the level.
        mechanism: with its parameters, JSON.
        kind: of the guarantee; `metric` its distance, with the space it is taken in.
        epsilon: what was promised of one release; `delta` too.
        holds: False where the guarantee was refuted or the key is no secret: no ε stands for such a release.
        records: which may have been drawn anew: `all`, `changed` (another version of the input under the same draws), `added`.
        release: names the draws: equal ones are equal draws of equal words, and tell nothing new of the same version.
        status: reserved, spent or void; `why` says more.
        limit: that stood when it was reserved; `override` the reason for which it was passed.
        output: where the release is.
        format_version: of the row.
    """

    entry: str
    attempt: str
    at: datetime
    run_id: str
    input: str
    input_id: str | None
    input_version: str
    column: str
    record_key: str
    unit: str
    consistency: str
    mechanism: str
    kind: str
    metric: str | None
    epsilon: float
    delta: float
    holds: bool
    records: str
    release: str
    status: str
    why: str | None
    limit: float | None
    override: str | None
    output: str
    format_version: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Entry:
        """Read a row of the table."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})

    @property
    def spend(self) -> tuple[str, str]:
        """What is spent once, however many entries say it: these draws, of this version; of added records, these draws."""
        version = "" if self.records == ADDED else f"{self.input_id or self.input} {self.input_version}"
        return self.release, version

    @property
    def bound(self) -> tuple[str | None, str]:
        """The distance of the bound and its unit: only figures that agree in both may be added."""
        return (self.metric if self.kind == METRIC else None), self.unit


def settled(rows: Iterable[Entry]) -> list[Entry]:
    """Return each entry as its rows say it together, in the order in which they were reserved.

    Spent outweighs void, and both outweigh reserved; of rows that reserve, one that says why is the later.
    """
    found: dict[str, Entry] = {}
    for row in sorted(rows, key=lambda row: (row.at, row.status != RESERVED)):
        first = found.get(row.entry)
        if first is None:
            found[row.entry] = row
        elif (_WEIGHT[row.status], row.why is not None) >= (_WEIGHT[first.status], first.why is not None):
            found[row.entry] = replace(first, status=row.status, why=row.why)
    return list(found.values())


@dataclass(frozen=True)
class Figure:
    """What releases come to whose bounds may be added.

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
    epsilon: float
    delta: float
    within: bool
    times: int

    def __str__(self) -> str:
        """Return the figure as a part of a sentence."""
        if math.isinf(self.epsilon):
            return f"no ε at all for {self.unit}: a guarantee was refuted, or a key was no secret"
        delta = f" and δ = {exact(self.delta)}" if self.delta else ""
        per = "" if self.metric is None else f" for each unit of distance ({self.metric})"
        within = ", between words that share an output set" if self.within else ""
        times = "spent once" if self.times == 1 else f"spent {self.times:,} times"
        return f"ε = {exact(self.epsilon)}{delta}{per} for {self.unit}{within} ({times})"


@dataclass(frozen=True)
class Spent:
    """What was spent on one word of a column: by kind of bound, and what a limit is compared with.

    Attributes:
        column: the text column.
        figures: one for each kind of bound; several are not to be added, and hold beside each other.
        total: the sum of all ε, whatever their kind: at least as large as any figure.
        more: what of it the run in hand added.
    """

    column: str
    figures: tuple[Figure, ...]
    total: float
    more: float = 0.0

    def __str__(self) -> str:
        """Return the figures as a part of a sentence."""
        return (
            "; and beside it, of another kind and not to be added, ".join(map(str, self.figures)) or "nothing"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, JSON-able: an ε that does not exist is None."""
        return {
            "column": self.column,
            "total": _finite(self.total),
            "more": _finite(self.more),
            "figures": [{**vars(figure), "epsilon": _finite(figure.epsilon)} for figure in self.figures],
        }


def spent_on(entries: Iterable[Entry], column: str) -> Spent:
    """Add up what entries of one input spent on one word of a column.

    At record and dataset level all occurrences of a word, in whichever column, are one unit: there the releases of other columns
    count, too.
    """
    found: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        concerned = entry.consistency != "token" or entry.column.lower() == column.lower()
        if entry.status != VOID and concerned and (entry.spend not in found or not entry.holds):
            found[entry.spend] = entry
    groups: dict[tuple[str | None, str], list[Entry]] = {}
    for entry in found.values():
        groups.setdefault(entry.bound, []).append(entry)
    ordered = sorted(groups.items(), key=lambda group: (group[0][0] or "", group[0][1]))
    figures = tuple(
        Figure(
            metric, unit, _sum(each),
            min(1.0, _upward(_added(entry.delta for entry in each))),
            any(entry.kind == WITHIN for entry in each), len(each),
        )
        for (metric, unit), each in ordered
    )  # fmt: skip
    return Spent(column, figures, _sum(found.values()))


def of_input(entries: Iterable[Entry], place: str, input_id: str | None) -> list[Entry]:
    """Return the entries of an input: of the same Delta table, or of a place that is the same or has a part in common."""
    entries = list(entries)
    open_pairs = {(entry.input, entry.input_id) for entry in entries}
    known = {(place, input_id)}
    fresh = set(known)
    while fresh:
        fresh = {one for one in open_pairs - known if any(_same(one, other) for other in fresh)}
        known |= fresh
    return [entry for entry in entries if (entry.input, entry.input_id) in known]


@dataclass(frozen=True)
class Balance:
    """What was spent on an input so far.

    Attributes:
        ledger: the folder of the ledger; it counts since `since`.
        input: where the input is.
        columns: what was spent on each.
        unfinished: runs that count although they did not commit, as far as the ledger knows, the one in hand left out.
        limit: of the settings; `override` the reason for which it was passed.
    """

    ledger: str
    since: datetime
    input: str
    columns: tuple[Spent, ...]
    unfinished: int = 0
    limit: float | None = None
    override: str | None = None

    @property
    def sentence(self) -> str:
        """What all releases of the input have spent on one word, and what the run in hand added; names no place."""
        said = []
        for spent, columns in _alike(self.columns):
            more = (
                f"{exact(spent.more)} of it is of this run" if spent.more else "this run added nothing to it"
            )
            if math.isinf(spent.total):
                more = "this run is one of them" if spent.more else "this run added nothing to it"
            said.append(f"one word of {columns}: {spent}; {more}")
        return f"All releases of the input that the ledger knows have together spent on {'. On '.join(said)}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figure counts and what it does not."""
        found = [
            "That is the figure of the worst record: one that changed in every version which was released, and that is in the "
            "part that input.where takes, for an input counts as a whole.",
            "Not in it is what was released before the ledger began, or under another ledger, or from another input that holds "
            "the same records, such as a copy, a clone or a view.",
        ]
        if any(
            not figure.unit.startswith("one occurrence") for one in self.columns for figure in one.figures
        ):
            found.append(
                "Where all occurrences of a word are one unit, a release of any column counts for every column."
            )
        if self.unfinished:
            found.append(
                f"Counted with them: {self.unfinished:,} that did not finish, for what they may have left behind holds draws."
            )
        return tuple(found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What nobody may overlook."""
        found = []
        if self.override is not None:
            worst = max(spent.total for spent in self.columns)
            came = "no ε holds" if math.isinf(worst) else f"ε came to {exact(worst)}"
            found.append(
                f"THE LIMIT OF THE BUDGET WAS PASSED: {came} with ledger.limit {exact(self.limit or 0.0)}, overridden with the "
                f"reason: {self.override}"
            )
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "ledger": self.ledger,
            "since": f"{self.since:%Y-%m-%d}",
            "input": self.input,
            "columns": [spent.as_dict() for spent in self.columns],
            "unfinished": self.unfinished,
            "limit": self.limit,
            "override": self.override,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def after(before: Sequence[Entry], asked: Sequence[Entry], ledger: str) -> Balance:
    """Return what an input comes to when the entries that are asked for are added to those of the ledger.

    Args:
        before: all entries of the ledger.
        asked: of one input and one run; one or more.
        ledger: its folder.
    """
    first = asked[0]
    there = of_input(before, first.input, first.input_id)
    columns = []
    for column in _columns([*there, *asked]):
        old, new = spent_on(there, column), spent_on([*there, *asked], column)
        columns.append(
            Spent(column, new.figures, new.total, _more(old.total, new.total, there, asked, column))
        )
    return Balance(
        ledger, min(entry.at for entry in [*before, *asked]), first.input, tuple(columns),
        _unfinished(there, {entry.run_id for entry in asked}),
    )  # fmt: skip


def allowed(balance: Balance, limit: float | None, override: str | None) -> Balance:
    """Return the balance with its limit; the reason goes in only where it was needed.

    Raises:
        RunError: the run spends, passes the limit, and no reason is given.
    """
    passed = [one for one in balance.columns if one.more and limit is not None and _over(one.total, limit)]
    if not passed or limit is None:
        return Balance(**{**vars(balance), "limit": limit})
    if override is not None:
        return Balance(**{**vars(balance), "limit": limit, "override": override})
    worst = max(passed, key=lambda one: one.total)
    if math.isinf(worst.total):
        said = (
            "a guarantee of its releases was refuted or their key is no secret, so that no ε stands for them"
        )
    else:
        before = _upward(_WHOLE.subtract(_decimal(worst.total), _decimal(worst.more)))
        said = (
            f"ε = {exact(before)} was spent on one word of {worst.column} in {balance.input}, and this run asks for "
            f"{exact(worst.more)} more, which makes {exact(worst.total)}"
        )
    raise RunError(
        f"ledger.limit: {exact(limit)} given; {said}. Valid: a greater limit; the same draws again (a persistent key at record "
        "or dataset level, and the same model and version of the input), which spend nothing; or ledger.override with the "
        "reason, which is recorded. Nothing was written."
    )


def balances(entries: Sequence[Entry], ledger: str) -> list[Balance]:
    """Return what was spent on each input of a ledger, in the order in which they were first released."""
    found, left = [], sorted(entries, key=lambda entry: entry.at)
    while left:
        first = left[0]
        here = of_input(left, first.input, first.input_id)
        columns = tuple(spent_on(here, column) for column in _columns(here))
        found.append(Balance(ledger, first.at, first.input, columns, _unfinished(here, set())))
        named = {entry.entry for entry in here}
        left = [entry for entry in left if entry.entry not in named]
    return found


def _more(
    old: float, new: float, there: Sequence[Entry], asked: Sequence[Entry], column: str
) -> float:  # fmt: skip
    """Return what was added; infinity has no difference, so that there the new spends decide."""
    if not math.isinf(new):
        return _upward(_WHOLE.subtract(_decimal(new), _decimal(old)))
    known = {entry.spend for entry in there if entry.status != VOID}
    fresh = [one for one in asked if one.spend not in known]
    concerned = [one for one in fresh if one.consistency != "token" or one.column.lower() == column.lower()]
    return math.inf if concerned else 0.0


def _unfinished(entries: Iterable[Entry], but: set[str]) -> int:
    """Count runs that are reserved and not known to have committed."""
    done = {entry.spend for entry in entries if entry.status == SPENT}
    open_runs = {one.run_id for one in entries if one.status == RESERVED and one.spend not in done}
    return len(open_runs - but)


def _columns(entries: Iterable[Entry]) -> list[str]:
    """Return the columns, each once, in order."""
    return list({entry.column.lower(): entry.column for entry in entries}.values())


def _alike(columns: Sequence[Spent]) -> list[tuple[Spent, str]]:
    """Return columns of which the same is to be said together."""
    groups: dict[tuple[str, float], list[Spent]] = {}
    for one in columns:
        groups.setdefault((str(one), one.more), []).append(one)
    return [(each[0], ", ".join(one.column for one in each)) for each in groups.values()]


def _same(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    if one[1] is not None and one[1] == other[1]:
        return True
    here, there = one[0], other[0]
    if TABLE in (here[: len(TABLE)], there[: len(TABLE)]):
        return here == there
    return same_path(here, there) or inside(here, there) or inside(there, here)


def _sum(entries: Iterable[Entry]) -> float:
    entries = list(entries)
    if not all(entry.holds for entry in entries):
        return math.inf
    return _upward(_added(entry.epsilon for entry in entries))


def _added(numbers: Iterable[float]) -> Decimal:
    """Add floats as the decimals that they are printed as: 0.1 and 0.2 is 0.3."""
    total = Decimal(0)
    for number in numbers:
        total = _WHOLE.add(total, _decimal(number))
    return total


def _over(total: float, limit: float) -> bool:
    return math.isinf(total) or _decimal(total) > _decimal(limit)


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))


def _upward(number: Decimal) -> float:
    """Return the least float that is not printed as less than the number."""
    found = float(number)
    return found if _decimal(found) >= number else math.nextafter(found, math.inf)


def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number
