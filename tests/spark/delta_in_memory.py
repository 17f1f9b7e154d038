"""Delta tables in memory, as far as runs, their account and the ledger use them: behind the calls that go to a session.

It does what Delta Lake does with these calls: commits one after another with what they say, the state at any version, a write by
a transaction that is made once, tables that are only added to, restore, vacuum. Files are rows, or whatever a test puts in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import count
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T

ARROW = {
    "string": pa.string(), "timestamp": pa.timestamp("us", "UTC"), "double": pa.float64(), "boolean": pa.bool_(),
    "integer": pa.int32(), "long": pa.int64(),
}  # fmt: skip


class NoTable(PySparkException):
    """There is no such table."""

    def getCondition(self) -> str:
        return "DELTA_TABLE_NOT_FOUND"


class Died(BaseException):
    """The process has ended: nothing that it does afterwards is done."""


class Row(dict[str, Any]):
    """A row."""

    def asDict(self) -> dict[str, Any]:
        return dict(self)


@dataclass
class Commit:
    """One version: what was done, and the files that it consists of."""

    operation: str
    files: tuple[int, ...]
    said: str | None = None
    written: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass
class Table:
    """A table. Its folder may hold files of no version."""

    id: int
    schema: T.StructType | None = None
    commits: list[Commit] = field(default_factory=list)
    files: dict[int, Any] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    only_added_to: bool = False


class Memory:
    """All tables by their path; stands for a session, too."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.dead = False
        self._numbers = count()

    def committed(self, path: str) -> Table | None:
        """Return a table that has a version."""
        found = self.tables.get(path)
        return found if found is not None and found.commits else None

    def put(self, path: str, content: Any) -> int:
        """Write a file that is in no version."""
        if self.dead:
            raise Died
        table = self.tables.setdefault(path, Table(next(self._numbers)))
        table.files[number := next(self._numbers)] = content
        return number

    def commit(self, path: str, operation: str, files: Iterable[int], **more: Any) -> int:
        """Make a version; return its number."""
        if self.dead:
            raise Died
        table = self.tables[path]
        table.commits.append(Commit(operation, tuple(files), **more))
        return len(table.commits) - 1

    def restore(self, path: str, version: int) -> None:
        """Make the table what it was."""
        back = self.tables[path].commits[version].files
        self.commit(path, "RESTORE", back, parameters={"version": str(version)})

    def vacuum(self, path: str) -> None:
        """Delete the files that the newest version does not hold."""
        table = self.tables[path]
        kept = table.commits[-1].files if table.commits else ()
        table.files = {number: content for number, content in table.files.items() if number in kept}

    # A session.
    conf: ClassVar[dict[str, str]] = {"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"}

    def sql(self, query: str) -> Frame:
        """Answer DESCRIBE HISTORY and DESCRIBE DETAIL."""
        found = re.fullmatch(r"DESCRIBE (HISTORY|DETAIL) delta\.`([^`]+)`(?: LIMIT (\d+))?", query)
        assert found is not None, query
        table = self.committed(found[2])
        if table is None:
            raise NoTable("no table")
        if found[1] == "DETAIL":
            detail = {"format": "delta", "id": f"id-{table.id}", "location": found[2]}
            return Frame([{**detail, "partitionColumns": [], "minReaderVersion": 1}])
        said = [
            {
                "version": version, "operation": one.operation, "operationParameters": one.parameters,
                "userMetadata": one.said,
                "operationMetrics": {} if one.written is None else {"numOutputRows": str(one.written)},
            }
            for version, one in enumerate(table.commits)
        ]  # fmt: skip
        return Frame(said[::-1][: int(found[3]) if found[3] else None])

    @property
    def read(self) -> Reader:
        return Reader(self)

    def createDataFrame(self, rows: pa.Table, schema: T.StructType) -> Frame:
        """Return rows that can be written, times in the zone of this machine."""
        named = [
            {
                name: value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value
                for name, value in row.items()
            }
            for row in rows.to_pylist()
        ]
        return Frame(named, schema, self)


