"""Private lists of words and phrases, compiled under the run key: who lacks it reads no name from them.

An entry becomes hashes, one for each beginning of the phrase, by :func:`~dptext_spark.text.names.normal_words.siphash` under a
subkey of run key and run id. A phrase of several words may also be written with its last word first and a comma, with initials
before its last word, or as a title and its last word: "Ada Lovelace", "Lovelace, Ada", "A. Lovelace", "Dr. Lovelace". An entry
with one comma is the same name the other way round. Marks between words, as in "Smith & Sons", are hashed as words are: an
entry is found with them and without. One with a letter of a script without spaces is hashed piece by piece, too: it may stand
amid others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dptext_spark.arrays import I32, U8, U64, Bools
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.characters import tables
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.identifiers.normalize import has_unspaced
from dptext_spark.text.names.normal_words import (
    APART,
    FORM,
    JOINED,
    LONGEST,
    Folding,
    folding,
    joint,
    next_piece,
    next_word,
    siphash,
    siphash_short,
)
from dptext_spark.text.names.word_list import WordList

MOST_LISTS = 31
MOST_WORDS = 12  # of a phrase
NO_WORD, TOO_LONG, ONE_LETTER = 0, -1, -2  # in the place of how many words an entry has
ENDS, GOES_ON, TITLE = 1, 2, 4  # what a hash is: the end of an entry, a beginning of one, a title
LIST_SHIFT = 3
QUICK = 16  # bytes below which a word of ASCII letters is looked up as two numbers
REMEMBERED_BITS = 16  # words that a worker remembers, as a power of two: 1 MiB of them
MIX = np.uint64(0x9E3779B97F4A7C15)
TAG = np.uint64(0xFFFFFFFFFFFFFF00)
COMMA, AFTER_TITLE = 0x2C, 0x01  # stand for a word in a phrase
IN_STRETCH, BETWEEN = 0x02, 0x20  # stand before the pieces of an entry, and between those of two of its words
WRONG = {
    NO_WORD: "holds no letter or digit; valid: words and phrases",
    TOO_LONG: f"has more than {MOST_WORDS} words, or one of more than {LONGEST} bytes; valid: words, short phrases",
    ONE_LETTER: "is a single letter, which would be found everywhere; valid: words of two letters or more",
}
TITLES = (
    "dr mr mrs ms miss mx prof professor doctor sir dame lord lady rev reverend fr father sister brother capt captain col "
    "colonel gen general sgt sergeant judge justice sen senator rep governor president mister madam herr frau mme mlle monsieur "
    "madame sr sra srta señor señora don doña signor signora dott dra"
)


class EntryError(DataError):
    """An entry of a list can be none.

    Attributes:
        sound: bool[n], which entries of that list can be.
    """

    def __init__(self, message: str, sound: Bools) -> None:
        """Take a message that names the place of the first that cannot, and which can."""
        super().__init__(message)
        self.sound = sound


@inlined
def mix_of(first: Int, second: Int) -> Int:
    """Return a number of a word of fewer than `QUICK` bytes, by no key: its highest bits choose places in tables of a batch."""
    return ((first + second) * MIX ^ (first >> np.uint64(29))) * MIX


@inlined
def may_begin(wanted: Int, mixed: Int) -> Int:
    """Return 1 where a word of :func:`mix_of` `mixed` may be one that a row looks for, whose bits are `wanted`; else 0."""
    one = np.uint64(1)
    return wanted >> (mixed >> np.uint64(58)) & wanted >> (mixed >> np.uint64(36) & np.uint64(63)) & one


@compiled
def _bits_of(form: Any, size: Int) -> Int:
    """Return the two bits of a word among those of the first words that a row looks for, uint64; see :func:`may_begin`."""
    first, second = np.uint64(0), np.uint64(0)
    for i in range(min(size, 8)):
        first |= np.uint64(form[i]) << np.uint64(8 * i)
    for i in range(8, min(size, QUICK - 1)):
        second |= np.uint64(form[i]) << np.uint64(8 * (i - 8))
    mixed, one = mix_of(first, second), np.uint64(1)
    return one << (mixed >> np.uint64(58)) | one << (mixed >> np.uint64(36) & np.uint64(63))


@inlined
def place_of(cells: Any, shift: Int, found: Int, tag: Int) -> Int:
    """Return the slot of a hash by its bits of `tag`, or the empty one where it would stand."""
    slot, mask = np.int64(found >> np.uint64(shift)), cells.shape[0] - 1
    while cells[slot] != 0 and (cells[slot] ^ found) & tag != 0:
        slot = (slot + 1) & mask
    return slot


@inlined
def find_cell(cells: Any, shift: Int, found: Int, tag: Int) -> Int:
    """Return the flags that stand with a hash in the bits beside `tag`, 0 where it is not held."""
    return np.int64(cells[place_of(cells, shift, found, tag)] & ~tag)


@inlined
def find_hash(cells: Any, shift: Int, found: Int) -> Int:
    """Return the flags of a hash of private lists, 0 where it is not held."""
    return find_cell(cells, shift, found, TAG)


@dataclass(frozen=True, eq=False)
class NameTable:
    """Compiled lists.

    Attributes:
        key: uint64[2], of the hashes.
        cells: uint64[2^m], hashes with their flags in the lowest byte; 0 where none is.
        stage: uint16[8704], of the folding that it was made with.
        folds: int32[blocks * 128, 4].
        firsts: uint64[rows], where rows have lists of their own: bits for the first words of their entries; 0: it has none.
        digests: of each list, sha256: equal for equal entries under one key, in whatever order they stand.
    """

    key: U64
    cells: U64
    stage: np.ndarray
    folds: I32
    firsts: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    digests: tuple[str, ...] = ()
    _spare: list[U64] = field(default_factory=list, init=False, repr=False)

    def __getstate__(self) -> object:
        """Travel without what was remembered."""
        return self.__dict__ | {"_spare": []}

    @contextmanager
    def remembered(self) -> Iterator[U64]:
        """Yield what is remembered of short words from batch to batch, uint64[2^m]: most words of texts are few words.

        A word of fewer than `QUICK` bytes in normal form has two numbers, its flags in the last byte. Only one thread has them at
        a time.
        """
        try:
            held = self._spare.pop()
        except IndexError:
            size = 2 << REMEMBERED_BITS
            held = np.zeros(size + 8, np.uint64)
            # The four places of a word lie in one line of the cache.
            first = -held.ctypes.data % 64 // 8
            held = held[first : first + size]
        yield held
        self._spare.append(held)

    @cached_property
    def shift(self) -> int:
        """What a hash is shifted by for its first slot."""
        return 64 - (len(self.cells).bit_length() - 1)

    def packed(self) -> U64:
        """Return what a worker needs in one array, uint64[...]; the key is derived there."""
        stage, folds = (part.reshape(-1).view(np.uint64) for part in (self.stage, self.folds))
        return np.concatenate([np.array([len(self.cells), len(stage)], np.uint64), self.cells, stage, folds])

    @classmethod
    def unpacked(cls, packed: U64, key: U64) -> NameTable:
        """Return the lists of a packed array, which may be mapped from a file.

        Args:
            packed: uint64[...], as :meth:`packed` gives it.
            key: uint64[2], see :func:`name_key`.
        """
        cells, stage, folds = np.split(packed[2:], np.cumsum(packed[:2].astype(np.int64)))
        return cls(key, cells, stage.view(np.uint16), folds.view(np.int32).reshape(-1, 4))


@compiled
def _initial_of(form: Any, size: Int, initial: Any) -> Int:
    """Write the initial of a word with its stop into `initial`, uint8[8], and return its size."""
    width = np.int64(1)
    while width < size and form[width] & 0xC0 == 0x80:
        width += 1
    initial[:width] = form[:width]
    initial[width] = 0x2E
    return width + 1


@compiled
def _phrase(
    keys: Any, state: Int, words: Any, first: Int, last: Int, initials: bool, flag: Int, out: Any
) -> tuple[Int, Int]:
    """List the hashes of words first..last after `state`, the last with `flag`; return (its hash, how many are listed)."""
    forms, sizes = words
    hashes, flags, n = out
    initial = np.zeros(8, np.uint8)
    for i in range(first, last):
        form, size = forms[i], sizes[i]
        if initials:
            size = _initial_of(form, size, initial)
            form = initial
        state = siphash(keys[0], keys[1], state, form, size)
        if n < hashes.shape[0]:
            hashes[n], flags[n] = state, flag if i == last - 1 else GOES_ON
        n += 1
    return state, n


@compiled
def _as_written(keys: Any, state: Int, words: Any, gaps: Any, count: Int, flag: Int, out: Any) -> Int:
    """List the hashes of a phrase with the marks between its words, the last with `flag`; return how many are listed."""
    forms, sizes = words
    hashes, flags, n = out
    for i in range(count):
        if gaps[i] != JOINED:
            state = siphash_short(keys[0], keys[1], state, np.uint64(gaps[i]), np.uint64(0), 1)
            if n < hashes.shape[0]:
                hashes[n], flags[n] = state, GOES_ON
            n += 1
        state = siphash(keys[0], keys[1], state, forms[i], sizes[i])
        if n < hashes.shape[0]:
            hashes[n], flags[n] = state, flag if i == count - 1 else GOES_ON
        n += 1
    return n


@compiled
def _pieces(
    keys: Any, root: Int, data: Any, p: Int, end: Int, chars: Any, fold: Any, marks: bool, flag: Int, out: Any
) -> Int:
    """List the hashes of the pieces of the entry data[p:end], with the marks between its words or without, the last with `flag`.

    Returns:
        How many are listed.
    """
    hashes, flags, n = out
    form = np.zeros(FORM, np.uint8)
    state, within = root, np.uint64(IN_STRETCH)
    while True:
        before = p
        q, stop, p, size = next_word(data, p, end, chars, fold, form)
        if size < 0:
            break
        state = siphash_short(keys[0], keys[1], state, within, np.uint64(0), 1)
        if marks and within == BETWEEN:
            between = joint(data, before, q, chars, False)
            if between != JOINED:
                if n < hashes.shape[0]:
                    hashes[n], flags[n] = state, GOES_ON
                n += 1
                state = siphash_short(keys[0], keys[1], state, np.uint64(between), np.uint64(0), 1)
        within, size = np.uint64(BETWEEN), np.int64(0)
        while True:
            if n < hashes.shape[0]:
                hashes[n], flags[n] = state, GOES_ON
            n += 1
            _, _, q, size = next_piece(data, q, stop, chars, fold, form)
            if size == 0:
                break
            state = siphash(keys[0], keys[1], state, form, size)
    if n <= hashes.shape[0]:
        flags[n - 1] = flag
    return n


@compiled
def _hashes(
    data: Any,
    bounds: Any,
    roots: Any,
    number: Int,
    keys: Any,
    chars: Any,
    fold: Any,
    words: Any,
    out: Any,
    firsts: Any,
) -> Int:
    """List the hashes of all entries; return how many there are, of which as many as there is room for are listed.

    Args:
        data: uint8[...], entries in UTF-8.
        bounds: int64[entries + 1].
        roots: uint64[entries], what stands before the first word of each; of no length: 0.
        number: of the list.
        keys: uint64[2].
        chars: (stage, classes).
        fold: (stage, cells).
        words: int32[entries], filled with how many each has; `NO_WORD`, `TOO_LONG` or `ONE_LETTER` of an entry that is refused.
        out: (hashes uint64[n], flags uint8[n]).
        firsts: uint64[rows], as :class:`NameTable` has it, filled where there are roots.
    """
    forms, sizes = np.zeros((MOST_WORDS, FORM), np.uint8), np.zeros(MOST_WORDS, np.int64)
    turned, theirs, gaps = np.zeros_like(forms), np.zeros_like(sizes), np.zeros_like(sizes)
    hashes, flags = out
    ends = np.int64(ENDS) | (number << LIST_SHIFT)
    initial = np.zeros(8, np.uint8)
    n = np.int64(0)
    for entry in range(bounds.shape[0] - 1):
        p, end, count = bounds[entry], bounds[entry + 1], np.int64(0)
        marked, comma, apart = 0, np.int64(0), False
        while True:
            place: Int = min(count, MOST_WORDS - 1)
            before = p
            begin, _, p, size = next_word(data, p, end, chars, fold, forms[place])
            if size < 0:
                break
            if size == 0 or count == MOST_WORDS:
                count = np.int64(TOO_LONG)
                break
            sizes[count], gaps[count] = size, np.int64(JOINED)
            if count > 0:
                gaps[count] = joint(data, before, begin, chars, False)
                marked += gaps[count] != JOINED
                apart |= gaps[count] == APART
                if gaps[count] == COMMA:
                    comma = count
            count += 1
        if count == 1 and (sizes[0] == 1 or forms[0, sizes[0] - 1] == 0x2E):
            count = np.int64(ONE_LETTER)
        words[entry] = count
        if count <= 0:
            continue
        root, last, held = roots[entry] if roots.shape[0] else np.uint64(0), count - 1, (forms, sizes)
        _, n = _phrase(keys, root, held, 0, count, False, ends, (hashes, flags, n))
        spelt = marked > 0 and not apart
        if spelt:
            n = _as_written(keys, root, held, gaps, count, ends, (hashes, flags, n))
        if marked == 1 and comma > 0:
            # The surname first, and the others behind its comma: it is found as if it were written the other way round, too.
            for i in range(count):
                of: Int = (i + comma) % count
                turned[i], theirs[i] = forms[of], sizes[of]
            held = (turned, theirs)
            _, n = _phrase(keys, root, held, 0, count, False, ends, (hashes, flags, n))
        if root > 0:
            short = _initial_of(held[0][0], held[1][0], initial)
            begins = _bits_of(held[0][0], held[1][0]) | _bits_of(held[0][last], held[1][last])
            begins |= _bits_of(initial, short) | _bits_of(forms[0], sizes[0])
            firsts[root - np.uint64(1)] |= begins
        if has_unspaced(data, bounds[entry], end):
            n = _pieces(keys, root, data, bounds[entry], end, chars, fold, False, ends, (hashes, flags, n))
            if spelt:
                n = _pieces(keys, root, data, bounds[entry], end, chars, fold, True, ends, (hashes, flags, n))
        if count == 1:
            continue
        # The last word first, and a comma; then the others, or their initials.
        state, n = _phrase(keys, root, held, last, count, False, GOES_ON, (hashes, flags, n))
        state = siphash_short(keys[0], keys[1], state, np.uint64(COMMA), np.uint64(0), 1)
        if n < hashes.shape[0]:
            hashes[n], flags[n] = state, GOES_ON
        n += 1
        for initials in (False, True):
            _, n = _phrase(keys, state, held, 0, last, initials, ends, (hashes, flags, n))
        # The initials of the others before the last word; of several the first alone, or its initial.
        for most, initials in ((last, True), (np.int64(1), True), (np.int64(1), False)):
            if most == last and not initials:
                continue
            state, n = _phrase(keys, root, held, 0, most, initials, GOES_ON, (hashes, flags, n))
            _, n = _phrase(keys, state, held, last, count, False, ends, (hashes, flags, n))
        state = siphash_short(keys[0], keys[1], root, np.uint64(AFTER_TITLE), np.uint64(0), 1)
        _, n = _phrase(keys, state, held, last, count, False, ends, (hashes, flags, n))
    return n


@compiled
def _fill(hashes: Any, flags: Any, cells: Any, shift: Int) -> None:
    """Put hashes into slots; flags of equal ones are joined, and the lower list keeps an end that two lists have."""
    for i in range(hashes.shape[0]):
        slot = place_of(cells, shift, hashes[i], TAG)
        held = np.uint8(cells[slot] & np.uint64(0xFF))
        joined = held | flags[i]
        if held & ENDS and flags[i] & ENDS:
            list_ = min(held >> LIST_SHIFT, flags[i] >> LIST_SHIFT)
            joined = np.uint8((held | flags[i]) & (ENDS | GOES_ON | TITLE)) | np.uint8(list_ << LIST_SHIFT)
        cells[slot] = (hashes[i] & TAG) | np.uint64(joined)


def name_key(key: RunKey, run_id: str) -> U64:
    """Return the subkey of the hashes of a run's lists, uint64[2]."""
    return np.frombuffer(key.derive("lists of names", run_id, length=16), "<u8").astype(np.uint64)


