"""Release the words that were not chosen: the engine's phase between looking words up and drawing them.

Find the word released just before each drawn word: the engine's phase for draws that depend on it.

It is read from the released text, never from the lost text. Spaces, line breaks, apostrophes, hyphens and joiners may lie between
the two words. Any other mark (punctuation, a symbol) ends the sentence, and so do the ends of a text (a row's column, an element
of a list). The next word then has no word before it. The same holds after a number, `[OOV]`, `[NUM]`, an identifier, a kept word
that the word table lacks, and invalid UTF-8. Before a drawn word that follows a drawn word is the output of that word. An unknown
word that is drawn uniformly counts as the word that it becomes.

A kept word (a stop word, or one that importance did not choose) is looked up in its gap, backwards from the drawn word. So the
cut of the batch into strips and blocks plays no part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    DIGIT,
    EXTEND,
    HYPHEN,
    LETTER,
    MARK,
    OTHER,
    PASS,
    SPACE,
    cell,
    decode,
    lower_into,
)
from dptext_spark.runtime.jit import Int, compiled, mul_high
from dptext_spark.text.word_table import DRAWN, DRAWN_OOV, LOWERED, MASKED_BEYOND, RANDOM_NUMBER, look_up_form

BEYOND = 255  # in the place of a level: the word becomes a mask


class Texts(NamedTuple):
    """A column of a batch whose rows are chosen in.

    Attributes:
        values: string, large_string or binary [m].
        rows: int64[m], the row of each text, ascending; None: one text a row.
        weights: list<float> [m], the importance of each word, where a selection takes them from the user.
    """

    values: pa.Array
    rows: I64 | None = None
    weights: pa.Array | None = None


class TokenSelection(NamedTuple):
    """The choice of a column's words to draw.

    Attributes:
        starts: int64[n], where each word begins in the bytes of the batch, ascending; every word that the policy draws is one.
        levels: uint8[n], at which level each is drawn; `none` or more: released unchanged, except `BEYOND`.
        none: how many levels there are.
        units: int64[texts], the spending of each text's draws, in units of ε. Where equal words of a row share a draw, it
            counts with the first text that has it.
        rows: int64[texts], the row of each text; None: one each.
    """

    starts: I64
    levels: U8
    none: int
    units: I64
    rows: I64 | None = None


@compiled
def drop_unselected(
    tokens: Any, n: Int, content: Any, starts: Any, levels: Any, none: Int, place: Int, lowered: bool, counts: Any,
    drawn_at: Any,
) -> tuple[Int, Int]:  # fmt: skip
    """Drop the tokens that are not drawn after all, or only lower their case; unknown words and numbers stay listed.

    Args:
        tokens: int64[n, 4], of whole strips, in order.
        n: number of tokens.
        content: uint64[n, 2], which goes with them.
        starts: int64[words], see :class:`TokenSelection`.
        levels: uint8[words].
        none: the number of levels.
        place: where to begin in `starts`.
        lowered: whether all words are released in lower case.
        counts: int32[strips, counters]: words not drawn are not counted as drawn.
        drawn_at: uint8[n], filled with the levels of the words that are drawn, in order.

    Returns:
        (how many tokens remain, where the next call begins in `starts`); -1 tokens where a word is not in `starts`.
    """
    listed, known = np.int64(0), np.int64(0)
    for i in range(n):
        code = tokens[i, 2]
        if code >= 0:
            while place < starts.shape[0] and starts[place] < tokens[i, 0]:
                place += 1
            if place == starts.shape[0] or starts[place] != tokens[i, 0]:
                return np.int64(-1), place
            if levels[place] >= none:
                counts[tokens[i, 3] & 0xFFFFFFFF, DRAWN] -= 1
                if levels[place] == BEYOND:
                    code = np.int64(MASKED_BEYOND)
                elif lowered:
                    code = np.int64(LOWERED)
                else:
                    continue
            else:
                drawn_at[known] = levels[place]
                known += 1
        tokens[listed, 0], tokens[listed, 1], tokens[listed, 2] = tokens[i, 0], tokens[i, 1], code
        tokens[listed, 3] = tokens[i, 3]
        content[listed, 0], content[listed, 1] = content[i, 0], content[i, 1]
        listed += 1
    return listed, place


NO_WORD, PREVIOUS = -1, -2  # as samplers take them
LONGEST = 1_000  # bytes of a kept word that is looked up


@compiled
def _step_back(data: Any, start: Int, end: Int, stage: Any, classes: Any) -> tuple[Int, Int]:
    """Return (where the last character of data[start:end] begins, its class; -1 for invalid UTF-8)."""
    at = end - 1
    if data[at] < 128:
        return at, np.int64(classes[data[at]])
    while at > start and end - at < 4 and (data[at] & 0xC0) == 0x80:
        at -= 1
    code, length = decode(data, at, end)
    if code < 0 or at + length != end:
        return end - 1, np.int64(-1)
    return at, np.int64(classes[cell(code, stage)])


@compiled
def _number_of(data: Any, start: Int, end: Int, table: Any, chars: Any, form: Any) -> Int:
    """Return the number of the word data[start:end] in the word table, or `NO_WORD`."""
    if end - start > LONGEST or end == start:
        return np.int64(NO_WORD)
    info = look_up_form(form, lower_into(data, start, end, form, chars[0], chars[2]), table)
    return np.int64(info & 0xFFFFFFFF) if info >= 0 else np.int64(NO_WORD)


@compiled
def _last_word(data: Any, start: Int, end: Int, table: Any, chars: Any, form: Any) -> Int:
    """Return the number of the last word of data[start:end], whole or in its last part, as the tokenizer cuts it."""
    stage, classes = chars[0], chars[1]
    at, joint = end, np.int64(-1)
    while at > start and end - at <= LONGEST:
        before, kind = _step_back(data, start, at, stage, classes)
        if kind == APOSTROPHE or kind == HYPHEN:
            if before == start:
                break
            _, left = _step_back(data, start, before, stage, classes)
            if left != LETTER and left != MARK and left != EXTEND:
                break
            joint = at if joint < 0 else joint
        elif kind != LETTER and kind != MARK and kind != EXTEND:
            break
        at = before
    number = _number_of(data, at, end, table, chars, form)
    if number == NO_WORD and joint >= 0:
        number = _number_of(data, joint, end, table, chars, form)
    return number


@compiled
def _in_gap(
    data: Any, start: Int, end: Int, spaced: bool, before: Int, table: Any, chars: Any, form: Any
) -> Int:  # fmt: skip
    """Return the word before data[end]; `before` is the word before the gap data[start:end]."""
    stage, classes = chars[0], chars[1]
    at = end
    # Of the piece between spaces that is being read, where tokens are cut at spaces only.
    marked, stop = False, np.int64(-1)
    while at > start:
        first, kind = _step_back(data, start, at, stage, classes)
        spells = kind == LETTER or kind == DIGIT or kind == OTHER or kind == MARK
        if kind < 0:
            return np.int64(NO_WORD)
        if spaced and kind != SPACE:
            stop = at if stop < 0 else stop
            if spells:
                while first > start:
                    further, kind = _step_back(data, start, first, stage, classes)
                    if kind == SPACE or kind < 0:
                        break
                    first = further
                return _number_of(data, first, stop, table, chars, form)
            marked = marked or kind == PASS
        elif spaced:
            if marked:
                return np.int64(NO_WORD)
            stop = np.int64(-1)
        elif kind == LETTER or kind == MARK:
            return _last_word(data, start, at, table, chars, form)
        elif spells or kind == PASS:
            return np.int64(NO_WORD)
        at = first
    return np.int64(NO_WORD) if marked else before


@compiled
def words_before(
    data: Any, texts: Any, rows: Any, tokens: Any, n: Int, other_draws: Any, table: Any, chars: Any, spaced: bool,
    state: Any, before: Any,
) -> Int:  # fmt: skip
    """Fill the word that is released before each known word that is drawn; return how many known words there are.

    Args:
        data: uint8[...], the batch, padded.
        texts: int64[texts + 1], where each begins.
        rows: int64[strips], the text of each strip.
        tokens: int64[n, 4], the listed tokens of some strips, in order.
        n: number of tokens.
        other_draws: uint64[others, 2], the draws of unknown words and numbers, in order.
        table: (cells, shift, slots, flags, word_bytes, offsets, V) of the word table.
        chars: (stage, classes, lower, upper) of the character tables.
        spaced: whether the tokenizer cuts at spaces only.
        state: int64[3], carried from block to block: a text (-1 before the first), where its last listed token ends, and the
            word before that place: a number of the word table, `NO_WORD`, or `PREVIOUS`, the last known word that is drawn.
        before: int32[known], filled: numbers of the word table, `NO_WORD`, or `PREVIOUS`.
    """
    form = np.zeros(4 * LONGEST + 16, np.uint8)
    words = np.uint64(table[6])
    text, start, last = state[0], state[1], state[2]
    known, other = np.int64(0), np.int64(0)
    for i in range(n):
        code = tokens[i, 2]
        if rows[tokens[i, 3] & 0xFFFFFFFF] != text:
            text = rows[tokens[i, 3] & 0xFFFFFFFF]
            start, last = texts[text], np.int64(NO_WORD)
        if code == LOWERED:
            continue  # it is kept, but for its case: part of the gap
        if code >= 0:
            at = tokens[i, 0]
            if at == start or (at == start + 1 and data[start] == 32):
                before[known] = last
            else:
                before[known] = _in_gap(data, start, at, spaced, last, table, chars, form)
            known += 1
            last = np.int64(PREVIOUS)
        elif code == DRAWN_OOV:
            last = np.int64(mul_high(other_draws[other, 0], words))
            other += 1
        else:
            other += code == RANDOM_NUMBER
            last = np.int64(NO_WORD)
        start = tokens[i, 1]
    state[0], state[1], state[2] = text, start, last
    return known
