"""The table of lists of names: hashes of their entries, in every way that a name is written.

An entry becomes hashes (:mod:`dptext_spark.text.names.normal_words`), one for each beginning of the phrase. A phrase of several
words may also be written with its last word first and a comma, with initials before its last word, or as a title and its last
word: "Ada Lovelace", "Lovelace, Ada", "A. Lovelace", "Dr. Lovelace". An entry with one comma is the same name the other way
round. Marks between words, as in "Smith & Sons", are hashed as words are: an entry is found with them and without. One with a
letter of a script without spaces is hashed piece by piece, too: it may stand amid others.

The table is one array, which the workers of a machine map from one file. It has no key: who holds it can test guesses.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, U64, read_only
from dptext_spark.errors import DataError, SettingsError, file_errors
from dptext_spark.lexicon.characters import tables
from dptext_spark.randomness import byte_view, is_bytes
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.identifiers.skeletons import has_unspaced
from dptext_spark.text.names.normal_words import (
    APART,
    FORM,
    JOINED,
    LONGEST,
    chain,
    folding,
    hash_word,
    joint,
    next_piece,
    next_word,
)
from dptext_spark.text.names.search import KEEP, MASK

MOST_ENTRIES = 20_000_000
LARGEST = 1 << 30  # bytes of a list
LONGEST_ENTRY = 1_000  # bytes
PADDING = 32
BLOCK = 1 << 20  # bytes that are looked at together before a file is read
AT_ONCE = 1 << 20  # entries that are decoded together
MOST_LISTS = 31
MOST_WORDS = 12  # of a phrase
MOST_TOKENS = MOST_WORDS * (LONGEST + 3)  # of a way to write one: its pieces, and the signs between words
NO_WORD, TOO_LONG, ONE_LETTER = 0, -1, -2  # in the place of how many words an entry has
ENDS, GOES_ON, TITLE = 1, 2, 4  # what a hash is: the end of an entry, a beginning of one, a title
LIST_SHIFT = 3
TAG = np.uint64(0xFFFFFFFFFFFFFF00)
COMMA, AFTER_TITLE = 0x2C, 0x01  # take the place of a word in a phrase
IN_STRETCH, BETWEEN = 0x02, 0x20  # stand before the pieces of an entry, and between those of two of its words
WRONG = {
    NO_WORD: "has no letter or digit. Choose words and phrases",
    TOO_LONG: f"has more than {MOST_WORDS} words, or a word of more than {LONGEST} bytes. Choose words and short phrases",
    ONE_LETTER: "is a single letter, and most texts have it. Choose words of two letters or more",
}
TITLES = (
    "dr mr mrs ms miss mx prof professor doctor sir dame lord lady rev reverend fr father sister brother capt captain col "
    "colonel gen general sgt sergeant judge justice sen senator rep governor president mister madam herr frau mme mlle monsieur "
    "madame sr sra srta señor señora don doña signor signora dott dra"
)


@dataclass(frozen=True, eq=False)
class WordList:
    """Entries of a list.

    Attributes:
        name: its name in errors; no entry is ever named.
        data: uint8[...], UTF-8, padded.
        bounds: int64[n + 1], entry i is data[bounds[i]:bounds[i + 1]].
        places: int64[n], the line or row of each in its source, from 0.
    """

    name: str
    data: U8
    bounds: I64
    places: I64

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.places)

    @property
    def digest(self) -> str:
        """A plain sha256 of the entries in their order. It distinguishes two readings and is shown nowhere."""
        return hashlib.sha256(self.data.tobytes() + self.bounds.tobytes()).hexdigest()

    @classmethod
    def of(cls, name: str, entries: Sequence[bytes]) -> WordList:
        """Return entries as a list."""
        bounds = np.cumsum([0, *(len(entry) for entry in entries)]).astype(np.int64)
        data = np.frombuffer(b"".join(entries) + bytes(PADDING), np.uint8)
        return cls(name, data, bounds, np.arange(len(entries)))

    @classmethod
    def of_texts(cls, name: str, texts: pa.Array, *, needed: bool = True) -> WordList:
        """Return the texts of a column as a list; NULL and blank ones are no entries.

        Args:
            name: what errors call it.
            texts: string, large_string or binary [n].
            needed: refuse a column without an entry.

        Raises:
            DataError: a column that is no text, or without an entry, or an entry that is no UTF-8 or too long.
        """
        if not is_bytes(texts.type):
            raise DataError(f"{name}: a column of type {texts.type} is not valid. Choose a text column.")
        offsets, content = byte_view(texts.fill_null(b"" if pa.types.is_binary(texts.type) else ""))
        low, high = int(offsets[0]), int(offsets[-1])
        return cls._checked(name, content[low:high], offsets[:-1] - low, offsets[1:] - low, needed)

    @classmethod
    def read(cls, name: str, path: str) -> WordList:
        """Read a file of an entry a line; blank lines are none.

        Raises:
            DataError: it cannot be read, is empty or too large, or a line is no UTF-8 or too long.
        """
        with file_errors(name, path), open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            check_size(name, _line_count(file), size, f" {path}")
            file.seek(0)
            data = np.fromfile(file, np.uint8, size)
        if data[:3].tobytes() == b"\xef\xbb\xbf":
            data = data[3:]
        breaks = np.flatnonzero(data == 0x0A)
        return cls._checked(name, data, np.append(0, breaks + 1), np.append(breaks, len(data)), True)

    @classmethod
    def _checked(cls, name: str, data: U8, starts: I64, ends: I64, needed: bool) -> WordList:
        """Drop blank entries, and refuse invalid lists; the work takes one byte of memory per byte."""
        places = np.flatnonzero(ends > starts)
        if len(places):
            # What stands between an entry and the next is blank.
            highest = np.maximum.reduceat(data, starts[places])
            places = places[highest > 0x20]
        starts, ends = starts[places], ends[places]
        if needed and not len(starts):
            raise DataError(f"{name}: no entry. Write one word or phrase a line.")
        check_size(name, len(starts), 0)
        sizes = ends - starts
        if int(sizes.max(initial=0)) > LONGEST_ENTRY:
            first = int(np.argmax(sizes > LONGEST_ENTRY))
            raise DataError(
                f"{name}: entry {places[first] + 1:,} has {sizes[first]:,} bytes. Choose at most {LONGEST_ENTRY:,}."
            )
        bounds = np.append(0, np.cumsum(sizes))
        turns = np.zeros(len(data) + 1, np.int8)
        turns[starts] += 1
        turns[ends] -= 1
        taken = np.cumsum(turns[:-1], dtype=np.int8).view(np.bool_)
        packed = np.zeros(int(bounds[-1]) + PADDING, np.uint8)
        packed[: bounds[-1]] = data[taken]
        for first in range(0, len(places), AT_ONCE):
            part = bounds[first : first + AT_ONCE + 1]
            try:
                packed[part[0] : part[-1]].tobytes().decode("utf-8")
            except UnicodeDecodeError as error:
                wrong = first + int(np.searchsorted(part, part[0] + error.start, side="right")) - 1
                raise DataError(f"{name}: entry {places[wrong] + 1:,} is not UTF-8.") from None
        return cls(name, packed, bounds, places)


def check_size(name: str, entries: int, size: int, path: str = "") -> None:
    """Refuse a source that is too large for a list.

    Args:
        name: what errors call it.
        entries: how many it has.
        size: in bytes; 0 where that is not known.
        path: of a file, behind a space.

    Raises:
        DataError: more than `MOST_ENTRIES`, or more than `LARGEST` bytes.
    """
    if size > LARGEST:
        raise DataError(f"{name}:{path} has {size:,} bytes. Choose at most {LARGEST:,}.")
    if entries > MOST_ENTRIES:
        raise DataError(f"{name}: {entries:,} entries are too many. Choose at most {MOST_ENTRIES:,}.")


def _line_count(file: BinaryIO) -> int:
    """Count the non-blank lines of a file, in blocks of `BLOCK` bytes, up to `LARGEST` bytes."""
    count, filled = 0, False
    for _ in range(0, LARGEST, BLOCK):
        block = np.frombuffer(file.read(BLOCK), np.uint8)
        if not len(block):
            break
        breaks = np.flatnonzero(block == 0x0A)
        starts = np.append(0, breaks + 1)
        filled_lines = np.maximum.reduceat(np.append(block, np.uint8(0)), starts) > 0x20
        filled_lines[0] |= filled
        count += int(filled_lines[:-1].sum())
        filled = bool(filled_lines[-1])
    return count + filled


@inlined
def place_of(cells: Any, hashed: Int, tag: Int) -> Int:
    """Return the slot of a hash by its bits of `tag`, or the empty slot where it would be."""
    mask = cells.shape[0] - 1
    slot = np.int64(hashed & np.uint64(mask))
    while cells[slot] != 0 and (cells[slot] ^ hashed) & tag != 0:
        slot = (slot + 1) & mask
    return slot


@inlined
def find_cell(cells: Any, hashed: Int, tag: Int) -> Int:
    """Return the flags of a hash, stored in the bits outside `tag`; 0 if the hash is missing."""
    return np.int64(cells[place_of(cells, hashed, tag)] & ~tag)


@inlined
def find_hash(cells: Any, hashed: Int) -> Int:
    """Return the flags of a hash of lists of names, 0 where it is not there."""
    return find_cell(cells, hashed, TAG)


@dataclass(frozen=True, eq=False)
class NameTable:
    """The hashes of lists of names.

    Attributes:
        cells: uint64[2^m], hashes with their flags in the lowest byte; 0 where none is.
        uses: what becomes of the entries of each list: `mask`, or `person` or `location` where they have pseudonyms of that
            kind, or `keep`. Those that are kept come last.
        digests: of each list, sha256: equal for equal entries in any order.
    """

    cells: U64
    uses: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()

    @property
    def masking(self) -> int:
        """Number of lists that do not keep."""
        return sum(use != KEEP for use in self.uses)

    @classmethod
    def of(
        cls,
        lists: Sequence[WordList],
        uses: Sequence[str] = (),
        rows: Sequence[I64] | None = None,
        check: Callable[[NameTable], None] | None = None,
    ) -> NameTable:
        """Hash lists.

        Args:
            lists: at most `MOST_LISTS`. Where two have an entry, the first counts.
            uses: of each; none: all mask.
            rows: of each list int64[n], the row whose own each entry is; None: all count in all rows.
            check: is called with the table of the valid entries before an invalid one is refused.

        Raises:
            SettingsError: too many lists.
            DataError: an entry without a word, of a single letter, or with too many or too long words; the message names its
                place.
        """
        if len(lists) > MOST_LISTS:
            raise SettingsError(
                f"policy.mask: {len(lists)} lists, with those of policy.keep, are too many. Choose at most {MOST_LISTS}."
            )
        parts = [
            _hashed(entries, number, None if rows is None else rows[number])
            for number, entries in enumerate(lists)
        ]
        titles, _, _ = _hashed(WordList.of("titles", TITLES.encode().split()), 0, None)
        distinct = [np.unique(hashes) for hashes, _, _ in parts]
        cells = np.zeros(1 << max(8, int(1.6 * sum(map(len, [titles, *distinct]))).bit_length()), np.uint64)
        _fill(titles, np.full(len(titles), TITLE, np.uint8), cells)
        for hashes, flags, _ in parts:
            _fill(hashes, flags, cells)
        digests = tuple(hashlib.sha256(hashes.tobytes()).hexdigest() for hashes in distinct)
        table = cls(read_only(cells), tuple(uses) or (MASK,) * len(lists), digests)
        if check is not None:
            check(table)
        for _, _, refusal in parts:
            if refusal:
                raise DataError(refusal)
        return table


def _hashed(entries: WordList, number: int, rows: I64 | None) -> tuple[U64, U8, str]:
    """Return the hashes of a list's valid entries, their flags, and the fault of the first invalid entry, if any."""
    words, chars = np.zeros(len(entries), np.int32), tables()
    roots = np.zeros(len(entries), np.uint64) if rows is None else rows.astype(np.uint64) + np.uint64(1)
    taken = (entries.data, entries.bounds, roots, number, (chars.stage, chars.classes), folding(), words)
    count = _hashes(*taken, (np.zeros(0, np.uint64), np.zeros(0, np.uint8)))
    hashes, flags = np.empty(count, np.uint64), np.empty(count, np.uint8)
    _hashes(*taken, (hashes, flags))
    refusal, wrong = "", np.flatnonzero(words <= 0)
    if len(wrong):
        place = int(entries.places[wrong[0]]) + 1
        refusal = f"{entries.name}: entry {place:,} {WRONG[int(words[wrong[0]])]}."
    return hashes, flags, refusal


