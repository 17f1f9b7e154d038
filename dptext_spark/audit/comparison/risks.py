"""The two risks at which mechanisms are compared, in a time that a comparison can afford, and how each was found.

:mod:`dptext_spark.audit.attacks.adversary` says what the best adversary on one word is held to. The contextual one weighs the
same words; its upper bound counts all others as found, and for noise on vectors it is that of one who sees the noisy vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, Ids
from dptext_spark.audit.attacks.adversary import DRAWS, FEW, adversary, is_small
from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.audit.attacks.context import context_attack, posterior_guesses
from dptext_spark.audit.attacks.noisy_vectors import candidates_of_vectors
from dptext_spark.audit.attacks.posterior import TRIES, drawn_from
from dptext_spark.audit.attacks.tokens import Level, Tokens, simulate
from dptext_spark.audit.comparison.frontier import Basis
from dptext_spark.audit.estimates import CONFIDENCE, Estimate, rate_interval
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler

BAYES, CONTEXT = "one word alone", "word in context"
EXPLAINED = {
    BAYES: "The probability that the Bayes-optimal adversary guesses a replaced word from its replacement alone, words as "
    "frequent as in the public text.",
    CONTEXT: "The share of the replaced words of the private text that the contextual adversary guesses from the replacements "
    "and the words around them, word pairs counted in the public text.",
}


@dataclass(frozen=True, eq=False)
class Text:
    """What is attacked, and with what knowledge.

    Attributes:
        words: int32[n], as :class:`~dptext_spark.audit.attacks.tokens.Tokens`.
        drawn: bool[n].
        bounds: int64[s + 1].
        drawable: bool[V], the words that the policy draws.
        public: word pairs of the public text.
        level: at which draws are shared.
        numbers: int32[n], the words by their numbers in the word table; None: `words`.
    """

    words: Ids
    drawn: Bools
    bounds: I64
    drawable: Bools
    public: Bigrams
    level: Level
    numbers: Ids | None = None

    def replaced(self, sampler: Sampler) -> Tokens:
        """Return it with what the mechanism drew."""
        return simulate(sampler, self.words, self.drawn, self.bounds, self.level, numbers=self.numbers)


def risks(
    sampler: Sampler, text: Text, *, few: int = FEW, draws: int = DRAWS, tries: int = TRIES
) -> tuple[dict[str, Estimate], Basis]:
    """Measure both risks.

    Args:
        sampler: of any mechanism.
        text: the private text.
        few: words that the adversary considers at most, where there is no other way.
        draws: of each of them, where there is no law.
        tries: words drawn from the prior, where the attack on one word is estimated.

    Returns:
        (the risks by name, how they were found).
    """
    words = text.public.words
    prior = of_drawn(text.public.unigram[:words], text.drawable)
    tokens = text.replaced(sampler)
    best = adversary(sampler, prior, few=few, draws=draws, tries=tries)
    more_found = float((~best.considered[tokens.words[tokens.drawn]]).mean())
    above = seen_vectors(sampler, text, prior)
    assert best.alone is not None
    context = context_attack(
        sampler,
        tokens,
        text.public,
        text.drawable,
        level=text.level,
        confidence=CONFIDENCE,
        plausible=best.plausible(tokens.outputs[tokens.drawn]),
    )
    highest = min(1.0, max(context.upper + more_found, above))
    basis = Basis(
        best.how, float(prior.max()), context.bigram_baseline, context.tokens, context.records, context.bayes
    )
    return {
        BAYES: best.alone,
        CONTEXT: Estimate(context.success, context.lower, highest),
    }, basis


def words_of(text: Text, tries: int = TRIES) -> Ids | None:
    """Return the words that :func:`risks` draws, ascending; None where it also reads the laws of all."""
    words = text.public.words
    if is_small(words):
        return None
    prior = of_drawn(text.public.unigram[:words], text.drawable)
    return np.unique(np.append(text.words[text.drawn], drawn_from(prior, tries)[0]))


def seen_vectors(sampler: Sampler, text: Text, prior: F64) -> float:
    """Return the upper end of what the contextual adversary finds who sees the noisy vectors of a text.

    It is 0 for mechanisms without noise on vectors, and 1 where draws are shared: occurrences would have to be put together.
    """
    noisy = sampler.noisy_vectors()
    if noisy is None:
        return 0.0
    if text.level != "token":
        return 1.0
    at = np.flatnonzero(text.drawn)
    plausible = candidates_of_vectors(noisy, prior, text.words[at])
    observed = np.zeros(len(text.words), np.int32)
    observed[at] = np.arange(len(at), dtype=np.int32)
    tokens = Tokens(text.words, text.words, text.drawn, text.bounds)
    guesses, _ = posterior_guesses(tokens, plausible, text.public, observed)
    hits = tokens.by_record(text.drawn & (guesses == text.words))
    return rate_interval(hits, tokens.by_record(text.drawn), CONFIDENCE)[1]
