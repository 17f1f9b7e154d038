"""The best adversary against a mechanism of any kind, as far as it can be known: what it finds on one word, and what it weighs.

Tables are read exactly, and so are small lexicons. Laws that are formulas (over the whole lexicon, along lists) are read
backwards (:mod:`dptext_spark.audit.attacks.posterior`). Noise on vectors lies between two adversaries
(:mod:`dptext_spark.audit.attacks.noisy_vectors`). For all others the adversary is held to the likeliest words of the prior, each
known by draws. That still gives bounds: it never names another word, so its success counts those inputs as missed, which is a
lower bound of the optimum, and so is that of naming the output itself; an adversary who found all of them would gain their
whole probability, which gives the upper one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dptext_spark.arrays import F64, Bools, Ids
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.attacks.noisy_vectors import bayes_between, learnt
from dptext_spark.audit.attacks.posterior import (
    TRIES,
    Candidates,
    backward_candidates,
    bayes_by_tries,
    candidates,
    drawn_from,
    from_columns,
)
from dptext_spark.audit.deniability.outcomes import interval
from dptext_spark.audit.deniability.simulated import sampled
from dptext_spark.audit.estimates import CONFIDENCE, Estimate
from dptext_spark.mechanisms.base import Sampler

SMALL = 2_000  # words of a lexicon whose laws are all read
FEW = 500  # words that the adversary considers, where there is no other way
DRAWS = 100  # of each of them, where there is no law
QUICK_DRAWS = 200  # of every word of the lexicon, where draws are quick


@dataclass(frozen=True, eq=False)
class Adversary:
    """What is known of the best adversary.

    Attributes:
        alone: its success on one word, or bounds of it; None where that was not asked for.
        plausible: the words that it weighs for some outputs, int32[n], at most so many (`MOST`) for each.
        considered: bool[V], the words that it ever names.
        how: how it was found, as a sentence without its end.
    """

    alone: Estimate | None
    plausible: Callable[..., Candidates]
    considered: Bools
    how: str

    def guesses(self, outputs: Ids) -> Ids:
        """Return the word that it names for each of int32[n] outputs; the output itself where it weighs none."""
        found = self.plausible(outputs, 1)
        named = found.best[found.slot[outputs]]
        return np.where(named < 0, outputs, named).astype(np.int32)


def adversary(
    sampler: Sampler,
    prior: F64,
    *,
    few: int | None = None,
    draws: int | None = None,
    tries: int = TRIES,
    confidence: float = CONFIDENCE,
    measured: bool = True,
) -> Adversary:
    """Return the best adversary that there is a way to.

    Args:
        sampler: of any mechanism.
        prior: float64[V], sums to 1.
        few: words that it considers at most, where there is no other way; None for `FEW`, or all where draws are quick.
        draws: of each of them, where there is no law; None for `DRAWS`, or `QUICK_DRAWS` where they are quick.
        tries: words drawn from the prior, where its success on one word is estimated.
        confidence: with which both bounds of that success hold together.
        measured: whether to measure its success on one word; False leaves `alone` None.
    """
    words, possible = len(prior), prior > 0
    quick = sampler.draws_quickly
    few = few or (words if quick else FEW)
    draws = draws or (QUICK_DRAWS if quick else DRAWS)
    if sampler.has_short_laws or (is_small(words) and sampler.law(0) is not None):
        alone = None
        if measured:
            found = bayes_attack(sampler, words, prior)
            alone = Estimate(found.success, found.lower, found.upper, exact=True)
        how = "exact: every law of the lexicon was read"
        how += f", {sampler.law_is}" if sampler.law_is else ""
        return Adversary(alone, partial(candidates, sampler, prior), possible, how)
    if sampler.law_columns() is not None:
        alone = bayes_by_tries(sampler, prior, tries, confidence) if measured else None
        how = f"estimated from {tries:,} words drawn from the prior; the guesses weigh every word of the lexicon"
        return Adversary(alone, partial(backward_candidates, sampler, prior), possible, how)
    noisy = sampler.noisy_vectors()
    if noisy is not None:
        alone, ranking = (
            bayes_between(noisy, prior, tries, confidence) if measured else (None, learnt(noisy, prior))
        )
        how = (
            f"between bounds, from {tries:,} words drawn from the prior: below, who ranks every word of the lexicon by its "
            "distance to the output; above, who sees the noisy vector itself"
        )
        return Adversary(alone, partial(from_columns, ranking.likelihood, prior), possible, how)
    considered = likeliest(prior, few)
    mass = float(prior[considered].sum())
    alone = _bounded(sampler, prior, considered, draws, tries, confidence) if measured else None
    how = f"bounded: the adversary considers the {int(considered.sum()):,} likeliest words, {100 * mass:.1f} % of the prior"
    how += "" if sampler.law(0) is not None else f", each known by {draws:,} draws"
    how += "; upper bounds count all other words as found"
    kept = np.where(considered, prior, 0.0)
    return Adversary(alone, partial(candidates, sampler, kept, draws=draws), considered, how)


def is_small(words: int) -> bool:
    """Return whether a lexicon of so many words is one whose laws are all read."""
    return words <= SMALL


def _bounded(
    sampler: Sampler, prior: F64, considered: Bools, draws: int, tries: int, confidence: float
) -> Estimate:
    """Return the success of the better of two adversaries with bounds of the best possible one.

    One knows the considered words only, the other names the output itself. Each gets half of the error 1 - confidence.
    """
    mass = float(prior[considered].sum())
    sure = (1.0 + confidence) / 2.0
    found = bayes_attack(sampler, len(prior), prior, considered, draws=draws, confidence=sure)
    words, numbers = drawn_from(prior, tries)
    same = int((words == sampled(sampler, words, numbers)).sum())
    low = float(interval([same], tries, sure)[0][0])
    value = max(mass * found.success, same / tries)
    upper = max(value, min(1.0, mass * found.upper + 1.0 - mass))  # a sum of rounded numbers can end below 1
    return Estimate(value, max(mass * found.lower, low), upper)


def likeliest(prior: F64, most: int) -> Bools:
    """Return bool[V]: the words of largest probability, ties to the lower id; none of probability 0."""
    chosen = np.zeros(len(prior), np.bool_)
    chosen[np.lexsort((np.arange(len(prior)), -prior))[:most]] = True
    return np.asarray(chosen & (prior > 0))
