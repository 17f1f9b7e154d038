"""Entries of the ledger: ε that a run spent on a column, draws that count once, and entries of the same input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import compress
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field

from dptext_spark.config.locations import inside, same_path
from dptext_spark.errors import DataError
from dptext_spark.mechanisms.privacy_loss.accountant import RecordBound
from dptext_spark.runtime.validation import needed, problem_of, valid

RESERVED, SPENT, VOID = "reserved", "spent", "void"
ALL, CHANGED, ADDED = "all", "changed", "added"
METRIC = "metric_dp"
LIMIT, BEGUN = "limit", "begun"  # rows that spend nothing
TABLE = "table:"  # before the name of an input that has no place of its own
_WEIGHT = {RESERVED: 0, VOID: 1, SPENT: 2}
# Of 0 is a promise that can be made, and kept.
Epsilon = Annotated[float, Field(ge=0, allow_inf_nan=False), valid("a finite number of 0 or more")]
Delta = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), valid("a number from 0 to 1")]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False), valid("a finite number above 0")]
Text = Annotated[str, Field(min_length=1)]
Status = Annotated[str, Field(pattern=f"^({'|'.join(_WEIGHT)})$"), valid(", ".join((*_WEIGHT, LIMIT, BEGUN)))]
Drawn = Annotated[str, Field(pattern=f"^({ALL}|{CHANGED}|{ADDED})$"), valid(f"{ALL}, {CHANGED}, {ADDED}")]


@dataclass(frozen=True)
class Entry:
    """One text column of one run, as a row of the ledger: one row reserves ε, and another may settle it.

    Attributes:
        entry: name of the entry; the row that settles it has the same name.
        attempt: the reservation that wrote it; a run that is tried again makes another.
        at: time of the reservation, or of the settlement.
        run_id: of the run; of a micro-batch, the stream's and its number.
        input: where the input is; `input_id` is the identifier of a Delta table.
        input_version: version that was read.
        column: the text column.
        record_key: column that identifies records; `row` where each row is one.
        unit: word, record or another unit of ε; `consistency` the level.
        mechanism: with its parameters and the version of the engine that draws by it, JSON.
        kind: of the guarantee; `metric` its distance and the space of the distance.
        epsilon: guarantee of one release; `delta` too.
        holds: False where the guarantee was refuted or the key is no secret: such a release has no ε.
        records: which may have been drawn anew: `all`, `changed` (another version of the input under the same draws), `added`.
        release: names the draws: equal ones are equal draws of equal words, and reveal nothing new about the same version.
        status: reserved, spent or void; `why` says more.
        limit: limit at its reservation; `override` is the reason to pass it.
        output: where the release is.
        record_words: drawn words of the longest record, rounded up to a quarter power of two. The next two fields are for a
            record of this length. None where a record has no ε.
        record_epsilon: computed ε of a release of that record.
        record_delta: δ of that ε.
    """

    entry: Text
    attempt: Text
    at: datetime
    run_id: str
    input: Text
    input_id: str | None
    input_version: Text
    column: Text
    record_key: str
    unit: Text
    consistency: Text
    mechanism: str
    kind: Text
    metric: str | None
    epsilon: Epsilon
    delta: Delta
    holds: bool
    records: Drawn
    release: Text
    status: Status
    why: str | None
    limit: Limit | None
    override: str | None
    output: Text
    record_words: int | None = None
    record_epsilon: Epsilon | None = None
    record_delta: Delta | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Entry:
        """Read a row of the table.

        Raises:
            DataError: the row is damaged: a field that counts is missing, or has a value that is not valid.
        """
        return cls(**_sound(cls, row))

    def costing(self, bound: RecordBound) -> Entry:
        """Return the entry with the ε of a release of its longest record."""
        return replace(self, record_words=bound.draws, record_epsilon=bound.epsilon, record_delta=bound.delta)

    @property
    def spend(self) -> tuple[str, str]:
        """Key of a spend that counts once in any number of entries: draws and version; for added records the draws alone."""
        version = "" if self.records == ADDED else f"{self.input_id or self.input} {self.input_version}"
        return self.release, version

    @property
    def bound(self) -> tuple[str | None, str]:
        """The distance of the bound and its unit: only figures that agree in both may be added."""
        return (self.metric if self.kind == METRIC else None), self.unit


@dataclass(frozen=True)
class Decision:
    """A row that spends nothing: it sets or raises the limit of an input, or begins its ledger anew.

    Attributes:
        entry: names the row; `attempt` the reservation that wrote it.
        at: when.
        run_id: the run whose settings caused it.
        input: where the input is; `input_id` is the identifier of a Delta table.
        status: `limit` or `begun`.
        limit: kept from now on; None of `begun`.
        why: the reason; None of a first limit, which needs none.
        output: where the run writes.
    """

    entry: Text
    attempt: str
    at: datetime
    run_id: str
    input: Text
    input_id: str | None
    status: Annotated[str, Field(pattern=f"^({LIMIT}|{BEGUN})$"), valid(f"{LIMIT}, {BEGUN}")]
    limit: Limit | None
    why: str | None
    output: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Decision:
        """Read a row of the table.

        Raises:
            DataError: it is damaged.
        """
        decision = cls(**_sound(cls, row))
        if decision.status == LIMIT and decision.limit is None:
            raise damaged(decision.run_id, decision.entry, "limit is None. Choose a finite number above 0.")
        return decision


class Book(NamedTuple):
    """Content of a ledger.

    Attributes:
        version: of its table; -1 where there is none.
        entries: each merged from its rows.
        decisions: in their order in time.
    """

    version: int
    entries: list[Entry]
    decisions: list[Decision]

    @property
    def attempts(self) -> int:
        """The number of reservations that were ever made: rows that settle belong to those of their entries."""
        return len({entry.attempt for entry in self.entries} | {row.attempt for row in self.decisions})

    @classmethod
    def of(cls, version: int, columns: Mapping[str, Sequence[Any]]) -> Book:
        """Read the columns of the table, all equally long.

        Raises:
            DataError: a row is damaged. No row is left out, for its ε would not count.
        """
        decides = [status in (LIMIT, BEGUN) for status in columns["status"]]
        spends = [not flag for flag in decides]
        entry_columns = {field.name: list(compress(columns[field.name], spends)) for field in fields(Entry)}
        if any(
            problem_of(Entry, name, value) for name, values in entry_columns.items() for value in set(values)
        ):
            for row in _rows(entry_columns):
                Entry.of(row)  # says which row it is
        decision_columns = {
            field.name: list(compress(columns[field.name], decides)) for field in fields(Decision)
        }
        decisions = sorted(map(Decision.of, _rows(decision_columns)), key=lambda decision: decision.at)
        return cls(version, settled(map(Entry, *entry_columns.values())), decisions)

    def of_input(self, place: str, input_id: str | None) -> Book:
        """Return the rows of an input."""
        rows: list[Entry | Decision] = [*self.entries, *self.decisions]
        here = of_input(rows, place, input_id)
        entries = [row for row in here if isinstance(row, Entry)]
        return Book(self.version, entries, [row for row in here if isinstance(row, Decision)])


def _sound(kind: type[Entry | Decision], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row; one that it lacks is NULL."""
    values = {field.name: row.get(field.name) for field in fields(kind)}
    for name, value in values.items():
        if problem := problem_of(kind, name, value):
            raise damaged(row["run_id"], row["entry"], f"{name} is {value!r}. Choose {needed(problem)}")
    return values


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def damaged(run_id: object, entry: object, why: str) -> DataError:
    """Return the error for a row that cannot be counted."""
    return DataError(
        f"ledger: the row of run {run_id!r} ({entry!r}) is damaged: {why} Nothing is counted until you restore the ledger's "
        "table. Or begin another ledger by ledger.path and ledger.override."
    )


