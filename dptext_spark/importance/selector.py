"""Rank the words of each record by importance, and give the share that comes first its levels (concepts/mechanisms, Importance).

A selector holds what this takes: its provider, its levels and their samplers.

A record is the unit within which words are chosen: all texts of a row, or a text alone if no others are known.

The texts of a row are concatenated: words are chosen among all its columns and list elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.arrays import F32, I32, I64, U8
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.levels import DIRECTIONS, PLACES, WHOLE, Importance, Levels, Units, agree
from dptext_spark.importance.providers import (
    Attention,
    ColumnWeights,
    Frequencies,
    Idf,
    ImportanceProvider,
    InvalidWeightsError,
    RandomImportance,
    checked,
)
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.randomness import is_bytes
from dptext_spark.rounding import exact
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.validation import Json
from dptext_spark.text.engine import Engine
from dptext_spark.text.selection import Texts, TokenSelection
from dptext_spark.text.tokens import Listing, list_words
from dptext_spark.text.word_table import WordTable

TOP, MEDIUM, BOTTOM = range(len(DIRECTIONS))


def levels_of(weights: F32, bounds: I64, cumulative: tuple[int, ...], direction: str) -> U8:
    """Return the level of each word: the first ceil(share·n) by rank of a record's n words, ties to the earlier word.

    Direction `medium` takes the middle of the words in descending order. The first level has the innermost words, the next level
    those around them.

    Args:
        weights: float32[n], finite.
        bounds: int64[records + 1], record i has the words bounds[i]:bounds[i + 1].
        cumulative: the share of each level and those before it, in parts of `WHOLE`, ascending.
        direction: one of `DIRECTIONS`.

    Returns:
        uint8[n]; a word that has no level gets the number of levels.
    """
    levels = np.full(len(weights), len(cumulative), np.uint8)
    shares = np.array(cumulative, np.int64)
    longest = int(np.diff(bounds).max(initial=0))
    work = np.empty((2, longest), np.int64)
    _levels(weights, bounds, shares, DIRECTIONS.index(direction), levels, work)
    return levels


def shared_by_word(codes: I32, levels: U8, bounds: I64, words: int) -> None:
    """Let all occurrences of a word in a record have the level of its first in rank, in place.

    Args:
        codes: int32[n], lexicon ids; below 0 what is not drawn.
        levels: uint8[n].
        bounds: int64[records + 1].
        words: of the lexicon.
    """
    _share(codes, levels, bounds, np.zeros(words, np.int64), np.zeros(words, np.uint8))


def units_of(
    codes: I32, levels: U8, bounds: I64, texts: I64, multiples: I64, words: int, distinct: bool
) -> I64:
    """Compute the spending of each text's draws: the sum of `multiples` over its drawn words, int64[texts].

    Args:
        codes: int32[n], as above.
        levels: uint8[n].
        bounds: int64[records + 1].
        texts: int64[texts + 1], text i has the words texts[i]:texts[i + 1].
        multiples: int64[levels], of one draw.
        words: of the lexicon.
        distinct: whether equal words of a record share a draw, which counts with the first; they have one level then.
    """
    units = np.zeros(len(texts) - 1, np.int64)
    _sum(
        codes, levels, bounds, texts, multiples, distinct, np.zeros(words if distinct else 0, np.int64), units
    )
    return units


@compiled
def _ranks_before(weights: Any, a: Int, b: Int, direction: Int) -> Any:
    """Check whether word a comes before the later word b or ties with it."""
    return weights[a] <= weights[b] if direction == BOTTOM else weights[a] >= weights[b]


@compiled
def _sort(weights: Any, start: Int, n: Int, direction: Int, work: Any) -> Int:
    """Sort the words start..start + n stably into a row of `work`; return which row. Merges runs of doubling length."""
    for i in range(n):
        work[0, i] = start + i
    source, width = np.int64(0), np.int64(1)
    while width < n:
        target = 1 - source
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            a, b = low, middle
            for at in range(low, high):
                left = a < middle
                if left and b < high:
                    left = _ranks_before(weights, work[source, a], work[source, b], direction)
                if left:
                    work[target, at] = work[source, a]
                    a += 1
                else:
                    work[target, at] = work[source, b]
                    b += 1
        source, width = target, 2 * width
    return source


@compiled
def _levels(weights: Any, bounds: Any, shares: Any, direction: Int, levels: Any, work: Any) -> None:
    for row in range(bounds.shape[0] - 1):
        start = bounds[row]
        n = bounds[row + 1] - start
        sorted_in = _sort(weights, start, n, direction, work)
        for level in range(shares.shape[0] - 1, -1, -1):
            size = (shares[level] * n + WHOLE - 1) // WHOLE
            first = (n - size) // 2 if direction == MEDIUM else np.int64(0)
            for rank in range(first, first + size):
                levels[work[sorted_in, rank]] = level


@compiled
def _share(codes: Any, levels: Any, bounds: Any, seen: Any, best: Any) -> None:
    for row in range(bounds.shape[0] - 1):
        for i in range(bounds[row], bounds[row + 1]):
            word = codes[i]
            if word >= 0 and (seen[word] != row + 1 or levels[i] < best[word]):
                seen[word] = row + 1
                best[word] = levels[i]
        for i in range(bounds[row], bounds[row + 1]):
            if codes[i] >= 0:
                levels[i] = best[codes[i]]


@compiled
def _sum(
    codes: Any, levels: Any, bounds: Any, texts: Any, multiples: Any, distinct: bool, seen: Any, units: Any
) -> None:
    text = np.int64(0)
    for record in range(bounds.shape[0] - 1):
        for i in range(bounds[record], bounds[record + 1]):
            while texts[text + 1] <= i:
                text += 1
            word = codes[i]
            if word < 0 or levels[i] >= multiples.shape[0]:
                continue
            if distinct:
                if seen[word] == record + 1:
                    continue
                seen[word] = record + 1
            units[text] += multiples[levels[i]]


@dataclass(frozen=True, eq=False)
class RowTexts:
    """The texts of a batch in the order of their rows, and in a row in the order of its columns.

    Attributes:
        texts: string, large_string or binary [m].
        weights: list<float64> [m], where the user weighs the words; None where not.
        bounds: int64[rows + 1], row i has the texts bounds[i]:bounds[i + 1].
        places: for each column int64[m of the column], positions of its texts; None for a single column, in its own order.
        rows: for each column int64[m of the column], the row of each text.
    """

    texts: pa.Array
    weights: pa.Array | None
    bounds: I64
    places: tuple[I64, ...] | None
    rows: tuple[I64, ...]

    @property
    def owners(self) -> I64:
        """The row of each text: int64[m]."""
        owners: I64 = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        return owners

    @classmethod
    def of(cls, columns: Sequence[Texts]) -> RowTexts:
        """Put the columns of a batch together.

        Raises:
            DataError: a column that holds no texts, or not as many rows as texts.
            InvalidWeightsError: weights that are no lists, or not one list for each text.
        """
        owners = tuple(_rows_of(column) for column in columns)
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(int(owner.max(initial=-1)) + 2))
        weights = _weights_of(columns)
        if len(columns) == 1:
            return cls(columns[0].values, weights, bounds, None, owners)
        texts = pa.concat_arrays([column.values.cast(pa.large_binary()) for column in columns])
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        places = tuple(np.split(place, np.cumsum([len(owner_rows) for owner_rows in owners])[:-1]))
        taken = pa.array(order)
        return cls(
            texts.take(taken), None if weights is None else weights.take(taken), bounds, places, owners
        )

    def listed(self, engine: Engine, *, marks: bool = False) -> Listing:
        """List the words of the texts as :func:`list_words` does, with the rows as records."""
        listed = list_words(engine.of_rows(self.owners), self.texts, marks=marks)
        return listed._replace(words=listed.words._replace(records=self.bounds))

    def split(self, listed: Listing, levels: U8, units: Units, shared: int) -> tuple[TokenSelection, ...]:
        """Return the choice, for each column by itself.

        Args:
            listed: the words of the texts.
            levels: uint8[n], of the words.
            units: of the levels; their number means "no level".
            shared: the words of the lexicon, where equal words of a record share a draw; 0 where each has its own.
        """
        words, none = listed.words, len(units.multiples)
        multiples, bounds = np.array(units.multiples, np.int64), words.record_bounds
        spent = units_of(listed.codes, levels, bounds, words.bounds, multiples, shared, shared > 0)
        if self.places is None:
            return (TokenSelection(words.starts, levels, none, spent, self.rows[0]),)
        sizes, counts = np.diff(words.rows), np.diff(words.bounds)
        selections = []
        for place, rows in zip(self.places, self.rows, strict=True):
            # Each word of the column, by its number among all: those of a text follow one another.
            word_counts = counts[place]
            before = np.cumsum(word_counts) - word_counts
            which = np.repeat(words.bounds[:-1][place] - before, word_counts) + np.arange(
                int(word_counts.sum())
            )
            # In its column a text begins where the ones before it end.
            own = np.cumsum(sizes[place]) - sizes[place]
            starts = words.starts[which] + np.repeat(own - words.rows[:-1][place], word_counts)
            selections.append(TokenSelection(starts, levels[which], none, spent[place], rows))
        return tuple(selections)


def _rows_of(column: Texts) -> I64:
    """Return the row of each text of a column, int64[m]."""
    if not is_bytes(column.values.type):
        raise DataError(
            f"texts: a column of type {column.values.type} is not valid. Choose string, large_string or binary."
        )
    rows = np.arange(len(column.values)) if column.rows is None else np.asarray(column.rows, np.int64)
    if len(rows) != len(column.values) or (np.diff(rows) < 0).any() or (len(rows) and rows[0] < 0):
        raise DataError(
            f"texts: {len(column.values)} texts do not fit {len(rows)} row numbers. Give one for each text, from 0 and "
            "never descending."
        )
    return rows


def _weights_of(columns: Sequence[Texts]) -> pa.Array | None:
    """Return the lists of all columns behind each other; None where no column has any."""
    weights = [column.weights for column in columns if column.weights is not None]
    if not weights:
        return None
    if len(weights) < len(columns):
        raise InvalidWeightsError(
            "importance: only some columns have weights. Give weights for all columns, or for none.", 0
        )
    for column, lists in zip(columns, weights, strict=True):
        if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
            raise InvalidWeightsError(
                f"importance: weights of type {lists.type} are not valid. Choose lists of numbers.",
                len(lists),
            )
        if len(lists) != len(column.values):
            count = len(column.values)
            raise InvalidWeightsError(
                f"importance: {len(lists):,} lists of weights do not fit {count:,} texts. Give one list for each text.",
                count,
            )
    return (
        weights[0]
        if len(weights) == 1
        else pa.concat_arrays([column_weights.cast(pa.list_(pa.float64())) for column_weights in weights])
    )


WHICH = {
    "top": "the most important",
    "medium": "those of middling importance",
    "bottom": "the least important",
}


@dataclass(frozen=True, eq=False)
class Selector(Levels):
    """Chooses the words of a record that are drawn.

    `further`: the samplers of the levels after the first, over the same words as the first one's.
    """

    selection: Importance
    provider: ImportanceProvider
    further: tuple[Sampler, ...] = ()

    def __post_init__(self) -> None:
        """Compare the compiled choice with the requested one.

        Raises:
            SettingsError: another provider, or another number of samplers.
        """
        if self.provider.name != self.selection.provider:
            raise SettingsError(
                f"importance.provider: {self.selection.provider!r} differs from the provider {self.provider.name!r}. Use "
                "the same."
            )
        if len(self.further) != len(self.selection.cumulative) - 1:
            raise SettingsError(
                f"importance.levels: {len(self.selection.cumulative)} levels do not fit {len(self.further) + 1} samplers. "
                "Give one sampler for each level."
            )

    @property
    def is_complete(self) -> bool:
        """Check whether everything that it weighs words by is known."""
        return not isinstance(self.provider, Idf) or self.provider.values is not None

    @property
    def is_private(self) -> bool:
        """Whether it holds counts of the sanitized texts, which are as private as the texts."""
        return self.selection.own_data and self.is_complete

    @property
    def reads_weights(self) -> bool:
        """Check whether it takes weights of words from the user."""
        return isinstance(self.provider, ColumnWeights)

    def check(self, consistency: str) -> None:
        """Refuse a level of consistency that does not agree with the strategy, by a :class:`SettingsError`."""
        agree(self.selection.strategy, consistency)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that choosing and drawing needs beside the first sampler, by file name."""
        named = {f"importance.{name}": array for name, array in self.provider.arrays().items()}
        return named | self.level_arrays()

    def bound(self) -> Mapping[str, Json]:
        """Return the parameters that choose the words, JSON-able, for a fingerprint."""
        selection = self.selection
        return {
            "provider": self.provider.fingerprint,
            "direction": selection.direction,
            "shares": list(selection.cumulative),
            "rank_punctuation": selection.rank_punctuation,
            "weights": list(selection.weights),
        }

    def choose(
        self, engine: Engine, columns: Sequence[Texts], consistency: str, units: Units
    ) -> tuple[TokenSelection, ...]:
        """Choose the words of a batch that are drawn, among those of all texts of a row together.

        Args:
            engine: that will draw them.
            columns: all texts of the rows, one or more columns.
            consistency: token or record, which is the strategy.
            units: of the levels.

        Returns:
            The choice in each column.

        Raises:
            DataError: weights are missing, given without need, or not one for each word.
        """
        rows = RowTexts.of(columns)
        provider: ImportanceProvider = self.provider
        if isinstance(provider, ColumnWeights):
            provider = ColumnWeights(rows.weights)
        elif rows.weights is not None:
            raise DataError(f"weights: not valid with provider {provider.name}. Remove them.")
        listed = rows.listed(engine, marks=self.selection.rank_punctuation)
        bounds = listed.words.record_bounds
        weights = checked(provider, listed.words)
        levels = levels_of(weights, bounds, self.selection.cumulative, self.selection.direction)
        shared = int(engine.table.size[0]) if consistency == "record" else 0
        if shared:
            shared_by_word(listed.codes, levels, bounds, shared)
        return rows.split(listed, levels, units, shared)

    def sentence(self, chosen_in: str) -> str:
        """Describe the guarantee in plain words; `chosen_in`: unit in which words are chosen together, text or record."""
        depends = (
            "depends on its number of words alone"
            if self.selection.provider == "random"
            else f"depends on the whole {chosen_in} and is not protected"
        )
        left = "" if self.selection.cumulative[-1] == WHOLE else " The other words are released as they are."
        return (
            f"It holds for the chosen words (of each {chosen_in} {self.share}), and takes the choice as known. The choice "
            f"{depends}.{left}"
        )

    @property
    def share(self) -> str:
        """Which words are drawn."""
        selection = self.selection
        parts = np.diff([0, *selection.cumulative]) / 10**PLACES
        shares = " and ".join(f"{exact(float(part))} %" for part in parts)
        return f"{WHICH[selection.direction]}, {shares}" + (" in turn" if len(parts) > 1 else "")


