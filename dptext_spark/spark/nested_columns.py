"""Text inside nested columns, by a path with dots: out of its column for the function, and back into its place.

A path leads through the fields of structs and over at most one array or map (`meta.note`, `tags`, `comments.text`, `attributes`:
the values of a map). Nothing is exploded: the texts of an array or a map go to the function, and come back, as one array a row.
All other parts of the column stay, the keys of a map too.

The texts of a batch of lists: flattened for the engine, each with an identity of its own, and put back.

The rows of a frame that meet `input.where`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql import types as T

from dptext_spark.arrays import I64, Bools
from dptext_spark.config.condition import Condition, column_place, typed_condition
from dptext_spark.errors import SettingsError
from dptext_spark.model.table_schema import (
    DECLARED,
    Field,
    Kind,
    ListOf,
    MapOf,
    Parts,
    Plain,
    Struct,
    TextPath,
    resolve_all,
)


def is_list(kind: pa.DataType) -> bool:
    """Check whether an Arrow type is that of a column of several texts a row."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


@dataclass(frozen=True, eq=False)
class Elements:
    """The texts of a batch of lists.

    Attributes:
        texts: string or binary [m].
        bounds: int64[n+1], where the texts of each row begin and end; those of a NULL list are none.
        null: bool[n], the lists that are NULL.
    """

    texts: pa.Array
    bounds: I64
    null: Bools

    @classmethod
    def of(cls, lists: pa.Array) -> Elements:
        """Flatten list<string> or list<binary> [n]."""
        sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        return cls(lists.flatten(), bounds, np.asarray(lists.is_null(), np.bool_))

    @property
    def rows(self) -> I64:
        """The row of each text: int64[m]."""
        rows: I64 = np.repeat(np.arange(len(self.null)), np.diff(self.bounds))
        return rows

    def identities(self, row_ids: pa.Array) -> pa.Array:
        """Return the identity of each text: its row's, and its number in the row as the last 8 bytes.

        Two texts of a column share one only if both are the same, since the number has a fixed width.

        Args:
            row_ids: integer, string or binary [n].
        """
        number = np.arange(len(self.texts)) - self.bounds[:-1][self.rows]
        if pa.types.is_integer(row_ids.type):
            ids = row_ids.to_numpy(zero_copy_only=False).astype("<i8")
            return _fixed(np.column_stack([ids[self.rows], number.astype("<i8")]))
        ids = row_ids.take(pa.array(self.rows)).cast(pa.large_binary())
        return pc.binary_join_element_wise(
            ids, _fixed(number.astype("<i8")[:, None]), pa.scalar(b"", pa.large_binary())
        )

    def sums(self, counts: npt.NDArray[Any]) -> I64:
        """Sum a count of each text over its row: int[m] -> int64[n]."""
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        sums: I64 = np.diff(total[self.bounds])
        return sums

    def whole(self, texts: pa.Array) -> pa.Array:
        """Return list<string> [n] with new texts [m] in the places of the old ones; NULL lists stay NULL."""
        offsets = pa.array(self.bounds.astype(np.int32))
        return pa.ListArray.from_arrays(offsets, texts, mask=pa.array(self.null))


