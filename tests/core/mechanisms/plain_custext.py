"""CusText in plain Python lists, from the paper's definitions: output sets by a walk, scores, the law."""

from __future__ import annotations

import math
from collections.abc import Sequence

Vectors = Sequence[Sequence[float]]


def distance(x: Sequence[float], u: Sequence[float], metric: str) -> float:
    """Euclidean distance, or 1 - cosine (1 where a vector is zero), term after term."""
    dot = xx = uu = gaps = 0.0
    for a, b in zip(x, u, strict=True):
        dot += a * b
        xx += a * a
        uu += b * b
        gaps += (a - b) * (a - b)
    if metric == "euclidean":
        return math.sqrt(gaps)
    both = math.sqrt(xx * uu)
    return 1.0 - min(1.0, max(-1.0, dot / both)) if both > 0 else 1.0


def nearest(vectors: Vectors, word: int, pool: Sequence[int], k: int, metric: str) -> list[int]:
    """The word itself, then the nearest others, ties by id."""
    others = sorted((distance(vectors[word], vectors[u], metric), u) for u in pool if u != word)
    return [word, *(u for _, u in others)][:k]


def output_sets(vectors: Vectors, k: int, mapping: str, metric: str, remainder: str) -> list[frozenset[int]]:
    """The output set of each word."""
    words = range(len(vectors))
    if mapping == "aggressive":
        return [frozenset(nearest(vectors, w, words, k, metric)) for w in words]
    found: dict[int, frozenset[int]] = {}
    if mapping == "balanced":
        for w in words:
            if w not in found:
                near = nearest(vectors, w, words, k, metric)
                for member in near:
                    found.setdefault(member, frozenset(near))
        return [found[w] for w in words]
    pool, disjoint = list(words), list[list[int]]()
    while len(pool) >= k:
        disjoint.append(sorted(nearest(vectors, pool[0], pool, k, metric)))
        pool = [w for w in pool if w not in disjoint[-1]]
    if pool and remainder == "join":
        disjoint[-1] = sorted(disjoint[-1] + pool)
    elif pool:
        disjoint.append(pool)
    if mapping == "clustered":
        swapped(vectors, disjoint, metric)
    return [frozenset(next(members for members in disjoint if w in members)) for w in words]


def whole_numbers(vectors: Vectors, metric: str) -> tuple[list[list[int]], list[int]]:
    """Round vectors to integers, each or the longest of them 2^12 long; and weights, of which the first is 2^12."""
    lengths = []
    for vector in vectors:
        square = 0.0
        for x in vector:  # in turn, as newer `sum` does not add
            square += x * x
        lengths.append(math.sqrt(square))
    longest = max(lengths)
    scales = [2.0**12 / ((length if metric == "cosine" else longest) or 1.0) for length in lengths]
    rows = [[round(x * scale) for x in vector] for vector, scale in zip(vectors, scales, strict=True)]
    return rows, [round(2**12 * (2.7 / (place + 2.7)) ** 0.75) for place in range(len(vectors))]


def swapped(vectors: Vectors, sets: list[list[int]], metric: str) -> None:
    """Swap words between sets, each word in turn, while that lowers the total."""
    (rows, weights), words = whole_numbers(vectors, metric), range(len(vectors))
    inner = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows]
    # What two words add to the total of their set, and how alike they are by the same weights.
    away = [
        [(weights[a] + weights[b]) * (inner[a][a] + inner[b][b] - 2 * inner[a][b]) for b in words]
        for a in words
    ]
    alike = [[(weights[a] + weights[b]) * inner[a][b] for b in words] for a in words]

    def lowered(a: int, mine: list[int], b: int, others: list[int]) -> int:
        mine, others = [w for w in mine if w != a], [w for w in others if w != b]
        return sum(away[a][w] - away[b][w] for w in mine) + sum(away[b][w] - away[a][w] for w in others)

    for _ in range(40):
        before = [list(members) for members in sets]
        for a in words:
            mine = next(members for members in sets if a in members)
            near = nearest(vectors, a, words, 25, metric)
            best, partner, theirs = 0, a, mine
            for others in (next(members for members in sets if w in members) for w in near):
                own = sum(alike[a][w] for w in mine if w != a)
                if others is mine or sum(alike[a][w] for w in others) <= own:
                    continue
                for b in others:
                    if (lower := lowered(a, mine, b, others)) > best:
                        best, partner, theirs = lower, b, others
            if theirs is not mine:
                mine[mine.index(a)], theirs[theirs.index(partner)] = partner, a
        if sets == before:
            return


def law(vectors: Vectors, word: int, outputs: Sequence[int], epsilon: float, metric: str) -> dict[int, float]:
    """P(u|w) = exp(ε·s(w,u)/2) / Σ, s the similarity, min-max normalised over the outputs."""
    score = {u: -distance(vectors[word], vectors[u], metric) for u in outputs}
    low, high = min(score.values()), max(score.values())
    scaled = {u: (s - low) / (high - low) if high > low else 0.0 for u, s in score.items()}
    weight = {u: math.exp(epsilon * s / 2) for u, s in scaled.items()}
    total = math.fsum(weight.values())
    return {u: w / total for u, w in weight.items()}
