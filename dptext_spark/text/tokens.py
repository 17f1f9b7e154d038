"""Read texts as word ids, cut as the engine cuts them. An audit counts them in public text and attacks them in private text.

`list_words` gives every word, kept ones too, for a provider of importance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I32, I64, U8, U64, Bools
from dptext_spark.lexicon.characters import APOSTROPHE, HYPHEN, PASS, SPACE, cell, decode, lower_into, tables
from dptext_spark.randomness import hash_bytes
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.chunks import Spans, padded, strips, summed
from dptext_spark.text.engine import OF_WORDS, Engine, byte_blocks
from dptext_spark.text.tokenizer import cut_whitespace, cut_words
from dptext_spark.text.word_table import (
    IDENTIFIER,
    INVALID,
    LOWERED,
    MASKED_NUMBER,
    STOP,
    look_up,
    look_up_form,
)

EDGE, UNKNOWN = -1, -2
DRAWN_WORD, KEPT_WORD, UNKNOWN_WORD, NUMBER, NO_WORD = range(5)
PUNCTUATION = -7  # among the codes: punctuation, not a word
NO_MARKS, EACH_CHARACTER, BETWEEN_SPACES = range(3)


@dataclass(frozen=True, eq=False)
class Reading:
    """The words of some texts.

    Attributes:
        words: int32[n], lexicon ids; `EDGE` for punctuation between two words, `UNKNOWN` for numbers, for identifiers and for
            words that the lexicon does not hold.
        drawn: bool[n], what the policy draws from the mechanism.
        bounds: int64[rows + 1], text i is words[bounds[i]:bounds[i + 1]].
        numbers: int32[n], `words` with the stop words that the lexicon lacks, by their numbers in the word table.
    """

    words: I32
    drawn: Bools
    bounds: I64
    numbers: I32


def _listing(engine: Engine) -> Engine:
    """Return an engine that lists every word and number, kept words by their case, each kind by its own code."""
    return replace(engine, policy=replace(engine.policy, case="lower", numbers="mask", oov="mask"))


class ListedTokens(NamedTuple):
    """The tokens of texts that a policy changes, looked up; an identifier is one.

    Attributes:
        data: uint8, the bytes of the texts, padded.
        bounds: int64[rows + 1], where each text lies in them.
        tokens: int64[>= size, 4], as the engine cuts them, with the text that each is of.
        counts: int32[rows, len(OF_WORDS)].
    """

    data: U8
    bounds: I64
    tokens: I64
    size: int
    counts: I32


def listed(
    listing: Engine, texts: pa.Array, keys: tuple[np.uint64, np.uint64], identifiers: Spans | None = None
) -> ListedTokens:
    """Cut texts and look their words up.

    Args:
        listing: an engine whose policy lists the words to read.
        texts: string, large_string or binary [rows].
        keys: of the hashes.
        identifiers: where they are known already; None: they are looked for.
    """
    data, bounds = padded(texts)
    if identifiers is None and listing.finder is not None:
        identifiers = listing.finder.find(data, bounds, texts).spans
    cuts = strips(data, bounds, listing.policy.tokenizer, identifiers)
    chars = tables()
    room = int(bounds[-1]) + 1
    counts = np.zeros((len(cuts.rows), len(OF_WORDS)), np.int32)
    options, lookup = listing.options(keys), listing.table.lookup
    work = (
        np.empty((room, 4), np.int64), np.empty((room, 2), np.uint64), np.empty((room, 2), np.uint64),
        np.zeros((2, 4096), np.uint8),
    )  # fmt: skip
    cut = cut_whitespace if listing.policy.tokenizer == "whitespace" else cut_words
    letters = (chars.stage, chars.classes, chars.lower, chars.upper)
    n = cut(data, cuts.bounds, cuts.spans, 0, len(cuts.rows), lookup, letters, counts, options, work)
    last = np.full(2, -1, np.int64)
    n = look_up(data, cuts.bounds, cuts.rows, bounds, last, n, lookup, counts, options, work)
    if len(cuts.rows) > len(texts):
        places = work[0][:n, 3]
        places[:] = places >> 32 << 32 | cuts.rows[places & 0xFFFFFFFF]
        counts = summed(counts, cuts.rows, len(texts))
    return ListedTokens(data, bounds, work[0], n, counts)


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some texts, numbers and identifiers among them.

    Attributes:
        ids: int32[n], of the lexicon, or `UNKNOWN`.
        kind: uint8[n]: `DRAWN_WORD` (the policy draws it), `KEPT_WORD`, `UNKNOWN_WORD`, `NUMBER` or `NO_WORD` (an identifier).
        form: uint64[n, 2], keyed hash of the word in look-up form.
        marked: bool[n], punctuation is between the word and the one before it.
        ending: bool[rows], punctuation follows the last word of a text.
        starts: int64[p + 1], piece i is the words starts[i]:starts[i + 1].
        pieces: int64[rows + 1], text i is the pieces pieces[i]:pieces[i + 1].
        invalid: bool[rows], invalid UTF-8.
        spans: positions of the words.
        numbers: int32[n], `ids` with the stop words that the lexicon lacks, by their numbers in the word table.
    """

    ids: I32
    kind: U8
    form: U64
    marked: Bools
    ending: Bools
    starts: I64
    pieces: I64
    invalid: Bools
    spans: Spans
    numbers: I32

    @property
    def bounds(self) -> I64:
        """Text i is the words bounds[i]:bounds[i + 1]: int64[rows + 1]."""
        return self.spans.bounds


