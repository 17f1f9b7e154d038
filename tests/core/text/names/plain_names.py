"""The finding of names once more, in plain Python: what the compiled loops are compared with."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import NamedTuple

from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    DIGIT,
    EXTEND,
    HYPHEN,
    LETTER,
    MARK,
    SPACE,
    cell,
    tables,
)
from dptext_spark.text.identifiers.skeletons import UNSPACED_BLOCKS
from dptext_spark.text.names.name_table import TITLES

BREAKS = "\n\v\f\r\u0085\u2028\u2029"
MIDDLE_DOTS = "\u00b7\u30fb\uff65_^`"
STROKES = dict(zip("\u0131łøđðħŧ", "iloddht", strict=True)) | {"þ": "th", "æ": "ae", "œ": "oe"}
KNOWN_TITLES = set(TITLES.split())


class Word(NamedTuple):
    start: int
    stop: int  # of the word in the text
    after: int  # where a possessive ends
    form: str


def kind(char: str) -> int:
    chars = tables()
    return int(chars.classes[cell.py_func(ord(char), chars.stage)])


def fold(char: str) -> str:
    if unicodedata.category(char) in ("Cn", "Co", "Lo") and not unicodedata.decomposition(char):
        return char
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    kept = "".join(STROKES.get(one, one) for one in plain if not unicodedata.combining(one))
    return kept if len(kept) <= 4 else char


def words(text: str) -> list[Word]:
    found, i = [], 0
    while i < len(text):
        first = kind(text[i])
        if first not in (LETTER, DIGIT):
            i += 1
            continue
        start = stop = i
        form, letters, cut = "", 0, None
        while i < len(text):
            here = kind(text[i])
            if here == first:
                form += fold(text[i])
                letters += 1
                i += 1
                stop = i
            elif here == MARK or (here == EXTEND and first == LETTER):
                i += 1
                stop = i if here == MARK else stop
            elif here == APOSTROPHE and first == LETTER and i + 1 < len(text) and kind(text[i + 1]) == LETTER:
                cut = (i, form)
                i += 1
            else:
                break
        if cut is not None and cut[1] and form == f"{cut[1]}s":
            found.append(Word(start, cut[0], stop, cut[1]))
        elif letters == 1 and first == LETTER and text[stop : stop + 1] == ".":
            found.append(Word(start, stop + 1, stop + 1, f"{form}."))
            stop += 1
        else:
            found.append(Word(start, stop, stop, form))
        i = stop
    return found


class Piece(NamedTuple):
    start: int
    stop: int
    form: str


def amid(char: str) -> bool:
    """Whether it is a letter of a script without spaces."""
    return kind(char) == LETTER and any(first <= ord(char) <= last for first, last in UNSPACED_BLOCKS)


def pieces(text: str, word: Word) -> list[Piece]:
    """A word cut at each letter of a script without spaces; of its marks those count that folding leaves."""
    found: list[Piece] = []
    parted = False  # by an apostrophe
    for at in range(word.start, word.stop):
        char, before = text[at], found[-1] if found else None
        if kind(char) in (LETTER, DIGIT):
            if before is None or parted or amid(char) or amid(text[before.start]):
                found.append(Piece(at, at + 1, fold(char)))
            else:
                found[-1] = Piece(before.start, at + 1, before.form + fold(char))
            parted = False
        elif kind(char) == MARK and before is not None and not parted:
            sign = fold(char) if amid(text[before.start]) else ""
            found[-1] = Piece(before.start, at + 1, before.form + sign)
        parted = parted or kind(char) == APOSTROPHE
    return found


def in_pieces(entry: str) -> set[tuple[str, ...]]:
    """The pieces of an entry with a letter of a script without spaces, a space between those of two words; with marks, too."""
    if not any(map(amid, entry)):
        return set()
    plain: list[str] = []
    written: list[str] = []
    between = joints(entry)
    for place, word in enumerate(words(entry)):
        forms = [piece.form for piece in pieces(entry, word)]
        marks = between[place - 1] if place else ""
        plain += [*([" "] if place else []), *forms]
        written += [*([" "] if place else []), *([str(marks)] if marks else []), *forms]
    return {tuple(plain)} if None in between else {tuple(plain), tuple(written)}


def within(
    text: str, some: list[Word], i: int, known: dict[tuple[str, ...], int]
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the entries amid the letters of word i, and from where on to go."""
    found: list[tuple[int, int, int]] = []
    at = some[i].start
    for first in pieces(text, some[i]):
        if first.start < at:
            continue
        best, path = None, ()
        for j in range(i, len(some)):
            for piece in pieces(text, some[j]):
                if piece.start >= first.start:
                    path = (*path, piece.form)
                    best = (piece.stop, known[path]) if path in known else best
            between = (
                None if j + 1 == len(some) else joint(text[some[j].after : some[j + 1].start], titled=False)
            )
            if between is None:
                break
            path = (*path, " ", *([between] if between else []))
            if not any(key[: len(path)] == path for key in known):
                break
        if best is not None:
            found.append((first.start, *best))
            at = best[0]
    return found, max(at, some[i].after)


