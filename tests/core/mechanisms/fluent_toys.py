"""Small lexicons whose prior has pairs: every law of theirs can be written out."""

from __future__ import annotations

import numpy as np

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import PairModel, Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.text.policy import Policy
from dptext_spark.text.word_table import WordTable


def names(words: int) -> list[str]:
    """Return words that are no stop words: `qaa`, `qab`, ..."""
    return [f"q{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(words)]


def pairs_of(words: int, contexts: int, seed: int, share: float = 0.3) -> PairModel:
    """Return a pair model that counts a share of all pairs, some of them often."""
    random = np.random.default_rng(seed)
    first, second = np.nonzero(random.random((contexts, words)) < share)
    counts = (random.pareto(0.7, len(first)) + 1).clip(max=1e4).astype(np.int64)
    frequency = random.dirichlet(np.full(words, 0.5)) + 1e-4
    frequency /= frequency.sum()
    return PairModel.of_counts(frequency, first.astype(np.int32), second.astype(np.int32), counts, contexts)


def lexicon_of(words: int, seed: int = 0, share: float = 0.3, among: tuple[str, ...] = ()) -> Lexicon:
    """Return a lexicon of random vectors, with pairs."""
    random = np.random.default_rng(seed)
    vocabulary = Vocabulary.of([*among, *names(words - len(among))])
    return with_pairs(Lexicon(vocabulary, random.normal(size=(words, 5)).astype(np.float32)), seed, share)


def with_pairs(lexicon: Lexicon, seed: int = 0, share: float = 0.3) -> Lexicon:
    """Return a lexicon with pairs whose contexts are the words of the default word table."""
    beyond = table_of(lexicon).beyond()
    pairs = pairs_of(len(lexicon), len(lexicon) + len(beyond), seed, share)
    return lexicon.with_prior(Prior("toy", pairs.base / pairs.base.sum(dtype=np.float64), pairs, beyond))


def table_of(lexicon: Lexicon) -> WordTable:
    """Return the default word table of a lexicon."""
    return WordTable.build(lexicon.vocabulary, Policy().stop_list())


def number_of(lexicon: Lexicon, word: str) -> int:
    """Return the number of a word in the default word table."""
    table = table_of(lexicon)
    held = bytes(table.word_bytes)
    found = [held[table.offsets[i] : table.offsets[i + 1]].decode() for i in range(len(table.flags))]
    return found.index(word)
