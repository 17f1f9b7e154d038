"""Pair the texts of two tables in workers, which return counts, keyed hashes and, of a sample, word ids.

An audit takes one pass: whatever it wants of a batch leaves as rows of one form, told apart by `what`, of which equal ones are
summed (:mod:`dptext_spark.spark.auditing.pair_tables`):

| what | number | field | values | n |
|---|---|---|---|---|
| COUNT | column, `WHOLE` of rows | place in `COUNT_FIELDS` | | what was counted |
| STAYED | | | a: word | how often |
| GROUP | place in `LEVELS` | | a: group of equal words; low, high: its replacement | words |
| TOKENS | column | | a: record, b: words, c: outputs, d: drawn | 1 |
| TEXT | `COMPARED`, `LEARNT`, both | tried on | a: source, b: table, c: record, d: label, f: attribute | 1 |

TOKENS and TEXT have the key of their row: in `key` where it is a number, else in `e`. Texts, and words that stayed, leave a
worker only where somebody asked for what needs them.

What the one pass of an audit over both tables brings to the driver: equal rows summed, groups of words counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Window, functions

from dptext_spark.arrays import I32, I64, U64, Bools, Ids
from dptext_spark.audit.table.findings import StayedWord
from dptext_spark.audit.table.metrics import COUNTS, FoundNames, kept_words, listed_counts, name_counts
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey, hash_keys, identify
from dptext_spark.spark.errors import INVALID_UTF8, TaskError, code_of
from dptext_spark.spark.udf.names import NO_NAMES, ShippedNames, names_of
from dptext_spark.spark.udf.ship import Shipped, open_shipped
from dptext_spark.text.pair_tokens import (
    DRAWN_WORD,
    NO_WORD,
    NUMBER,
    UNKNOWN_WORD,
    Pairing,
    Words,
    pair,
    words_of,
)
from dptext_spark.text.tokens import EDGE, UNKNOWN

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from pyspark.sql import DataFrame

PART_BYTES = 1 << 19
WHOLE = -1  # the column number of what is counted over whole rows
LEVELS = ("record", "dataset")
COUNT_FIELDS = (*COUNTS, "unchanged", "with_words")
COUNT, STAYED, GROUP, TOKENS, TEXT = range(5)
VALUES = ("a", "b", "c", "d", "e", "f")
COMPARED, LEARNT = 1, 2  # what a text is for
EVERY = 1 << 63  # as a limit: every scope
SCHEMA = ", ".join(
    [
        "what int, number int, field int, key bigint",
        *(f"{name} binary" for name in VALUES),
        "low bigint, high bigint, n bigint",
    ]
)
_ARROW = pa.schema(
    [
        (field, {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}[kind])
        for field, kind in (field.split() for field in SCHEMA.split(", "))
    ]
)


def limit_of(share: float) -> int:
    """Return how far a keyed share of all scopes goes, of `EVERY`."""
    return EVERY if share >= 1.0 else int(share * EVERY)


@dataclass(frozen=True)
class Wanted:
    """What an audit wants beside its counts. Each limit is one of :func:`limit_of`; samples of one key hold each other.

    Attributes:
        sample: of the records whose words are grouped.
        tokens: whether the tokens of these are wanted.
        compared: of those whose texts are compared; 0 for none.
        learnt: of those whose texts are learnt from.
        values: the columns of the label and the attribute, by the option that names them.
        stayed: whether the words of names that stayed are wanted.
    """

    sample: int = 0
    tokens: bool = False
    compared: int = 0
    learnt: int = 0
    values: tuple[str, ...] = ()
    stayed: bool = False

    @property
    def texts(self) -> int:
        """Of the records whose texts leave a worker."""
        return max(self.compared, self.learnt)


class _InvalidTextError(Exception):
    """Some rows of a batch are no UTF-8."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows


@dataclass(frozen=True)
class Paired:
    """The texts of one column in a batch, beside their rewritten forms."""

    source: Words
    output: Words
    texts: pa.Array  # string [rows], of the source
    pairing: Pairing
    aligned: Bools  # bool[n], of the source's words
    same: Bools  # bool[n], aligned with an equal word
    rows: Bools  # bool[rows], which texts are aligned
    equal: Bools  # bool[rows], byte for byte


