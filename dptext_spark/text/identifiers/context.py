"""How far a window reaches around an anchor: runs of the characters that one kind of identifier is made of.

Every run ends after a number of characters that its kind allows, whatever stands there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.identifiers.normalize import FOREIGN, LINE, NOTHING, STRANGE, UNSPACED, look, look_back

# NumPy's integers: a plain one is a type of its own to the compiler, which would compile a loop for each.
KINDS = tuple(np.arange(9))
ADDRESS, HANDLE, SCHEME, HOST, COLONS, NUMBER, ACCOUNT, DAY, NAMED = KINDS
IN_LINE, ONE_BREAK, TWO_BREAKS = np.arange(3)  # how often a run may go on in the next line
CONTEXT = 5  # characters behind a window, by which a pattern sees that nothing goes on
MOST_FIGURES = 48  # characters of a number in groups
_SPACE, _DOT, _DASH, _SLASH, _COLON, _OPEN, _CLOSE, _PLUS, _LOW = 32, 46, 45, 47, 58, 40, 41, 43, 95


@compiled
def is_digit(seen: Int) -> Any:
    """Whether a character looks like a decimal digit."""
    return 48 <= seen <= 57


@compiled
def is_letter(seen: Int) -> Any:
    """Whether it looks like a letter, ASCII or not, of a script that parts words by spaces."""
    return 97 <= (seen | 32) <= 122 or seen == FOREIGN


@compiled
def is_word(seen: Int) -> Any:
    """Whether it looks like a digit, or a letter of a script that parts words by spaces."""
    return is_letter(seen) or is_digit(seen)


@compiled
def in_name(seen: Int) -> Any:
    """Whether it looks like a letter of any script, or a digit."""
    return is_word(seen) or seen == UNSPACED


@compiled
def _full_stop(data: Any, i: Int, step: Int) -> Any:
    """Whether a full stop of Chinese and Japanese stands at i, wide or narrow: between plain letters it is a dot."""
    if step != 3:
        return False
    wide = data[i] == 0xE3 and data[i + 1] == 0x80 and data[i + 2] == 0x82
    return wide or (data[i] == 0xEF and data[i + 1] == 0xBD and data[i + 2] == 0xA1)


@compiled
def ends_sentence(data: Any, i: Int, step: Int, start: Int, end: Int, shapes: Any) -> Any:
    """Whether data[i:i + step] is a Chinese or Japanese full stop with a side that is not `is_word`: it ends a sentence."""
    if not _full_stop(data, i, step):
        return False
    before, after = seen_before(data, i, start, shapes), seen_after(data, i + step, end, shapes)
    return not is_word(before) or not is_word(after)


@compiled
def _in_local(seen: Int) -> Any:
    """Whether a character may stand before the @ of an address."""
    if in_name(seen) or seen == _DOT or seen == _DASH or seen == _LOW or seen == _PLUS:
        return True
    return (
        (33 <= seen <= 39 and seen != 34) or seen == 42 or seen == 47 or seen == 61 or seen == 63 or seen == 94 or seen == 96
        or 123 <= seen <= 126
    )  # fmt: skip


@compiled
def _in_host(seen: Int) -> Any:
    return in_name(seen) or seen == _DOT or seen == _DASH or seen == _LOW


@compiled
def seen_before(data: Any, i: Int, start: Int, shapes: Any) -> Int:
    """Return the character that is seen before i, a space where there is none."""
    while i > start:
        seen, length = look_back(data, i, start, shapes)
        if seen != NOTHING:
            return seen
        i -= length
    return np.int64(_SPACE)


@compiled
def seen_after(data: Any, i: Int, end: Int, shapes: Any) -> Int:
    """Return the character that is seen from i on, a space where there is none."""
    while i < end:
        seen, length = look(data, i, end, shapes)
        if seen != NOTHING:
            return seen
        i += length
    return np.int64(_SPACE)


@compiled
def context_of(data: Any, i: Int, end: Int, shapes: Any) -> Int:
    """Return where the context of a window that ends at i ends itself: before a letter that is no part of a word beside it."""
    n = 0
    while i < end and n < CONTEXT:
        seen, length = look(data, i, end, shapes)
        if seen == UNSPACED:
            break
        n += seen != NOTHING
        i += length
    return i


@compiled
def forward(data: Any, i: Int, end: Int, kind: Int, most: Int, lines: Int, shapes: Any) -> Int:
    """Return where a run of characters that fit a kind of window ends; `lines`: how often it may go on in the next line.

    A letter of `UNSPACED` right behind one of another script, or a digit, ends a name, and a host that has a dot already.
    """
    begin, stop = i, i
    broken = False  # after a line break, only more of the same counts
    plain, whole = False, kind == HANDLE
    n = 0
    while i < end and n < most:
        seen, length = look(data, i, end, shapes)
        if seen == NOTHING:
            i += length
            if not broken:
                stop = i
            continue
        if kind == COLONS:
            fits = 48 <= seen <= 58 or 97 <= (seen | 32) <= 102 or seen == _DOT
        elif kind == ACCOUNT:
            fits = is_letter(seen) or is_digit(seen) or seen == _SPACE or seen == _DASH
        elif kind == DAY:
            fits = seen != LINE and seen != STRANGE
        else:
            fits = _in_host(seen) and not (seen == UNSPACED and plain and whole)
            if seen == _DOT:
                fits = i == begin or not ends_sentence(data, i, length, begin, end, shapes)
                whole = True
            plain = is_word(seen)
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
def backward(data: Any, i: Int, start: Int, kind: Int, most: Int, lines: Int, shapes: Any) -> Int:
    """Return where a run of characters that fit a kind of window, and ends at i, begins; a line may break at i, not before.

    Before an @ a letter of `UNSPACED` ends it where the nearest letter is of another script, in a host right before such a one.
    """
    stop, first = i, i
    plain, native = False, False
    broken, begun = False, False
    n = 0
    while i > start and n < most:
        seen, length = look_back(data, i, start, shapes)
        if seen == NOTHING:
            i -= length
            continue
        if kind == ADDRESS:
            fits = _in_local(seen) and not (seen == UNSPACED and plain)
            native = native or (seen == UNSPACED and not plain)
            plain = not native and (plain or is_word(seen))
        elif kind == COLONS:
            fits = 48 <= seen <= 58 or 97 <= (seen | 32) <= 102 or seen == _DOT
        elif kind == SCHEME:
            fits = (
                97 <= (seen | 32) <= 122 or is_digit(seen) or seen == _PLUS or seen == _DASH or seen == _DOT
            )
        elif kind == DAY:
            fits = is_letter(seen) or seen == _SPACE or seen == _DOT
        else:
            fits = _in_host(seen) and not (seen == UNSPACED and plain)
            plain = is_word(seen)
        if seen == _DOT and fits and kind != COLONS:
            fits = not ends_sentence(data, i - length, length, start, stop, shapes)
        if fits:
            broken, begun = False, True
        elif not begun and lines > 0 and (seen == LINE or (seen == _SPACE and n == 0)):
            broken, lines = True, lines - (seen == LINE)
        elif not broken or (seen != _SPACE and seen != LINE):
            break
        i -= length
        n += 1
        if not broken:
            first = i
    return first


@compiled
def reach_of(data: Any, i: Int, end: Int, shapes: Any) -> Int:
    """Return where an address that begins at i ends: at a space, a quote or a bracket <>, without final punctuation.

    A letter of `UNSPACED` ends it right behind one of another script, or a digit; behind a slash or a dot it is a part of it.
    """
    first = i
    plain = False
    opened = np.int64(0)  # brackets that are open
    while i < end:
        seen, length = look(data, i, end, shapes)
        if seen == _SPACE or seen == LINE or seen == STRANGE or seen == 34 or seen == 60 or seen == 62:
            break
        if (seen == UNSPACED and plain) or (
            seen == _DOT and ends_sentence(data, i, length, first, end, shapes)
        ):
            break
        wide = length > 1 and (
            seen == 44 or seen == _OPEN or seen == _CLOSE
        )  # as between sentences of such scripts
        if wide and not is_word(seen_after(data, i + length, end, shapes)):
            break
        plain = is_word(seen) or (plain and seen == NOTHING)
        opened += np.int64(seen == _OPEN) - np.int64(seen == _CLOSE)
        i += length
    while i > first:
        seen, length = look_back(data, i, first, shapes)
        closing = seen == _CLOSE and opened < 0
        final = (
            seen == NOTHING
            or seen == 33
            or seen == 39
            or seen == 42
            or seen == 44
            or seen == _DOT
            or seen == _COLON
        )
        if not (closing or final or seen == 59 or seen == 63 or seen == 93 or seen == 125):
            break
        opened += closing
        i -= length
    return i


@compiled
def reaches(data: Any, starts: Any, ends: Any, limits: Any, order: Any, shapes: Any) -> Any:
    """Return where addresses on the web end: int64[n].

    One that begins within another is a part of it, and is not followed again: else a chain of hosts took time in the square of
    its length.

    Args:
        data: uint8[...].
        starts: int64[n], where each begins.
        ends: int64[n], where what was recognised of it ends.
        limits: int64[n], where it must have ended.
        order: int64[n], the addresses by where they begin.
        shapes: of :func:`~dptext_spark.text.identifiers.normalize.shapes`.
    """
    out = ends.copy()
    done = np.int64(-1)
    for k in order:
        if starts[k] >= done:
            out[k] = reach_of(data, starts[k], limits[k], shapes)
            done = out[k]
    return out


@compiled
def figures(data: Any, i: Int, end: Int, shapes: Any) -> tuple[Int, Int, Int, Int, Int]:
    """Follow the digits at i, and those behind single separators: (end of the first run, of all, digits, first, dots)."""
    run, stop, digits, first, dots, gap, n = np.int64(-1), i, 0, 0, 0, 0, 0
    while i < end:
        seen, length = look(data, i, end, shapes)
        if is_digit(seen):
            digits += 1
            gap = 0
            if n < MOST_FIGURES:
                stop = i + length
        elif seen != NOTHING:
            if run < 0:
                run, first = i, digits
            # A line break alone is one separator of any; a dash between spaces is three.
            if not (
                seen == _SPACE or seen == LINE or _DASH <= seen <= _SLASH or seen == _OPEN or seen == _CLOSE
            ):
                break
            gap += 1
            dots += seen == _DOT
            if gap > 3:
                break
        if run >= 0 and n >= MOST_FIGURES:
            break
        i += length
        n += 1
    return (i if run < 0 else run), stop, digits, (digits if run < 0 else first), dots


@compiled
def colons(data: Any, i: Int, end: Int) -> Int:
    """Return how many plain colons stand in data[i:end]; of others no address is made."""
    n = 0
    while i < end:
        n += data[i] == _COLON
        i += 1
    return n


@compiled
def ends_in_label(data: Any, i: Int, end: Int, shapes: Any) -> Any:
    """Whether a host data[i:end] ends in a label of two letters or more, as a top-level domain does."""
    letters = 0
    while end > i:
        seen, length = look_back(data, end, i, shapes)
        if is_letter(seen) or seen == UNSPACED or (letters > 0 and (seen == _DASH or is_digit(seen))):
            letters += 1
        elif seen == _DOT and letters > 0:
            break
        elif seen != NOTHING and seen != _DOT:
            return False
        end -= length
    return letters >= 2