def joint(gap: str, *, titled: bool) -> str | None:
    """Return the marks between two words, "" for what joins them and None for what parts them."""
    gap = gap[1:] if titled and gap.startswith(".") else gap
    marks = [char for char in gap if kind(char) != SPACE]
    marks = ["-" if char in MIDDLE_DOTS or kind(char) == HYPHEN else char for char in marks]
    if any(char in BREAKS for char in gap) or len(marks) > 2:
        return None
    return "" if marks == ["-"] else "".join(marks)


def joints(entry: str) -> list[str | None]:
    some = words(entry)
    return [joint(entry[a.after : b.start], titled=False) for a, b in pairwise(some)]


def forms_of(entry: str) -> set[tuple[str, ...]]:
    """All ways to write an entry, as words, marks and `title`."""
    own = tuple(word.form for word in words(entry))
    made, between = {own}, joints(entry)
    marked = [place for place, marks in enumerate(between) if marks != ""]
    if marked and None not in between:
        written = [own[0]]
        for marks, word in zip(between, own[1:], strict=True):
            written += [str(marks)] * (marks != "") + [word]
        made.add(tuple(written))
    if len(marked) == 1 and between[marked[0]] == ",":
        own = (*own[marked[0] + 1 :], *own[: marked[0] + 1])
        made.add(own)
    if len(own) > 1:
        *others, last = own
        initials = [f"{form[0]}." for form in others]
        made |= {(last, ",", *others), (last, ",", *initials), (*initials, last), (initials[0], last)}
        made |= {(others[0], last), ("title", last)}
    return made


def find(text: str, lists: list[list[str]]) -> list[tuple[int, int, int]]:
    """Return (begin, end, list) of each entry, in characters."""
    known: dict[tuple[str, ...], int] = {}
    amid_letters: dict[tuple[str, ...], int] = {}
    for number, entries in enumerate(lists):
        for entry in entries:
            for form in forms_of(entry):
                known.setdefault(form, number)
            for cut in in_pieces(entry):
                amid_letters.setdefault(cut, number)
    some, found, i = words(text), [], 0

    def longest(first: int) -> tuple[int, int] | None:
        best, path, at = None, (some[first].form,), first
        while any(key[: len(path)] == path for key in known):
            if path in known:
                best = (at, known[path])
            if at + 1 == len(some):
                break
            between = joint(text[some[at].after : some[at + 1].start], titled=False)
            if between is None:
                break
            path = (*path, *([between] if between else []), some[at + 1].form)
            at += 1
        return best

    while i < len(some):
        best, first = longest(i), i
        titled = (best is None or best[0] == i) and some[i].form in KNOWN_TITLES and i + 1 < len(some)
        if titled and joint(text[some[i].after : some[i + 1].start], titled=True) == "":
            longer = longest(i + 1)
            if longer is not None and longer[0] > i + 1:
                best, first = longer, i + 1
            elif ("title", some[i + 1].form) in known:
                best, first = (i + 1, known["title", some[i + 1].form]), i + 1
        if best is None:
            if amid_letters and any(map(amid, text[some[i].start : some[i].stop])):
                inside, behind = within(text, some, i, amid_letters)
                found += inside
                # What is left of a word that an entry ends in is read on by itself.
                some[i + 1 :] = [
                    Word(*(place + behind for place in word[:3]), word.form) for word in words(text[behind:])
                ]
            i += 1
            continue
        found.append((some[first].start, some[best[0]].stop, best[1]))
        i = best[0] + 1
    return found
