"""Find names by the packaged public lists and by how they are written, in one compiled pass over a batch.

A line is read into words; then, from left to right, the first rule that fits counts:

1. a title, and the name behind it;
2. a town, country or state that is capitalised, or in lower case behind in, from, at, near or to. One that is a word as well
   needs a capital that is evidence, and a rarer one the preposition, too;
3. initials before a surname;
4. a given name or surname, by its class in the lists. Some need only a capital, others a capital that is evidence, or a surname
   behind them. The surest given names are found in lower case, too.

A capital is no evidence at the beginning of a sentence, nor if most words of the line have one. A name goes on over surnames,
unknown words, initials and particles. The last line of several is a signature where it is a given name with at most two words.
A find is likely, not certain: no guarantee covers it.

The packaged lists hold given names, surnames, towns, countries and states, each with how likely it is a name. They come
from a census and from GeoNames (public/NOTICE; `python -m tools.names` makes them anew). For the finder they are one table
of hashes of normal words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, U64, Bools, read_only
from dptext_spark.lexicon.characters import DIGIT, HYPHEN, SPACE, cell, decode, look_up_form, tables
from dptext_spark.lexicon.vocabulary import Vocabulary, excluded_words
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.name_table import TITLES, WordList, find_cell, place_of
from dptext_spark.text.names.normal_words import FORM, chain, folding, hash_word, next_word
from dptext_spark.text.names.search import (
    KEEP,
    LIST_TYPES,
    LOCATION,
    NAME_TYPES,
    PERSON,
    PSEUDONYM,
    NameSearch,
)
from dptext_spark.text.policy import packaged_stop_words

FOLDER = files("dptext_spark.text.names") / "public"
LISTS = ("given", "surname", "city", "region")
GIVEN, SURNAME, CITY, REGION = range(4)
# How likely a word is a name rather than another word; `ALWAYS`: a given name in lower case, too.
COMMON, LIKELY, SURE, ALWAYS = 1, 2, 3, 4
# What a hash is, beside three bits for its class in each of the kinds.
GOES_ON, ENGLISH, STOP, TITLE, TITLE_ONLY, PARTICLE, PREPOSITION = (1 << (12 + n) for n in range(7))
TAG = np.uint64(0xFFFFFFFFFF000000)

# Titles that are seldom anything else: after them a name follows that no list needs to know.
TITLES_ONLY = (
    "dr mr mrs ms mx prof sir dame lord lady rev capt sgt sen mister herr frau mme mlle monsieur madame sra srta señor señora "
    "signor signora"
)
OTHER_TITLES = "king queen prince princess pope uncle aunt saint"
PARTICLES = "van von der den de del della di da la le al bin ibn ben el mac mc st dos du ten ter"
PREPOSITIONS = "in from at near to"
# Capitalised for another reason than being a name.
NO_NAMES = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september "
    "october november december ok lol omg yes no dm rt tv im ima"
)


@inlined
def class_of(flags: Int, kind: Int) -> Int:
    """Return the class of a hash as a name of a kind, from its flags; 0 if it is none."""
    return (flags >> (3 * kind)) & 7


@inlined
def find_public(cells: Any, hashed: Int) -> Int:
    """Return the flags of a hash of the public lists, 0 where they do not have it."""
    return find_cell(cells, hashed, TAG)


class NameEntries(NamedTuple):
    """The names of a kind as they are written, the most frequent first.

    Attributes:
        data: uint8[...], UTF-8.
        bounds: int64[n + 1], name i is data[bounds[i]:bounds[i + 1]].
        classes: int64[n].
    """

    data: U8
    bounds: I64
    classes: I64


@compiled
def _add(data: Any, bounds: Any, flags: Any, chars: Any, fold: Any, cells: Any, form: Any) -> None:
    """Add entries and their flags to the cells. If an entry has two classes in a kind, the higher counts."""
    for entry in range(bounds.shape[0] - 1):
        p, end, state, more = bounds[entry], bounds[entry + 1], np.uint64(0), True
        _, _, p, size = next_word(data, p, end, chars, fold, form)
        while more and size > 0:
            state = chain(state, hash_word(form, size))
            _, _, p, size = next_word(data, p, end, chars, fold, form)
            more = size > 0
            added = np.uint64(GOES_ON if more else flags[entry])
            slot = place_of(cells, state, TAG)
            joined = (cells[slot] | added) & ~np.uint64(0xFFF) & ~TAG
            for kind in range(4):
                bits = np.uint64(7) << np.uint64(3 * kind)
                joined |= max(cells[slot] & bits, added & bits)
            cells[slot] = (state & TAG) | joined


@compiled
def _flags(data: Any, bounds: Any, chars: Any, fold: Any, cells: Any, out: Any) -> None:
    """Fill the flags of each text that is one normal word, int64[n]; 0 of others."""
    form = np.zeros(FORM, np.uint8)
    for i in range(out.shape[0]):
        _, _, p, size = next_word(data, bounds[i], bounds[i + 1], chars, fold, form)
        out[i] = 0
        if size > 0 and p == bounds[i + 1]:
            out[i] = find_public(cells, chain(np.uint64(0), hash_word(form, size)))


def listed_names(words: Vocabulary) -> Bools:
    """Find the likely names by the packaged lists, bool[V]: of class `LIKELY` or more in a kind, no stop words."""
    chars = tables()
    flags = np.empty(len(words), np.int64)
    data = np.concatenate([words.data, np.zeros(32, np.uint8)])
    looks = (chars.stage, chars.classes)
    _flags(data, read_only(words.offsets), looks, folding(), public_lists(), flags)
    likely = [(flags >> (3 * kind)) & 7 >= LIKELY for kind in range(len(LISTS))]
    return np.asarray(np.logical_or.reduce(likely) & (flags & STOP == 0))


@cache
def public_entries(kind: int) -> NameEntries:
    """Return the packaged names of a kind: the display form and the class of each line."""
    lines = (FOLDER / f"{LISTS[kind]}.txt").read_bytes().splitlines()
    names = [line[:-2] for line in lines]
    bounds = np.cumsum([0, *map(len, names)]).astype(np.int64)
    classes = np.frombuffer(b"".join(line[-1:] for line in lines), np.uint8).astype(np.int64) - ord("0")
    return NameEntries(np.frombuffer(b"".join(names), np.uint8), bounds, classes)


@cache
def public_lists() -> U64:
    """Return the packaged lists, with the words that rule a name out or announce one.

    Returns:
        uint64[2^m], hashes with their flags in the lowest 24 bits; 0 where none is. It cannot be written.
    """
    parts = [(public_entries(kind), kind) for kind in range(len(LISTS))]
    entries = [(listed.data, listed.bounds, listed.classes << (3 * kind)) for listed, kind in parts]
    english = Vocabulary.open(files("dptext_spark.lexicon") / "default")
    entries += [
        (english.data, english.offsets, np.full(len(english), ENGLISH, np.int64)),
        _marked(sorted(excluded_words()), ENGLISH),
        _marked([*(look_up_form(word) for word in packaged_stop_words()), *NO_NAMES.split()], STOP | ENGLISH),
        _marked([*TITLES.split(), *OTHER_TITLES.split()], TITLE),
        _marked(TITLES_ONLY.split(), TITLE_ONLY),
        _marked(PARTICLES.split(), PARTICLE),
        _marked(PREPOSITIONS.split(), PREPOSITION),
    ]
    chars = tables()
    size = 1 << int(2.5 * sum(len(bounds) for _, bounds, _ in entries)).bit_length()
    cells, form = np.zeros(size, np.uint64), np.zeros(FORM, np.uint8)
    for data, bounds, flags in entries:
        padded = np.concatenate([data, np.zeros(32, np.uint8)])
        _add(padded, bounds, flags, (chars.stage, chars.classes), folding(), cells, form)
    return read_only(cells)


def _marked(words: list[str], flag: int) -> tuple[U8, I64, I64]:
    """Return words with one flag each: (bytes, bounds, flags)."""
    listed = WordList.of("words", [word.encode() for word in words])
    return listed.data, listed.bounds, np.full(len(listed), flag, np.int64)


INITIAL = 4  # a kind beside those of the lists
PARTS_OF_PERSONS, PARTS_OF_PLACES = ("given_name", "surname", "initial"), ("city", "region")
KINDS = ("given_name", "surname", "city", "region", "initial")  # the types of parts, which have pseudonyms
# The types of the same parts where a list of one's own holds the name; no provider can have such a type.
LISTED_KINDS = tuple(f"{LIST_TYPES[0]}:{name}" for name in KINDS)
ENDS_SENTENCE = (0x2E, 0x21, 0x3F, 0x3A, 0x3B, 0x22, 0x7C, 0x201C, 0x201D, 0x2022, 0x2026)
MOST_WORDS = 4096  # that are looked at together; a longer line is cut
MOST_OF_NAME = 4  # words that a name goes on over
START, END, FLAGS, LOOKS, HASH = range(5)  # columns of the words of a line
WORD, CAPITAL, UPPER, SINGLE, BEGINS, JOINED, TELLING = (1 << n for n in range(7))


@compiled
def joins(data: Any, p: Int, end: Int, chars: Any, titled: bool) -> tuple[bool, bool, bool]:
    """Classify data[p:end]: (joins two words, ends a sentence, breaks a line). After a title one stop may come first."""
    stage, classes = chars
    joined, ended, hyphens = True, False, 0
    first = p
    while p < end:
        code, length = decode(data, p, end)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if 0x0A <= code <= 0x0D or code == 0x85 or 0x2028 <= code <= 0x2029:
            return False, True, True
        for mark in ENDS_SENTENCE:
            ended = ended or code == mark
        if kind == HYPHEN:
            hyphens += 1
        elif kind != SPACE and not (titled and p == first and code == 0x2E):
            joined = False
        p += length
    joined = joined and hyphens <= 1
    return joined, ended and not joined, False


@compiled
def look(data: Any, begin: Int, p: Int, end: Int, letters: Any, size: Int) -> Int:
    """Classify the writing of data[p:end], a word of a text that begins at `begin`: `WORD`, `CAPITAL`, `UPPER`, `SINGLE`.

    Of no `size` in normal form it is too long for a word.
    """
    stage, classes, lower = letters
    count, capitals, looks = 0, 0, np.int64(0)
    own = np.int64(-1)
    at_sign = p > begin and data[p - 1] == 0x40
    first = p
    while p < end:
        code, length = decode(data, p, end)
        place = cell(code, stage)
        kind = np.int64(classes[place])
        if own < 0:
            own = kind
        if kind == own:
            count += 1
            if lower[place] != 0:
                capitals += 1
                if p == first:
                    looks |= CAPITAL
        p += length
    is_word = own != DIGIT and not at_sign and size > 0
    looks = looks | WORD if is_word else np.int64(0)
    if is_word and capitals == count and count > 1:
        looks |= UPPER
    return looks | SINGLE if count == 1 else looks


@compiled
def _read_line(
    data: Any, begin: Int, p: Int, end: Int, lists: Any, letters: Any, form: Any, words: Any
) -> tuple[Int, Int]:
    """Read the words of a line into `words`; return (how many, where to go on, or -1: nowhere). The text begins at `begin`."""
    cells, fold = lists
    chars = (letters[0], letters[1])
    n, before = np.int64(0), p
    capital, upper, written = 0, 0, 0
    more = np.int64(-1)
    while True:
        start, stop, after, size = next_word(data, before, end, chars, fold, form)
        if size < 0:
            break
        joined, ended = False, True
        if n > 0:
            titled = words[n - 1, FLAGS] & TITLE_ONLY != 0
            joined, ended, broken = joins(data, before, start, chars, titled)
            if broken or n == words.shape[0]:
                more = start
                break
        if size > 0 and form[size - 1] == 0x2E:
            size -= 1  # the stop of an initial is no part of it
            stop -= 1
        looks = look(data, begin, start, stop, letters, size)
        state = chain(np.uint64(0), hash_word(form, size))
        flags = find_public(cells, state) if looks & WORD else np.int64(0)
        if joined:
            looks |= JOINED
        elif ended:
            looks |= BEGINS
        words[n, START], words[n, END], words[n, FLAGS], words[n, LOOKS] = start, stop, flags, looks
        words[n, HASH] = np.int64(state)
        written += looks & WORD != 0
        capital += looks & CAPITAL != 0
        upper += looks & UPPER != 0
        n += 1
        before = after
    loud = written > 3 and 5 * capital > 3 * written
    shouted = upper > 1 and 10 * upper > 3 * written
    for i in range(n):
        looks = words[i, LOOKS]
        if looks & CAPITAL and not looks & BEGINS and not loud and not (looks & UPPER and shouted):
            words[i, LOOKS] |= TELLING
    return n, more


@compiled
def _follows(words: Any, n: Int, i: Int) -> Any:
    """Check whether word i is capitalised and joined to the one before it."""
    return i < n and words[i, LOOKS] & (JOINED | CAPITAL) == JOINED | CAPITAL


@compiled
def _tail(words: Any, n: Int, i: Int) -> Int:
    """Return the end of the name that begins with word i."""
    j = i + 1
    while j < n and j - i < MOST_OF_NAME and words[j, LOOKS] & JOINED:
        flags, looks = words[j, FLAGS], words[j, LOOKS]
        if (looks & CAPITAL and looks & SINGLE and _follows(words, n, j + 1)) or (
            looks & CAPITAL
            and not looks & SINGLE
            and not flags & STOP
            and (
                class_of(flags, SURNAME) >= COMMON or class_of(flags, GIVEN) >= LIKELY or not flags & ENGLISH
            )
        ):
            j += 1
        elif flags & PARTICLE and _follows(words, n, j + 1) and not words[j + 1, FLAGS] & STOP:
            j += 2
        else:
            break
    return j


@compiled
def _add_part(found: Any, m: Int, start: Int, end: Int, kind: Int, name: Int, row: Int) -> Int:
    if m < found.shape[0]:
        found[m, 0], found[m, 1], found[m, 2], found[m, 3], found[m, 4] = start, end, kind, name, row
    return m + 1


@compiled
def add_person(words: Any, i: Int, j: Int, titled: bool, found: Any, m: Int, row: Int) -> Int:
    """Add the parts of the person in words i..j - 1; return how many parts are found so far."""
    name, k = words[i, START], i
    while k < j:
        flags, looks = words[k, FLAGS], words[k, LOOKS]
        given_name, surname = class_of(flags, GIVEN), class_of(flags, SURNAME)
        end, kind = words[k, END], np.int64(GIVEN)
        last = k > i and k == j - 1
        if looks & SINGLE:
            kind = np.int64(INITIAL)
        elif flags & PARTICLE and k < j - 1 and (k > i or not looks & CAPITAL):
            end, kind = words[k + 1, END], np.int64(SURNAME)
        elif last or (titled and j - i == 1) or given_name == 0 or (k > i and surname > given_name):
            kind = np.int64(SURNAME)
        m = _add_part(found, m, words[k, START], end, kind, name, row)
        k += 1 if end == words[k, END] else 2
    return m


@compiled
def _place(
    data: Any, end: Int, words: Any, n: Int, i: Int, lists: Any, letters: Any, form: Any
) -> tuple[Int, Int, Int]:
    """Return (words, class, kind) of the longest place that begins with word i; of no words: none."""
    cells, fold = lists
    chars = (letters[0], letters[1])
    flags, state = words[i, FLAGS], np.uint64(words[i, HASH])
    length, likely, kind = np.int64(0), np.int64(0), np.int64(0)
    j = i
    while True:
        city, region = class_of(flags, CITY), class_of(flags, REGION)
        if city > 0 or region > 0:
            length, likely = np.int64(j - i + 1), max(city, region)
            kind = np.int64(REGION if region >= city else CITY)
        j += 1
        if not flags & GOES_ON or j == n or words[j, LOOKS] & (JOINED | WORD) != JOINED | WORD:
            return length, likely, kind
        _, _, _, size = next_word(data, words[j, START], end, chars, fold, form)
        if size > 0 and form[size - 1] == 0x2E:
            size -= 1
        state = chain(state, hash_word(form, size))
        flags = find_public(cells, state)


@compiled
def _is_place(words: Any, i: Int, length: Int, likely: Int, after: Any) -> Any:
    """Check that words i..i + length - 1, a place of class `likely`, are written as a place and are no person."""
    flags, looks = words[i, FLAGS], words[i, LOOKS]
    near = i > 0 and words[i - 1, FLAGS] & PREPOSITION != 0
    if looks & CAPITAL:
        for k in range(i + 1, i + length):
            if not words[k, LOOKS] & CAPITAL and not words[k, FLAGS] & PARTICLE:
                return False
    telling = looks & TELLING != 0
    named: Any = likely == SURE and (looks & CAPITAL != 0 or near)
    if telling and (likely == LIKELY or near):
        named = True
    if not named or length > 1:
        return named
    given_name, surname = class_of(flags, GIVEN), class_of(flags, SURNAME)
    if given_name >= SURE and after and class_of(words[i + 1, FLAGS], SURNAME) >= LIKELY:
        return False
    return not (likely < SURE and (given_name >= SURE or surname >= SURE))


@compiled
def _names_of_line(
    data: Any,
    end: Int,
    words: Any,
    n: Int,
    signed: bool,
    lists: Any,
    letters: Any,
    form: Any,
    found: Any,
    m: Int,
    row: Int,
) -> Int:
    """Find the names of a line; return how many parts are found so far."""
    if signed and 0 < n <= 3:
        every = True
        for k in range(n):
            every = every and words[k, LOOKS] & CAPITAL != 0
        if every and not words[0, FLAGS] & STOP and class_of(words[0, FLAGS], GIVEN) >= COMMON:
            return add_person(words, 0, n, False, found, m, row)
    i = np.int64(0)
    while i < n:
        flags, looks = words[i, FLAGS], words[i, LOOKS]
        capital, stop, single = looks & CAPITAL != 0, flags & STOP != 0, looks & SINGLE != 0
        if not looks & WORD or (not capital and (flags == 0 or stop)):
            i += 1
            continue
        after: Any = _follows(words, n, i + 1) and not words[i + 1, FLAGS] & STOP
        next_flags = words[i + 1, FLAGS] if i + 1 < n else np.int64(0)
        given_name, surname = class_of(flags, GIVEN), class_of(flags, SURNAME)
        surely: Any = after and class_of(next_flags, SURNAME) >= LIKELY
        title: Any = capital and flags & TITLE and after and not words[i + 1, LOOKS] & SINGLE
        titled: Any = flags & TITLE_ONLY or surely or class_of(next_flags, GIVEN) >= LIKELY
        behind = i + 1  # the first word of the name that has a capital
        if capital and flags & TITLE_ONLY and not after:
            most = min(n, i + 3)
            while behind < most and words[behind, FLAGS] & PARTICLE and words[behind, LOOKS] & JOINED:
                behind += 1
            title = behind > i + 1 and _follows(words, n, behind) and not words[behind, FLAGS] & STOP
        if title and (titled or not next_flags & ENGLISH):
            j = _tail(words, n, behind)
            m = add_person(words, i + 1, j, True, found, m, row)
            i = j
            continue
        length, likely, kind = np.int64(0), np.int64(0), np.int64(0)
        if flags & (GOES_ON | 7 << 3 * CITY | 7 << 3 * REGION):
            length, likely, kind = _place(data, end, words, n, i, lists, letters, form)
        if length and not stop and _is_place(words, i, length, likely, after):
            m = _add_part(found, m, words[i, START], words[i + length - 1, END], kind, words[i, START], row)
            i += length
            continue
        first = i
        telling = looks & TELLING != 0
        if capital and single:
            j = i + 1
            while _follows(words, n, j) and words[j, LOOKS] & SINGLE:
                j += 1
            named: Any = _follows(words, n, j) and not words[j, FLAGS] & STOP
            if named and (class_of(words[j, FLAGS], SURNAME) >= LIKELY or not words[j, FLAGS] & ENGLISH):
                i = _tail(words, n, j)
        elif capital:
            unknown = not flags & ENGLISH
            likely_one: Any = (
                given_name >= LIKELY
                or (surname >= SURE and (telling or not unknown))
                or (surname == LIKELY and telling and length == 0)
            )
            if (likely_one and not stop) or (given_name >= COMMON and telling and surely):
                i = _tail(words, n, i)
        elif given_name == ALWAYS:
            i += 1
            small: Any = i < n and words[i, LOOKS] & (JOINED | WORD | CAPITAL) == JOINED | WORD
            if small and class_of(words[i, FLAGS], SURNAME) >= SURE:
                i += 1
        if i == first:
            i += 1
            continue
        m = add_person(words, first, i, False, found, m, row)
    return m


@compiled
def _find(data: Any, rows: Any, lists: Any, letters: Any, words: Any, found: Any) -> Int:
    """Find the parts of names in a batch, fill those that fit, and return the number of all.

    `lists` are (cells uint64[2^m], folding), see :func:`public_lists`. `words` int64[n, 5] is work space; a line of more than n
    words is cut. `found` int64[m, 5] is filled with (begin, end, kind, name, text); parts of one name have one number.
    """
    form, m = np.zeros(FORM, np.uint8), np.int64(0)
    for row in range(rows.shape[0] - 1):
        p, end, lines = rows[row], rows[row + 1], 0
        while p >= 0:
            n, p = _read_line(data, rows[row], p, end, lists, letters, form, words)
            m = _names_of_line(data, end, words, n, lines > 0 and p < 0, lists, letters, form, found, m, row)
            lines += 1
    return m


def parts_of_names(data: U8, rows: I64, most_words: int = MOST_WORDS) -> I64:
    """Return int64[n, 5]: beginning and end of each part of a name in the bytes of a batch, its kind, its name, and its text.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        most_words: of a line that are looked at together.
    """
    chars, lists = tables(), (public_lists(), folding())
    letters = (chars.stage, chars.classes, chars.lower)
    words = np.empty((most_words, 5), np.int64)
    room = 1024 + len(data) // 16
    while True:
        parts = np.empty((room, 5), np.int64)
        count = _find(data, rows, lists, letters, words, parts)
        if count <= room:
            return parts[:count]
        room = count


def spans_of_parts(rows: I64, names: I64, starts: I64, ends: I64, types: I64) -> TypedSpans:
    """Return names as spans: parts of one name that are masked as one, and each part that has a pseudonym.

    Args:
        rows: int64[n], the text of each part, ascending.
        names: int64[n], equal for the parts of one name and different for its neighbours.
        starts: int64[n], where each part begins in its text.
        ends: int64[n], where it ends.
        types: int64[n], positions in `NAME_TYPES`, where the name is masked, and behind them in `KINDS`.
    """
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (names[1:] != names[:-1]) | (types[1:] != types[:-1]) | (types[1:] >= len(NAME_TYPES))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(rows))[: len(first)] - 1
    return TypedSpans(rows[first], starts[first], ends[last], types[first])


@dataclass(frozen=True, eq=False)
class PublicNames:
    """The search for names as a provider of identifiers. The policy names it; its version is in the model's fingerprint.

    `types`: `person` and `location` of masked names; the kinds of parts if they have pseudonyms.
    """

    search: NameSearch
    types: tuple[str, ...] = (*NAME_TYPES, *KINDS)

    @property
    def name(self) -> str:
        """The search's name in errors."""
        return f"public names {self.search.version}"

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the names of texts."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return the names in the padded bytes of a batch: whole ones if they are masked, else their parts."""
        parts = parts_of_names(data, rows)
        is_place = np.isin(parts[:, 2], (CITY, REGION))
        actions = np.where(is_place, self._action(LOCATION), self._action(PERSON))
        parts, is_place, actions = (column[actions != KEEP] for column in (parts, is_place, actions))
        starts, ends, kinds, names, row = parts.T
        types = np.where(actions == PSEUDONYM, len(NAME_TYPES) + kinds, is_place)
        return spans_of_parts(row, names, starts - rows[row], ends - rows[row], types)

    def _action(self, kind: str) -> str:
        """Return the treatment of a kind of name."""
        return str(getattr(self.search, kind))
