"""Text in nested columns of an Arrow table, by the paths that a run takes: fields of structs, over one list or map at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from dptext_spark.config.locations import spelled

Parts = tuple[str, ...]


def is_string(kind: pa.DataType) -> bool:
    """Whether a type is that of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def paths_in(schema: pa.Schema) -> dict[str, Parts]:
    """Return every text that a path leads to, nested or not: its one spelling, and the names on the way."""
    found = (parts for one in schema for parts in _below((one.name,), one.type, False))
    return {spelled(parts): parts for parts in found}


def _below(at: Parts, kind: pa.DataType, over: bool) -> Iterator[Parts]:
    """Yield the ways from a value to its texts; `over` says that a list or map is behind."""
    if is_string(kind):
        yield at
    elif pa.types.is_struct(kind):
        for one in kind:
            yield from _below((*at, one.name), one.type, over)
    elif _holds_several(kind) and not over:
        yield from _below(at, _element(kind), True)


def text_at(rows: pa.Table, parts: Parts) -> pa.ChunkedArray:
    """Return a text of each row, [n]; of a list or map the texts of its elements, a line each, as an audit reads them.

    Args:
        rows: a sample, as small as one that is looked at.
        parts: one of the ways of :func:`paths_in`.
    """
    column = rows[parts[0]]
    if is_string(column.type):
        return column
    texts = [_joined(value, column.type, parts[1:]) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _joined(value: object, kind: pa.DataType, parts: Parts) -> str | None:
    found = list(_texts(value, kind, parts))
    return None if all(one is None for one in found) else "\n".join(one or "" for one in found)


def _texts(value: object, kind: pa.DataType, parts: Parts) -> Iterator[str | None]:
    """Yield the texts of a value: one, or those of its elements."""
    if value is None or isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(value[parts[0]], kind.field(parts[0]).type, parts[1:])
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one[1] if pa.types.is_map(kind) else one, _element(kind), parts)


def repeats_a_key(rows: pa.Table, parts: Parts) -> bool:
    """Check that a map on the way to a text holds one key twice, in a row of a sample."""
    column = rows[parts[0]]
    return any(_repeats(value, column.type, parts[1:]) for value in column.to_pylist())


def _repeats(value: object, kind: pa.DataType, parts: Parts) -> bool:
    if isinstance(value, dict):
        return _repeats(value[parts[0]], kind.field(parts[0]).type, parts[1:])
    if value is None or isinstance(value, str) or not isinstance(value, Sequence):
        return False
    is_map = pa.types.is_map(kind)
    if is_map and len({repr(key) for key, _ in value}) < len(value):
        return True
    return any(_repeats(inner[1] if is_map else inner, _element(kind), parts) for inner in value)


def beside(schema: pa.Schema, texts: Sequence[Parts]) -> tuple[str, ...]:
    """Return the fields that lie beside some texts inside their columns, spelled; the keys of a map are none."""
    roots = dict.fromkeys(parts[0] for parts in texts)
    return tuple(spelled(one) for root in roots for one in _beside((root,), schema.field(root).type, texts))


def _beside(at: Parts, kind: pa.DataType, texts: Sequence[Parts]) -> Iterator[Parts]:
    if _holds_several(kind):
        yield from _beside(at, _element(kind), texts)
    elif pa.types.is_struct(kind):
        for one in kind:
            way = (*at, one.name)
            if any(parts[: len(way)] == way for parts in texts):
                yield from _beside(way, one.type, texts)
            else:
                yield way


def _holds_several(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_map)
    return any(one(kind) for one in kinds)


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.item_type if pa.types.is_map(kind) else kind.value_type
