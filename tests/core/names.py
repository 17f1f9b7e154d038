"""Words for small lexicons, and the beginnings of large ones."""

from __future__ import annotations

import numpy as np

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary


def names(count: int) -> list[str]:
    """Distinct words of four letters, which every tokenizer cuts whole; at most 456,976."""
    return ["".join(chr(97 + number // 26**place % 26) for place in (3, 2, 1, 0)) for number in range(count)]


def beginning(lexicon: Lexicon, count: int) -> Lexicon:
    """Return the first words of a lexicon, the commonest ones, as a lexicon of their own."""
    words = Vocabulary.of(lexicon.vocabulary.strings().slice(0, count))
    return Lexicon(words, lexicon.vectors[:count].copy(), metric=lexicon.metric)


def lexicon_at(vectors: np.ndarray) -> Lexicon:
    """Return a lexicon of a word at each vector."""
    return Lexicon(Vocabulary.of(names(len(vectors))), np.ascontiguousarray(vectors, np.float32))


def scattered(count: int, dimensions: int, seed: int) -> Lexicon:
    """Return a lexicon of random vectors."""
    return lexicon_at(np.random.default_rng(seed).normal(size=(count, dimensions)))
