"""Measure how important words are: Arrow strings, cut into words, in, and a number for each word out.

A provider sees whole records only: every word, text by text, in the engine's order.

Attention is what words receive in a pretrained encoder (Fu 2024; concepts/mechanisms, Importance).

Inverse document frequency makes rare words important. It needs no model. The weight of a word is ln((1 + N) / (1 + df)), of N
documents of which df hold it. A word that the lexicon does not hold has the greatest weight, and punctuation none. Computed once
in float64, stored and compared in float32.

Document frequencies are counted in texts or in a file, or taken from counts made elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F32, I32, I64, ReadOnlyArrays
from dptext_spark.errors import DataError, SettingsError, file_errors
from dptext_spark.lexicon.characters import APOSTROPHE, HYPHEN, PASS, SPACE, cell, decode, lower_into, tables
from dptext_spark.runtime.jit import compiled
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Engine
from dptext_spark.text.tokenizer import letters_of
from dptext_spark.text.tokens import list_words
from dptext_spark.text.word_table import SHORT, WordTable, find_short, key_of, look_up_form

UNKNOWN, NO_WORD = -2, -1
TOP = np.uint64(0x8080808080808080)  # of characters that are not ASCII
LINES = 10_000  # of a corpus that are looked at together


@dataclass(frozen=True, eq=False)
class Idf(ReadOnlyArrays):
    """Inverse document frequency.

    Attributes:
        table: the words.
        values: float32[W + 1], the weight of each word, and at the end that of an unknown one; None where the run is still to
            count its own texts.
        corpus: of the settings; None for the very texts that are sanitized.
    """

    name: ClassVar[str] = "idf"
    table: WordTable
    values: F32 | None
    documents: int = 0
    corpus: str | None = None

    @classmethod
    def of(cls, table: WordTable, frequencies: Frequencies, corpus: str | None = None) -> Idf:
        """Weigh the words of a table.

        Raises:
            SettingsError: the frequencies are those of another table.
        """
        if len(frequencies.counts) != len(table.flags):
            raise SettingsError(
                f"importance: counts of {len(frequencies.counts):,} words do not fit {len(table.flags):,} words. Use counts "
                "of the same lexicon and stop words."
            )
        kinds, place = np.unique(np.append(frequencies.counts, 0), return_inverse=True)
        whole = math.log(1 + frequencies.documents)
        weights = np.array([whole - math.log(1 + int(count)) for count in kinds], np.float64)
        values = np.maximum(weights, 0.0).astype(np.float32)[place]
        return cls(table, values, frequencies.documents, corpus)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the weights; their words are in the model's own."""
        if self.values is None:
            return "idf, not counted"
        return f"idf {hashlib.sha256(np.ascontiguousarray(self.values).tobytes()).hexdigest()}"

    @property
    def sentence(self) -> str:
        """Describe the counted texts."""
        counted = f" ({self.documents:,} documents)" if self.corpus is not None and self.documents else ""
        if self.corpus is not None:
            return (
                f"The corpus{counted} is taken as public. Rare words are important, and words that the lexicon lacks are most "
                "important."
            )
        return (
            "The counts have no noise. Rare words are important, and words that the lexicon lacks are most important. The "
            "drawn words of a record depend on all other texts, and that is not protected. With importance.corpus they do not. "
            "The model holds these counts, for its owner alone: they reveal something about the texts."
        )

    def weights(self, words: Spans) -> F32:
        """Return float32[n].

        Raises:
            SettingsError: nothing was counted.
        """
        if self.values is None:
            raise SettingsError(
                "importance.corpus: not set, but only a run can count its own texts. Choose a text file with one document "
                "a line."
            )
        # The last two places are those of UNKNOWN and of NO_WORD.
        weights: F32 = np.append(self.values, np.float32(0))[numbers_of(self.table, words)]
        return weights

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights, where they are known."""
        if self.values is None:
            return {}
        return {"values": self.values, "documents": np.array([self.documents])}

    @classmethod
    def restore(cls, table: WordTable, arrays: Mapping[str, npt.NDArray[Any]], corpus: str | None) -> Idf:
        """Build again from :meth:`arrays`."""
        if "values" not in arrays:
            return cls(table, None, 0, corpus)
        return cls(table, arrays["values"], int(arrays["documents"][0]), corpus)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """In how many documents words occur; figures of several corpora add up.

    Attributes:
        counts: int64[W], of each word of a word table: the lexicon's, then stop words that it lacks.
    """

    documents: int
    counts: I64

    def __add__(self, other: Frequencies) -> Frequencies:
        """Count two corpora as one."""
        return Frequencies(self.documents + other.documents, self.counts + other.counts)

    @property
    def digest(self) -> str:
        """The identity of these counts."""
        return hashlib.sha256(np.append(self.counts, self.documents).astype("<i8").tobytes()).hexdigest()

    @classmethod
    def of(cls, engine: Engine, texts: pa.Array | Iterable[str]) -> Frequencies:
        """Count documents, cut as the engine cuts its texts.

        Args:
            engine: whose words and policy count.
            texts: documents; NULLs are none.
        """
        array = (
            texts
            if isinstance(texts, pa.Array | pa.ChunkedArray)
            else pa.array(list(texts), pa.large_string())
        )
        words = list_words(engine, array).words
        counts = np.zeros(len(engine.table.flags), np.int64)
        _count(numbers_of(engine.table, words), words.bounds, counts, np.zeros(len(counts), np.int64))
        return cls(len(array) - array.null_count, counts)

    @classmethod
    def read(cls, engine: Engine, file: str | Path) -> Frequencies:
        """Count a text file: UTF-8, a document a line; empty lines are none.

        Raises:
            DataError: it cannot be read, is no UTF-8, or holds no document.
        """
        total = cls(0, np.zeros(len(engine.table.flags), np.int64))
        lines: list[str] = []
        with (
            file_errors("importance.corpus", file),
            Path(file).open(encoding="utf-8-sig", newline="\n") as stream,
        ):
            for line in stream:
                if line.strip():
                    lines.append(line)
                if len(lines) == LINES:
                    total, lines = total + cls.of(engine, lines), []
        total = total + cls.of(engine, lines)
        if not total.documents:
            raise DataError(f"importance.corpus: {str(file)!r} has no document. Write one document a line.")
        return total


def numbers_of(table: WordTable, words: Spans) -> I32:
    """Look words up: int32[n], their numbers in a word table, `UNKNOWN`, or `NO_WORD` for punctuation alone."""
    chars = tables()
    numbers = np.empty(len(words.starts), np.int32)
    longest = int((words.ends - words.starts).max(initial=0))
    form = np.zeros(4 * longest + 16, np.uint8)
    letters = (chars.stage, chars.classes, chars.lower)
    _numbers(words.data, words.starts, words.ends, table.lookup, letters, form, numbers)
    return numbers


@compiled
def _numbers(data: Any, starts: Any, ends: Any, table: Any, chars: Any, form: Any, found: Any) -> None:
    stage, classes, lower = chars
    for i in range(starts.shape[0]):
        size = ends[i] - starts[i]
        plain = 0 < size <= SHORT and starts[i] + SHORT <= data.shape[0]
        if plain:
            k0, k1 = key_of(data[starts[i] : starts[i] + SHORT], size)
            plain = (k0 | k1) & TOP == 0 and data[ends[i] - 1] != 0
        if plain:  # of ASCII alone, 16 bytes at most: lower case as the engine's fast path makes it
            lower0, lower1 = letters_of(k0) >> np.uint64(2), letters_of(k1) >> np.uint64(2)
            info = find_short(table[0], table[1], k0 | lower0, k1 | lower1)
        else:
            info = look_up_form(form, lower_into(data, starts[i], ends[i], form, stage, lower), table)
        found[i] = info & 0xFFFFFFFF if info >= 0 else UNKNOWN
        position = starts[i]
        while info < 0 and position < ends[i]:
            code, length = decode(data, position, ends[i])
            kind = classes[cell(code, stage)] if code >= 0 else SPACE
            if kind != PASS and kind != APOSTROPHE and kind != HYPHEN:
                break
            position += length
        if info < 0 and position == ends[i]:
            found[i] = NO_WORD


@compiled
def _count(numbers: Any, bounds: Any, counts: Any, seen: Any) -> None:
    for row in range(bounds.shape[0] - 1):
        for i in range(bounds[row], bounds[row + 1]):
            if numbers[i] >= 0 and seen[numbers[i]] != row + 1:
                seen[numbers[i]] = row + 1
                counts[numbers[i]] += 1


_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
# By name: only who asks for attention needs the extra [encoder].
_ENCODER, _MODEL = "dptext_spark.encoder.encoder", "dptext_spark.encoder.weights"


class InvalidWeightsError(DataError):
    """Weights that are missing, not one for each word, or no finite numbers of 0 or more.

    `count`: of texts or weights that are concerned.
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
        """Its name in settings."""

    @property
    def fingerprint(self) -> str:
        """Its identity: providers with equal fingerprints give equal words equal weights."""

    @property
    def sentence(self) -> str:
        """Its kind and origin, for the disclosure statement."""

    def weights(self, words: Spans) -> F32:
        """Return the importance of each word, float32[n]: finite, 0 or more; only its order within a record counts."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that weighing elsewhere needs, by name."""


