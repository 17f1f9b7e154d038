"""Find the entries of compiled lists in a batch: the longest at each word, from left to right, in one compiled pass.

The words of a phrase are joined by spaces, one hyphen or one middle dot, or by the marks that stand between them in its entry,
never by a line break. A stop that the entry lacks stands after initials and titles only. In scripts without spaces an entry may
begin and end amid the letters of a word that is none as a whole: there the longest is taken at each piece, from left to right.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8, read_only
from dptext_spark.lexicon.characters import tables
from dptext_spark.runtime.jit import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.text.identifiers.normalize import has_unspaced
from dptext_spark.text.names.name_table import (
    AFTER_TITLE,
    BETWEEN,
    ENDS,
    GOES_ON,
    IN_STRETCH,
    LIST_SHIFT,
    MOST_LISTS,
    QUICK,
    REMEMBERED_BITS,
    TITLE,
    NameTable,
    find_hash,
    may_begin,
    mix_of,
)
from dptext_spark.text.names.normal_words import (
    APART,
    FORM,
    JOINED,
    joint,
    next_piece,
    next_word,
    siphash,
    siphash_short,
)
from dptext_spark.text.tokenizer import letters_of

WINDOW = 57  # bytes whose bits are looked at together
OWN = MOST_LISTS + 1  # the number of the first list of a row
_CASE = np.uint64(0x2020202020202020)
_TOP = np.uint64(0x8080808080808080)
_LOW7 = np.uint64(0x00FFFFFFFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
# What is left of the first eight bytes of a word, and of the next eight, by its size.
_FIRST = np.array([(1 << 8 * min(size, 8)) - 1 for size in range(QUICK)], np.uint64)
_SECOND = np.array([(1 << 8 * max(size - 8, 0)) - 1 for size in range(QUICK)], np.uint64)
_ONES = np.uint64(0x0101010101010101)
_DIGIT0, _DIGIT9 = np.uint64(0x50) * _ONES, np.uint64(0x46) * _ONES
_GATHER = np.uint64(0x0102040810204080)


@compiled
def _longest(
    data: Any, p: Int, end: Int, state: Int, flags: Int, names: Any, chars: Any, form: Any
) -> tuple[Int, Int, Int]:
    """Follow the entries that begin with the words before `p`, of hash `state`.

    Returns:
        (end, flags, where to go on behind it) of the longest; -1 where there is none.
    """
    k0, k1, cells, shift, fold = names
    ended, found, behind = np.int64(-1), np.int64(0), p
    while flags & GOES_ON:
        start, stop, after, size = next_word(data, p, end, chars, fold, form)
        if size <= 0:
            break
        between = joint(data, p, start, chars, False)
        if between == APART:
            break
        if between != JOINED:
            state = siphash_short(k0, k1, state, np.uint64(between), np.uint64(0), 1)
            if find_hash(cells, shift, state) & GOES_ON == 0:
                break
        state = siphash(k0, k1, state, form, size)
        flags = find_hash(cells, shift, state)
        if flags & ENDS:
            ended, found, behind = stop, flags, after
        p = after
    return ended, found, behind


@compiled
def _entry(
    data: Any,
    word: Any,
    end: Int,
    root: Int,
    state: Int,
    flags: Int,
    titled: bool,
    names: Any,
    chars: Any,
    form: Any,
) -> tuple[Int, Int, Int, Int]:
    """Find the longest entry at a word, or at the word behind it, where it is a title.

    Args:
        data: uint8[...], the bytes of the texts.
        word: (begin, end, where to go on behind it).
        end: of the text.
        root: what entries begin with.
        state: the hash of the word.
        flags: what that hash is in the lists.
        titled: whether the word is a title.
        names: the lists, as :func:`find_names` takes them.
        chars: (stage, classes).
        form: uint8[FORM], work space.

    Returns:
        (begin, end, flags, where to go on behind it); end -1: none.
    """
    k0, k1, cells, shift, fold = names
    start, stop, after = word
    ended, held = (stop, flags) if flags & ENDS else (np.int64(-1), np.int64(0))
    longer, longest, behind = _longest(data, after, end, state, flags, names, chars, form)
    if longer >= 0:
        return start, longer, longest, behind
    if titled:
        begin, stop, then, size = next_word(data, after, end, chars, fold, form)
        if size > 0 and joint(data, after, begin, chars, True) == JOINED:
            title = siphash_short(k0, k1, root, np.uint64(AFTER_TITLE), np.uint64(0), 1)
            surname = find_hash(cells, shift, siphash(k0, k1, title, form, size))
            state = siphash(k0, k1, root, form, size)
            longer, longest, behind = _longest(
                data, then, end, state, find_hash(cells, shift, state), names, chars, form
            )
            if longer >= 0:
                return begin, longer, longest, behind
            if surname & ENDS:
                return begin, stop, surname, then
    return start, ended, held, after


@compiled
def _in_stretch(
    data: Any, p: Int, word: Any, end: Int, root: Int, names: Any, chars: Any, form: Any
) -> tuple[Int, Int]:
    """Return (end, flags) of the longest entry that begins at the piece at `p`, or -1.

    Args:
        data: uint8[...], the bytes of the texts.
        p: where a piece begins.
        word: (where its word ends, where to go on behind that).
        end: of the text.
        root: what the pieces of entries begin with.
        names: the lists, as :func:`find_names` takes them.
        chars: (stage, classes).
        form: uint8[FORM], work space.
    """
    k0, k1, cells, shift, fold = names
    stop, after = word
    state, ended, found = root, np.int64(-1), np.int64(0)
    while True:
        _, spelt, p, size = next_piece(data, p, stop, chars, fold, form)
        if size == 0:
            break
        state = siphash(k0, k1, state, form, size)
        flags = find_hash(cells, shift, state)
        if flags & ENDS:
            ended, found = spelt, flags
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
            state = siphash_short(k0, k1, state, np.uint64(BETWEEN), np.uint64(0), 1)
            if between != JOINED:
                state = siphash_short(k0, k1, state, np.uint64(between), np.uint64(0), 1)
                if find_hash(cells, shift, state) & GOES_ON == 0:
                    break
            after = behind
    return ended, found


@inlined
def _masks_alone(list_: Int, number: Int, masking: Any) -> Any:
    """Whether of two equal entries that of the text's own list `number` masks, and that of list `list_` of all texts keeps."""
    return (list_ >= masking[0]) & (number < masking[1])


