"""The noise mechanisms without any of what makes them fast: one token after the other, the whole lexicon in float64."""

from __future__ import annotations

import numpy as np
from scipy import stats

from dptext_spark.randomness import Draws


def draws_of(n: int, key: int = 0) -> Draws:
    """n different draws."""
    blocks = np.zeros((n, 2), np.uint64)
    blocks[:, 0] = np.arange(n)
    return Draws(bytes([key]) * 32, blocks)


def fixed_order_sum(terms: np.ndarray) -> np.ndarray:
    """Sum float64[V, d] over d: eight sums, a tree, then what is left over, one after the other."""
    whole = terms.shape[1] - terms.shape[1] % 8
    sums = np.zeros((len(terms), 8))
    for start in range(0, whole, 8):
        sums += terms[:, start : start + 8]
    while sums.shape[1] > 1:
        sums = sums[:, ::2] + sums[:, 1::2]
    total = sums[:, 0]
    for k in range(whole, terms.shape[1]):
        total = total + terms[:, k]
    return total


def plain_two(query: np.ndarray, vectors: np.ndarray) -> tuple[int, int]:
    """The nearest and the second nearest of float32[V, d] to float64[d]: by <q,u> - |u|²/2 in float64, ties by id."""
    wide = vectors.astype(np.float64)
    score = fixed_order_sum(wide * query) - 0.5 * fixed_order_sum(wide * wide)
    first, second = np.lexsort((np.arange(len(vectors)), -score))[:2]
    return int(first), int(second)


def plain_choice(query: np.ndarray, vectors: np.ndarray, pair: tuple[int, int], t: float, u: float) -> int:
    """The rule of Vickrey, for a uniform number u; the second word always where t = 1."""
    d1, d2 = (float(np.linalg.norm(query - vectors[w].astype(np.float64))) for w in pair)
    p = 1 - t if d1 == d2 == 0 or t == 1 else (1 - t) * d2 / (t * d1 + (1 - t) * d2)
    return pair[0] if u < p else pair[1]


def plain_radial(n: int, size: int, epsilon: float, seed: int) -> np.ndarray:
    """Noise with density ∝ exp(-ε|z|), by numpy's own generator: float64[n, d]."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(n, size))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.gamma(size, 1 / epsilon, n)[:, None]


def too_far(counts: np.ndarray, probability: np.ndarray, false_alarm: float = 1e-6) -> bool:
    """Whether counts do not fit a law, by a chi-squared test over outcomes with 5 or more expected, the rest together."""
    expected = probability * counts.sum()
    many = expected >= 5
    if expected[~many].sum() < 1e-3 and counts[~many].any():
        return True
    seen, wanted = (np.append(part[many], part[~many].sum()).astype(float) for part in (counts, expected))
    if wanted[-1] < 5:  # too few for a class of their own
        seen, wanted = (np.append(part[:-2], part[-2:].sum()) for part in (seen, wanted))
    if len(seen) < 2:
        return False
    return bool(((seen - wanted) ** 2 / wanted).sum() > stats.chi2.isf(false_alarm, len(seen) - 1))


def too_different(first: np.ndarray, second: np.ndarray, false_alarm: float = 1e-6) -> bool:
    """Whether two samples of words (counts) do not fit one law, by a chi-squared test of homogeneity."""
    table = np.stack([first, second])
    common = table.sum(axis=0) >= 20
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return bool(stats.chi2_contingency(table).pvalue < false_alarm) if table.shape[1] > 1 else False
