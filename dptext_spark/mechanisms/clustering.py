"""Balanced clusters of words: the mapping `clustered` of CusText. It is ours.

The search starts from disjoint sets and swaps words of two sets while that lowers C. C is the sum of p_a·|x_a
- x_b|² over all words a and all words b of the set of a. The x are unit vectors (`cosine`) or the vectors
(`euclidean`). The weight p_a is Zipf's law at the word's place in the lexicon to the power of 3/4. A frequent
word uses its set more often. Sizes stay.

Let q = |x|². Let n, P, Q, T, X and W of a set be the sums of 1, p, q, p·q, x and p·x over its words. Then C is the sum over the
sets of n·T + P·Q - 2·W·X. Let s_a(A) = W_A·x_a + p_a·X_A·x_a, and d(v) = v_b - v_a. If a of A and b of B swap, C falls by

    2·(s_a(B) - s_a(A) + 2·p_a·q_a) + 2·(s_b(A) - s_b(B) + 2·p_b·q_b) - 4·(p_a + p_b)·x_a·x_b
        - (n_A - n_B)·d(p·q) - (P_A - P_B)·d(q) - (Q_A - Q_B)·d(p) - 2·d(p)·d(q).

The x, of length 2^12 at most, and p, 2^12 at most, are rounded to integers. A set has 4,096 words at most, so no product or sum
reaches 2^53. Float64 holds each exactly, and every processor finds the same sets. C is an integer that falls with each swap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, I64, Ids
from dptext_spark.lexicon.neighbors import Metric, nearest, squared_lengths
from dptext_spark.lexicon.prior import zipf
from dptext_spark.mechanisms.matrices import row_product
from dptext_spark.runtime.jit import Int, compiled, inlined

LARGEST = 2.0**12  # length of the longest vector and weight of the first word, in integers
NEIGHBOURS = 24  # of a word: it can move to their sets. 40 lower C by less than one per cent
ROUNDS = 40  # through all words at most; some 25 are needed
ORDINARY = 40  # words of a set; larger sets have fewer rounds, because a round takes longer


def lower_distances(sets: Ids, of_word: Ids, vectors: F32, metric: Metric) -> None:
    """Swap words between disjoint sets, so that each set holds near words.

    Args:
        sets: int32[S, k'], ids of a set ascending, padded with -1; changed, and ascending again.
        of_word: int32[V], the set of each word; changed.
        vectors: float32[V, d].
        metric: one of `METRICS`.
    """
    words = np.arange(len(vectors), dtype=np.int32)
    near, _ = nearest(vectors, words, min(len(words), 1 + NEIGHBOURS), metric)
    _lower(Clusters.of(sets, of_word, vectors, metric), near)
    for members, size in zip(sets, (sets >= 0).sum(axis=1), strict=True):
        members[:size].sort()


class Clusters(NamedTuple):
    """Sets and the sums over them, as the compiled loops change them; letters as at the head of the module.

    Attributes:
        sets: int32[S, k'], padded with -1.
        of_word: int32[V], the set of each word.
        points: float32[V·d], x.
        weights: float64[V], p.
        squares: float64[V], q.
        own: float64[V], s_a(A) - 2·p_a·q_a of each word a and its set A.
        plain: float64[S·d], X.
        weighted: float64[S·d], W.
        sums: float64[S, 3], n, P and Q.
        changed: int64[S], the swap that changed a set last.
    """

    sets: Ids
    of_word: Ids
    points: F32
    weights: F64
    squares: F64
    own: F64
    plain: F64
    weighted: F64
    sums: F64
    changed: I64

    @classmethod
    def of(cls, sets: Ids, of_word: Ids, vectors: F32, metric: Metric) -> Clusters:
        """Round vectors and weights to integers, and leave the sums at 0."""
        (words, size), count = vectors.shape, len(sets)
        lengths = np.sqrt(squared_lengths(vectors))
        if metric == "euclidean":
            lengths[:] = lengths.max()
        points = np.rint(vectors * (LARGEST / np.where(lengths > 0, lengths, 1.0))[:, None])
        law = zipf(words)
        root = np.sqrt(law / law[0])
        weights = np.maximum(1.0, np.rint(LARGEST * root * np.sqrt(root)))
        squares, own, changed = np.zeros(words), np.zeros(words), np.zeros(count, np.int64)
        plain, weighted, sums = np.zeros(count * size), np.zeros(count * size), np.zeros((count, 3))
        flat = points.astype(np.float32).reshape(-1)
        return cls(sets, of_word, flat, weights, squares, own, plain, weighted, sums, changed)


@compiled
def _lower(clusters: Clusters, near: Ids) -> None:
    """Swap words while that lowers C: each word in turn with its best partner. `near`: int32[V, n], of each word."""
    words = len(clusters.own)
    for a in range(words):
        clusters.squares[a] = row_product(clusters.points, a, clusters.points, a, _size(clusters))
        _add(clusters, a, clusters.of_word[a], 1.0)
    for number in range(len(clusters.sets)):
        _renew(clusters, number, 1)
    looked, swaps, before = np.zeros(words, np.int64), 1, 0
    for _ in range(max(1, ROUNDS * ORDINARY // max(ORDINARY, clusters.sets.shape[1]))):
        if swaps == before:
            return
        before = swaps
        for a in range(words):
            b = _partner(clusters, a, near[a], looked[a])
            looked[a] = swaps
            if b >= 0:
                swaps += 1
                _swap(clusters, a, b, swaps)


@compiled
def _partner(clusters: Clusters, a: Int, near: Ids, looked: Int) -> Int:
    """Return the word whose swap with a lowers C most, or -1.

    Those of the sets B of its neighbours count, the nearest first, where s_a(B) > s_a(A) - 2·p_a·q_a. Left out are sets that, as
    the word's own, have not changed since the swap `looked`.
    """
    sets, of_word, points, weights, squares, own, _, _, sums, changed = clusters
    source, partner, most = of_word[a], -1, 0.0
    for neighbour in near:
        target = of_word[neighbour]
        if target == source or max(changed[source], changed[target]) <= looked:
            continue
        closer = _likeness(clusters, a, target) - own[a]
        if closer <= 0.0:
            continue
        n, p, q = sums[source] - sums[target]
        for b in sets[target]:
            if b < 0:
                break
            lower = closer + _likeness(clusters, b, source) - own[b]
            lower -= 2.0 * (weights[a] + weights[b]) * row_product(points, a, points, b, _size(clusters))
            gap_p, gap_q = weights[b] - weights[a], squares[b] - squares[a]
            gap_pq = weights[b] * squares[b] - weights[a] * squares[a]
            lower = 2.0 * (lower - gap_p * gap_q) - n * gap_pq - p * gap_q - q * gap_p
            if lower > most:
                partner, most = np.int64(b), lower
    return partner


@compiled
def _swap(clusters: Clusters, a: Int, b: Int, swaps: Int) -> None:
    """Give two words each other's place."""
    source, target = clusters.of_word[a], clusters.of_word[b]
    for word, other, left, joined in ((a, b, source, target), (b, a, target, source)):
        clusters.of_word[word] = joined
        _add(clusters, word, left, -1.0)
        _add(clusters, word, joined, 1.0)
        for i in range(clusters.sets.shape[1]):
            if clusters.sets[left, i] == word:
                clusters.sets[left, i] = other
                break
    for number in (source, target):
        _renew(clusters, number, swaps)


@inlined
def _add(clusters: Clusters, word: Int, number: Int, sign: Any) -> None:
    """Add a word to the sums of a set (sign 1), or take it out (sign -1)."""
    weight, size = clusters.weights[word], _size(clusters)
    for j in range(size):
        value = sign * clusters.points[word * size + j]
        clusters.plain[number * size + j] += value
        clusters.weighted[number * size + j] += weight * value
    for j, value in enumerate((1.0, weight, clusters.squares[word])):
        clusters.sums[number, j] += sign * value


@compiled
def _renew(clusters: Clusters, number: Int, swaps: Int) -> None:
    """Compute `own` of the words of a set that has changed."""
    clusters.changed[number] = swaps
    for word in clusters.sets[number]:
        if word >= 0:
            double = 2.0 * clusters.weights[word] * clusters.squares[word]
            clusters.own[word] = _likeness(clusters, word, number) - double


@inlined
def _likeness(clusters: Clusters, word: Int, number: Int) -> Any:
    """`_likeness(clusters, a, A) -> float64`: s_a(A)."""
    size = _size(clusters)
    plain = row_product(clusters.plain, number, clusters.points, word, size)
    return (
        row_product(clusters.weighted, number, clusters.points, word, size) + clusters.weights[word] * plain
    )


@inlined
def _size(clusters: Clusters) -> Int:
    return len(clusters.points) // len(clusters.own)
