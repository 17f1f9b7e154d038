"""Bounds on the loss from draws: they refute what is false, and leave alone what is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import Calibrated, Laplace, Mahalanobis, Vickrey
from dptext_spark.mechanisms.losses import by_draws
from dptext_spark.mechanisms.losses.draws import distance

WORDS = 60


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    vectors = np.random.default_rng(5).normal(size=(WORDS, 3)).astype(np.float32)
    return Lexicon(Vocabulary.of([f"word{i}" for i in range(WORDS)]), vectors)


@pytest.mark.parametrize(
    "mechanism", [Calibrated(epsilon=2.0), Mahalanobis(epsilon=2.0), Vickrey(epsilon=2.0)]
)
def test_a_true_claim_is_not_refuted(lexicon: Lexicon, mechanism: Calibrated) -> None:
    found = by_draws(mechanism.compile(lexicon), pairs=12, draws=4000)
    assert 0 < found.attained <= 2.0 and found.pairs == 12 < found.total
    assert found.confidence == 1 - 1e-6


def test_a_claim_that_is_ten_times_too_small_is_refuted(lexicon: Lexicon) -> None:
    sampler = Calibrated(epsilon=4.0).compile(lexicon)
    boasting = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.4))
    assert by_draws(boasting, pairs=12, draws=4000).attained > 0.4


def test_laplace_noise_between_any_two_words(lexicon: Lexicon) -> None:
    sampler = Laplace(epsilon=3.0).compile(lexicon)
    assert by_draws(sampler, pairs=12, draws=4000).attained <= 3.0
    boasting = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.01))
    assert by_draws(boasting, pairs=12, draws=4000).attained > 0.01


def test_the_distance_is_that_of_the_noise(lexicon: Lexicon) -> None:
    vectors = lexicon.vectors.astype(np.float64)
    assert distance(Calibrated(epsilon=2.0).compile(lexicon), 3, 8) == pytest.approx(
        np.linalg.norm(vectors[3] - vectors[8])
    )
    covariance = np.cov(vectors.T, bias=True)
    covariance *= 3 / np.trace(covariance)
    metric = np.linalg.inv(0.7 * covariance + 0.3 * np.eye(3))
    gap = vectors[3] - vectors[8]
    found = distance(Mahalanobis(epsilon=2.0, lam=0.7).compile(lexicon), 3, 8)
    assert found == pytest.approx(float(np.sqrt(gap @ metric @ gap)), rel=1e-3)
