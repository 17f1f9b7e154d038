"""Bounds on the loss from draws: they refute what is false, and leave alone what is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, Laplace, Mahalanobis, Vickrey
from dptext_spark.mechanisms.privacy_loss import by_draws
from dptext_spark.mechanisms.privacy_loss.sampled import distance
from tests.core.mechanisms.plain_noise import draws_of, lexicon_of

WORDS = 60


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return lexicon_of(np.random.default_rng(5).normal(size=(WORDS, 3)))


@pytest.mark.parametrize("mechanism", [MVC(epsilon=2.0), Mahalanobis(epsilon=2.0), Vickrey(epsilon=2.0)])
def test_a_true_claim_is_not_refuted(lexicon: Lexicon, mechanism: MVC) -> None:
    found = by_draws(mechanism.compile(lexicon), pairs=12, draws=4000)
    assert 0 < found.attained <= 2.0
    assert found.pairs == 12 < found.total
    assert found.confidence == 1 - 1e-6


def test_a_claim_that_is_ten_times_too_small_is_refuted(lexicon: Lexicon) -> None:
    sampler = MVC(epsilon=4.0).compile(lexicon)
    boasting = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.4))
    assert by_draws(boasting, pairs=12, draws=4000).attained > 0.4


def test_laplace_noise_between_any_two_words(lexicon: Lexicon) -> None:
    sampler = Laplace(epsilon=3.0).compile(lexicon)
    assert by_draws(sampler, pairs=12, draws=4000).attained <= 3.0
    boasting = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.01))
    assert by_draws(boasting, pairs=12, draws=4000).attained > 0.01


@pytest.mark.parametrize("mechanism", [MVC(epsilon=2.0), Mahalanobis(epsilon=2.0), Vickrey(epsilon=2.0)])
def test_equal_vectors_at_mirrored_places(mechanism: MVC) -> None:
    """Each word has a twin at the other end of the list: no nearest pair and no mirrored one has a distance."""
    half = np.random.default_rng(5).normal(size=(30, 3)).astype(np.float32)
    sampler = mechanism.compile(lexicon_of(np.concatenate([half, half[::-1]])))
    found = by_draws(sampler, pairs=12, draws=4000)
    assert 0 < found.attained <= 2.0
    assert found.pairs == 12
    same = by_draws(mechanism.compile(lexicon_of(np.ones((6, 3)))))
    assert (same.attained, same.pairs, same.worst) == (0.0, 0, None)


@pytest.mark.parametrize(
    ("vectors", "outside"),
    [
        (np.random.default_rng(1).normal(size=(5, 9)), 1e-6),
        (np.insert(np.random.default_rng(2).normal(size=(30, 3)), 1, 1.0, axis=1), 1e-6),
        (np.random.default_rng(3).normal(size=(30, 2)) @ [[1, 0, 0.3], [0, 1, 1.7]], 1.0),
        (np.random.default_rng(4).normal(size=(30, 2)) @ [[1, 0, 1], [0, 1, 0]], 1e-6),
    ],
    ids=["fewer words than dimensions", "a constant dimension", "a dependent one", "a copied one"],
)
def test_mahalanobis_noise_of_words_in_a_plane(vectors: np.ndarray, outside: float) -> None:
    """Nothing was to divide by: a singular matrix, or (dependent) one whose inverse is rounding."""
    lexicon = lexicon_of(vectors)
    for mechanism in (Mahalanobis(2.0, 1.0), Vickrey(2.0, noise="mahalanobis", lam=1.0)):
        sampler = mechanism.compile(lexicon)
        assert 0 < by_draws(sampler, pairs=8, draws=4000).attained <= 2.0
    # In the range of M the distance is that of the pseudo-inverse.
    wide = lexicon.vectors.astype(np.float64)
    spread = np.cov(wide.T, bias=True)
    inverse = np.linalg.pinv(spread * wide.shape[1] / np.trace(spread), rcond=1e-11, hermitian=True)
    for w, v in ((0, 1), (2, 4)):
        gap = wide[w] - wide[v]
        # Where float32 rounded a dependent dimension, the words do differ a little outside of it.
        wanted = float(np.sqrt(gap @ inverse @ gap))
        assert 1 - 1e-6 <= distance(sampler, w, v) / wanted <= 1 + outside


def test_words_that_differ_where_the_lexicon_hardly_does_are_not_told_apart() -> None:
    """Without noise there, the two always come out as themselves, an infinite loss at a distance that M says is finite."""
    vectors = np.random.default_rng(6).normal(size=(40, 3)).astype(np.float32) * [1, 1, 0]
    vectors[0], vectors[1] = (1, 1, 0), (1, 1, 1e-8)
    sampler = Mahalanobis(1.0, 1.0).compile(lexicon_of(vectors))
    ids = np.repeat(np.arange(2, dtype=np.int32), 20_000)
    came = sampler.sample(ids, draws_of(len(ids))).reshape(2, -1)
    first, second = ((side == 0).sum() / (side < 2).sum() for side in came)
    assert abs(np.log(first / second)) < 0.5
    assert 0.2 < first < 0.8


def test_the_distance_is_that_of_the_noise(lexicon: Lexicon) -> None:
    vectors = lexicon.vectors.astype(np.float64)
    assert distance(MVC(epsilon=2.0).compile(lexicon), 3, 8) == pytest.approx(
        np.linalg.norm(vectors[3] - vectors[8])
    )
    covariance = np.cov(vectors.T, bias=True)
    covariance *= 3 / np.trace(covariance)
    metric = np.linalg.inv(0.7 * covariance + 0.3 * np.eye(3))
    gap = vectors[3] - vectors[8]
    found = distance(Mahalanobis(epsilon=2.0, lam=0.7).compile(lexicon), 3, 8)
    assert found == pytest.approx(float(np.sqrt(gap @ metric @ gap)), rel=1e-3)