@dataclass
class Reader:
    """Opens a table."""

    memory: Memory
    version: int | None = None

    def option(self, name: str, value: Any) -> Reader:
        assert name == "versionAsOf"
        return Reader(self.memory, int(value))

    def format(self, name: str) -> Reader:
        assert name == "delta"
        return self

    def load(self, path: str) -> Frame:
        table = self.memory.committed(path)
        if table is None:
            raise NoTable("no table")
        files = table.commits[-1 if self.version is None else self.version].files
        held = [table.files[number] for number in files]
        rows = [row for rows in held if isinstance(rows, list) for row in rows]
        return Frame(rows, table.schema, self.memory)


class Frame:
    """Rows."""

    def __init__(self, rows: list[dict[str, Any]], schema: Any = None, memory: Memory | None = None) -> None:
        self._rows, self.schema, self._memory = rows, schema, memory

    @property
    def columns(self) -> list[str]:
        return self.schema.fieldNames()

    def collect(self) -> list[Row]:
        return [Row(row) for row in self._rows]

    def toArrow(self) -> pa.Table:
        """Return the rows; a time of this machine is an instant there."""
        columns = {}
        for column in self.schema:
            values = [row.get(column.name) for row in self._rows]
            kind = column.dataType.typeName()
            if kind == "timestamp":
                values = [None if one is None else one.astimezone(timezone.utc) for one in values]
            columns[column.name] = pa.array(values, ARROW[kind])
        return pa.table(columns)

    def first(self) -> Row | None:
        return Row(self._rows[0]) if self._rows else None

    def where(self, condition: Callable[[dict[str, Any]], bool]) -> Frame:
        """Keep the rows that a condition of :class:`Functions` is true for."""
        return Frame([row for row in self._rows if condition(row)], self.schema, self._memory)

    def limit(self, number: int) -> Frame:
        return Frame(self._rows[:number], self.schema, self._memory)

    def count(self) -> int:
        return len(self._rows)

    def select(self, *_: Any) -> Frame:
        """Keep all columns."""
        return self

    coalesce = select

    @property
    def write(self) -> Writer:
        return Writer(self, self._memory)


@dataclass
class Writer:
    """Writes rows of a frame in one commit."""

    frame: Frame
    memory: Memory
    how: str = "error"
    given: dict[str, str] = field(default_factory=dict)

    def format(self, name: str) -> Writer:
        """Take Delta Lake, in any layout."""
        return self

    partitionBy = format

    def mode(self, how: str) -> Writer:
        self.how = how
        return self

    def options(self, **more: str) -> Writer:
        self.given |= more
        return self

    def option(self, name: str, value: str) -> Writer:
        return self.options(**{name: value})

    def save(self, path: str) -> None:
        """Commit, unless the transaction was made before."""
        if self.memory.dead:
            raise Died
        there = self.memory.committed(path)
        app = self.given.get("txnAppId")
        number = int(self.given.get("txnVersion", 0))
        if there is not None and app is not None and there.transactions.get(app, -1) >= number:
            return
        new = self.memory.put(path, self.frame.collect())
        table = self.memory.tables[path]
        table.schema = table.schema or self.frame.schema
        table.only_added_to |= self.given.get("delta.appendOnly") == "true"
        kept = list(table.commits[-1].files) if table.commits else []
        if self.how == "overwrite":
            assert not table.only_added_to
            found = re.fullmatch(r"run_id = '([^']+)'", self.given["replaceWhere"])
            # The files that hold such a row are written again without it.
            for old in [one for one in kept if any(row["run_id"] == found[1] for row in table.files[one])]:
                kept.remove(old)
                if left := [row for row in table.files[old] if row["run_id"] != found[1]]:
                    kept.append(self.memory.put(path, left))
        self.memory.commit(path, "WRITE", [*kept, new], said=self.given.get("userMetadata"))
        if app is not None:
            table.transactions[app] = number


class Functions:
    """Of `pyspark.sql.functions`, what conditions are made of; the real ones need a session."""

    @staticmethod
    def col(name: str) -> Functions.Column:
        return Functions.Column(name)

    @dataclass(eq=False)
    class Column:
        """A column in a condition."""

        name: str

        def __eq__(self, other: object) -> Callable[[dict[str, Any]], bool]:  # type: ignore[override]
            return lambda row: row[self.name] == other

        def __hash__(self) -> int:
            return hash(self.name)

        def isin(self, *values: Any) -> Callable[[dict[str, Any]], bool]:
            return lambda row: row[self.name] in values
