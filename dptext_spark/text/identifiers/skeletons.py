"""Map each character to its ASCII shape and bound the windows. So identifiers are found in any script or width.

The *skeleton* of a text has one ASCII byte for each visible character. A digit of any script is that digit. A full-width or
otherwise foreign @, dot, colon, slash, dash, plus or bracket is the plain one. A letter that is not ASCII is `FOREIGN`. It is
`UNSPACED` if its script has no spaces, or joins endings to foreign words as Korean does. Invisible characters (zero-width
joiners and spaces, direction marks, soft hyphens, variation selectors) and combining marks have no byte. So nobody hides an
address by putting one inside.

A window reaches around an anchor: it has runs of the characters that one kind of identifier is made of. Every run ends after a
number of characters that its kind allows, whatever the text there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dptext_spark.arrays import U8
from dptext_spark.lexicon.characters import BLOCK, DIGIT, EXTEND, HYPHEN, LETTER, MARK, SPACE, decode, tables
from dptext_spark.runtime.jit import Int, compiled

# Not seen; a letter that is not ASCII; anything else; a letter that may touch a word without being part of the word.
NOTHING, FOREIGN, STRANGE, UNSPACED = 0, 1, 2, 3
LINE = 10  # every kind of line break
# Blocks of such scripts: Thai and Lao; Tibetan and Myanmar; Hangul's parts; Khmer; Tai Le and New Tai Lue; Tai Tham; Chinese,
# Japanese and Yi; more of Hangul, Javanese, Myanmar and Tai Viet; Hangul; compatibility; half-width kana and Hangul; Tangut and
# others; historic kana; the planes of ideographs.
UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF), (0x0F00, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0x2E80, 0xA4CF),
    (0xA960, 0xA9FF), (0xAA60, 0xAADF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x16FE0, 0x18DFF),
    (0x1AFF0, 0x1B2FF), (0x20000, 0x3FFFF),
)  # fmt: skip
_FIRST, _LAST = np.array(UNSPACED_BLOCKS, np.int64).T.copy()
# Characters of other blocks that look like ASCII ones, and controls that are not seen though no class says so.
_ALIKE = {
    "@": "\uff20\ufe6b",
    ".": "\uff0e\u3002\u2024\ufe52\uff61",
    ":": "\uff1a\ufe55\ua789\u2236\ufe13\u02d0",
    "/": "\uff0f\u2044\u2215\u29f8",
    "-": "\uff0d\u2012\u2013\u2014\u2015\u2212\ufe63\ufe58\u2043",
    "+": "\uff0b\ufe62\u2795",
    "(": "\uff08\ufe59",
    ")": "\uff09\ufe5a",
    "_": "\uff3f\ufe4d\ufe4e\ufe4f",
    ",": "\uff0c\ufe50",
    "'": "\u2018\u2019\uff07",
    "\n": "\u2028\u2029\x85",
    "\0": "\u180e\u2061\u2062\u2063\u2064\u206a\u206b\u206c\u206d\u206e\u206f",
}


@cache
def shapes() -> U8:
    """Return uint8[1114112], what each code point looks like (made once a process)."""
    chars = tables()
    code = np.arange(0x110000)
    kind = chars.classes[chars.stage[code >> 7].astype(np.int64) * BLOCK + (code & (BLOCK - 1))]
    table = np.full(len(code), STRANGE, np.uint8)
    for kinds, shape in (((LETTER,), FOREIGN), ((SPACE,), 32), ((MARK, EXTEND), NOTHING), ((HYPHEN,), 45)):
        table[np.isin(kind, kinds)] = shape
    for first, last in UNSPACED_BLOCKS:
        block = table[first : last + 1]
        block[block == FOREIGN] = UNSPACED
    digits = np.flatnonzero(kind == DIGIT)
    table[digits] = 48 + digits - chars.zeros[np.searchsorted(chars.zeros, digits, side="right") - 1]
    for wide in (0xFF21, 0xFF41):
        table[wide : wide + 26] = np.arange(26) + wide - 0xFEE0
    table[32:127] = code[32:127]
    table[:32], table[127] = STRANGE, STRANGE
    table[9], table[10:14] = 32, LINE
    for like, codes in _ALIKE.items():
        table[[ord(char) for char in codes]] = ord(like)
    return table


@compiled
def is_unspaced(code: Int) -> Any:
    """Check whether a letter's script has no spaces, or joins endings to words."""
    for k in range(_FIRST.shape[0]):
        if code <= _LAST[k]:
            return code >= _FIRST[k]
    return False