@compiled
def _within(
    data: Any, word: Any, end: Int, row: Int, roots: Any, names: Any, own: Any, masking: Any, chars: Any, found: Any, n: Int
) -> tuple[Int, Int]:  # fmt: skip
    """Find the entries amid the letters of a word; return where to go on behind it, and how many are found by now.

    Args:
        data: uint8[...], the bytes of the texts.
        word: (begin, end, where to go on behind it).
        end: of the text.
        row: the text.
        roots: what the pieces of entries begin with, in the lists of all and in the text's own; 0: it has none.
        names: the lists of all, as :func:`find_names` takes them.
        own: those of the text, the same way.
        masking: how many of each mask.
        chars: (stage, classes).
        found: int64[n, 4], filled as :func:`find_names` does.
        n: how many are found before.
    """
    form = np.zeros(FORM, np.uint8)
    p, stop, after = word
    while p < stop:
        start, _, behind, size = next_piece(data, p, stop, chars, names[4], form)
        if behind == p:
            break
        p = behind
        if size == 0:
            continue
        ended, held = _in_stretch(data, start, (stop, after), end, roots[0], names, chars, form)
        list_ = held >> LIST_SHIFT
        if roots[1] != 0:
            longer, also = _in_stretch(data, start, (stop, after), end, roots[1], own, chars, form)
            number = also >> LIST_SHIFT
            if longer > ended or (0 <= longer == ended and _masks_alone(list_, number, masking)):
                ended, list_ = longer, number + OWN
        if ended < 0:
            continue
        if n < found.shape[0]:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = start, ended, list_, row
        n += 1
        p = ended
    return max(p, after), n


