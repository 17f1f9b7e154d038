"""A text as a hidden Markov chain, decoded by forward-backward (Baum et al. 1970), in compiled loops over whole records.

The hidden states are the words; those that the adversary sees (kept words, edges) are states with one value. Where a word was
drawn, the states are the candidates of its output. A sum over the followers of a word meets only those of the next
position's candidates, so that a step costs some hundred additions and not M².
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.compiled import Int, compiled

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
    words: Any, outputs: Any, drawn: Any, bounds: Any, edge: Int, slot: Any, rows: Any, ids: Any, probability: Any,
    model: Any, guesses: Any, certainty: Any,
) -> None:  # fmt: skip
    """Guess each drawn word by the largest posterior probability given the whole record.

    Args:
        words: int32[n], states; read only where `drawn` is false.
        outputs: int32[n], read only where it is true.
        drawn: bool[n].
        bounds: int64[s + 1], of the records.
        edge: the state before and after each.
        slot: int32[V], the row of each output.
        rows: int64[r + 1], the candidates of a row in the next two.
        ids: int32[m].
        probability: float64[m], P(u|w).
        model: (unigram, weight, starts, following, share) of :class:`Bigrams`.
        guesses: int32[n], written where drawn; ties to the lower id. Without a candidate the output itself.
        certainty: float64[n], the posterior probability of the guess, written where drawn; 0 without a candidate.
    """
    longest, widest = np.int64(0), np.int64(1)
    for s in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[s + 1] - bounds[s])
    for r in range(rows.shape[0] - 1):
        widest = max(widest, rows[r + 1] - rows[r])
    mark = np.full(model[0].shape[0], -1, np.int32)
    states, seen = np.zeros((longest + 2, widest), np.int32), np.zeros((longest + 2, widest))
    alpha, sizes = np.zeros((longest + 2, widest)), np.zeros(longest + 2, np.int64)
    after, beta = np.zeros(widest), np.zeros(widest)
    for s in range(bounds.shape[0] - 1):
        start, length = bounds[s], bounds[s + 1] - bounds[s]
        states[0, 0], sizes[0], alpha[0, 0], seen[0, 0] = edge, 1, 1.0, 1.0
        states[length + 1, 0], sizes[length + 1], seen[length + 1, 0] = edge, 1, 1.0
        for t in range(1, length + 1):
            n = start + t - 1
            sizes[t] = 0
            if drawn[n]:
                row = np.int64(slot[outputs[n]])
                if row >= 0:
                    for e in range(rows[row], rows[row + 1]):
                        states[t, sizes[t]], seen[t, sizes[t]] = ids[e], probability[e]
                        sizes[t] += 1
                if sizes[t] == 0:
                    guesses[n], certainty[n] = outputs[n], 0.0
            if sizes[t] == 0:
                states[t, 0], seen[t, 0] = outputs[n] if drawn[n] else words[n], 1.0
                sizes[t] = 1
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
            if drawn[n] and (sizes[t] > 1 or slot[outputs[n]] >= 0):
                best, total = np.int64(0), 0.0
                for j in range(sizes[t]):
                    value = alpha[t, j] * beta[j]
                    total += value
                    top = alpha[t, best] * beta[best]
                    if value > top or (value == top and states[t, j] < states[t, best]):
                        best = np.int64(j)
                row = np.int64(slot[outputs[n]])
                if rows[row + 1] > rows[row]:
                    guesses[n] = states[t, best]
                    certainty[n] = alpha[t, best] * beta[best] / total if total > 0.0 else 0.0
            for j in range(sizes[t]):
                after[j] = seen[t, j] * beta[j]