@compiled
def has_unspaced(data: Any, i: Int, end: Int) -> Any:
    """Check whether data[i:end], valid UTF-8, has a letter of such a script."""
    while i < end:
        code, length = decode(data, i, end)
        if code >= 128 and is_unspaced(code):
            return True
        i += length
    return False


@compiled
def look(data: Any, i: Int, end: Int, shapes: Any) -> tuple[Int, Int]:
    """Return (skeleton, bytes) of the character at i < end; bytes that are no UTF-8 look strange."""
    if data[i] < 128:
        return np.int64(shapes[data[i]]), np.int64(1)
    code, length = decode(data, i, end)
    if code < 0:
        return np.int64(STRANGE), np.int64(1)
    return np.int64(shapes[code]), np.int64(length)


@compiled
def look_back(data: Any, i: Int, start: Int, shapes: Any) -> tuple[Int, Int]:
    """Return (skeleton, bytes) of the character that ends at i > start."""
    at = i - 1
    if data[at] < 128:
        return np.int64(shapes[data[at]]), np.int64(1)
    while at > start and i - at < 4 and data[at] & 0xC0 == 0x80:
        at -= 1
    shape, length = look(data, at, i, shapes)
    # Stray bytes are looked at one by one.
    return (shape, length) if at + length == i else (np.int64(STRANGE), np.int64(1))


@compiled
def skeletons(data: Any, starts: Any, ends: Any, shapes: Any, out: Any, origin: Any, bounds: Any) -> None:
    """Write the skeletons of stretches data[starts[i]:ends[i]].

    Args:
        data: uint8[...].
        starts: int64[n].
        ends: int64[n].
        shapes: of :func:`shapes`.
        out: uint8[...], room for as many bytes as the stretches have.
        origin: int64[...], room for n more: where each character of the skeleton begins in `data`, and behind each
            skeleton where its stretch ends.
        bounds: int64[n + 1], skeleton i is out[bounds[i]:bounds[i + 1]], and its origins begin at bounds[i] + i.
    """
    n = np.int64(0)
    bounds[0] = 0
    for k in range(starts.shape[0]):
        i, end = starts[k], ends[k]
        while i < end:
            shape, length = look(data, i, end, shapes)
            if shape != NOTHING:
                out[n] = shape
                origin[n + k] = i
                n += 1
            i += length
        origin[n + k] = end
        bounds[k + 1] = n


# NumPy's integers: a plain one is another type to the compiler, and a loop is compiled for each type.
KINDS = tuple(np.arange(9))
ADDRESS, HANDLE, SCHEME, HOST, COLONS, NUMBER, ACCOUNT, DAY, NAMED = KINDS
IN_LINE, ONE_BREAK, TWO_BREAKS = np.arange(3)  # how often a run may go on in the next line
CONTEXT = 5  # characters behind a window, by which a pattern sees that nothing goes on
MOST_FIGURES = 48  # characters of a number in groups
_SPACE, _DOT, _DASH, _SLASH, _COLON, _OPEN, _CLOSE, _PLUS, _LOW = 32, 46, 45, 47, 58, 40, 41, 43, 95


@compiled
def is_digit(seen: Int) -> Any:
    """Check whether a character looks like a decimal digit."""
    return 48 <= seen <= 57


@compiled
def is_letter(seen: Int) -> Any:
    """Check whether it looks like a letter, ASCII or not, of a script that parts words by spaces."""
    return 97 <= (seen | 32) <= 122 or seen == FOREIGN


@compiled
def is_word(seen: Int) -> Any:
    """Check whether it looks like a digit, or a letter of a script that parts words by spaces."""
    return is_letter(seen) or is_digit(seen)


@compiled
def in_name(seen: Int) -> Any:
    """Check whether it looks like a letter of any script, or a digit."""
    return is_word(seen) or seen == UNSPACED


@compiled
def _full_stop(data: Any, i: Int, step: Int) -> Any:
    """Check for a Chinese or Japanese full stop at i, wide or narrow: between plain letters it is a dot."""
    if step != 3:
        return False
    wide = data[i] == 0xE3 and data[i + 1] == 0x80 and data[i + 2] == 0x82
    return wide or (data[i] == 0xEF and data[i + 1] == 0xBD and data[i + 2] == 0xA1)


