"""A first look at a table: the content of a sample, and some rows before and after.

All draws are under fresh keys that are thrown away, and nothing is charged to a ledger. This is sound only if nobody shares the
output. A whole look is restricted.

Text in nested columns of an Arrow table, by the paths of a run: fields of structs, over one list or map at most.

A few rows before and after, by one draw under a fresh key that nobody keeps.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.errors import DataError, SettingsError, did_you_mean, either, key_twice
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_files import TableSample
from dptext_spark.model.table_schema import Parts, beside_texts, of_arrow, resolve_all, texts_of
from dptext_spark.randomness import RunKey
from dptext_spark.text.engine import OF_IDENTIFIERS
from dptext_spark.text.selection import Texts
from dptext_spark.text.unknown_words import UnknownWords, count_unknown, likely_language

THROWN_AWAY = (
    "These draws used a fresh key, which is discarded. Nothing was written, and the ledger counts nothing. Do not share "
    "this screen: it would be one more release of these rows, outside every ledger."
)


def draw_rows(model: Privatizer, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Draw the texts of some rows once. Each row is a record, and nothing of the draw is kept.

    Args:
        model: the compiled model.
        columns: by name: texts [n], string or large_string.

    Returns:
        The sanitized texts, by name: [n].

    Raises:
        SettingsError: importance is a column of weights, or depends on counts that were not made.
        DataError: a text is no valid Unicode.
    """
    selector = model.selector
    if selector is not None and (selector.reads_weights or not model.chooses):
        raise SettingsError(
            "model: a few rows cannot show its draws, because they depend on a column of weights or on all texts of a run. "
            "Choose importance with idf and a corpus, attention or random, or no importance."
        )
    for name, texts in columns.items():
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:  # its message may show the text
            raise DataError(f"{name}: a text is not valid Unicode.") from None
    once = copy(model)
    once.__dict__["_draws"] = {}
    chosen = once.choose([Texts(texts) for texts in columns.values()])
    key, drawn = RunKey.generate(), {}
    for number, (name, texts) in enumerate(columns.items()):
        rows = pa.array(np.arange(len(texts)))
        drawn[name], _ = once.privatize(
            texts, column=name, row_ids=rows, key=key, chosen=None if chosen is None else chosen[number]
        )
    return drawn


def is_string(kind: pa.DataType) -> bool:
    """Check whether a type is that of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def paths_in(schema: pa.Schema) -> dict[str, Parts]:
    """Return every text that a path leads to, nested or not: its one spelling, and the names on the way."""
    return {path.name: path.parts for path in texts_of(of_arrow(schema))}


def text_at(rows: pa.Table, parts: Parts) -> pa.ChunkedArray:
    """Return a text of each row, [n]. A list or map has a line for each element's text, as in an audit.

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
    texts = list(_texts(value, kind, parts))
    return None if all(text is None for text in texts) else "\n".join(text or "" for text in texts)


def _texts(value: object, kind: pa.DataType, parts: Parts) -> Iterator[str | None]:
    """Yield the texts of a value: one, or those of its elements."""
    if value is None or isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(value[parts[0]], kind.field(parts[0]).type, parts[1:])
    elif isinstance(value, Sequence):
        for element in value:
            yield from _texts(element[1] if pa.types.is_map(kind) else element, _element(kind), parts)


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


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.item_type if pa.types.is_map(kind) else kind.value_type


