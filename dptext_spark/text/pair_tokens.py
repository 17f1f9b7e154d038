"""Pair the words of a text with those of its rewritten form from any tool: no key and no model is needed.

Both are cut as the engine cuts them. A text and its rewritten form are aligned by their pieces between spaces that hold a word.
Within a piece they are aligned word by word, if both sides hold equally many. A text with more or fewer pieces is not aligned at
all. A piece with more or fewer words is not aligned within.

Pair the tokens of a source with their replacements in an output, without the key: what an audit needs.

Between two listed tokens the output must hold the source's bytes. In a token's place it has a lexicon word, a mask, or as many
digits. Under a budget a word of the lexicon may have become a mask, too. A row that does not fit was not made from its source by
replacing words. Words with only an apostrophe, a hyphen or nothing between are paired together: lexicon words may hold these
characters, too. An identifier has its placeholder on both sides, a fake of one shape, or a pseudonym of one word. Fakes and
pseudonyms are not paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, U64, Bools, bounds_of
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    HYPHEN,
    LETTER,
    MARK,
    SPACE,
    cell,
    decode,
    lower_into,
    scan_word,
    tables,
)
from dptext_spark.randomness import hash_bytes
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.chunks import Spans, padded
from dptext_spark.text.engine import Engine, OutputSpans
from dptext_spark.text.policy import BEYOND_MASK
from dptext_spark.text.tokens import Words, listed
from dptext_spark.text.word_table import (
    DRAWN_OOV,
    IDENTIFIER,
    LOWERED,
    MASKED_NUMBER,
    MASKED_OOV,
    RANDOM_NUMBER,
)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Pairs of a word and its replacement.

    Attributes:
        partner: int64[n], of each source word; -1 where it is not aligned.
        alone: bool[n], whether it is aligned and the only word of its piece: no joiner makes its ends uncertain.
        rows: bool[rows], which texts are aligned.
    """

    partner: I64
    alone: Bools
    rows: Bools


def pair(source: Words, output: Words) -> Pairing:
    """Pair the words of texts with those of their rewritten forms; both have as many rows."""
    rows = np.diff(source.pieces) == np.diff(output.pieces)
    row = np.repeat(np.arange(len(rows)), np.diff(source.pieces))
    at = np.flatnonzero(rows[row])
    opposite = at - source.pieces[row[at]] + output.pieces[row[at]]
    sizes = np.diff(source.starts)
    good = sizes[at] == np.diff(output.starts)[opposite]
    first = np.full(len(sizes), -1, np.int64)
    first[at[good]] = output.starts[opposite[good]]
    within = np.arange(len(source.ids)) - np.repeat(source.starts[:-1], sizes)
    beginning = np.repeat(first, sizes)
    partner = np.where(beginning >= 0, beginning + within, -1)
    return Pairing(partner, (partner >= 0) & (np.repeat(sizes, sizes) == 1), rows)


BEGINS, FAKED = 1, 2
# The code of a pseudonym among tokens, and of one with drawn words beside it and nothing between: words that are not paired.
NAMED, NAMED_WORDS = -100, -101
# How often a row takes another end for a word, where the first choice leaves the rest without a place.
RETRIES = 256


@compiled
def _equal(a: Any, i: Int, b: Any, j: Int, size: Int, marks: Any) -> bool:
    """Compare b[j:j + size] with a[i:i + size]; in a fake any letter equals a letter, and any digit a digit."""
    for k in range(size):
        p, q = a[i + k], b[j + k]
        if p != q:
            if marks.shape[0] == 0 or not marks[i + k] & FAKED:
                return False
            digits = 48 <= p <= 57 and 48 <= q <= 57
            letters = 97 <= (p | 32) <= 122 and 97 <= (q | 32) <= 122
            if not digits and not letters:
                return False
    return True


@compiled
def _stretch_end(out: Any, at: Int, end: Int, beyond: Any, stage: Any, classes: Any) -> Int:
    """Find the end of the word that begins at out[at], or -1. Under a budget joiners connect words and masks."""
    position, stop, joined = at, np.int64(-1), False
    while position < end:
        masked = beyond.shape[0] > 0 and position + beyond.shape[0] <= end
        for k in range(beyond.shape[0] if masked else 0):
            masked = masked and out[position + k] == beyond[k]
        if masked:
            position += beyond.shape[0]
            stop, joined = position, False
            continue
        point, length = decode(out, position, end)
        kind = classes[cell(point, stage)] if point >= 0 else SPACE
        if kind == LETTER:
            stop = scan_word(out, position, end, stage, classes)[0]
            if stop < 0:
                return np.int64(-1)
            position, joined = stop, False
        elif beyond.shape[0] > 0 and stop >= 0 and not joined and (kind == APOSTROPHE or kind == HYPHEN):
            position += length
            joined = True
        else:
            break
    return stop


