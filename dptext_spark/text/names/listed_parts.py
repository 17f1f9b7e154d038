"""The parts of names that lists hold, which have pseudonyms: as the search by public lists tells them.

A name of a person has a part for each word: a
single letter is an initial, a particle belongs to the word behind it, and the last word of several, what stands before a comma,
and a single word behind a title are surnames; another word is a given name where the public lists say so rather than a surname.
"Lovelace, Ada" has the parts of "Ada Lovelace". A place is one part, a country or state where the public lists hold it as one,
else a town.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.arrays import I64, U8
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
from dptext_spark.text.names.name_table import MOST_WORDS
from dptext_spark.text.names.normal_words import FORM, chain, folding, hash_word, next_word
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
    LOOKS,
    SINGLE,
    START,
    WORD,
    add_person,
    joins,
    look,
)
from dptext_spark.text.names.search import NAME_TYPES, PERSON

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
    cells, fold = lists
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
    return bool(find_public(cells, chain(np.uint64(0), hash_word(form, size))) & TITLE != 0)


@compiled
def _read_name(
    data: Any, start: Int, end: Int, lists: Any, letters: Any, form: Any, words: Any
) -> tuple[Int, Int, Int]:
    """Read the words of a name into `words`; return (how many, how many before a comma or 0, the flags of the whole)."""
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
            size -= 1  # the stop of an initial is no part of it
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
    """Tell the parts of names; return how many there are. See :func:`parts_of_listed`.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        entries: int64[n, 4]: where the text of each begins, where the name does, where it ends; its kind.
        lists: (cells uint64[2^m], folding) of the public lists.
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
    chars, lists = tables(), (public_lists(), folding())
    letters = (chars.stage, chars.classes, chars.lower, chars.upper)
    words, turned = np.empty((2, MOST_WORDS, 5), np.int64)
    # A word has a byte, and another stands before the next.
    found = np.empty((int(np.minimum(MOST_WORDS, (ends - starts) // 2 + 1).sum()), 5), np.int64)
    entries = np.stack([begins, starts, ends, kinds], axis=1)
    return found[: _tell(data, entries, lists, letters, words, turned, found), :4]
