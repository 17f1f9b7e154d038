"""Months by their names in other languages: each becomes one character of a skeleton, which the rule of written dates reads.

The names are those of Unicode's CLDR (cldr/NOTICE; `python -m tools.months` makes them anew). They are
found in either case, and with their accents or without (Greek has none in capitals). A name counts in a date only: beside a day
or a year.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import I64, U8
from dptext_spark.lexicon.characters import BLOCK, decode, tables
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.identifiers.context import is_letter, is_word, seen_before
from dptext_spark.text.identifiers.normalize import NOTHING, look
from dptext_spark.text.identifiers.types import LANGUAGES

NAME, SHORT = "name", "short"
# A month in a skeleton is MONTH plus these: its name is written out; it stands before the day in its language.
MONTH, WHOLE, FIRST = 4, 1, 2
LONGEST = 16  # letters of a name
_PLANE = 0x10000  # names have no letters beyond the first plane
# Letters that capitals do not tell apart: a dotless i, a sigma at the end of a word.
_ALIKE = {"\u0131": "i", "\u03c2": "\u03c3"}


class Months(NamedTuple):
    """The names of some languages' months, to be looked up.

    Attributes:
        fold: uint16[65536], what a letter is folded to: lower case, without accents.
        slots: int64[2 ** k], numbers of names by their hash; -1 for none.
        names: uint16[n, 16], the folded letters of each, filled with zeros.
        marks: uint8[n], what stands in a skeleton for each.
    """

    fold: npt.NDArray[np.uint16]
    slots: I64
    names: npt.NDArray[np.uint16]
    marks: U8


@cache
def packaged() -> dict[str, dict[str, int]]:
    """Return, for each language, its names in lower case with what stands in a skeleton for them."""
    found: dict[str, dict[str, int]] = {language: {} for language in LANGUAGES}
    text = files("dptext_spark.text.identifiers").joinpath("cldr/months.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        language, kind, order, *words = line.split()
        mark = MONTH + WHOLE * (kind == NAME) + FIRST * (order == "month")
        found[language] |= dict.fromkeys(words, mark)
    return found


@cache
def folds() -> npt.NDArray[np.uint16]:
    """Return uint16[65536], what each letter of the first plane is folded to.

    Lower case is that of the packaged tables; the decomposition of a letter never changes once Unicode has it.
    """
    chars, code = tables(), np.arange(_PLANE)
    lower = code + chars.lower[chars.stage[code >> 7].astype(np.int64) * BLOCK + (code & (BLOCK - 1))]
    lower[lower >= _PLANE] = 0
    # Letters before the punctuation, the extended Latin and Greek ones among them, and full-width ones.
    for at in [*range(0x80, 0x2000), *range(0xFF21, 0xFF5B)]:
        plain = unicodedata.normalize("NFKD" if at >= _PLANE - 0x100 else "NFD", chr(int(lower[at])))[0]
        lower[at] = ord(_ALIKE.get(plain, plain))
    return np.asarray(lower, np.uint16)


@cache
def months_of(languages: tuple[str, ...]) -> Months:
    """Return the months of some languages; a name that several have means what any of them does."""
    fold = folds()
    known: dict[tuple[int, ...], int] = {}
    for language in languages:
        for word, mark in packaged()[language].items():
            letters = unicodedata.normalize("NFC", word)
            form = tuple(int(fold[ord(one)]) for one in letters)
            known[form] = known.get(form, MONTH) | mark
    slots = np.full(1 << (4 * len(known)).bit_length(), -1, np.int64)
    names = np.zeros((len(known), LONGEST), np.uint16)
    for number, form in enumerate(known):
        names[number, : len(form)] = form
        at = _hash(names[number], len(form)) & (len(slots) - 1)
        while slots[at] >= 0:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = number
    return Months(fold, slots, names, np.array(list(known.values()), np.uint8))


@compiled
def _hash(form: Any, size: Int) -> Int:
    found = np.int64(0)
    for j in range(size):
        found = (found * 31 + np.int64(form[j])) & 0xFFFFFFFF
    return found ^ (found >> 15)


@compiled
def _mark(form: Any, size: Int, months: Any) -> Int:
    """Return what stands for the month form[:size]; 0 where it is none."""
    _, slots, names, marks = months
    if size == 0 or size > LONGEST:
        return np.int64(0)
    at = _hash(form, size) & (slots.shape[0] - 1)
    while slots[at] >= 0:
        number = slots[at]
        same = size == LONGEST or names[number, size] == 0
        for j in range(size):
            same = same and names[number, j] == form[j]
        if same:
            return np.int64(marks[number])
        at = (at + 1) & (slots.shape[0] - 1)
    return np.int64(0)


@compiled
def month_skeletons(
    data: Any, rows: Any, starts: Any, ends: Any, shapes: Any, months: Any, out: Any, origin: Any, bounds: Any
) -> None:
    """Write the skeletons of stretches, each name of a month as one character.

    Args:
        data: uint8[...].
        rows: int64[n], where the text of each begins.
        starts: int64[n].
        ends: int64[n].
        shapes: of :func:`~dptext_spark.text.identifiers.normalize.shapes`.
        months: of :func:`months_of`.
        out: uint8[...], filled as by :func:`~dptext_spark.text.identifiers.normalize.skeletons`.
        origin: int64[...], likewise.
        bounds: int64[n + 1], likewise.
    """
    fold = months[0]
    form = np.zeros(LONGEST, np.uint16)
    n = np.int64(0)
    bounds[0] = 0
    for k in range(starts.shape[0]):
        i, end = starts[k], ends[k]
        begun, size = np.int64(-1), np.int64(0)  # where the skeleton of a word begins, its letters
        whole = not is_word(seen_before(data, i, rows[k], shapes))  # else the first word is the end of one
        while i < end:
            seen, length = look(data, i, end, shapes)
            if seen == NOTHING:
                i += length
                continue
            if is_letter(seen):
                if begun < 0:
                    begun, size = n, np.int64(0)
                if size < LONGEST:
                    code, _ = decode(data, i, end)
                    form[size] = fold[code] if code < _PLANE else 0
                size += 1
            else:
                mark = _mark(form, size, months) if begun >= 0 and whole else np.int64(0)
                if mark > 0:
                    out[begun] = mark
                    n = begun + 1
                begun, whole = np.int64(-1), True
            out[n] = seen
            origin[n + k] = i
            n += 1
            i += length
        mark = _mark(form, size, months) if begun >= 0 and whole else np.int64(0)
        if mark > 0:
            out[begun] = mark
            n = begun + 1
        origin[n + k] = end
        bounds[k + 1] = n
