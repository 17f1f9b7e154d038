"""Entries of the ledger: what one run spent on one column, what of it is spent once, and which entries are of one input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from dptext_spark.settings.locations import inside, same_path

FORMAT = 1
RESERVED, SPENT, VOID = "reserved", "spent", "void"
ALL, CHANGED, ADDED = "all", "changed", "added"
METRIC = "metric_dp"
TABLE = "table:"  # before the name of an input that has no place of its own
_WEIGHT = {RESERVED: 0, VOID: 1, SPENT: 2}


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


def _same(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    if one[1] is not None and one[1] == other[1]:
        return True
    here, there = one[0], other[0]
    if TABLE in (here[: len(TABLE)], there[: len(TABLE)]):
        return here == there
    return same_path(here, there) or inside(here, there) or inside(there, here)