@compiled
def _initial(form: Any, size: Int) -> Int:
    """Return the hash of a word's initial with its stop; the stop is written into the word."""
    width = np.int64(1)
    while width < size and form[width] & 0xC0 == 0x80:
        width += 1
    form[width] = 0x2E
    return hash_word(form, width + 1)


@compiled
def _add(root: Int, tokens: Any, count: Int, flag: Int, out: Any) -> Int:
    """List the hash of each beginning of tokens[:count], the last with `flag`; return how many are listed.

    `root` is the hash of the preceding words; `tokens` uint64 are hashes of words, and the joiners between them. `out` is (hashes
    uint64[m], flags uint8[m], how many are listed before); those without room are only counted.
    """
    hashes, flags, n = out
    for i in range(count):
        root = chain(root, tokens[i])
        if n < hashes.shape[0]:
            hashes[n], flags[n] = root, flag if i == count - 1 else GOES_ON
        n += 1
    return n


@compiled
def _pieces(data: Any, p: Int, end: Int, chars: Any, fold: Any, marks: bool, tokens: Any) -> Int:
    """Fill `tokens` with the pieces of the entry data[p:end], with the marks between its words or without; return how many."""
    n, within, form = np.int64(0), IN_STRETCH, np.zeros(FORM, np.uint8)
    while True:
        before = p
        q, stop, p, size = next_word(data, p, end, chars, fold, form)
        if size < 0:
            return n
        tokens[n] = within
        n += 1
        if marks and within == BETWEEN:
            between = joint(data, before, q, chars, False)
            if between != JOINED:
                tokens[n] = between
                n += 1
        within = BETWEEN
        while True:
            _, _, q, size = next_piece(data, q, stop, chars, fold, form)
            if size == 0:
                break
            tokens[n] = hash_word(form, size)
            n += 1


