"""A text as a hidden Markov chain, decoded by forward-backward (Baum et al. 1970), in compiled loops over whole records.

The hidden states are the words; those that the adversary sees (kept words, edges) are states with one value. Where a word was
drawn, the states are the candidates of its output. A sum over the followers of a word meets only those of the next
position's candidates, so that a step costs some hundred additions and not M².
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.compiled import Int, compiled

LEAST = 1e-300
SCAN = 8  # a list of followers is read through while it is at most so many times as long as the candidates; else searched


@compiled
def _place(following: Any, low: Int, high: Int, state: Int) -> Int:
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
def _forward(first: Any, m: Int, before: Any, second: Any, k: Int, into: Any, model: Any, mark: Any) -> None:
    """Fill into[j] = Σ_i before[i]·P(second[j]|first[i]); `mark` holds j at second[j], -1 elsewhere."""
    unigram, weight, starts, following, share = model
    rest = 0.0
    for i in range(m):
        rest += before[i] * (1.0 - weight[first[i]])
    for j in range(k):
        into[j] = rest * unigram[second[j]]
    for i in range(m):
        known = before[i] * weight[first[i]]
        if known == 0.0:
            continue
        low, high = starts[first[i]], starts[first[i] + 1]
        if high - low <= SCAN * k:
            for e in range(low, high):
                j = mark[following[e]]
                if j >= 0:
                    into[j] += known * share[e]
        else:
            for j in range(k):
                e = _place(following, low, high, second[j])
                if e >= 0:
                    into[j] += known * share[e]


@compiled
def _backward(first: Any, m: Int, into: Any, second: Any, k: Int, after: Any, model: Any, mark: Any) -> None:
    """Fill into[i] = Σ_j P(second[j]|first[i])·after[j]; `mark` as in the forward step."""
    unigram, weight, starts, following, share = model
    rest = 0.0
    for j in range(k):
        rest += unigram[second[j]] * after[j]
    for i in range(m):
        known = 0.0
        low, high = starts[first[i]], starts[first[i] + 1]
        if high - low <= SCAN * k:
            for e in range(low, high):
                j = mark[following[e]]
                if j >= 0:
                    known += share[e] * after[j]
        else:
            for j in range(k):
                e = _place(following, low, high, second[j])
                if e >= 0:
                    known += share[e] * after[j]
        into[i] = weight[first[i]] * known + (1.0 - weight[first[i]]) * rest


@compiled
def _scale(values: Any, k: Int) -> bool:
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
    words: Any, row: Any, bounds: Any, edge: Int, starts: Any, ids: Any, probability: Any, model: Any, guesses: Any,
    certainty: Any, evidence: Any,
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
            for j in range(sizes[t]):
                mark[states[t, j]] = j
            _forward(states[t - 1], sizes[t - 1], alpha[t - 1], states[t], sizes[t], alpha[t], model, mark)
            for j in range(sizes[t]):
                mark[states[t, j]] = -1
                alpha[t, j] *= seen[t, j]
            if not _scale(alpha[t], sizes[t]):  # what lies before tells nothing that floats can hold
                for j in range(sizes[t]):
                    alpha[t, j] = seen[t, j]
                _scale(alpha[t], sizes[t])
        after[0] = 1.0
        for t in range(length, 0, -1):
            for j in range(sizes[t + 1]):
                mark[states[t + 1, j]] = j
            _backward(states[t], sizes[t], beta, states[t + 1], sizes[t + 1], after, model, mark)
            for j in range(sizes[t + 1]):
                mark[states[t + 1, j]] = -1
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
