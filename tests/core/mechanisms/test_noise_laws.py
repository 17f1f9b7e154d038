"""The laws of noise: on a line exactly, and in three dimensions against numpy's own generator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy import stats

from dptext_spark.mechanisms import MVC, Gaussian, Laplace, Mahalanobis, TruncatedLaplace
from tests.core.mechanisms.plain_noise import draws_of, plain_radial, too_different, too_far
from tests.core.mechanisms.test_mvc import plain_matrix, stretched
from tests.core.names import lexicon_at, scattered

N = 60_000
LINE = np.array([[-1.0], [-0.5], [0.0], [0.1], [0.9]])


def line_laws(mechanism: Any, made: Any) -> np.ndarray:
    """In one dimension a word's cell is an interval: the law in closed form, a row a word."""

    def truncated(x: np.ndarray) -> np.ndarray:
        scale, end = made.parameters
        size = 0.5 * np.expm1(-np.minimum(np.abs(x), end) / scale) / math.expm1(-end / scale)
        return 0.5 + np.sign(x) * size

    cdf = {
        "mvc": stats.laplace(scale=1 / mechanism.epsilon).cdf,
        "laplace": stats.laplace(scale=2 / mechanism.epsilon).cdf,
        "gaussian": stats.norm(scale=made.parameters[0]).cdf,
        "truncated_laplace": truncated,
    }[mechanism.name]
    edges = np.concatenate([[-np.inf], (LINE[1:, 0] + LINE[:-1, 0]) / 2, [np.inf]])
    return np.array([np.diff(cdf(edges - x)) for x in LINE[:, 0]])


@pytest.mark.parametrize(
    "mechanism",
    [
        *(MVC(epsilon) for epsilon in (0.2, 1.0, 1.5, 4.0)),
        *(Laplace(epsilon) for epsilon in (0.3, 2.0, 10.0)),
        Gaussian(2.0, 1e-3),
        *(TruncatedLaplace(epsilon) for epsilon in (0.2, 0.45, 3.0)),
        *(TruncatedLaplace(epsilon, calibration="published") for epsilon in (0.2, 0.45, 3.0)),
    ],
    ids=repr,
)
def test_on_a_line(mechanism: Any) -> None:
    """The samples agree with the law, and the law keeps what is promised."""
    made = mechanism.compile(lexicon_at(LINE))
    laws = line_laws(mechanism, made)
    for word in range(len(LINE)):
        drawn = made.sample(np.full(N, word, np.int32), draws_of(N, word))
        assert not too_far(np.bincount(drawn, minlength=len(LINE)), laws[word])
    loss = np.log(laws[:, None] / laws)
    if mechanism.name == "mvc":
        assert (np.abs(loss).max(axis=2) <= mechanism.epsilon * np.abs(LINE - LINE.T) + 1e-6).all()
    else:
        excess = np.maximum(laws[:, None] - math.exp(mechanism.epsilon) * laws[None], 0).sum(axis=2)
        assert excess.max() <= made.guarantee.delta + 1e-9
    if mechanism.name == "laplace":
        assert loss.max() <= mechanism.epsilon
        # A scale of √d·C/ε, half the sensitivity, would be seen.
        drawn = made.sample(np.zeros(N, np.int32), draws_of(N))
        assert too_far(np.bincount(drawn, minlength=5), line_laws(MVC(mechanism.epsilon), made)[0])


def plain_noise(mechanism: Any, made: Any, vectors: np.ndarray, seed: int) -> np.ndarray:
    rng, scale = np.random.default_rng(seed), made.parameters[0]
    match mechanism.name:
        case "mvc":
            return plain_radial(N, 3, mechanism.epsilon, seed)
        case "mahalanobis":
            root = scipy.linalg.sqrtm(plain_matrix(vectors, mechanism.lam)).real
            return plain_radial(N, 3, mechanism.epsilon, seed) @ root
        case "laplace":
            return rng.laplace(scale=2 * math.sqrt(3) * mechanism.clip / mechanism.epsilon, size=(N, 3))
        case "gaussian":
            return rng.normal(scale=scale, size=(N, 3))
    noise = rng.laplace(scale=scale, size=20 * N)
    return noise[np.abs(noise) <= made.parameters[1]][: 3 * N].reshape(-1, 3)


@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism",
    [
        *(kind for epsilon in (0.5, 3.0, 9.0) for kind in (MVC(epsilon), Mahalanobis(epsilon, 0.9))),
        Laplace(6.0, 1.5, "clipped"),
        Laplace(6.0, 1.5, "published"),
        Gaussian(6.0, 1e-3, clip=1.5),
        TruncatedLaplace(4.0, 0.2, clip=1.5),
    ],
    ids=repr,
)
def test_in_three_dimensions(mechanism: Any) -> None:
    vectors = stretched() if mechanism.name == "mahalanobis" else stretched(stretch=1.0)
    made, centers = mechanism.compile(lexicon_at(vectors)), vectors
    if hasattr(mechanism, "clip"):
        centers = vectors * np.minimum(1, mechanism.clip / np.linalg.norm(vectors, axis=1))[:, None]
    targets = centers if getattr(mechanism, "snap", "") == "clipped" else vectors
    for word in (0, 17):
        ids = np.full(N, word, np.int32)
        drawn = np.bincount(made.sample(ids, draws_of(N)), minlength=40)
        noisy = centers[word] + plain_noise(mechanism, made, vectors, word)
        plain = np.linalg.norm(noisy[:, None] - targets, axis=2).argmin(axis=1)
        assert not too_different(drawn, np.bincount(plain, minlength=40))
        if mechanism.name == "mahalanobis":
            others = MVC(mechanism.epsilon).compile(lexicon_at(vectors)).sample(ids, draws_of(N))
            assert too_different(drawn, np.bincount(others, minlength=40))


def test_the_scale_of_laplace_noise() -> None:
    """2√d·C/ε; the variance at d = 300, ε = 1, C = 1 is 2400."""
    lexicon = scattered(5, 300, 0)
    for epsilon, clip in ((1.0, 1.0), (7.0, 0.3)):
        made, scale = Laplace(epsilon, clip).compile(lexicon), 2 * math.sqrt(300) * clip / epsilon
        assert scale <= made.parameters[0] == pytest.approx(scale, rel=1e-14)
    assert Laplace(1.0).compile(lexicon).summary.variance == pytest.approx(2400)