def provider_of(
    selection: Importance,
    table: WordTable,
    engine: Engine | None = None,
    frequencies: Frequencies | None = None,
) -> ImportanceProvider:
    """Make the provider that a selection names.

    Args:
        selection: what the user chose.
        table: the words.
        engine: that cuts a corpus; needed where the selection names one.
        frequencies: that were counted in the texts themselves; None where they are not known yet.

    Raises:
        DataError: the corpus cannot be read.
        SettingsError: the encoder cannot be opened.
    """
    if selection.provider == "idf":
        if selection.corpus is not None and engine is not None:
            frequencies = Frequencies.read(engine, selection.corpus)
        if frequencies is None:
            return Idf(table, None, 0, selection.corpus)
        return Idf.of(table, frequencies, selection.corpus)
    if selection.provider == "attention":
        return Attention.open(str(selection.model))
    return RandomImportance() if selection.provider == "random" else ColumnWeights()


def restored(
    selection: Importance,
    table: WordTable,
    arrays: Mapping[str, npt.NDArray[Any]],
    further: tuple[Sampler, ...],
) -> Selector:
    """Build a selector again from an artifact; `arrays` are the provider's."""
    if selection.provider == "attention":
        return Selector(selection, Attention.restore(arrays, str(selection.model)), further)
    if selection.provider == "idf":
        return Selector(selection, Idf.restore(table, arrays, selection.corpus), further)
    return Selector(selection, provider_of(selection, table), further)
