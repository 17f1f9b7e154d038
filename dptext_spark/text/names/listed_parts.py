"""The lists of a run, ready to be looked for: what they mask becomes `[NAME]` or has pseudonyms, what they keep stays.

Names that have pseudonyms have parts, as the search by public lists tells them. A name of a person has a part for each word: a
single letter is an initial, a particle belongs to the word behind it, and the last word of several, what stands before a comma,
and a single word behind a title are surnames; another word is a given name where the public lists say so rather than a surname.
"Lovelace, Ada" has the parts of "Ada Lovelace". A place is one part, a country or state where the public lists hold it as one,
else a town.
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
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.matching import OWN, OwnNames, names_in
from dptext_spark.text.names.name_table import MOST_LISTS, MOST_WORDS, NameTable
from dptext_spark.text.names.normal_words import FORM, next_word, siphash
from dptext_spark.text.names.public_lists import (
    CITY,
    PARTICLE,
    REGION,
    TITLE,
    class_of,
    find_public,
    public_lists,
)
from dptext_spark.text.names.public_names import (
    END,
    FLAGS,
    HASH,
    LISTED_KINDS,
    LOOKS,
    SINGLE,
    START,
    WORD,
    add_person,
    joins,
    look,
)
from dptext_spark.text.names.search import LIST_TYPES, NAME_TYPES, PERSON

OF_PERSONS = NAME_TYPES.index(PERSON)


@compiled
def _before(data: Any, begin: Int, p: Int) -> Int:
    """Return where the character before data[p] begins, in a text that begins at `begin` < p."""
    p -= 1
    while p > begin and data[p] & 0xC0 == 0x80:
        p -= 1
    return p


@compiled
def _is_titled(data: Any, begin: Int, start: Int, lists: Any, chars: Any, form: Any) -> bool:
    """Whether a title stands before data[start], in a text that begins at `begin`, and nothing between that parts them."""
    stage, classes = chars
    cells, shift, fold = lists
    p = start
    while p > begin:
        q = _before(data, begin, p)
        code, _ = decode(data, q, p)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind != SPACE and kind != HYPHEN and code != 0x2E:
            break
        p = q
    while p > begin:
        q = _before(data, begin, p)
        code, _ = decode(data, q, p)
        kind = classes[cell(code, stage)] if code >= 0 else -1
        if kind != LETTER and kind != MARK and kind != EXTEND and kind != APOSTROPHE:
            break
        p = q
    _, _, after, size = next_word(data, p, start, chars, fold, form)
    if size <= 0 or not joins(data, after, start, chars, True)[0]:
        return False
    zero = np.uint64(0)
    return bool(find_public(cells, shift, siphash(zero, zero, zero, form, size)) & TITLE != 0)


@compiled
def _read_name(
    data: Any, start: Int, end: Int, lists: Any, letters: Any, form: Any, words: Any
) -> tuple[Int, Int, Int]:
    """Read the words of a name into `words`; return (how many, how many before a comma or 0, the flags of the whole)."""
    cells, shift, fold = lists
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
            size -= 1  # the stop of an initial is no part of it
            stop -= 1
        looks = look(data, first, first, stop, (stage, classes, lower), size)
        code, _ = decode(data, first, stop)
        place = cell(code, stage)
        if lower[place] == 0 and upper[place] == 0:
            looks &= ~SINGLE  # a letter without a case is a whole name as a rule, and a digit is no initial
        flags = find_public(cells, shift, siphash(zero, zero, zero, form, size))
        words[n, START], words[n, END], words[n, LOOKS] = first, stop, looks
        words[n, FLAGS], words[n, HASH] = flags if looks & WORD else np.int64(0), 0
        whole = siphash(zero, zero, whole, form, size)
        n += 1
        p = after
    return n, comma, find_public(cells, shift, whole)


@compiled
def _tell(data: Any, entries: Any, lists: Any, letters: Any, words: Any, turned: Any, found: Any) -> Int:
    """Tell the parts of names; return how many there are. See :func:`parts_of_listed`.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        entries: int64[n, 4]: where the text of each begins, where the name does, where it ends; its kind.
        lists: (cells uint64[2^m], shift, folding) of the public lists.
        letters: (stage, classes, lower, upper) of the character tables.
        words: int64[w, 5], work space, and `turned` likewise.
        turned: int64[w, 5].
        found: int64[m, 5], filled: (begin, end, kind, name) and no more; it has room for all words.
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
            # What stands before the comma comes last in a name.
            for k in range(n):
                for column in range(words.shape[1]):
                    turned[k, column] = words[(k + comma) % n, column]
            turned[n - comma - 1, FLAGS] &= ~np.int64(PARTICLE)  # no word of the name is behind it
            m = add_person(turned, 0, n, False, found, m, 0)
            for k in range(first + 1, m):  # in the order of the text
                at = k
                while at > first and found[at - 1, 0] > found[at, 0]:
                    for column in range(3):
                        held = found[at, column]
                        found[at, column] = found[at - 1, column]
                        found[at - 1, column] = held
                    at -= 1
        else:
            titled = n == 1 and _is_titled(data, begin, start, lists, chars, form)
            m = add_person(words, 0, n, titled, found, m, 0)
        for k in range(first, m):
            found[k, 3] = entry
    return m


