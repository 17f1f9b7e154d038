"""The attacks written plainly, from their formulas: slow, and obviously right."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.text.tokens import EDGE, UNKNOWN

Reals = npt.NDArray[np.float64]


def table_sampler(law: Reals) -> TableSampler:
    """Return a sampler of float64[V, V], rows of P(u|w)."""
    words = len(law)
    ids = np.tile(np.arange(words, dtype=np.int32), (words, 1))
    return TableSampler.of(ids, law, Guarantee("epsilon_dp", 1.0), TableSummary())


def law_table(sampler: Sampler, words: int) -> Reals:
    """Return float64[V, V], rows of P(u|w), read off each law."""
    table = np.zeros((words, words))
    for word in range(words):
        law = sampler.law(word)
        assert law is not None
        table[word, law.ids] = law.probability
    return table


def some_law(words: int, seed: int, zeros: float = 0.3) -> Reals:
    """Return rows of probabilities, some of them 0."""
    random = np.random.default_rng(seed)
    law = random.exponential(size=(words, words)) * (random.random((words, words)) > zeros)
    law[np.arange(words), np.arange(words)] += 0.1
    return law / law.sum(axis=1, keepdims=True)


def transitions(records: Sequence[Sequence[int]], words: int, weight: float | None) -> tuple[Reals, Reals]:
    """Return (P(b|a) float64[V + 2, V + 2], P(b) float64[V + 2]) by counting pairs one by one."""
    size = words + 2
    pairs, alone = np.zeros((size, size)), np.zeros(size)
    at = {EDGE: words + 1, UNKNOWN: words}
    for record in records:
        row = [words + 1, *(at.get(token, token) for token in record), words + 1]
        for a, b in itertools.pairwise(row):
            pairs[a, b] += 1
        for a in row:
            alone[a] += 1
    zipf = 1.0 / (np.arange(words) + 2.7)
    base = np.append(zipf / zipf.sum() * words / size, [1.0 / size, 1.0 / size])
    kinds = (alone > 0).sum()
    unigram = (alone + kinds * base) / (alone.sum() + kinds)
    out = np.zeros((size, size))
    for a in range(size):
        total = pairs[a].sum()
        share = pairs[a] / total if total else pairs[a]
        lam = weight if weight is not None else total / (total + 5 * (pairs[a] > 0).sum()) if total else 0.0
        lam = lam if total else 0.0
        out[a] = lam * share + (1 - lam) * unigram
    return out, unigram


def posterior(
    record: Sequence[int], outputs: Sequence[int], drawn: Sequence[bool], law: Reals, allowed: npt.NDArray[np.bool_],
    step: Reals,
) -> list[Reals]:  # fmt: skip
    """Return P(word at t | everything seen) for each position, by going through every possible text."""
    words = len(law)
    edge = words + 1
    at = {EDGE: words + 1, UNKNOWN: words}
    choices = [
        [w for w in range(words) if allowed[w] and law[w, u] > 0] if d else [at.get(x, x)]
        for x, u, d in zip(record, outputs, drawn, strict=True)
    ]
    found = [np.zeros(words + 2) for _ in record]
    for text in itertools.product(*choices):
        row = [edge, *text, edge]
        p = 1.0
        for a, b in itertools.pairwise(row):
            p *= step[a, b]
        for w, u, d in zip(text, outputs, drawn, strict=True):
            p *= law[w, u] if d else 1.0
        for t, w in enumerate(text):
            found[t][w] += p
    return [one / one.sum() for one in found]
