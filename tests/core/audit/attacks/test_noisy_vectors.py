"""Noise on vectors between two adversaries: densities by their formulas, and bounds that hold what many draws show."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dptext_spark.audit.attacks.adversary import _NoiseSpace, bayes_between, candidates_of_vectors
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import zipf
from dptext_spark.mechanisms import (
    MVC,
    Gaussian,
    Laplace,
    Mahalanobis,
    Mechanism,
    Projection,
    TruncatedLaplace,
    Vickrey,
)
from dptext_spark.randomness import Draws
from tests.core.names import lexicon_at, scattered

V, D = 50, 4
MADE: dict[str, Mechanism] = {
    "mvc": MVC(epsilon=4.0),
    "mvc, little noise": MVC(epsilon=40.0),
    "mahalanobis": Mahalanobis(epsilon=4.0, lam=0.7),
    "vickrey": Vickrey(epsilon=6.0, noise="mahalanobis"),
    "projection": Projection(epsilon=5.0, m=3),
    "laplace": Laplace(epsilon=8.0),
    "gaussian": Gaussian(epsilon=4.0, delta=0.01),
    "truncated": TruncatedLaplace(epsilon=8.0, delta=0.05),
}


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(V, D, 2)


def draws(n: int) -> Draws:
    blocks = np.zeros((n, 2), np.uint64)
    blocks[:, 0] = np.arange(n)
    return Draws(bytes([7]) * 32, blocks)


def plain(
    kind: str,
    parameters: npt.NDArray[np.float64],
    root: npt.NDArray[np.float64],
    gap: npt.NDArray[np.float64],
) -> float:
    """ln f of a gap, by the formulas of concepts/mechanisms, Noise on vectors, and Noise with a δ."""
    if kind == "radial":
        return float(-parameters[0] * np.linalg.norm(np.linalg.solve(root, gap)))
    if kind == "gaussian":
        return float(-(gap**2).sum() / (2 * parameters[0] ** 2))
    if kind == "truncated_laplace" and np.abs(gap).max() > parameters[1]:
        return -np.inf
    return float(-np.abs(gap).sum() / parameters[0])


@pytest.mark.parametrize("name", MADE)
def test_densities_are_those_of_the_formulas(lexicon: Lexicon, name: str) -> None:
    sampler = MADE[name].compile(lexicon)  # type: ignore[attr-defined]
    ids = np.arange(20, dtype=np.int32)
    noisy = sampler.noisy(ids, draws(20))
    found = _NoiseSpace.of(sampler).density(noisy)
    size = sampler.centers.shape[1]
    root = sampler.columns.T if len(sampler.columns) else np.eye(size)
    centers, parameters = sampler.centers.astype(np.float64), sampler.parameters
    truth = np.array([[plain(sampler.noise, parameters, root, z - c) for c in centers] for z in noisy])
    assert np.isfinite(truth[np.arange(20), ids]).all()
    # Up to a constant for each vector.
    ours, theirs = (density - density[np.arange(20), ids][:, None] for density in (found, truth))
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["mvc", "mahalanobis", "truncated"])
def test_noisy_vectors_are_what_is_snapped(lexicon: Lexicon, name: str) -> None:
    sampler = MADE[name].compile(lexicon)  # type: ignore[attr-defined]
    ids = np.tile(np.arange(V, dtype=np.int32), 4)
    noisy = sampler.noisy(ids, draws(len(ids)))
    gaps = ((noisy[:, None] - sampler.targets.vectors[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(gaps.argmin(axis=1), sampler.sample(ids, draws(len(ids))))


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_the_bounds_hold_what_many_draws_show(lexicon: Lexicon, name: str) -> None:
    sampler = MADE[name].compile(lexicon)  # type: ignore[attr-defined]
    assert sampler.noisy_vectors() is sampler
    prior = zipf(V)
    truth = bayes_attack(sampler, V, prior, draws=4_000, confidence=1 - 1e-6)
    found, ranking = bayes_between(sampler, prior, 6_000, 1 - 1e-6)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.lower <= found.value <= found.upper
    assert not found.exact
    # From below it is worth more than the commonest word, or than nothing; words by their distance are no bad guess.
    assert found.value > prior.max() - 0.03
    assert found.value > truth.success - 0.08
    assert ranking.likelihood(np.array([3], np.int32)).argmax() == 3


def test_candidates_of_vectors_hold_the_word(lexicon: Lexicon) -> None:
    sampler = MVC(epsilon=40.0).compile(lexicon)
    words = np.repeat(np.arange(V, dtype=np.int32), 3)
    found = candidates_of_vectors(sampler, zipf(V), words, 5)
    assert (found.best == words).mean() > 0.9
    assert found.slot.tolist() == list(range(3 * V))


def test_noise_in_a_plane_has_no_density() -> None:
    flat = scattered(30, 4, 4).vectors.copy()
    flat[:, 3] = flat[:, 2]
    lexicon = lexicon_at(flat)
    assert Mahalanobis(epsilon=2.0, lam=1.0).compile(lexicon).noisy_vectors() is None
    assert Mahalanobis(epsilon=2.0, lam=0.5).compile(lexicon).noisy_vectors() is not None
