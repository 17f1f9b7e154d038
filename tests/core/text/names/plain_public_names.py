"""The finding of names by public lists once more, in plain Python: what the compiled loop is compared with."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import NamedTuple

from dptext_spark.lexicon.characters import DIGIT, HYPHEN, SPACE, cell, tables
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import excluded_words
from dptext_spark.text.names import public_names as rules
from dptext_spark.text.names.name_table import TITLES
from dptext_spark.text.names.normal_words import LONGEST
from dptext_spark.text.names.public_names import ALWAYS, COMMON, FOLDER, LIKELY, LISTS, MOST_WORDS, SURE
from dptext_spark.text.policy import packaged_stop_words
from tests.core.text.names.plain_names import BREAKS, kind, words

GIVEN, SURNAME, CITY, REGION = range(4)
INITIAL = 4
ENDS_SENTENCE = '.!?:;"“”…|•' + BREAKS


class Part(NamedTuple):
    start: int
    end: int
    kind: int
    name: int  # parts of one name have one number


class Lists(NamedTuple):
    entries: dict[tuple[str, ...], list[int]]  # the class in each kind
    beginnings: set[tuple[str, ...]]
    english: set[str]
    stop: set[str]
    titles: set[str]
    titles_only: set[str]
    particles: set[str]
    prepositions: set[str]


def normal(text: str) -> tuple[str, ...]:
    return tuple(word.form for word in words(text))


@cache
def lists() -> Lists:
    entries: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for number, name in enumerate(LISTS):
        for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
            held = entries[normal(line[:-2])]
            held[number] = max(held[number], int(line[-1]))
    beginnings = {entry[:n] for entry in entries for n in range(1, len(entry))}

    def folded(some: list[str]) -> set[str]:
        return {normal(one)[0] for one in some if len(normal(one)) == 1}

    stop = folded([*packaged_stop_words(), *rules.NO_NAMES.split()])
    english = folded([*Lexicon.default().vocabulary.strings().to_pylist(), *excluded_words()]) | stop
    titles = f"{TITLES} {rules.OTHER_TITLES}"
    marks = (titles, rules.TITLES_ONLY, rules.PARTICLES, rules.PREPOSITIONS)
    marked = [folded(some.split()) for some in marks]
    return Lists(dict(entries), beginnings, english, stop, *marked)


class Word(NamedTuple):
    start: int
    end: int
    form: str
    is_word: bool
    capital: bool
    upper: bool
    single: bool
    begins: bool  # a sentence
    joined: bool  # to the word before


def is_upper(char: str) -> bool:
    chars = tables()
    return bool(chars.lower[cell.py_func(ord(char), chars.stage)])


def lines_of(text: str, most: int) -> list[list[Word]]:
    found: list[list[Word]] = []
    before = 0
    last: Word | None = None
    for word in words(text):
        gap = text[before : word.start]
        if last is None or any(char in BREAKS for char in gap) or len(found[-1]) == most:
            found.append([])
            last = None
        written = text[word.start : word.stop].rstrip(".")
        letters = [char for char in written if kind(char) == kind(written[0])]
        single = len(letters) == 1
        titled = last is not None and last.is_word and last.form in lists().titles_only
        rest = [kind(char) for char in (gap[1:] if titled and gap.startswith(".") else gap)]
        joined = last is not None and {*rest} <= {SPACE, HYPHEN} and rest.count(HYPHEN) <= 1
        begins = not joined and (last is None or any(char in ENDS_SENTENCE for char in gap))
        mention = text[: word.start].endswith("@")
        is_word = 0 < len(word.form.encode()) <= LONGEST and kind(written[0]) != DIGIT and not mention
        form = word.form.rstrip(".") if single else word.form
        end = word.stop - (single and word.form.endswith("."))
        capital, upper = (
            is_word and is_upper(written[0]),
            is_word and not single and all(map(is_upper, letters)),
        )
        last = Word(word.start, end, form, is_word, capital, upper, single, begins, joined)
        found[-1].append(last)
        before = word.after
    return found


def find(text: str, most: int = MOST_WORDS) -> list[Part]:
    found: list[Part] = []
    lines = lines_of(text, most)
    for number, line in enumerate(lines):
        found += of_line(line, signed=number > 0 and number == len(lines) - 1)
    names = sorted({part.name for part in found})
    return [part._replace(name=names.index(part.name)) for part in found]


def of_line(line: list[Word], *, signed: bool) -> list[Part]:
    held = lists()
    n = len(line)
    written = sum(word.is_word for word in line)
    loud = written > 3 and 5 * sum(word.capital for word in line) > 3 * written
    upper = sum(word.upper for word in line)
    shouted = upper > 1 and 10 * upper > 3 * written
    found: list[Part] = []

    def classes(i: int) -> list[int]:
        return held.entries.get((line[i].form,), [0] * 4) if line[i].is_word else [0] * 4

    def stop(i: int) -> bool:
        return line[i].form in held.stop

    def telling(i: int) -> bool:
        word = line[i]
        return word.capital and not word.begins and not loud and not (word.upper and shouted)

    def follows(i: int) -> bool:  # a capitalised word, joined to the one before
        return i < n and line[i].joined and line[i].capital

    def unknown(i: int) -> bool:
        return line[i].form not in held.english

    def particle(i: int) -> bool:
        return line[i].joined and line[i].is_word and line[i].form in held.particles

    def tail(i: int) -> int:
        j = i + 1
        while j < n and j - i < 4 and line[j].joined:
            named = classes(j)[SURNAME] >= COMMON or classes(j)[GIVEN] >= LIKELY or unknown(j)
            if line[j].capital and (follows(j + 1) if line[j].single else named and not stop(j)):
                j += 1
            elif line[j].form in held.particles and follows(j + 1) and not stop(j + 1):
                j += 2
            else:
                break
        return j

    def person(i: int, j: int, *, titled: bool = False) -> int:
        k = i
        while k < j:
            start, of = k, GIVEN
            given, surname, _, _ = classes(k)
            if line[k].single:
                of = INITIAL
            elif line[k].form in held.particles and k + 1 < j and (k > i or not line[k].capital):
                of, k = SURNAME, k + 1
            elif given == 0 or (titled and j - i == 1) or (k > i and (k == j - 1 or surname > given)):
                of = SURNAME
            found.append(Part(line[start].start, line[k].end, of, line[i].start))
            k += 1
        return j

    def place(i: int) -> tuple[int, int, int]:
        best = (0, 0, 0)
        for length in range(1, 5):
            end = i + length - 1
            if end >= n or not line[end].is_word or (length > 1 and not line[end].joined):
                break
            key = tuple(line[i + m].form for m in range(length))
            city, region = held.entries.get(key, [0] * 4)[2:]
            if city or region:
                best = (length, max(city, region), REGION if region >= city else CITY)
            if key not in held.beginnings:
                break
        return best

    i, short = 0, signed and 0 < n <= 3 and all(word.capital for word in line)
    if short and not stop(0) and classes(0)[GIVEN] >= COMMON:
        person(0, n)
        return found
    while i < n:
        word = line[i]
        given, surname, _, _ = classes(i)
        if not word.is_word:
            i += 1
            continue
        after = follows(i + 1) and not stop(i + 1)
        next_given, next_surname = classes(i + 1)[:2] if i + 1 < n else (0, 0)
        title, only = word.capital and word.form in held.titles, word.form in held.titles_only
        likely_next = max(next_given, next_surname) >= LIKELY
        if title and after and not line[i + 1].single and (only or likely_next or unknown(i + 1)):
            i = person(i + 1, tail(i + 1), titled=True)
            continue
        if word.capital and only and not after:
            behind = i + 1
            while behind < min(n, i + 3) and particle(behind):
                behind += 1
            if behind > i + 1 and follows(behind) and not stop(behind):
                i = person(i + 1, tail(behind), titled=True)
                continue
        length, likely, of = place(i)
        if length and not stop(i):
            near = i > 0 and line[i - 1].form in held.prepositions
            whole = line[i : i + length]
            written_as = not word.capital or all(
                each.capital or each.form in held.particles for each in whole
            )
            named = (likely == SURE and (word.capital or near)) or (telling(i) and (likely == LIKELY or near))
            with_surname = given >= SURE and after and next_surname >= LIKELY
            person_too = length == 1 and (with_surname or (likely < SURE and max(given, surname) >= SURE))
            if written_as and named and not person_too:
                found.append(Part(word.start, line[i + length - 1].end, of, word.start))
                i += length
                continue
        if word.capital and word.single:
            j = i + 1
            while follows(j) and line[j].single:
                j += 1
            if follows(j) and not stop(j) and (classes(j)[SURNAME] >= LIKELY or unknown(j)):
                i = person(i, tail(j))
                continue
        if word.capital and not word.single:
            sure = surname >= SURE and (telling(i) or not unknown(i))
            alone = surname == LIKELY and telling(i) and not length
            beside = given >= COMMON and telling(i) and after and next_surname >= LIKELY
            if beside or (not stop(i) and (given >= LIKELY or sure or alone)):
                i = person(i, tail(i))
                continue
        if not word.capital and given == ALWAYS:
            lower = i + 1 < n and line[i + 1].joined and line[i + 1].is_word and not line[i + 1].capital
            i = person(i, i + 1 + (lower and next_surname >= SURE))
            continue
        i += 1
    return found
