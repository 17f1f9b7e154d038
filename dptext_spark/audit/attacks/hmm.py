"""A text as a hidden Markov chain, decoded by forward-backward (Baum et al. 1970), in compiled loops over whole records.

The hidden states are the words; those that the adversary sees (kept words, edges) are states with one value. Where a word was
drawn, the states are the candidates of its output. A sum over the followers of a word meets only those of the next
position's candidates, so that a step costs some hundred additions and not M²; which pairs meet is found once, going forward.
"""

from __future__ import annotations

import math

import numpy as np

from dptext_spark.arrays import F64, I64, Ids
from dptext_spark.audit.attacks.bigrams import Chain
from dptext_spark.runtime.jit import Int, compiled

LEAST = 1e-300
SCAN = 64  # a list of followers is read through while it is at most so many times as long as the candidates; else searched


@compiled
def _place(following: Ids, low: Int, high: Int, state: Int) -> Int:
    """Return where `state` stands in following[low:high], or -1."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if following[middle] < state:
            low = middle + 1
        else:
            high = middle
    return low if low < end and following[low] == state else np.int64(-1)


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
                e = _place(following, low, high, second[j])
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
    """Return `pairs` with room for `size` of them."""
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
        evidence: float64[m] or empty; what the neighbours say of each candidate, ln of P(neighbours|w) up to a constant of
            the row, is added up over the row's tokens.
    """
    longest, widest = np.int64(0), np.int64(1)
    for s in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[s + 1] - bounds[s])
    for r in range(starts.shape[0] - 1):
        widest = max(widest, starts[r + 1] - starts[r])
    unigram = model[0]
    mark = np.full(unigram.shape[0], -1, np.int32)
    states, seen = np.zeros((longest + 2, widest), np.int32), np.zeros((longest + 2, widest))
    alpha, sizes = np.zeros((longest + 2, widest)), np.ones(longest + 2, np.int64)
    after, beta = np.zeros(widest), np.zeros(widest)
    pairs, ends = np.empty((4096, 3), np.int64), np.zeros(longest + 2, np.int64)
    for s in range(bounds.shape[0] - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        states[0, 0], alpha[0, 0] = edge, 1.0
        states[length + 1, 0], sizes[length + 1] = edge, 1
        for t in range(1, length + 1):
            n = start + t - 1
            states[t, 0], seen[t, 0], sizes[t] = words[n], 1.0, 1
            if row[n] >= 0:
                first = starts[row[n]]
                sizes[t] = starts[row[n] + 1] - first
                for j in range(sizes[t]):
                    states[t, j], seen[t, j] = ids[first + j], probability[first + j]
            pairs = _room(pairs, ends[t - 1] + sizes[t - 1] * sizes[t])
            ends[t] = _step(states[t - 1], sizes[t - 1], states[t], sizes[t], model, mark, pairs, ends[t - 1])
            _forward(
                states[t - 1], sizes[t - 1], alpha[t - 1], states[t], sizes[t], alpha[t], model, pairs, ends[t - 1], ends[t]
            )  # fmt: skip
            for j in range(sizes[t]):
                alpha[t, j] *= seen[t, j]
            if not _scale(alpha[t], sizes[t]):  # what lies before tells nothing that floats can hold
                for j in range(sizes[t]):
                    alpha[t, j] = seen[t, j]
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
                        told = alpha[t, j] * beta[j] / (seen[t, j] * unigram[states[t, j]])
                        evidence[first + j] += math.log(max(told, LEAST))
            for j in range(sizes[t]):
                after[j] = seen[t, j] * beta[j]
