"""How many words a law alone lets expect to change: public figures, which no text was read for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dptext_spark.arrays import F64, Ids
from dptext_spark.audit.deniability.deniability import measure
from dptext_spark.audit.deniability.outcomes import blocks
from dptext_spark.audit.deniability.word_figures import Unchanged
from dptext_spark.importance.budget import BudgetSelector
from dptext_spark.importance.selection import WHOLE
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.tokens import drawn_words

ENDS = (0.05, 0.95)  # of the probability of words
SAMPLE = 64  # words that are looked at where not all can be
MOST_DRAWS, LEAST_DRAWS = 64, 16  # of each of them
WORK = 1 << 33  # numbers that all these draws may read: about a second
SURE = 0.98  # that both bounds of one word hold; each of them alone with 0.99
_SEED = 5

OF_CONTEXT = "a draw depends on the word before it, too"
OF_RECORD = "which law draws a word depends on how many words its record has"
NOT_DRAWN = "the policy draws no word of the lexicon"
NOT_QUICK = "the law of a word is a search over a lexicon this large, which takes longer than a second"
NOT_ALL = (
    "importance chooses the words by the table, and only the laws of all words would bound it, which take longer than a "
    "second"
)


def expected_change(privatizer: Privatizer) -> tuple[float, float] | str:
    """Return where 1 - P(w|w) of the drawn words lies, or in a part of a sentence why no law tells.

    - Its 5 % and 95 % quantiles, words being as common as they are in public, and the mean of all where that lies beyond them.
      The expected share of a text is the mean of 1 - P(w|w) over its words, whatever they are: it lies in this band unless the
      text leans on the words at its ends.
    - Of several levels of importance, those of the least and of the greatest 1 - P(w|w) that a word has at any level: which
      words have which level is the table's. Where importance leaves words in clear, the least and the greatest of all words,
      for the drawn ones are then no public sample; but for places that do not depend on words (`random`, at token level).
    - Where the figure takes searches or sums over whole rows, `SAMPLE` words stand for all. They are drawn by how common they are
      in public, one of each equal part of the probability, under a fixed seed. The band is from the least lower to the greatest
      upper bound of theirs, exact where there is a law, else from draws under a public key. An end is wrong with a probability
      below 5 %: none of the words is beyond the quantile (0.95^64), or the bound of one that is does not hold (0.01).

    Args:
        privatizer: the model.
    """
    samplers, selector = privatizer.samplers, privatizer.selector
    if isinstance(selector, BudgetSelector):
        return OF_RECORD
    if any(sampler.reads_context for sampler in samplers):
        return OF_CONTEXT
    total = len(privatizer.vocabulary)
    drawn = drawn_words(privatizer.engine)[:total]
    words = np.flatnonzero(drawn).astype(np.int32)
    if not len(words):
        return NOT_DRAWN
    leans = selector is not None and (
        selector.selection.cumulative[-1] < WHOLE
        and (selector.selection.provider != "random" or privatizer.consistency != "token")
    )
    share = of_drawn(privatizer.prior.words, drawn)[words]
    if all(_is_quick(sampler, words) for sampler in samplers):
        return _of_all(samplers, words, share, total, leans=leans)
    return NOT_ALL if leans else _of_some(samplers, words, share, total)


def _is_quick(sampler: Sampler, words: Ids) -> bool:
    """Whether P(w|w) of all words is read at once; a remap over a lexicon has no short cut: it takes the law of every word."""
    return sampler.has_short_laws or (sampler.before is None and sampler.unchanged(words[:1]) is not None)


def _of_all(
    samplers: Sequence[Sampler], words: Ids, share: F64, total: int, *, leans: bool
) -> tuple[float, float]:
    """Return the band of the figures of every word."""
    changes = np.array([1.0 - measure(one, words, total, (Unchanged(),))[0].of.values for one in samplers])
    least, most = changes.min(axis=0), changes.max(axis=0)
    if leans:
        return float(least.min()), float(most.max())
    low = min(_quantile(least, share, ENDS[0]), float(least @ share))
    return low, max(_quantile(most, share, ENDS[1]), float(most @ share))


def _quantile(values: F64, share: F64, at: float) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order[min(int(np.searchsorted(np.cumsum(share[order]), at)), len(order) - 1)]])


def _of_some(samplers: Sequence[Sampler], words: Ids, share: F64, total: int) -> tuple[float, float] | str:
    """Return the band of bounds of a sample."""
    at = (np.arange(SAMPLE) + np.random.default_rng(_SEED).random(SAMPLE)) / SAMPLE
    some = np.unique(words[np.minimum(np.searchsorted(np.cumsum(share), at), len(words) - 1)])
    low, high = 1.0, 0.0
    for sampler in samplers:
        size = sum(array.size for array in sampler.arrays().values())
        draws = min(WORK // (SAMPLE * len(samplers) * max(size, 1)), MOST_DRAWS)
        if draws < (1 if sampler.law(int(some[0])) is not None else LEAST_DRAWS):
            return NOT_QUICK
        for block in blocks(sampler, some, draws):
            stays = Unchanged().of(block, total, SURE)
            low, high = min(low, float(1.0 - stays.upper.max())), max(high, float(1.0 - stays.lower.min()))
    return low, high