def parts_of_listed(data: U8, begins: I64, starts: I64, ends: I64, kinds: I64) -> I64:
    """Return int64[m, 4]: where each part of some names begins and ends in the bytes of a batch, its kind, and its name.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        begins: int64[n], where the text of each name begins.
        starts: int64[n], where the name does, ascending.
        ends: int64[n], where it ends.
        kinds: int64[n], positions in `NAME_TYPES`.

    Returns:
        In the order of the texts; kinds are positions in :data:`~dptext_spark.text.names.public_names.KINDS`.
    """
    chars, known = tables(), public_lists()
    lists = (read_only(known.cells), known.shift, (read_only(known.stage), read_only(known.folds)))
    letters = (chars.stage, chars.classes, chars.lower, chars.upper)
    words, turned = np.empty((2, MOST_WORDS, 5), np.int64)
    # A word has a byte, and another stands before the next.
    found = np.empty((int(np.minimum(MOST_WORDS, (ends - starts) // 2 + 1).sum()), 5), np.int64)
    entries = np.stack([begins, starts, ends, kinds], axis=1)
    return found[: _tell(data, entries, lists, letters, words, turned, found), :4]


@dataclass(frozen=True, eq=False)
class Names:
    """Compiled lists as a provider of identifiers. They are private, and no part of a model or of its fingerprint.

    Attributes:
        table: the lists of all rows, those that mask first; it may hold none.
        masking: how many of them mask; the others keep.
        own: the lists that each row of a batch has of its own; None where there are none.
        masked: whether the texts hold what the first of the lists masked already, so that only the others are looked for.
        kinds: of each of the lists of all rows that mask, of what its entries are names, in `NAME_TYPES`, where they have
            pseudonyms; None where they are masked. Of no length: all are masked.
        own_kinds: the same of the lists that each row has of its own.
        name: as errors call them.
    """

    table: NameTable
    masking: int
    own: OwnNames | None = None
    masked: bool = False
    kinds: tuple[str | None, ...] = ()
    own_kinds: tuple[str | None, ...] = ()
    name: str = "lists of names"

    @property
    def types(self) -> tuple[str, ...]:
        """Of what is masked, and of the parts of names that have pseudonyms."""
        return (*LIST_TYPES, *LISTED_KINDS) if self._has_pseudonyms else LIST_TYPES

    @property
    def _has_pseudonyms(self) -> bool:
        return any(kind is not None for kind in (*self.kinds, *self.own_kinds))

    @cached_property
    def _kind_of_list(self) -> I64:
        """Return int64[...], by the number of a list the position of its kind in `NAME_TYPES`; -1: it has no pseudonyms."""
        found = np.full(OWN + MOST_LISTS + 1, -1, np.int64)
        for first, kinds in ((0, self.kinds), (OWN, self.own_kinds)):
            for number, kind in enumerate(kinds):
                if kind is not None:
                    found[first + number] = NAME_TYPES.index(kind)
        return found

    def of_rows(self, rows: I64) -> Names:
        """Return them for texts of these rows, int64[r]; without, text i is of row i."""
        return self if self.own is None else replace(self, own=self.own._replace(rows=rows))

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return where the entries stand in texts."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return where the entries stand in the bytes of a batch, which are padded: as wholes, or as parts with pseudonyms."""
        starts, ends, lists, row = names_in(data, rows, self.table, self.masking, self.own).T
        own = 0 if self.own is None else self.own.masking
        kept = lists >= np.where(lists < OWN, self.masking, OWN + own)
        kinds = self._kind_of_list[lists]
        if self.masked:
            row, starts, ends, kept, kinds = (column[kept] for column in (row, starts, ends, kept, kinds))
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
            row, kept = row[which], kept[which]
        shift = rows[row]
        return TypedSpans(row, starts - shift, ends - shift, types, kept, wholes)
