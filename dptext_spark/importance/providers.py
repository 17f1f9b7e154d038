"""What measures how important words are: Arrow strings, cut into words, in, and a number for each word out.

A provider sees every word of a record, text by text in the order in which the engine cuts them, and whole records only.

One of them is the attention that words receive in a pretrained encoder (Fu 2024; concepts/mechanisms, Importance).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F32
from dptext_spark.errors import DataError
from dptext_spark.text.chunks import Spans

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
# By name: only who asks for attention needs the extra [encoder].
_ENCODER, _MODEL = "dptext_spark.encoder.encoder", "dptext_spark.encoder.weights"


class InvalidWeightsError(DataError):
    """Weights that are missing, not one for each word, or no finite numbers of 0 or more.

    Attributes:
        count: of texts or weights that are concerned.
    """

    def __init__(self, message: str, count: int) -> None:
        """Take the message, and how many are concerned."""
        super().__init__(message)
        self.count = count


@runtime_checkable
class ImportanceProvider(Protocol):
    """A measure of importance."""

    @property
    def name(self) -> str:
        """What settings call it."""

    @property
    def fingerprint(self) -> str:
        """What identifies it: providers with equal fingerprints give equal words equal weights."""

    @property
    def sentence(self) -> str:
        """What it is and what it was made from, for the disclosure statement."""

    def weights(self, words: Spans) -> F32:
        """Return the importance of each word, float32[n]: finite, 0 or more; only its order within a record counts."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what must be stored to do so elsewhere, by name."""


@dataclass(frozen=True)
class RandomImportance:
    """No importance: the places that come first depend on the number of a record's words alone. A baseline.

    Attributes:
        seed: another one gives other places.
    """

    name: ClassVar[str] = "random"
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """The seed."""
        return f"random {self.seed}"

    @property
    def sentence(self) -> str:
        """Say that nothing is measured."""
        return (
            "Importance is not measured: which places are drawn depends on the number of a record's words alone, not on which "
            "words they are."
        )

    def weights(self, words: Spans) -> F32:
        """Return float32[n], mixed from the seed, the number of words of the record and the place of the word in it."""
        bounds = words.record_bounds
        sizes = np.diff(bounds)
        size = np.repeat(sizes, sizes).astype(np.uint64)
        place = np.arange(len(words.starts), dtype=np.uint64) - np.repeat(bounds[:-1], sizes).astype(
            np.uint64
        )
        state = (np.uint64(self.seed) * _MIX[0]) ^ (size << np.uint64(32)) ^ place
        for factor in _MIX[1:]:
            state += _MIX[0]
            state = (state ^ (state >> np.uint64(30))) * factor
            state ^= state >> np.uint64(31)
        drawn: F32 = (state >> np.uint64(40)).astype(np.float32)
        return drawn

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing."""
        return {}


@dataclass(frozen=True, eq=False)
class ColumnWeights:
    """Numbers of the user's: a list of them for each text.

    Attributes:
        lists: list<float> or large_list<float> [rows]; None in a model, to which each batch brings its own.
    """

    name: ClassVar[str] = "column"
    fingerprint: ClassVar[str] = "column"
    sentence: ClassVar[str] = (
        "Importance is a column of the input, a number for each word, and those of all columns are compared with each other; "
        "what it was made from is not known here."
    )
    lists: pa.Array | None = None

    def weights(self, words: Spans) -> F32:
        """Return float32[n].

        Raises:
            InvalidWeightsError: there are none, or not as many as words in a text, or one is NULL.
        """
        if self.lists is None:
            raise InvalidWeightsError(
                "importance: no weights given; provider column needs a list of numbers for each text.", 0
            )
        rows = len(words.bounds) - 1
        lists = self.lists
        sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        wrong = rows if len(lists) != rows else int((sizes != np.diff(words.bounds)).sum())
        if wrong:
            raise InvalidWeightsError(
                f"importance: {wrong:,} texts have not as many weights as words; valid: a number for each word as the policy "
                "cuts them, stop words, unknown words and numbers included.",
                wrong,
            )
        flat = lists.flatten()
        if flat.null_count:
            missing = flat.null_count
            raise InvalidWeightsError(
                f"importance: {missing:,} weights are NULL; valid: a number for each word.", missing
            )
        with np.errstate(over="ignore"):  # what is too large is infinite then, and refused
            found: F32 = flat.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float32)
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing."""
        return {}


def checked(provider: ImportanceProvider, words: Spans) -> F32:
    """Return the weights of a provider, float32[n].

    Raises:
        InvalidWeightsError: not as many as words, or some are negative or no finite numbers.
    """
    weights = np.asarray(provider.weights(words), np.float32)
    if weights.shape != words.starts.shape:
        raise InvalidWeightsError(
            f"importance: provider {provider.name} gave {weights.size:,} weights for {len(words.starts):,} words; valid: one for "
            "each.",
            weights.size,
        )
    wrong = len(weights) - int((np.isfinite(weights) & (weights >= 0)).sum())
    if wrong:
        raise InvalidWeightsError(
            f"importance: provider {provider.name} gave {wrong:,} weights that are negative or no finite numbers; valid: 0 or "
            "more.",
            wrong,
        )
    return weights


@dataclass(frozen=True, eq=False)
class Attention:
    """A pretrained encoder: its arrays go into the model, so that no node needs its folder.

    Attributes:
        model: the encoder's arrays.
        source: what settings call it: a folder, or an installed package.
    """

    name: ClassVar[str] = "attention"
    model: Any
    source: str

    @classmethod
    def open(cls, source: str) -> Attention:
        """Read an encoder.

        Raises:
            SettingsError: the extra [encoder] is not installed; neither a folder nor a package.
            DataError: a file is missing or damaged, or the architecture is not supported.
        """
        return cls(import_module(_MODEL).EncoderModel.open(source, field="importance.model"), source)

    @cached_property
    def _encoder(self) -> Any:
        return import_module(_ENCODER).Encoder(self.model)

    def __getstate__(self) -> object:
        """Travel without what is made ready in each process."""
        return {"model": self.model, "source": self.source}

    @cached_property
    def fingerprint(self) -> str:
        """Of the encoder's arrays."""
        return f"attention {self.model.fingerprint}"

    @property
    def sentence(self) -> str:
        """Say what measures importance."""
        return (
            "It is the share of a text's attention that a word receives from the other words, averaged over heads and layers, "
            "times the text's share of the record's words; the encoder is taken to be public."
        )

    def weights(self, words: Spans) -> F32:
        """Return the share of its record's attention that each word receives, float32[n].

        The encoder reads text by text, so that it gives shares of a text. A text has as much of its record's attention as it has
        of its words: else the one word of a short text would come before all words of a long one.
        """
        found: F32 = self._encoder.importance(words)
        if words.records is None:
            return found
        texts, records = np.diff(words.bounds), np.diff(words.record_bounds)
        of_record = np.repeat(records, np.diff(words.records))
        parts = texts / np.maximum(of_record, 1)
        return np.asarray(found * np.repeat(parts, texts), np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the encoder's arrays."""
        found: dict[str, npt.NDArray[Any]] = self.model.arrays()
        return found

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], source: str) -> Attention:
        """Build again from :meth:`arrays`."""
        return cls(import_module(_MODEL).EncoderModel.restore(arrays), source)
