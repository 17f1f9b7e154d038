"""What each character looks like in ASCII: identifiers are found however they are written.

The *skeleton* of a text has one ASCII byte for each character that is seen: a digit of any script is that digit, a full-width
or otherwise foreign @, dot, colon, slash, dash, plus or bracket is the plain one. A letter that is not ASCII is `FOREIGN`, or
`UNSPACED` where its script is written without spaces, or joins endings to foreign words as Korean does. Characters that are
not seen (zero-width joiners and spaces, direction marks, soft hyphens, variation selectors) and combining marks have none, so
that nobody hides an address by putting one inside.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dptext_spark.arrays import U8
from dptext_spark.lexicon.characters import BLOCK, DIGIT, EXTEND, HYPHEN, LETTER, MARK, SPACE, decode, tables
from dptext_spark.runtime.jit import Int, compiled

# Not seen; a letter that is not ASCII; anything else; a letter that may stand beside a word without being a part of it.
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
    found = np.full(len(code), STRANGE, np.uint8)
    for kinds, seen in (((LETTER,), FOREIGN), ((SPACE,), 32), ((MARK, EXTEND), NOTHING), ((HYPHEN,), 45)):
        found[np.isin(kind, kinds)] = seen
    for first, last in UNSPACED_BLOCKS:
        block = found[first : last + 1]
        block[block == FOREIGN] = UNSPACED
    digits = np.flatnonzero(kind == DIGIT)
    found[digits] = 48 + digits - chars.zeros[np.searchsorted(chars.zeros, digits, side="right") - 1]
    for wide in (0xFF21, 0xFF41):
        found[wide : wide + 26] = np.arange(26) + wide - 0xFEE0
    found[32:127] = code[32:127]
    found[:32], found[127] = STRANGE, STRANGE
    found[9], found[10:14] = 32, LINE
    for like, codes in _ALIKE.items():
        found[[ord(char) for char in codes]] = ord(like)
    return found


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
    seen, length = look(data, at, i, shapes)
    # Stray bytes are looked at one by one.
    return (seen, length) if at + length == i else (np.int64(STRANGE), np.int64(1))


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
            seen, length = look(data, i, end, shapes)
            if seen != NOTHING:
                out[n] = seen
                origin[n + k] = i
                n += 1
            i += length
        origin[n + k] = end
        bounds[k + 1] = n
