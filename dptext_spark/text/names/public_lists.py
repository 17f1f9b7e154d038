"""The packaged public lists of names: given names, surnames, towns, countries and states, each with how likely it is a name.

They come from a census and from GeoNames (public/NOTICE; `python -m tools.names` makes them anew). For the
finder they are one table of hashes of normal words.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8, U64, Bools, read_only
from dptext_spark.lexicon.characters import look_up_form, tables
from dptext_spark.lexicon.vocabulary import Vocabulary, excluded_words
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.names.name_table import TITLES, WordList, find_cell, place_of
from dptext_spark.text.names.normal_words import FORM, chain, folding, hash_word, next_word
from dptext_spark.text.policy import packaged_stop_words

FOLDER = files("dptext_spark.text.names") / "public"
KINDS = ("given", "surname", "city", "region")
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
    """Return the class that the flags of a hash give it as a name of a kind, 0 where it is none."""
    return (flags >> (3 * kind)) & 7


@inlined
def find_public(cells: Any, hashed: Int) -> Int:
    """Return the flags of a hash of the public lists, 0 where they do not have it."""
    return find_cell(cells, hashed, TAG)


class Entries(NamedTuple):
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
    """Add entries to the cells, each with its flags; of two classes of an entry in a kind the higher counts."""
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
    """Return which words are likely names by the packaged lists, bool[V]: of class `LIKELY` or more in a kind, no stop words."""
    chars = tables()
    flags = np.empty(len(words), np.int64)
    data = np.concatenate([words.data, np.zeros(32, np.uint8)])
    looks = (chars.stage, chars.classes)
    _flags(data, read_only(words.offsets), looks, folding(), public_lists(), flags)
    likely = [(flags >> (3 * kind)) & 7 >= LIKELY for kind in range(len(KINDS))]
    return np.asarray(np.logical_or.reduce(likely) & (flags & STOP == 0))


@cache
def public_entries(kind: int) -> Entries:
    """Return the packaged names of a kind: the display form and the class of each line."""
    lines = (FOLDER / f"{KINDS[kind]}.txt").read_bytes().splitlines()
    names = [line[:-2] for line in lines]
    bounds = np.cumsum([0, *map(len, names)]).astype(np.int64)
    classes = np.frombuffer(b"".join(line[-1:] for line in lines), np.uint8).astype(np.int64) - ord("0")
    return Entries(np.frombuffer(b"".join(names), np.uint8), bounds, classes)


@cache
def public_lists() -> U64:
    """Return the packaged lists, with the words that tell what is no name, or that a name is near.

    Returns:
        uint64[2^m], hashes with their flags in the lowest 24 bits; 0 where none is. It cannot be written.
    """
    parts = [(public_entries(kind), kind) for kind in range(len(KINDS))]
    entries = [(one.data, one.bounds, one.classes << (3 * kind)) for one, kind in parts]
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