@compiled
def _hashes(
    data: Any, bounds: Any, roots: Any, number: Int, chars: Any, fold: Any, counts: Any, out: Any
) -> Int:
    """List the hashes of all entries that fit in `out`, (hashes uint64[n], flags uint8[n]); return the number of all.

    `roots` uint64[entries] is the hash before the first word of each. Fills `counts` int32[entries], how many words each has:
    `NO_WORD`, `TOO_LONG` or `ONE_LETTER` of an entry that is refused.
    """
    form, way = np.zeros(FORM, np.uint8), np.zeros(MOST_TOKENS, np.uint64)
    words, gaps = np.zeros(MOST_WORDS, np.uint64), np.zeros(MOST_WORDS, np.int64)
    initials, turned = np.zeros_like(words), np.zeros_like(words)
    hashes, flags = out
    ends = np.int64(ENDS) | (number << LIST_SHIFT)
    n = np.int64(0)
    for entry in range(bounds.shape[0] - 1):
        p, end, root, count = bounds[entry], bounds[entry + 1], roots[entry], np.int64(0)
        marked, comma, apart, letter = 0, np.int64(0), False, False
        while True:
            before = p
            begin, _, p, size = next_word(data, p, end, chars, fold, form)
            if size < 0:
                break
            if size == 0 or count == MOST_WORDS:
                count = np.int64(TOO_LONG)
                break
            letter = size == 1 or form[size - 1] == 0x2E
            words[count], gaps[count] = hash_word(form, size), JOINED
            initials[count] = _initial(form, size)
            if count > 0:
                gaps[count] = joint(data, before, begin, chars, False)
                marked += gaps[count] != JOINED
                apart |= gaps[count] == APART
                if gaps[count] == COMMA:
                    comma = count
            count += 1
        if count == 1 and letter:
            count = np.int64(ONE_LETTER)
        counts[entry] = count
        if count <= 0:
            continue
        n = _add(root, words, count, ends, (hashes, flags, n))
        spelt = marked > 0 and not apart
        if spelt:
            size = np.int64(0)
            for i in range(count):
                if gaps[i] != JOINED:
                    way[size] = gaps[i]
                    size += 1
                way[size] = words[i]
                size += 1
            n = _add(root, way, size, ends, (hashes, flags, n))
        if has_unspaced(data, bounds[entry], end):
            for marks in (False, True):
                if spelt or not marks:
                    size = _pieces(data, bounds[entry], end, chars, fold, marks, way)
                    n = _add(root, way, size, ends, (hashes, flags, n))
        if marked == 1 and comma > 0:
            # The surname first, and the others behind its comma: it is found as if it were written the other way round, too.
            for tokens in (words, initials):
                turned[:count] = tokens[:count]
                for i in range(count):
                    tokens[i] = turned[(i + comma) % count]
            n = _add(root, words, count, ends, (hashes, flags, n))
        if count == 1:
            continue
        others, last = count - 1, words[count - 1]
        # The last word first, and a comma; then the others, or their initials.
        way[0], way[1] = last, COMMA
        for tokens in (words, initials):
            way[2 : count + 1] = tokens[:others]
            n = _add(root, way, count + 1, ends, (hashes, flags, n))
        # The initials of the others before the last word; of several the first alone, or its initial.
        way[:others], way[others] = initials[:others], last
        n = _add(root, way, count, ends, (hashes, flags, n))
        for first in (words[0], initials[0], np.uint64(AFTER_TITLE)):
            way[0], way[1] = first, last
            n = _add(root, way, 2, ends, (hashes, flags, n))
    return n


@compiled
def _fill(hashes: Any, flags: Any, cells: Any) -> None:
    """Put hashes into slots. Flags of equal hashes are joined; the lower list keeps an end that two lists have."""
    for i in range(hashes.shape[0]):
        slot = place_of(cells, hashes[i], TAG)
        cell_flags = np.uint8(cells[slot] & np.uint64(0xFF))
        joined = cell_flags | flags[i]
        if cell_flags & ENDS and flags[i] & ENDS:
            list_ = min(cell_flags >> LIST_SHIFT, flags[i] >> LIST_SHIFT)
            joined = np.uint8((cell_flags | flags[i]) & (ENDS | GOES_ON | TITLE)) | np.uint8(
                list_ << LIST_SHIFT
            )
        cells[slot] = (hashes[i] & TAG) | np.uint64(joined)
