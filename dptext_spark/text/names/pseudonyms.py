"""Pseudonyms: a keyed name of the same kind from the public lists in the place of each word of a name.

A given name becomes a given name, a surname a surname, a town a town, a country or state another, an initial a letter. Which
one depends on the key, the kind, the normal form of the word, and the record where the level is that of records; at token level
each mention has its own. So a full name, a title with the surname and an initial with it have one surname. No table is kept.
Two names may have one pseudonym: of n names of the kind, with probability 1/n. A pseudonym may be somebody's name, and it may be
the name itself, with probability 1/n. None is an obscenity or a slur (:mod:`dptext_spark.lexicon.vocabulary`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8, U64
from dptext_spark.lexicon.characters import LETTER, cell, decode, tables
from dptext_spark.lexicon.vocabulary import excluded_words
from dptext_spark.randomness import byte_view, hash_bytes
from dptext_spark.runtime.jit import compiled, mul_high
from dptext_spark.text.names.normal_words import FORM, folding, next_word
from dptext_spark.text.names.public_names import LISTS, public_entries

LETTERS = [chr(ord("A") + n) for n in range(26)]
SMALL, CAPITALISED, WHOLE = range(3)  # how a name is written


class KeyedNames(NamedTuple):
    """What pseudonyms are drawn from; equal in every run with the same key, lists and level.

    Attributes:
        hash_keys: the two keys for hashing names.
        draw: blocks uint64[n, 2] -> uint64[n, 2], by a subkey of its own.
    """

    hash_keys: tuple[np.uint64, np.uint64]
    draw: Callable[[U64], U64]


class Pool(NamedTuple):
    """The names of a kind that pseudonyms are drawn from, in three cases.

    Attributes:
        data: uint8[...], UTF-8.
        bounds: int64[3n + 1]; name i in case c is data[bounds[c * n + i]:bounds[c * n + i + 1]].
        size: n.
    """

    data: U8
    bounds: I64
    size: int


@cache
def pool(kind: int) -> Pool:
    """Return the pool of a kind: the single words among the public names that are fit to show, or the letters of initials."""
    if kind == len(LISTS):
        names = pa.array(LETTERS, pa.large_string())
    else:
        entries = public_entries(kind)
        whole = pa.Array.from_buffers(
            pa.large_string(),
            len(entries.classes),
            [None, pa.py_buffer(entries.bounds), pa.py_buffer(entries.data)],
        )
        names = whole.filter(pc.match_substring_regex(whole, r"^[\p{L}\p{M}]+$"))
        unfit = pa.array(sorted(excluded_words()), names.type)
        names = names.filter(pc.invert(pc.is_in(pc.utf8_lower(names), value_set=unfit)))
    cases = pa.concat_arrays([pc.utf8_lower(names), names, pc.utf8_upper(names)])
    bounds, data = byte_view(cases)
    return Pool(np.asarray(data, np.uint8), np.asarray(bounds, np.int64), len(names))


@compiled
def _read(
    data: Any, starts: Any, ends: Any, keys: Any, letters: Any, fold: Any, blocks: Any, cases: Any
) -> None:
    """Fill the hash of each name's normal words, uint64[n, 2], and how it is written, int64[n]."""
    stage, classes, lower = letters
    form, name = np.zeros(FORM, np.uint8), np.zeros(FORM, np.uint8)
    for k in range(starts.shape[0]):
        p, size = starts[k], np.int64(0)
        while True:
            _, _, p, more = next_word(data, p, ends[k], (stage, classes), fold, form)
            if more < 0:
                break
            if more > 0 and form[more - 1] == 0x2E:
                more -= 1
            need = size + more + 1
            if need > name.shape[0]:
                grown = np.zeros(2 * need, np.uint8)
                grown[:size] = name[:size]
                name = grown
            name[size : size + more] = form[:more]
            name[size + more] = 0x20
            size = need
        blocks[k, 0], blocks[k, 1] = hash_bytes(name, 0, size, keys[0], keys[1])
        count, capitals = 0, 0
        p = starts[k]
        while p < ends[k]:
            code, length = decode(data, p, ends[k])
            place = cell(code, stage) if code >= 0 else 0
            if code >= 0 and classes[place] == LETTER:
                count += 1
                capitals += lower[place] != 0
            p += length
        if count > 1 and capitals == count:
            cases[k] = WHOLE
        else:
            cases[k] = CAPITALISED if capitals else SMALL


@compiled
def _choose(draws: Any, kinds: Any, cases: Any, sizes: Any, chosen: Any) -> None:
    """Fill which name of its pool takes the place of each, int64[n], counted over the three cases."""
    for k in range(kinds.shape[0]):
        size = sizes[kinds[k]]
        chosen[k] = cases[k] * size + np.int64(mul_high(draws[k, 0], np.uint64(size)))


def pseudonyms(
    data: U8, places: tuple[I64, I64, I64], kinds: I64, identity: U64 | None, placed: bool, keyed: KeyedNames
) -> tuple[U8, I64]:
    """Make pseudonyms.

    Args:
        data: uint8[...], the bytes of the texts.
        places: (begin of the row, start, end) of each name, int64[n] each.
        kinds: int64[n], positions in `LISTS` of the lists; one more for an initial.
        identity: uint64[n, 2], of the row or the record of each; None where equal names of the dataset have one pseudonym.
        placed: whether the place in the text is part of what a draw is for.
        keyed: the draws.

    Returns:
        (text uint8[...], bounds int64[n + 1]): pseudonym k is text[bounds[k]:bounds[k + 1]].
    """
    begins, starts, ends = places
    chars = tables()
    blocks, cases = np.empty((len(kinds), 2), np.uint64), np.empty(len(kinds), np.int64)
    letters = (chars.stage, chars.classes, chars.lower)
    _read(data, starts, ends, keyed.hash_keys, letters, folding(), blocks, cases)
    blocks[:, 1] ^= kinds.astype(np.uint64) << np.uint64(56)
    if identity is not None:
        blocks ^= identity
    if placed:
        blocks[:, 1] ^= (starts - begins).astype(np.uint64)
    held = [pool(kind) for kind in range(len(LISTS) + 1)]
    chosen = np.empty(len(kinds), np.int64)
    _choose(keyed.draw(blocks), kinds, cases, np.array([one.size for one in held], np.int64), chosen)
    first, last = np.empty(len(kinds), np.int64), np.empty(len(kinds), np.int64)
    for kind, one in enumerate(held):
        here = kinds == kind
        first[here], last[here] = one.bounds[chosen[here]], one.bounds[chosen[here] + 1]
    bounds = np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64)
    owner = np.repeat(np.arange(len(kinds)), last - first)
    source = first[owner] + np.arange(bounds[-1]) - bounds[owner]
    text = np.empty(int(bounds[-1]), np.uint8)
    for kind, one in enumerate(held):
        here = kinds[owner] == kind
        text[here] = one.data[source[here]]
    return text, bounds
