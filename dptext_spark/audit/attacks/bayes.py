"""The Bayes-optimal adversary: guesses argmax_w P(w)·P(u|w) for each output u, P a public prior (concepts/mechanisms, Audits).

No adversary who sees one replaced word alone succeeds more often: Σ_u max_w P(w)·P(u|w). Exact for laws, read in blocks with
a running maximum for each output. Where a law is a formula it can be read backwards, which is quicker by far: the guesses are
then made in float32, and their success is taken in float64. Without a law the draws of each word come in two halves of n. The
guesses are learnt on the first (P(u|w) the shares there) and tried on the second; that success, with Hoeffding's bound (1963)
for draws in strata, bounds the optimum from below. From above: Σ_u max_w P(w)·share(u|w) over the second half is in
expectation at least the optimum (a mean of maxima is at least the maximum of means), and a draw of w changes it by P(w)/n at
most, so McDiarmid (1989) bounds how far it can fall short. Both bounds hold together with the stated confidence.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, Ids
from dptext_spark.audit.attacks.posterior import columns_of, likeliest_inputs
from dptext_spark.audit.deniability.word_figures import DRAWS, blocks
from dptext_spark.audit.estimates import CONFIDENCE
from dptext_spark.audit.results import WordAttack
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.prior import Prior, of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.runtime.jit import compiled

WORST = 0.01
LISTED = 50  # of the worst words, how many are named
ROUNDING = 1e-3  # relative: what float32 may hide of the largest P(w)·P(u|w)
BACKWARDS = (
    "Read off the law of every word, backwards: exact for these guesses, of which the best possible ones find at most a "
    "thousandth more."
)
HALVES = tuple(hashlib.sha256(b"bayes attack %d" % half).digest() for half in range(2))  # public
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(frozen=True, kw_only=True)
class BayesAttack(WordAttack):
    """What the Bayes-optimal adversary finds out of one replaced word.

    Attributes:
        success: the probability that the input is guessed, the input drawn from the prior; without a law that of the guesses
            learnt from half of the draws.
        lower: a bound of the optimal success; and `upper`. Equal to it where exact.
        draws: of each word, where there is no law.
        confidence: that both bounds hold; None where exact.
        by_word: quantiles over the candidate words of the probability that the word is guessed when it is the input; it and what
            follows from it are None where single words were not looked at.
        by_word_mean: its mean, each word counted once.
        worst_share: the share of words that `worst_mean` is over: those most often guessed.
        worst_mean: the mean of that probability over them. Without a law they are chosen by the first half of the draws and
            measured on the second.
        worst_words: ids of the first of them, the worst first, ties to the lower id.
        never: the share of candidate words that are never guessed when they are the input.
        baseline: success of always guessing the most frequent candidate.
        candidates: how many words can be the input.
    """

    name: str = "Bayes-optimal adversary"
    measures: str = "The probability that one replaced word is guessed from its replacement alone, by the best possible guess."
    knows: str | None = (
        "The adversary knows the replacement of one word, the mechanism with all its settings, which words are ever replaced, "
        "and how frequent words are in public; it does not know the words around it, nor the key."
    )

    lower: float = field()
    upper: float = field()
    draws: int | None = field()  # no default: `as_dict` writes it even where it is None
    confidence: float | None = field()
    baseline: float
    candidates: int
    worst_words: tuple[int, ...]
    by_word: Mapping[str, float] | None = None
    by_word_mean: float | None = None
    worst_share: float | None = None
    worst_mean: float | None = None
    never: float | None = None
    how: str | None = ""
    unprotected: float | None = 1.0


@compiled
def _raise(words: Ids, starts: I64, ids: Ids, probability: F64, prior: F64, best: F64, guess: Ids) -> None:
    """Take the laws of some words in: best[u] = max P(w)·P(u|w), guess[u] = that w, ties to the lower."""
    for i in range(words.shape[0]):
        word = words[i]
        for e in range(starts[i], starts[i + 1]):
            value, u = prior[word] * probability[e], ids[e]
            if value > best[u] or (value == best[u] and value > 0.0 and word < guess[u]):
                best[u], guess[u] = value, word


@compiled
def _tried(words: Ids, starts: I64, ids: Ids, probability: F64, guess: Ids, found: F64) -> None:
    """found[w] = P(the guess for its output is w | w), for some words."""
    for i in range(words.shape[0]):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            if guess[ids[e]] == words[i]:
                total += probability[e]
        found[words[i]] = total


def guesses(sampler: Sampler, prior: F64, draws: int = DRAWS) -> tuple[Ids, F64, bool]:
    """Return (the guess for each output int32[V], -1 for outputs of no word; float64[V], its P(w)·P(u|w); whether exact).

    Args:
        sampler: of any mechanism.
        prior: float64[V]; words of probability 0 are never guessed.
        draws: of each word, where there is no law.
    """
    best, guess = np.zeros(len(prior)), np.full(len(prior), -1, np.int32)
    exact = True
    for block in blocks(sampler, np.flatnonzero(prior).astype(np.int32), draws, subkey=HALVES[0]):
        _raise(block.words, block.starts, block.ids, block.probability, prior, best, guess)
        exact = block.exact
    return guess, best, exact


def guesses_backwards(sampler: Sampler, prior: F64) -> tuple[Ids, F64]:
    """Return what :func:`guesses` does of a law that is a formula: (int32[V], float64[V]).

    A guess is made in float32: its P(w)·P(u|w) may lie up to `ROUNDING` (relative) below the largest. It is returned in float64.
    """
    every = np.arange(len(prior), dtype=np.int32)
    columns = columns_of(sampler)
    guess = likeliest_inputs(columns, prior, every)
    best = prior[guess] * columns.probability(guess, every)
    guess[best <= 0] = -1
    return guess, best


def found_by_word(guess: Ids, best: F64, prior: F64) -> F64:
    """Return how often each word is guessed when it is the input: float64[V], from what :func:`guesses` returns."""
    found = np.zeros(len(prior))
    led = guess >= 0
    np.add.at(found, guess[led], best[led] / prior[guess[led]])
    return found


def bayes_attack(
    sampler: Sampler,
    words: int,
    prior: Prior | F64 | None = None,
    drawn: Bools | None = None,
    *,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    backwards: bool = False,
) -> BayesAttack:
    """Attack one word at a time.

    Args:
        sampler: of any mechanism.
        words: V.
        prior: how frequent words are in public, with its name or as float64[V]; None for Zipf's law over the lexicon's order.
        drawn: bool[V], the words that can be the input (those that the policy draws); None for all.
        draws: of each word, where there is no law; an even number.
        confidence: of the bounds, where there is no law.
        backwards: read the law backwards, see :func:`guesses_backwards`; for samplers that have columns.

    Raises:
        SettingsError: an invalid prior, fewer than 2 draws, or an invalid confidence.
    """
    if not 0 < confidence < 1:
        raise SettingsError(f"confidence: {confidence!r} given; valid: a number between 0 and 1.")
    public = Prior.by_rank(words) if prior is None else prior
    law, used = (public.words, public.name) if isinstance(public, Prior) else (public, "given")
    chosen = of_drawn(law, drawn)
    if len(chosen) != words:
        raise SettingsError(f"prior: {len(chosen)} words given; valid: {words}, as in the lexicon.")
    if draws < 2:
        raise SettingsError(f"draws: {draws} given; valid: 2 or more.")
    inputs = np.flatnonzero(chosen).astype(np.int32)
    if backwards:
        (guess, best), exact = guesses_backwards(sampler, chosen), True
    else:
        guess, best, exact = guesses(sampler, chosen, draws // 2)
    measured = found = found_by_word(guess, best, chosen)
    slack, upper = 0.0, 0.0
    if not exact:
        measured, optimistic = np.zeros(words), np.zeros(words)
        again = np.full(words, -1, np.int32)
        for block in blocks(sampler, inputs, draws // 2, subkey=HALVES[1]):
            _tried(block.words, block.starts, block.ids, block.probability, guess, measured)
            _raise(block.words, block.starts, block.ids, block.probability, chosen, optimistic, again)
        # One side each: the sum of squared effects of a draw is Σ P(w)²/n in both inequalities.
        slack = math.sqrt(float((chosen**2).sum()) / (draws // 2) * math.log(2.0 / (1.0 - confidence)) / 2.0)
        upper = min(1.0, float(optimistic.sum()) + slack)
    success = min(1.0, float((chosen * measured).sum()))
    if exact:
        upper = min(1.0, success * (1.0 + ROUNDING)) if backwards else success
    worst = inputs[np.lexsort((inputs, -found[inputs]))][: max(1, math.ceil(WORST * len(inputs)))]
    shares = np.minimum(measured[inputs], 1.0)
    return BayesAttack(
        success=success, lower=max(0.0, success - slack), upper=upper, exact=exact and not backwards,
        draws=None if exact else draws // 2 * 2, confidence=None if exact else confidence,
        by_word={f"{q:g}": float(v) for q, v in zip(QUANTILES, np.quantile(shares, QUANTILES), strict=True)},
        by_word_mean=float(shares.mean()), worst_share=WORST, worst_mean=min(1.0, float(measured[worst].mean())),
        worst_words=tuple(int(w) for w in worst[:LISTED]), never=float((shares == 0).mean()),
        baseline=float(chosen.max()), candidates=len(inputs), restricted=False,
        settings={"prior": used},
        how=BACKWARDS if backwards else f"Laws are {sampler.law_is}." if sampler.law_is else "",
    )  # fmt: skip
