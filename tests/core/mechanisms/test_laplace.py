"""Laplace noise: the scale, the law on a line exactly, and in several dimensions against numpy's own generator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dptext_spark.mechanisms import Laplace
from tests.core.mechanisms.plain_noise import draws_of, lexicon_of, too_different, too_far

N = 60_000


def test_the_scale() -> None:
    """2√d·C/ε; the variance at d = 300, ε = 1, C = 1 is 2400."""
    lexicon = lexicon_of(np.random.default_rng(0).normal(size=(5, 300)))
    for epsilon, clip in ((1.0, 1.0), (7.0, 0.3)):
        made = Laplace(epsilon, clip).compile(lexicon)
        assert made.parameters[0] == pytest.approx(2 * math.sqrt(300) * clip / epsilon, rel=1e-14)
        assert made.parameters[0] >= 2 * math.sqrt(300) * clip / epsilon
    assert Laplace(1.0).compile(lexicon).summary.variance == pytest.approx(2400)


def test_the_guarantee() -> None:
    made = Laplace(3.0).compile(lexicon_of(np.eye(3))).guarantee
    assert (made.kind, made.epsilon, made.delta, made.status) == ("epsilon_dp", 3.0, 0.0, "claimed")
    assert "ε = 3 " in made.sentence
    assert "Mironov" in made.sentence


LINE = np.array([[-1.0], [-0.5], [0.0], [0.1], [0.9]])


def line_law(word: int, scale: float) -> np.ndarray:
    edges = np.concatenate([[-np.inf], (LINE[1:, 0] + LINE[:-1, 0]) / 2, [np.inf]])
    return np.diff(stats.laplace.cdf(edges - LINE[word, 0], scale=scale))


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 10.0])
def test_the_law_on_a_line(epsilon: float) -> None:
    made = Laplace(epsilon).compile(lexicon_of(LINE))
    laws = np.array([line_law(word, 2 / epsilon) for word in range(5)])
    for word in range(5):
        drawn = np.bincount(made.sample(np.full(N, word, np.int32), draws_of(N, word)), minlength=5)
        assert not too_far(drawn, laws[word])
    assert np.log(laws[:, None] / laws).max() <= epsilon
    # A scale of √d·C/ε, half the sensitivity, would be seen, and would break the bound.
    drawn = np.bincount(made.sample(np.zeros(N, np.int32), draws_of(N)), minlength=5)
    assert too_far(drawn, line_law(0, 1 / epsilon))


@pytest.mark.parametrize("snap", ["clipped", "published"])
def test_the_law_in_three_dimensions(snap: str) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(40, 3)).astype(np.float32)
    made = Laplace(6.0, 1.5, snap).compile(lexicon_of(vectors))
    short = vectors * np.minimum(1, 1.5 / np.linalg.norm(vectors, axis=1))[:, None]
    targets = short if snap == "clipped" else vectors
    for word in (0, 17):
        drawn = made.sample(np.full(N, word, np.int32), draws_of(N))
        noisy = short[word] + rng.laplace(scale=2 * math.sqrt(3) * 1.5 / 6, size=(N, 3))
        plain = np.linalg.norm(noisy[:, None] - targets, axis=2).argmin(axis=1)
        assert not too_different(*(np.bincount(x, minlength=40) for x in (drawn, plain)))
