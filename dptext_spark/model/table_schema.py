"""The schema of a table, whoever read it, and the texts in it that a path with dots leads to.

Spark and pyarrow have types of their own; the rules of a run are checked on these. Types are named as Spark names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.errors import DataError

Parts = tuple[str, ...]
DECLARED = "__CHAR_VARCHAR_TYPE_STRING"  # of Spark's metadata: how a column of bounded text was declared


@dataclass(frozen=True)
class Plain:
    """A type without parts, such as string or bigint."""

    name: str

    @property
    def is_text(self) -> bool:
        """True if it is text, of whatever collation."""
        return self.name == "string" or self.name.startswith("string collate ")

    def __str__(self) -> str:
        """Return its name."""
        return self.name


@dataclass(frozen=True)
class ListOf:
    """An array."""

    element: Kind

    def __str__(self) -> str:
        """Return its name."""
        return f"array<{self.element}>"


@dataclass(frozen=True)
class MapOf:
    """A map."""

    key: Kind
    value: Kind

    def __str__(self) -> str:
        """Return its name."""
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct.

    Attributes:
        name: exactly as it is written.
        declared: how a text was declared where its type does not say it: `varchar(20)`; else empty.
    """

    name: str
    kind: Kind
    declared: str = ""

    @property
    def raw(self) -> str:
        """Its type as it was declared."""
        return self.declared or str(self.kind)


@dataclass(frozen=True)
class Struct:
    """Fields in their order; a table's schema is one."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        """Return its name."""
        return f"struct<{','.join(f'{field.name}:{field.kind}' for field in self.fields)}>"

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """The types by their names."""
        return {field.name: field.kind for field in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(field.name for field in self.fields)


Kind = Plain | ListOf | MapOf | Struct


@dataclass(frozen=True)
class TextPath:
    """Path to a text within the columns.

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


def resolve(schema: Struct, name: str, exact: bool = False) -> TextPath:
    """Find the text that a name means: a top-level column of exactly that name, or a path.

    Args:
        schema: of the table.
        name: as a user writes it.
        exact: it is a :attr:`TextPath.name`, which means one text only.

    Raises:
        DataError: there is none, it is no text, or the name could mean two columns.
    """
    parts = parts_of(name)
    if name in schema.kinds and not exact:
        if parts is not None and len(parts) > 1 and parts[0] in schema.kinds:
            raise DataError(
                f"columns: {name!r} may be a column or a field of {parts[0]!r}. Choose {spelled((name,))} for the column, "
                f"or `{parts[0]}`.{spelled(parts[1:])} for the field."
            )
        parts = (name,)
    if parts is None or parts[0] not in schema.kinds:
        raise _no_text(schema, name, "is not in the input")
    kind = schema.kinds[parts[0]]
    outer: list[str] = []
    inner: list[str] = []
    over, left = "", list(parts[1:])
    while not (isinstance(kind, Plain) and kind.is_text):
        if isinstance(kind, Struct) and left:
            field = left.pop(0)
            if field not in kind.kinds:
                raise _no_text(schema, name, "is not in the input")
            (inner if over else outer).append(field)
            kind = kind.kinds[field]
        elif isinstance(kind, ListOf | MapOf) and not over:
            over = "array" if isinstance(kind, ListOf) else "map"
            kind = kind.element if isinstance(kind, ListOf) else kind.value
        elif isinstance(kind, ListOf | MapOf):
            raise _no_text(schema, name, "is in a list of lists, but a path has at most one array or map")
        else:
            raise _no_text(schema, name, f"is of type {kind}")
    if left:
        raise _no_text(schema, name, "is not in the input")
    return TextPath(parts[0], tuple(outer), over, tuple(inner))


def _no_text(schema: Struct, name: str, why: str) -> DataError:
    texts = [path.name for path in texts_of(schema)]
    return DataError(f"columns: {name!r} {why}. Text columns of the input: {', '.join(texts) or 'none'}.")


