"""Which words of a text come first, against the definition in plain Python."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.importance.levels import DIRECTIONS, Importance, Level
from dptext_spark.importance.selector import levels_of, shared_by_word, units_of

WEIGHTS = st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, 7.0]), max_size=40), max_size=4)
SHARES = st.lists(st.sampled_from([0.5, 5, 10, 12.5, 20, 33.333333]), min_size=1, max_size=3)


def plainly(weights: list[float], shares: list[float], direction: str) -> list[int]:
    n, none = len(weights), len(shares)
    sign = 1 if direction == "bottom" else -1
    order = sorted(range(n), key=lambda i: (sign * weights[i], i))
    levels = [none] * n
    for level in reversed(range(none)):
        share = sum(Fraction(str(one)) for one in shares[: level + 1])
        size = ceil(share * n / 100)
        first = (n - size) // 2 if direction == "medium" else 0
        for i in order[first : first + size]:
            levels[i] = level
    return levels


def ranked(rows: list[list[float]], shares: list[float], direction: str) -> list[list[int]]:
    bounds = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    weights = np.array([w for row in rows for w in row], np.float32)
    selection = Importance(levels=tuple(Level(share) for share in shares))
    levels = levels_of(weights, bounds, selection.cumulative, direction).tolist()
    return [levels[a:b] for a, b in pairwise(bounds)]


@given(rows=WEIGHTS, shares=SHARES, direction=st.sampled_from(DIRECTIONS))
def test_levels_are_as_defined(rows: list[list[float]], shares: list[float], direction: str) -> None:
    assert ranked(rows, shares, direction) == [plainly(row, shares, direction) for row in rows]


@pytest.mark.parametrize(
    ("percent", "n", "m"),
    [(30, 10, 3), (30, 11, 4), (0.1, 1000, 1), (5, 1, 1), (55.1, 1000, 551), (100, 7, 7), (7, 100, 7)],
)
def test_the_share_is_rounded_up_and_exact(percent: float, n: int, m: int) -> None:
    assert ranked([[1.0] * n], [percent], "top") == [[0] * m + [1] * (n - m)]


def test_ties_go_to_the_earlier_word() -> None:
    assert ranked([[1, 3, 3, 3, 2]], [40], "top") == [[1, 0, 0, 1, 1]]
    assert ranked([[1, 3, 1, 1, 2]], [40], "bottom") == [[0, 1, 0, 1, 1]]
    assert ranked([[5, 4, 3, 2, 1]], [20], "medium") == [[1, 1, 0, 1, 1]]
    assert ranked([[5, 4, 3, 2]], [25], "medium") == [[1, 0, 1, 1]]
    assert ranked([[5, 4, 3, 2, 1]], [20, 40], "medium") == [[2, 1, 0, 1, 2]]


def test_a_word_has_the_level_of_its_first_occurrence_in_rank() -> None:
    codes = np.array([4, -1, 4, 2, 2, 4, 4], np.int32)
    levels = np.array([2, 2, 0, 1, 2, 2, 2], np.uint8)
    bounds = np.array([0, 5, 5, 7], np.int64)
    shared_by_word(codes, levels, bounds, 5)
    assert levels.tolist() == [0, 2, 0, 1, 1, 2, 2]  # the last text is another one
    multiples = np.array([1, 10], np.int64)
    assert units_of(codes, levels, bounds, bounds, multiples, 5, True).tolist() == [11, 0, 0]
    assert units_of(codes, levels, bounds, bounds, multiples, 5, False).tolist() == [22, 0, 0]
    # Of a record of several texts what is shared counts with the first, texts without words with nothing.
    texts = np.array([0, 1, 1, 3, 5, 7], np.int64)
    assert units_of(codes, levels, bounds, texts, multiples, 5, True).tolist() == [1, 0, 0, 10, 0]
    assert units_of(codes, levels, bounds, texts, multiples, 5, False).tolist() == [1, 0, 1, 20, 0]
