"""Public word and pair counts for the packaged lexicon, from the frequency dictionaries of the package symspellpy.

Words: the count of the dictionary. A word that the dictionary lacks (an American spelling, an abbreviation, a name) gets the
median count of the `AROUND` counted words about its place in the lexicon, whose order is that of frequency; so no word has none.

Pairs: those of two words of the lexicon. The list of pairs holds the commonest pairs only, each with `UNIT` times its
occurrences in the text that the words were counted in; so a pair's count is divided by it, and what the list lacks after a word
is the word's own count less that of its pairs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dptext_spark.arrays import I64, Ids
from dptext_spark.errors import DataError
from dptext_spark.lexicon.prior import PairModel, Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from tools.lexicon_sources import DICTIONARY_FILE, read_dictionary, read_pairs

PRIOR_NAME = "packaged counts of English words and pairs (symspellpy 6.10.1, from Google Books Ngram data)"
UNIT = 64
AROUND = 101


def build_prior(vocabulary: Vocabulary, dictionary: str | Path | None) -> Prior:
    """Return the prior of the packaged lexicon.

    Args:
        vocabulary: its words, in lower case.
        dictionary: a wheel (.whl) of symspellpy, a folder that holds its dictionaries, or None for the installed package.

    Raises:
        SettingsError: the package is not installed.
        DataError: the source does not hold the dictionaries, or they are damaged.
    """
    words = read_dictionary(dictionary)
    strings = vocabulary.strings().to_pylist()
    known = np.array([words.get(word, 0) for word in strings], np.int64)
    if not known.any():
        raise DataError(f"dictionary: {DICTIONARY_FILE} holds no word of the lexicon.")
    counts = completed(known)
    first, second, pairs = _pairs_of(dictionary, {word: number for number, word in enumerate(strings)})
    frequency = counts / counts.sum()
    model = PairModel.of_counts(frequency, first, second, pairs, len(vocabulary), known)
    return Prior(PRIOR_NAME, frequency, model)


def completed(counts: I64) -> I64:
    """Return counts without a 0: in its place the median of the `AROUND` counts above 0 about it, fewer where there are fewer."""
    found, known = counts.copy(), np.flatnonzero(counts)
    for word in np.flatnonzero(counts == 0):
        first = max(0, min(int(np.searchsorted(known, word)) - AROUND // 2, len(known) - AROUND))
        found[word] = int(np.median(counts[known[first : first + AROUND]]))
    return found


def _pairs_of(source: str | Path | None, numbers: dict[str, int]) -> tuple[Ids, Ids, I64]:
    """Return the pairs of two words of the lexicon: int32[m] the first ones, the second ones, and int64[m] their counts."""
    found = [
        (numbers[first], numbers[second], max(1, count // UNIT))
        for first, second, count in read_pairs(source)
        if first in numbers and second in numbers
    ]
    columns = np.array(found, np.int64).reshape(-1, 3)
    return columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32), columns[:, 2].copy()
