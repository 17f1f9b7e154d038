"""Pair the texts of two tables in workers. They return counts, keyed hashes and, of a sample, word ids.

An audit takes one pass. Each row of its result is one of `FINDINGS`, in the column of that name; the other columns are NULL.
Equal findings are summed, and groups of equal words are counted, before anything reaches the driver.

A table of any tool is paired word by word (:func:`~dptext_spark.text.pair_tokens.pair`), and texts that do not fit are counted
and left out. A run audits its own table: each text must be its source with words replaced, to the byte
(:func:`~dptext_spark.text.pair_tokens.align`).

Texts, and words that stayed, leave a worker only for requested figures that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame as PandasFrame
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Window, functions

from dptext_spark.arrays import I64, U64, Bools, Ids, offsets
from dptext_spark.audit.table_audit import (
    COUNTS,
    FoundNames,
    StayedWord,
    kept_words,
    listed_counts,
    name_counts,
)
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import KeyReference, RunKey, hash_keys, identify
from dptext_spark.spark.nested_columns import Elements, is_list, quoted
from dptext_spark.spark.run_lists import NO_LISTS, ShippedLists, matcher_of, with_lists
from dptext_spark.spark.ship import Shipped, open_shipped
from dptext_spark.spark.spark_errors import INVALID_UTF8, TaskError, code_of, worker_key
from dptext_spark.text.pair_tokens import Pairing, align, pair
from dptext_spark.text.tokens import DRAWN_WORD, EDGE, NO_WORD, NUMBER, UNKNOWN, UNKNOWN_WORD, Words, words_of

F: Any = functions  # its stubs leave out what Spark adds at run time
PART_BYTES = 1 << 19
WHOLE = -1  # the column number of counts over whole rows
RECORD, DATASET, SCOPES = "record", "dataset", "scopes"
LEVELS = (RECORD, DATASET)
MISFITS = "misfits"
COUNT_FIELDS = (*COUNTS, "unchanged", "with_words", MISFITS)
EVERY = 1 << 63  # as a limit: every scope
MOST_STAYED = 20
TEST = 5  # records of every so many-th hash are tried on


@dataclass(frozen=True)
class Count:
    """Count of a field of `COUNT_FIELDS` in a column; `WHOLE` counts whole rows."""

    column: int
    name: str
    n: int


@dataclass(frozen=True)
class GroupRow:
    """A keyed hash of a word within a scope, and one of its replacement, `n` times; of `SCOPES` a scope, without words."""

    level: str
    words: bytes
    replacement: int
    n: int


@dataclass(frozen=True)
class TokensRow:
    """The tokens of a text, arrays as bytes, with the hash of its record; its row has the key `number` or `key`."""

    record: bytes
    column: int
    number: int | None
    key: bytes | None
    words: bytes
    outputs: bytes
    drawn: bytes


@dataclass(frozen=True)
class TextRow:
    """A row's texts of all columns as one, for which uses, and whether classifiers are tried on it; keys as of `TokensRow`."""

    number: int | None
    key: bytes | None
    compared: bool
    learnt: bool
    test: bool
    plain: str
    private: str
    record: bytes
    label: str | None
    attribute: str | None


@dataclass(frozen=True)
class Groups:
    """Number of groups of a level, of those with at least two words, and of those with at least two replacements."""

    level: str
    n: int = 0
    several: int = 0
    broken: int = 0


Finding = Count | StayedWord | GroupRow | TokensRow | TextRow | Groups
_T = TypeVar("_T", bound=Finding)
FINDINGS: dict[str, type[Finding]] = {
    "count": Count, "stayed": StayedWord, "group": GroupRow, "tokens": TokensRow, "text": TextRow,
}  # fmt: skip
_TYPES = {"int": pa.int64(), "bool": pa.bool_(), "str": pa.string(), "bytes": pa.binary()}
_SPARK = {"int": "bigint", "bool": "boolean", "str": "string", "bytes": "binary"}


def _fields(kind: type[Finding], types: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(field.name, types[str(field.type).removesuffix(" | None")]) for field in fields(kind)]


