"""Rules for the schema of a run's input: one set, for the run and for the dry run before it.

Each takes a schema of any source. Messages name columns, never their values.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.errors import DataError, SettingsError, either
from dptext_spark.model.table_schema import (
    Kind,
    ListOf,
    MapOf,
    Parts,
    Plain,
    Struct,
    TextPath,
    beside_texts,
    resolve_all,
)

if TYPE_CHECKING:
    from dptext_spark.config.model import RunConfig
    from dptext_spark.config.sections import Input

FORMATS = ("delta", "parquet", "csv", "tsv", "json", "text")
MOST_NAMED = 5  # files, in a message
RESULT = "__dptext"  # the name of the function's result while a run is under way
_KEY = re.compile(r"tinyint|smallint|int|bigint|string( .*)?|binary|timestamp(_ntz)?|date|decimal\(.*\)")
_NUMBER = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal\(.*\)")


def nothing_there(place: str, why: str) -> DataError:
    """Return the error for an input's path that leads nowhere."""
    return DataError(
        f"input.path: {place!r} is empty or does not exist ({why}). Choose a path that exists where Spark runs."
    )


def no_delta_table(place: str) -> DataError:
    """Return the error for an input that should be a Delta table and is none."""
    return DataError(
        f"input.path: {place!r} is not a Delta table. Choose another folder, or set input.format to {either(FORMATS[1:])}."
    )


def unreadable(place: str, format: str, why: str) -> DataError:
    """Return the error for an input that is not what its format says; `why` quotes no word."""
    return DataError(
        f"input: {place!r} cannot be read as {format} ({why}). Choose its format: {either(FORMATS)}."
    )


def check_file_names(place: str, files: Iterable[Path]) -> None:
    """Refuse files of this machine that Spark cannot read: those with a colon in their names, pipes and devices.

    Hadoop's local file system cannot open the first, and waits for ever for a pipe.

    Raises:
        DataError: naming the first of them.
    """
    files = list(files)
    endless = next((file for file in files if file.exists() and not file.is_file()), None)
    if endless is not None:
        raise DataError(
            f"input.path: {str(endless)!r} is a pipe, a device or a socket. Choose a file, or a folder of files."
        )
    odd = next((file.name for file in files if ":" in file.name), None)
    if odd is not None:
        raise colon_in_name(place, odd)


def check_cases(schema: Struct, columns: Sequence[str] = ()) -> None:
    """Refuse fields that differ in case only: Spark takes them for one, and loses the values of all others.

    Args:
        schema: of the input, each spelling a field of its own.
        columns: the text columns: other names may be private and are not shown.

    Raises:
        DataError: with the number of such fields.
    """
    often = Counter(tuple(map(str.lower, parts)) for parts in _fields_of(schema))
    twins = {parts for parts, count in often.items() if count > 1}
    if not twins:
        return
    named = [name for name in columns if tuple(map(str.lower, parts_of(name) or ())) in twins]
    count, shown = sum(often[parts] for parts in twins), f" (among them {_quoted(named)})" if named else ""
    raise DataError(
        f"input: {count:,} fields differ from each other in case only{shown}, and Spark takes them for one. Spell each "
        "field in one way."
    )


def _fields_of(kind: Kind, above: Parts = ()) -> Iterator[Parts]:
    """Yield the way to each field, through lists and the values of maps."""
    if isinstance(kind, ListOf):
        yield from _fields_of(kind.element, above)
    elif isinstance(kind, MapOf):
        yield from _fields_of(kind.value, above)
    elif isinstance(kind, Struct):
        for field in kind.fields:
            yield (*above, field.name)
            yield from _fields_of(field.kind, (*above, field.name))