@dataclass(frozen=True)
class PairTables:
    """Maps batches of (scope, s0, o0, s1, o1, ..., n0, ...) to rows of `SCHEMA`; :meth:`over` adds what else they need.

    Attributes:
        shipped: where the model is, whose tokenizer, words and policy count.
        key: of the hashes; it is made for this audit alone.
        columns: how many text columns there are.
        names: the lists of names that the run was given; their entries are no words.
        counted: a list of names that are counted.
        wanted: what the audit wants.
    """

    shipped: Shipped
    key: RunKey
    columns: int
    names: ShippedNames = NO_NAMES
    counted: ShippedNames = NO_NAMES
    wanted: Wanted = Wanted()

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Map the batches of a task; what goes wrong leaves as a code."""
        context = TaskContext.get()
        partition, number = context.partitionId() if context is not None else 0, 0
        try:
            privatizer = open_shipped(self.shipped)
            for batch in stream:
                for part in _parts_of(batch):
                    yield from self._audit(privatizer, part)
                number += 1
        except GeneratorExit:
            raise
        except _InvalidTextError as error:
            raise TaskError(INVALID_UTF8, partition, number, error.rows) from None
        except BaseException as error:
            raise TaskError(code_of(error, "AUDIT_"), partition, number, 0) from None

    def over(self, frame: DataFrame) -> DataFrame:
        """Map the rows of both tables, joined: (scope, row_key, s0, o0, ..., n0, ..., label, attribute)."""
        columns = [functions.col(f"{side}{i}") for i in range(self.columns) for side in "so"]
        columns += [functions.col(f"n{i}") for i in range(len(self.names.columns))]
        columns.append(functions.col("row_key"))
        record = functions.col("scope").cast("string")
        if self.wanted.texts:
            columns += [record.alias("record"), tried_on(record).alias("test")]
            columns += [functions.col(name) for name in self.wanted.values]
        return frame.select("scope", *columns).mapInArrow(self, SCHEMA)

    def _paired(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[Paired]:
        """Pair the texts of each column."""
        keys = hash_keys(self.key.derive("table audit words", length=16))
        held = [batch.column(f"n{i}") for i in range(len(self.names.columns))]
        names = names_of(self.names, held, self.key)
        engines = [privatizer.engine] * 2
        if names is not None:
            engines = [privatizer.with_names(one).engine for one in (names, replace(names, masked=True))]
        for i in range(self.columns):
            texts, written = batch.column(f"s{i}"), batch.column(f"o{i}")
            source, output = (
                words_of(engine, side, keys) for engine, side in zip(engines, (texts, written), strict=True)
            )
            invalid = int((source.invalid | output.invalid).sum())
            if invalid:
                raise _InvalidTextError(invalid)
            pairing = pair(source, output)
            both = _held(texts) == _held(written)
            row = np.repeat(np.arange(len(batch)), np.diff(source.bounds))
            aligned = (pairing.partner >= 0) & both[row]
            same = np.zeros(len(aligned), np.bool_)
            same[aligned] = (source.form[aligned] == output.form[pairing.partner[aligned]]).all(axis=1)
            equal = np.asarray(pc.equal(texts, written).fill_null(False)) | (~_held(texts) & both)
            yield Paired(source, output, texts, pairing, aligned, same, pairing.rows & both, equal)

    def _audit(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from self._counts(privatizer, batch)
        # 63 of the bits that `sample_of` looks at.
        place = identify(batch.column("scope"), self.key, "audit sample")[:, 0] >> np.uint64(1)
        chosen = place < np.uint64(self.wanted.sample)
        if chosen.any():
            yield from self._sampled(privatizer, batch.filter(pa.array(chosen)))
        uses = np.zeros(len(batch), np.int32)
        for use, limit in ((COMPARED, self.wanted.compared), (LEARNT, self.wanted.learnt)):
            uses[place < np.uint64(limit)] |= use
        if uses.any():
            yield self._texts(batch.filter(pa.array(uses > 0)), uses[uses > 0])

    def _counts(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        equal, with_words = np.ones(len(batch), np.bool_), np.zeros(len(batch), np.bool_)
        listed = names_of(self.counted, [], self.key)
        for i, found in enumerate(self._paired(privatizer, batch)):
            kind, aligned, same = found.source.kind, found.aligned, found.same
            word = kind != NO_WORD
            kinds = {"drawn": DRAWN_WORD, "unknown": UNKNOWN_WORD, "numbers": NUMBER}
            names = FoundNames.of(found.texts)
            counts = {
                "rows": len(batch),
                "rows_not_aligned": int((~found.rows).sum()),
                "words": int((aligned & word).sum()),
                "words_not_aligned": int((~aligned & word).sum()),
                "same": int((same & word).sum()),
                **{name: int((aligned & (kind == code)).sum()) for name, code in kinds.items()},
                **{f"{name}_same": int((same & (kind == code)).sum()) for name, code in kinds.items()},
                **name_counts(names, found.source, aligned, same),
            }
            if listed is not None:
                counts |= listed_counts(listed, found.texts, found.source, aligned, same)
            yield _count_rows(i, counts)
            if self.wanted.stayed:
                words, n = kept_words(names, found.source, aligned, same)
                yield _tagged(STAYED, n, a=words)
            equal &= found.equal
            drawn = np.append(0, np.cumsum(kind == DRAWN_WORD))
            with_words |= np.diff(drawn[found.source.bounds]) > 0
        whole = {
            "rows": len(batch),
            "unchanged": int((equal & with_words).sum()),
            "with_words": int(with_words.sum()),
        }
        yield _count_rows(WHOLE, whole)

    def _sampled(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        scope = identify(batch.column("scope"), self.key, "table audit scope")
        for i, found in enumerate(self._paired(privatizer, batch)):
            yield from _groups(scope, found)
            if self.wanted.tokens:
                yield _tokens(_hashes(scope), _key_of(batch), i, found, len(privatizer.vocabulary))

    def _texts(self, batch: pa.RecordBatch, uses: I32) -> pa.RecordBatch:
        """Return the texts of rows, of all columns as one, beside what is known of them."""
        kind = pa.large_string()
        plain, private = (
            pc.binary_join_element_wise(
                *(batch.column(f"{side}{i}").cast(kind) for i in range(self.columns)), pa.scalar("\n", kind),
                null_handling="skip",
            )
            for side in "so"
        )  # fmt: skip
        values = {place: batch.column(n) for place, n in _PLACES.items() if n in self.wanted.values}
        tried = np.asarray(batch.column("test").to_numpy(zero_copy_only=False), np.int32)
        return _tagged(
            TEXT, np.ones(len(batch), np.int64), number=uses, field=tried, a=plain, b=private, c=batch.column("record"),
            **_key_of(batch), **values,
        )  # fmt: skip


_PLACES = {"d": "label", "f": "attribute"}
TEST = 5  # records of every so many-th hash are tried on


def tried_on(record: Column) -> Column:
    """Whether classifiers are tried on a record, and do not learn from it; by its key as text."""
    return functions.pmod(functions.xxhash64(record), functions.lit(TEST)) == 0


def _groups(scope: U64, found: Paired) -> Iterator[pa.RecordBatch]:
    """Yield the groups of equal words of each level with their replacements, equal pairs of a batch once."""
    row = np.repeat(np.arange(len(scope)), np.diff(found.source.bounds))
    # Words that a hyphen or an apostrophe joins to others may end elsewhere in the output.
    at = np.flatnonzero(
        found.aligned & found.pairing.alone & np.isin(found.source.kind, (DRAWN_WORD, UNKNOWN_WORD))
    )
    replacement = found.output.form[found.pairing.partner[at]]
    form = found.source.form[at]
    for level, groups in enumerate((form ^ scope[row[at]], form)):
        pairs, n = np.unique(np.concatenate([groups, replacement], axis=1), axis=0, return_counts=True)
        low, high = (np.ascontiguousarray(half).view(np.int64) for half in pairs[:, 2:].T)
        yield _tagged(GROUP, n, number=level, a=_hashes(pairs[:, :2]), low=low, high=high)


def _key_of(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the keys of rows in the column that holds them."""
    key = batch.column("row_key")
    return {"key" if pa.types.is_integer(key.type) else "e": key}