def _fixed(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return the bytes of each row of '<i8'[m, k] as large_binary [m]."""
    raw = np.ascontiguousarray(numbers)
    width = raw.shape[1] * raw.itemsize
    offsets = np.arange(len(raw) + 1, dtype=np.int64) * width
    return pa.Array.from_buffers(
        pa.large_binary(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(raw.tobytes())]
    )


F: Any = functions  # its stubs leave out what Spark adds at run time


class Path(TextPath):
    """Path to texts, and its expressions for Spark."""

    @classmethod
    def of(cls, path: TextPath) -> Path:
        """Build the path of a text path."""
        return cls(path.root, path.outer, path.over, path.inner)

    @property
    def text(self) -> Column:
        """The text: a string a row, or an array of strings."""
        column = quoted(self.root)
        for field in self.outer:
            column = column.getField(field)
        if self.over == "map":
            column = F.map_values(column)
        for field in self.inner:  # of an array of structs this is the array of the fields
            column = column.getField(field)
        return column

    @property
    def joined(self) -> Column:
        """The text as one string a row: each element on a line of its own."""
        lines = functions.array_join(self.text, "\n", "")
        return lines if self.over else self.text

    @property
    def size(self) -> Column:
        """Bytes of text in a row; NULL without text."""
        return functions.octet_length(functions.array_join(self.text, "") if self.over else self.text)


def quoted(name: str) -> Column:
    """Return a top-level column by its exact name, whatever characters it holds."""
    return functions.col("`" + name.replace("`", "``") + "`")


def schema_of(schema: T.StructType) -> Struct:
    """Return the schema of a frame in the form for a run's rules."""

    def kind_of(kind: T.DataType) -> Kind:
        if isinstance(kind, T.StructType):
            return schema_of(kind)
        if isinstance(kind, T.ArrayType):
            return ListOf(kind_of(kind.elementType))
        if isinstance(kind, T.MapType):
            return MapOf(kind_of(kind.keyType), kind_of(kind.valueType))
        return Plain(kind.simpleString())

    return Struct(
        tuple(Field(f.name, kind_of(f.dataType), str(f.metadata.get(DECLARED, ""))) for f in schema.fields)
    )


def selected(df: DataFrame, where: Condition | None) -> DataFrame:
    """Return the rows of a frame that meet a condition; all without one.

    Raises:
        SettingsError: it names a missing column, or a value that the column's type cannot hold.
    """
    schema = schema_of(df.schema)
    for name, test in (typed_condition(where, schema) or {}).items():
        parts, kind = column_place(name, schema)
        for met in _tests(Path(parts[0], parts[1:]).text, test, kind):
            df = df.where(met)
    return df


def _tests(column: Column, test: Any, kind: str) -> Iterator[Column]:
    """Yield the conditions on a column. Literals are cast from one spelling, independent of the session's time zone."""

    def literal(value: Any) -> Column:
        typed: Column = F.lit(value) if kind.startswith("string") else F.lit(value).cast(kind)
        return typed

    if not isinstance(test, Mapping):
        yield column.isin(*map(literal, test if isinstance(test, list) else [test]))
        return
    for name, value in test.items():
        if name == "null":
            yield column.isNull() if value else column.isNotNull()
        else:
            yield getattr(operator, name)(column, literal(value))


def require_columns(columns: object) -> None:
    """Refuse text columns that are no list, and an empty list."""
    if isinstance(columns, str) or not columns:
        raise SettingsError("columns: no list of text columns. Name one or more.")


def paths_of(schema: T.StructType, columns: Sequence[str], exact: bool = False) -> list[Path]:
    """Find the texts of several names, as users write them, or exact.

    Raises:
        DataError: as :func:`dptext_spark.model.table_schema.resolve`, or two names mean the same text.
    """
    return [Path.of(path) for path in resolve_all(schema_of(schema), columns, exact)]


def rebuilt(
    schema: T.StructType, root: str, texts: Mapping[Path, Column], dropped: frozenset[Parts] = frozenset()
) -> Column:
    """Return a top-level column with new texts in the place of the old ones.

    The new texts have the form of :attr:`Path.text`; `dropped` fields beside them are left out.
    """
    replacements = {path.parts[1:]: column for path, column in texts.items() if path.root == root}
    kind = schema[root].dataType
    whole = _put(quoted(root), kind, replacements)
    return _without(whole, kind, [parts[1:] for parts in dropped if parts[0] == root])


def _put(value: Column, kind: T.DataType, wanted: Mapping[Parts, Column]) -> Column:
    """Put texts into a value, each at the rest of its path; NULL stays NULL."""
    if isinstance(kind, T.StringType):
        return wanted[()]
    if isinstance(kind, T.MapType):
        values = _put(F.map_values(value), T.ArrayType(kind.valueType), wanted)
        return functions.map_from_arrays(F.map_keys(value), values)
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        if isinstance(element, T.StringType):
            return wanted[()]
        # The function's result is an argument next to the array: within the lambda Spark would refuse it.
        for parts, column in wanted.items():
            value = functions.zip_with(value, column, _putter(element, parts))
        return value
    assert isinstance(kind, T.StructType)
    for name, below in _by_field(wanted).items():
        value = value.withField(_ticked(name), _put(value.getField(name), kind[name].dataType, below))
    return value


def _putter(kind: T.DataType, parts: Parts) -> Callable[[Column, Column], Column]:
    return lambda element, text: _put(element, kind, {parts: text})


def _without(value: Column, kind: T.DataType, dropped: Sequence[Parts]) -> Column:
    """Leave fields out of a value, each given by the rest of its path."""
    if not dropped:
        return value
    if isinstance(kind, T.MapType):
        values = _without(F.map_values(value), T.ArrayType(kind.valueType), dropped)
        return functions.map_from_arrays(F.map_keys(value), values)
    if isinstance(kind, T.ArrayType):
        return functions.transform(value, lambda x: _without(x, kind.elementType, dropped))
    assert isinstance(kind, T.StructType)
    for name, below in _by_field({parts: None for parts in dropped}).items():
        if () in below:
            value = value.dropFields(_ticked(name))
        else:
            inside = _without(value.getField(name), kind[name].dataType, list(below))
            value = value.withField(_ticked(name), inside)
    return value


def _by_field(wanted: Mapping[Parts, Any]) -> dict[str, dict[Parts, Any]]:
    """Group by the first field on the way."""
    grouped: dict[str, dict[Parts, Any]] = {}
    for parts, item in wanted.items():
        grouped.setdefault(parts[0], {})[parts[1:]] = item
    return grouped


def _ticked(field: str) -> str:
    return "`" + field.replace("`", "``") + "`"


def strip_metadata(kind: T.DataType) -> T.DataType:
    """Return a type without the metadata of its fields, such as comments, which may quote the text."""
    if isinstance(kind, T.StructType):
        return T.StructType(
            [T.StructField(f.name, strip_metadata(f.dataType), f.nullable) for f in kind.fields]
        )
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(strip_metadata(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(strip_metadata(kind.keyType), strip_metadata(kind.valueType), kind.valueContainsNull)
    return kind
