"""Which texts a model's classifier of names reads: those that hold a candidate, for the classifier costs what all else does not.

A text is read where it holds at least one of these:

1. a word of two letters or more that is written with a capital, also at the beginning of a sentence, or in letters that have
   none (:func:`~dptext_spark.encoder.candidates.capitalised`);
2. an unknown word of two letters or more: neither the word nor, where it has hyphens or apostrophes, each part of it of two
   letters or more is a word of the lexicon, a stop word or a clitic. One that begins within an identifier that the policy's rules
   found does not count, and numbers are no words;
3. a name of the packaged public lists in any case, of one word or of several that follow each other: a given name, a surname, a
   town, a country or state that is likelier a name than another word (class `LIKELY` or more), and no stop word. It counts also
   where the policy does not look for names by these lists.

Which texts those are depends on the text, the model's word table, the policy's identifiers and the lists of this package alone.

Words are cut as the engine cuts them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8, Bools, read_only
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    EXTEND,
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
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.lookup import look_up_form, part_end
from dptext_spark.text.names.normal_words import FORM, next_word, siphash
from dptext_spark.text.names.public_lists import (
    CITY,
    GIVEN,
    GOES_ON,
    LIKELY,
    REGION,
    STOP,
    SURNAME,
    class_of,
    find_public,
    public_lists,
)
from dptext_spark.text.word_table import WordTable


class NameWords(NamedTuple):
    """The words of some texts.

    Attributes:
        starts: int64[n], where each begins in the bytes of the batch.
        ends: int64[n], where it ends.
        texts: int64[n], its text.
        joined: bool[n], whether it may go on with the name of the word before it: between the two stand spaces of one line,
            hyphens or apostrophes, and a full stop only behind a single letter.
    """

    starts: I64
    ends: I64
    texts: I64
    joined: Bools


@compiled
def _joins(data: Any, start: Int, stop: Int, initial: Any, stage: Any, classes: Any) -> Any:
    """Whether data[start:stop], the gap between two words, may stand within a name."""
    p = start
    if initial and p < stop and data[p] == 0x2E:
        p += 1
    while p < stop:
        code, length = decode(data, p, stop)
        if code < 0:
            return False
        kind = classes[cell(code, stage)]
        broken = 0x0A <= code <= 0x0D or code == 0x85 or 0x2028 <= code <= 0x2029
        if broken or (kind != SPACE and kind != HYPHEN and kind != APOSTROPHE):
            return False
        p += length
    return True


@compiled
def _cut(data: Any, rows: Any, chars: Any, found: Any) -> Int:
    """Fill int64[n, 4], (begin, end, text, whether joined), as far as there is room; return how many words there are."""
    stage, classes = chars
    n = 0
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        before, initial = np.int64(-1), False
        while p < end:
            code, length = decode(data, p, end)
            if code < 0 or classes[cell(code, stage)] != LETTER:
                p += length
                continue
            stop = scan_word(data, p, end, stage, classes)[0]
            if stop < 0:  # bytes that are not UTF-8 follow: what stands before them is no word that is known
                p += length
                before = np.int64(-1)
                continue
            if n < found.shape[0]:
                joined = before >= 0 and _joins(data, before, p, initial, stage, classes)
                found[n, 0], found[n, 1], found[n, 2], found[n, 3] = p, stop, row, np.int64(joined)
            n += 1
            before, initial = stop, p + length == stop
            p = stop
    return n


@compiled
def _capitals(data: Any, rows: Any, chars: Any, found: Any) -> None:
    """Set found[row] where a text holds a part of a word that is written like a name, see :func:`capitalised`."""
    stage, classes, lower, upper = chars
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        lone = False  # behind a capital and an apostrophe, as in D'Arcy and I'm
        while p < end:
            c = data[p]
            if c < 128 and classes[c] != LETTER:
                lone = lone and c == 0x27
                p += 1
                continue
            code, length = decode(data, p, end)
            if code < 0 or classes[cell(code, stage)] != LETTER:
                lone = lone and code == 0x2019
                p += length
                continue
            place = cell(code, stage)
            written_so: Any = lower[place] != 0 or upper[place] == 0
            letters = 0
            while p < end:
                code, length = decode(data, p, end)
                if code < 0:
                    break
                kind = classes[cell(code, stage)]
                if kind != LETTER and kind != MARK and kind != EXTEND:
                    break
                letters += kind == LETTER
                p += length
            if (written_so and letters > 1) or (lone and letters > 2):
                found[row] = True
                break
            lone = written_so and letters == 1


def name_words(data: U8, rows: I64) -> NameWords:
    """Return the words of texts.

    Args:
        data: uint8[...], their bytes.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
    """
    chars = tables()
    room = 1024 + len(data) // 4
    while True:
        found = np.empty((room, 4), np.int64)
        count = int(_cut(read_only(data), read_only(rows), (chars.stage, chars.classes), found))
        if count <= room:
            break
        room = count
    starts, ends, texts, joined = np.ascontiguousarray(found[:count].T)
    return NameWords(starts, ends, texts, joined.astype(np.bool_))


def capitalised(data: U8, rows: I64) -> Bools:
    """Return which texts hold a word that is written like a name: bool[r].

    That is one of two letters or more that begins with a capital, as a part of it behind a hyphen or an apostrophe may, or with
    a letter that has no capital, as those of many scripts; of I'm, I'll and the like neither part counts.

    Args:
        data: uint8[...], their bytes.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
    """
    chars = tables()
    found = np.zeros(len(rows) - 1, np.bool_)
    _capitals(read_only(data), read_only(rows), (chars.stage, chars.classes, chars.lower, chars.upper), found)
    return found


@compiled
def _small(data: Any, starts: Any, ends: Any, chars: Any, found: Any) -> None:
    """Fill bool[n]: which words hold a letter that has a capital, and no capital."""
    stage, lower, upper = chars
    for i in range(starts.shape[0]):
        p, small, capital = starts[i], False, False
        while p < ends[i]:
            code, length = decode(data, p, ends[i])
            if code >= 0:
                place = cell(code, stage)
                small = small or upper[place] != 0
                capital = capital or lower[place] != 0
            p += length
        found[i] = small and not capital


def in_small_letters(data: U8, words: NameWords) -> Bools:
    """Return which words are written in small letters throughout, of those that have capitals: bool[n].

    Args:
        data: uint8[...], the bytes that the words are of.
        words: of them.
    """
    chars = tables()
    found = np.zeros(len(words.starts), np.bool_)
    _small(
        read_only(data),
        read_only(words.starts),
        read_only(words.ends),
        (chars.stage, chars.lower, chars.upper),
        found,
    )
    return found


# Enters the fingerprint of each model with a classifier: goes up where other texts are read; a test holds it to the rules.
CANDIDATES_VERSION = "2"
SHORTEST = 2  # letters of a candidate


@compiled
def _is_unknown(data: Any, start: Int, stop: Int, table: Any, chars: Any, form: Any) -> Any:
    """Whether no word of the table is data[start:stop], which has no joiner, and it has letters enough."""
    stage, classes, lower = chars
    letters, p = 0, start
    while p < stop:
        code, length = decode(data, p, stop)
        letters += classes[cell(code, stage)] == LETTER
        p += length
    if letters < SHORTEST:
        return False
    return look_up_form(form, lower_into(data, start, stop, form, stage, lower), table) < 0


@compiled
def _holds_unknown(
    data: Any, p: Int, end: Int, apart: Any, at: Int, table: Any, chars: Any, form: Any
) -> Any:
    """Whether the text data[p:end] holds an unknown word that begins in none of the stretches apart[at:], int64[n, 2]."""
    stage, classes, lower = chars
    while p < end:
        code, length = decode(data, p, end)
        if code < 0 or classes[cell(code, stage)] != LETTER:
            p += length
            continue
        stop, joiners = scan_word(data, p, end, stage, classes)
        if stop < 0:  # bytes that are not UTF-8 follow
            p += length
            continue
        while at < apart.shape[0] and apart[at, 1] <= p:
            at += 1
        if at < apart.shape[0] and apart[at, 0] <= p:
            p = stop
            continue
        if form.shape[0] < 4 * (stop - p) + 16:
            form = np.zeros(4 * (stop - p) + 16, np.uint8)
        if joiners == 0:
            if _is_unknown(data, p, stop, table, chars, form):
                return True
        elif look_up_form(form, lower_into(data, p, stop, form, stage, lower), table) < 0:
            first = p
            while first < stop:
                ends, following = part_end(data, first, stop, stage, classes)
                if ends > first and _is_unknown(data, first, ends, table, chars, form):
                    return True
                first = following
        p = stop
    return False


@compiled
def _is_likely(flags: Int) -> Any:
    """Whether the flags of a hash of the public lists are those of a likely name."""
    most = max(
        max(class_of(flags, GIVEN), class_of(flags, SURNAME)),
        max(class_of(flags, CITY), class_of(flags, REGION)),
    )
    return most >= LIKELY and not flags & STOP


@compiled
def _holds_listed(data: Any, p: Int, end: Int, lists: Any, chars: Any, form: Any) -> bool:
    """Whether the text data[p:end] holds a likely name of the public lists."""
    cells, shift, fold = lists
    zero = np.uint64(0)
    while True:
        _, _, p, size = next_word(data, p, end, chars, fold, form)
        if size < 0:
            return False
        state, q = zero, p
        while size > 0:
            if form[size - 1] == 0x2E:
                size -= 1  # the stop of an initial is no part of it
            state = siphash(zero, zero, state, form, size)
            flags = find_public(cells, shift, state)
            if _is_likely(flags):
                return True
            if not flags & GOES_ON:
                break
            _, _, q, size = next_word(data, q, end, chars, fold, form)


@compiled
def _find(data: Any, rows: Any, apart: Any, table: Any, chars: Any, lists: Any, found: Any) -> None:
    """Set found[row] where a text holds an unknown or a listed word; texts that are found already are not looked at."""
    stage, classes, _ = chars
    form, normal = np.zeros(256, np.uint8), np.zeros(FORM, np.uint8)
    at = np.int64(0)
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        if found[row]:
            continue
        while at < apart.shape[0] and apart[at, 1] <= p:
            at += 1
        found[row] = _holds_unknown(data, p, end, apart, at, table, chars, form) or _holds_listed(
            data, p, end, lists, (stage, classes), normal
        )


def candidates(
    data: U8, rows: I64, table: WordTable, starts: I64 | None = None, ends: I64 | None = None
) -> Bools:
    """Return which texts hold a candidate: bool[r].

    Args:
        data: uint8[...], the bytes of the texts, padded.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        table: the words that are known.
        starts: int64[n], where each identifier begins in `data`, in any order, also overlapping; None for none.
        ends: int64[n], where it ends.
    """
    chars, known = tables(), public_lists()
    found = capitalised(data, rows)
    lists = (read_only(known.cells), known.shift, (read_only(known.stage), read_only(known.folds)))
    words = (
        table.cells, table.shift, table.slots, table.flags, table.word_bytes, table.offsets, int(table.size[0]),
    )  # fmt: skip
    letters = (chars.stage, chars.classes, chars.lower)
    _find(read_only(data), read_only(rows), _apart(starts, ends), words, letters, lists, found)
    return found


def _apart(starts: I64 | None, ends: I64 | None) -> I64:
    """Return stretches in order, those that overlap or touch joined: int64[n, 2]."""
    if starts is None or ends is None or not len(starts):
        return np.empty((0, 2), np.int64)
    order = np.argsort(starts, kind="stable")
    begins, reached = starts[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.append(True, begins[1:] > reached[:-1]))
    last = np.append(first[1:], len(begins)) - 1
    return np.ascontiguousarray(np.stack([begins[first], reached[last]], axis=1), np.int64)
