"""The contextual adversary: guesses each replaced word from its replacement and from the words around it.

The text is a hidden Markov chain: emissions are the mechanism's law, transitions a smoothed bigram model of a public or
held-out text, words that were kept and punctuation are seen as they are. Where a draw depends on the word released before it, the
emission is the law given that word, P(u|w, h), h as it stands in the release. Each word is guessed by its posterior probability
given the whole record (forward-backward), over the likeliest inputs of its output; what the pruning leaves out is stated.
At record and dataset level, where equal words share a draw, what their occurrences tell is put together
(:mod:`dptext_spark.audit.attacks.context`).

The joint posterior, where equal words share a draw: what the neighbours of all occurrences say is put together.

At record and dataset level one draw decides all occurrences of a word in the scope, so the same output in the same scope is
taken for the same word throughout: argmax_w ln P(w) + ln P(u|w) + Σ_t ln (P(neighbours of t|w)/P(neighbours of t)), each term
of the sum from forward-backward over the record of occurrence t, its own output left out. That is one round of message
passing: the occurrences inform each other, not their neighbours' guesses. Different words with one output are not told apart,
and how often a word occurs is not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, Ids
from dptext_spark.audit.attacks.bigrams import HIDDEN, SPECIAL, Bigrams, guess_bigram_baseline, states
from dptext_spark.audit.attacks.hmm import decode
from dptext_spark.audit.attacks.posterior import MOST, Candidates, candidates, candidates_after
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.audit.deniability.outcomes import DRAWS
from dptext_spark.audit.deniability.simulated import LEVELS, Level
from dptext_spark.audit.estimates import CONFIDENCE, rate_interval
from dptext_spark.audit.results import WordAttack
from dptext_spark.errors import DataError, require_choice
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler


@dataclass(frozen=True, kw_only=True)
class ContextAttack(WordAttack):
    """What the contextual adversary finds out of a text.

    Attributes:
        success: share of the replaced words that it guesses.
        lower: of the bootstrap interval over records; and `upper`.
        apart: the same where occurrences that share a draw are treated as if they did not; `success` at token level.
        certainty: the mean posterior probability that it gives its guesses: what it would claim without the truth.
        bayes: success of the adversary that looks at one word at a time (same prior, same tokens).
        gain: success minus `bayes`; with `gain_lower` and `gain_upper`, over the same resampled records.
        most_frequent: success of always guessing the most frequent word that is drawn.
        random: expected success of a uniform guess among the words that can lead to the output.
        unchanged: share of the replaced words that came out as themselves.
        tokens: replaced words; `records` with all.
        covered: share of P(w)·P(u|w) that the candidates hold, mean over the tokens; 1 where decoding is exact.
        draws: of each word, where the law was counted from draws.
    """

    name: str = "contextual adversary"
    measures: str = (
        "The share of replaced words that are guessed from their replacements and the words around them."
    )
    knows: str | None = (
        "The adversary knows the released text, which words were replaced, the mechanism with all its settings, the words "
        "that were kept, and which words follow each other in a public text; it does not know the key."
    )

    lower: float = field()
    upper: float = field()
    apart: float
    certainty: float
    gain: float
    gain_lower: float
    gain_upper: float
    tokens: int
    records: int
    covered: float
    draws: int | None = field()  # None is said, too


def posterior_guesses(
    tokens: Tokens, plausible: Candidates, bigrams: Bigrams, observed: Ids | None = None
) -> tuple[Ids, F64]:
    """Guess the replaced words of a text.

    Args:
        tokens: the text; of `words`, only those that were not replaced are looked at.
        plausible: of all outputs in it.
        bigrams: over the same lexicon.
        observed: int32[n], what `plausible` was asked for in place of the outputs, read only where words were drawn.

    Returns:
        (int32[n] guesses, -1 where nothing was drawn; float64[n], the posterior probability of each).
    """
    edge = bigrams.words + SPECIAL - 1
    seen_there = tokens.outputs if observed is None else observed
    row = np.where(tokens.drawn, plausible.slot[np.where(tokens.drawn, seen_there, 0)], -1)
    row[(row >= 0) & (np.diff(plausible.starts)[row] == 0)] = -1
    # An output that no word leads to (a law counted from draws can miss one) counts as the word itself.
    seen = np.where(tokens.drawn, tokens.outputs, tokens.words).astype(np.int32)
    guesses = np.where(tokens.drawn, tokens.outputs, -1).astype(np.int32)
    certainty = np.zeros(len(seen))
    decode(
        states(seen, bigrams.words), row.astype(np.int32), tokens.bounds, edge, plausible.starts, plausible.ids,
        plausible.probability, bigrams.chain, guesses, certainty, np.empty(0),
    )  # fmt: skip
    return guesses, certainty


def context_attack(
    sampler: Sampler,
    tokens: Tokens,
    bigrams: Bigrams,
    drawn: Bools | None = None,
    *,
    level: Level = "token",
    most: int = MOST,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    restricted: bool = True,
    plausible: Candidates | None = None,
) -> ContextAttack:
    """Attack a text.

    Args:
        sampler: of any mechanism.
        tokens: the text beside what was released.
        bigrams: of a public or held-out text, over the same lexicon.
        drawn: bool[V], the words that the policy draws; None for all.
        level: at which draws are shared.
        most: candidates of an output.
        draws: of each word, where the mechanism has no law.
        confidence: of the bootstrap intervals.
        restricted: whether the text is private.
        plausible: of all outputs, where they are known already; then `most` and `draws` play no part.

    Raises:
        DataError: nothing in the text was drawn.
    """
    require_choice("level", level, LEVELS)
    words = bigrams.words
    at = np.flatnonzero(tokens.drawn)
    if not len(at):
        raise DataError("tokens: none of them was drawn; valid: at least one.")
    allowed = np.ones(words, np.bool_) if drawn is None else drawn
    prior = of_drawn(bigrams.unigram[:words], allowed)
    truth, outputs = tokens.words[at], tokens.outputs[at]
    if plausible is None:
        plausible = candidates(sampler, prior, outputs, most, draws)
    row, covered = plausible.slot[outputs], plausible.covered[plausible.slot[outputs]]
    in_chain, observed = plausible, None
    if sampler.reads_context:
        in_chain, pairs = candidates_after(sampler, prior, outputs, tokens.before[at], plausible.most)
        observed, covered = np.zeros(len(tokens.words), np.int32), in_chain.covered[pairs]
        observed[at] = pairs
    guesses, certainty = posterior_guesses(tokens, in_chain, bigrams, observed)
    apart = float((guesses[at] == truth).mean())
    if level != "token":
        guesses, certainty = pooled_guesses(tokens, plausible, bigrams, prior, level == "record")
    alone = plausible.best[row]
    alone = np.where(alone < 0, outputs, alone)  # as the chain does
    hit, single = guesses[at] == truth, alone == truth
    total = tokens.by_record(tokens.drawn)
    by_chain, by_word = _per_record(tokens, at, hit), _per_record(tokens, at, single)
    lower, upper = rate_interval(by_chain, total, confidence)
    gain_lower, gain_upper = rate_interval(by_chain - by_word, total, confidence)
    return ContextAttack(
        success=float(hit.mean()), lower=lower, upper=upper, apart=apart, certainty=float(certainty[at].mean()),
        bayes=float(single.mean()), gain=float(hit.mean() - single.mean()), gain_lower=gain_lower, gain_upper=gain_upper,
        bigram_baseline=float((guess_bigram_baseline(bigrams, *_kept_neighbours(tokens, words), allowed)[at] == truth).mean()),
        most_frequent=float((truth == prior.argmax()).mean()),
        random=float((1.0 / np.maximum(plausible.possible[row], 1)).mean()),
        unchanged=float((outputs == truth).mean()), unprotected=1.0,
        tokens=len(at), records=tokens.records, covered=float(covered.mean()),
        draws=plausible.draws, confidence=confidence, restricted=restricted,
        settings={
            "level": level, "candidates": plausible.most, "transitions": bigrams.smoothing, "counted_tokens": bigrams.tokens,
        },
    )  # fmt: skip


def _per_record(tokens: Tokens, at: I64, hit: Bools) -> I64:
    flags = np.zeros(len(tokens.words), np.bool_)
    flags[at] = hit
    return tokens.by_record(flags)


def _kept_neighbours(tokens: Tokens, words: int) -> tuple[Ids, Ids]:
    """Return the state before and after each token, `HIDDEN` where it was replaced."""
    seen = np.where(tokens.drawn, HIDDEN, states(np.where(tokens.drawn, 0, tokens.words), words))
    return tokens.neighbours(seen, words + SPECIAL - 1)


def pooled_guesses(
    tokens: Tokens, plausible: Candidates, bigrams: Bigrams, prior: F64, by_record: bool
) -> tuple[Ids, F64]:
    """Guess the replaced words of a text whose draws are shared.

    Args:
        tokens: the text; of `words`, only those that were not replaced are looked at.
        plausible: of all outputs in it, under `prior`.
        bigrams: over the same lexicon.
        prior: float64[V], of the words that are drawn.
        by_record: whether a draw is shared within a record; else in the whole text.

    Returns:
        (int32[n] guesses, -1 where nothing was drawn; float64[n], the probability of each by the formula above).
    """
    words = bigrams.words
    filled = np.append(
        np.diff(plausible.starts) > 0, False
    )  # the last stands for outputs that were not asked for
    slot = np.where(tokens.drawn, plausible.slot[np.where(tokens.drawn, tokens.outputs, 0)], -1)
    at = np.flatnonzero(tokens.drawn & filled[slot])
    scope = (
        np.repeat(np.arange(tokens.records, dtype=np.int64), np.diff(tokens.bounds))[at] if by_record else 0
    )
    symbols, symbol = np.unique(scope * words + tokens.outputs[at].astype(np.int64), return_inverse=True)
    source = plausible.slot[symbols % words]
    sizes = np.diff(plausible.starts)[source]
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    of = np.repeat(np.arange(len(symbols)), sizes)
    entry = np.arange(starts[-1]) - starts[of] + plausible.starts[source][of]
    ids, probability = plausible.ids[entry], plausible.probability[entry]
    row = np.full(len(tokens.words), -1, np.int32)
    row[at] = symbol.reshape(-1)
    evidence = np.zeros(len(ids))
    decode(
        states(np.where(tokens.drawn, tokens.outputs, tokens.words).astype(np.int32), words), row, tokens.bounds,
        words + SPECIAL - 1, starts, ids, probability,
        bigrams.chain,
        np.empty(len(row), np.int32), np.empty(len(row)), evidence,
    )  # fmt: skip
    guesses = np.where(tokens.drawn, tokens.outputs, -1).astype(np.int32)
    certainty = np.zeros(len(row))
    if len(symbols):
        score = np.log(prior[ids]) + np.log(probability) + evidence
        best = np.lexsort((ids, -score, of))[starts[:-1]]
        total = np.add.reduceat(np.exp(score - score[best][of]), starts[:-1])
        guesses[at], certainty[at] = ids[best][row[at]], (1.0 / total)[row[at]]
    return guesses, certainty
