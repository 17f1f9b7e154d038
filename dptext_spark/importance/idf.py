"""Rare words are important: inverse document frequency. No model, no network.

The weight of a word is ln((1 + N) / (1 + df)), of N documents of which df hold it; a word that the lexicon does not hold has the
greatest there is, and punctuation none. Computed once in float64, stored and compared in float32.

Document frequencies are counted in texts, in a file of them, or taken from counts made elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.arrays import F32, I32, I64, ReadOnlyArrays
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.characters import APOSTROPHE, HYPHEN, PASS, SPACE, cell, decode, lower_into, tables
from dptext_spark.runtime.jit import compiled
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Engine
from dptext_spark.text.lookup import look_up_form
from dptext_spark.text.tokenizer import letters_of
from dptext_spark.text.tokens import list_words
from dptext_spark.text.word_table import SHORT, WordTable, find_short, key_of

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
        documents: that were counted.
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
                f"importance: counts of {len(frequencies.counts):,} words given for {len(table.flags):,}; valid: those "
                "of the same lexicon and stop words."
            )
        kinds, place = np.unique(np.append(frequencies.counts, 0), return_inverse=True)
        whole = math.log(1 + frequencies.documents)
        weights = np.array([whole - math.log(1 + int(count)) for count in kinds], np.float64)
        values = np.maximum(weights, 0.0).astype(np.float32)[place]
        return cls(table, values, frequencies.documents, corpus)

    @cached_property
    def fingerprint(self) -> str:
        """Of the weights; which words they are of is in the model's own."""
        if self.values is None:
            return "idf, not counted"
        return f"idf {hashlib.sha256(np.ascontiguousarray(self.values).tobytes()).hexdigest()}"

    @property
    def sentence(self) -> str:
        """Say what was counted."""
        counted = f" ({self.documents:,} documents)" if self.corpus is not None and self.documents else ""
        if self.corpus is not None:
            return (
                f"The corpus{counted} is taken to be public: rare words are important, and words that the lexicon lacks most of "
                "all."
            )
        return (
            "It is counted without any noise: rare words are important, and words that the lexicon lacks most of all. Which "
            "words of a record are drawn depends on all other texts, and that is not protected. With importance.corpus it does "
            "not. The model holds these counts, for its owner alone: who reads it learns of the texts."
        )

    def weights(self, words: Spans) -> F32:
        """Return float32[n].

        Raises:
            SettingsError: nothing was counted.
        """
        if self.values is None:
            raise SettingsError(
                "importance.corpus: none given, and what a run counts in its own texts is only known in the run; valid here: "
                "a text file, a document a line."
            )
        # The last two places are those of UNKNOWN and of NO_WORD.
        found: F32 = np.append(self.values, np.float32(0))[numbers_of(self.table, words)]
        return found

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
        documents: how many there are.
        counts: int64[W], of each word of a word table: the lexicon's, then stop words that it lacks.
    """

    documents: int
    counts: I64

    def __add__(self, other: Frequencies) -> Frequencies:
        """Count two corpora as one."""
        return Frequencies(self.documents + other.documents, self.counts + other.counts)

    @property
    def digest(self) -> str:
        """What tells these counts from all others."""
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
        try:
            with Path(file).open(encoding="utf-8-sig", newline="\n") as stream:
                for line in stream:
                    if line.strip():
                        lines.append(line)
                    if len(lines) == LINES:
                        total, lines = total + cls.of(engine, lines), []
        except OSError as error:
            raise DataError(f"importance.corpus: {str(file)!r} cannot be read ({error.strerror}).") from None
        except UnicodeDecodeError:
            raise DataError(f"importance.corpus: {str(file)!r} is no UTF-8 text.") from None
        total = total + cls.of(engine, lines)
        if not total.documents:
            raise DataError(f"importance.corpus: {str(file)!r} holds no document; valid: one a line.")
        return total


def numbers_of(table: WordTable, words: Spans) -> I32:
    """Look words up: int32[n], their numbers in a word table, `UNKNOWN`, or `NO_WORD` for punctuation alone."""
    chars = tables()
    found = np.empty(len(words.starts), np.int32)
    longest = int((words.ends - words.starts).max(initial=0))
    form = np.zeros(4 * longest + 16, np.uint8)
    letters = (chars.stage, chars.classes, chars.lower)
    _numbers(words.data, words.starts, words.ends, table.lookup, letters, form, found)
    return found


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
