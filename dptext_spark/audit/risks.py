"""The two risks at which mechanisms are compared, in a time that a comparison can afford, and how each was found.

Tables are attacked exactly. Laws over the whole lexicon and lists are read backwards (:mod:`dptext_spark.audit.backward`). Noise
on vectors lies between two adversaries (:mod:`dptext_spark.audit.noisy_vectors`). For all others the adversary is held to the
likeliest words of the prior, whose laws are read or drawn. That still gives bounds: it never names another word, so its success
counts those inputs as missed, which is a lower bound of the optimum, and so is that of naming the output itself; an adversary
who found all of them would gain their whole probability, which gives the upper one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.audit.backward import (
    TRIES,
    backward_candidates,
    bayes_by_tries,
    drawn_from,
    from_columns,
    has_columns,
)
from dptext_spark.audit.bayes import bayes_attack
from dptext_spark.audit.bigrams import Bigrams
from dptext_spark.audit.candidates import candidates
from dptext_spark.audit.context import context_attack, posterior_guesses
from dptext_spark.audit.noisy_vectors import bayes_between, candidates_of_vectors, has_density
from dptext_spark.audit.outcomes import interval
from dptext_spark.audit.points import Measure
from dptext_spark.audit.prior import of_drawn
from dptext_spark.audit.resampling import rate_interval
from dptext_spark.audit.simulated import Level, simulate
from dptext_spark.audit.threads import sampled
from dptext_spark.audit.tokens import Flags, Ids, Tokens
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.kernels import TableSampler
from dptext_spark.mechanisms.kernels.noise import NoiseSampler

BAYES, CONTEXT = "one word alone", "word in context"
EXPLAINED = {
    BAYES: "The probability that the Bayes-optimal adversary guesses a replaced word from its replacement alone, words as "
    "frequent as in the public text.",
    CONTEXT: "The share of the replaced words of the private text that the contextual adversary guesses from the replacements "
    "and the words around them, word pairs counted in the public text.",
}
SMALL = 2_000  # words of a lexicon whose laws are all read
FEW = 500  # words that the adversary considers, where there is no other way
DRAWS = 100  # of each of them, where there is no law
CONFIDENCE = 0.95
Reals = npt.NDArray[np.float64]
Say = Callable[[str, float | None], None]


@dataclass(frozen=True, eq=False)
class Text:
    """What is attacked, and with what knowledge.

    Attributes:
        words: int32[n], as :class:`~dptext_spark.audit.tokens.Tokens`.
        drawn: bool[n].
        bounds: int64[s + 1].
        drawable: bool[V], the words that the policy draws.
        public: word pairs of the public text.
        level: at which draws are shared.
    """

    words: Ids
    drawn: Flags
    bounds: npt.NDArray[np.int64]
    drawable: Flags
    public: Bigrams
    level: Level

    def replaced(self, sampler: Sampler) -> Tokens:
        """Return it with what the mechanism drew."""
        return simulate(sampler, self.words, self.drawn, self.bounds, self.level)


def risks(
    sampler: Sampler, text: Text, *, few: int = FEW, draws: int = DRAWS, tries: int = TRIES
) -> tuple[dict[str, Measure], dict[str, Any]]:
    """Measure both risks.

    Args:
        sampler: of any mechanism.
        text: the private text.
        few: words that the adversary considers at most, where there is no other way.
        draws: of each of them, where there is no law.
        tries: words drawn from the prior, where the attack on one word is estimated.

    Returns:
        (the risks by name, what else is known: how they were found and baselines, JSON-able).
    """
    words = text.public.words
    prior = of_drawn(text.public.unigram[:words], text.drawable)
    tokens = text.replaced(sampler)
    outputs = tokens.outputs[tokens.drawn]
    more_found, above = 0.0, 0.0
    if isinstance(sampler, TableSampler) or (words <= SMALL and sampler.law(0) is not None):
        found = bayes_attack(sampler, words, prior)
        alone = Measure(found.success, found.lower, found.upper, exact=True)
        plausible = candidates(sampler, prior, outputs)
        how = "exact: every law of the lexicon was read"
    elif has_columns(sampler):
        alone = Measure(*bayes_by_tries(sampler, prior, tries, CONFIDENCE))
        plausible = backward_candidates(sampler, prior, outputs)
        how = f"estimated from {tries:,} words drawn from the prior; the guesses weigh every word of the lexicon"
    elif isinstance(sampler, NoiseSampler) and has_density(sampler):
        alone, ranking = bayes_between(sampler, prior, tries, CONFIDENCE)
        plausible = from_columns(ranking.likelihood, prior, outputs)
        above = _of_vectors(sampler, text, prior)
        how = (
            f"between bounds, from {tries:,} words drawn from the prior: below, who ranks every word of the lexicon by its "
            "distance to the output; above, who sees the noisy vector itself"
        )
    else:
        considered = likeliest(prior, few)
        alone, mass = _bounded(sampler, prior, considered, draws, tries)
        plausible = candidates(sampler, np.where(considered, prior, 0.0), outputs, draws=draws)
        more_found = float((~considered[tokens.words[tokens.drawn]]).mean())
        how = f"bounded: the adversary considers the {int(considered.sum()):,} likeliest words, {100 * mass:.1f} % of the prior"
        how += "" if sampler.law(0) is not None else f", each known by {draws:,} draws"
        how += "; upper bounds count all other words as found"
    context = context_attack(
        sampler,
        tokens,
        text.public,
        text.drawable,
        level=text.level,
        confidence=CONFIDENCE,
        plausible=plausible,
    )
    highest = min(1.0, max(context.upper + more_found, above))
    more = {
        "how": how,
        "baseline": float(prior.max()),
        "in_context_without_output": context.unaided,
        "in_context_words_attacked": context.tokens,
        "in_context_records": context.records,
        "in_context_of_one_word_alone": context.bayes,
    }
    return {
        BAYES: alone,
        CONTEXT: Measure(context.success, context.lower, highest),
    }, more


def words_of(text: Text, tries: int = TRIES) -> Ids | None:
    """Return the words that :func:`risks` draws, ascending; None where it also reads the laws of all."""
    words = text.public.words
    if words <= SMALL:
        return None
    prior = of_drawn(text.public.unigram[:words], text.drawable)
    return np.unique(np.append(text.words[text.drawn], drawn_from(prior, tries)[0]))


def _of_vectors(sampler: NoiseSampler, text: Text, prior: Reals) -> float:
    """Return the upper end of what the contextual adversary finds who sees the noisy vectors; 1 where draws are shared."""
    if text.level != "token":
        return 1.0
    at = np.flatnonzero(text.drawn)
    plausible = candidates_of_vectors(sampler, prior, text.words[at])
    observed = np.zeros(len(text.words), np.int32)
    observed[at] = np.arange(len(at), dtype=np.int32)
    tokens = Tokens(text.words, text.words, text.drawn, text.bounds)
    guesses, _ = posterior_guesses(tokens, plausible, text.public, observed)
    hits = tokens.by_record(text.drawn & (guesses == text.words))
    return rate_interval(hits, tokens.by_record(text.drawn), CONFIDENCE)[1]


def _bounded(
    sampler: Sampler, prior: Reals, considered: Flags, draws: int, tries: int
) -> tuple[Measure, float]:
    """Return (the success of the better of two adversaries with bounds of the best possible one, the prior of the considered).

    One knows the considered words only, the other names the output itself. Each bound holds with half of what is spared.
    """
    mass = float(prior[considered].sum())
    sure = (1.0 + CONFIDENCE) / 2.0
    found = bayes_attack(sampler, len(prior), prior, considered, draws=draws, confidence=sure)
    words, numbers = drawn_from(prior, tries)
    same = int((words == sampled(sampler, words, numbers)).sum())
    low = float(interval([same], tries, sure)[0][0])
    value = max(mass * found.success, same / tries)
    upper = max(value, min(1.0, mass * found.upper + 1.0 - mass))  # a sum of rounded numbers can end below 1
    return Measure(value, max(mass * found.lower, low), upper), mass


def likeliest(prior: Reals, most: int) -> Flags:
    """Return bool[V]: the words of largest probability, ties to the lower id; none of probability 0."""
    chosen = np.zeros(len(prior), np.bool_)
    chosen[np.lexsort((np.arange(len(prior)), -prior))[:most]] = True
    return np.asarray(chosen & (prior > 0))