@compiled
def ends_sentence(data: Any, i: Int, step: Int, start: Int, end: Int, shapes: Any) -> Any:
    """Check that data[i:i + step] is a Chinese or Japanese full stop that ends a sentence: a side is not `is_word`."""
    if not _full_stop(data, i, step):
        return False
    before, after = seen_before(data, i, start, shapes), seen_after(data, i + step, end, shapes)
    return not is_word(before) or not is_word(after)


@compiled
def _in_local(seen: Int) -> Any:
    """Check whether a character may come before the @ of an address."""
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
        shape, length = look_back(data, i, start, shapes)
        if shape != NOTHING:
            return shape
        i -= length
    return np.int64(_SPACE)


@compiled
def seen_after(data: Any, i: Int, end: Int, shapes: Any) -> Int:
    """Return the character that is seen from i on, a space where there is none."""
    while i < end:
        shape, length = look(data, i, end, shapes)
        if shape != NOTHING:
            return shape
        i += length
    return np.int64(_SPACE)


@compiled
def context_of(data: Any, i: Int, end: Int, shapes: Any) -> Int:
    """Find the end of the context behind a window that ends at i: before a letter that continues no word beside it."""
    n = 0
    while i < end and n < CONTEXT:
        shape, length = look(data, i, end, shapes)
        if shape == UNSPACED:
            break
        n += shape != NOTHING
        i += length
    return i


@compiled
def forward(data: Any, i: Int, end: Int, kind: Int, most: Int, lines: Int, shapes: Any) -> Int:
    """Find the end of a run of characters that fit a kind of window; `lines`: how often it may go on in the next line.

    A letter of `UNSPACED` right behind a digit, or a letter of another script, ends a name. It also ends a host with a dot.
    """
    begin, stop = i, i
    broken = False  # after a line break, only more of the same counts
    plain, whole = False, kind == HANDLE
    n = 0
    while i < end and n < most:
        shape, length = look(data, i, end, shapes)
        if shape == NOTHING:
            i += length
            if not broken:
                stop = i
            continue
        if kind == COLONS:
            fits = 48 <= shape <= 58 or 97 <= (shape | 32) <= 102 or shape == _DOT
        elif kind == ACCOUNT:
            fits = is_letter(shape) or is_digit(shape) or shape == _SPACE or shape == _DASH
        elif kind == DAY:
            fits = shape != LINE and shape != STRANGE
        else:
            fits = _in_host(shape) and not (shape == UNSPACED and plain and whole)
            if shape == _DOT:
                fits = i == begin or not ends_sentence(data, i, length, begin, end, shapes)
                whole = True
            plain = is_word(shape)
        if fits:
            broken = False
        elif lines > 0 and shape == LINE:
            broken, lines = True, lines - 1
        elif not broken or (shape != _SPACE and shape != LINE):
            break
        i += length
        n += 1
        if not broken:
            stop = i
    return stop


@compiled
def backward(data: Any, i: Int, start: Int, kind: Int, most: Int, lines: Int, shapes: Any) -> Int:
    """Find the beginning of a run that ends at i and fits a kind of window. A line may break at i, not before.

    Before an @ a letter of `UNSPACED` ends the run if the nearest letter is of another script. In a host that letter must be
    adjacent.
    """
    stop, first = i, i
    plain, native = False, False
    broken, begun = False, False
    n = 0
    while i > start and n < most:
        shape, length = look_back(data, i, start, shapes)
        if shape == NOTHING:
            i -= length
            continue
        if kind == ADDRESS:
            fits = _in_local(shape) and not (shape == UNSPACED and plain)
            native = native or (shape == UNSPACED and not plain)
            plain = not native and (plain or is_word(shape))
        elif kind == COLONS:
            fits = 48 <= shape <= 58 or 97 <= (shape | 32) <= 102 or shape == _DOT
        elif kind == SCHEME:
            fits = (
                97 <= (shape | 32) <= 122
                or is_digit(shape)
                or shape == _PLUS
                or shape == _DASH
                or shape == _DOT
            )
        elif kind == DAY:
            fits = is_letter(shape) or shape == _SPACE or shape == _DOT
        else:
            fits = _in_host(shape) and not (shape == UNSPACED and plain)
            plain = is_word(shape)
        if shape == _DOT and fits and kind != COLONS:
            fits = not ends_sentence(data, i - length, length, start, stop, shapes)
        if fits:
            broken, begun = False, True
        elif not begun and lines > 0 and (shape == LINE or (shape == _SPACE and n == 0)):
            broken, lines = True, lines - (shape == LINE)
        elif not broken or (shape != _SPACE and shape != LINE):
            break
        i -= length
        n += 1
        if not broken:
            first = i
    return first


