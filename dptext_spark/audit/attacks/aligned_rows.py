"""The words of rows and of their releases, in the form that a linkage attack compares: place by place.

A row is all its texts, one behind the other. Two rows can belong together only where each text has as many pieces (what lies
between spaces and holds a word) in both. Within a piece words are compared one by one, where it has as many on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I32, I64, U8, U64, Bools, offsets
from dptext_spark.audit.attacks.attacked_text import Level
from dptext_spark.text.engine import Engine
from dptext_spark.text.names.search import PSEUDONYM, NameSearch
from dptext_spark.text.policy import FAKE, NUMBER_MASK, OOV_MASK
from dptext_spark.text.tokens import DRAWN_WORD, KEPT_WORD, NO_WORD, NUMBER, UNKNOWN_WORD, Words, words_of

# Kinds of a source word: the law says what is released; the release has one form; it is any word of the lexicon; a placeholder;
# a placeholder or an invented name or identifier. The compiled loops read them.
LAW, EQUAL, UNIFORM, NAMED, FAKED = range(5)
# Kinds of a released word: drawn from the lexicon; a placeholder such as [OOV]; anything else.
DRAWN, PLACEHOLDER, OTHER = range(3)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class RowWords(NamedTuple):
    """The words on one side of some rows.

    Attributes:
        ids: int32[n], of the lexicon; below 0 for all else.
        form: uint64[n], keyed hash of the look-up form; of a source word of kind `EQUAL` that of what is released for it.
        plain: uint64[n], keyed hash of the word's own look-up form.
        kind: uint8[n], of a source or of a released word.
        first: int64[n], where the row holds the same drawn word before; -1: nowhere, or each occurrence is drawn.
        before: int32[n], the number of the word before it in the word table, -1 where punctuation or a text's beginning is.
        starts: int64[p + 1], piece i is the words starts[i]:starts[i + 1].
        pieces: int64[rows + 1], row i is the pieces pieces[i]:pieces[i + 1].
        shape: uint64[rows], equal for rows whose texts have equal numbers of pieces.
    """

    ids: I32
    form: U64
    plain: U64
    kind: U8
    first: I64
    before: I32
    starts: I64
    pieces: I64
    shape: U64

    @property
    def bounds(self) -> I64:
        """Row i is the words bounds[i]:bounds[i + 1]: int64[rows + 1]."""
        return self.starts[self.pieces]

    @property
    def rows(self) -> I64:
        """The row of each word, int64[n]."""
        return np.repeat(np.arange(len(self.shape)), np.diff(self.bounds))


def joined_rows(parts: Sequence[RowWords]) -> RowWords:
    """Put rows behind each other."""
    words = offsets([len(part.ids) for part in parts])
    pieces = offsets([len(part.starts) - 1 for part in parts])
    ids, form, plain, kind, before, shape = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ids", "form", "plain", "kind", "before", "shape")
    )
    first, starts, of_rows = (
        np.concatenate([np.where(values < 0, -1, values + shift) for values, shift in zip(columns, shifts, strict=True)])
        for columns, shifts in (
            ([part.first for part in parts], words[:-1]),
            ([part.starts[:-1] for part in parts], words[:-1]),
            ([part.pieces[:-1] for part in parts], pieces[:-1]),
        )
    )  # fmt: skip
    return RowWords(
        ids, form, plain, kind, first, before, np.append(starts, words[-1]), np.append(of_rows, pieces[-1]), shape
    )  # fmt: skip


def source_rows(
    engine: Engine, texts: Sequence[pa.Array], keys: tuple[np.uint64, np.uint64], level: Level
) -> RowWords:
    """Read the rows of a source: what the policy makes of each word.

    Args:
        engine: whose policy made the release.
        texts: a string array [rows] for each text column.
        keys: of the hashes.
        level: at which draws are shared.
    """
    policy, parts = engine.policy, [words_of(engine, column, keys) for column in texts]
    masks = words_of(without_names(engine), pa.array([OOV_MASK, NUMBER_MASK]), keys).form
    unknown_mask, number_mask = (masks[min(place, len(masks) - 1)] for place in (0, 1))
    kinds, forms = [], []
    for words in parts:
        kind = np.full(len(words.kind), EQUAL, np.uint8)
        kind[words.kind == DRAWN_WORD] = LAW
        kind[words.kind == NO_WORD] = FAKED if invents(engine) else NAMED
        form, unknown, number = words.form.copy(), words.kind == UNKNOWN_WORD, words.kind == NUMBER
        if policy.oov == "draw":
            kind[unknown] = UNIFORM
        elif policy.oov == "mask":
            form[unknown] = unknown_mask
        if policy.numbers == "mask":
            form[number] = number_mask
        elif policy.numbers == "random":
            form[number] = _lengths(words)[number]
        kinds.append(kind)
        forms.append(form)
    return _rows(parts, forms, kinds, None if level == "token" else LAW)


def released_rows(
    engine: Engine, texts: Sequence[pa.Array], keys: tuple[np.uint64, np.uint64], level: Level
) -> RowWords:
    """Read released rows; drawn words that are names as well stay words. Arguments as of :func:`source_rows`."""
    plain = without_names(engine)
    parts = [words_of(plain, column, keys) for column in texts]
    kinds, forms = [], []
    for words in parts:
        kind = np.full(len(words.kind), OTHER, np.uint8)
        kind[(words.ids >= 0) & (words.kind != KEPT_WORD)] = DRAWN
        form = words.form.copy()
        if engine.policy.numbers == "random":
            number = (words.kind == NUMBER) | ((words.kind == NO_WORD) & _numeric(words))
            form[number] = _lengths(words)[number]
        kind[_bracketed(words)] = PLACEHOLDER
        kinds.append(kind)
        forms.append(form)
    return _rows(parts, forms, kinds, None if level == "token" else DRAWN)


def without_names(engine: Engine) -> Engine:
    """Return an engine that looks for no names: a drawn word may be a name."""
    return replace(engine, policy=replace(engine.policy, names=NameSearch()), searches=(), providers=())


def invents(engine: Engine) -> bool:
    """Check that names or identifiers may become others of their kind."""
    policy, names = engine.policy, engine.policy.names
    return bool(
        engine.providers
        or policy.identifiers.wanted(FAKE)
        or (names and PSEUDONYM in (names.person, names.location))
    )


def _lengths(words: Words) -> U64:
    """Return a form for each word that reveals its length alone, uint64[n, 2]."""
    sizes = (words.spans.ends - words.spans.starts).astype(np.uint64)
    return np.stack([sizes, np.zeros_like(sizes)], axis=1)


def _numeric(words: Words) -> Bools:
    """Mark words that begin and end with a digit, bool[n]: a drawn number may read as an identifier, as in "[OOV]61547307"."""
    data, starts, ends = words.spans.data, words.spans.starts, words.spans.ends
    if not len(starts):
        return np.zeros(0, np.bool_)
    return np.asarray(((data[starts] ^ 0x30) < 10) & ((data[ends - 1] ^ 0x30) < 10))


def _bracketed(words: Words) -> Bools:
    """Mark words in square brackets, or with brackets inside, bool[n]."""
    data, starts, ends = words.spans.data, words.spans.starts, words.spans.ends
    if not len(starts):
        return np.zeros(0, np.bool_)
    around = (data[np.maximum(starts, 1) - 1] == ord("[")) & (data[ends] == ord("]"))  # texts are padded
    return np.asarray(around | ((data[starts] == ord("[")) & (data[ends - 1] == ord("]"))))


def _rows(parts: Sequence[Words], forms: Sequence[U64], kinds: Sequence[U8], shared: int | None) -> RowWords:
    """Join the columns of each row; of kind `shared` the first of equal words counts."""
    rows = len(parts[0].invalid)
    shape = np.zeros(rows, np.uint64)
    for words in parts:
        shape = (shape + np.diff(words.pieces).astype(np.uint64) + np.uint64(1)) * _SPREAD
    number = np.arange(rows)
    of_word = np.concatenate([np.repeat(number, np.diff(words.bounds)) for words in parts])
    of_piece = np.concatenate([np.repeat(number, np.diff(words.pieces)) for words in parts])
    by_word, by_piece = (np.argsort(owner, kind="stable") for owner in (of_word, of_piece))
    ids, before = (
        np.concatenate(column)[by_word].astype(np.int32)
        for column in ([words.ids for words in parts], [_words_before(words) for words in parts])
    )
    kind = np.concatenate(kinds)[by_word]
    form, plain = (
        _folded(np.concatenate(hashes)[by_word]) for hashes in (forms, [words.form for words in parts])
    )
    starts = offsets(np.concatenate([np.diff(words.starts) for words in parts])[by_piece])
    first = np.full(len(ids), -1, np.int64)
    at = np.flatnonzero(kind == shared) if shared is not None else np.zeros(0, np.int64)
    if len(at):
        pair = (of_word[by_word][at] << 32) + ids[at]
        _, index, place = np.unique(pair, return_index=True, return_inverse=True)
        earlier = at[index[place.reshape(-1)]]
        first[at] = np.where(earlier < at, earlier, -1)
    return RowWords(
        ids, form, plain, kind, first, before, starts,
        offsets(np.bincount(of_piece, minlength=rows)), shape,
    )  # fmt: skip


def _folded(hashes: U64) -> U64:
    return np.asarray(hashes[:, 0] ^ (hashes[:, 1] * _SPREAD))


def _words_before(words: Words) -> I32:
    """Return the number of the word before each in its text, int32[n]; -1 where punctuation or the beginning is."""
    before = np.append(-1, words.numbers[:-1])[: len(words.ids)]
    before[words.marked] = -1
    before[words.bounds[:-1][np.diff(words.bounds) > 0]] = -1
    return np.asarray(np.maximum(before, -1), np.int32)