_ARROW = {name: pa.struct(_fields(kind, _TYPES)) for name, kind in FINDINGS.items()}
SCHEMA = ", ".join(
    f"{name} struct<{', '.join(f'{field}: {spark}' for field, spark in _fields(kind, _SPARK))}>"
    for name, kind in FINDINGS.items()
)


def limit_of(share: float) -> int:
    """Compute the limit of a keyed share of all scopes, out of `EVERY`."""
    return EVERY if share >= 1.0 else int(share * EVERY)


def places_of(scope: pa.Array, key: RunKey) -> U64:
    """Compute the places of scopes in the order of a key's samples, uint64[n] below `EVERY`."""
    return np.asarray(identify(scope, key, "audit sample")[:, 0] >> np.uint64(1))


def sample_of(frame: DataFrame, key: RunKey, share: float) -> DataFrame:
    """Return the rows of a keyed share of all scopes; all rows, without a pass through Python, where the share is 1."""
    if share >= 1.0:
        return frame
    limit, delivered = np.uint64(limit_of(share)), key.delivered()

    def sampled(scope: pd.Series) -> pd.Series:
        scopes = pa.Array.from_pandas(scope)  # an empty one of strings has lost its type on the way
        scopes = scopes.cast(pa.string()) if pa.types.is_null(scopes.type) else scopes
        return pd.Series(places_of(scopes, worker_key(delivered)) < limit)

    return frame.where(F.pandas_udf(sampled, "boolean")(F.col("scope")))


def side_of(
    frame: DataFrame,
    side: str,
    key: Column,
    texts: Sequence[Column],
    names: Sequence[str] = (),
    *more: Column,
) -> DataFrame:
    """Return the columns to pair: (row_key, s0, s1, ..., n0, n1, ..., more), of the output o0 and so on."""
    return frame.select(
        key.alias("row_key"),
        *[text.alias(f"{side}{i}") for i, text in enumerate(texts)],
        *[quoted(name).alias(f"n{i}") for i, name in enumerate(names)],
        *more,
    )


@dataclass(frozen=True)
class Wanted:
    """Requests of an audit. Each limit is one of :func:`limit_of`; samples of the same key are nested.

    Attributes:
        sample: of the records whose words are grouped.
        tokens: whether the tokens of these are wanted.
        compared: of those whose texts are compared; 0 for none.
        learnt: of those whose texts are learnt from.
        values: the columns of the label and the attribute, by the option that names them.
        stayed: whether the words of names that stayed are wanted.
        exact: the level of a run that audits its own table: groups, texts that do not fit, and nothing else are wanted.
    """

    sample: int = 0
    tokens: bool = False
    compared: int = 0
    learnt: int = 0
    values: tuple[str, ...] = ()
    stayed: bool = False
    exact: str | None = None

    @property
    def texts(self) -> int:
        """Limit of the records whose texts leave a worker."""
        return max(self.compared, self.learnt)


_Pairs = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]


