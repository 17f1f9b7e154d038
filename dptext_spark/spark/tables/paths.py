"""Text inside nested columns, by a path with dots: out of its column for the function, and back into its place.

A path leads through the fields of structs and over at most one array or map (`meta.note`, `tags`, `comments.text`,
`attributes`: the values of a map). Nothing is exploded: what an array or a map holds goes to the function as one array
of texts a row, and comes back as one. All else of the column stays where it is, the keys of a map too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, functions
from pyspark.sql import types as T

from dptext_spark.model.tables.schema import (
    DECLARED,
    Field,
    Kind,
    ListOf,
    MapOf,
    Parts,
    Plain,
    Struct,
    TextPath,
    beside_texts,
    resolve,
    resolve_all,
    texts_of,
)

F: Any = functions  # its stubs leave out what Spark adds at run time


class Path(TextPath):
    """Where text lies, and how Spark reads it."""

    @classmethod
    def of(cls, path: TextPath) -> Path:
        """Return the same place."""
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
        """How many bytes of text a row holds; NULL where there is no text."""
        return functions.octet_length(functions.array_join(self.text, "") if self.over else self.text)


def quoted(name: str) -> Column:
    """Return a top-level column by its exact name, whatever characters it holds."""
    return functions.col("`" + name.replace("`", "``") + "`")


def schema_of(schema: T.StructType) -> Struct:
    """Return the schema of a frame as the rules of a run take it."""

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


def resolved(schema: T.StructType, name: str, exact: bool = False) -> Path:
    """Find the text that a name means, as :func:`dptext_spark.model.tables.schema.resolve`."""
    return Path.of(resolve(schema_of(schema), name, exact))


def texts_in(schema: T.StructType) -> Iterator[Path]:
    """Yield every text that a path leads to."""
    return map(Path.of, texts_of(schema_of(schema)))


def paths_of(schema: T.StructType, columns: Sequence[str], exact: bool = False) -> list[Path]:
    """Find the texts of several names, as users write them, or exact.

    Raises:
        DataError: as :func:`resolved`, or two names mean the same text.
    """
    return [Path.of(path) for path in resolve_all(schema_of(schema), columns, exact)]


def beside(schema: T.StructType, paths: Sequence[TextPath]) -> tuple[list[Parts], list[str]]:
    """Name what lies beside the texts inside their columns, as :func:`dptext_spark.model.tables.schema.beside_texts`."""
    return beside_texts(schema_of(schema), paths)


def rebuilt(
    schema: T.StructType, root: str, texts: Mapping[Path, Column], dropped: frozenset[Parts] = frozenset()
) -> Column:
    """Return a top-level column with new texts in the place of the old ones.

    Args:
        schema: of the frame.
        root: the column.
        texts: what stands in the place of each text, in the form of :attr:`Path.text`.
        dropped: fields beside the texts that are left out.
    """
    wanted = {path.parts[1:]: column for path, column in texts.items() if path.root == root}
    kind = schema[root].dataType
    whole = _put(quoted(root), kind, wanted)
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
        # The function's result is an argument beside the array: within the lambda Spark would not take it.
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
