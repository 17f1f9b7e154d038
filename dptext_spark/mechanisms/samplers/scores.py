"""Scores of words against noisy vectors, <q,u> - |u|²/2, in float64 in one fixed order of additions: what decides.

The word with the largest score is the nearest to q; unlike the distance the score keeps its digits where |q| is large.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext_spark.runtime.jit import Int, compiled, inlined, inner_product


@inlined
def score(queries: Any, i: Int, words: Any, u: Int, size: Int, halves: Any) -> Any:
    """Return <q_i, u> - |u|²/2 in float64, in a fixed order.

    Args:
        queries: float64[n * d], flat.
        i: a query.
        words: float32[V * d], flat.
        u: a word.
        size: d.
        halves: float64[V], half the squared lengths.
    """
    whole = size - size % 8
    total = inner_product(queries, i * size, words, u * size, whole)
    for k in range(whole, size):
        total += queries[i * size + k] * np.float64(words[u * size + k])
    return total - halves[u]


@compiled
def half_squares(words: Any, size: Int) -> Any:
    """Return float64[V]: half the squared length of each row of float32[V * d], in a fixed order."""
    out = np.empty(words.shape[0] // size)
    whole = size - size % 8
    for u in range(out.shape[0]):
        total = inner_product(words, u * size, words, u * size, whole)
        for k in range(whole, size):
            total += np.float64(words[u * size + k]) * np.float64(words[u * size + k])
        out[u] = 0.5 * total
    return out


@inlined
def better(value: float, u: Int, best: float, holder: Int) -> Any:
    """Whether word u with `value` stands before `holder` with `best`: by score, ties by id; -1 holds nothing."""
    return holder < 0 or value > best or (value == best and u < holder)


@compiled
def best_two(
    queries: Any, i: Int, words: Any, size: Int, halves: Any, among: Any, count: Int
) -> tuple[Int, Int, Any, Any]:
    """Return (first, second, their scores) of query i among int32[count] words, or all words if count is -1."""
    first: Int = -1
    second: Int = -1
    most, next_most = -math.inf, -math.inf
    for k in range(halves.shape[0] if count < 0 else count):
        u = k if count < 0 else np.int64(among[k])
        value = score(queries, i, words, u, size, halves)
        if better(value, u, most, first):
            second, next_most = first, most
            first, most = u, value
        elif better(value, u, next_most, second):
            second, next_most = u, value
    return first, second, most, next_most