@inlined
def _packed(marks: Int) -> Int:
    """Return bit 7 of each of the eight bytes of `marks`, uint64, as the bits of one byte."""
    return ((marks >> np.uint64(7)) * _GATHER) >> np.uint64(56)


@inlined
def _of_eight(word: Int) -> tuple[Int, Int]:
    """Return which of eight bytes are ASCII letters, and which are digits or not ASCII: eight bits each, as uint64."""
    low = word & ~_TOP
    digits = (low + _DIGIT0) & ~(low + _DIGIT9)
    return _packed(letters_of(word)), _packed((digits | word) & _TOP)


@compiled
def _mark(data: Any, rows: Any, letters: Any, begins: Any) -> None:
    """Fill a bit for each byte: whether an ASCII letter stands there, and whether a word may begin there; uint8[n] each.

    A word may begin where a run of ASCII letters does, at a digit, and at whatever is not ASCII.
    """
    here, others = _of_eight(load64(data, 0))
    letters[0] = here
    begins[0] = (here & ~(here << np.uint64(1))) | others
    for i in range(1, (rows[-1] + 7) >> 3):
        here, others = _of_eight(load64(data, i << 3))
        before, _ = _of_eight(load64(data, (i << 3) - 1))
        letters[i] = here
        begins[i] = (here & ~before) | others
    for row in range(rows.shape[0] - 1):
        p = rows[row]
        begins[p >> 3] |= letters[p >> 3] & (1 << (p & 7))


@inlined
def _from(bits: Any, p: Int) -> Int:
    """Return the bits of a batch from the p-th on, 57 of them or more."""
    return load64(bits, p >> 3) >> np.uint64(p & 7)


@inlined
def _word(data: Any, start: Int, end: Int, letters: Any) -> tuple[Int, bool]:
    """Return the size of the run of ASCII letters at `start`, and whether it is a word by itself that is soon looked up."""
    run = min(trailing_zeros(~_from(letters, start)), end - start)
    after = start + run
    c = np.int64(data[np.uint64(after)]) * np.int64(after != end)
    # A single letter may be an initial, which keeps its stop.
    return run, (0 < run < QUICK) & (c < 128) & (c != 0x27) & ((run > 1) | (c != 0x2E))


@inlined
def _two(data: Any, start: Int, size: Int, case: Int) -> tuple[Int, Int]:
    """Return the `size` < `QUICK` bytes from `start` on as two numbers, zeros behind them, the bits `case` set before."""
    first, second = load64(data, start) | case, load64(data, start + 8) | case
    return first & _FIRST[np.uint64(size)], second & _SECOND[np.uint64(size)]


@inlined
def _elsewhere(known: Any, place: Int, first: Int, second: Int) -> Int:
    """Return which of the other three places of a word, whose first is `place`, holds it, with whatever flags; `place`: none."""
    held = place
    for step in (2, 4, 6):
        way = place ^ np.uint64(step)
        same = (known[way] == first) & (known[way + np.uint64(1)] & _LOW7 == second)
        held ^= np.uint64(step) * np.uint64(same)
    return held


@compiled
def _skip(data: Any, p: Int, end: Int, marks: Any, known: Any, wanted: Int) -> Int:
    """Pass over words that are known to begin no entry; return where the first other word of data[p:end] begins, or `end`.

    Args:
        data: uint8[...], the bytes of the texts.
        p: where to begin.
        end: of the text.
        marks: (letters, begins), as :func:`_mark` fills them.
        known: as :func:`find_names` takes it.
        wanted: the first words of the row's own entries, see :func:`may_begin`.
    """
    letters, begins = marks
    one = np.uint64(1)
    while p < end:
        ahead = _from(begins, p) & (_ALL >> np.uint64(64 - min(WINDOW, end - p)))
        while ahead != 0:
            start = p + trailing_zeros(ahead)
            ahead &= ahead - one
            run, quick = _word(data, start, end, letters)
            if not quick:
                return start
            first, second = _two(data, start, run, _CASE)
            mixed = mix_of(first, second)
            place = mixed >> np.uint64(64 - REMEMBERED_BITS) << one
            # Nothing beside the letters: no flags.
            if (known[place] != first) | (known[place + one] != second):
                other = _elsewhere(known, place, first, second)
                if (other == place) | (known[other + one] != second):
                    return start
                known[other], known[other + one] = known[place], known[place + one]
                known[place], known[place + one] = first, second
            if wanted != 0 and may_begin(wanted, mixed):
                return start
        p += WINDOW
    return end


