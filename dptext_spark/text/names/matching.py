"""Find the entries of lists of names in a batch: the longest at each word, from left to right, in one compiled pass.

Spaces, one hyphen, one middle dot or the marks of its entry join the words of a phrase; a line break never does. A stop that
the entry lacks is allowed after initials and titles only. In scripts without spaces an entry may begin and end amid the letters
of a word that is no entry as a whole. There the longest is taken at each piece, from left to right.

An entry with pseudonyms is split into parts, like a name that the search by public lists finds. A person's name has a part
for each word. A single letter is an initial; a particle belongs to the word behind it. Surnames are the last word of
several, the words before a comma, and a single word behind a title. Another word is a given name if the public lists prefer
that to a surname. "Lovelace, Ada" has the parts of "Ada Lovelace". A place is one part, a country or state where the public
lists hold it as one, else a town.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, read_only
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    EXTEND,
    HYPHEN,
    LETTER,
    MARK,
    SPACE,
    cell,
    decode,
    tables,
)
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.identifiers.skeletons import has_unspaced
from dptext_spark.text.names.name_table import (
    AFTER_TITLE,
    BETWEEN,
    ENDS,
    GOES_ON,
    IN_STRETCH,
    LIST_SHIFT,
    MOST_LISTS,
    MOST_WORDS,
    TITLE,
    NameTable,
    find_hash,
)
from dptext_spark.text.names.normal_words import (
    APART,
    FORM,
    JOINED,
    chain,
    folding,
    hash_word,
    joint,
    next_piece,
    next_word,
    plain_word,
)
from dptext_spark.text.names.public_names import (
    CITY,
    END,
    FLAGS,
    HASH,
    LISTED_KINDS,
    LOOKS,
    PARTICLE,
    REGION,
    SINGLE,
    START,
    WORD,
    add_person,
    class_of,
    find_public,
    joins,
    look,
    public_lists,
)
from dptext_spark.text.names.public_names import TITLE as PUBLIC_TITLE
from dptext_spark.text.names.search import LIST_TYPES, NAME_TYPES, PERSON

OF_PERSONS = NAME_TYPES.index(PERSON)


@compiled
def _previous_start(data: Any, begin: Int, p: Int) -> Int:
    """Find the beginning of the character before data[p], in a text that begins at `begin` < p."""
    p -= 1
    while p > begin and data[p] & 0xC0 == 0x80:
        p -= 1
    return p


@compiled
def _is_titled(data: Any, begin: Int, start: Int, lists: Any, chars: Any, form: Any) -> bool:
    """Check for a title before data[start], in a text that begins at `begin`, with nothing between that parts them."""
    stage, classes = chars
    cells, fold = lists
    p = start
    while p > begin:
        q = _previous_start(data, begin, p)
        code, _ = decode(data, q, p)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind != SPACE and kind != HYPHEN and code != 0x2E:
            break
        p = q
    while p > begin:
        q = _previous_start(data, begin, p)
        code, _ = decode(data, q, p)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind != LETTER and kind != MARK and kind != EXTEND and kind != APOSTROPHE:
            break
        p = q
    _, _, after, size = next_word(data, p, start, chars, fold, form)
    if size <= 0 or not joins(data, after, start, chars, True)[0]:
        return False
    return bool(find_public(cells, chain(np.uint64(0), hash_word(form, size))) & PUBLIC_TITLE != 0)


@compiled
def _read_name(
    data: Any, start: Int, end: Int, lists: Any, letters: Any, form: Any, words: Any
) -> tuple[Int, Int, Int]:
    """Read the words of a name into `words`: (number, number before a comma or 0, the flags of the whole)."""
    cells, fold = lists
    stage, classes, lower, upper = letters
    zero = np.uint64(0)
    n, comma, whole = np.int64(0), np.int64(0), zero
    p = start
    while n < words.shape[0]:
        first, stop, after, size = next_word(data, p, end, (stage, classes), fold, form)
        if size < 0:
            break
        for k in range(p, first):
            if n > 0 and data[k] == 0x2C:
                comma = n
        if size > 0 and form[size - 1] == 0x2E:
            size -= 1  # without the stop of an initial
            stop -= 1
        looks = look(data, first, first, stop, (stage, classes, lower), size)
        code, _ = decode(data, first, stop)
        place = cell(code, stage)
        if lower[place] == 0 and upper[place] == 0:
            looks &= ~SINGLE  # a letter without a case is a whole name as a rule, and a digit is no initial
        token = hash_word(form, size)
        flags = find_public(cells, chain(zero, token))
        words[n, START], words[n, END], words[n, LOOKS] = first, stop, looks
        words[n, FLAGS], words[n, HASH] = flags if looks & WORD else np.int64(0), 0
        whole = chain(whole, token)
        n += 1
        p = after
    return n, comma, find_public(cells, whole)


@compiled
def _tell(data: Any, entries: Any, lists: Any, letters: Any, words: Any, turned: Any, found: Any) -> Int:
    """Split names into parts as :func:`parts_of_listed` does; return the number of parts.

    `entries` int64[n, 4] are where the text of each begins, where the name does, where it ends, and its kind. `words` int64[w,
    5] and `turned` are work space. Fills (begin, end, kind, name) of `found` int64[m, 5]; it has room for all words.
    """
    form, m = np.zeros(FORM, np.uint8), np.int64(0)
    chars = (letters[0], letters[1])
    for entry in range(entries.shape[0]):
        begin, start, end, kind = entries[entry]
        n, comma, flags = _read_name(data, start, end, lists, letters, form, words)
        if n == 0:
            continue
        if kind != OF_PERSONS:
            city, region = class_of(flags, CITY), class_of(flags, REGION)
            found[m, 0], found[m, 1], found[m, 3] = words[0, START], words[n - 1, END], entry
            found[m, 2] = REGION if region > 0 and region >= city else CITY
            m += 1
            continue
        first = m
        if comma > 0:
            # The part before the comma comes last in a name.
            for k in range(n):
                for column in range(words.shape[1]):
                    turned[k, column] = words[(k + comma) % n, column]
            turned[n - comma - 1, FLAGS] &= ~np.int64(PARTICLE)  # no word of the name is behind it
            m = add_person(turned, 0, n, False, found, m, 0)
            for k in range(first + 1, m):  # in the order of the text
                at = k
                while at > first and found[at - 1, 0] > found[at, 0]:
                    for column in range(3):
                        swapped = found[at, column]
                        found[at, column] = found[at - 1, column]
                        found[at - 1, column] = swapped
                    at -= 1
        else:
            titled = n == 1 and _is_titled(data, begin, start, lists, chars, form)
            m = add_person(words, 0, n, titled, found, m, 0)
        for k in range(first, m):
            found[k, 3] = entry
    return m


def parts_of_listed(data: U8, begins: I64, starts: I64, ends: I64, kinds: I64) -> I64:
    """Return int64[m, 4]: beginning and end of each part of some names in the bytes of a batch, its kind and its name.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        begins: int64[n], where the text of each name begins.
        starts: int64[n], where the name does, ascending.
        ends: int64[n], where it ends.
        kinds: int64[n], positions in `NAME_TYPES`.

    Returns:
        In the order of the texts; kinds are positions in :data:`~dptext_spark.text.names.public_names.KINDS`.
    """
    chars, lists = tables(), (public_lists(), folding())
    letters = (chars.stage, chars.classes, chars.lower, chars.upper)
    words, turned = np.empty((2, MOST_WORDS, 5), np.int64)
    # A word has a byte, and another byte precedes the next word.
    parts = np.empty((int(np.minimum(MOST_WORDS, (ends - starts) // 2 + 1).sum()), 5), np.int64)
    entries = np.stack([begins, starts, ends, kinds], axis=1)
    return parts[: _tell(data, entries, lists, letters, words, turned, parts), :4]


OWN = MOST_LISTS + 1  # the number of the first list of a row
_NO_ROOT = np.uint64(0)  # what the hashes of the lists of all rows begin with


@compiled
def _longest(
    data: Any, word: Any, end: Int, root: Int, cells: Any, letters: Any, form: Any
) -> tuple[Int, Int, Int]:
    """Follow the entries that begin with a word: (end, list, where to go on behind it) of the longest; end -1: there is none.

    `word` is (its hash, where it ends, where to go on behind it), `root` what the hashes of entries begin with. `letters` are
    (character tables, folding), as :func:`find_names` takes them, and `form` uint8[FORM] work space.
    """
    chars, fold = letters
    token, stop, p = word
    state = chain(root, token)
    ended, list_, behind = np.int64(-1), np.int64(0), p
    while True:
        flags = find_hash(cells, state)
        if flags & ENDS:
            ended, list_, behind = stop, flags >> LIST_SHIFT, p
        if not flags & GOES_ON:
            break
        start, stop, after, size = next_word(data, p, end, chars, fold, form)
        between = joint(data, p, start, chars, False)
        if size <= 0 or between == APART:
            break
        if between != JOINED:
            state = chain(state, between)
            if not find_hash(cells, state) & GOES_ON:
                break
        state = chain(state, hash_word(form, size))
        p = after
    return ended, list_, behind


@compiled
def _longest_entry(
    data: Any, start: Int, word: Any, end: Int, titled: bool, root: Int, cells: Any, letters: Any, form: Any
) -> tuple[Int, Int, Int, Int]:
    """Find the longest entry at a word that begins at `start`, or at the word behind it if it is a title (`titled`).

    The others are as for :func:`_longest`. Returns (end, begin, list, where to go on behind it); end -1: none.
    """
    _, stop, after = word
    ended, list_, behind = _longest(data, word, end, root, cells, letters, form)
    if titled and ended <= stop:
        begin, stop, then, size = next_word(data, after, end, letters[0], letters[1], form)
        if size > 0 and joint(data, after, begin, letters[0], True) == JOINED:
            token = hash_word(form, size)
            longer, number, far = _longest(data, (token, stop, then), end, root, cells, letters, form)
            if longer > stop:
                return longer, begin, number, far
            surname = find_hash(cells, chain(chain(root, AFTER_TITLE), token))
            if surname & ENDS:
                return stop, begin, surname >> LIST_SHIFT, then
    return ended, start, list_, behind


@compiled
def _in_stretch(
    data: Any, p: Int, word: Any, end: Int, root: Int, cells: Any, letters: Any, form: Any
) -> tuple[Int, Int]:
    """Return (end, list) of the longest entry that begins at the piece at `p`; end -1: none.

    `word` is (where its word ends, where to go on behind that); the others are as for :func:`_longest`.
    """
    chars, fold = letters
    stop, after = word
    state, ended, list_ = chain(root, IN_STRETCH), np.int64(-1), np.int64(0)
    while True:
        _, spelt, p, size = next_piece(data, p, stop, chars, fold, form)
        if size == 0:
            break
        state = chain(state, hash_word(form, size))
        flags = find_hash(cells, state)
        if flags & ENDS:
            ended, list_ = spelt, flags >> LIST_SHIFT
        if flags & GOES_ON == 0:
            break
        _, _, _, size = next_piece(data, p, stop, chars, fold, form)
        if size == 0:
            p, stop, behind, size = next_word(data, after, end, chars, fold, form)
            if size < 0:
                break
            between = joint(data, after, p, chars, False)
            if between == APART:
                break
            state = chain(state, BETWEEN)
            if between != JOINED:
                state = chain(state, between)
                if find_hash(cells, state) & GOES_ON == 0:
                    break
            after = behind
    return ended, list_


@inlined
def _masks_alone(list_: Int, number: Int, masking: Any) -> Any:
    """Check that the row's own list `number` masks an entry that list `list_` of all rows keeps."""
    return (list_ >= masking[0]) & (number < masking[1])