def settled(rows: Iterable[Entry]) -> list[Entry]:
    """Merge the rows of each entry, in the order of their reservations.

    Spent outweighs void, and both outweigh reserved. Of two rows that reserve, the one with a reason is the later.
    """
    by_name: dict[str, Entry] = {}
    reserved_first = sorted(rows, key=lambda row: row.status != RESERVED)
    for row in sorted(reserved_first, key=attrgetter("at")):
        first = by_name.get(row.entry)
        if first is None:
            by_name[row.entry] = row
        elif (_WEIGHT[row.status], row.why is not None) >= (_WEIGHT[first.status], first.why is not None):
            # The words are counted while a run writes. A field that a later row lacks keeps its value.
            costed = first if row.record_epsilon is None else row
            by_name[row.entry] = replace(
                first,
                status=row.status,
                why=row.why,
                record_words=costed.record_words,
                record_epsilon=costed.record_epsilon,
                record_delta=costed.record_delta,
            )
    return list(by_name.values())


Row = TypeVar("Row", bound=Entry | Decision)


def of_input(rows: Iterable[Row], place: str, input_id: str | None) -> list[Row]:
    """Return the rows of an input: of the same Delta table, or of the same or an overlapping place."""
    rows = list(rows)
    open_pairs = {(row.input, row.input_id) for row in rows}
    known = {(place, input_id)}
    fresh = set(known)
    while fresh:
        fresh = {pair for pair in open_pairs - known if any(_same(pair, other) for other in fresh)}
        known |= fresh
    return [row for row in rows if (row.input, row.input_id) in known]


def _same(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    if one[1] is not None and one[1] == other[1]:
        return True
    here, elsewhere = one[0], other[0]
    if TABLE in (here[: len(TABLE)], elsewhere[: len(TABLE)]):
        return here == elsewhere
    return same_path(here, elsewhere) or inside(here, elsewhere) or inside(elsewhere, here)