@compiled
def _flags_of(known: Any, first: Int, second: Int, size: Int, names: Any) -> Int:
    """Return the flags of a short word: from where it is remembered, else from the lists, and it is remembered then.

    There are four places for a word, side by side, the first of which is looked at before the others. What stood there moves to
    where the word was; of a new word, to one that is free, or the last of them.
    """
    k0, k1, cells, shift, _ = names
    one = np.uint64(1)
    place = mix_of(first, second) >> np.uint64(64 - REMEMBERED_BITS) << one
    if known[place] == first and known[place + one] & _LOW7 == second:
        return np.int64(known[place + one] >> np.uint64(56))
    other = _elsewhere(known, place, first, second)
    held = known[other + one]
    if other == place:
        flags = find_hash(cells, shift, siphash_short(k0, k1, np.uint64(0), first, second, size))
        held = second | (np.uint64(flags) << np.uint64(56))
        other = place ^ np.uint64(2)
        for step in (4, 6):
            if known[other] != 0:
                other = place ^ np.uint64(step)
    known[other], known[other + one] = known[place], known[place + one]
    known[place], known[place + one] = first, held
    return np.int64(held >> np.uint64(56))


@compiled
def find_names(
    data: Any, rows: Any, names: Any, own: Any, masking: Any, chars: Any, known: Any, found: Any
) -> Int:
    """Find the entries of lists; return how many there are, of which as many as there is room for are filled.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        rows: int64[r + 1].
        names: (key, key, cells uint64[2^m], shift, folding) of the lists that all texts have, see :class:`NameTable`.
        own: (cells uint64[2^m], shift, roots uint64[r], firsts uint64[rows]) of those of each text, hashed by the same keys; of
            no roots: none.
        masking: of the lists of all, and of those of each text, how many mask; of two equal entries what masks counts.
        chars: (stage, classes) of the character tables.
        known: what is remembered of short words, see :meth:`NameTable.remembered`; added to.
        found: int64[n, 4], filled: (begin, end, list, text), the lists of each text with `OWN` added.
    """
    k0, k1, cells, shift, fold = names
    own_cells, own_shift, roots, firsts = own
    form = np.zeros(FORM, np.uint8)
    zero, one = np.uint64(0), np.uint64(1)
    # Whether an entry may stand amid the letters of a word, and what its pieces begin with.
    pieces = siphash_short(k0, k1, zero, np.uint64(IN_STRETCH), zero, 1)
    amid = find_hash(cells, shift, pieces) & GOES_ON != 0
    room = (data.shape[0] >> 3) + 16
    marks = np.zeros(room, np.uint8), np.zeros(room, np.uint8)
    _mark(data, rows, *marks)
    n = np.int64(0)
    for row in range(rows.shape[0] - 1):
        p, end = rows[row], rows[row + 1]
        # Of the first words of the row's own entries; 0: it has none.
        root = roots[row] if roots.shape[0] > 0 else zero
        wanted = firsts[root - one] if zero < root <= firsts.shape[0] else zero
        while p < end:
            start = _skip(data, p, end, marks, known, wanted)
            if start == end:
                break
            run, quick = _word(data, start, end, marks[0])
            stretch = False
            if quick:
                stop = after = start + run
                size = run
                first, second = _two(data, start, run, _CASE)
            else:
                start, stop, after, size = next_word(data, start, end, chars, fold, form)
                if size < 0:
                    break
                stretch = (amid or wanted != 0) and has_unspaced(data, start, stop)
                if size == 0 and not stretch:
                    p = after
                    continue
                first, second = _two(form, 0, min(size, QUICK - 1), zero)
            flags, own_flags, state, own_state = np.int64(0), np.int64(0), zero, zero
            if size == 0:
                pass  # too long for an entry, and one may stand in it
            elif size < QUICK:
                flags = _flags_of(known, first, second, size, names)
                state = siphash_short(k0, k1, zero, first, second, size) if flags & GOES_ON else zero
                if may_begin(wanted, mix_of(first, second)):
                    own_state = siphash_short(k0, k1, root, first, second, size)
                    own_flags = find_hash(own_cells, own_shift, own_state)
            else:
                state = siphash(k0, k1, zero, form, size)
                flags = find_hash(cells, shift, state)
                if wanted != 0:
                    own_state = siphash(k0, k1, root, form, size)
                    own_flags = find_hash(own_cells, own_shift, own_state)
            p = after
            if flags == 0 and own_flags == 0 and not stretch:
                continue
            titled, word = flags & TITLE != 0, (start, stop, after)
            begin, ended, list_ = start, np.int64(-1), np.int64(0)
            if flags & (GOES_ON | TITLE):
                begin, ended, held, after = _entry(
                    data, word, end, zero, state, flags, titled, names, chars, form
                )
                list_ = held >> LIST_SHIFT
            elif flags & ENDS:
                ended, list_ = stop, flags >> LIST_SHIFT
            if wanted != 0 and (own_flags != 0 or titled):
                theirs = (k0, k1, own_cells, own_shift, fold)
                also, longer, held, then = _entry(
                    data, word, end, root, own_state, own_flags, titled, theirs, chars, form
                )
                number = held >> LIST_SHIFT
                better: Any = longer > ended or (longer == ended and also < begin)
                if longer == ended and also == begin and longer >= 0:
                    better = _masks_alone(list_, number, masking)
                if better:
                    begin, ended, list_, after = also, longer, number + OWN, then
            if ended < 0 and stretch:
                own_pieces = zero
                if wanted != 0:
                    own_pieces = siphash_short(k0, k1, root, np.uint64(IN_STRETCH), zero, 1)
                theirs = (k0, k1, own_cells, own_shift, fold)
                both = (pieces, own_pieces)
                p, n = _within(data, word, end, row, both, names, theirs, masking, chars, found, n)
                continue
            if ended < 0:
                continue
            if n < found.shape[0]:
                found[n, 0], found[n, 1], found[n, 2], found[n, 3] = begin, ended, list_, row
            n += 1
            p = after
    return n


