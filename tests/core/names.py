"""Words for small lexicons, and the beginnings of large ones."""

from __future__ import annotations

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary


def names(count: int) -> list[str]:
    """Distinct words of four letters, which every tokenizer cuts whole; at most 456,976."""
    return ["".join(chr(97 + number // 26**place % 26) for place in (3, 2, 1, 0)) for number in range(count)]


def beginning(lexicon: Lexicon, count: int) -> Lexicon:
    """Return the first words of a lexicon, the commonest ones, as a lexicon of their own."""
    words = Vocabulary.of(lexicon.vocabulary.strings().slice(0, count))
    return Lexicon(words, lexicon.vectors[:count].copy(), metric=lexicon.metric)
