"""The list kernel in exact integers: which number draws which word, the formulas, and the bound for all pairs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler, OrderingSummary, Window, floor
from tests.core.mechanisms.samplers.test_table import Numbers

TOTAL = 2**63
NONE = Guarantee("metric_dp", 0.0, status="refuted")
FORMS = ("geometric", "tem")
EPSILONS = [1e-300, 1e-18, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0, 700.0, 1e308]


def sampler(
    form: str, words: int, epsilon: float, lists: int = 1, beta: float = 0.001, seed: int = 0
) -> OrderingSampler:
    rng = np.random.default_rng(seed)
    order = np.array([rng.permutation(words) for _ in range(lists)], np.int32)
    if lists == 1:
        order = np.arange(words, dtype=np.int32)[None]
    return OrderingSampler.of(
        order, window_of(form, words, lists, epsilon, beta), NONE, OrderingSummary(form=form)
    )


def window_of(form: str, words: int, lists: int, epsilon: float, beta: float = 0.001) -> Window:
    tem = form == "tem"
    return Window.tem(words, lists, epsilon, beta) if tem else Window.geometric(words, lists, epsilon)


def geometric(words: int, i: int, epsilon: float) -> list[float]:
    """P(X = x) = (e^ε-1)/(e^ε+1)·e^(-ε|x|); position i + X, clamped to 0 and V-1."""
    ratio = math.exp(-epsilon)
    law = [(1 - ratio) / (1 + ratio) * ratio ** abs(j - i) for j in range(words)]
    law[0], law[-1] = ratio**i / (1 + ratio), ratio ** (words - 1 - i) / (1 + ratio)
    return law


def tem(words: int, i: int, epsilon: float, beta: float) -> list[float]:
    """P(j|i) ∝ exp(-ε·min(|i-j|, gamma)/2) with gamma = (2/ε)·ln((1-β)(V-1)/β)."""
    gamma = max(0.0, 2 / epsilon * math.log((1 - beta) * (words - 1) / beta))
    weight = [math.exp(-epsilon * min(abs(i - j), gamma) / 2) for j in range(words)]
    return [w / math.fsum(weight) for w in weight]


def plain(form: str, words: int, i: int, epsilon: float, beta: float = 0.001) -> list[float]:
    return geometric(words, i, epsilon) if form == "geometric" else tem(words, i, epsilon, beta)


def weights(made: OrderingSampler, word: int) -> list[int]:
    law = made.law(word)
    assert law.ids.tolist() == list(range(len(made.place)))
    found = list(map(int, law.weight))
    assert sum(found) == TOTAL
    assert min(found) >= 1
    assert law.probability.tolist() == [w / TOTAL for w in found]
    return found


def worst(made: OrderingSampler, epsilon: float) -> float:
    """Return the largest ln(P(u|w)/P(u|w')) - ε·max_l d_l, over all pairs and outputs, from the integers."""
    laws, found = [weights(made, w) for w in range(len(made.place))], -math.inf
    for w, v in permutations(range(len(laws)), 2):
        away = int(np.abs(made.place[w] - made.place[v]).max())
        # Logarithms of ratios near 1 by the difference, exactly; nothing is lost for ε of 1e-12.
        ratios = (Fraction(max(a - b, 0), b) for a, b in zip(laws[w], laws[v], strict=True))
        found = max(found, math.log1p(float(max(ratios))) - epsilon * away * (1 + 1e-14))
    return found


class TestLaw:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0])
    @pytest.mark.parametrize("words", [2, 3, 5, 64, 500])
    def test_it_is_the_formula(self, form: str, epsilon: float, words: int) -> None:
        made = sampler(form, words, epsilon)
        share = floor(words, 1, epsilon) * 2 * words / 2**62
        for i in {0, 1, words // 2, words - 2, words - 1}:
            for found, wanted in zip(weights(made, i), plain(form, words, i, epsilon), strict=True):
                assert found / TOTAL == pytest.approx(wanted, rel=1e-12 + share, abs=share)

    @pytest.mark.parametrize("beta", [1e-300, 1e-9, 0.05, 0.5, 0.97, 0.9999])
    @pytest.mark.parametrize("epsilon", [0.1, 2.0])
    def test_beta(self, epsilon: float, beta: float) -> None:
        made = sampler("tem", 30, epsilon, beta=beta)
        for i in (0, 7, 29):
            found = [w / TOTAL for w in weights(made, i)]
            assert found == pytest.approx(tem(30, i, epsilon, beta), rel=1e-12, abs=1e-15)

    @pytest.mark.parametrize("form", FORMS)
    def test_several_lists_are_averaged(self, form: str) -> None:
        words, lists, epsilon = 25, 3, 0.7
        made = sampler(form, words, epsilon, lists)
        for word in range(words):
            wanted = np.zeros(words)
            for number in range(lists):
                order = made.order[number]
                at = order.tolist().index(word)
                wanted[order] += np.array(plain(form, words, at, epsilon)) / lists
            assert np.array(weights(made, word)) / TOTAL == pytest.approx(wanted, rel=1e-12)

    @pytest.mark.parametrize("form", FORMS)
    def test_a_very_large_epsilon_keeps_the_word_but_rules_nothing_out(self, form: str) -> None:
        found = weights(sampler(form, 300, 1e308), 17)
        kept = found.pop(17) / TOTAL
        assert kept == pytest.approx(1.0 if form == "geometric" else 0.999, rel=1e-12)
        assert min(found) >= 1
        assert max(found) - min(found) <= 19

    @pytest.mark.parametrize("form", FORMS)
    def test_a_very_small_epsilon_draws_alike_under_every_word(self, form: str) -> None:
        made = sampler(form, 30, 1e-17, lists=3)
        laws = [weights(made, w) for w in range(30)]
        assert all(law == laws[0] for law in laws)
        assert max(laws[0]) - min(laws[0]) <= 6


class TestBound:
    @pytest.mark.long
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize(("words", "lists"), [(2, 1), (3, 2), (24, 1), (24, 3), (24, 10)])
    def test_all_pairs_and_outputs(self, form: str, epsilon: float, words: int, lists: int) -> None:
        """ε·max_l d_l, in the integers that are drawn, with no allowance for rounding."""
        assert worst(sampler(form, words, epsilon, lists), epsilon) <= 0

    @settings(max_examples=40)
    @given(
        form=st.sampled_from(FORMS),
        words=st.integers(2, 12),
        lists=st.integers(1, 4),
        exponent=st.floats(-13, 2),
        beta=st.sampled_from([1e-12, 0.001, 0.5, 0.999]),
        seed=st.integers(0, 99),
    )
    def test_any_list(
        self, form: str, words: int, lists: int, exponent: float, beta: float, seed: int
    ) -> None:
        assert worst(sampler(form, words, 10.0**exponent, lists, beta, seed), 10.0**exponent) <= 0

    def test_it_is_reached(self) -> None:
        """The geometric bound has no slack but the floor's."""
        for epsilon in (0.1, 1.0):
            assert worst(sampler("geometric", 6, epsilon), epsilon) > -1e-9

    def test_without_the_floor_rounding_passes_the_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert worst(sampler("geometric", 80, 0.6), 0.6) <= 0
        monkeypatch.setattr("dptext_spark.mechanisms.samplers.ordering.floor", lambda *_: 1)
        assert worst(sampler("geometric", 80, 0.6), 0.6) > 0


def exact_law(made: OrderingSampler, word: int) -> dict[int, int]:
    """Count the 63-bit numbers that draw each output, by bisection for where the output changes along a list."""
    words, lists = made.place.shape

    def places_of(numbers: list[int]) -> list[tuple[int, int]]:
        drawn = made.sample(np.full(len(numbers), word, np.int32), Numbers([2 * u for u in numbers])).tolist()
        chosen = [u * lists >> 63 for u in numbers]
        return [(c, made.order[c].tolist().index(d)) for c, d in zip(chosen, drawn, strict=True)]

    targets = [(c, j) for c in range(lists) for j in range(words)]
    low, high = [0] * len(targets), [TOTAL] * len(targets)
    for _ in range(64):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        for n, found in enumerate(places_of([min(m, TOTAL - 1) for m in middle])):
            if low[n] < high[n]:
                low[n], high[n] = (low[n], middle[n]) if found >= targets[n] else (middle[n] + 1, high[n])
    counts = Counter[int]()
    for (chosen, j), begin, end in zip(targets, low, [*low[1:], TOTAL], strict=True):
        counts[int(made.order[chosen, j])] += end - begin
    return counts


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("epsilon", [1e-17, 1e-3, 0.3, 2.0, 60.0])
@pytest.mark.parametrize(("words", "lists"), [(2, 1), (7, 1), (7, 3), (40, 4), (300, 1)])
def test_the_law_counts_the_numbers_that_are_drawn(form: str, epsilon: float, words: int, lists: int) -> None:
    made = sampler(form, words, epsilon, lists)
    for word in {0, words // 3, words - 1}:
        assert exact_law(made, word) == dict(enumerate(weights(made, word)))


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("words", [2, 255, 33_860, 200_000])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.01, 1.0, 1e4])
def test_the_window(form: str, words: int, epsilon: float) -> None:
    """Prefixes ascend, windows hold 2^61 to 2^62, and all positions lie in the table."""
    window = window_of(form, words, 10, epsilon)
    assert len(window.edges) == 2 * words
    assert (window.edges[1:] > window.edges[:-1]).all()
    assert window.edges[0] == 0
    assert window.width.min() >= 2**61
    assert window.width.max() <= 2**62
    assert int(window.edges[-1]) < 2**63
    assert ((window.start + window.width) <= window.edges[-1]).all()


def test_the_lowest_bit_is_not_used() -> None:
    made = sampler("geometric", 50, 0.4, 3)
    numbers = np.random.default_rng(1).integers(0, 2**64, 3000, dtype=np.uint64)
    ids = np.arange(3000, dtype=np.int32) % 50
    pairs = [made.sample(ids, Numbers((numbers ^ np.uint64(bit)).tolist())) for bit in (0, 1)]
    assert (pairs[0] == pairs[1]).all()
