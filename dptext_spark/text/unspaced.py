"""Cut a stretch of letters of a script without spaces between words into words of the lexicon; only where the policy asks for it.

A stretch is what the tokenizer takes as one word. Where it is no word as a whole, and holds a letter of such a script, it is read
from its beginning: the longest word that begins there is taken, and reading goes on behind it. *Words* are those of lexicon and
stop words; one has at most `MOST_PIECES` *pieces*. A piece is a letter of such a script with the marks and joiners
behind it, or a run of other letters, so that a word of another script is never cut, nor a letter from its marks. Where no word
begins, a run of other letters stands for itself, and pieces of such a script up to the next word are one unknown word together.
An apostrophe or a hyphen between pieces separates them, but may be inside a word. Joiners at a word's end are no part of the word
that is looked up, and leave with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.arrays import I64, U8, Bools
from dptext_spark.lexicon.characters import APOSTROPHE, EXTEND, HYPHEN, LETTER, MARK, cell, decode, lower_into
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.identifiers.normalize import UNSPACED_BLOCKS
from dptext_spark.text.lookup import SEGMENT, is_known, look_up_form, settle, settle_word

MOST_PIECES = 24
_FIRST, _LAST = np.array(UNSPACED_BLOCKS, np.int64).T.copy()


@compiled
def is_unspaced(code: Int) -> Any:
    """Whether a letter is of a script that is written without spaces, or joins endings to words."""
    for k in range(_FIRST.shape[0]):
        if code <= _LAST[k]:
            return code >= _FIRST[k]
    return False


@compiled
def has_unspaced(data: Any, i: Int, end: Int) -> Any:
    """Whether a letter of such a script is in data[i:end], valid UTF-8."""
    while i < end:
        code, length = decode(data, i, end)
        if code >= 128 and is_unspaced(code):
            return True
        i += length
    return False


@compiled
def _fill_unspaced(data: Any, starts: Any, ends: Any, found: Any) -> None:
    for i in range(starts.shape[0]):
        found[i] = has_unspaced(data, starts[i], ends[i])


def hold_unspaced(data: U8, starts: I64, ends: I64) -> Bools:
    """Return which words data[starts[i]:ends[i]], valid UTF-8, hold a letter of such a script: bool[n]."""
    found = np.zeros(len(starts), np.bool_)
    _fill_unspaced(data, starts, ends, found)
    return found


@compiled
def _piece(data: Any, i: Int, end: Int, stage: Any, classes: Any) -> tuple[Int, Int, Int]:
    """Find the piece at i.

    Returns:
        (where its last letter or mark ends, where it ends, and what it is: 0 of such a script, 1 of others, 2 an apostrophe or a
        hyphen).
    """
    code, length = decode(data, i, end)
    kind = classes[cell(code, stage)]
    if kind == APOSTROPHE or kind == HYPHEN:
        return i + length, i + length, np.int64(2)
    spaced = not is_unspaced(code)
    i += length
    spelt = i
    while i < end:
        code, length = decode(data, i, end)
        kind = classes[cell(code, stage)]
        if spaced and (kind == APOSTROPHE or kind == HYPHEN):
            following, _ = decode(data, i + length, end)  # a letter: no stretch ends with a joiner
            if is_unspaced(following):
                break
        elif kind == LETTER:
            if not spaced or is_unspaced(code):
                break
            spelt = i + length
        elif kind == MARK:
            spelt = i + length
        elif kind != EXTEND:
            break
        i += length
    return spelt, i, np.int64(spaced)


@compiled
def _emit(
    data: Any,
    i: Int,
    spelt: Int,
    end: Int,
    row: Int,
    row_start: Int,
    info: Int,
    table: Any,
    chars: Any,
    work: Any,
) -> Int:
    """List the word data[i:spelt], whose place is data[i:end]; return the number of tokens."""
    tokens, _, _, _, forms, n = work
    length = lower_into(data, i, spelt, forms[0], chars[0], chars[2])
    n = settle(data, i, spelt, row, row_start, (info, table[6], length), chars, work)
    tokens[n - 1, 1] = end
    return n


@compiled
def _cut(data: Any, i: Int, end: Int, row: Int, row_start: Int, table: Any, chars: Any, work: Any) -> Int:
    """Cut the stretch data[i:end] and list its words; return the number of tokens."""
    tokens, content, counts, options, forms, n = work
    stage, classes, lower = chars[0], chars[1], chars[2]
    unknown, unknown_spelt, unknown_end = np.int64(-1), i, i
    while i < end:
        first_spelt, first_end, what = _piece(data, i, end, stage, classes)
        best, best_spelt, best_info = np.int64(-1), i, np.int64(-1)
        if what != 2:
            q, done, length = i, i, np.int64(0)
            for _ in range(MOST_PIECES):
                if q >= end:
                    break
                spelt, stop, inner = _piece(data, q, end, stage, classes)
                length += lower_into(data, done, spelt, forms[0, length:], stage, lower)
                done = spelt
                if inner != 2:
                    info = look_up_form(forms[0], length, table)
                    if is_known(info, table[6], options):
                        best, best_spelt, best_info = stop, spelt, info
                q = stop
        if best < 0 and what == 0:
            unknown = i if unknown < 0 else unknown
            unknown_spelt, unknown_end = first_spelt, first_end
            i = first_end
            continue
        if unknown >= 0:
            work = (tokens, content, counts, options, forms, n)
            n = _emit(
                data, unknown, unknown_spelt, unknown_end, row, row_start, np.int64(-1), table, chars, work
            )
            unknown = np.int64(-1)
        work = (tokens, content, counts, options, forms, n)
        if best >= 0:
            n = _emit(data, i, best_spelt, best, row, row_start, best_info, table, chars, work)
            i = best
        else:
            if what == 1:
                n = settle_word(data, i, first_spelt, row, row_start, True, table, chars, work)
                tokens[n - 1, 1] = first_end
            i = first_end
    if unknown >= 0:
        work = (tokens, content, counts, options, forms, n)
        n = _emit(data, unknown, unknown_spelt, unknown_end, row, row_start, np.int64(-1), table, chars, work)
    return n


@compiled
def settle_stretch(
    data: Any, i: Int, end: Int, row: Int, row_start: Int, parts: bool, table: Any, chars: Any, work: Any
) -> Int:
    """Look up the word data[i:end], list it, or what it is cut into, and return the number of tokens."""
    tokens, content, counts, options, forms, n = work
    if options[SEGMENT] == 1 and has_unspaced(data, i, end):
        if forms.shape[1] < 4 * (end - i) + 16:
            forms = np.zeros((2, 4 * (end - i) + 16), np.uint8)
        length = lower_into(data, i, end, forms[0], chars[0], chars[2])
        if not is_known(look_up_form(forms[0], length, table), table[6], options):
            work = (tokens, content, counts, options, forms, n)
            return _cut(data, i, end, row, row_start, table, chars, work)
    return settle_word(data, i, end, row, row_start, parts, table, chars, work)