@compiled
def _place_end(
    data: Any, start: Int, stop: Int, code: Int, gap_end: Int, last: bool, out: Any, at: Int, end: Int,
    whitespace: bool, stage: Any, classes: Any, marks: Any, beyond: Any, before: Int,
) -> Int:  # fmt: skip
    """Return the end of the replacement of data[start:stop] at out[at], or -1. The source goes on with data[stop:gap_end].

    Several ends may have the source's gap behind them, which may begin with a joiner or a kept word. The longest comes first,
    or the shortest where an identifier begins, for that one may come again. `before` is the end that was tried before, or -1.
    """
    gap = gap_end - stop
    if before >= 0 and (code == MASKED_OOV or code == MASKED_NUMBER or code == RANDOM_NUMBER):
        return np.int64(-1)
    if code == MASKED_OOV or code == MASKED_NUMBER:
        return at + 5 if at + 5 <= end and out[at] == 91 and out[at + 4] == 93 else -1
    if code == RANDOM_NUMBER:
        return at + (stop - start) if at + (stop - start) <= end else -1
    best = np.int64(-1)
    if whitespace and code != NAMED:
        q = at
        while q < end:
            point, length = decode(out, q, end)
            if point < 0 or classes[cell(point, stage)] == SPACE:
                break
            q += length
        best = q
    elif code == NAMED:
        # Letters alone, as the pools of pseudonyms have them: a hyphen behind them is the source's.
        best = at
        while best < end:
            point, length = decode(out, best, end)
            kind = classes[cell(point, stage)] if point >= 0 else SPACE
            if kind != LETTER and kind != MARK:
                break
            best += length
    else:
        best = _stretch_end(out, at, end, beyond, stage, classes)
        if best < 0:
            return -1
    step = 1 if marks.shape[0] > 0 and stop < gap_end and marks[stop] & BEGINS else -1
    q = best if step < 0 else at + 1
    q = q if before < 0 else before + step
    while at < q <= best:
        if q + gap <= end and _equal(data, stop, out, q, gap, marks) and (not last or q + gap == end):
            return q
        q += step
    return np.int64(-1)


@compiled
def _continues(
    data: Any, code: Int, stop: Int, following: Int, start: Int, whitespace: bool, stage: Any, classes: Any
) -> bool:
    """Check that the outputs of two tokens merge: parts of a long number, or words with a joiner or nothing between.

    One ends at `stop` and becomes `code`, the other begins at `start` and becomes `following`. A pseudonym is distinct from a
    word unless nothing is between them. Where whitespace cuts, nothing in the output ends such a word but whitespace.
    """
    if whitespace and code == NAMED_WORDS:
        return bool(stop == start)
    if code == RANDOM_NUMBER or following == RANDOM_NUMBER:
        return bool(code == following and stop == start)
    if code <= NAMED or following <= NAMED:
        other = following if code <= NAMED else code
        return bool(stop == start and (other >= 0 or other == DRAWN_OOV or other <= NAMED))
    if (code < 0 and code != DRAWN_OOV) or (following < 0 and following != DRAWN_OOV):
        return False
    if stop == start:
        return True
    point, length = decode(data, stop, start)
    kind = classes[cell(point, stage)] if point >= 0 else SPACE
    return bool(stop + length == start and (kind == APOSTROPHE or kind == HYPHEN))


@compiled
def _place(
    data: Any, position: Int, end: Int, places: Any, size: Int, out: Any, at: Int, out_end: Int, whitespace: bool,
    stage: Any, classes: Any, marks: Any, beyond: Any,
) -> bool:  # fmt: skip
    """Find where the tokens of a row came out, with at most `RETRIES` steps back; fill places[:size, 3:] with begins and ends."""
    i, before, retries = 0, np.int64(-1), 0
    while i >= 0:
        gap = (end if i == size else places[i, 0]) - position
        good = before >= 0 or (at + gap <= out_end and _equal(data, position, out, at, gap, marks))
        if i == size:
            if good and at + gap == out_end:
                return True
        elif good:
            stop, last = places[i, 1], i + 1 == size
            if before < 0:
                places[i, 3] = at + gap
            places[i, 4] = _place_end(
                data, places[i, 0], stop, places[i, 2], end if last else places[i + 1, 0], last, out, places[i, 3],
                out_end, whitespace, stage, classes, marks, beyond, before,
            )  # fmt: skip
            if places[i, 4] >= 0:
                at, position, before = places[i, 4], stop, np.int64(-1)
                i += 1
                continue
        retries += 1
        if retries > RETRIES:
            break
        i -= 1
        before = places[i, 4]
    return False


