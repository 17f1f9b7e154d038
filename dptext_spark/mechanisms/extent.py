"""How far apart words are: the largest distance of a lexicon, and how many words lie nearer to a word than another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.arrays import I64, Ids, Vectors
from dptext_spark.lexicon.neighbors import UNDERFLOW
from dptext_spark.mechanisms.numerics.matrices import squared_distance
from dptext_spark.runtime.jit import Int, compiled

SLACK = 1e-9  # room for the rounding of lengths that only decide what need not be measured
STARTS = 256  # words from which distant pairs are looked for
TILE = 1 << 24  # float32 scores held at once (64 MiB)


def largest_distance(vectors: Vectors) -> float:
    """Return the largest Euclidean distance of two rows of float32[V, d], exactly as the fixed order measures it.

    Two words are at most as far apart as their distances from the middle together: pairs that cannot be farther than
    the farthest one so far are passed over, from the outside in.
    """
    length = _lengths_from(vectors, vectors.mean(axis=0, dtype=np.float64))
    order = np.argsort(-length, kind="stable")
    return float(_largest(vectors.reshape(-1), vectors.shape[1], order, length))


def distant_pairs(vectors: Vectors, count: int) -> list[tuple[int, int]]:
    """Return pairs of words that lie far apart, the farthest first, by a search that need not find the farthest of all.

    From `STARTS` words spread over the lexicon to the farthest word of each, and from that to its farthest.

    Args:
        vectors: float32[V, d].
        count: how many pairs at most.
    """
    squares = (vectors.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
    start = np.unique(np.linspace(0, len(vectors) - 1, min(STARTS, len(vectors))).astype(np.int64))
    found: set[tuple[int, int]] = set()
    for _ in range(3):
        far = (squares - 2.0 * (vectors[start] @ vectors.T)).argmax(axis=1)
        found |= {(int(min(i, j)), int(max(i, j))) for i, j in zip(start, far, strict=True) if i != j}
        start = np.unique(far)
    flat, size = vectors.reshape(-1), vectors.shape[1]
    return sorted(found, key=lambda pair: (-_squared(flat, size, *pair), pair))[:count]


def ranks(vectors: Vectors, words: Ids, seen_from: Ids) -> I64:
    """Return the rank of each word among all words by distance from another, ties by id; the nearest has rank 1.

    Counted on float32 scores where their largest error (see :mod:`dptext_spark.lexicon.neighbors`) leaves no doubt, else
    on distances in the fixed order: the answer does not depend on the processor.

    Args:
        vectors: float32[V, d], C order, finite.
        words: int32[m], the words that are ranked.
        seen_from: int32[m], the word from which each is ranked.

    Returns:
        int64[m].
    """
    length = _lengths_from(vectors, np.zeros(vectors.shape[1]))
    out = np.empty(len(words), np.int64)
    order = np.argsort(seen_from, kind="stable")
    centers, first = np.unique(seen_from[order], return_index=True)
    ends = np.append(first, len(order))
    step = max(1, TILE // len(vectors))
    for start in range(0, len(centers), step):
        some = centers[start : start + step]
        with np.errstate(all="ignore"):  # what overflows is measured in float64
            scores = vectors[some] @ vectors.T
        bounds = ends[start : start + step + 1]
        _count_nearer(vectors.reshape(-1), vectors.shape[1], length, some, scores, bounds, order, words, out)
    return out


@compiled
def _squared(flat: Any, size: Int, i: Int, j: Int) -> Any:
    return squared_distance(flat, size, i, j)


@compiled
def _lengths_from(vectors: Any, center: Any) -> Any:
    """Return float64[V]: the distance of each row from `center`."""
    out = np.empty(vectors.shape[0])
    for i in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            gap = np.float64(vectors[i, j]) - center[j]
            total += gap * gap
        out[i] = math.sqrt(total)
    return out


@compiled
def _largest(flat: Any, size: Int, order: Any, length: Any) -> float:
    """Return the largest distance; `order` is by descending `length`."""
    best = 0.0  # squared
    start = order[0]
    for _ in range(3):  # a good first guess: the farthest from the outermost word, and the farthest from that
        far = start
        for j in range(order.shape[0]):
            square = squared_distance(flat, size, start, j)
            if square > best:
                best = square
                far = j
        start = far
    for a in range(order.shape[0]):
        reach = math.sqrt(best) * (1.0 - SLACK)
        if 2.0 * length[order[a]] < reach:
            break
        for b in range(a + 1, order.shape[0]):
            if length[order[a]] + length[order[b]] < reach:
                break
            square = squared_distance(flat, size, order[a], order[b])
            if square > best:
                best = square
    return math.sqrt(best)


@compiled
def _count_nearer(
    flat: Any,
    size: Int,
    length: Any,
    centers: Any,
    scores: Any,
    bounds: Any,
    order: Any,
    words: Any,
    out: Any,
) -> None:
    """Fill `out`[order[bounds[i]:bounds[i + 1]]] for the words ranked from centers[i], whose float32 products are scores[i]."""
    error = 1.02 * (size + 4) * 2.0**-24
    for i in range(centers.shape[0]):
        center = centers[i]
        for m in range(bounds[i], bounds[i + 1]):
            word = words[order[m]]
            exact = squared_distance(flat, size, center, word)
            nearer = 0
            for u in range(length.shape[0]):
                score = np.float64(scores[i, u])
                both = length[center] + length[u]
                square = length[center] * length[center] + length[u] * length[u] - 2.0 * score
                slack = error * both * both + size * UNDERFLOW
                if math.isfinite(score) and square < exact - slack:
                    nearer += 1
                elif not math.isfinite(score) or square <= exact + slack:
                    other = squared_distance(flat, size, center, u)
                    if other < exact or (other == exact and u < word):
                        nearer += 1
            out[order[m]] = nearer + 1
