"""Matrices in a fixed order: the order itself, and the values against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from dptext_spark.mechanisms.numerics.matrices import covariance, square_root


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


def test_the_identity_is_its_own_root_to_the_bit() -> None:
    root, values = square_root(np.eye(7))
    assert (root == np.eye(7)).all()
    assert (values == 1).all()


@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1e20, 1e60])
def test_scale(scale: float) -> None:
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    root, _ = square_root(matrix * scale)
    np.testing.assert_allclose(root, square_root(matrix)[0] * np.sqrt(scale), rtol=1e-12)
