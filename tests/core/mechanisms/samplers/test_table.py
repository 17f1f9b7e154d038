"""The table kernel in exact integers: weights, alias rows, and which number draws which word."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary, integer_weights

TOTAL = 2**63
NONE = Guarantee("epsilon_dp", 0.0, status="refuted")
PROBABILITIES = st.lists(
    st.one_of(st.floats(1e-3, 1.0), st.sampled_from([1.0, 0.5, 1e-9, 1e-17, 1e-30, 2.3e-308])),
    min_size=1,
    max_size=40,
)


class Numbers:
    """Draws that are named by hand."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = np.array(numbers, np.uint64)

    def u64(self, lane: int, rows: slice = slice(None)) -> np.ndarray:
        assert lane == 0
        return self.numbers[rows]


def sampler(probability: list[float], ids: list[int] | None = None) -> TableSampler:
    outputs = np.array([list(range(len(probability))) if ids is None else ids], np.int32)
    return TableSampler.of(outputs, np.array([probability]), NONE, TableSummary())


def normalised(probability: list[float]) -> np.ndarray:
    return np.array([probability]) / math.fsum(probability)


@given(PROBABILITIES)
def test_weights_sum_to_2_to_the_63(probability: list[float]) -> None:
    weights = list(map(int, integer_weights(normalised(probability))[0]))
    assert sum(weights) == TOTAL
    assert min(weights) >= 1
    total = sum(map(Fraction, probability))
    largest = max(range(len(weights)), key=lambda i: (weights[i], -i))
    for i, (weight, p) in enumerate(zip(weights, probability, strict=True)):
        wanted = Fraction(p) / total * TOTAL
        slack = len(weights) + wanted * Fraction(4, 2**52) if i != largest else Fraction(TOTAL, 2**40)
        assert abs(weight - wanted) <= slack


@given(st.integers(1, 30), st.integers(0, 10))
def test_equal_probabilities_stay_equal_but_for_the_remainder(k: int, padding: int) -> None:
    weights = list(map(int, integer_weights(np.array([[1 / k] * k + [0.0] * padding]))[0]))
    assert weights[k:] == [0] * padding
    assert len(set(weights[1:k])) <= 1
    assert sum(weights) == TOTAL


def exact_law(made: TableSampler) -> dict[int, int]:
    """Count, for each word, the 63-bit numbers that draw it: the row says where it changes, the draw itself what it is."""
    bits = made.cells.shape[1].bit_length() - 1
    capacity = 1 << (63 - bits)
    counts: dict[int, int] = {}
    for slot, (threshold, _) in enumerate(made.cells[0].tolist()):
        assert 0 <= threshold <= capacity
        for low, high in ((0, threshold), (threshold, capacity)):
            if low < high:
                ends = [
                    ((slot << (63 - bits)) | rest) << 1 | bit for rest in (low, high - 1) for bit in (0, 1)
                ]
                drawn = set(made.sample(np.zeros(4, np.int32), Numbers(ends)).tolist())
                assert len(drawn) == 1
                word = drawn.pop()
                counts[word] = counts.get(word, 0) + high - low
    return counts


@settings(max_examples=200)
@given(PROBABILITIES, st.integers(0, 5))
def test_the_table_draws_exactly_the_weights(probability: list[float], padding: int) -> None:
    padded = [*normalised(probability)[0].tolist(), *[0.0] * padding]
    ids = [7 * i + 3 for i in range(len(probability))] + [-1] * padding
    made = sampler(padded, ids)
    weights = list(map(int, integer_weights(np.array([padded]))[0]))
    wanted = {ids[i]: weights[i] for i in range(len(probability))}
    assert exact_law(made) == wanted
    law = made.law(0)
    assert dict(zip(law.ids.tolist(), map(int, law.weight), strict=True)) == wanted
    assert law.ids.tolist() == sorted(wanted)
    assert law.probability.tolist() == [wanted[i] / TOTAL for i in law.ids.tolist()]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 20, 31, 32, 33, 4096])
def test_rows_have_a_power_of_two_of_slots(k: int) -> None:
    made = sampler([1 / k] * k)
    slots = made.cells.shape[1]
    assert made.sample(np.zeros(2, np.int32), Numbers([0, 2**64 - 1])).max() < k
    assert slots >= k > slots // 2 or slots == k == 1
    assert sum(exact_law(made).values()) == TOTAL
    assert made.cells.nbytes == 16 * slots


def test_too_many_outputs() -> None:
    with pytest.raises(SettingsError, match="4096"):
        sampler([1 / 5000] * 5000)