def compile_names(lists: Sequence[WordList], key: U64, roots: Sequence[U64] | None = None) -> NameTable:
    """Compile lists.

    Args:
        lists: at most `MOST_LISTS`. Where two have an entry, the first counts.
        key: uint64[2], see :func:`name_key`.
        roots: of each list uint64[n], one more than the row that each entry counts in; None: all count in all rows.

    Raises:
        SettingsError: too many lists.
        EntryError: an entry without a word, of a single letter, or with too many or too long words; the message names its place.
    """
    if len(lists) > MOST_LISTS:
        raise SettingsError(
            f"policy.mask: {len(lists)} lists given, with those of policy.keep; valid: at most {MOST_LISTS}."
        )
    fold, chars = folding(), tables()
    looks = (chars.stage, chars.classes)
    rows = 0 if roots is None else int(max((one.max(initial=0) for one in roots), default=0))
    firsts = np.zeros(rows, np.uint64)
    parts = [
        _hashed(one, number, key, looks, fold, firsts, None if roots is None else roots[number])
        for number, one in enumerate(lists)
    ]
    held, _ = _hashed(WordList.of("titles", TITLES.encode().split()), 0, key, looks, fold, firsts)
    hashes = np.concatenate([held, *(part[0] for part in parts)])
    flags = np.concatenate([np.full(len(held), TITLE, np.uint8), *(part[1] for part in parts)])
    distinct = [np.unique(part[0]) for part in parts]
    size = 1 << max(8, int(1.6 * sum(map(len, [held, *distinct]))).bit_length())
    cells = np.zeros(size, np.uint64)
    _fill(hashes, flags, cells, 64 - (size.bit_length() - 1))
    digests = tuple(hashlib.sha256(one.tobytes()).hexdigest() for one in distinct)
    return NameTable(key, cells, fold.stage, fold.cells, firsts, digests)


def _hashed(
    one: WordList,
    number: int,
    key: U64,
    looks: tuple[Any, Any],
    fold: Folding,
    firsts: U64,
    roots: U64 | None = None,
) -> tuple[U64, U8]:
    """Return the hashes of a list's entries and their flags."""
    words, none = np.zeros(len(one.bounds) - 1, np.int32), np.zeros(0, np.uint64)
    taken = (one.data, one.bounds, none if roots is None else roots, number, key, looks, tuple(fold), words)
    count = _hashes(*taken, (none, np.zeros(0, np.uint8)), firsts)
    wrong = np.flatnonzero(words <= 0)
    if len(wrong):
        place = int(one.places[wrong[0]]) + 1
        raise EntryError(f"{one.name}: entry {place:,} {WRONG[int(words[wrong[0]])]}.", words > 0)
    hashes, flags = np.empty(count, np.uint64), np.empty(count, np.uint8)
    _hashes(*taken, (hashes, flags), firsts)
    return hashes, flags
