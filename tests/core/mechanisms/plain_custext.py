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
    pool, last = list(words), frozenset[int]()
    while len(pool) >= k:
        last = frozenset(nearest(vectors, pool[0], pool, k, metric))
        found.update(dict.fromkeys(last, last))
        pool = [w for w in pool if w not in last]
    if pool:
        joined = last | set(pool) if remainder == "join" else frozenset(pool)
        found.update(dict.fromkeys(joined, joined))
    return [found[w] for w in words]


def law(vectors: Vectors, word: int, outputs: Sequence[int], epsilon: float, metric: str) -> dict[int, float]:
    """P(u|w) = exp(ε·s(w,u)/2) / Σ, s the similarity, min-max normalised over the outputs."""
    score = {u: -distance(vectors[word], vectors[u], metric) for u in outputs}
    low, high = min(score.values()), max(score.values())
    scaled = {u: (s - low) / (high - low) if high > low else 0.0 for u, s in score.items()}
    weight = {u: math.exp(epsilon * s / 2) for u, s in scaled.items()}
    total = math.fsum(weight.values())
    return {u: w / total for u, w in weight.items()}
