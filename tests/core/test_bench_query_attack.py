"""The query attack against exact probabilities of small cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.query_attack import nearly_tied_law, queries_needed, success_rate


def exact_rate(law: list[float], queries: int) -> float:
    """Sum over every sequence of answers: the chance that a uniform guess among the most frequent is output 0."""
    total = 0.0
    for answers in itertools.product(range(len(law)), repeat=queries):
        counts = [answers.count(output) for output in range(len(law))]
        if counts[0] == max(counts):
            total += math.prod(law[a] for a in answers) / counts.count(max(counts))
    return total


@pytest.mark.parametrize("law", [[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.9, 0.1]])
@pytest.mark.parametrize("queries", [1, 2, 3, 5])
def test_the_rate_is_the_exact_one(law: list[float], queries: int) -> None:
    many = 200_000
    found = success_rate(np.array(law), queries, many, np.random.default_rng(7))
    # 4.9 standard deviations of at most 1/2 a repetition: a false alarm in a million.
    assert found == pytest.approx(exact_rate(law, queries), abs=4.9 * 0.5 / math.sqrt(many))


@pytest.mark.parametrize(("law", "needed"), [([0.96, 0.04], 1), ([0.9, 0.1], 3), ([0.8, 0.2], 7)])
def test_two_outputs_need_what_the_binomial_law_says(law: list[float], needed: int) -> None:
    # An odd number of queries has no ties; an even one is no better than the odd one before it.
    def rate(n: int) -> float:
        return sum(math.comb(n, k) * law[0] ** k * law[1] ** (n - k) for k in range(n // 2 + 1, n + 1))

    assert next(n for n in range(1, 99, 2) if rate(n) >= 0.95) == needed
    assert queries_needed(np.array(law), repetitions=100_000) == needed


@pytest.mark.parametrize("law", [[0.4, 0.4, 0.2], [0.2, 0.5, 0.3], [0.0, 1.0]])
def test_no_number_is_enough_where_the_input_is_not_the_likeliest(law: list[float]) -> None:
    assert queries_needed(np.array(law)) == math.inf


def test_the_input_stands_anywhere() -> None:
    law = np.array([0.1, 0.25, 0.6, 0.05])
    found = queries_needed(law, 2, seed=3)
    assert found == queries_needed(law[[2, 0, 1, 3]], 0, seed=3)
    assert 1 < found < math.inf
    assert queries_needed(np.array([1.0])) == 1


def test_a_long_law_gives_what_its_counts_in_parts_give(monkeypatch: pytest.MonkeyPatch) -> None:
    law = np.concatenate([[0.3], np.full(700, 0.001)])
    whole = success_rate(law, 5, 40_000, np.random.default_rng(1))
    monkeypatch.setattr("benchmarks.query_attack.CELLS", 701 * 64)
    parts = success_rate(law, 5, 40_000, np.random.default_rng(2))
    assert whole == pytest.approx(parts, abs=4.9 * math.sqrt(2) * 0.5 / math.sqrt(40_000))


def test_a_law_of_two_known_probabilities() -> None:
    assert nearly_tied_law(0.3, 0.25, 5) == pytest.approx([0.3, 0.25, 0.15, 0.15, 0.15])
    assert nearly_tied_law(0.7, 0.3, 2) == pytest.approx([0.7, 0.3])
    for first, second, outputs in ((0.7, 0.4, 5), (0.5, 0.3, 2)):
        with pytest.raises(ValueError, match="leave"):
            nearly_tied_law(first, second, outputs)
