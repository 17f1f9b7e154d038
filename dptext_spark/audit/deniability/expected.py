"""How many words a law alone lets expect to change: public figures, which no text was read for."""

from __future__ import annotations

import numpy as np

from dptext_spark.audit.deniability.deniability import measure
from dptext_spark.audit.deniability.word_figures import Unchanged
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.tokens import drawn_words


def expected_change(privatizer: Privatizer) -> tuple[float, float] | None:
    """Return Σ q(w)·(1 - P(w|w)) over the drawn words: with q as common as words are in public, and with q alike for all.

    A text of common words is nearer to the first, one of rare words to the second; both are means over the lexicon and hold for
    no text in particular. Where the law has no such figure without searches or sums over whole rows, None; and where importance,
    levels or a budget choose the law, for then there is none of one word.

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
    unchanged = stays.of.values
    public = of_drawn(privatizer.prior.words, drawn)[words]
    return float(1.0 - public @ unchanged), float(1.0 - unchanged.mean())