class OwnNames(NamedTuple):
    """The lists that each row has of its own.

    Attributes:
        table: compiled by the key of the lists of all rows, with the rows of their entries.
        masking: how many of them mask.
        rows: int64[texts], the row of each text; None: text i is of row i.
    """

    table: NameTable
    masking: int
    rows: I64 | None = None


def names_in(
    data: U8, rows: I64, names: NameTable, masking: int = MOST_LISTS, own: OwnNames | None = None
) -> I64:
    """Return int64[n, 4]: where each entry of the lists begins and ends in the bytes of a batch, its list, and its text.

    Args:
        data: uint8[...], the bytes of the texts, padded.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        names: the lists of all texts.
        masking: how many of them mask.
        own: the lists of each row; their numbers begin at `OWN`.
    """
    chars = tables()
    cells, stage, folds = (read_only(part) for part in (names.cells, names.stage, names.folds))
    taken = (names.key[0], names.key[1], cells, names.shift, (stage, folds))
    none = np.zeros(0, np.uint64)
    theirs = (read_only(none), 0, none, read_only(none))
    if own is not None:
        texts = np.arange(len(rows) - 1) if own.rows is None else own.rows
        theirs = (
            read_only(own.table.cells),
            own.table.shift,
            texts.astype(np.uint64) + np.uint64(1),
            read_only(own.table.firsts),
        )
    both = (masking, 0 if own is None else own.masking)
    room = 1024 + len(data) // 16
    with names.remembered() as known:
        while True:
            found = np.empty((room, 4), np.int64)
            count = find_names(data, rows, taken, theirs, both, (chars.stage, chars.classes), known, found)
            if count <= room:
                return found[:count]
            room = count
