"""The text engine over one Arrow batch: blocks of some ten thousand words go through the compiled phases in turn.

It counts what happened to each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I32, I64, U8, U64, Bools, Ids, read_only
from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import tables
from dptext_spark.runtime.display import line
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.chunks import Strips, padded, strips, summed, validity
from dptext_spark.text.identifiers.finder import Finder, FoundSpans
from dptext_spark.text.identifiers.provider import OfRows, Provider
from dptext_spark.text.names.normal_words import FORM, WIDEST, folding, next_word
from dptext_spark.text.names.public_names import LISTED_KINDS, PARTS_OF_PERSONS, PARTS_OF_PLACES, PublicNames
from dptext_spark.text.names.search import LIST_TYPES, LOCATION, PERSON
from dptext_spark.text.policy import BEYOND_MASK, CASES, NUMBER_MASK, NUMBERS, OOV, OOV_MASK, TYPES, Policy
from dptext_spark.text.render import DATASET, SLACK, TOKEN, assign_blocks, rebuild
from dptext_spark.text.replacements import FakeSource, KeyedNames, replacements
from dptext_spark.text.selection import NO_WORD, PREVIOUS, TokenSelection, drop_unselected, words_before
from dptext_spark.text.tokenizer import cut_whitespace, cut_words
from dptext_spark.text.word_table import INVALID, OPENING, WordTable, look_up

BLOCK_BYTES = 96 * 1024
LONGEST_MASK = 40  # that of an identifier has 33 at most
OF_WORDS = ("words", "drawn", "stop_kept", "oov", "numbers", "invalid", "changed", "same", "distinct")
# Identifiers are no words; those of providers count together.
OF_IDENTIFIERS = ("identifiers", *(f"identifiers_{name}" for name in TYPES), "identifiers_provided")
# Entries of lists, and what the policy's search for names found: no words, and no identifiers.
OF_NAMES = ("names_masked", "names_kept", "persons_found", "locations_found")
PERSONS, LOCATIONS, LISTED, NO_NAME = 0, 1, 2, -1
# Of words of names, by kind: how many were found, and how many came out as they were.
OF_STAYED = tuple(
    f"{kind}_words{what}" for kind in ("person", "location", "listed") for what in ("", "_kept")
)
COUNTERS = (*OF_WORDS, *OF_IDENTIFIERS, *OF_NAMES, *OF_STAYED)


class Noise(NamedTuple):
    """Source of the engine's draws.

    Attributes:
        level: TOKEN, RECORD or DATASET.
        identity: uint64[rows, 2], of the row or the record.
        hash_keys: the two keys for hashing unknown words and numbers.
        words: (ids int32[n], blocks uint64[n, 2]) -> outputs int32[n].
        others: blocks uint64[n, 2] -> uint64[n, 2], the draws of unknown words and numbers.
        identifiers: the same for the fakes of identifiers, by a subkey of their own.
        at_levels: as `words`, with the level of importance of each, uint8[n]; needed where words are chosen.
        in_context: as `words`, with the word released before each, int32[n] (:func:`~dptext_spark.text.selection.words_before`);
            None where draws do not depend on it.
        names: what the pseudonyms of names are drawn from; None where there are none.
    """

    level: int
    identity: U64
    hash_keys: tuple[np.uint64, np.uint64]
    words: Callable[[I32, U64], I32]
    others: Callable[[U64], U64]
    identifiers: Callable[[U64], U64]
    at_levels: Callable[[I32, U64, U8], I32] | None = None
    in_context: Callable[[I32, I32, U64], I32] | None = None
    names: KeyedNames | None = None

    def keyed(self) -> FakeSource:
        """Return the source of fakes."""
        identity = None if self.level == DATASET else self.identity
        return FakeSource(identity, self.hash_keys, self.identifiers, self.level == TOKEN, self.names)


class OutputSpans(NamedTuple):
    """Positions of a batch's identifiers in the output.

    Attributes:
        places: int64[n, 2], where the replacement of each begins and ends in the bytes of its row of the output.
        faked: bool[n], which are fakes.
        named: bool[n], which are pseudonyms of names; the others are placeholders or kept text.
    """

    found: FoundSpans
    places: I64
    faked: Bools
    named: Bools


def byte_blocks(cuts: Strips) -> list[tuple[int, int]]:
    """Split strips into ranges of about `BLOCK_BYTES`; one range holds the `OPENING` of a text."""
    bounds = cuts.bounds
    edges = np.searchsorted(bounds, np.arange(BLOCK_BYTES, int(bounds[-1]), BLOCK_BYTES), side="left")
    edges = edges[edges < len(cuts.rows)]
    begin = cuts.first[cuts.rows[edges]]
    edges = np.where(bounds[edges] - bounds[begin] < OPENING, begin, edges)
    edges = np.unique(np.concatenate([[0], edges, [len(cuts.rows)]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


@dataclass(frozen=True, eq=False)
class Engine:
    """Words, policy and character tables, ready to cut and rebuild batches.

    Attributes:
        remap: int32[V], the word that is released for each word that an unknown word draws; None: the drawn word. Known words
            pass through it where they are drawn.
        searches: for the policy's names beside that by public lists, such as a classifier's, with the same types.
    """

    table: WordTable
    policy: Policy
    providers: tuple[Provider, ...] = ()
    remap: Ids | None = None
    searches: tuple[Provider, ...] = ()
    _longest: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Note the longest output word; :class:`ValueError`: a remap of other words."""
        size = int(self.table.size[0])
        if self.remap is not None and len(self.remap) != size:
            raise ValueError(f"remap: {len(self.remap)} words do not fit the {size} of the table")
        longest = int(np.diff(self.table.offsets[: size + 1]).max(initial=0))
        object.__setattr__(self, "_longest", max(2 * longest, LONGEST_MASK))

    @cached_property
    def finder(self) -> Finder | None:
        """The finder of identifiers; None if none are looked for."""
        names = self.policy.names
        if not self.policy.identifiers and not self.providers and not names:
            return None
        by_lists = (PublicNames(names),) if names and names.lists else ()
        return Finder(self.policy.identifiers, self.providers, (*by_lists, *self.searches))

    def with_providers(self, providers: tuple[Provider, ...]) -> Engine:
        """Return the engine with further providers of identifiers."""
        engine = replace(self, providers=providers)
        if self.finder is not None:
            engine.__dict__["finder"] = replace(self.finder, providers=providers)
        return engine

    def of_rows(self, rows: I64) -> Engine:
        """Return the engine for texts of these rows, int64[texts]: the wanted identifiers may depend on the row."""
        if not any(isinstance(provider, OfRows) for provider in self.providers):
            return self
        return self.with_providers(
            tuple(
                provider.of_rows(rows) if isinstance(provider, OfRows) else provider
                for provider in self.providers
            )
        )

    def options(self, keys: tuple[np.uint64, np.uint64]) -> U64:
        """Return the policy in numbers, and the keys for hashing unknown words and numbers: uint64[6]."""
        policy = self.policy
        actions = (OOV.index(policy.oov), NUMBERS.index(policy.numbers), CASES.index(policy.case))
        return np.array([policy.stop_words == "keep", *actions, *keys], dtype=np.uint64)

    def privatize(
        self, texts: pa.Array, noise: Noise, chosen: TokenSelection | None = None
    ) -> tuple[pa.Array, I32]:
        """Replace the words of a batch.

        Args:
            texts: string, large_string or binary [rows], NULLs allowed.
            noise: the draws.
            chosen: which of the words that the policy draws are drawn; None for all.

        Returns:
            (texts of the same length and type (string for binary), counts int32[rows, n] in the order of `COUNTERS`).
            A row with invalid UTF-8 is counted under `invalid` and comes back empty.

        Raises:
            DataError: the output of one batch passes 2 GiB, or the chosen words are not those of the texts.
        """
        written, counts, _ = self.privatize_with_spans(texts, noise, chosen)
        return written, counts

    def privatize_with_spans(
        self, texts: pa.Array, noise: Noise, chosen: TokenSelection | None = None
    ) -> tuple[pa.Array, I32, OutputSpans | None]:
        """Do the same, and return the identifiers' positions; None if none are looked for, or there are none."""
        table, policy, chars = self.table, self.policy, tables()
        data, rows = padded(texts)
        located = None if self.finder is None else self.finder.find(data, rows, texts)
        cuts = strips(data, rows, policy.tokenizer, None if located is None else located.spans)
        bounds = cuts.bounds
        put, identifiers = self._replaced(located, noise)
        counts = np.zeros((len(cuts.rows), len(OF_WORDS)), np.int32)
        options = self.options(noise.hash_keys)
        lookup = table.lookup
        outputs = (table.word_bytes, table.offsets, table.outputs.reshape(-1))
        letters = (chars.stage, chars.classes, chars.lower, chars.upper)
        masks = tuple(np.frombuffer(mask.encode(), np.uint8) for mask in (OOV_MASK, NUMBER_MASK, BEYOND_MASK))
        stamp = np.zeros(int(table.size[0]), np.int32)
        remap = read_only(np.empty(0, np.int32) if self.remap is None else self.remap)
        cut = cut_words if policy.tokenizer == "words" else cut_whitespace
        out = np.empty(int(bounds[-1]) + int(bounds[-1]) // 4 + 4096, np.uint8)
        out_bounds = np.zeros(len(bounds), np.int64)
        carried, last = np.zeros(2, np.int64), np.full(2, -1, np.int64)
        context = np.array([-1, 0, NO_WORD], np.int64)
        forms = np.zeros((2, 4096), np.uint8)
        at, place = 0, 0
        ranges = byte_blocks(cuts)
        room = 1 + max((int(bounds[r1] - bounds[r0]) for r0, r1 in ranges), default=0)
        tokens = np.empty((room, 4), np.int64)
        content, keys, blocks, others = (np.empty((room, 2), np.uint64) for _ in range(4))
        ids, levels = np.empty(room, np.int32), np.empty(room, np.uint8)
        work = (tokens, content, keys, forms)
        for r0, r1 in ranges:
            size = int(bounds[r1] - bounds[r0])
            n = cut(data, bounds, cuts.spans, r0, r1, lookup, letters, counts, options, work)
            n = look_up(data, bounds, cuts.rows, rows, last, n, lookup, counts, options, work)
            if chosen is not None:
                n, place = drop_unselected(
                    tokens, n, content, *chosen[:3], place, policy.case == "lower", counts, levels
                )
                if n < 0:
                    raise DataError("importance: the chosen words are not those of the texts.")
            known, other = assign_blocks(
                tokens, n, content, rows, cuts.rows, noise.identity, noise.level, ids, blocks, others
            )
            other_draws = noise.others(others[:other])
            if noise.in_context is not None:
                before = np.empty(known, np.int32)
                words_before(
                    data, rows, cuts.rows, tokens, n, other_draws, lookup, letters, policy.tokenizer == "whitespace", context,
                    before,
                )  # fmt: skip
                drawn = noise.in_context(ids[:known], before, blocks[:known])
                if context[2] == PREVIOUS:
                    context[2] = drawn[-1]
            elif chosen is None or noise.at_levels is None:
                drawn = noise.words(ids[:known], blocks[:known])
            else:
                drawn = noise.at_levels(ids[:known], blocks[:known], levels[:known])
            need = at + 2 * size + n * self._longest + SLACK
            if need > len(out):
                grown = np.empty(max(need, len(out) + len(out) // 2), np.uint8)
                grown[:at] = out[:at]
                out = grown
            at = rebuild(
                data, bounds, cuts.rows, r0, r1, tokens, n, drawn, other_draws, remap, outputs, (*letters, chars.zeros), masks,
                (cuts.spans, *identifiers), policy.gaps == "normalise", 3 if policy.case == "carry" else 0, counts, stamp,
                carried, out, at, out_bounds,
            )  # fmt: skip
        if put is not None:
            put.places[:] -= out_bounds[cuts.first[put.found.spans.owners], None]
        if len(cuts.rows) > len(texts):
            counts = summed(counts, cuts.rows, len(texts))
        written = _text_array(texts, out, out_bounds[cuts.first], at)
        invalid = counts[:, INVALID] > 0
        if invalid.any():  # what follows the bad bytes was not cut, and would leave as it is
            written = pc.if_else(pa.array(invalid), pa.scalar("", written.type), written)
        every = np.zeros((len(texts), len(COUNTERS)), np.int32)
        every[:, : len(OF_WORDS)] = counts
        if put is not None:
            known, kinds = len(OF_IDENTIFIERS), self._kinds()
            kind = self._columns(kinds)[put.found.types]
            kind[put.found.kept] = known + 1
            _add(put.found.spans.bounds, kind, known, every[:, len(OF_WORDS) : -len(OF_STAYED)])
            stayed = every[:, -len(OF_STAYED) :]
            _count_stayed(put.found, kinds, put.named, identifiers[0], identifiers[1], stayed)
        return written, every, put

    def _columns(self, kinds: I64) -> I64:
        """Return the column of each type in `OF_IDENTIFIERS` and `OF_NAMES`, int64[types]; `kinds`: of :meth:`_kinds`."""
        known = len(OF_IDENTIFIERS)
        columns = np.minimum(np.arange(len(kinds)), len(TYPES)) + 1
        columns[kinds == LISTED] = known
        if self.policy.names:
            columns[kinds == PERSONS], columns[kinds == LOCATIONS] = known + 2, known + 3
        return columns

    def _kinds(self) -> I64:
        """Return the kind that counts the words of each type, int64[types]."""
        kinds = dict.fromkeys((PERSON, *PARTS_OF_PERSONS), PERSONS)
        kinds |= dict.fromkeys((LOCATION, *PARTS_OF_PLACES), LOCATIONS)
        kinds |= dict.fromkeys((*LIST_TYPES, *LISTED_KINDS), LISTED)
        names = () if self.finder is None else self.finder.names
        return np.array([kinds.get(name, NO_NAME) for name in names], np.int64)

    def _replaced(self, found: FoundSpans | None, noise: Noise) -> tuple[OutputSpans | None, tuple[Any, ...]]:
        """Return the places of identifiers, and (replacements, their bounds, the places to be filled) for the rebuilding."""
        if found is None or self.finder is None or not len(found.types):
            return None, (np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros((0, 2), np.int64))
        replaced = replacements(self.finder, found, noise.keyed())
        put = OutputSpans(found, np.zeros((len(found.types), 2), np.int64), replaced.faked, replaced.named)
        return put, (replaced.text, replaced.bounds, put.places)


@compiled
def _add(bounds: Any, kinds: Any, known: Int, counts: Any) -> None:
    """Add the words of each row to its counts by kind. The kinds below `known` count in the first column, too."""
    for row in range(bounds.shape[0] - 1):
        for i in range(bounds[row], bounds[row + 1]):
            counts[row, kinds[i]] += 1
            counts[row, 0] += kinds[i] < known


@compiled
def _holds(text: Any, p: Int, end: Int, form: Any, size: Int, chars: Any, fold: Any, other: Any) -> Any:
    """Check whether text[p:end] holds the normal word form[:size]."""
    while True:
        _, _, p, length = next_word(text, p, end, chars, fold, other)
        if length < 0:
            return False
        same = length == size
        for j in range(size):
            same = same and form[j] == other[j]
        if same:
            return True


@compiled
def _add_stayed(
    data: Any, spans: Any, kinds: Any, kept: Any, named: Any, text: Any, bounds: Any, letters: Any, fold: Any, counts: Any
) -> None:  # fmt: skip
    """Count the words of names."""
    starts, ends, owners = spans
    form, other = np.zeros(FORM, np.uint8), np.zeros(FORM, np.uint8)
    for i in range(starts.shape[0]):
        kind, p, row = kinds[i], starts[i], owners[i]
        while kind >= 0:
            stays, start = kept[i], p
            while p < ends[i] and 97 <= data[p] | 0x20 <= 122:
                p += 1
            plain: Any = (p > start) & (p == ends[i]) & (not named[i])
            if not plain:  # most are decided without a call
                _, _, p, size = next_word(data, start, ends[i], letters, fold, form)
                if size < 0:
                    break
                if named[i] and size > 0:
                    stays = _holds(text, bounds[i], bounds[i + 1], form, size, letters, fold, other)
            counts[row, 2 * kind] += 1
            counts[row, 2 * kind + 1] += stays
            if plain:
                break


def _count_stayed(found: FoundSpans, kinds: I64, named: Bools, text: U8, bounds: I64, counts: I32) -> None:
    """Count the words of names, and the unchanged words among them.

    A kept word is unchanged and a masked word is not. A word with a pseudonym is unchanged if the pseudonym has a word of the
    same normal form (:mod:`dptext_spark.text.names.normal_words`). A placeholder of the input text is no name.

    Args:
        found: in a batch.
        kinds: int64[types], what each type counts as: `PERSONS`, `LOCATIONS`, `LISTED` or `NO_NAME`.
        named: bool[n], which have pseudonyms.
        text: uint8[...], the replacements.
        bounds: int64[n + 1], text[bounds[i]:bounds[i + 1]] that of span i.
        counts: int32[rows, n], added to in the order of `OF_STAYED`.
    """
    kind = np.where(found.kept, LISTED, kinds[found.types])
    kind[found.written] = NO_NAME
    if not (kind >= 0).any():
        return
    chars, spans = tables(), found.spans
    # Only where names have pseudonyms are forms compared.
    fold = folding() if named.any() else read_only(np.zeros((0, WIDEST), np.int32))
    _add_stayed(
        spans.data, (spans.starts, spans.ends, spans.owners), kind, found.kept, named, text, bounds,
        (chars.stage, chars.classes), fold, counts,
    )  # fmt: skip


def _text_array(texts: pa.Array, out: U8, bounds: I64, size: int) -> pa.Array:
    """Wrap the written bytes as an Arrow array with the NULLs of `texts`."""
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    if size > 2**31 - 1 and not wide:
        raise DataError(
            "batch: the sanitized text exceeds 2 GiB. Use smaller batches (maxRecordsPerBatch of Spark)."
        )
    mask = None
    if texts.null_count:
        mask = pa.py_buffer(np.packbits(validity(texts), bitorder="little"))
    offsets = pa.py_buffer(np.ascontiguousarray(bounds.astype(np.int64 if wide else np.int32)))
    kind: Any = pa.large_string() if wide else pa.string()
    return pa.Array.from_buffers(
        kind, len(texts), [mask, offsets, pa.py_buffer(out[:size])], texts.null_count
    )


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters of each row of a batch.

    Attributes:
        rows: int32[n, len(COUNTERS)].
        units: int64[n], how many units of ε the draws of each row come to: drawn words, or distinct ones at record level; where
            levels of importance differ in ε, see :func:`dptext_spark.importance.levels.common_unit`.

    Examples:
        >>> import pyarrow as pa
        >>> _, counters = model.privatize(
        ...     pa.array(["Please send the parcel."]), column="body", row_ids=pa.array([1]), key=dp.RunKey.generate()
        ... )
        >>> totals = counters.totals()
        >>> totals["words"], totals["drawn"], totals["stop_kept"]
        (4, 3, 1)
    """

    rows: I32
    units: I64

    def __repr__(self) -> str:
        """Return the number of rows; the counts in them depend on their text."""
        return line("Counters", f"{len(self.rows):,} rows")

    def column(self, name: str) -> I32:
        """Return one counter, int32[n]."""
        return self.rows[:, COUNTERS.index(name)]

    def totals(self) -> dict[str, int]:
        """Return the sums by name, with the number of rows."""
        sums = self.rows.sum(axis=0, dtype=np.int64)
        return {
            "rows": len(self.rows),
            **{name: int(value) for name, value in zip(COUNTERS, sums, strict=True)},
        }

    def __add__(self, other: Counters) -> Counters:
        """Join the rows of two batches."""
        return Counters(np.concatenate([self.rows, other.rows]), np.concatenate([self.units, other.units]))