class _InvalidTextError(Exception):
    """A batch has rows of invalid UTF-8."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows


@dataclass(frozen=True)
class PairedColumn:
    """The texts of a column in a batch, with their rewritten forms."""

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
    """Maps batches of (scope, s0, o0, s1, o1, ..., n0, ...) to rows of `SCHEMA`; :meth:`over` adds the other columns.

    Attributes:
        shipped: where the model is, whose tokenizer, words and policy count.
        key: of the hashes.
        columns: how many text columns there are.
        names: the lists of names that the run was given; their entries are no words.
        counted: a list of names that are counted.
        wanted: requests of the audit.
    """

    shipped: Shipped
    key: RunKey | KeyReference
    columns: int
    names: ShippedLists = NO_LISTS
    counted: ShippedLists = NO_LISTS
    wanted: Wanted = Wanted()

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Map the batches of a task; failures leave as a code."""
        context = TaskContext.get()
        partition, number = context.partitionId() if context is not None else 0, 0
        try:
            model, key = open_shipped(self.shipped), worker_key(self.key)
            each = self._exact_pairs(model, key) if self.wanted.exact else partial(self._audit, model, key)
            for batch in stream:
                for part in _parts_of(batch):
                    yield from each(part)
                number += 1
        except (GeneratorExit, TaskError):
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

    def tallies(self, frame: DataFrame) -> Tallies:
        """Map the rows of both tables, see :meth:`over`, and collect counts and samples on the driver."""
        return Tallies(summed(self.over(frame), self.wanted.stayed).toArrow())

    def _names_in(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(f"n{i}") for i in range(len(self.names.columns))]

    def _exact_pairs(self, privatizer: Privatizer, key: RunKey) -> _Pairs:
        """Return the function that pairs a batch's texts with their sanitized forms."""
        plain, hashing = _unchanging(privatizer), hash_keys(key.derive("audit words", length=16))
        level, masks = str(self.wanted.exact), privatizer.budget is not None

        def pairs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            scope = identify(batch.column("scope"), key, "audit scope")
            yield from _groups(SCOPES, scope, np.zeros(len(scope), np.uint64))
            listing = with_lists(plain, self.names, self._names_in(batch))
            for i in range(self.columns):
                source, output = (_elements(batch.column(f"{side}{i}")) for side in "so")
                same = (np.diff(source.bounds) == np.diff(output.bounds)) & (source.null == output.null)
                texts, written = (side.texts.filter(pa.array(same[side.rows])) for side in (source, output))
                rows = source.rows[same[source.rows]]
                ids = pa.array(np.arange(len(texts)))
                shaped, _, placed = listing.of_rows(rows).privatize_with_spans(
                    texts, column="", row_ids=ids, key=key
                )
                words, replacements, text, fits = align(
                    privatizer.engine, shaped, written, hashing, placed, masks_words=masks
                )
                yield from _groups(level, words, replacements, scope[rows[text]])
                fits &= _valid(texts) == _valid(written)
                yield _counts_of(i, {MISFITS: int((~fits).sum()) + int((~same).sum())})

        return pairs

    def _paired(self, privatizer: Privatizer, key: RunKey, batch: pa.RecordBatch) -> Iterator[PairedColumn]:
        """Pair the texts of each column."""
        hashing = hash_keys(key.derive("audit words", length=16))
        names = matcher_of(self.names, self._names_in(batch))
        engines = [privatizer.engine] * 2
        if names is not None:
            engines = [
                privatizer.with_names(looked_for).engine
                for looked_for in (names, replace(names, masked=True))
            ]
        for i in range(self.columns):
            texts, written = batch.column(f"s{i}"), batch.column(f"o{i}")
            source, output = (
                words_of(engine, side, hashing)
                for engine, side in zip(engines, (texts, written), strict=True)
            )
            invalid = int((source.invalid | output.invalid).sum())
            if invalid:
                raise _InvalidTextError(invalid)
            pairing = pair(source, output)
            valid = _valid(texts) == _valid(written)
            row = np.repeat(np.arange(len(batch)), np.diff(source.bounds))
            aligned = (pairing.partner >= 0) & valid[row]
            same = np.zeros(len(aligned), np.bool_)
            same[aligned] = (source.form[aligned] == output.form[pairing.partner[aligned]]).all(axis=1)
            equal = np.asarray(pc.equal(texts, written).fill_null(False)) | (~_valid(texts) & valid)
            yield PairedColumn(source, output, texts, pairing, aligned, same, pairing.rows & valid, equal)

    def _audit(self, privatizer: Privatizer, key: RunKey, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from self._counts(privatizer, key, batch)
        place = places_of(batch.column("scope"), key)
        sampled = place < np.uint64(self.wanted.sample)
        if sampled.any():
            yield from self._sampled(privatizer, key, batch.filter(pa.array(sampled)))
        compared, learnt = (place < np.uint64(limit) for limit in (self.wanted.compared, self.wanted.learnt))
        used = compared | learnt
        if used.any():
            yield self._texts(batch.filter(pa.array(used)), compared[used], learnt[used])

    def _counts(self, privatizer: Privatizer, key: RunKey, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        equal, with_words = np.ones(len(batch), np.bool_), np.zeros(len(batch), np.bool_)
        listed = matcher_of(self.counted, [])
        for i, paired in enumerate(self._paired(privatizer, key, batch)):
            kind, aligned, same = paired.source.kind, paired.aligned, paired.same
            word = kind != NO_WORD
            kinds = {"drawn": DRAWN_WORD, "unknown": UNKNOWN_WORD, "numbers": NUMBER}
            names = FoundNames.of(paired.texts)
            counts = {
                "rows": len(batch),
                "rows_not_aligned": int((~paired.rows).sum()),
                "words": int((aligned & word).sum()),
                "words_not_aligned": int((~aligned & word).sum()),
                "same": int((same & word).sum()),
                **{name: int((aligned & (kind == code)).sum()) for name, code in kinds.items()},
                **{f"{name}_same": int((same & (kind == code)).sum()) for name, code in kinds.items()},
                **name_counts(names, paired.source, aligned, same),
            }
            if listed is not None:
                counts |= listed_counts(listed, paired.texts, paired.source, aligned, same)
            yield _counts_of(i, counts)
            if self.wanted.stayed:
                words, times = kept_words(names, paired.source, aligned, same)
                yield _rows("stayed", len(words), word=words, times=times)
            equal &= paired.equal
            drawn = offsets(kind == DRAWN_WORD)
            with_words |= np.diff(drawn[paired.source.bounds]) > 0
        whole = {
            "rows": len(batch),
            "unchanged": int((equal & with_words).sum()),
            "with_words": int(with_words.sum()),
        }
        yield _counts_of(WHOLE, whole)

    def _sampled(
        self, privatizer: Privatizer, key: RunKey, batch: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        scope = identify(batch.column("scope"), key, "audit scope")
        for i, paired in enumerate(self._paired(privatizer, key, batch)):
            # Words that a hyphen or an apostrophe joins to others may end elsewhere in the output.
            alone = paired.aligned & paired.pairing.alone
            at = np.flatnonzero(alone & np.isin(paired.source.kind, (DRAWN_WORD, UNKNOWN_WORD)))
            row = np.repeat(np.arange(len(scope)), np.diff(paired.source.bounds))[at]
            released = np.bitwise_xor.reduce(paired.output.form[paired.pairing.partner[at]], axis=1)
            for level in LEVELS:
                yield from _groups(level, paired.source.form[at], released, scope[row])
            if self.wanted.tokens:
                yield _tokens(_hashes(scope), _key_of(batch), i, paired, len(privatizer.vocabulary))

    def _texts(self, batch: pa.RecordBatch, compared: Bools, learnt: Bools) -> pa.RecordBatch:
        """Return the texts of rows, all columns as one, with their known values."""
        kind = pa.large_string()
        plain, private = (
            pc.binary_join_element_wise(
                *(batch.column(f"{side}{i}").cast(kind) for i in range(self.columns)), pa.scalar("\n", kind),
                null_handling="skip",
            )
            for side in "so"
        )  # fmt: skip
        return _rows(
            "text", len(batch), compared=compared, learnt=learnt, test=batch.column("test"), plain=plain, private=private,
            record=batch.column("record"), **_key_of(batch), **{name: batch.column(name) for name in self.wanted.values},
        )  # fmt: skip


def tried_on(record: Column) -> Column:
    """Check by the key as text whether classifiers are tested on a record and do not learn from it."""
    return functions.pmod(functions.xxhash64(record), functions.lit(TEST)) == 0


def _unchanging(privatizer: Privatizer) -> Privatizer:
    """Return a privatizer that changes no word, but gaps, case and identifiers as the policy does."""
    policy, size = replace(privatizer.policy, oov="keep", numbers="keep"), len(privatizer.vocabulary)
    identity = TableSampler.of(
        np.arange(size, dtype=np.int32)[:, None],
        np.ones((size, 1)),
        privatizer.sampler.guarantee,
        TableSummary(),
    )
    return replace(
        privatizer,
        sampler=identity,
        policy=policy,
        consistency="token",
        fingerprint="unchanging",
        selector=None,
    )


def _elements(texts: pa.Array) -> Elements:
    """Return the texts of a column: of its lists, or one a row."""
    if is_list(texts.type):
        return Elements.of(texts)
    return Elements(texts, np.arange(len(texts) + 1), np.zeros(len(texts), np.bool_))


def _groups(level: str, words: U64, replacements: U64, scope: U64 | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the groups of equal words of a level with their replacements, equal pairs once.

    `words` and their `scope` are uint64[n, 2], `replacements` uint64[n], all hashes. At level record a word of another scope is
    another one.
    """
    groups = words ^ scope if level == RECORD and scope is not None else words
    pairs, n = np.unique(np.column_stack([groups, replacements]), axis=0, return_counts=True)
    replacement = np.ascontiguousarray(pairs[:, 2]).view(np.int64)
    yield _rows("group", len(n), level=level, words=_hashes(pairs[:, :2]), replacement=replacement, n=n)


def _key_of(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the keys of rows in the column that holds them."""
    key = batch.column("row_key")
    return {"number" if pa.types.is_integer(key.type) else "key": key}


def _tokens(
    scope: pa.Array, key: dict[str, pa.Array], column: int, paired: PairedColumn, words_of_model: int
) -> pa.RecordBatch:
    """Return the tokens of texts, each with its record and its key."""
    source, partner = paired.source, paired.pairing.partner
    released = paired.output.numbers[np.maximum(partner, 0)] if len(paired.output.ids) else EDGE
    outputs = np.where(paired.aligned, released, EDGE)
    drawn = paired.aligned & (source.kind == DRAWN_WORD) & (outputs >= 0)
    drawn &= outputs < words_of_model
    # A text, and each part after punctuation, begins with an edge.
    bounds = source.bounds
    edge = source.marked.copy()
    edge[bounds[:-1][np.diff(bounds) > 0]] = True
    place = np.arange(len(edge)) + np.cumsum(edge)
    size = len(edge) + int(edge.sum())
    words, out = np.full(size, EDGE, np.int32), np.full(size, EDGE, np.int32)
    flags = np.zeros(size, np.bool_)
    # A word that did not stay and was not drawn, or could not be aligned, is not to be seen in the table.
    words[place] = np.where(drawn | paired.same, source.ids, UNKNOWN)
    out[place], flags[place] = outputs, drawn
    ends = offsets(edge)[bounds] + bounds
    return _rows(
        "tokens", len(scope), record=scope, column=column, words=_parts(words, ends), outputs=_parts(out, ends),
        drawn=_parts(flags, ends), **key,
    )  # fmt: skip


def _parts_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch into parts of about `PART_BYTES`: reading takes some 64 bytes for each byte of text."""
    step = max(1, len(batch) * PART_BYTES // max(1, batch.nbytes))
    for start in range(0, len(batch), step):
        yield batch.slice(start, step)


def _counts_of(column: int, counts: Mapping[str, int]) -> pa.RecordBatch:
    counted = {name: n for name, n in counts.items() if n}
    names, numbers = pa.array([*counted], pa.string()), np.array([*counted.values()], np.int64)
    return _rows("count", len(counted), column=column, name=names, n=numbers)


def _rows(name: str, size: int, /, **values: Any) -> pa.RecordBatch:
    """Return a number of findings with the same name. Values are arrays or the same for all; missing ones are NULL."""
    arrays = []
    for field in _ARROW[name]:
        value = values.get(field.name)
        if isinstance(value, np.ndarray | pa.Array):
            arrays.append(pa.array(value).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, field.type), size))
    findings = pa.StructArray.from_arrays(arrays, fields=list(_ARROW[name]))
    columns = [findings if other == name else pa.nulls(size, kind) for other, kind in _ARROW.items()]
    return pa.RecordBatch.from_arrays(columns, names=[*_ARROW])


def _valid(texts: pa.Array) -> Bools:
    return np.asarray(texts.is_valid(), np.bool_)


def _hashes(hashes: U64) -> pa.Array:
    return _parts(np.ascontiguousarray(hashes).reshape(-1), np.arange(len(hashes) + 1, dtype=np.int64) * 2)


def _parts(values: Ids | Bools | U64, ends: I64) -> pa.Array:
    """Cut the bytes of an array into those of each row."""
    raw = np.ascontiguousarray(values)
    offsets = pa.py_buffer((ends * raw.itemsize).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, pa.py_buffer(raw.tobytes())])


def summed(rows: DataFrame, stayed: bool) -> DataFrame:
    """Sum equal findings, and count groups of equal words.

    If `stayed`, words that stayed are among them: the `MOST_STAYED` most frequent are kept.

    Returns:
        The columns of `SCHEMA`, but in place of `group` there is `groups`, see :class:`Groups`.
    """
    names = {"column": "count.column", "name": "count.name", "word": "stayed.word", "level": "group.level"}
    keys = [F.col(path).alias(name) for name, path in names.items()] + [F.col("tokens"), F.col("text")]
    replacement, n = F.col("group.replacement"), F.coalesce("count.n", "stayed.times", "group.n")
    each = rows.groupBy(*keys, F.col("group.words").alias("words")).agg(
        F.sum(n).alias("n"), (F.min(replacement) != F.max(replacement)).alias("differ")
    )
    # Sums may be NULL, as Arrow wants a field of a struct that may be: counts may not.
    flags = {"n": F.lit(True), "several": F.col("n") > 1, "broken": F.col("differ")}
    whole = each.groupBy(*names, "tokens", "text").agg(
        F.sum("n").alias("times"), *[F.sum(flag.cast("long")).alias(name) for name, flag in flags.items()]
    )
    is_word = F.col("word").isNotNull()
    if stayed:
        place = F.row_number().over(Window.partitionBy(is_word).orderBy(F.desc("times"), "word"))
        whole = whole.withColumn("place", place).where(~is_word | (F.col("place") <= MOST_STAYED))
    count = F.struct("column", "name", F.col("times").alias("n"))
    return whole.select(
        F.when(F.col("name").isNotNull(), count).alias("count"),
        F.when(is_word, F.struct("word", "times")).alias("stayed"),
        F.when(F.col("level").isNotNull(), F.struct("level", "n", "several", "broken")).alias("groups"),
        "tokens",
        "text",
    )


@dataclass(frozen=True, eq=False)
class Tallies:
    """Counts and samples of an audit.

    Attributes:
        rows: as :func:`summed` returns them.
    """

    rows: pa.Table

    def counts(self, column: int) -> dict[str, int]:
        """Return the counts of a column, or of whole rows, by `COUNT_FIELDS`."""
        counted = {count.name: count.n for count in self._of("count", Count) if count.column == column}
        return {**dict.fromkeys(COUNT_FIELDS, 0), **counted}

    @property
    def groups(self) -> dict[str, Groups]:
        """The groups of equal words of each level, and the scopes."""
        counted = {groups.level: groups for groups in self._of("groups", Groups)}
        return {level: counted.get(level, Groups(level)) for level in (*LEVELS, SCOPES)}

    @property
    def stayed(self) -> tuple[StayedWord, ...]:
        """The words that stayed most, the most frequent first: private text."""
        words = self._of("stayed", StayedWord)
        return tuple(sorted(words, key=lambda word: (-word.times, word.word)))

    @property
    def tokens(self) -> PandasFrame:
        """The tokens of each text of the sample; those of a record by column, and by the key of their rows."""
        rows = self._table("tokens", "record", "column", "number", "key")
        return rows.select(["record", "words", "outputs", "drawn"]).to_pandas()

    @property
    def texts(self) -> pa.Table:
        """The texts of the sample by the key of their rows, see :class:`TextRow`."""
        return self._table("text", "number", "key")

    def _of(self, name: str, kind: type[_T]) -> list[_T]:
        return [kind(**row) for row in self.rows.column(name).drop_null().to_pylist()]

    def _table(self, name: str, *order: str) -> pa.Table:
        findings = self.rows.column(name).drop_null()
        batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in findings.chunks]
        schema = pa.schema(list(findings.type))
        return pa.Table.from_batches(batches, schema).sort_by([(field, "ascending") for field in order])