@compiled
def _align(
    data: Any, bounds: Any, tokens: Any, n: Int, out: Any, out_bounds: Any, whitespace: bool, k0: Int, k1: Int,
    stage: Any, classes: Any, lower: Any, marks: Any, beyond: Any, groups: Any, replacements: Any, rows: Any,
    fits: Any,
) -> Int:  # fmt: skip
    """Fill keyed hashes of each token and of its replacement; return how many were paired."""
    t, paired = 0, 0
    form = np.empty(4096, np.uint8)
    places = np.empty((n + 1, 5), np.int64)
    for row in range(bounds.shape[0] - 1):
        size = 0
        while t < n and (tokens[t, 3] & 0xFFFFFFFF) == row:
            start, stop, code = tokens[t, 0], tokens[t, 1], tokens[t, 2]
            t += 1
            while (
                t < n
                and (tokens[t, 3] & 0xFFFFFFFF) == row
                and _continues(data, code, stop, tokens[t, 2], tokens[t, 0], whitespace, stage, classes)
            ):
                named = code <= NAMED or tokens[t, 2] <= NAMED
                stop, code = tokens[t, 1], np.int64(NAMED_WORDS) if named else tokens[t, 2]
                t += 1
            places[size, 0], places[size, 1], places[size, 2] = start, stop, code
            size += 1
        fits[row] = _place(
            data, bounds[row], bounds[row + 1], places, size, out, out_bounds[row], out_bounds[row + 1], whitespace,
            stage, classes, marks, beyond,
        )  # fmt: skip
        for i in range(size if fits[row] else 0):
            start, stop, code, at, stops = places[i]
            if code <= NAMED:
                continue
            room = 4 * (max(stop - start, stops - at) + 4)
            if form.shape[0] < room:
                form = np.empty(room, np.uint8)
            length = lower_into(data, start, stop, form, stage, lower)
            a, b = hash_bytes(form, 0, length, k0, k1)
            groups[paired, 0], groups[paired, 1] = a, b
            length = lower_into(out, at, stops, form, stage, lower)
            a, b = hash_bytes(form, 0, length, k0, k1)
            replacements[paired] = a ^ b
            rows[paired] = row
            paired += 1
    return paired


def _placed_in(texts: pa.Array, placed: OutputSpans | None) -> tuple[Spans, U8, I64]:
    """Return the identifiers of rewritten texts, the marks of their bytes, and where pseudonyms begin.

    Marks are `BEGINS` and `FAKED`, uint8[...], of no length where there are no identifiers.
    """
    data, rows = padded(texts)
    none = np.zeros(0, np.int64)
    if placed is None:
        return Spans(data, rows, none, none, np.zeros(len(rows), np.int64)), np.zeros(0, np.uint8), none
    owner = placed.found.spans.owners
    inside = placed.places[:, 1] <= np.diff(rows)[owner]  # a row that is no UTF-8 has come out empty
    owner, places = owner[inside], placed.places[inside] + rows[owner[inside], None]
    bounds = bounds_of(owner, len(rows) - 1)
    starts, ends = np.ascontiguousarray(places.T)
    fakes = placed.faked[inside]
    edges = np.zeros(len(data), np.int8)
    np.add.at(edges, starts[fakes], 1)
    np.add.at(edges, ends[fakes], -1)
    marks = np.cumsum(edges, dtype=np.int8).astype(np.uint8) * np.uint8(FAKED)
    marks[starts] |= BEGINS
    return Spans(data, rows, starts, ends, bounds), marks, starts[placed.named[inside]]


def align(
    engine: Engine,
    source: pa.Array,
    output: pa.Array,
    keys: tuple[np.uint64, np.uint64],
    placed: OutputSpans | None = None,
    *,
    masks_words: bool = False,
) -> tuple[U64, U64, I64, Bools]:
    """Pair the listed tokens of `source` with their replacements in `output`.

    Args:
        engine: whose tokenizer, table and policy made the output.
        source: string [rows], its gaps and kept words already in the form that the output has, and its identifiers replaced.
        output: string [rows].
        keys: of the hashes.
        placed: where the identifiers are in `source`; None: there are none.
        masks_words: whether a budget masks words of the lexicon.

    Returns:
        (hash of each token's look-up form uint64[n, 2], hash of its replacement uint64[n], its row int64[n], and
        bool[rows]: the row fits its source).
    """
    identifiers, marks, names = _placed_in(source, placed)
    cut = listed(engine, source, keys, identifiers)
    data, bounds, tokens = cut.data, cut.bounds, cut.tokens[: cut.size]
    out, out_bounds = padded(output)
    chars = tables()
    whitespace = engine.policy.tokenizer == "whitespace"
    tokens[np.isin(tokens[:, 0], names) & (tokens[:, 2] == IDENTIFIER), 2] = NAMED
    # Words that are kept in lower case are so in the source already, and so are identifiers replaced: they are part of what
    # lies between.
    tokens = tokens[(tokens[:, 2] != LOWERED) & (tokens[:, 2] != IDENTIFIER)]
    n = len(tokens)
    groups, replacements = np.empty((n, 2), np.uint64), np.empty(n, np.uint64)
    rows, fits = np.empty(n, np.int64), np.zeros(len(source), np.bool_)
    beyond = np.frombuffer(BEYOND_MASK.encode() if masks_words else b"", np.uint8)
    paired = _align(
        data, bounds, tokens, n, out, out_bounds, whitespace, keys[0], keys[1],
        chars.stage, chars.classes, chars.lower, marks, beyond, groups, replacements, rows, fits,
    )  # fmt: skip
    return groups[:paired], replacements[:paired], rows[:paired], fits
