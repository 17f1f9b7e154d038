"""Rare words are important: inverse document frequency. No model, no network.

The weight of a word is ln((1 + N) / (1 + df)), of N documents of which df hold it; a word that the lexicon does not hold has the
greatest there is, and punctuation none. Computed once in float64, stored and compared in float32.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext_spark.errors import SettingsError
from dptext_spark.importance.frequency import Frequencies, numbers_of
from dptext_spark.runtime.array_checks import Arrays
from dptext_spark.text.spans import Spans
from dptext_spark.text.word_table import WordTable


@dataclass(frozen=True, eq=False)
class Idf:
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
    values: npt.NDArray[np.float32] | None
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

    def weights(self, words: Spans) -> npt.NDArray[np.float32]:
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
        found: npt.NDArray[np.float32] = np.append(self.values, np.float32(0))[numbers_of(self.table, words)]
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights, where they are known."""
        if self.values is None:
            return {}
        return {"values": self.values, "documents": np.array([self.documents])}

    @classmethod
    def check(cls, arrays: Arrays, words: int) -> None:
        """Refuse stored weights that are not one for each of `words` words and for unknown ones.

        Raises:
            DataError: names the array, what it holds and what is valid.
        """
        if "values" not in arrays and "documents" not in arrays:
            arrays.only()
            return
        arrays.only("values", "documents")
        arrays.finite("values", arrays.take("values", np.float32, words + 1), low=0.0)
        arrays.within("documents", arrays.take("documents", np.int64, 1), 0, 2**63 - 1)

    @classmethod
    def restore(cls, table: WordTable, arrays: Mapping[str, npt.NDArray[Any]], corpus: str | None) -> Idf:
        """Build again from :meth:`arrays`."""
        if "values" not in arrays:
            return cls(table, None, 0, corpus)
        return cls(table, arrays["values"], int(arrays["documents"][0]), corpus)