def _tokens(
    scope: pa.Array, key: dict[str, pa.Array], column: int, found: Paired, words_of_model: int
) -> pa.RecordBatch:
    """Return the tokens of texts, each with its record and its key."""
    source, partner = found.source, found.pairing.partner
    released = found.output.numbers[np.maximum(partner, 0)] if len(found.output.ids) else EDGE
    outputs = np.where(found.aligned, released, EDGE)
    drawn = found.aligned & (source.kind == DRAWN_WORD) & (outputs >= 0)
    drawn &= outputs < words_of_model
    # A text begins with an edge, and so does what follows punctuation.
    bounds = source.bounds
    edge = source.marked.copy()
    edge[bounds[:-1][np.diff(bounds) > 0]] = True
    place = np.arange(len(edge)) + np.cumsum(edge)
    size = len(edge) + int(edge.sum())
    words, out = np.full(size, EDGE, np.int32), np.full(size, EDGE, np.int32)
    flags = np.zeros(size, np.bool_)
    # A word that did not stay and was not drawn, or could not be aligned, is not to be seen in the table.
    seen = np.where(drawn | found.same, source.ids, UNKNOWN)
    words[place], out[place], flags[place] = seen, outputs, drawn
    ends = np.append(0, np.cumsum(edge))[bounds] + bounds
    return _tagged(
        TOKENS, np.ones(len(scope), np.int64), number=column, a=scope, b=_parts(words, ends), c=_parts(out, ends),
        d=_parts(flags, ends), **key,
    )  # fmt: skip


