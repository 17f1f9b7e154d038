"""The telling of parts of a list's names once more, in plain Python: what the compiled loop is compared with."""

from __future__ import annotations

from typing import NamedTuple

from dptext_spark.lexicon.characters import DIGIT, HYPHEN, SPACE, cell, tables
from tests.core.text.names.plain_names import BREAKS, kind, words
from tests.core.text.names.plain_public_names import CITY, GIVEN, INITIAL, REGION, SURNAME, is_upper, lists


class Word(NamedTuple):
    start: int
    end: int
    form: str
    single: bool
    capital: bool
    classes: list[int]


def has_case(char: str) -> bool:
    chars = tables()
    place = cell.py_func(ord(char), chars.stage)
    return bool(chars.lower[place] or chars.upper[place])


def words_of(text: str, start: int, end: int) -> list[Word]:
    found = []
    for one in words(text[start:end]):
        begin, form = start + one.start, one.form.rstrip(".")
        written = text[begin : start + one.stop].rstrip(".")
        single = sum(kind(char) == kind(written[0]) for char in written) == 1 and has_case(written[0])
        a_word = kind(written[0]) != DIGIT
        classes = lists().entries.get((form,), [0] * 4) if a_word else [0] * 4
        capital = a_word and is_upper(written[0])
        found.append(Word(begin, begin + len(written), form, single, capital, classes))
    return found


def is_titled(text: str, start: int) -> bool:
    before = words(text[:start])
    if not before or before[-1].form not in lists().titles:
        return False
    gap = text[before[-1].after : start]
    gap = gap.removeprefix(".")
    spaces = all(kind(char) in (SPACE, HYPHEN) and char not in BREAKS for char in gap)
    return spaces and sum(kind(char) == HYPHEN for char in gap) <= 1


def parts_of(text: str, start: int, end: int, of: str) -> list[tuple[int, int, int]]:
    """Return (begin, end, kind) of each part of a name that stands in text[start:end]."""
    some = words_of(text, start, end)
    if of == "location":
        city, region = lists().entries.get(tuple(word.form for word in some), [0] * 4)[2:]
        return [(some[0].start, some[-1].end, REGION if region and region >= city else CITY)]
    commas = [k for k in range(1, len(some)) if "," in text[some[k - 1].end : some[k].start]]
    comma = commas[0] if commas else 0
    order, found, k = some[comma:] + some[:comma], [], 0
    while k < len(order):
        word = order[k]
        given, surname = word.classes[:2]
        behind = order[k + 1] if k + 1 < len(order) and order[k + 1].start > word.start else None
        last = k > 0 and k == len(order) - 1
        alone = len(order) == 1 and is_titled(text, start)
        if word.single:
            found.append((word.start, word.end, INITIAL))
        elif word.form in lists().particles and behind is not None and (k > 0 or not word.capital):
            found.append((word.start, behind.end, SURNAME))
            k += 1
        elif last or alone or given == 0 or (k > 0 and surname > given):
            found.append((word.start, word.end, SURNAME))
        else:
            found.append((word.start, word.end, GIVEN))
        k += 1
    return sorted(found)
