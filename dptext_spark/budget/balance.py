"""What was spent on an input so far, in sentences, and whether a run may spend more of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dptext_spark.budget.entries import RESERVED, SPENT, VOID, Entry, of_input
from dptext_spark.budget.sums import Spent, difference, over, spent_on
from dptext_spark.errors import RunError
from dptext_spark.figures import exact


@dataclass(frozen=True)
class Balance:
    """What was spent on an input so far.

    Attributes:
        ledger: the folder of the ledger; it counts since `since`.
        input: where the input is.
        columns: what was spent on each.
        unfinished: runs that count although they did not commit, as far as the ledger knows, the one in hand left out.
        whose: what the figure `more` of a column is said to be of.
        limit: of the settings; `override` the reason for which it was passed.
        overrides: runs that passed a limit, each with its reason.
    """

    ledger: str
    since: datetime
    input: str
    columns: tuple[Spent, ...]
    unfinished: int = 0
    whose: str = "this run"
    limit: float | None = None
    override: str | None = None
    overrides: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What all releases of the input have spent on one word, and what the run in hand added; names no place."""
        said = []
        for spent, columns in _alike(self.columns):
            if not spent.more:
                more = f"{self.whose} added nothing to it"
            elif math.isinf(spent.total):
                more = f"{self.whose} is one of them"
            else:
                more = f"{exact(spent.more)} of it is of {self.whose}"
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
            "overrides": list(self.overrides),
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
    passed = [one for one in balance.columns if one.more and limit is not None and over(one.total, limit)]
    if not passed or limit is None:
        return replace(balance, limit=limit)
    if override is not None:
        return replace(balance, limit=limit, override=override)
    worst = max(passed, key=lambda one: one.total)
    if math.isinf(worst.total):
        said = (
            "a guarantee of its releases was refuted or their key is no secret, so that no ε stands for them"
        )
    else:
        before = difference(worst.total, worst.more)
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
        found.append(
            Balance(
                ledger, first.at, first.input, columns, _unfinished(here, set()), overrides=_overrides(here)
            )
        )
        named = {entry.entry for entry in here}
        left = [entry for entry in left if entry.entry not in named]
    return found


def _more(
    old: float, new: float, there: Sequence[Entry], asked: Sequence[Entry], column: str
) -> float:  # fmt: skip
    """Return what was added; infinity has no difference, so that there the new spends decide."""
    if not math.isinf(new):
        return difference(new, old)
    known = {entry.spend for entry in there if entry.status != VOID}
    fresh = [one for one in asked if one.spend not in known]
    concerned = [one for one in fresh if one.consistency != "token" or one.column.lower() == column.lower()]
    return math.inf if concerned else 0.0


def _unfinished(entries: Iterable[Entry], but: set[str]) -> int:
    """Count runs that are reserved and not known to have committed."""
    done = {entry.spend for entry in entries if entry.status == SPENT}
    open_runs = {one.run_id for one in entries if one.status == RESERVED and one.spend not in done}
    return len(open_runs - but)


def _overrides(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return what is to be said of each run that passed a limit, in order."""
    passed = [one for one in entries if one.override is not None and one.status != VOID]
    said = [
        f"run {one.run_id} passed the limit of {exact(one.limit or 0.0)}, with the reason: {one.override}"
        for one in passed
    ]
    return tuple(dict.fromkeys(said))


def _columns(entries: Iterable[Entry]) -> list[str]:
    """Return the columns, each once, in order."""
    return list({entry.column.lower(): entry.column for entry in entries}.values())


def _alike(columns: Sequence[Spent]) -> list[tuple[Spent, str]]:
    """Return columns of which the same is to be said together."""
    groups: dict[tuple[str, float], list[Spent]] = {}
    for one in columns:
        groups.setdefault((str(one), one.more), []).append(one)
    return [(each[0], ", ".join(one.column for one in each)) for each in groups.values()]