CHARACTERS = 4_000  # of a text that is looked at
SHOWN = 300  # characters of a text that is shown
LEAST_WORDS, LEAST_LETTERS = 3.0, 12.0  # of a text, on average; letters in scripts without spaces
LEAST_OF_TITLES = 1.5  # words of titles and subjects, on average, where more than half of the values differ
LONGEST_KEY = 64  # characters
MOST_VALUES = 20  # of a column that may be an attribute
START_MINUTES, READ_AND_WRITE = 1.0, 2.0  # Spark's start; a job's work, as a multiple of the drawing alone
_OF_RECORDS = re.compile(
    r"(?i)(^|[^a-z])(id|ids|uuid|guid|pk|key|no|nr|user|customer|author|account|client|patient|member|conversation|thread|session|case"
    r"|kunden?|kundin|nutzer|konto|cliente|usuario|cuenta|utilisateur|compte|utente|klant)([^a-z]|$)"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# A key without spaces: it has a figure, and is no date, time, decimal, address of mail or telephone number.
_CODE = re.compile(r"(?=\S*\d)(?!\d+([-.,:/]\d+)+)[^\s@+]+")
_OF_TIME = re.compile(  # words of dates and times
    r"(?i)(mon|tue(s)?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?|(jan|febr)(uary)?|feb|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?"
    r"|(sept?|octo?|nov|dec)(ember|ber)?|at|[ap]m|utc|gmt|z|cest|[ecp][sed]t"
)


@dataclass(frozen=True)
class ShownRow:
    """One text of a row, before and after.

    Attributes:
        before: the table's text; if longer than `SHOWN` characters, cut at a word, with a mark.
        after: (style, sanitized text) for each.
    """

    column: str
    before: str
    after: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Columns:
    """Possible roles of a sample's columns.

    Attributes:
        texts: paths of text, as a run takes them.
        row_keys: those that are unique and never NULL in the sample.
        record_keys: those that several rows of the sample share, and whose names say so.
        nested: structs, lists and maps without text.
        attributes: others with few values for their rows: an audit measures whether the text reveals them.
        row_key: the first candidate, where its name or its values say that it is a key; None where none does: a date may be
            unique in a sample, too.
    """

    texts: tuple[str, ...]
    row_keys: tuple[str, ...]
    record_keys: tuple[str, ...]
    nested: tuple[str, ...]
    others: tuple[str, ...]
    row_key: str | None
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class FirstLook:
    """Content of a sample.

    Attributes:
        unknown: words that the lexicon does not hold.
        language: the likely one; None where none is, or the package that tells is not installed.
        found: (what, how many in the sample), of identifiers and names, by kind; none that was not found.
        minutes: that a run may take on this machine.
    """

    columns: Columns
    unknown: UnknownWords
    language: str | None
    found: tuple[tuple[str, int], ...]
    minutes: float
    rows: tuple[ShownRow, ...]

    def __repr__(self) -> str:
        """Return the number of text columns; the rest is restricted."""
        return f"FirstLook({len(self.columns.texts)} text columns)"


def columns_of(sample: TableSample, named: Sequence[str] = ()) -> Columns:
    """Find the possible roles of a sample's columns.

    Args:
        sample: of the table.
        named: the text columns, where the user says so; else they are looked for.

    Raises:
        SettingsError: a named column is not there.
        DataError: it is no text column, or there is none; a map that holds one key twice.
    """
    table = sample.rows
    lowered = [name.lower() for name in table.column_names]
    if len(set(lowered)) < len(lowered):
        raise DataError(
            "columns: two names differ in case only, and Spark takes them for one. Use names that differ otherwise."
        )
    paths = paths_in(table.schema)
    texts = tuple(_path_of(name, table, paths) for name in named) or tuple(
        path for path, parts in paths.items() if _is_text(table, parts)
    )
    if not texts:
        raise DataError(
            f"columns: none of {len(table.column_names)} has text in the sample of {table.num_rows:,} rows (three words or "
            "more a value on average). Choose a table with text, or --column NAME. Nothing was written."
        )
    twice = [path for path in texts if repeats_a_key(table, paths[path])]
    if twice:
        raise key_twice(twice)
    ways = [paths[path] for path in texts]
    rest = [name for name in table.column_names if name not in {parts[0] for parts in ways}]
    nested = tuple(name for name in rest if pa.types.is_nested(table[name].type))
    keys = [name for name in rest if _may_be_key(table[name])]
    distinct = {name: pc.count_distinct(table[name]).as_py() for name in keys}
    unique = [name for name in keys if table.num_rows > 1 and distinct[name] == table.num_rows]
    unique.sort(key=lambda name: (not _says_key(name), not _holds_codes(table[name])))
    shared = tuple(n for n in keys if 1 < distinct[n] < table.num_rows and _says_key(n))
    key = next((name for name in unique if _says_key(name) or _holds_codes(table[name])), None)
    others = tuple(name for name in rest if name not in nested and name != key)
    attributes = tuple(name for name in others if name not in shared and _has_few_values(table[name]))
    schema = of_arrow(table.schema)
    others += tuple(map(spelled, beside_texts(schema, resolve_all(schema, texts, exact=True))[0]))
    return Columns(texts, tuple(unique), shared, nested, others, key, attributes)


def _path_of(name: str, table: pa.Table, there: Mapping[str, tuple[str, ...]]) -> str:
    """Return the spelling of the text that a user names: a column of that very name, or a path."""
    parts = (name,) if name in table.column_names else parts_of(name)
    path = name if parts is None else spelled(parts)
    if path in there:
        return path
    if name in table.column_names:
        raise DataError(f"column: {name!r} is of type {table[name].type}. Choose a text column.")
    known = [*there, *(column for column in table.column_names if spelled((column,)) not in there)]
    raise SettingsError(
        f"column: {name!r} is not in the table. Choose {either(dict.fromkeys(known[:50]))}.{did_you_mean(name, known)}"
    )


def _is_text(table: pa.Table, parts: Sequence[str]) -> bool:
    """Check that values have words enough to be sentences, or differ as titles do. Each element of a list is a value."""
    is_nested = pa.types.is_nested(table[parts[0]].type)
    values = [value for value in text_at(table, tuple(parts)).drop_null().to_pylist() if value.strip()]
    if is_nested:  # the elements are lines there
        values = [line for value in values for line in value.split("\n") if line.strip()]
    if not values:
        return False
    words = sum(_is_word(word) for value in values for word in value[:CHARACTERS].split())
    unspaced = sum(char.isalpha() and char >= "\u0e00" for value in values for char in value[:CHARACTERS])
    if words >= LEAST_WORDS * len(values) or unspaced >= LEAST_LETTERS * len(values):
        return True
    differ = 2 * len(set(values)) > len(values)
    return not is_nested and differ and words >= LEAST_OF_TITLES * len(values)


def _is_word(word: str) -> bool:
    """Check that a word has a letter, and is none of a date or time."""
    return any(map(str.isalpha, word)) and not _OF_TIME.fullmatch(word.strip(".,;:()"))


def _holds_codes(column: pa.ChunkedArray) -> bool:
    """Check that values are whole numbers, or texts that look like keys."""
    if is_string(column.type):
        return all(_CODE.fullmatch(value) for value in column.to_pylist())
    return bool(pa.types.is_signed_integer(column.type))


def _may_be_key(column: pa.ChunkedArray) -> bool:
    """Check whether a column has a type that keys have, no NULL and no long value."""
    kind = column.type
    if column.null_count:
        return False
    if is_string(kind):
        return bool(pc.max(pc.utf8_length(column)).as_py() <= LONGEST_KEY)
    of_keys = (pa.types.is_signed_integer, pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp)
    return any(is_kind(kind) for is_kind in of_keys)


def _has_few_values(column: pa.ChunkedArray) -> bool:
    """Check that a column has values of a type that classes have, two or more, and few for its rows."""
    kind = column.type
    of_classes = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_date,
    )
    if not is_string(kind) and not any(is_of(kind) for is_of in of_classes):
        return False
    most = min(MOST_VALUES, (len(column) - column.null_count) // 2)
    return bool(2 <= pc.count_distinct(column).as_py() <= most)


def _says_key(name: str) -> bool:
    return _OF_RECORDS.search(_CAMEL.sub("_", name)) is not None


def look(
    sample: TableSample,
    columns: Columns,
    styles: Mapping[str, Privatizer],
    chosen: str,
    finder: str,
    rows: int,
) -> FirstLook:
    """Look at a sample.

    Args:
        sample: of the table.
        columns: what its columns are.
        styles: the models whose rows are shown, by name.
        chosen: the one that a run would use: whose lexicon counts, and how fast it draws.
        finder: the one that looks for all kinds of identifiers and for names, and masks them.
        rows: how many are shown.
    """
    table, n = sample.rows, sample.rows.num_rows
    words, unknown, counts, seconds = np.zeros(n, np.int64), np.zeros(n, np.int64), dict[str, int](), 0.0
    texts = {name: _beginnings(_texts_at(table, name)) for name in columns.texts}
    model = styles[chosen]
    model.warm_up()
    for name, column in texts.items():
        began = time.perf_counter()
        _sample_output(model, name, column)
        seconds += time.perf_counter() - began
        _, counters = _sample_output(styles[finder], name, column)
        for counter in (*OF_IDENTIFIERS[1:], "persons_found", "locations_found"):
            counts[counter] = counts.get(counter, 0) + counters[counter]
        looked_up, missing = count_unknown(model.engine, column)
        words, unknown = words + looked_up, unknown + missing
    kinds = tuple((_kind(counter), count) for counter, count in counts.items() if count)
    cores = os.cpu_count() or 1
    minutes = START_MINUTES + READ_AND_WRITE * seconds * sample.total / n / cores / 60
    language = likely_language(
        text for column in texts.values() for text in column.cast(pa.binary()).to_pylist()
    )
    return FirstLook(
        columns, UnknownWords.of_rows(words, unknown), language, kinds, minutes,
        shown_rows(sample, columns.texts, styles, rows),
    )  # fmt: skip


def shown_rows(
    sample: TableSample, columns: Sequence[str], styles: Mapping[str, Privatizer], rows: int
) -> tuple[ShownRow, ...]:
    """Draw some rows of a sample, evenly spaced, by each model: each under a fresh key that is thrown away.

    Raises:
        SettingsError: importance of a model needs weights, or counts of a whole table.
    """
    n = sample.rows.num_rows
    chosen = pa.array(np.unique(np.linspace(0, n - 1, min(rows, n)).astype(np.int64)))
    shown: list[ShownRow] = []
    taken = {
        name: pa.array(
            map(_shortened, _beginnings(_texts_at(sample.rows, name)).take(chosen).to_pylist()), pa.string()
        )
        for name in columns
    }
    out = {
        style: {name: drawn.to_pylist() for name, drawn in draw_rows(model, taken).items()}
        for style, model in styles.items()
    }
    for place in range(len(chosen)):
        for name in columns:
            before = taken[name][place].as_py()
            if before:
                after = tuple((style, str(drawn[name][place])) for style, drawn in out.items())
                shown.append(ShownRow(name, before, after))
    return tuple(shown)


def _sample_output(model: Privatizer, column: str, texts: pa.Array) -> tuple[pa.Array, dict[str, int]]:
    identities = pa.array(np.arange(len(texts)))
    drawn, counters = model.privatize(texts, column=column, row_ids=identities, key=RunKey.generate())
    return drawn, counters.totals()


def _texts_at(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return the texts of a path."""
    return text_at(table, paths_in(table.schema)[path])


def _beginnings(column: pa.ChunkedArray) -> pa.Array:
    """Return the beginnings of texts, as one array."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], column.type)
    return pc.utf8_slice_codeunits(whole, 0, CHARACTERS)


def _shortened(text: str | None) -> str | None:
    """Return a text that is shown: a longer one up to its last word that is whole, and a mark."""
    if text is None or len(text) <= SHOWN:
        return text
    return f"{text[:SHOWN].rsplit(None, 1)[0]} …"


def _kind(counter: str) -> str:
    """Describe a counter in words."""
    names = {
        "persons_found": "names of persons", "locations_found": "names of places", "identifiers_provided": "of providers",
    }  # fmt: skip
    return names.get(counter, counter.removeprefix("identifiers_"))
