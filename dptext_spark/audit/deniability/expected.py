"""How many words a law alone lets expect to change: public figures, which no text was read for."""

from __future__ import annotations

import numpy as np

from dptext_spark.audit.deniability.deniability import measure
from dptext_spark.audit.deniability.word_figures import Unchanged
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.tokens import drawn_words

ENDS = (0.05, 0.95)  # of the probability of words


def expected_change(privatizer: Privatizer) -> tuple[float, float] | None:
    """Return where 1 - P(w|w) of the drawn words lies: its 5 % and 95 % quantiles, words being as common as they are in public.

    The expected share of a text is the mean of 1 - P(w|w) over its words, whatever they are: it lies in this band unless the text
    leans on the words at its ends. Where the law has no such figure without searches or sums over whole rows, None; and where
    importance or levels choose the law, or the word before, for then there is none of one word.

    Args:
        privatizer: the model.
    """
    sampler = privatizer.sampler
    if privatizer.selector is not None or len(privatizer.samplers) > 1 or sampler.reads_context:
        return None
    drawn = drawn_words(privatizer.engine)[: len(privatizer.vocabulary)]
    words = np.flatnonzero(drawn).astype(np.int32)
    if not len(words):
        return None
    # A remap over a lexicon has no short cut: it takes the law of every word.
    if not sampler.has_short_laws and (sampler.before is not None or sampler.unchanged(words[:1]) is None):
        return None
    (stays,) = measure(sampler, words, len(privatizer.vocabulary), (Unchanged(),))
    changes = 1.0 - stays.of.values
    order = np.argsort(changes, kind="stable")
    mass = np.cumsum(of_drawn(privatizer.prior.words, drawn)[words][order])
    low, high = (changes[order[min(int(np.searchsorted(mass, at)), len(words) - 1)]] for at in ENDS)
    return float(low), float(high)
