"""Several embeddings of the same words: lexicons cut down to the words that all of them hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary


def same_words(lexicons: Sequence[Lexicon]) -> bool:
    """Whether all hold the same words in the same order, so that an id means the same in each."""
    first = lexicons[0].vocabulary
    return all(
        np.array_equal(first.offsets, other.vocabulary.offsets)
        and np.array_equal(first.data, other.vocabulary.data)
        for other in lexicons[1:]
    )


def with_shared_words(lexicons: Sequence[Lexicon]) -> tuple[Lexicon, ...]:
    """Cut lexicons down to the words that all of them hold, in the order of the first.

    Returns:
        As many lexicons, whose ids agree; themselves where they agree already.

    Raises:
        DataError: fewer than two words are in all of them.
    """
    if same_words(lexicons):
        return tuple(lexicons)
    words = lexicons[0].vocabulary.strings()
    ids = [lexicon.vocabulary.ids(words) for lexicon in lexicons]
    kept = np.all([found >= 0 for found in ids], axis=0)
    if kept.sum() < 2:
        sizes = ", ".join(f"{lexicon.name} ({len(lexicon):,})" for lexicon in lexicons)
        raise DataError(f"lexicon.more: {kept.sum()} word(s) are in all of {sizes}; at least two are needed.")
    vocabulary = Vocabulary.of(lexicons[0].vocabulary.words(ids[0][kept]))
    return tuple(
        Lexicon(
            vocabulary,
            np.ascontiguousarray(lexicon.vectors[found[kept]]),
            metric=lexicon.metric,
            name=lexicon.name,
            counts=lexicon.counts,
            checked=True,
        )
        for lexicon, found in zip(lexicons, ids, strict=True)
    )
