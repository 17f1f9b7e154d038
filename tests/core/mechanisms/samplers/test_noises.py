"""The noise laws: quantiles against scipy's, laws by Kolmogorov-Smirnov, both ends, and the same bits on a plain CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dptext_spark.mechanisms.samplers.noise import NOISES, fill, lanes_of

ROWS = 200_000
FALSE_ALARM = 1e-6
# Kolmogorov-Smirnov: P(D > x) <= 2·exp(-2·n·x²) (Massart 1990).
LIMIT = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * ROWS))
ENDS = [0, 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
PARAMETERS = {
    "radial": (2.0, math.log(math.factorial(4))),
    "laplace": (3.0,),
    "gaussian": (0.5,),
    "truncated_laplace": (3.0, 7.0),
}


def draw(noise: str, parameters: tuple[float, ...], bits: np.ndarray, dimensions: int) -> np.ndarray:
    out = np.empty((len(bits), dimensions))
    fill(NOISES.index(noise), np.array(parameters), bits, out)
    return out


def random_bits(rows: int, lanes: int) -> np.ndarray:
    return np.random.default_rng(11).integers(0, 2**64, (rows, lanes), dtype=np.uint64)


def distance_to(sample: np.ndarray, cdf: object) -> float:
    return float(stats.ks_1samp(sample, cdf, method="asymp").statistic)  # type: ignore[arg-type]


def truncated_cdf(x: np.ndarray, scale: float, end: float) -> np.ndarray:
    half = 0.5 * np.expm1(-np.minimum(np.abs(x), end) / scale) / math.expm1(-end / scale)
    return 0.5 + np.sign(x) * half


@pytest.mark.parametrize(
    ("noise", "cdf"),
    [
        ("laplace", lambda x: stats.laplace.cdf(x, scale=3.0)),
        ("gaussian", lambda x: stats.norm.cdf(x, scale=0.5)),
        ("truncated_laplace", lambda x: truncated_cdf(x, 3.0, 7.0)),
    ],
)
def test_every_coordinate_has_the_law(noise: str, cdf: object) -> None:
    found = draw(noise, PARAMETERS[noise], random_bits(ROWS, 3), 3)
    for j in range(3):
        assert distance_to(found[:, j], cdf) < LIMIT
    # Coordinates are independent: their ranks are uncorrelated (standard deviation 1/√n, two sides).
    ranks = found.argsort(axis=0).argsort(axis=0)
    gap = stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(ROWS)
    assert all(abs(np.corrcoef(ranks[:, i], ranks[:, j])[0, 1]) < gap for i, j in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.long
@pytest.mark.parametrize("dimensions", [1, 2, 5, 50])
def test_radial_length_and_direction(dimensions: int) -> None:
    epsilon = 2.0
    found = draw(
        "radial",
        (epsilon, math.lgamma(dimensions)),
        random_bits(ROWS, dimensions + 1),
        dimensions,
    )
    length = np.linalg.norm(found, axis=1)
    assert distance_to(length, lambda x: stats.gamma.cdf(x, dimensions, scale=1 / epsilon)) < LIMIT
    if dimensions == 1:
        assert distance_to(found[:, 0], lambda x: stats.laplace.cdf(x, scale=1 / epsilon)) < LIMIT
        return
    # A coordinate c of a uniform direction: (1 + c)/2 is Beta((d-1)/2, (d-1)/2).
    half = (dimensions - 1) / 2
    for j in (0, dimensions - 1):
        cosine = (found[:, j] / length + 1) / 2
        assert distance_to(cosine, lambda x: stats.beta.cdf(x, half, half)) < LIMIT


def test_quantiles_are_scipy_s() -> None:
    """The number k stands for (k + 1/2)/2^64, whose smaller tail is exact: relative error 1e-12 against scipy."""
    bits = np.concatenate([np.array(ENDS, np.uint64), random_bits(2000, 1)[:, 0]])
    rest = (bits & np.uint64(2**63 - 1)).astype(object)
    upper = bits >= np.uint64(2**63)
    tail = np.array([float(r * 2 + 1) / 2**65 for r in rest])  # of `laplace` and `gaussian`
    laplace = draw("laplace", (3.0,), bits[:, None], 1)[:, 0]
    np.testing.assert_allclose(
        np.where(upper, laplace, -laplace), -3 * np.log(2 * tail), rtol=1e-12, atol=1e-15
    )
    normal = draw("gaussian", (0.5,), bits[:, None], 1)[:, 0]
    np.testing.assert_allclose(
        np.where(upper, normal, -normal), stats.norm.isf(tail, scale=0.5), rtol=1e-12, atol=1e-15
    )
    truncated = draw("truncated_laplace", (3.0, 7.0), bits[:, None], 1)[:, 0]
    w = np.array([float(r * 2 + 1) / 2**64 for r in rest])
    size = -3 * np.log1p(w * math.expm1(-7 / 3))
    np.testing.assert_allclose(np.where(upper, truncated, -truncated), size, rtol=1e-12)


@pytest.mark.parametrize("end", [1e-9, 1e-3, 0.1, 1.0, 20.0, 200.0])
def test_truncation_is_kept_and_reached(end: float) -> None:
    bits = np.array([ENDS], np.uint64)
    found = draw("truncated_laplace", (2.0, 2.0 * end), bits, len(ENDS))[0]
    assert (np.abs(found) <= 2.0 * end).all()
    assert (found != 0).all()
    largest = min(2.0 * end, 2.0 * 64 * math.log(2))
    assert found[3] == pytest.approx(-largest, rel=1e-9) or end > 40
    assert found[0] == -found[4]
    assert found[3] == -found[7]
    if end <= 0.1:  # nearly uniform
        assert found[2] == pytest.approx(-end, rel=2 * end)


@pytest.mark.parametrize("noise", NOISES)
def test_edge_bits_are_finite(noise: str) -> None:
    lanes = lanes_of(noise, 5)
    bits = np.array([np.roll(np.resize(np.array(ENDS, np.uint64), lanes), i) for i in range(8)])
    bits = np.concatenate([bits, np.zeros((1, lanes), np.uint64), np.full((1, lanes), 2**64 - 1, np.uint64)])
    bits = np.concatenate([bits, np.full((1, lanes), 2**63 - 1, np.uint64)])  # every normal number is 0
    found = draw(noise, PARAMETERS[noise], bits, 5)
    assert np.isfinite(found).all()
    if noise == "radial":
        assert (np.linalg.norm(found, axis=1) > 0).all()


def test_the_most_extreme_draws() -> None:
    """2^-64: nothing is cut off before the numbers themselves end."""
    last = np.array([[0, 2**63]], np.uint64)
    assert draw("laplace", (1.0,), last, 2)[0] == pytest.approx([-64 * math.log(2), 64 * math.log(2)])
    end = stats.norm.isf(2.0**-65)
    assert draw("gaussian", (1.0,), last, 2)[0] == pytest.approx([-end, end], rel=1e-14)