def _parts_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch into parts of about `PART_BYTES`: reading takes some 64 bytes for each byte of text."""
    step = max(1, len(batch) * PART_BYTES // max(1, batch.nbytes))
    for start in range(0, len(batch), step):
        yield batch.slice(start, step)


def _count_rows(column: int, counts: Mapping[str, int]) -> pa.RecordBatch:
    held = {COUNT_FIELDS.index(name): n for name, n in counts.items() if n}
    return _tagged(
        COUNT, np.array([*held.values()], np.int64), number=column, field=np.array([*held], np.int64)
    )


def _tagged(
    what: int, n: I64 | pa.Array, *, number: int | I64 | I32 = 0, field: int | I64 | I32 = 0, **values: pa.Array | I64
) -> pa.RecordBatch:  # fmt: skip
    """Return rows of an audit: int64[rows] `n`, and what else they hold; what is not named is 0 or NULL."""
    size = len(n)
    held = {
        "what": np.full(size, what, np.int32),
        "number": np.broadcast_to(number, size).astype(np.int32),
        "field": np.broadcast_to(field, size).astype(np.int32),
        "n": n,
        **values,
    }
    return pa.RecordBatch.from_arrays(
        [
            pa.array(held[one.name]).cast(one.type) if one.name in held else pa.nulls(size, one.type)
            for one in _ARROW
        ],
        schema=_ARROW,
    )


def _held(texts: pa.Array) -> Bools:
    return np.asarray(texts.is_valid(), np.bool_)


def _hashes(hashes: U64) -> pa.Array:
    return _parts(np.ascontiguousarray(hashes).reshape(-1), np.arange(len(hashes) + 1, dtype=np.int64) * 2)


def _parts(values: Ids | Bools | U64, ends: I64) -> pa.Array:
    """Cut the bytes of an array into those of each row."""
    raw = np.ascontiguousarray(values)
    offsets = pa.py_buffer((ends * raw.itemsize).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, pa.py_buffer(raw.tobytes())])


F: Any = functions  # its stubs leave out what Spark adds at run time
MOST_STAYED = 20
_KEY = ("key", "e")  # where the key of a row is


def summed(rows: DataFrame, stayed: bool) -> DataFrame:
    """Sum equal rows; of groups of equal words count those of two words or more, and those with two replacements.

    Args:
        rows: of an audit, see :mod:`dptext_spark.spark.auditing.pair_tables`.
        stayed: whether words that stayed are among them, of which the `MOST_STAYED` most frequent are kept.

    Returns:
        (what, number, field, key, a, ..., f, n, broken); of a group `n` and `broken` count groups, and `a` is NULL.
    """
    numbers, group = ["what", "number", "field", "key"], F.col("what") == GROUP
    ends = [
        end(half).alias(f"{name}_{half}")
        for half in ("low", "high")
        for name, end in (("min", F.min), ("max", F.max))
    ]
    each = rows.groupBy(*numbers, *VALUES).agg(F.sum("n").alias("n"), *ends)
    several = group & (F.col("n") > 1)
    differ = (F.col("min_low") != F.col("max_low")) | (F.col("min_high") != F.col("max_high"))
    of_groups = each.select(
        *numbers,
        F.when(~group, F.col("a")).alias("a"),
        *VALUES[1:],
        F.when(group, several.cast("long")).otherwise(F.col("n")).alias("n"),
        F.when(several & differ, 1).otherwise(0).cast("long").alias("broken"),
    )
    found = of_groups.groupBy(*numbers, *VALUES).agg(F.sum("n").alias("n"), F.sum("broken").alias("broken"))
    if not stayed:
        return found
    place = F.row_number().over(Window.partitionBy("what").orderBy(F.desc("n"), "a"))
    ranked = found.withColumn("place", place)
    return ranked.where((F.col("what") != STAYED) | (F.col("place") <= MOST_STAYED)).drop("place")


@dataclass(frozen=True, eq=False)
class Tallies:
    """What an audit counted and gathered.

    Attributes:
        rows: as :func:`summed` returns them.
    """

    rows: pa.Table

    @cached_property
    def _numbers(self) -> I64:
        """int64[rows, 5], each (what, number, field, n, broken)."""
        names = ("what", "number", "field", "n", "broken")
        columns = [np.asarray(self.rows.column(name).to_numpy(), np.int64) for name in names]
        return np.stack(columns, axis=1).reshape(-1, len(names))

    def _of(self, what: int) -> I64:
        return np.asarray(self._numbers[self._numbers[:, 0] == what])

    def counts(self, column: int) -> dict[str, int]:
        """Return the counts of a column, or of whole rows, by `COUNT_FIELDS`."""
        found = dict.fromkeys(COUNT_FIELDS, 0)
        for _, number, field, n, _ in self._of(COUNT).tolist():
            if number == column:
                found[COUNT_FIELDS[field]] = n
        return found

    @property
    def groups(self) -> dict[str, tuple[int, int]]:
        """Of each level how many groups of equal words there are, and how many have more than one replacement."""
        found = {LEVELS[number]: (n, broken) for _, number, _, n, broken in self._of(GROUP).tolist()}
        return {level: found.get(level, (0, 0)) for level in LEVELS}

    @property
    def stayed(self) -> tuple[StayedWord, ...]:
        """The words that stayed most, the most frequent first: private text."""
        rows = self._rows(STAYED).sort_by([("n", "descending"), ("a", "ascending")])
        words, numbers = rows.column("a").cast(pa.string()).to_pylist(), rows.column("n").to_pylist()
        return tuple(StayedWord(word, n) for word, n in zip(words, numbers, strict=True))

    @property
    def tokens(self) -> PandasFrame:
        """The tokens of each text of the sample; those of a record by column, and by the key of their rows."""
        rows = self._rows(TOKENS).sort_by([(name, "ascending") for name in ("a", "number", *_KEY)])
        names = {"a": "record", "b": "words", "c": "outputs", "d": "drawn"}
        return rows.select(list(names)).rename_columns(list(names.values())).to_pandas()

    def texts(self, use: int) -> pa.Table:
        """Return the texts that serve a use, by the key of their rows: (plain, private, label, attribute, record, test)."""
        rows = self._rows(TEXT)
        rows = rows.filter(pa.array((rows.column("number").to_numpy() & use) > 0))
        rows = rows.sort_by([(name, "ascending") for name in _KEY])
        names = {"a": "plain", "b": "private", "d": "label", "f": "attribute"}
        found = {name: rows.column(place).cast(pa.large_string()) for place, name in names.items()}
        return pa.table({**found, "record": rows.column("c"), "test": pc.equal(rows.column("field"), 1)})

    def _rows(self, what: int) -> pa.Table:
        return self.rows.filter(pc.equal(self.rows.column("what"), what))