@compiled
def _entries_within(
    data: Any, word: Any, end: Int, row: Int, roots: Any, tables_: Any, masking: Any, letters: Any, found: Any, n: Int
) -> tuple[Int, Int]:  # fmt: skip
    """Find the entries amid the letters of a word; return the place behind it and the number of entries so far.

    `word` is (begin, end, where to go on behind it). `roots` are what the hashes of entries begin with, in the lists of all rows
    and in the row's own (0: it has none), `tables_` the cells of both, and `masking` how many of each mask. `found` is filled
    from `n` on.
    """
    form = np.zeros(FORM, np.uint8)
    p, stop, after = word
    while p < stop:
        start, _, behind, size = next_piece(data, p, stop, letters[0], letters[1], form)
        if behind == p:
            break
        p = behind
        if size == 0:
            continue
        ended, list_ = _in_stretch(data, start, (stop, after), end, roots[0], tables_[0], letters, form)
        if roots[1] != _NO_ROOT:
            longer, number = _in_stretch(data, start, (stop, after), end, roots[1], tables_[1], letters, form)
            if longer > ended or (0 <= longer == ended and _masks_alone(list_, number, masking)):
                ended, list_ = longer, number + OWN
        if ended < 0:
            continue
        if n < found.shape[0]:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = start, ended, list_, row
        n += 1
        p = ended
    return max(p, after), n


