"""Pair the texts of two tables in workers, which return counts, keyed hashes and, of a sample, word ids.

Words leave a worker only where somebody asked to see which names stayed (`--internal`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, functions

from dptext_spark.arrays import I64, U64, Bools, Ids
from dptext_spark.audit.table.labelled import (
    LABEL_COUNTS,
    Labels,
    key_ids,
    labelled_counts,
    name_finder,
    plain_engine,
    text_ids,
)
from dptext_spark.audit.table.metrics import COUNTS
from dptext_spark.audit.table.names import kept_words, listed_counts, name_counts, names_of_rows
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey, hash_keys, identify
from dptext_spark.spark.errors import INVALID_UTF8, TaskError, code_of
from dptext_spark.spark.udf.names import NO_NAMES, ShippedNames, names_of
from dptext_spark.spark.udf.ship import Shipped, open_shipped
from dptext_spark.text.chunks import padded
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
from dptext_spark.text.unspaced import hold_unspaced

PART_BYTES = 1 << 19
WHOLE = -1  # the column number of what is counted over whole rows
LEVELS = ("record", "dataset")
UNCUT = "uncut"  # unknown words with letters of scripts without spaces, where it is not known whether a run cut them
COUNT_FIELDS = (*COUNTS, "unchanged", "with_words", UNCUT)
SCHEMAS = {
    "counts": ", ".join(["column int", *(f"{name} bigint" for name in COUNT_FIELDS)]),
    "groups": "level int, group binary, replacement binary, n bigint",
    "tokens": "record binary, words binary, outputs binary, drawn binary",
    "labelled": ", ".join(["what int, number int", *(f"{name} bigint" for name in LABEL_COUNTS)]),
    "stayed": "word string, n bigint",
    "names": "scope binary, found bigint, kept bigint",
}
Rows = Literal["counts", "groups", "tokens", "labelled", "stayed", "names"]
# What a row of `labelled` is of: a text that was found, one of which a label stands outside; a kind of the file, of the search.
SEEN, OUTSIDE, BY_LABEL, BY_TYPE = range(4)


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
    names: Mapping[str, int]  # of `NAME_COUNTS` and `LISTED_COUNTS`; empty where only words are wanted
    rows: Bools  # bool[rows], which texts are aligned
    equal: Bools  # bool[rows], byte for byte


@dataclass(frozen=True)
class PairTables:
    """Maps batches of (scope, s0, o0, s1, o1, ..., n0, ...) to rows of one of `SCHEMAS`; those of `labelled` have `key`, too.

    Attributes:
        shipped: where the model is, whose tokenizer, words and policy count.
        key: of the hashes; it is made for this audit alone.
        columns: how many text columns there are.
        wanted: counts of everything; groups of equal words with their replacements; the tokens of each text; counts of labelled
            names; words of names that stayed; or how many words of names each row has.
        names: the lists of names that the run was given; their entries are no words.
        counted: a list of names that are counted.
        labels: of a labelled sample.
        given: whether the model is of settings that were given, whose search for names then counts.
    """

    shipped: Shipped
    key: RunKey
    columns: int
    wanted: Rows
    names: ShippedNames = NO_NAMES
    counted: ShippedNames = NO_NAMES
    labels: Labels | None = None
    given: bool = False

    def __call__(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Map the batches of a task; what goes wrong leaves as a code."""
        context = TaskContext.get()
        partition, number = context.partitionId() if context is not None else 0, 0
        try:
            privatizer = open_shipped(self.shipped)
            for batch in stream:
                for part in _parts_of(batch):
                    yield from getattr(self, f"_{self.wanted}")(privatizer, part)
                number += 1
        except GeneratorExit:
            raise
        except _InvalidTextError as error:
            raise TaskError(INVALID_UTF8, partition, number, error.rows) from None
        except BaseException as error:
            raise TaskError(code_of(error, "AUDIT_"), partition, number, 0) from None

    def over(self, frame: DataFrame) -> DataFrame:
        """Map the rows of both tables, joined: (scope, row_key, s0, o0, ..., n0, ...)."""
        texts = [f"{side}{i}" for i in range(self.columns) for side in "so"]
        texts += [f"n{i}" for i in range(len(self.names.columns))]
        key = [functions.col("row_key").cast("string").alias("key")] if self.wanted == "labelled" else []
        return frame.select("scope", *key, *texts).mapInArrow(self, SCHEMAS[self.wanted])

    def _paired(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[Paired]:
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
            found: dict[str, int] = {}
            if self.wanted == "counts":
                found = name_counts(texts, source, aligned, same)
                listed = names_of(self.counted, [], self.key)
                if listed is not None:
                    found |= listed_counts(listed, texts, source, aligned, same)
            yield Paired(source, output, texts, pairing, aligned, same, found, pairing.rows & both, equal)

    def _counts(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = [dict.fromkeys(COUNT_FIELDS, 0) | {"column": i} for i in range(WHOLE, self.columns)]
        equal, with_words = np.ones(len(batch), np.bool_), np.zeros(len(batch), np.bool_)
        for row, found in zip(rows[1:], self._paired(privatizer, batch), strict=True):
            kind, aligned, same = found.source.kind, found.aligned, found.same
            word = kind != NO_WORD
            kinds = {"drawn": DRAWN_WORD, "unknown": UNKNOWN_WORD, "numbers": NUMBER}
            row |= {"rows": len(batch), "rows_not_aligned": int((~found.rows).sum())}
            row |= {
                "words": int((aligned & word).sum()),
                "words_not_aligned": int((~aligned & word).sum()),
                "same": int((same & word).sum()),
            }
            row |= {name: int((aligned & (kind == code)).sum()) for name, code in kinds.items()}
            row |= {f"{name}_same": int((same & (kind == code)).sum()) for name, code in kinds.items()}
            row |= found.names
            if not self.given:
                spans, unknown = found.source.spans, kind == UNKNOWN_WORD
                starts, ends = spans.starts[unknown], spans.ends[unknown]
                row[UNCUT] = int(hold_unspaced(spans.data, starts, ends).sum())
            equal &= found.equal
            drawn = np.append(0, np.cumsum(kind == DRAWN_WORD))
            with_words |= np.diff(drawn[found.source.bounds]) > 0
        rows[0] |= {
            "rows": len(batch),
            "unchanged": int((equal & with_words).sum()),
            "with_words": int(with_words.sum()),
        }
        yield pa.RecordBatch.from_pylist(rows, _arrow("counts"))

    def _groups(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        scope = identify(batch.column("scope"), self.key, "table audit scope")
        for found in self._paired(privatizer, batch):
            row = np.repeat(np.arange(len(batch)), np.diff(found.source.bounds))
            # Words that a hyphen or an apostrophe joins to others may end elsewhere in the output.
            at = np.flatnonzero(
                found.aligned & found.pairing.alone & np.isin(found.source.kind, (DRAWN_WORD, UNKNOWN_WORD))
            )
            replacement = found.output.form[found.pairing.partner[at]]
            form = found.source.form[at]
            for level, groups in enumerate((form ^ scope[row[at]], form)):
                # Equal pairs of a batch leave once, with their number.
                pairs, n = np.unique(
                    np.concatenate([groups, replacement], axis=1), axis=0, return_counts=True
                )
                yield pa.RecordBatch.from_arrays(
                    [pa.array(np.full(len(n), level, np.int32)), _hashes(pairs[:, :2]), _hashes(pairs[:, 2:]), pa.array(n)],
                    schema=_arrow("groups"),
                )  # fmt: skip

    def _labelled(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        labels = self.labels
        assert labels is not None  # whoever wants the rows has them
        engine, finder = plain_engine(privatizer.engine), name_finder(privatizer, self.given)
        for i, found in enumerate(self._paired(privatizer, batch)):
            data, rows = padded(found.texts)
            ids = (
                key_ids(batch.column("key"), i, self.key) if labels.by_row else text_ids(data, rows, self.key)
            )
            at = np.where(_held(found.texts), labels.texts_of(ids), -1)
            if not (at >= 0).any():
                continue
            pair = (found.source, found.aligned, found.same)
            counts = labelled_counts(labels, at, found.texts, data, rows, pair, finder, engine)
            for what, numbers in ((SEEN, counts.seen), (OUTSIDE, counts.outside)):
                yield _labelled_rows(what, numbers, np.ones((len(numbers), 1), np.int64))
            for what, held in ((BY_LABEL, counts.by_label), (BY_TYPE, counts.by_type)):
                yield _labelled_rows(what, np.arange(len(held)), held)

    def _stayed(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for found in self._paired(privatizer, batch):
            words, n = kept_words(found.texts, found.source, found.aligned, found.same)
            columns = [words.cast(pa.string()), n.cast(pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, schema=_arrow("stayed"))

    def _names(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        scope = _hashes(identify(batch.column("scope"), self.key, "table audit scope"))
        total = np.zeros((len(batch), 2), np.int64)
        for found in self._paired(privatizer, batch):
            total += names_of_rows(found.texts, found.source, found.aligned, found.same)
        columns = [scope, *(pa.array(np.ascontiguousarray(column)) for column in total.T)]
        yield pa.RecordBatch.from_arrays(columns, schema=_arrow("names"))

    def _tokens(self, privatizer: Privatizer, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        scope = _hashes(identify(batch.column("scope"), self.key, "table audit scope"))
        for found in self._paired(privatizer, batch):
            source, partner = found.source, found.pairing.partner
            released = found.output.numbers[np.maximum(partner, 0)] if len(found.output.ids) else EDGE
            outputs = np.where(found.aligned, released, EDGE)
            drawn = found.aligned & (source.kind == DRAWN_WORD) & (outputs >= 0)
            drawn &= outputs < len(privatizer.vocabulary)
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
            yield pa.RecordBatch.from_arrays(
                [scope, _parts(words, ends), _parts(out, ends), _parts(flags, ends)], schema=_arrow("tokens")
            )


def _parts_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch into parts of about `PART_BYTES`: reading takes some 64 bytes for each byte of text."""
    step = max(1, len(batch) * PART_BYTES // max(1, batch.nbytes))
    for start in range(0, len(batch), step):
        yield batch.slice(start, step)


def _labelled_rows(what: int, numbers: I64, counts: I64) -> pa.RecordBatch:
    """Return rows of `labelled`: int64[n] numbers, int64[n, k] counts; what of them is not given is 0."""
    wide = np.zeros((len(numbers), len(LABEL_COUNTS)), np.int64)
    wide[:, : counts.shape[1]] = counts
    columns = [np.full(len(numbers), what, np.int32), numbers.astype(np.int32), *wide.T]
    return pa.RecordBatch.from_arrays(
        [pa.array(np.ascontiguousarray(one)) for one in columns], schema=_arrow("labelled")
    )


def _held(texts: pa.Array) -> Bools:
    return np.asarray(texts.is_valid(), np.bool_)


def _hashes(hashes: U64) -> pa.Array:
    raw = np.ascontiguousarray(hashes).view("V16").reshape(-1)
    return pa.array([bytes(item) for item in raw], pa.binary())


def _parts(values: Ids | Bools, ends: I64) -> pa.Array:
    """Cut the bytes of an array into those of each row."""
    raw = np.ascontiguousarray(values)
    offsets = pa.py_buffer((ends * raw.itemsize).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, pa.py_buffer(raw.tobytes())])


def _arrow(name: str) -> pa.Schema:
    kinds = {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary(), "string": pa.string()}
    fields = [field.split() for field in SCHEMAS[name].split(", ")]
    return pa.schema([(field, kinds[kind]) for field, kind in fields])
