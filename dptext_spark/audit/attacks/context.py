"""The contextual adversary: guesses each replaced word from its replacement and from the words around it.

The text is a hidden Markov chain. Emissions are the mechanism's law, transitions a smoothed bigram model of a public or held-out
text. Kept words and punctuation are seen unchanged. Where a draw depends on the word released before it, the emission is the law
given that word, P(u|w, h), h as in the release. Each word is guessed by its posterior probability given the whole record
(forward-backward), over the likeliest inputs of its output. The result states the share that the pruning leaves out. At record
and dataset level, where equal words share a draw, the evidence of their occurrences is put together.

The joint posterior, where equal words share a draw: what the neighbours of all occurrences say is put together.

At record and dataset level one draw decides all occurrences of a word in the scope. So an output means the same word throughout
its scope: argmax_w ln P(w) + ln P(u|w) + Σ_t ln (P(neighbours of t|w)/P(neighbours of t)). Each term of the sum comes from
forward-backward over the record of occurrence t, its own output left out. That is one round of message passing: the occurrences
inform each other, not their neighbours' guesses. Different words with one output are not told apart, and how often a word occurs
is not used.

A text as a hidden Markov chain, decoded by forward-backward (Baum et al. 1970), in compiled loops over whole records.

The hidden states are the words; those that the adversary sees (kept words, edges) are states with one value. Where a word was
drawn, the states are the candidates of its output. A sum over the followers of a word meets only those of the next position's
candidates. So a step costs some hundred additions and not M²; the pairs that meet are found once, going forward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, Ids, offsets
from dptext_spark.audit.attacks.attacked_text import (
    HIDDEN,
    LEVELS,
    SPECIAL,
    Bigrams,
    Chain,
    Level,
    Tokens,
    guess_bigram_baseline,
    place_in,
    states,
)
from dptext_spark.audit.attacks.bayes import InputWords, candidates, candidates_after
from dptext_spark.audit.results import CONFIDENCE, WordAttack, rate_interval
from dptext_spark.audit.word_figures import DRAWS
from dptext_spark.errors import DataError, require_choice
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.runtime.jit import Int, compiled

LEAST = 1e-300
SCAN = 64  # a list of followers is read through while it is at most so many times as long as the candidates; else searched


@compiled
def _meet(
    first: Ids, m: Int, second: Ids, k: Int, starts: I64, following: Ids, mark: Ids, pairs: I64, at: Int
) -> Int:
    """List the pairs (i, j, entry) of which second[j] was seen after first[i], from pairs[at] on; return where they end.

    `mark` holds j at second[j] and -1 elsewhere; `pairs` has room for m·k more.
    """
    for i in range(m):
        low, high = starts[first[i]], starts[first[i] + 1]
        if high - low <= SCAN * k:
            for e in range(low, high):
                j = mark[following[e]]
                if j >= 0:
                    pairs[at, 0], pairs[at, 1], pairs[at, 2] = i, j, e
                    at += 1
        else:
            for j in range(k):
                e = place_in(following, low, high, second[j])
                if e >= 0:
                    pairs[at, 0], pairs[at, 1], pairs[at, 2] = i, j, e
                    at += 1
    return at


@compiled
def _forward(
    first: Ids, m: Int, before: F64, second: Ids, k: Int, into: F64, model: Chain, pairs: I64, low: Int, high: Int
) -> None:  # fmt: skip
    """Fill into[j] = Σ_i before[i]·P(second[j]|first[i]); pairs[low:high] are those that were seen."""
    unigram, weight, _, _, share = model
    rest = 0.0
    for i in range(m):
        rest += before[i] * (1.0 - weight[first[i]])
    for j in range(k):
        into[j] = rest * unigram[second[j]]
    for p in range(low, high):
        i = pairs[p, 0]
        into[pairs[p, 1]] += before[i] * weight[first[i]] * share[pairs[p, 2]]


@compiled
def _backward(
    first: Ids, m: Int, into: F64, second: Ids, k: Int, after: F64, model: Chain, pairs: I64, low: Int, high: Int
) -> None:  # fmt: skip
    """Fill into[i] = Σ_j P(second[j]|first[i])·after[j]; pairs[low:high] are those that were seen."""
    unigram, weight, _, _, share = model
    rest = 0.0
    for j in range(k):
        rest += unigram[second[j]] * after[j]
    for i in range(m):
        into[i] = (1.0 - weight[first[i]]) * rest
    for p in range(low, high):
        i = pairs[p, 0]
        into[i] += weight[first[i]] * share[pairs[p, 2]] * after[pairs[p, 1]]


@compiled
def _step(first: Ids, m: Int, second: Ids, k: Int, model: Chain, mark: Ids, pairs: I64, at: Int) -> Int:
    """List the seen pairs of two neighbouring positions; see :func:`_meet`. `mark` is -1 everywhere before and after."""
    for j in range(k):
        mark[second[j]] = j
    end = _meet(first, m, second, k, model[2], model[3], mark, pairs, at)
    for j in range(k):
        mark[second[j]] = -1
    return end


@compiled
def _room(pairs: I64, size: Int) -> I64:
    """Return `pairs` with room for `size` pairs."""
    if pairs.shape[0] >= size:
        return pairs
    more = np.empty((2 * size, 3), np.int64)
    # In turn: for a slice that is assigned numba compiles the text of an error, which takes seconds.
    for p in range(pairs.shape[0]):
        more[p, 0], more[p, 1], more[p, 2] = pairs[p, 0], pairs[p, 1], pairs[p, 2]
    return more


@compiled
def _scale(values: F64, k: Int) -> bool:
    """Make values[:k] sum to 1; return whether they can."""
    total = 0.0
    for j in range(k):
        total += values[j]
    if not total > 0.0:
        return False
    for j in range(k):
        values[j] /= total
    return True


@compiled
def decode(
    words: Ids, row: Ids, bounds: I64, edge: Int, starts: I64, ids: Ids, probability: F64, model: Chain, guesses: Ids,
    certainty: F64, evidence: F64,
) -> None:  # fmt: skip
    """Guess each hidden word by the largest posterior probability given the whole record.

    Args:
        words: int32[n], states; read only where `row` is negative.
        row: int32[n], where a word is hidden the row of its candidates, of which there is one at least; else negative.
        bounds: int64[s + 1], of the records.
        edge: the state before and after each.
        starts: int64[r + 1], the candidates of a row in the next two.
        ids: int32[m].
        probability: float64[m], P(u|w) > 0.
        model: (unigram, weight, starts, following, share) of :class:`Bigrams`.
        guesses: int32[n], written where hidden; ties to the lower id.
        certainty: float64[n], the posterior probability of the guess, written where hidden.
        evidence: float64[m] or empty. The evidence of the neighbours on each candidate, ln of P(neighbours|w) up to a constant of
            the row, is added up over the row's tokens.
    """
    longest, widest = np.int64(0), np.int64(1)
    for s in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[s + 1] - bounds[s])
    for r in range(starts.shape[0] - 1):
        widest = max(widest, starts[r + 1] - starts[r])
    unigram = model[0]
    mark = np.full(unigram.shape[0], -1, np.int32)
    states, emission = np.zeros((longest + 2, widest), np.int32), np.zeros((longest + 2, widest))
    alpha, sizes = np.zeros((longest + 2, widest)), np.ones(longest + 2, np.int64)
    after, beta = np.zeros(widest), np.zeros(widest)
    pairs, ends = np.empty((4096, 3), np.int64), np.zeros(longest + 2, np.int64)
    for s in range(bounds.shape[0] - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        states[0, 0], alpha[0, 0] = edge, 1.0
        states[length + 1, 0], sizes[length + 1] = edge, 1
        for t in range(1, length + 1):
            n = start + t - 1
            states[t, 0], emission[t, 0], sizes[t] = words[n], 1.0, 1
            if row[n] >= 0:
                first = starts[row[n]]
                sizes[t] = starts[row[n] + 1] - first
                for j in range(sizes[t]):
                    states[t, j], emission[t, j] = ids[first + j], probability[first + j]
            pairs = _room(pairs, ends[t - 1] + sizes[t - 1] * sizes[t])
            ends[t] = _step(states[t - 1], sizes[t - 1], states[t], sizes[t], model, mark, pairs, ends[t - 1])
            _forward(
                states[t - 1], sizes[t - 1], alpha[t - 1], states[t], sizes[t], alpha[t], model, pairs, ends[t - 1], ends[t]
            )  # fmt: skip
            for j in range(sizes[t]):
                alpha[t, j] *= emission[t, j]
            if not _scale(alpha[t], sizes[t]):  # what lies before tells nothing that floats can hold
                for j in range(sizes[t]):
                    alpha[t, j] = emission[t, j]
                _scale(alpha[t], sizes[t])
        pairs = _room(pairs, ends[length] + sizes[length])
        ends[length + 1] = _step(
            states[length], sizes[length], states[length + 1], 1, model, mark, pairs, ends[length]
        )
        after[0] = 1.0
        for t in range(length, 0, -1):
            _backward(
                states[t], sizes[t], beta, states[t + 1], sizes[t + 1], after, model, pairs, ends[t], ends[t + 1]
            )  # fmt: skip
            if not _scale(beta, sizes[t]):
                for j in range(sizes[t]):
                    beta[j] = 1.0 / sizes[t]
            n = start + t - 1
            if row[n] >= 0:
                best, top, total = np.int64(0), -1.0, 0.0
                for j in range(sizes[t]):
                    value = alpha[t, j] * beta[j]
                    total += value
                    if value > top or (value == top and states[t, j] < states[t, best]):
                        best, top = np.int64(j), value
                guesses[n], certainty[n] = states[t, best], top / total if total > 0.0 else 0.0
                if evidence.shape[0] > 0:
                    first = starts[row[n]]
                    for j in range(sizes[t]):
                        told = alpha[t, j] * beta[j] / (emission[t, j] * unigram[states[t, j]])
                        evidence[first + j] += math.log(max(told, LEAST))
            for j in range(sizes[t]):
                after[j] = emission[t, j] * beta[j]


@dataclass(frozen=True, kw_only=True)
class ContextAttack(WordAttack):
    """Result of the contextual adversary on a text.

    Attributes:
        apart: the same where occurrences that share a draw are treated as if they did not; `success` at token level.
        certainty: the mean posterior probability that it gives its guesses: what it would claim without the truth.
        bayes: success of the adversary that looks at one word at a time (same prior, same tokens).
        gain: success minus `bayes`; with `gain_lower` and `gain_upper`, over the same resampled records.
        most_frequent: success of always guessing the most frequent word that is drawn.
        random: expected success of a uniform guess among the words that can lead to the output.
        tokens: replaced words; `records` with all.
        covered: share of P(w)·P(u|w) that the candidates hold, mean over the tokens; 1 where decoding is exact.
    """

    name: str = "contextual adversary"
    measures: str = "The share of replaced words that the adversary guesses from their replacements and the words around them."
    knows: str | None = (
        "The adversary knows the released text, the places of replaced words, the mechanism with all "
        "settings, the kept words, and public word pairs. The adversary does not know the key."
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
    tokens: Tokens, plausible: InputWords, bigrams: Bigrams, observed: Ids | None = None
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
    shown = np.where(tokens.drawn, tokens.outputs, tokens.words).astype(np.int32)
    guesses = np.where(tokens.drawn, tokens.outputs, -1).astype(np.int32)
    certainty = np.zeros(len(shown))
    decode(
        states(shown, bigrams.words), row.astype(np.int32), tokens.bounds, edge, plausible.starts, plausible.ids,
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
    draws: int = DRAWS,
    restricted: bool = True,
    plausible: InputWords | None = None,
) -> ContextAttack:
    """Attack a text.

    Args:
        sampler: of any mechanism.
        tokens: the text beside what was released.
        bigrams: of a public or held-out text, over the same lexicon.
        drawn: bool[V], the words that the policy draws; None for all.
        level: at which draws are shared.
        draws: of each word, where the mechanism has no law.
        restricted: whether the text is private.
        plausible: of all outputs, where they are known already; then `draws` play no part.

    Raises:
        DataError: nothing in the text was drawn.
    """
    require_choice("level", level, LEVELS)
    words = bigrams.words
    at = np.flatnonzero(tokens.drawn)
    if not len(at):
        raise DataError("tokens: none was drawn. Give at least one drawn word.")
    allowed = np.ones(words, np.bool_) if drawn is None else drawn
    prior = of_drawn(bigrams.unigram[:words], allowed)
    truth, outputs = tokens.words[at], tokens.outputs[at]
    if plausible is None:
        plausible = candidates(sampler, prior, outputs, draws=draws)
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
    lower, upper = rate_interval(by_chain, total)
    gain_lower, gain_upper = rate_interval(by_chain - by_word, total)
    return ContextAttack(
        success=float(hit.mean()), lower=lower, upper=upper, apart=apart, certainty=float(certainty[at].mean()),
        bayes=float(single.mean()), gain=float(hit.mean() - single.mean()), gain_lower=gain_lower, gain_upper=gain_upper,
        bigram_baseline=float((guess_bigram_baseline(bigrams, *_kept_neighbours(tokens, words), allowed)[at] == truth).mean()),
        most_frequent=float((truth == prior.argmax()).mean()),
        random=float((1.0 / np.maximum(plausible.possible[row], 1)).mean()),
        unchanged=float((outputs == truth).mean()), unprotected=1.0,
        tokens=len(at), records=tokens.records, covered=float(covered.mean()),
        draws=plausible.draws, confidence=CONFIDENCE, restricted=restricted,
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
    word_states = np.where(tokens.drawn, HIDDEN, states(np.where(tokens.drawn, 0, tokens.words), words))
    return tokens.neighbours(word_states, words + SPECIAL - 1)


def pooled_guesses(
    tokens: Tokens, plausible: InputWords, bigrams: Bigrams, prior: F64, by_record: bool
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
    # The last one stands for outputs that were not asked for.
    filled = np.append(np.diff(plausible.starts) > 0, False)
    slot = np.where(tokens.drawn, plausible.slot[np.where(tokens.drawn, tokens.outputs, 0)], -1)
    at = np.flatnonzero(tokens.drawn & filled[slot])
    scope = np.repeat(np.arange(tokens.records), np.diff(tokens.bounds))[at] if by_record else 0
    symbols, symbol = np.unique(scope * words + tokens.outputs[at].astype(np.int64), return_inverse=True)
    source = plausible.slot[symbols % words]
    sizes = np.diff(plausible.starts)[source]
    starts = offsets(sizes)
    of = np.repeat(np.arange(len(symbols)), sizes)
    entry = np.arange(starts[-1]) - starts[of] + plausible.starts[source][of]
    ids, probability = plausible.ids[entry], plausible.probability[entry]
    row = np.full(len(tokens.words), -1, np.int32)
    row[at] = symbol.reshape(-1)
    evidence = np.zeros(len(ids))
    decode(
        states(np.where(tokens.drawn, tokens.outputs, tokens.words).astype(np.int32), words), row, tokens.bounds,
        words + SPECIAL - 1, starts, ids, probability, bigrams.chain, np.empty(len(row), np.int32), np.empty(len(row)), evidence,
    )  # fmt: skip
    guesses = np.where(tokens.drawn, tokens.outputs, -1).astype(np.int32)
    certainty = np.zeros(len(row))
    if len(symbols):
        score = np.log(prior[ids]) + np.log(probability) + evidence
        best = np.lexsort((ids, -score, of))[starts[:-1]]
        total = np.add.reduceat(np.exp(score - score[best][of]), starts[:-1])
        guesses[at], certainty[at] = ids[best][row[at]], (1.0 / total)[row[at]]
    return guesses, certainty
