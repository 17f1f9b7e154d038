"""Noisy selection: the law of k in integers, the cut Gumbel law to its ends, and a plain loop that selects the same."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.truncated_gumbel import (
    SelectionSampler,
    SelectionSummary,
    WorstPair,
    gumbel_ends,
    poisson_weights,
    truncated_gumbel_quantile,
)
from dptext_spark.randomness import Draws

TOTAL = 2**63
FALSE_ALARM = 1e-6
NONE = Guarantee("metric_dp", 1.0, metric="euclidean", status="refuted")
DISTANCES = {"smallest_distance": 0.0, "largest_distance": 6.0}
PAIR = WorstPair((0, 1), 2, 1.0, 1.0, 1.0)
SAID = SelectionSummary(equal_vectors=0, candidates=9, floor=1.0, a=1.0, b=4.0, pair=PAIR, **DISTANCES)
ENDS = [0, 1, 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize(("rate", "largest"), [(math.log(2), 2), (math.log(60), 60), (10.43, 34_000)])
def test_the_law_of_k(rate: float, largest: int) -> None:
    weights = poisson_weights(rate, largest)
    exact = [Fraction(rate) ** k / math.factorial(k) for k in range(1, min(largest, 150) + 1)]
    total = sum(exact)
    assert sum(weights) == TOTAL
    assert min(weights) >= 1
    cut = len(weights)
    assert cut == largest or sum(exact[cut:]) / total < Fraction(1, TOTAL) <= sum(exact[cut - 1 :]) / total
    heaviest = weights.index(max(weights))
    for k, (weight, p) in enumerate(zip(weights, exact, strict=False)):
        assert abs(weight - p / total * TOTAL) <= (cut if k == heaviest else 1)


def test_one_word() -> None:
    assert poisson_weights(1.0, 1) == [TOTAL]


def drawn(bits: np.uint64, end: float) -> float:
    return float(truncated_gumbel_quantile(bits, end, gumbel_ends(end)))


def gumbel_quantile(bits: int, end: float) -> float:
    """In long doubles, each half from its own side."""
    h = np.longdouble(end)
    low, above = np.exp(-np.exp(h)), -np.expm1(-np.exp(-h))
    if bits < 2**63:
        u = (np.longdouble(bits) + np.longdouble(0.5)) / np.longdouble(2**64)
        return float(-np.log(-np.log(low + u * (1 - above - low))) / h)
    u = (np.longdouble(2**64 - 1 - bits) + np.longdouble(0.5)) / np.longdouble(2**64)
    return float(-np.log(-np.log1p(-(above + u * (1 - above - low)))) / h)


@pytest.mark.parametrize("end", [1e-4, 0.01, 0.5, 1.0, 1.0001, 1.5, 3.0, 6.5, 30.0, 300.0])
def test_quantiles(end: float) -> None:
    bits = [*ENDS, *map(int, np.random.default_rng(3).integers(0, 2**64, 500, dtype=np.uint64))]
    found = [drawn(np.uint64(b), end) for b in bits]
    # At the shortest interval the reference itself loses ln(1/h) digits of its 19.
    assert found == pytest.approx([gumbel_quantile(b, end) for b in bits], rel=1e-11, abs=1e-13)
    assert all(-1.0 <= x <= 1.0 for x in found)
    grid = np.linspace(0, 2**64 - 2**12, 2000).astype(np.uint64)
    values = [drawn(b, end) for b in grid]
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("end", [0.0, 1e-300, 1e-13, 1e-12, 1e-9])
def test_a_very_short_interval_is_uniform(end: float) -> None:
    for bits in (*ENDS, 2**62, 3 * 2**62):
        wanted = (bits + 0.5) / 2**63 - 1
        assert drawn(np.uint64(bits), end) == pytest.approx(wanted, abs=1e-8)


def test_the_law_of_the_noise() -> None:
    rows, end = 200_000, 1.5
    bits = np.random.default_rng(4).integers(0, 2**64, rows, dtype=np.uint64)
    found, (low, high) = np.array([drawn(b, end) for b in bits]) * end, stats.gumbel_r.cdf([-end, end])
    gap = stats.ks_1samp(found, lambda x: (stats.gumbel_r.cdf(x) - low) / (high - low), method="asymp")
    assert gap.statistic < math.sqrt(math.log(2 / FALSE_ALARM) / (2 * rows))


def small_sampler() -> SelectionSampler:
    random = np.random.default_rng(8)
    near = np.array([random.permutation(12)[:9] for _ in range(12)], np.int32)
    near[:, 0] = np.arange(12)
    distance = np.sort(random.uniform(0, 5, (12, 9)), axis=1)
    distance[:, 0] = 0
    weights = np.array(poisson_weights(2.5, 9), np.uint64)
    return SelectionSampler(near, distance, np.cumsum(weights), np.array([6.0, 1.5]), NONE, SAID)


def draws(n: int) -> Draws:
    return Draws(bytes(32), np.arange(2 * n, dtype=np.uint64).reshape(n, 2))


def test_a_plain_loop_selects_the_same() -> None:
    made, n = small_sampler(), 3000
    ids = np.arange(n, dtype=np.int32) % 12
    numbers = [draws(n).u64(lane).tolist() for lane in range(10)]
    wanted = []
    for i, word in enumerate(ids.tolist()):
        k = 1 + sum((numbers[0][i] >> 1) >= int(c) for c in made.cumulative)
        noise = (6.0 * drawn(np.uint64(numbers[j + 1][i]), 1.5) for j in range(k))
        noisy = zip(made.distance[word, :k] + [*noise], made.near[word, :k].tolist(), strict=True)
        wanted.append(min(noisy)[1])
    assert made.sample(ids, draws(n)).tolist() == wanted


def test_ties_go_to_the_lower_id() -> None:
    class Same:
        def u64(self, lane: int, rows: slice = slice(None)) -> np.ndarray:
            return np.full(1, 2**64 - 1, np.uint64)

    near, cumulative = (
        np.array([[2, 1, 0]], np.int32),
        np.cumsum(np.array(poisson_weights(1.0, 3), np.uint64)),
    )
    made = SelectionSampler(near, np.zeros((1, 3)), cumulative, np.array([1.0, 1.0]), NONE, SAID)
    assert made.sample(np.zeros(1, np.int32), Same()).tolist() == [0]  # type: ignore[arg-type]


def test_batches_are_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made, n = small_sampler(), 1000
    ids = np.arange(n, dtype=np.int32) % 12
    whole = made.sample(ids, draws(n))
    monkeypatch.setattr("dptext_spark.mechanisms.truncated_gumbel.ROWS", 7)
    assert (made.sample(ids, draws(n)) == whole).all()