@dataclass(frozen=True)
class RandomImportance:
    """No importance: the places that come first depend on the number of a record's words alone. A baseline.

    `seed`: another one gives other places.
    """

    name: ClassVar[str] = "random"
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """The seed."""
        return f"random {self.seed}"

    @property
    def sentence(self) -> str:
        """State that nothing is measured."""
        return "The drawn places depend on the number of a record's words alone, not on the words."

    def weights(self, words: Spans) -> F32:
        """Return float32[n], mixed from the seed, the record's number of words and the word's place in the record."""
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
    """Numbers from the user: a list for each text.

    `lists`: list<float> or large_list<float> [rows]; None in a model, to which each batch brings its own.
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
                "importance: the weights are missing. Provider column needs a list of numbers for each text.",
                0,
            )
        rows = len(words.bounds) - 1
        lists = self.lists
        sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        wrong = rows if len(lists) != rows else int((sizes != np.diff(words.bounds)).sum())
        if wrong:
            raise InvalidWeightsError(
                f"importance: {wrong:,} texts have another number of weights than words. Give a number for each word that "
                "the policy cuts, also for stop words, unknown words and numbers.",
                wrong,
            )
        flat = lists.flatten()
        if flat.null_count:
            missing = flat.null_count
            raise InvalidWeightsError(
                f"importance: {missing:,} weights are NULL. Give a number for each word.", missing
            )
        with np.errstate(over="ignore"):  # too large weights become infinite and are refused
            weights: F32 = flat.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float32)
        return weights

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
            f"importance: provider {provider.name} returned {weights.size:,} weights for {len(words.starts):,} words. "
            "Return one for each.",
            weights.size,
        )
    wrong = len(weights) - int((np.isfinite(weights) & (weights >= 0)).sum())
    if wrong:
        raise InvalidWeightsError(
            f"importance: provider {provider.name} returned {wrong:,} weights that are negative or not finite. Return 0 or "
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
        """Pickle without the parts that each process makes ready."""
        return {"model": self.model, "source": self.source}

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the encoder's arrays."""
        return f"attention {self.model.fingerprint}"

    @property
    def sentence(self) -> str:
        """Name the measure of importance."""
        return (
            "It is the share of a text's attention that a word receives from the other words, averaged over heads and layers. "
            "It is multiplied by the text's share of the record's words. The encoder is taken as public."
        )

    def weights(self, words: Spans) -> F32:
        """Return the share of its record's attention that each word receives, float32[n].

        The encoder reads text by text, so that it gives shares of a text. A text's share of its record's attention is its share
        of the words. Otherwise the only word of a short text would come before all words of a long one.
        """
        received: F32 = self._encoder.importance(words)
        if words.records is None:
            return received
        texts, records = np.diff(words.bounds), np.diff(words.record_bounds)
        of_record = np.repeat(records, np.diff(words.records))
        parts = texts / np.maximum(of_record, 1)
        return np.asarray(received * np.repeat(parts, texts), np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the encoder's arrays."""
        arrays: dict[str, npt.NDArray[Any]] = self.model.arrays()
        return arrays

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], source: str) -> Attention:
        """Build again from :meth:`arrays`."""
        return cls(import_module(_MODEL).EncoderModel.restore(arrays), source)
