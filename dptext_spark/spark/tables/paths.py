"""Text inside nested columns, by a path with dots: out of its column for the function, and back into its place.

A path leads through the fields of structs and over at most one array or map (`meta.note`, `tags`, `comments.text`,
`attributes`: the values of a map). Nothing is exploded: what an array or a map holds goes to the function as one array
of texts a row, and comes back as one. All else of the column stays where it is, the keys of a map too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, functions
from pyspark.sql import types as T

from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.errors import DataError

F: Any = functions  # its stubs leave out what Spark adds at run time
Parts = tuple[str, ...]


@dataclass(frozen=True)
class Path:
    """Where text lies.

    Attributes:
        root: the top-level column.
        outer: the fields from there to the text, or to the array or map.
        over: `array` or `map` where each row holds several texts, else empty.
        inner: the fields from an element, or from a value of the map, to the text.
    """

    root: str
    outer: Parts = ()
    over: str = ""
    inner: Parts = ()

    @property
    def parts(self) -> Parts:
        """The names on the way."""
        return (self.root, *self.outer, *self.inner)

    @property
    def name(self) -> str:
        """The one spelling of the path; draws at token level are for it."""
        return spelled(self.parts)

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


def resolved(schema: T.StructType, name: str, exact: bool = False) -> Path:
    """Find the text that a name means: a top-level column of exactly that name, or a path.

    Args:
        schema: of the frame.
        name: as a user writes it.
        exact: it is a :attr:`Path.name`, which means one text only.

    Raises:
        DataError: there is none, it is no text, or the name could mean two columns.
    """
    parts = parts_of(name)
    if name in schema.fieldNames() and not exact:
        if parts is not None and len(parts) > 1 and parts[0] in schema.fieldNames():
            raise DataError(
                f"columns: {name!r} may be a column or a field of {parts[0]!r}; valid: {spelled((name,))} for the column, "
                f"`{parts[0]}`.{spelled(parts[1:])} for the field."
            )
        parts = (name,)
    if parts is None or parts[0] not in schema.fieldNames():
        raise _no_text(schema, name, "is not in the input")
    kind: T.DataType = schema[parts[0]].dataType
    outer: list[str] = []
    inner: list[str] = []
    over, left = "", list(parts[1:])
    while not isinstance(kind, T.StringType):
        if isinstance(kind, T.StructType) and left:
            field = left.pop(0)
            if field not in kind.fieldNames():
                raise _no_text(schema, name, "is not in the input")
            (inner if over else outer).append(field)
            kind = kind[field].dataType
        elif isinstance(kind, T.ArrayType | T.MapType) and not over:
            over = "array" if isinstance(kind, T.ArrayType) else "map"
            kind = kind.elementType if isinstance(kind, T.ArrayType) else kind.valueType
        elif isinstance(kind, T.ArrayType | T.MapType):
            raise _no_text(
                schema, name, "lies in a list of lists (at most one array or map may stand on the way)"
            )
        else:
            raise _no_text(schema, name, f"is of type {kind.simpleString()}")
    if left:
        raise _no_text(schema, name, "is not in the input")
    return Path(parts[0], tuple(outer), over, tuple(inner))


def _no_text(schema: T.StructType, name: str, why: str) -> DataError:
    texts = [path.name for path in texts_in(schema)]
    return DataError(f"columns: {name!r} {why}; text columns there: {', '.join(texts) or 'none'}.")


def texts_in(schema: T.StructType) -> Iterator[Path]:
    """Yield every text that a path leads to."""

    def below(path: Path, kind: T.DataType) -> Iterator[Path]:
        if isinstance(kind, T.StringType):
            yield path
        elif isinstance(kind, T.StructType):
            for field in kind.fields:
                deeper = (
                    Path(path.root, path.outer, path.over, (*path.inner, field.name))
                    if path.over
                    else Path(path.root, (*path.outer, field.name))
                )
                yield from below(deeper, field.dataType)
        elif isinstance(kind, T.ArrayType) and not path.over:
            yield from below(Path(path.root, path.outer, "array"), kind.elementType)
        elif isinstance(kind, T.MapType) and not path.over:
            yield from below(Path(path.root, path.outer, "map"), kind.valueType)

    for field in schema.fields:
        yield from below(Path(field.name), field.dataType)


def paths_of(schema: T.StructType, columns: Sequence[str], exact: bool = False) -> list[Path]:
    """Find the texts of several names, as users write them, or exact.

    Raises:
        DataError: as :func:`resolved`, or two names mean the same text.
    """
    found: list[Path] = []
    for name in columns:
        path = resolved(schema, name, exact)
        if path in found:
            raise DataError(f"columns: {name!r} is named twice.")
        found.append(path)
    return found


def beside(schema: T.StructType, paths: Sequence[Path]) -> tuple[list[Parts], list[str]]:
    """Name what lies beside the texts inside their columns.

    Returns:
        (the other fields, by their parts; the maps whose keys stay in clear, by their names).
    """
    fields: list[Parts] = []
    keys: list[str] = []

    def walk(kind: T.DataType, at: Parts, wanted: list[Parts]) -> None:
        if isinstance(kind, T.ArrayType):
            walk(kind.elementType, at, wanted)
        elif isinstance(kind, T.MapType):
            keys.append(spelled(at))
            walk(kind.valueType, at, wanted)
        elif isinstance(kind, T.StructType):
            for field in kind.fields:
                deeper = [parts[1:] for parts in wanted if parts[0] == field.name]
                if deeper:
                    walk(field.dataType, (*at, field.name), deeper)
                else:
                    fields.append((*at, field.name))

    for root in dict.fromkeys(path.root for path in paths):
        walk(schema[root].dataType, (root,), [path.parts[1:] for path in paths if path.root == root])
    return fields, keys


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