def texts_of(schema: Struct) -> Iterator[TextPath]:
    """Yield every text that a path leads to."""

    def texts_below(path: TextPath, kind: Kind) -> Iterator[TextPath]:
        if isinstance(kind, Plain):
            if kind.is_text:
                yield path
        elif isinstance(kind, Struct):
            for field in kind.fields:
                deeper = (
                    TextPath(path.root, path.outer, path.over, (*path.inner, field.name))
                    if path.over
                    else TextPath(path.root, (*path.outer, field.name))
                )
                yield from texts_below(deeper, field.kind)
        elif not path.over:
            over, inside = ("array", kind.element) if isinstance(kind, ListOf) else ("map", kind.value)
            yield from texts_below(TextPath(path.root, path.outer, over), inside)

    for field in schema.fields:
        yield from texts_below(TextPath(field.name), field.kind)


def resolve_all(schema: Struct, columns: Sequence[str], exact: bool = False) -> list[TextPath]:
    """Find the texts of several names, as users write them, or exact.

    Raises:
        DataError: as :func:`resolve`, or two names mean the same text.
    """
    paths: dict[TextPath, None] = {}
    for name in columns:
        path = resolve(schema, name, exact)
        if path in paths:
            raise DataError(f"columns: {name!r} is named twice. Name it once.")
        paths[path] = None
    return list(paths)


def beside_texts(schema: Struct, paths: Sequence[TextPath]) -> tuple[list[Parts], list[str]]:
    """Name the fields beside the texts inside their columns.

    Returns:
        (the other fields, by their parts; the maps whose keys stay in clear, by their names).
    """
    fields: list[Parts] = []
    keys: list[str] = []

    def walk(kind: Kind, at: Parts, wanted: list[Parts]) -> None:
        if isinstance(kind, ListOf):
            walk(kind.element, at, wanted)
        elif isinstance(kind, MapOf):
            keys.append(spelled(at))
            walk(kind.value, at, wanted)
        elif isinstance(kind, Struct):
            for field in kind.fields:
                deeper = [parts[1:] for parts in wanted if parts[0] == field.name]
                if deeper:
                    walk(field.kind, (*at, field.name), deeper)
                else:
                    fields.append((*at, field.name))

    for root in dict.fromkeys(path.root for path in paths):
        walk(schema.kinds[root], (root,), [path.parts[1:] for path in paths if path.root == root])
    return fields, keys


def without(schema: Struct, kept: Sequence[str], dropped: frozenset[Parts]) -> Struct:
    """Return the schema of the output: the kept columns, in order, without the dropped fields."""

    def cut(kind: Kind, left: list[Parts]) -> Kind:
        if not left:
            return kind
        if isinstance(kind, ListOf):
            return ListOf(cut(kind.element, left))
        if isinstance(kind, MapOf):
            return MapOf(kind.key, cut(kind.value, left))
        assert isinstance(kind, Struct)
        deeper = {f.name: [parts[1:] for parts in left if parts[0] == f.name] for f in kind.fields}
        return Struct(
            tuple(
                Field(f.name, cut(f.kind, deeper[f.name]), f.declared)
                for f in kind.fields
                if () not in deeper[f.name]
            )
        )

    fields = {field.name: field for field in schema.fields}
    return Struct(
        tuple(
            Field(
                name,
                cut(fields[name].kind, [parts[1:] for parts in dropped if parts[0] == name]),
                fields[name].declared,
            )
            for name in kept
        )
    )


def of_arrow(schema: pa.Schema) -> Struct:
    """Return the types that Spark has for those of a Parquet file without a schema of Spark's."""
    return Struct(tuple(Field(field.name, _of_arrow(field.type)) for field in schema))


def _of_arrow(kind: pa.DataType) -> Kind:
    types = pa.types
    if types.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    if types.is_struct(kind):
        fields = [kind.field(n) for n in range(kind.num_fields)]
        return Struct(tuple(Field(field.name, _of_arrow(field.type)) for field in fields))
    if types.is_map(kind):
        return MapOf(_of_arrow(kind.key_type), _of_arrow(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return ListOf(_of_arrow(kind.value_type))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Plain("string")
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return Plain("binary")
    if types.is_timestamp(kind):
        return Plain("timestamp_ntz" if kind.tz is None else "timestamp")
    if types.is_decimal(kind):
        return Plain(f"decimal({kind.precision},{kind.scale})")
    return Plain(_ARROW.get(str(kind), str(kind)))


_ARROW = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float": "float",
    "double": "double",
    "date32[day]": "date",
    "null": "void",
}