@compiled
def find_names(
    data: Any, rows: Any, every: Any, own: Any, roots: Any, masking: Any, letters: Any, found: Any
) -> Int:
    """Find the entries of lists, fill those that fit, and return the number of all.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        rows: int64[r + 1].
        every: uint64[2^m], the cells of the lists of all rows, see :class:`NameTable`.
        own: uint64[2^m], those of the lists of each row.
        roots: uint64[r], what the hashes of a row's own entries begin with; of no rows: none has any.
        masking: of the lists of all rows, and of those of each, how many mask; of two equal entries what masks counts.
        letters: ((stage, classes) of the character tables, folding).
        found: int64[n, 4], filled: (begin, end, list, text), the lists of each row with `OWN` added.
    """
    form, n = np.zeros(FORM, np.uint8), np.int64(0)
    # Whether an entry may occur amid the letters of a word.
    amid = find_hash(every, chain(_NO_ROOT, IN_STRETCH)) != 0
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        root = roots[row] if roots.shape[0] > 0 else _NO_ROOT
        within = amid or (root != _NO_ROOT and find_hash(own, chain(root, IN_STRETCH)) != 0)
        while True:
            while p < end and data[p] < 0x30:  # spaces and marks, before most words
                p += 1
            start = p
            stop, token = plain_word(data, p, end)
            after, size = stop, stop - p
            if stop < 0:
                start, stop, after, size = next_word(data, p, end, letters[0], letters[1], form)
                if size < 0:
                    break
                token = hash_word(form, size)
            p = after
            ended, begin, list_, flags, own_flags = np.int64(-1), start, np.int64(0), np.int64(0), np.int64(0)
            if size > 0:  # else it is too long for an entry, but may contain one
                flags = find_hash(every, chain(_NO_ROOT, token))
                if root != _NO_ROOT:
                    own_flags = find_hash(own, chain(root, token))
            word, titled = (token, stop, after), flags & TITLE != 0
            if flags != 0:
                ended, begin, list_, p = _longest_entry(
                    data, start, word, end, titled, _NO_ROOT, every, letters, form
                )
            if own_flags != 0 or (titled and root != _NO_ROOT):
                longer, first, number, behind = _longest_entry(
                    data, start, word, end, titled, root, own, letters, form
                )
                better: Any = longer > ended or (longer == ended and first < begin)
                if longer == ended and first == begin and longer >= 0:
                    better = _masks_alone(list_, number, masking)
                if better:
                    ended, begin, list_, p = longer, first, number + OWN, behind
            if ended >= 0:
                if n < found.shape[0]:
                    found[n, 0], found[n, 1], found[n, 2], found[n, 3] = begin, ended, list_, row
                n += 1
            elif within and has_unspaced(data, start, stop):
                whole = (start, stop, after)
                p, n = _entries_within(
                    data, whole, end, row, (_NO_ROOT, root), (every, own), masking, letters, found, n
                )
            else:
                p = after
    return n


