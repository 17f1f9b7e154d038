"""Where an identifier may stand: a pass over the bytes of a batch that stops at few characters, and looks around there.

An @, a colon, a dot between letters, a digit or a bracket is an *anchor*; around it lies a *window*, which the patterns of
:mod:`~dptext_spark.text.patterns` decide about. Windows are bounded, or end where those of the same kind begin, so that any
text takes time in proportion to its length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.compiled import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.lexicon.characters import DIGIT, OTHER, PASS, cell, decode
from dptext_spark.text.skeleton import FOREIGN, LINE, NOTHING, STRANGE, look, look_back

ADDRESS, HANDLE, SCHEME, HOST, COLONS, NUMBER, ACCOUNT, DAY, NAMED = KINDS = range(9)
# Columns of a candidate.
KIND, ROW, START, END, REACH = range(5)
CONTEXT = 2  # characters behind a window, by which a pattern sees that nothing goes on
LOCAL, DOMAIN, USER, HEAD, FIGURES, ACCOUNT_SIZE, ADDRESS_SIZE, BEFORE_DAY, NEAR_DAY = 80, 260, 64, 80, 48, 72, 48, 16, 56
_SPACE, _DOT, _DASH, _SLASH, _COLON, _AT, _OPEN, _CLOSE, _PLUS, _LOW = 32, 46, 45, 47, 58, 64, 40, 41, 43, 95
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
def _is_digit(seen: Int) -> Any:
    return 48 <= seen <= 57


@compiled
def _is_letter(seen: Int) -> Any:
    return 97 <= (seen | 32) <= 122 or seen == FOREIGN


@compiled
def _is_word(seen: Int) -> Any:
    return _is_letter(seen) or _is_digit(seen)


@compiled
def _in_local(seen: Int) -> Any:
    """Whether a character may stand before the @ of an address."""
    if _is_letter(seen) or _is_digit(seen) or seen == _DOT or seen == _DASH or seen == _LOW or seen == _PLUS:
        return True
    return (
        33 <= seen <= 39 and seen != 34 or seen == 42 or seen == 47 or seen == 61 or seen == 63 or seen == 94 or seen == 96
        or 123 <= seen <= 126
    )  # fmt: skip


@compiled
def _in_host(seen: Int) -> Any:
    return _is_letter(seen) or _is_digit(seen) or seen == _DOT or seen == _DASH or seen == _LOW


@compiled
def _before(data: Any, i: Int, start: Int, tables: Any) -> Int:
    """Return the character that is seen before i, a space where there is none."""
    while i > start:
        seen, length = look_back(data, i, start, tables)
        if seen != NOTHING:
            return seen
        i -= length
    return np.int64(_SPACE)


@compiled
def _after(data: Any, i: Int, end: Int, tables: Any) -> Int:
    """Return the character that is seen from i on, a space where there is none."""
    while i < end:
        seen, length = look(data, i, end, tables)
        if seen != NOTHING:
            return seen
        i += length
    return np.int64(_SPACE)


@compiled
def _context(data: Any, i: Int, end: Int, tables: Any) -> Int:
    """Return where the context of a window that ends at i ends itself."""
    n = 0
    while i < end and n < CONTEXT:
        seen, length = look(data, i, end, tables)
        n += seen != NOTHING
        i += length
    return i


@compiled
def _forward(data: Any, i: Int, end: Int, kind: Int, most: Int, lines: Int, tables: Any) -> Int:
    """Return where a run of characters that fit a kind of window ends; `lines`: how often it may go on in the next line."""
    stop = i
    broken = False  # after a line break, only more of the same counts
    n = 0
    while i < end and n < most:
        seen, length = look(data, i, end, tables)
        if seen == NOTHING:
            i += length
            if not broken:
                stop = i
            continue
        if kind == COLONS:
            fits = 48 <= seen <= 58 or 97 <= (seen | 32) <= 102 or seen == _DOT
        elif kind == ACCOUNT:
            fits = _is_letter(seen) or _is_digit(seen) or seen == _SPACE or seen == _DASH
        elif kind == DAY:
            fits = seen != LINE and seen != STRANGE
        else:
            fits = _in_host(seen)
        if fits:
            broken = False
        elif lines > 0 and seen == LINE:
            broken, lines = True, lines - 1
        elif not broken or (seen != _SPACE and seen != LINE):
            break
        i += length
        n += 1
        if not broken:
            stop = i
    return stop


@compiled
def _backward(data: Any, i: Int, start: Int, kind: Int, most: Int, lines: Int, tables: Any) -> Int:
    """Return where a run of characters that fit a kind of window, and ends at i, begins."""
    first = i
    broken = False
    n = 0
    while i > start and n < most:
        seen, length = look_back(data, i, start, tables)
        if seen == NOTHING:
            i -= length
            continue
        if kind == ADDRESS:
            fits = _in_local(seen)
        elif kind == COLONS:
            fits = 48 <= seen <= 58 or 97 <= (seen | 32) <= 102 or seen == _DOT
        elif kind == SCHEME:
            fits = 97 <= (seen | 32) <= 122 or _is_digit(seen) or seen == _PLUS or seen == _DASH or seen == _DOT
        elif kind == DAY:
            fits = _is_letter(seen) or seen == _SPACE or seen == _DOT
        else:
            fits = _in_host(seen)
        if fits:
            broken = False
        elif lines > 0 and (seen == LINE or (seen == _SPACE and n == 0)):
            broken, lines = True, lines - (seen == LINE)
        elif not broken or (seen != _SPACE and seen != LINE):
            break
        i -= length
        n += 1
        if not broken:
            first = i
    return first


@compiled
def _reach(data: Any, i: Int, end: Int, tables: Any) -> Int:
    """Return where an address that begins before i ends: at a space, a quote or a bracket <>, without final punctuation."""
    first = i
    opened = 0
    while i < end:
        seen, length = look(data, i, end, tables)
        if seen == _SPACE or seen == LINE or seen == STRANGE or seen == 34 or seen == 60 or seen == 62:
            break
        opened += seen == _OPEN
        i += length
    while i > first:
        seen, length = look_back(data, i, first, tables)
        closing = seen == _CLOSE and opened == 0
        final = seen == NOTHING or seen == 33 or seen == 39 or seen == 42 or seen == 44 or seen == _DOT or seen == 58
        if not (closing or final or seen == 59 or seen == 63 or seen == 93 or seen == 125):
            break
        i -= length
    return i


@compiled
def _figures(data: Any, i: Int, end: Int, tables: Any) -> tuple[Int, Int, Int, Int]:
    """Follow the digits at i, and those behind single separators: (end of the first run, of all, digits, dots)."""
    run, stop, digits, dots, gap, n = np.int64(-1), i, 0, 0, 0, 0
    while i < end:
        seen, length = look(data, i, end, tables)
        if _is_digit(seen):
            digits += 1
            gap = 0
            if n < FIGURES:
                stop = i + length
        elif seen != NOTHING:
            if run < 0:
                run = i
            # A line break alone is one separator of any; a dash between spaces is three.
            if not (seen == _SPACE or seen == LINE or _DASH <= seen <= _SLASH or seen == _OPEN or seen == _CLOSE):
                break
            gap += 1
            dots += seen == _DOT
            if gap > 3:
                break
        if run >= 0 and n >= FIGURES:
            break
        i += length
        n += 1
    return (i if run < 0 else run), stop, digits, dots


@compiled
def _colons(data: Any, i: Int, end: Int) -> Int:
    """Return how many plain colons stand in data[i:end]; of others no address is made."""
    n = 0
    while i < end:
        n += data[i] == _COLON
        i += 1
    return n


@compiled
def _ends_in_label(data: Any, i: Int, end: Int, tables: Any) -> Any:
    """Whether a host data[i:end] ends in a label of two letters or more, as a top-level domain does."""
    letters = 0
    while end > i:
        seen, length = look_back(data, end, i, tables)
        if _is_letter(seen) or (letters > 0 and (seen == _DASH or _is_digit(seen))):
            letters += 1
        elif seen == _DOT and letters > 0:
            break
        elif seen != NOTHING and seen != _DOT:
            return False
        end -= length
    return letters >= 2


@compiled
def _put(found: Any, n: Int, kind: Int, row: Int, start: Int, end: Int, reach: Int) -> Int:
    """Note a candidate where there is room; return how many there are."""
    if n < found.shape[0]:
        found[n, KIND], found[n, ROW], found[n, START], found[n, END], found[n, REACH] = kind, row, start, end, reach
    return n + 1


@compiled
def _at(data: Any, i: Int, step: Int, start: Int, end: Int, row: Int, wanted: Any, tables: Any, found: Any, n: Int) -> Int:
    """Look around an @ that stands at data[i:i + step]."""
    begin = _backward(data, i, start, ADDRESS, LOCAL, 1, tables)
    if begin < i and wanted[ADDRESS]:
        stop = _forward(data, i + step, end, HOST, DOMAIN, 2, tables)
        if stop > i + step:
            n = _put(found, n, ADDRESS, row, begin, _context(data, stop, end, tables), stop)
    before = _before(data, i, start, tables)
    if wanted[HANDLE] and not _is_word(before) and before != _DOT:
        stop = _forward(data, i + step, end, HOST, USER, 0, tables)
        if stop > i + step:
            n = _put(found, n, HANDLE, row, i, _context(data, stop, end, tables), stop)
    return n


@compiled
def _digits(
    data: Any, i: Int, start: Int, end: Int, row: Int, wanted: Any, tables: Any, found: Any, n: Int
) -> tuple[Int, Int]:
    """Look around a run of digits; return (number of candidates, end of the run)."""
    run, stop, digits, dots = _figures(data, i, end, tables)
    before = _before(data, i, start, tables)
    if wanted[DAY] and digits < 20:
        begin = _backward(data, i, start, DAY, BEFORE_DAY, 0, tables)
        last = _forward(data, i, end, DAY, NEAR_DAY, 0, tables)
        n = _put(found, n, DAY, row, begin, last, i)
    if _is_letter(before):
        if wanted[ACCOUNT]:
            begin, letters = i, 0
            while begin > start and letters < 3:
                seen, length = look_back(data, begin, start, tables)
                if not _is_letter(seen) and seen != NOTHING:
                    break
                letters += seen != NOTHING
                begin -= length
            if letters == 2 and not _is_word(_before(data, begin, start, tables)):
                last = _forward(data, begin, end, ACCOUNT, ACCOUNT_SIZE, 2, tables)
                n = _put(found, n, ACCOUNT, row, begin, _context(data, last, end, tables), last)
        return n, run
    if not wanted[NUMBER] or (digits < 7 and (dots < 3 or digits < 4)) or before == _LOW:
        return n, run
    begin = i
    if before == _DOT or before == 44:  # a decimal part, or a group of thousands
        at = i
        while at > start:
            seen, length = look_back(data, at, start, tables)
            at -= length
            if seen == before:
                break
        if _is_digit(_before(data, at, start, tables)):
            return n, run
    while begin > start and i - begin < 3:  # "+", "(", "(+"
        seen, length = look_back(data, begin, start, tables)
        if seen != _PLUS and seen != _OPEN and seen != NOTHING:
            break
        begin -= length
    return _put(found, n, NUMBER, row, begin, _context(data, stop, end, tables), run), run


@compiled
def candidates(data: Any, rows: Any, wanted: Any, tables: Any, found: Any) -> Int:
    """Find the windows of a batch.

    Args:
        data: uint8[...], the bytes, padded by 8 or more.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        wanted: bool[9], which kinds are looked for.
        tables: of :func:`~dptext_spark.text.skeleton.shapes`.
        found: int64[n, 5], filled with (kind, row, start, end, reach). A window has `CONTEXT` characters behind what it is
            about; of an address on the web, and of digits, `reach` says where it ends.

    Returns:
        How many there are; where that is more than n, only n of them were noted.
    """
    n = np.int64(0)
    classes, stage = tables[2], tables[1]
    for row in range(rows.shape[0] - 1):
        start, end = rows[row], rows[row + 1]
        i = start
        host_done, colons_done, reach_done = start, start, start
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
                kind = classes[cell(code, stage)]
                if kind != DIGIT and kind != PASS and kind != OTHER:
                    i += step
                    continue
                seen, step = look(data, i, end, tables)
            if _is_digit(seen):
                n, i = _digits(data, i, start, end, row, wanted, tables, found, n)
                continue
            if seen == _AT:
                n = _at(data, i, step, start, end, row, wanted, tables, found, n)
            elif seen == _DOT and wanted[HOST] and i >= host_done:
                if _is_word(_after(data, i + step, end, tables)) and _is_word(_before(data, i, start, tables)):
                    begin = _backward(data, i, start, HOST, DOMAIN, 0, tables)
                    host_done = _forward(data, i, end, HOST, DOMAIN, 0, tables)
                    if _ends_in_label(data, begin, host_done, tables):
                        after = _after(data, host_done, end, tables)
                        goes_on = after == _SLASH or after == _COLON or after == 63 or after == 35
                        reach = _reach(data, begin, end if goes_on else host_done, tables)
                        n = _put(found, n, HOST, row, begin, _context(data, host_done, end, tables), reach)
            elif seen == _COLON:
                following = _after(data, i + step, end, tables)
                if following == _SLASH:
                    if wanted[SCHEME] and i >= reach_done:
                        begin = _backward(data, i, start, SCHEME, USER, 0, tables)
                        if begin < i:
                            head = _forward(data, i, end, DAY, HEAD, 0, tables)
                            reach = _reach(data, i, end, tables)
                            reach_done = reach
                            n = _put(found, n, SCHEME, row, begin, head, reach)
                elif wanted[COLONS] and i >= colons_done and (following == _COLON or _is_word(following)):
                    begin = _backward(data, i, start, COLONS, ADDRESS_SIZE, 0, tables)
                    colons_done = _forward(data, i, end, COLONS, ADDRESS_SIZE, 0, tables)
                    if _colons(data, begin, colons_done) > 1 and not _is_word(_before(data, begin, start, tables)):
                        n = _put(found, n, COLONS, row, begin, _context(data, colons_done, end, tables), colons_done)
            elif seen == 91 and wanted[NAMED] and 65 <= data[i + 1] <= 90:
                stop = min(end, i + 40)
                n = _put(found, n, NAMED, row, i, stop, stop)
            i += step
    return n
