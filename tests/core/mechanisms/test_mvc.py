"""Calibrated noise: the law in one dimension exactly, in three against numpy's own generator, and N_w on real vectors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dptext_spark.errors import DPTextError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC
from tests.core.mechanisms.plain_noise import draws_of, lexicon_of, plain_radial, too_different, too_far

LINE = np.array([[-4.0], [-1.5], [-1.0], [0.0], [0.25], [3.0]], np.float32)
N = 60_000


def line_law(positions: np.ndarray, word: int, epsilon: float) -> np.ndarray:
    """On a line the noise is Laplace's and a word's cell an interval: the law in closed form."""
    edges = np.concatenate([[-np.inf], (positions[1:] + positions[:-1]) / 2, [np.inf]])
    return np.diff(stats.laplace.cdf(edges - positions[word], scale=1 / epsilon))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_law_on_a_line(epsilon: float) -> None:
    made = MVC(epsilon).compile(lexicon_of(LINE))
    for word in range(len(LINE)):
        drawn = made.sample(np.full(N, word, np.int32), draws_of(N, word))
        law = line_law(LINE[:, 0].astype(np.float64), word, epsilon)
        assert not too_far(np.bincount(drawn, minlength=len(LINE)), law)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
def test_the_law_in_three_dimensions(epsilon: float) -> None:
    """Against a plain sample: numpy's gamma and normal numbers, and a search by distances."""
    vectors = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    made = MVC(epsilon).compile(lexicon_of(vectors))
    for word in (0, 17):
        drawn = made.sample(np.full(N, word, np.int32), draws_of(N))
        noisy = vectors[word] + plain_radial(N, 3, epsilon, seed=word)
        plain = np.linalg.norm(noisy[:, None] - vectors, axis=2).argmin(axis=1)
        counts = [np.bincount(x, minlength=40) for x in (drawn, plain)]
        assert not too_different(*counts)


def test_a_wrong_radius_would_be_seen() -> None:
    """Gamma(d-1) instead of Gamma(d), the usual slip: the tests above are sharp enough."""
    vectors = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    made = MVC(3.0).compile(lexicon_of(vectors))
    drawn = made.sample(np.zeros(N, np.int32), draws_of(N))
    noise = plain_radial(N, 3, 3.0, seed=0)
    noise *= (np.random.default_rng(2).gamma(2, 1 / 3.0, N) / np.linalg.norm(noise, axis=1))[:, None]
    plain = np.linalg.norm((vectors[0] + noise)[:, None] - vectors, axis=2).argmin(axis=1)
    assert too_different(*(np.bincount(x, minlength=40) for x in (drawn, plain)))


def test_the_bound_holds_on_a_line() -> None:
    """ln P(u|w)/P(u|w') <= ε·d(w,w'), for the law that the samples above agree with."""
    laws = np.log([line_law(LINE[:, 0].astype(np.float64), w, 1.5) for w in range(6)])
    loss = np.abs(laws[:, None] - laws[None]).max(axis=2)
    assert (loss <= 1.5 * np.abs(LINE - LINE.T) + 1e-6).all()


def test_how_often_a_word_stays_on_real_vectors(glove: Lexicon) -> None:
    """Mean N_w at ε = 1, 10, 25, 50: .0001, .27, .99, .999 (binomial limits at 1e-6, and .005 for the rounded figures)."""
    words = np.random.default_rng(0).choice(len(glove), 600, replace=False).astype(np.int32)
    made = MVC(1.0).compile(glove)
    factor = made.parameters[1]
    for epsilon, wanted in ((1.0, 0.0001), (10.0, 0.27), (25.0, 0.99), (50.0, 0.999)):
        at = dataclasses.replace(made, parameters=np.array([epsilon, factor]))
        stayed = float((at.sample(words, draws_of(600)) == words).mean())
        limit = stats.norm.isf(5e-7) * math.sqrt(wanted * (1 - wanted) / 600)
        assert abs(stayed - wanted) < limit + 0.005, (epsilon, stayed)
        if epsilon == 1.0:
            assert np.median(at.noise_lengths()) == pytest.approx(300, rel=0.02)


def test_the_guarantee() -> None:
    said = MVC(2.5).compile(lexicon_of(LINE)).guarantee
    assert (said.kind, said.epsilon, said.delta, said.metric) == ("metric_dp", 2.5, 0.0, "euclidean")
    assert said.status == "claimed"
    with pytest.raises(DPTextError, match="no bound for several draws"):
        said.compose(10)
    assert "2.5 times the Euclidean distance" in said.sentence
    assert "Mironov" in said.sentence


def test_the_summary() -> None:
    found = MVC(2.0).compile(lexicon_of(np.eye(4))).summary
    assert (found.words, found.dimensions, found.noise) == (4, 4, "radial")
    assert found.nearest_distance is not None
    assert found.nearest_distance.as_dict() == pytest.approx(
        {"min": math.sqrt(2), "p50": math.sqrt(2), "max": math.sqrt(2)}
    )
    assert found.noise_length is not None
    assert found.noise_length.p50 == pytest.approx(stats.gamma.median(4, scale=1 / 2), rel=0.1)


@pytest.mark.parametrize("epsilon", [0, 0.0, -1, math.nan, math.inf, 10**400, "1", None, True, [1]])
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(
        SettingsError, match=r"mechanism\.epsilon: .* given; valid: a finite number, 0.000001 or greater"
    ):
        MVC(epsilon)  # type: ignore[arg-type]


def test_an_epsilon_whose_noise_is_no_number() -> None:
    with pytest.raises(
        SettingsError, match=r"mechanism\.epsilon: 1e-200 given; valid: a finite number, 0.000001 or greater"
    ):
        MVC(1e-200).compile(lexicon_of(LINE))
