"""Calibrated and Mahalanobis noise: the matrix, the covariance, lexicons that fill no space, and N_w on real vectors."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy import stats

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, Mahalanobis
from dptext_spark.mechanisms.calibrated_noise import noise_matrix
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.names import lexicon_at

N = 60_000


@pytest.mark.parametrize(
    ("kind", "shares", "slack"),
    [(MVC, (0.0001, 0.27, 0.99, 0.999), 0.005), (Mahalanobis, (0.0001, 0.18, 0.98, 0.999), 0.006)],
)
def test_how_often_a_word_stays(glove: Lexicon, kind: Any, shares: tuple[float, ...], slack: float) -> None:
    """Mean N_w at ε = 1, 10, 25, 50: binomial limits at 1e-6, and a slack for the rounded figures."""
    words = np.random.default_rng(0).choice(len(glove), 600, replace=False).astype(np.int32)
    made = kind(1.0).compile(glove)
    factor = made.parameters[1]
    for epsilon, wanted in zip((1.0, 10.0, 25.0, 50.0), shares, strict=True):
        at = dataclasses.replace(made, parameters=np.array([epsilon, factor]))
        stayed = float((at.sample(words, draws_of(600)) == words).mean())
        limit = stats.norm.isf(5e-7) * math.sqrt(wanted * (1 - wanted) / 600)
        assert abs(stayed - wanted) < limit + slack, (epsilon, stayed)
        if epsilon == 1.0 and kind is MVC:
            assert np.median(at.noise_lengths()) == pytest.approx(300, rel=0.02)


def test_the_summary() -> None:
    found = MVC(2.0).compile(lexicon_at(np.eye(4))).summary
    assert (found.words, found.dimensions, found.noise) == (4, 4, "radial")
    assert found.nearest_distance.as_dict() == pytest.approx(
        dict.fromkeys(("min", "p50", "max"), math.sqrt(2))
    )
    assert found.noise_length.p50 == pytest.approx(stats.gamma.median(4, scale=1 / 2), rel=0.1)


def stretched(words: int = 40, size: int = 3, stretch: float = 10.0) -> np.ndarray:
    """Words that spread so many times as far in one direction."""
    rng, widths = np.random.default_rng(1), np.geomspace(stretch**-0.5, stretch**0.5, size)
    return (rng.normal(size=(words, size)) * widths).astype(np.float32)


def plain_matrix(vectors: np.ndarray, lam: float) -> np.ndarray:
    """M of the formula."""
    size = vectors.shape[1]
    spread = np.cov(vectors.T.astype(np.float64), bias=True)
    return lam * spread * size / np.trace(spread) + (1 - lam) * np.eye(size)


@pytest.mark.parametrize("lam", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("size", [2, 3, 30])
def test_the_matrix(size: int, lam: float) -> None:
    vectors = stretched(200, size)
    root, values = noise_matrix(vectors, lam)
    wanted = plain_matrix(vectors, lam)
    np.testing.assert_allclose(root, scipy.linalg.sqrtm(wanted).real, atol=1e-12)
    np.testing.assert_allclose(root @ root, wanted, atol=1e-12)
    assert np.trace(root @ root) == pytest.approx(size)
    assert values.max == pytest.approx(np.linalg.eigvalsh(wanted)[-1])


def test_the_covariance_of_the_noise() -> None:
    """E[ZZ'] = E[r²]/d·M = (d+1)/ε²·M; each entry within 6 standard deviations of its mean."""
    made, matrix = Mahalanobis(2.0, 0.8).compile(lexicon_at(stretched())), plain_matrix(stretched(), 0.8)
    noise = made._noise(made._bits(draws_of(N), slice(0, N)))
    products = noise[:, :, None] * noise[:, None]
    gap = 6 * products.std(axis=0) / math.sqrt(N)
    assert (np.abs(products.mean(axis=0) - matrix * (3 + 1) / 2.0**2) < gap).all()
    # In the norm of M the length is Gamma(d, 1/ε) again.
    length = np.sqrt(np.einsum("ni,ij,nj->n", noise, np.linalg.inv(matrix), noise))
    distance = stats.ks_1samp(length, stats.gamma(3, scale=1 / 2.0).cdf, method="asymp").statistic
    assert distance < math.sqrt(math.log(2e6) / (2 * N))


def test_lam_0_is_calibrated_noise_draw_by_draw() -> None:
    lexicon, ids = lexicon_at(stretched(300, 9)), (np.arange(4000) % 300).astype(np.int32)
    made = (mechanism.compile(lexicon) for mechanism in (Mahalanobis(7.0, 0.0), MVC(7.0)))
    first, second = (sampler.sample(ids, draws_of(4000)) for sampler in made)
    assert (first == second).all()


@pytest.mark.parametrize(
    ("vectors", "drawn"),
    [
        ([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], {0, 1}),
        ([[1.0, 1.0]] * 3, {0}),
        ([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], {0, 1, 2}),
        ([[0.0], [3.0]], {0, 1}),
    ],
)
def test_lexicons_that_do_not_fill_the_space(vectors: list[list[float]], drawn: set[int]) -> None:
    """With λ = 1 hardly any noise leaves the directions that the lexicon has, but some does; equal words have Σ = I."""
    given = np.array(vectors, np.float32)
    made = Mahalanobis(1.0, 1.0).compile(lexicon_at(given))
    noise = made._noise(made._bits(draws_of(1000), slice(0, 1000)))
    assert np.isfinite(noise).all()
    assert (np.linalg.norm(noise, axis=1) > 0).all()
    rank = np.linalg.matrix_rank(given - given.mean(axis=0)) or given.shape[1]
    assert np.linalg.matrix_rank(noise) == given.shape[1]
    assert np.linalg.matrix_rank(noise, tol=1e-6 * np.linalg.norm(noise)) == rank
    ids = (np.arange(1000) % len(given)).astype(np.int32)
    assert set(made.sample(ids, draws_of(1000)).tolist()) == drawn
