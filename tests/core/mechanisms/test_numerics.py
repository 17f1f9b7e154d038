"""Arithmetic in a fixed order against numpy, scipy and plain Python: distances and extent, roots, elementary functions."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dptext_spark.mechanisms import elementary
from dptext_spark.mechanisms.matrices import (
    covariance,
    largest_distance,
    pair_distances,
    ranks,
    square_root,
    squared_distances,
)
from tests.core.mechanisms.plain_noise import fixed_order_sum


@pytest.mark.parametrize(("words", "size"), [(1, 3), (2, 4), (3, 2), (101, 7), (500, 40)])
def test_covariance(words: int, size: int) -> None:
    vectors = (np.random.default_rng(size).normal(size=(words, size)) + 5).astype(np.float32)
    found = covariance(vectors)
    assert (found == found.T).all()
    np.testing.assert_allclose(found, np.cov(vectors.T.astype(np.float64), bias=True), atol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 50, 120])
def test_square_root_of_a_regular_matrix(size: int) -> None:
    half = np.random.default_rng(size).normal(size=(size, 2 * size))
    matrix = half @ half.T
    matrix = (matrix + matrix.T) / 2
    root, values = square_root(matrix)
    scale = values.max()
    assert (root == root.T).all()
    np.testing.assert_allclose(root @ root, matrix, atol=1e-13 * scale)
    np.testing.assert_allclose(root, scipy.linalg.sqrtm(matrix).real, atol=1e-11 * np.sqrt(scale))
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-13 * scale)


def test_square_root_of_singular_matrices() -> None:
    half = np.random.default_rng(0).normal(size=(20, 3))
    root, values = square_root(half @ half.T)
    np.testing.assert_allclose(root @ root, half @ half.T, atol=1e-12)
    # Outside the range stands the smallest eigenvalue that is no rounding error, exactly: the root has an inverse.
    least = values.max() * 20 * 2.0**-52
    assert (values == least).sum() == 17
    assert (values > 1e3 * least).sum() == 3
    outside = scipy.linalg.null_space(half.T)
    np.testing.assert_allclose(root @ outside, np.sqrt(least) * outside, atol=1e-14)
    np.testing.assert_allclose(np.linalg.solve(root, root), np.eye(20), atol=1e-7)
    root, values = square_root(np.zeros((4, 4)))
    assert not root.any()
    assert not values.any()


@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1e20, 1e60])
def test_scale(scale: float) -> None:
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    root, _ = square_root(matrix * scale)
    np.testing.assert_allclose(root, square_root(matrix)[0] * np.sqrt(scale), rtol=1e-12)


def plain(x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(fixed_order_sum((vectors.astype(np.float64) - x.astype(np.float64)) ** 2))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 100, 300])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 11, 40])
def test_the_order_is_the_stated_one_however_many_are_asked_for(size: int, rows: int) -> None:
    vectors = np.random.default_rng(size).normal(size=(47, size)).astype(np.float32)
    others = vectors[5:].copy()
    out = np.full(rows, -1.0)
    squared_distances(vectors.reshape(-1), size, 8, others.reshape(-1), 2, 2 + rows, out)
    assert np.sqrt(out).tolist() == plain(vectors[8], others[2 : 2 + rows]).tolist()
    assert rows < 4 or out[1] == 0  # it is among the others


@settings(max_examples=400)
@given(st.floats(-740, 0))
def test_within_two_units_of_the_true_value(x: float) -> None:
    with localcontext() as context:
        context.prec = 60
        true = Decimal(x).exp()
        found = elementary.exponential(x)
        if true > Decimal(2) ** -1020:
            assert abs(Decimal(found) - true) <= 2 * Decimal(math.ulp(float(true)))
        else:
            assert abs(Decimal(found) - true) <= 2 * Decimal(math.ulp(0.0))


@pytest.mark.parametrize(
    ("x", "value"), [(0.0, 1.0), (-0.0, 1.0), (-746.0, 0.0), (-1e308, 0.0), (-math.inf, 0.0)]
)
def test_ends(x: float, value: float) -> None:
    assert elementary.exponential(x) == value


def test_plain_python_gives_the_same_bits() -> None:
    """IEEE additions, multiplications and divisions in a fixed order: nothing is left to the processor."""
    some = np.random.default_rng(0).uniform(-50, 0, 200).tolist()
    for x in (-0.1, -1.0, -2.5, -17.3, -300.0, -744.0, *some):
        assert elementary.exponential.py_func(x) == elementary.exponential(x)


def test_lambert() -> None:
    for log_x in (0.0, 0.1, 1.0, 5.0, 30.0, 700.0):
        assert elementary.lambert(log_x) == pytest.approx(special.lambertw(math.exp(log_x)).real, rel=1e-13)
    assert elementary.lambert(1e4) + math.log(elementary.lambert(1e4)) == pytest.approx(1e4, rel=1e-14)
    for x in (-0.4, -1.0, -math.pi / 2, -2.0, -62.0, -1e6):
        assert elementary.lambert_real_part(x) == pytest.approx(special.lambertw(x).real, abs=6e-11)
    assert elementary.lambert_real_part(-1e-3) == -1


@settings(max_examples=400)
@given(st.floats(-740, 700) | st.floats(-1e-3, 1e-3))
def test_expm1(x: float) -> None:
    assert elementary.expm1(x) == pytest.approx(math.expm1(x), rel=2e-15, abs=1e-300)


@settings(max_examples=400)
@given(st.floats(-1 + 1e-9, 1e300) | st.floats(-1e-3, 1e-3))
def test_log1p(x: float) -> None:
    # 1 + x is rounded where |x| > 1/4: an error of 2^-53 in it is one of 2^-53 / (1 + x) in the logarithm.
    slack = 2.0**-53 / (1 + x) if x < -0.25 else 1e-300
    assert elementary.log1p(x) == pytest.approx(math.log1p(x), rel=1e-15, abs=slack)


RANDOM = np.random.default_rng(6)
DOUBLED = RANDOM.normal(size=(80, 5)).astype(np.float32)
DOUBLED[40:] = DOUBLED[:40]
LEXICONS = {
    "normal": RANDOM.normal(size=(300, 20)).astype(np.float32),
    "line": RANDOM.integers(-40, 40, (150, 1)).astype(np.float32),
    "two": np.array([[1, 2, 3], [3, 2, 1]], np.float32),
    "equal": np.ones((5, 3), np.float32),
    "doubled": DOUBLED,
    "far from the origin": (RANDOM.normal(size=(200, 9)) + 1e4).astype(np.float32),
    "huge": (RANDOM.normal(size=(50, 9)) * 1e37).astype(np.float32),
    "tiny": (RANDOM.normal(size=(50, 9)) * 1e-40).astype(np.float32),
    "grid": np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3).astype(np.float32),
}


def all_distances(vectors: np.ndarray) -> np.ndarray:
    words = np.arange(len(vectors), dtype=np.int32)
    return pair_distances(vectors, words, np.tile(words, (len(vectors), 1)))


@pytest.mark.parametrize("name", LEXICONS)
def test_largest_distance(name: str) -> None:
    vectors = LEXICONS[name]
    assert largest_distance(vectors) == all_distances(vectors).max()


@pytest.mark.parametrize("name", LEXICONS)
def test_ranks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = LEXICONS[name]
    table = all_distances(vectors)
    words, seen_from = RANDOM.integers(0, len(vectors), (2, 200)).astype(np.int32)
    orders = np.lexsort((np.tile(np.arange(len(vectors)), (len(vectors), 1)), table), axis=1)
    wanted = [int(np.flatnonzero(orders[c] == w)[0]) + 1 for w, c in zip(words, seen_from, strict=True)]
    assert ranks(vectors, words, seen_from).tolist() == wanted
    monkeypatch.setattr("dptext_spark.mechanisms.matrices.RANK_TILE", 3 * len(vectors))
    assert ranks(vectors, words, seen_from).tolist() == wanted
