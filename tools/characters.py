"""Make `characters.npz` anew from the Unicode database of the running Python: `make characters`.

The file is packaged so that a driver and workers on different Python versions cut words at the same places. It holds
ranges of code points of one class, and the simple (one to one) case mappings.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import numpy as np

from dptext_spark.lexicon import characters as ch

CODE_POINTS = 0x110000
PACKAGED = Path(__file__).parents[1] / "dptext_spark" / "lexicon" / "characters.npz"
# Symbols that spell: a syllable and a turned letter, trigrams and digrams, Braille, CJK radicals, descriptions of ideographs,
# strokes, hexagrams, Yi radicals, Arabic ligatures of words, tetragrams, SignWriting, regional indicators and the other enclosed
# letters.
SPELLING_SYMBOLS = (
    (0x166D, 0x166D), (0x2129, 0x2129), (0x2630, 0x2637), (0x268A, 0x268F), (0x2800, 0x28FF), (0x2E80, 0x2FDF),
    (0x2FF0, 0x2FFF), (0x31C0, 0x31EF), (0x4DC0, 0x4DFF), (0xA490, 0xA4CF), (0xFD40, 0xFD4F), (0xFDCF, 0xFDCF), (0xFDFD, 0xFDFF),
    (0x1D300, 0x1D35F), (0x1D800, 0x1DAAF), (0x1F100, 0x1F1FF),
)  # fmt: skip
# Joiners, direction marks, soft hyphen, byte order mark, variation selectors, keycap: they carry layout, not letters.
EXTENDERS = (
    0xAD, 0x61C, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0x20E3, 0xFEFF,
    *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xFE00, 0xFE10),
)  # fmt: skip


def character_class(code: int) -> int:
    """Return the class of one code point (the constants of :mod:`dptext_spark.lexicon.characters`)."""
    char = chr(code)
    category = unicodedata.category(char)
    if code in (0x27, 0x2019):
        return ch.APOSTROPHE
    if code in (0x2D, 0x2010, 0x2011):
        return ch.HYPHEN
    if code in EXTENDERS:
        return ch.EXTEND
    if category[0] == "Z" or code in (*range(9, 14), *range(0x1C, 0x20), 0x85):
        return ch.SPACE
    if category[0] == "L":
        return ch.LETTER
    if category[0] == "M":
        return ch.MARK
    if category == "Nd":
        return ch.DIGIT
    if category[0] == "P":
        return ch.PASS
    if category[0] == "S":
        spelt = any(unicodedata.category(c)[0] in "LN" for c in unicodedata.normalize("NFKD", char))
        if spelt or any(low <= code <= high for low, high in SPELLING_SYMBOLS):
            return ch.OTHER
        return ch.PASS
    return ch.OTHER


def build(target: Path) -> None:
    """Write the tables to `target` (.npz).

    They are `starts` uint32[r], `classes` uint8[r], `lower` and `upper` int32[2, n], `zeros` int32[z], `unicode_version`.
    """
    classes = np.array([character_class(code) for code in range(CODE_POINTS)], dtype=np.uint8)
    starts = np.flatnonzero(np.diff(classes, prepend=255)).astype(np.uint32)
    lower = [
        (c, 0x69 if c == 0x130 else ord(chr(c).lower()))
        for c in range(CODE_POINTS)
        if chr(c).lower() != chr(c)
    ]
    upper = [
        (c, ord(chr(c).upper()))
        for c in range(CODE_POINTS)
        if len(chr(c).upper()) == 1 and chr(c).upper() != chr(c)
    ]
    digits = [
        c
        for c in range(CODE_POINTS)
        if unicodedata.category(chr(c)) == "Nd" and unicodedata.digit(chr(c)) == 0
    ]
    np.savez_compressed(
        target,
        starts=starts,
        classes=classes[starts],
        lower=np.array(lower, dtype=np.int32).T,
        upper=np.array(upper, dtype=np.int32).T,
        zeros=np.array(digits, dtype=np.int32),
        unicode_version=np.array(unicodedata.unidata_version),
    )


if __name__ == "__main__":
    build(PACKAGED)
    sys.stdout.write(f"Unicode {unicodedata.unidata_version}\n")