@compiled
def reach_of(data: Any, i: Int, end: Int, shapes: Any) -> Int:
    """Find the end of an address that begins at i: a space, a quote or a bracket <>, without final punctuation.

    A letter of `UNSPACED` right behind a digit, or a letter of another script, ends the address. Behind a slash or dot it
    continues the address.
    """
    first = i
    plain = False
    opened = np.int64(0)  # brackets that are open
    while i < end:
        shape, length = look(data, i, end, shapes)
        if shape == _SPACE or shape == LINE or shape == STRANGE or shape == 34 or shape == 60 or shape == 62:
            break
        if (shape == UNSPACED and plain) or (
            shape == _DOT and ends_sentence(data, i, length, first, end, shapes)
        ):
            break
        # As between sentences of such scripts.
        wide = length > 1 and (shape == 44 or shape == _OPEN or shape == _CLOSE)
        if wide and not is_word(seen_after(data, i + length, end, shapes)):
            break
        plain = is_word(shape) or (plain and shape == NOTHING)
        opened += np.int64(shape == _OPEN) - np.int64(shape == _CLOSE)
        i += length
    while i > first:
        shape, length = look_back(data, i, first, shapes)
        closing = shape == _CLOSE and opened < 0
        final = shape == NOTHING or shape == 33 or shape == 39 or shape == 42 or shape == 44 or shape == _DOT
        final = final or shape == _COLON or shape == 59 or shape == 63 or shape == 93 or shape == 125
        if not (closing or final):
            break
        opened += closing
        i -= length
    return i


@compiled
def reaches(data: Any, starts: Any, ends: Any, limits: Any, order: Any, shapes: Any) -> Any:
    """Return the ends of addresses on the web: int64[n].

    An address that begins within another is not followed again: a chain of hosts would take time in the square of its length.

    Args:
        data: uint8[...].
        starts: int64[n], where each begins.
        ends: int64[n], where its recognised part ends.
        limits: int64[n], where it must have ended.
        order: int64[n], the addresses by where they begin.
        shapes: of :func:`~dptext_spark.text.identifiers.skeletons.shapes`.
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
        shape, length = look(data, i, end, shapes)
        if is_digit(shape):
            digits += 1
            gap = 0
            if n < MOST_FIGURES:
                stop = i + length
        elif shape != NOTHING:
            if run < 0:
                run, first = i, digits
            # A line break alone is one separator of any; a dash between spaces is three.
            if not (
                shape == _SPACE
                or shape == LINE
                or _DASH <= shape <= _SLASH
                or shape == _OPEN
                or shape == _CLOSE
            ):
                break
            gap += 1
            dots += shape == _DOT
            if gap > 3:
                break
        if run >= 0 and n >= MOST_FIGURES:
            break
        i += length
        n += 1
    return (i if run < 0 else run), stop, digits, (digits if run < 0 else first), dots


@compiled
def colons(data: Any, i: Int, end: Int) -> Int:
    """Count the plain colons in data[i:end]; of others no address is made."""
    n = 0
    while i < end:
        n += data[i] == _COLON
        i += 1
    return n


@compiled
def ends_in_label(data: Any, i: Int, end: Int, shapes: Any) -> Any:
    """Check that a host data[i:end] ends in a label of at least two letters, as a top-level domain does."""
    letters = 0
    while end > i:
        shape, length = look_back(data, end, i, shapes)
        if is_letter(shape) or shape == UNSPACED or (letters > 0 and (shape == _DASH or is_digit(shape))):
            letters += 1
        elif shape == _DOT and letters > 0:
            break
        elif shape != NOTHING and shape != _DOT:
            return False
        end -= length
    return letters >= 2
