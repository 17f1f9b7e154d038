"""Where an identifier may stand: a pass over the bytes of a batch that stops at few characters, and looks around there.

An @, a colon, a dot between letters, a digit or a bracket is an *anchor*; around it lies a *window*, which the patterns of
:mod:`~dptext_spark.text.identifiers.rules` decide about. Windows are bounded, or end where those of the same kind begin, so that
any text takes time in proportion to its length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.lexicon.characters import decode
from dptext_spark.runtime.jit import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.text.identifiers.normalize import (
    ACCOUNT,
    ADDRESS,
    COLONS,
    DAY,
    FOREIGN,
    HANDLE,
    HOST,
    IN_LINE,
    NAMED,
    NOTHING,
    NUMBER,
    ONE_BREAK,
    SCHEME,
    TWO_BREAKS,
    UNSPACED,
    backward,
    colons,
    context_of,
    ends_in_label,
    ends_sentence,
    figures,
    forward,
    in_name,
    is_digit,
    is_letter,
    is_word,
    look_back,
    seen_after,
    seen_before,
)

# Columns of a candidate.
KIND, ROW, START, END, REACH = range(5)
# Characters of a window at most: before an @, of a domain, a user name, a scheme's end and what follows it, an account, an IPv6
# address, before a day's figures and behind their beginning.
LOCAL, DOMAIN, USER, HEAD, ACCOUNT_SIZE, COLONS_SIZE, BEFORE_DAY, NEAR_DAY = np.array(
    [80, 260, 64, 8, 72, 48, 16, 56]
)
AREA = 6  # digits of an area or a country at most
_OPEN, _PLUS = np.array([40, 43])
_DASH, _DOT, _SLASH, _COLON, _AT, _CLOSE, _LOW = 45, 46, 47, 58, 64, 41, 95
_COMMA, _QUESTION, _NUMBER_SIGN = 44, 63, 35
_ONES = np.uint64(0x0101010101010101)
_TOP = np.uint64(0x8080808080808080)
_FROM, _TO = np.uint64(0x52) * _ONES, np.uint64(0x3F) * _ONES  # from "." to "@"
_BRACKET = np.uint64(0x5B) * _ONES


@inlined
def _anchors(word: Int) -> Int:
    """Return bit 7 of each byte of `word` that may be an anchor: `./0123456789:;<=>?@[`, or not ASCII."""
    low = word & ~_TOP
    other = word ^ _BRACKET
    bracket = (other - _ONES) & ~other & _TOP
    return (((low + _FROM) & ~(low + _TO)) | word | bracket) & _TOP


@compiled
def _put(found: Any, n: Int, kind: Int, row: Int, start: Int, end: Int, reach: Int) -> Int:
    """Note a candidate where there is room; return how many there are."""
    if n < found.shape[0]:
        found[n, KIND], found[n, ROW] = kind, row
        found[n, START], found[n, END], found[n, REACH] = start, end, reach
    return n + 1


@compiled
def _at(
    data: Any, i: Int, step: Int, start: Int, end: Int, row: Int, wanted: Any, shapes: Any, found: Any, n: Int
) -> Int:
    """Look around an @ that stands at data[i:i + step]."""
    begin = backward(data, i, start, ADDRESS, LOCAL, ONE_BREAK, shapes)
    if begin < i and wanted[ADDRESS]:
        stop = forward(data, i + step, end, HOST, DOMAIN, TWO_BREAKS, shapes)
        if stop > i + step:
            n = _put(found, n, ADDRESS, row, begin, context_of(data, stop, end, shapes), stop)
    before = seen_before(data, i, start, shapes)
    if wanted[HANDLE] and not is_word(before) and before != _DOT:
        stop = forward(data, i + step, end, HANDLE, USER, IN_LINE, shapes)
        if stop > i + step:
            n = _put(found, n, HANDLE, row, i, context_of(data, stop, end, shapes), stop)
    return n


@compiled
def _opened(data: Any, i: Int, start: Int, mark: Int, shapes: Any) -> Int:
    """Return where a mark begins that ends at i; i where there is none."""
    at = i
    while at > start:
        seen, length = look_back(data, at, start, shapes)
        at -= length
        if seen == mark:
            return at
        if seen != NOTHING:
            break
    return i


@compiled
def _digits(
    data: Any, i: Int, start: Int, end: Int, row: Int, wanted: Any, shapes: Any, found: Any, n: Int
) -> tuple[Int, Int]:
    """Look around a run of digits; return (number of candidates, end of the run)."""
    run, stop, digits, first, dots = figures(data, i, end, shapes)
    before = seen_before(data, i, start, shapes)
    if wanted[DAY] and first <= 4:
        begin = backward(data, i, start, DAY, BEFORE_DAY, IN_LINE, shapes)
        last = forward(data, i, end, DAY, NEAR_DAY, IN_LINE, shapes)
        n = _put(found, n, DAY, row, begin, last, i)
    if is_letter(before):
        if wanted[ACCOUNT]:
            begin, letters = i, 0
            while begin > start and letters < 3:
                seen, length = look_back(data, begin, start, shapes)
                if not is_letter(seen) and seen != NOTHING:
                    break
                letters += seen != NOTHING
                begin -= length
            if letters == 2 and not is_word(seen_before(data, begin, start, shapes)):
                last = forward(data, begin, end, ACCOUNT, ACCOUNT_SIZE, TWO_BREAKS, shapes)
                n = _put(found, n, ACCOUNT, row, begin, context_of(data, last, end, shapes), last)
        return n, run
    if not wanted[NUMBER] or (digits < 7 and (dots < 3 or digits < 4)) or before == _LOW:
        return n, run
    begin = i
    if before == _DOT or before == _COMMA:  # a decimal part, or a group of thousands
        at = i
        while at > start:
            seen, length = look_back(data, at, start, shapes)
            at -= length
            if seen == before:
                break
        if is_digit(seen_before(data, at, start, shapes)):
            return n, run
    begin = _opened(data, i, start, _PLUS, shapes)
    # Else the bracket is around more than the digits of an area.
    if stop > run and first <= AREA and seen_after(data, run, end, shapes) == _CLOSE:
        begin = _opened(data, begin, start, _OPEN, shapes)
    return _put(found, n, NUMBER, row, begin, context_of(data, stop, end, shapes), run), run


@compiled
def candidates(data: Any, rows: Any, wanted: Any, shapes: Any, found: Any) -> Int:
    """Find the windows of a batch.

    Args:
        data: uint8[...], the bytes, padded by 8 or more.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        wanted: bool[9], which kinds are looked for.
        shapes: of :func:`~dptext_spark.text.identifiers.normalize.shapes`.
        found: int64[n, 5], filled with (kind, row, start, end, reach). A window has `CONTEXT` characters behind what it is
            about; of digits, `reach` says where they end, of an address on the web, where it must have ended.

    Returns:
        How many there are; where that is more than n, only n of them were noted.
    """
    n = np.int64(0)
    for row in range(rows.shape[0] - 1):
        start, end = rows[row], rows[row + 1]
        i = start
        host_done, colons_done = start, start
        while i < end:
            hits = _anchors(load64(data, i))
            if hits == 0:
                i += 8
                continue
            i += trailing_zeros(hits) >> 3
            if i >= end:
                break
            first = data[i]
            step = np.int64(1)
            seen = np.int64(first)
            if first >= 128:
                code, length = decode(data, i, end)
                step = np.int64(length)
                if code < 0:
                    i += 1
                    continue
                seen = np.int64(shapes[code])
            if is_digit(seen):
                n, i = _digits(data, i, start, end, row, wanted, shapes, found, n)
                continue
            if seen == _AT:
                n = _at(data, i, step, start, end, row, wanted, shapes, found, n)
            elif seen == _DOT and wanted[HOST] and i >= host_done and data[i + step] > _DASH:
                last, first = seen_before(data, i, start, shapes), seen_after(data, i + step, end, shapes)
                # Between two letters that are not ASCII a dot ends a sentence: no domain looked for is like that on both sides.
                foreign = (last == FOREIGN or last == UNSPACED) and (first == FOREIGN or first == UNSPACED)
                stopped = ends_sentence(data, i, step, start, end, shapes)
                if in_name(last) and in_name(first) and not foreign and not stopped:
                    begin = backward(data, i, start, HOST, DOMAIN, IN_LINE, shapes)
                    host_done = forward(data, i, end, HOST, DOMAIN, IN_LINE, shapes)
                    if ends_in_label(data, begin, host_done, shapes):
                        after = seen_after(data, host_done, end, shapes)
                        goes_on = (
                            after == _SLASH or after == _COLON or after == _QUESTION or after == _NUMBER_SIGN
                        )
                        limit = end if goes_on else host_done
                        n = _put(found, n, HOST, row, begin, context_of(data, host_done, end, shapes), limit)
            elif seen == _COLON:
                following = seen_after(data, i + step, end, shapes)
                if following == _SLASH:
                    if wanted[SCHEME]:
                        begin = backward(data, i, start, SCHEME, USER, IN_LINE, shapes)
                        if begin < i:
                            head = forward(data, i, end, DAY, HEAD, IN_LINE, shapes)
                            n = _put(found, n, SCHEME, row, begin, head, end)
                elif wanted[COLONS] and i >= colons_done and (following == _COLON or is_word(following)):
                    begin = backward(data, i, start, COLONS, COLONS_SIZE, IN_LINE, shapes)
                    colons_done = forward(data, i, end, COLONS, COLONS_SIZE, IN_LINE, shapes)
                    before = seen_before(data, begin, start, shapes)
                    if colons(data, begin, colons_done) > 1 and not is_word(before):
                        last = context_of(data, colons_done, end, shapes)
                        n = _put(found, n, COLONS, row, begin, last, colons_done)
            elif seen == 91 and wanted[NAMED] and 65 <= data[i + 1] <= 90:
                stop = min(end, i + 40)
                n = _put(found, n, NAMED, row, i, stop, stop)
            i += step
    return n