@compiled
def _describe(
    data: Any, bounds: Any, tokens: Any, n: Int, table: Any, chars: Any, k0: Int, k1: Int, ids: Any, kind: Any,
    form: Any, marked: Any, ending: Any, starts: Any, pieces: Any, numbers: Any,
    keeps_unknown: bool,
) -> Int:  # fmt: skip
    """Fill what :class:`Words` holds; return how many pieces there are."""
    stage, classes, lower = chars
    spelt = np.zeros(4096, np.uint8)
    t, piece = np.int64(0), np.int64(0)
    for row in range(bounds.shape[0] - 1):
        position = bounds[row]
        first = True
        while t < n and (tokens[t, 3] & 0xFFFFFFFF) == row:
            start, stop, code = tokens[t, 0], tokens[t, 1], tokens[t, 2]
            fresh, mark = first, False
            while position < start:
                point, length = decode(data, position, start)
                between = classes[cell(point, stage)] if point >= 0 else SPACE
                fresh = fresh or between == SPACE
                mark = mark or between == PASS
                position += length
            if fresh:
                starts[piece] = t
                piece += 1
            first = False
            if spelt.shape[0] < 4 * (stop - start) + 16:
                spelt = np.zeros(4 * (stop - start) + 16, np.uint8)
            size = lower_into(data, start, stop, spelt, stage, lower)
            form[t, 0], form[t, 1] = hash_bytes(spelt, 0, size, k0, k1)
            marked[t] = mark
            ids[t] = numbers[t] = UNKNOWN
            if code >= 0:
                ids[t], numbers[t], kind[t] = code, code, DRAWN_WORD
            elif code == LOWERED:
                kind[t] = KEPT_WORD
            elif code == IDENTIFIER:
                kind[t] = NO_WORD
            else:
                kind[t] = NUMBER if code == MASKED_NUMBER else UNKNOWN_WORD
            if kind[t] == KEPT_WORD or (keeps_unknown and kind[t] == UNKNOWN_WORD):
                info = look_up_form(spelt, size, table)
                if info >= 0:
                    numbers[t] = info & 0xFFFFFFFF
                    ids[t] = numbers[t] if numbers[t] < table[6] else UNKNOWN
            position = stop
            t += 1
        while position < bounds[row + 1]:
            point, length = decode(data, position, bounds[row + 1])
            ending[row] = ending[row] or (point >= 0 and classes[cell(point, stage)] == PASS)
            position += length
        pieces[row + 1] = piece
    starts[piece] = n
    return piece


def words_of(engine: Engine, texts: pa.Array, keys: tuple[np.uint64, np.uint64]) -> Words:
    """Read the words of texts.

    Args:
        engine: whose tokenizer, words and stop words count.
        texts: string, large_string or binary [rows]; NULLs have no words.
        keys: of the hashes.
    """
    listing = _listing(engine)
    listed_words = listed(listing, texts, keys)
    n, chars = listed_words.size, tables()
    ids, kind = np.empty(n, np.int32), np.empty(n, np.uint8)
    form, marked, ending = np.empty((n, 2), np.uint64), np.empty(n, np.bool_), np.zeros(len(texts), np.bool_)
    starts, pieces = np.zeros(n + 1, np.int64), np.zeros(len(texts) + 1, np.int64)
    numbers = np.empty(n, np.int32)
    count = _describe(
        listed_words.data, listed_words.bounds, listed_words.tokens, n, listing.table.lookup,
        (chars.stage, chars.classes, chars.lower), keys[0], keys[1], ids, kind, form, marked, ending, starts, pieces,
        numbers, engine.policy.oov == "keep",
    )  # fmt: skip
    starts = starts[: count + 1]
    begins, ends = (listed_words.tokens[:n, column].copy() for column in (0, 1))
    spans = Spans(listed_words.data, listed_words.bounds.astype(np.int64), begins, ends, starts[pieces])
    return Words(
        ids, kind, form, marked, ending, starts, pieces, listed_words.counts[:, INVALID] > 0, spans, numbers
    )


def read(engine: Engine, texts: pa.Array) -> Reading:
    """Read texts; marks between two words are one edge, and so are those at an end.

    Args:
        engine: whose tokenizer, words and policy count.
        texts: string, large_string or binary [rows]; NULLs have no words.
    """
    words = words_of(engine, texts, (np.uint64(2), np.uint64(3)))
    before, behind = (np.append(0, np.cumsum(edges)) for edges in (words.marked, words.ending))
    bounds = words.bounds + before[words.bounds] + behind
    place = np.arange(len(words.ids)) + before[1:] + np.repeat(behind[:-1], np.diff(words.bounds))
    ids, numbers = np.full((2, bounds[-1]), EDGE, np.int32)
    drawn = np.zeros(bounds[-1], np.bool_)
    ids[place], numbers[place], drawn[place] = words.ids, words.numbers, words.kind == DRAWN_WORD
    return Reading(ids, drawn, bounds, numbers)


