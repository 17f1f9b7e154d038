"""A selection, ready to choose: its provider, its levels and their samplers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.idf import Frequencies, Idf
from dptext_spark.importance.providers import (
    Attention,
    ColumnWeights,
    ImportanceProvider,
    RandomImportance,
    checked,
)
from dptext_spark.importance.ranking import Rows, levels_of, shared_by_word
from dptext_spark.importance.selection import PLACES, WHOLE, Importance, Levels, Units, agree
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.rounding import exact
from dptext_spark.runtime.validation import Json
from dptext_spark.text.engine import Engine
from dptext_spark.text.selection import Texts, TokenSelection
from dptext_spark.text.word_table import WordTable

WHICH = {
    "top": "the most important",
    "medium": "those of middling importance",
    "bottom": "the least important",
}


@dataclass(frozen=True, eq=False)
class Selector(Levels):
    """Chooses the words of a record that are drawn.

    Attributes:
        selection: what the user chose.
        provider: of importance.
        further: the samplers of the levels after the first, over the same words as the first one's.
    """

    selection: Importance
    provider: ImportanceProvider
    further: tuple[Sampler, ...] = ()

    def __post_init__(self) -> None:
        """Compare what was compiled with what was chosen.

        Raises:
            SettingsError: another provider, or another number of samplers.
        """
        if self.provider.name != self.selection.provider:
            raise SettingsError(
                f"importance.provider: {self.selection.provider!r} given with a provider {self.provider.name!r}; valid: the same."
            )
        if len(self.further) != len(self.selection.cumulative) - 1:
            raise SettingsError(
                f"importance.levels: {len(self.selection.cumulative)} given with {len(self.further) + 1} samplers; valid: one "
                "each."
            )

    @property
    def is_complete(self) -> bool:
        """Whether everything that it weighs words by is known."""
        return not isinstance(self.provider, Idf) or self.provider.values is not None

    @property
    def is_private(self) -> bool:
        """Whether it holds counts of the very texts that are sanitized: as private as these."""
        return self.selection.own_data and self.is_complete

    @property
    def reads_weights(self) -> bool:
        """Whether it takes weights of words from the user."""
        return isinstance(self.provider, ColumnWeights)

    def check(self, consistency: str) -> None:
        """Refuse a level of consistency that does not agree with the strategy.

        Raises:
            SettingsError: such a level.
        """
        agree(self.selection.strategy, consistency)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that choosing and drawing needs beside the first sampler, by file name."""
        named = {f"importance.{name}": array for name, array in self.provider.arrays().items()}
        return named | self.level_arrays()

    def bound(self) -> Mapping[str, Json]:
        """Return what decides which words are chosen, JSON-able, for a fingerprint."""
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
            What is chosen in each column.

        Raises:
            DataError: weights are missing, given without need, or not one for each word.
        """
        rows = Rows.of(columns)
        provider: ImportanceProvider = self.provider
        if isinstance(provider, ColumnWeights):
            provider = ColumnWeights(rows.weights)
        elif rows.weights is not None:
            raise DataError(f"weights: given with provider {provider.name}; valid: none.")
        listed = rows.listed(engine, marks=self.selection.rank_punctuation)
        bounds = listed.words.record_bounds
        weights = checked(provider, listed.words)
        levels = levels_of(weights, bounds, self.selection.cumulative, self.selection.direction)
        shared = int(engine.table.size[0]) if consistency == "record" else 0
        if shared:
            shared_by_word(listed.codes, levels, bounds, shared)
        return rows.split(listed, levels, units, shared)

    def sentence(self, chosen_in: str) -> str:
        """Say what the guarantee is about, in plain words; `chosen_in`: what words are chosen in together, text or record."""
        depends = (
            "that depends on the number of its words alone"
            if self.selection.provider == "random"
            else f"that choice depends on the whole {chosen_in} and is not protected"
        )
        left = "" if self.selection.cumulative[-1] == WHOLE else "; the other words are released as they are"
        return (
            f"It holds for the words that are chosen to be drawn (of each {chosen_in} {self.share}), and takes as known which "
            f"these are: {depends}{left}."
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
