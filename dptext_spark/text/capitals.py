"""Capitalised words within sentences, and which of them come out as they were: names that nobody looked for are among them.

A word is one as the engine cuts it: an entry of the tokens, or a word within a name that was found. It counts where its first
letter is a capital, it has two letters or more, no stop word that the policy keeps is it, and a word stands before it in its
sentence. A sentence ends with a line, or with one of `. ! ? : ; " |`, a quotation mark, a bullet, an ellipsis or a full stop of
Chinese and Japanese; the stop behind a single letter or a title ends none. The parts of a word with hyphens or apostrophes stand
where the word does.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dptext_spark.arrays import I32, I64, U8, U64, Bools, read_only
from dptext_spark.lexicon.characters import (
    APOSTROPHE,
    DIGIT,
    EXTEND,
    HYPHEN,
    LETTER,
    MARK,
    OTHER,
    cell,
    decode,
    lower_into,
    tables,
)
from dptext_spark.runtime.jit import Int, compiled, inlined
from dptext_spark.text.identifiers.finder import Found
from dptext_spark.text.identifiers.normalize import is_unspaced
from dptext_spark.text.lookup import (
    CAPITALS,
    CAPITALS_KEPT,
    DRAWN_OOV,
    FAST,
    IDENTIFIER,
    MARKED,
    MASKED_NUMBER,
    MASKED_OOV,
    RANDOM_NUMBER,
    behind_apostrophe,
    look_up_form,
)
from dptext_spark.text.names.normal_words import FORM, WIDEST, next_word
from dptext_spark.text.names.public_lists import TITLES_ONLY, public_lists
from dptext_spark.text.names.public_names import ENDS_SENTENCE
from dptext_spark.text.word_table import CLITIC, STOP, find_short

PERSONS, LOCATIONS, LISTED, NO_NAME = 0, 1, 2, -1
# Of words of names, by kind, and of capitalised words within sentences: how many were found, and how many came out as they were.
OF_STAYED = (
    *(f"{kind}_words{what}" for kind in ("person", "location", "listed") for what in ("", "_kept")),
    *("capitals", "capitals_kept"),
)
_FOUND, _KEPT = (OF_STAYED.index(name) for name in ("capitals", "capitals_kept"))
_ENDS = (*ENDS_SENTENCE, 0x3002, 0xFF01, 0xFF1F)
_LONGEST_TITLE = 8


@cache
def titles() -> U64:
    """Return the titles behind which a stop ends no sentence: uint64[n], their ASCII letters in lower case, ascending."""
    named = [one for one in TITLES_ONLY.split() if one.isascii() and len(one) <= _LONGEST_TITLE]
    return np.unique(np.array([int.from_bytes(one.encode(), "big") for one in named], np.uint64))


@compiled
def _before(data: Any, begin: Int, p: Int, stage: Any, classes: Any) -> tuple[Int, Int, Int]:
    """Return (where it begins, its code, its class) of the character that ends at p > begin; class -1 of what is no UTF-8."""
    q = p - 1
    while q > begin and data[q] & 0xC0 == 0x80:
        q -= 1
    code, _ = decode(data, q, p)
    return q, np.int64(code), np.int64(classes[cell(code, stage)]) if code >= 0 else np.int64(-1)


@compiled
def _abbreviates(data: Any, begin: Int, p: Int, stage: Any, classes: Any, known: Any) -> Any:
    """Whether a single letter or a title ends at p, where a stop stands."""
    letters, packed, plain = 0, np.uint64(0), True
    while p > begin and letters <= _LONGEST_TITLE:
        q, code, kind = _before(data, begin, p, stage, classes)
        if kind == MARK:
            p = q
            continue
        if kind != LETTER:
            break
        plain = plain and code < 128
        if plain and letters < _LONGEST_TITLE:
            packed |= np.uint64(code | 0x20) << np.uint64(8 * letters)
        letters += 1
        p = q
    if letters == 1:
        return True
    if not plain or letters > _LONGEST_TITLE:
        return False
    at = np.searchsorted(known, packed)
    return at < known.shape[0] and known[at] == packed


@inlined
def _is_letter(byte: Int) -> Any:
    """Whether a byte is an ASCII letter."""
    return (byte >= 0x61) & (byte <= 0x7A) | (byte >= 0x41) & (byte <= 0x5A)


@inlined
def _follows_a_word(data: Any, begin: Int, p: Int) -> Any:
    """Whether a space and an ASCII letter stand before p in its text, which tells most words within a sentence without a call."""
    return p > begin + 1 and data[p - 1] == 0x20 and _is_letter(data[p - 2])


@compiled
def within_sentence(data: Any, begin: Int, p: Int, stage: Any, classes: Any, known: Any) -> Any:
    """Whether a word stands before the one at p in its sentence, in a text that begins at `begin`."""
    while p > begin:
        q, code, kind = _before(data, begin, p, stage, classes)
        if kind == LETTER and is_unspaced(code):
            return True
        if kind != LETTER and kind != MARK and kind != EXTEND:
            if (kind != APOSTROPHE and kind != HYPHEN) or q == begin:
                break
            _, _, kind = _before(data, begin, q, stage, classes)
            if kind != LETTER and kind != MARK:
                break
        p = q
    while p > begin:
        q, code, kind = _before(data, begin, p, stage, classes)
        if kind == LETTER or kind == DIGIT or kind == MARK or kind == OTHER:
            return True
        if kind < 0 or 0x0A <= code <= 0x0D or code == 0x85 or 0x2028 <= code <= 0x2029:
            return False
        for mark in _ENDS:
            if code == mark and not (mark == 0x2E and _abbreviates(data, begin, q, stage, classes, known)):
                return False
        p = q
    return False


@compiled
def _is_capitalised(data: Any, p: Int, end: Int, stage: Any, classes: Any, lower: Any) -> Any:
    """Whether data[p:end] begins with a capital letter, and has two letters or more."""
    code, length = decode(data, p, end)
    if code < 0:
        return False
    place = cell(code, stage)
    if classes[place] != LETTER or lower[place] == 0:
        return False
    p += length
    while p < end:
        code, length = decode(data, p, end)
        if code < 0 or classes[cell(code, stage)] == LETTER:
            return code >= 0
        p += length
    return False


@compiled
def _is_stop(data: Any, begin: Int, start: Int, end: Int, table: Any, letters: Any, form: Any) -> Any:
    """Whether data[start:end], without the joiners at its end, is a stop word, or a clitic behind an apostrophe."""
    stage, classes, lower = letters[0], letters[1], letters[2]
    while end > start:
        p, _, kind = _before(data, start, end, stage, classes)
        if kind != EXTEND:
            break
        end = p
    size = lower_into(data, start, end, form, stage, lower)
    info = look_up_form(form, size, table) if size > 0 else np.int64(-1)
    if info < 0:
        return False
    return info >> 32 & STOP != 0 or (info >> 32 & CLITIC != 0 and behind_apostrophe(data, start, begin))


@compiled
def mark_capitals(
    data: Any, texts: Any, rows: Any, tokens: Any, keys: Any, n: Int, table: Any, letters: Any, known: Any, keeps_stop: bool,
    form: Any, counts: Any,
) -> None:  # fmt: skip
    """Mark the tokens that are capitalised words within sentences, and count them as found and as kept.

    Rebuilding takes off those that come out as others.

    Args:
        data: uint8[...], the batch, padded.
        texts: int64[texts + 1], where each begins.
        rows: int64[strips], the text of each strip.
        tokens: int64[n, 4], looked up or not, in order.
        keys: uint64[n, 2], of those that wait for their look-up.
        n: how many there are.
        table: the look-up table.
        letters: (stage, classes, lower, ...) of the character tables.
        known: see :func:`titles`.
        keeps_stop: whether stop words stay, which do not count.
        form: uint8[...], work space.
        counts: int32[strips, counters], added to.
    """
    stage, classes, lower = letters[0], letters[1], letters[2]
    for i in range(n):
        start, end, code = tokens[i, 0], tokens[i, 1], tokens[i, 2]
        # Most are told without a call.
        plain: Any = (data[start] >= 0x41) & (data[start] <= 0x5A)
        if not plain and data[start] < 128:
            continue
        if code == IDENTIFIER or code == RANDOM_NUMBER or code == MASKED_NUMBER:
            continue
        plain = plain & (start + 1 < end) & _is_letter(data[start + 1])
        if not plain and not _is_capitalised(data, start, end, stage, classes, lower):
            continue
        strip = tokens[i, 3] & 0xFFFFFFFF
        begin = texts[rows[strip]]
        if not _follows_a_word(data, begin, start) and not within_sentence(
            data, begin, start, stage, classes, known
        ):
            continue
        if keeps_stop and code < 0 and code != MASKED_OOV and code != DRAWN_OOV:
            info: Any = np.int64(-1)
            if code == FAST:
                info = find_short(table[0], table[1], keys[i, 0], keys[i, 1])
            if (info >= 0 and info >> 32 & STOP != 0) or (
                code != FAST and _is_stop(data, begin, start, end, table, letters, form)
            ):
                continue
        tokens[i, 3] |= MARKED
        counts[strip, CAPITALS] += 1
        counts[strip, CAPITALS_KEPT] += 1


@compiled
def _holds(text: Any, p: Int, end: Int, form: Any, size: Int, chars: Any, fold: Any, other: Any) -> Any:
    """Whether text[p:end] holds the normal word form[:size]."""
    while True:
        _, _, p, found = next_word(text, p, end, chars, fold, other)
        if found < 0:
            return False
        same = found == size
        for j in range(size):
            same = same and form[j] == other[j]
        if same:
            return True


@compiled
def _count_names(
    data: Any, rows: Any, spans: Any, kinds: Any, kept: Any, named: Any, text: Any, bounds: Any, letters: Any, fold: Any,
    known: Any, counts: Any,
) -> None:  # fmt: skip
    """Count the words of names, and the capitalised ones among them, as :func:`count_names` does."""
    stage, classes, lower = letters
    starts, ends, owners = spans
    form, other = np.zeros(FORM, np.uint8), np.zeros(FORM, np.uint8)
    for i in range(starts.shape[0]):
        kind, p, row = kinds[i], starts[i], owners[i]
        while kind >= 0:
            stays, start = kept[i], p
            while p < ends[i] and _is_letter(data[p]):
                p += 1
            plain: Any = (p > start) & (p == ends[i]) & (not named[i])
            if plain:  # most are told without a call
                capital = (data[start] <= 0x5A) & (p > start + 1)
            else:
                start, stop, p, size = next_word(data, start, ends[i], (stage, classes), fold, form)
                if size < 0:
                    break
                if named[i] and size > 0:
                    stays = _holds(text, bounds[i], bounds[i + 1], form, size, (stage, classes), fold, other)
                capital = _is_capitalised(data, start, stop, stage, classes, lower)
            counts[row, 2 * kind] += 1
            counts[row, 2 * kind + 1] += stays
            if capital:
                begin = rows[row]
                if _follows_a_word(data, begin, start) or within_sentence(
                    data, begin, start, stage, classes, known
                ):
                    counts[row, _FOUND] += 1
                    counts[row, _KEPT] += stays
            if plain:
                break


def count_names(found: Found, kinds: I64, named: Bools, text: U8, bounds: I64, counts: I32) -> None:
    """Count the words of names that were found, and those of them that came out as they were.

    A word that a list keeps does, one that is masked does not, and one that has a pseudonym does where that holds a word of the
    same normal form (:mod:`dptext_spark.text.names.normal_words`). A placeholder that stood in the text is no name.

    Args:
        found: in a batch.
        kinds: int64[types], what each type counts as: `PERSONS`, `LOCATIONS`, `LISTED` or `NO_NAME`.
        named: bool[n], which have pseudonyms.
        text: uint8[...], what takes the place of each.
        bounds: int64[n + 1], text[bounds[i]:bounds[i + 1]] that of span i.
        counts: int32[rows, n], added to in the order of `OF_STAYED`.
    """
    kind = np.where(found.kept, LISTED, kinds[found.types])
    kind[found.written] = NO_NAME
    if not (kind >= 0).any():
        return
    chars, spans = tables(), found.spans
    fold: tuple[Any, Any] = (np.zeros(0x110000 >> 7, np.uint16), np.zeros((128, WIDEST), np.int32))
    if named.any():  # only then are forms compared
        fold = (public_lists().stage, public_lists().folds)
    _count_names(
        spans.data, spans.rows, (spans.starts, spans.ends, spans.owners), kind, found.kept, named, text, bounds,
        (chars.stage, chars.classes, chars.lower), (read_only(fold[0]), read_only(fold[1])), read_only(titles()), counts,
    )  # fmt: skip