@dataclass(frozen=True, eq=False)
class NameMatcher:
    """Finds lists of names in a batch, as a provider of identifiers. They are private, and no part of a model or its fingerprint.

    Attributes:
        table: the lists of all rows; it may hold none.
        own: the lists that each row of a batch has of its own; None where there are none.
        rows: int64[texts], the row of each text; None: text i is of row i.
        masked: whether the texts hold what the lists masked already, so that only those that keep are looked for.
    """

    table: NameTable
    own: NameTable | None = None
    rows: I64 | None = None
    masked: bool = False
    name: str = "lists of names"

    @property
    def types(self) -> tuple[str, ...]:
        """Types of masked entries, and of the parts of names that have pseudonyms."""
        return (*LIST_TYPES, *LISTED_KINDS) if (self._kind_of_list >= 0).any() else LIST_TYPES

    @cached_property
    def _kind_of_list(self) -> I64:
        """Return int64[...], by the number of a list the position of its kind in `NAME_TYPES`; -1: it has no pseudonyms."""
        kinds = np.full(OWN + MOST_LISTS + 1, -1, np.int64)
        for first, table in ((0, self.table), (OWN, self.own)):
            for number, use in enumerate(() if table is None else table.uses):
                if use in NAME_TYPES:
                    kinds[first + number] = NAME_TYPES.index(use)
        return kinds

    def of_rows(self, rows: I64) -> NameMatcher:
        """Return the matcher for texts of these rows, int64[r]; by default text i is of row i."""
        return self if self.own is None else replace(self, rows=rows)

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the places of the entries in texts."""
        return self.find_in(*padded(texts))

    def entries_in(self, data: U8, rows: I64) -> I64:
        """Return int64[n, 4]: beginning and end of each entry in the bytes of a batch, its list, and its text.

        Args:
            data: uint8[...], the bytes of the texts, padded.
            rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].

        Returns:
            The numbers of the lists of each row begin at `OWN`.
        """
        chars, own = tables(), self.own or NameTable(np.zeros(1, np.uint64))
        roots = np.zeros(0, np.uint64)
        if self.own is not None:
            of_row = np.arange(len(rows) - 1) if self.rows is None else self.rows
            roots = of_row.astype(np.uint64) + np.uint64(1)
        letters = ((chars.stage, chars.classes), folding())
        taken = (read_only(self.table.cells), read_only(own.cells), roots)
        room = 1024 + len(data) // 16
        while True:
            entries = np.empty((room, 4), np.int64)
            count = find_names(data, rows, *taken, (self.table.masking, own.masking), letters, entries)
            if count <= room:
                return entries[:count]
            room = count

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Find the entries in the padded bytes of a batch: whole ones, or parts with pseudonyms."""
        starts, ends, lists, row = self.entries_in(data, rows).T
        own = 0 if self.own is None else self.own.masking
        clear = lists >= np.where(lists < OWN, self.table.masking, OWN + own)
        kinds = self._kind_of_list[lists]
        if self.masked:
            row, starts, ends, clear, kinds = (column[clear] for column in (row, starts, ends, clear, kinds))
        types = np.zeros(len(row), np.int64)
        wholes = np.full(len(row), -1, np.int64)
        named = np.flatnonzero(kinds >= 0)
        if len(named):
            parts = parts_of_listed(data, rows[row[named]], starts[named], ends[named], kinds[named])
            entry = named[parts[:, 3]]
            others = np.flatnonzero(kinds < 0)
            starts, ends = (
                np.append(whole[others], part)
                for whole, part in zip((starts, ends), parts.T[:2], strict=True)
            )
            types = np.append(types[others], len(LIST_TYPES) + parts[:, 2])
            wholes = np.append(wholes[others], entry)
            which = np.append(others, entry)
            order = np.argsort(starts, kind="stable")
            starts, ends, types, wholes, which = (
                column[order] for column in (starts, ends, types, wholes, which)
            )
            row, clear = row[which], clear[which]
        shift = rows[row]
        return TypedSpans(row, starts - shift, ends - shift, types, clear, wholes)