def json_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object; `object_pairs_hook` of :func:`json.loads`.

    Raises:
        DataError: a name holds half a surrogate pair: Spark takes its record for no JSON.
    """
    if any("\ud800" <= sign <= "\udfff" for name, _ in pairs for sign in name):
        raise DataError(
            "input: the name of a field has half a surrogate pair, an incomplete character. Use whole characters."
        )
    return dict(pairs)


def not_utf8(lines: int) -> DataError:
    """Return the error for JSON that is read as UTF-8 and is none."""
    return DataError(
        f"input.options: no encoding is set, and {lines:,} lines are not UTF-8. Choose files in UTF-8, or set input.options "
        "to the encoding, such as {encoding: ISO-8859-1}."
    )


def colon_in_name(place: str, file: str = "") -> DataError:
    """Return the error for a file that Spark cannot open because of a colon in its name."""
    which = f"the file {file!r}" if file else "a file or folder"
    return DataError(
        f"input.path: Spark cannot read {place!r}, because the name of {which} has a colon. Rename it, for example by mv "
        "'a:b.csv' a-b.csv."
    )


def other_header(files: Sequence[str], count: int, *, is_named: bool) -> DataError:
    """Return the error for CSV files whose columns are not those of the first: they would be read by their place."""
    what = "does not name the columns of the first file in their order"
    if not is_named:
        what = f"does not have {count:,} fields, as the first file has"
    return DataError(
        f"input: the first line of {named_files(files)} {what}. Spark would read columns by their position. Choose files "
        "with equal first lines, or one input for each kind of file."
    )


def named_files(files: Sequence[str]) -> str:
    """Return the number of files and the names of the first."""
    names = sorted(files)
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{len(names):,} file{'' if len(names) == 1 else 's'} ({', '.join(names[:MOST_NAMED])}{more})"


@dataclass(frozen=True)
class SchemaFit:
    """Fit of the settings to a schema.

    Attributes:
        paths: where the texts are.
        kept: the target's columns, in the order of the input.
        dropped: fields beside nested texts that the output leaves out.
    """

    paths: tuple[TextPath, ...]
    kept: tuple[str, ...]
    dropped: frozenset[Parts]


def check_input(schema: Struct, config: RunConfig) -> SchemaFit:
    """Refuse an input that lacks what settings name, or has it in a type that does not do.

    Raises:
        DataError, SettingsError: naming the setting, the column and what is valid.
    """
    paths = check_texts(schema, config.columns)
    if config.importance is not None:
        check_weights(schema, config.importance.weights)
    check_keys_there(schema, config.row_key, config.record_key)
    for field, name in (("row_key", config.row_key), ("record_key", config.record_key)):
        if name is not None:
            check_key_kind(field, name, schema.kinds[name])
    for field, source in config.lists.named():
        if source.of_rows:
            list_column(schema, field, str(source.column))
    columns, dropped = kept_columns(schema, config, paths)
    return SchemaFit(tuple(paths), tuple(columns), dropped)


def check_header(schema: Struct, source: Input, columns: Sequence[str], files: Sequence[str] = ()) -> None:
    """Refuse a CSV file whose first line names no text column. It may be a row, so the message does not show it.

    Args:
        schema: with the names of the first line.
        source: the input.
        columns: the text columns, as settings name them.
        files: of the input; the first of them, by name, has that line.

    Raises:
        DataError: it may have no header, or another separator or encoding.
    """
    if source.table or source.format not in ("csv", "tsv") or not columns:
        return
    if source.options.get("header", "true").lower() != "true":
        return
    if any(name in schema.kinds or (parts_of(name) or ("",))[0] in schema.kinds for name in columns):
        return
    count = len(schema.fields)
    first = (
        f"the first line of {posixpath.basename(unquote(min(files)))!r}"
        if len(files) > 1
        else "its first line"
    )
    raise DataError(
        f"columns: {_quoted(columns)} {'is' if len(columns) == 1 else 'are'} not in the input. dptext took {first} for the "
        f"names of columns. It has {count:,} other field{'' if count == 1 else 's'}, not shown, because they may be private "
        "text. Choose columns from that line. If the line is a row, set input.options header: false (columns are then _c0, "
        "_c1, ...). Otherwise set sep or encoding."
    )


def check_texts(schema: Struct, columns: Sequence[str]) -> list[TextPath]:
    """Refuse texts that are missing or no text, and a column that would be taken for the result of the function.

    Returns:
        Where the texts are.

    Raises:
        DataError: naming the column and the valid ones.
    """
    taken = [name for name in schema.names if name.lower() == RESULT]
    if taken:
        raise DataError(f"input: the column name {taken[0]!r} is reserved. Rename the column.")
    return resolve_all(schema, columns)


def _absent(field: str, name: str, names: Sequence[str]) -> DataError:
    return DataError(f"{field}: {name!r} is not in the input. Choose {either(names)}.")


def check_keys_there(schema: Struct, row_key: str | None, record_key: str | None) -> None:
    """Refuse keys that are named and are not there: to go on without would weaken the unit that is protected.

    Raises:
        DataError: naming the columns there.
    """
    for field, name in (("row_key", row_key), ("record_key", record_key)):
        if name is not None and name not in schema.kinds:
            raise _absent(field, name, schema.names)


def check_key_kind(field: str, name: str, kind: Kind) -> None:
    """Refuse a key of a type that cannot distinguish rows, or not reliably; :class:`SettingsError`: naming the valid types."""
    if not isinstance(kind, Plain) or not _KEY.fullmatch(kind.name):
        raise SettingsError(
            f"{field}: column {name!r} is of type {kind}. Choose an integer, string, binary, decimal, date or timestamp "
            "column."
        )


def check_weights(schema: Struct, names: Sequence[str]) -> None:
    """Refuse columns of weights that are missing or hold no lists of numbers.

    Raises:
        DataError: naming the column and what is valid.
    """
    kinds = {field.name.lower(): field.kind for field in schema.fields}
    for name in names:
        kind = kinds.get(name.lower())
        if kind is None:
            raise _absent("importance.weights", name, schema.names)
        element = kind.element if isinstance(kind, ListOf) else None
        if not isinstance(element, Plain) or not _NUMBER.fullmatch(element.name):
            raise DataError(f"importance.weights: column {name!r} is of type {kind}. Choose array<float>.")


def list_column(schema: Struct, field: str, name: str) -> str:
    """Return the exact name of a column that holds a list of each row.

    Raises:
        DataError: it is missing, or holds neither text nor lists of text.
    """
    known = {candidate.name.lower(): candidate for candidate in schema.fields}
    column = known.get(name.lower())
    if column is None:
        raise _absent(f"{field}.column", name, schema.names)
    inside = column.kind.element if isinstance(column.kind, ListOf) else column.kind
    if not isinstance(inside, Plain) or not inside.is_text:
        raise DataError(
            f"{field}.column: column {name!r} is of type {column.kind}. Choose string or array<string>."
        )
    return column.name


def kept_columns(
    schema: Struct, config: RunConfig, paths: Sequence[TextPath]
) -> tuple[list[str], frozenset[Parts]]:
    """Return the columns of the target, in the order of the input, and the dropped fields beside nested texts.

    The row key always goes along: without it nobody could audit the target.

    Raises:
        DataError: a column is named that is not there.
    """
    other = config.output.other_columns
    if other == "keep":
        # Weights of private words reveal them: such a column goes along only if it is named.
        weights = () if config.importance is None else config.importance.weights
        left = {name.lower() for name in weights}
        return [name for name in schema.names if name.lower() not in left], frozenset()
    fields, _ = beside_texts(schema, paths)
    listed = () if other == "drop" else other
    inside = {spelled(field) for field in fields}
    valid = [*schema.names, *sorted(inside)]
    for name in listed:
        if name not in schema.kinds and spelled(parts_of(name) or ()) not in inside:
            raise _absent("output.other_columns", name, valid)
    whole = {name for name in listed if name in schema.kinds}
    named = {path.root for path in paths} | whole | {config.row_key}
    listed_parts = {parts_of(name) for name in listed}
    dropped = frozenset(field for field in fields if field not in listed_parts and field[0] not in whole)
    return [name for name in schema.names if name in named], dropped


def check_partitions(
    partition_by: Sequence[str], schema: Struct, kept: Sequence[str], paths: Sequence[TextPath],
    there: Sequence[str] | None,
) -> None:  # fmt: skip
    """Refuse partitions that cannot be made: folders are named by their values, so none may be of a text.

    Args:
        partition_by: the setting.
        schema: of the input.
        kept: the target's columns.
        paths: the texts.
        there: the partition columns of the target, None where there is no target yet.

    Raises:
        DataError: naming the column.
    """
    if not partition_by:
        return
    texts = {path.root for path in paths}
    valid = [name for name in kept if name not in texts and _names_folders(schema.kinds[name])]
    for name in partition_by:
        if name not in valid:
            raise DataError(
                f"output.partition_by: {name!r} is not valid. Choose columns of the target without sanitized text, nested "
                f"or binary values: {', '.join(valid) or 'none'}."
            )
    if len(valid) and len(partition_by) == len(kept):
        raise DataError("output.partition_by: it names all columns. Choose fewer than the target has.")
    if there is not None and list(there) != list(partition_by):
        raise DataError(
            f"output.partition_by: {list(partition_by)} differs from the target's partitions, {list(there)}. Choose these, "
            "or remove the setting."
        )


def _names_folders(kind: Kind) -> bool:
    return not isinstance(kind, Struct | ListOf | MapOf) and kind.name != "binary"


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"


NEW = "new"  # the target of a dry run, if nothing exists there


@dataclass(frozen=True)
class DryRunResult:
    """Results of a dry run without a refusal.

    Attributes:
        read: of the input, in words.
        kept: of them those that the target has, texts among them.
        target: the present target, in words; `new` without one.
        open: points that only the run can decide.
        slow: avoidably slow parts, in words; empty without one.
    """

    read: str
    columns: tuple[str, ...]
    kept: tuple[str, ...]
    target: str
    open: tuple[str, ...]
    slow: str = ""


def only_the_run(config: RunConfig, paths: Sequence[TextPath] = ()) -> Iterator[str]:
    """Yield points that no schema decides."""
    if not config.is_stream:
        yield "whether the input has rows"
    if config.row_key is not None:
        yield f"whether {config.row_key} is unique and never NULL"
    if config.record_key is not None:
        yield f"whether {config.record_key} is never NULL"
    maps = [path.name for path in paths if path.over == "map"]
    if maps:
        yield f"whether a map of {', '.join(maps)} has the same key twice"
    if not config.allow_unknown:
        yield "whether the lexicon has most of the words"
    if config.input.path is not None and config.input.format in ("csv", "tsv", "json"):
        yield (
            "whether every record fits and is UTF-8"
            if config.input.format == "json"
            else ("whether every line fits, in its encoding")
        )
    if config.is_stream:
        yield "whether the checkpoint belongs to these settings"
    yield "how much of its limit the ledger has left"