def drawn_words(engine: Engine) -> Bools:
    """Return bool[V]: the words that the policy always draws when they are alone.

    "re", "ll" and "ve" are among them where they are no stop words: only after an apostrophe are they kept.
    """
    words = int(engine.table.size[0])
    if engine.policy.stop_words == "draw":
        return np.ones(words, np.bool_)
    return np.asarray((engine.table.flags[:words] & STOP) == 0)


class Listing(NamedTuple):
    """The words of some texts.

    Attributes:
        codes: int32[n], the lexicon id of each word that the policy draws; of all others a number below 0, `PUNCTUATION` for
            punctuation.
    """

    words: Spans
    codes: I32


def list_words(engine: Engine, texts: pa.Array, *, marks: bool = False) -> Listing:
    """Cut texts and list every word.

    Args:
        engine: whose tokenizer, words and policy count.
        texts: string, large_string or binary [rows]; NULLs have no words. Text behind invalid UTF-8 is not cut.
        marks: list punctuation and symbols, too: one by one, or with the tokenizer `whitespace` each stretch between spaces.
    """
    listing = _listing(engine)
    spaced = engine.policy.tokenizer == "whitespace"
    kind = (BETWEEN_SPACES if spaced else EACH_CHARACTER) if marks else NO_MARKS
    cut = cut_whitespace if spaced else cut_words
    data, rows = padded(texts)
    identifiers = None if engine.finder is None else engine.finder.find(data, rows, texts).spans
    cuts, chars = strips(data, rows, engine.policy.tokenizer, identifiers), tables()
    bounds, options = cuts.bounds, listing.options((np.uint64(2), np.uint64(3)))
    lookup, letters = listing.table.lookup, (chars.stage, chars.classes, chars.lower, chars.upper)
    counts = np.zeros((len(cuts.rows), len(OF_WORDS)), np.int32)
    ends = np.zeros(len(bounds), np.int64)
    parts: list[tuple[Any, Any]] = []
    room, forms, total = 0, np.zeros((2, 4096), np.uint8), 0
    last = np.full(2, -1, np.int64)
    for r0, r1 in byte_blocks(cuts):
        size = int(bounds[r1] - bounds[r0])
        if size + 1 > room:
            room = size + 1
            work = (np.empty((room, 4), np.int64), *(np.empty((room, 2), np.uint64) for _ in range(2)), forms)
            places, codes = np.empty((room, 2), np.int64), np.empty(room, np.int32)
        count = cut(data, bounds, cuts.spans, r0, r1, lookup, letters, counts, options, work)
        count = look_up(data, bounds, cuts.rows, rows, last, count, lookup, counts, options, work)
        n = _list(data, bounds, r0, r1, work[0], count, kind, letters[:2], places, codes, ends, total)
        total += n
        parts.append((places[:n].copy(), codes[:n].copy()))
    where = np.concatenate([part for part, _ in parts]) if parts else np.empty((0, 2), np.int64)
    all_codes = np.concatenate([part for _, part in parts]) if parts else np.empty(0, np.int32)
    spans = Spans(
        data, rows, np.ascontiguousarray(where[:, 0]), np.ascontiguousarray(where[:, 1]), ends[cuts.first]
    )
    return Listing(spans, all_codes)


@compiled
def _list(
    data: Any, bounds: Any, r0: Int, r1: Int, tokens: Any, n: Int, kind: Int, chars: Any, places: Any,
    codes: Any, ends: Any, before: Int,
) -> Int:  # fmt: skip
    """Fill places, codes and ends of strips r0..r1; return how many words and marks there are."""
    stage, classes = chars
    t, at = np.int64(0), np.int64(0)
    for strip in range(r0, r1):
        position = bounds[strip]
        while True:
            more = t < n and (tokens[t, 3] & 0xFFFFFFFF) == strip
            stop = tokens[t, 0] if more else bounds[strip + 1]
            while kind != NO_MARKS and position < stop:
                code, length = decode(data, position, stop)
                character = classes[cell(code, stage)] if code >= 0 else SPACE
                end = position + length
                if kind == BETWEEN_SPACES and character != SPACE:
                    while end < stop:
                        code, length = decode(data, end, stop)
                        if code < 0 or classes[cell(code, stage)] == SPACE:
                            break
                        end += length
                if (kind == BETWEEN_SPACES and character != SPACE) or (
                    character == PASS or character == APOSTROPHE or character == HYPHEN
                ):
                    places[at, 0], places[at, 1], codes[at] = position, end, PUNCTUATION
                    at += 1
                position = end
            if not more:
                break
            if tokens[t, 2] != IDENTIFIER:  # it is replaced whole, and no word
                places[at, 0], places[at, 1] = tokens[t, 0], tokens[t, 1]
                codes[at] = tokens[t, 2]
                at += 1
            position = tokens[t, 1]
            t += 1
        ends[strip + 1] = before + at
    return at
