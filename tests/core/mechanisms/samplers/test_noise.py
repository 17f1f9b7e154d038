"""The noise kernel against one token at a time, whatever settled a draw, and the noise laws against scipy's, to both ends."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.calibrated_noise import radial_noise
from dptext_spark.mechanisms.samplers.nearest import OPEN, NeighborTable
from dptext_spark.mechanisms.samplers.noise import NOISES, NoiseSampler, NoiseSummary, fill, lanes_of
from dptext_spark.randomness import Draws
from tests.core.mechanisms.plain_noise import draws_of, plain_choice, plain_two
from tests.core.mechanisms.plain_whole import gaussian

SAID = Guarantee("metric_dp", 1.0, metric="euclidean")


def plain_sample(
    ids: np.ndarray, draws: Draws, centers: np.ndarray, targets: np.ndarray, noise: str, parameters: tuple[float, ...],
    matrix: np.ndarray | None = None, second: float | None = None,
) -> np.ndarray:  # fmt: skip
    """Noise lane by lane, then a search of the whole lexicon for each token."""
    size = centers.shape[1]
    lanes = lanes_of(noise, size)
    bits = np.stack([draws.u64(lane) for lane in range(lanes)], axis=1)
    z = np.empty((len(ids), size))
    fill(NOISES.index(noise), np.array(parameters), bits, z)
    if matrix is not None:
        turned = np.zeros_like(z)
        for k in range(size):
            turned += z[:, k : k + 1] * matrix[:, k]
        z = turned
    out = []
    for i, word in enumerate(ids):
        query = centers[word].astype(np.float64) + z[i]
        pair = plain_two(query, targets)
        if second is None:
            out.append(pair[0])
        else:
            u = (int(draws.u64(lanes)[i]) + 0.5) / 2**64
            out.append(plain_choice(query, targets, pair, second, u))
    return np.array(out, np.int32)


def clustered() -> np.ndarray:
    """300 words in 12 knots: tables settle much, and the second nearest is often far."""
    rng = np.random.default_rng(7)
    knots, words = rng.normal(size=(12, 5)) * 4, rng.normal(size=(25, 12, 5)) * 0.3
    return (knots + words).reshape(300, 5).astype(np.float32)


def sampler_of(vectors: np.ndarray, epsilon: float, **options: Any) -> NoiseSampler:
    """Calibrated noise over vectors that are also the targets."""
    noise, parameters = radial_noise(epsilon, vectors.shape[1])
    return NoiseSampler.of(vectors, vectors, noise, parameters, SAID, NoiseSummary(), **options)


@pytest.mark.long
@pytest.mark.parametrize("second", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 40.0, 400.0, 1e300])
def test_every_draw_is_that_of_a_plain_search(epsilon: float, second: float | None) -> None:
    vectors = clustered()
    ids = np.random.default_rng(1).integers(0, 300, 700).astype(np.int32)
    wanted = plain_sample(ids, draws_of(700), vectors, vectors, *radial_noise(epsilon, 5), second=second)
    for neighbors in (0, 2, 8, 64, 1000):
        made = sampler_of(vectors, epsilon, second=second, neighbors=neighbors)
        if neighbors:  # however little it settles
            made = dataclasses.replace(made, table=NeighborTable.of(made.centers, neighbors))
        assert (made.sample(ids, draws_of(700)) == wanted).all(), neighbors


@pytest.mark.parametrize("second", [None, 0.5])
@pytest.mark.parametrize(
    ("noise", "parameters", "matrix"),
    [
        ("laplace", (0.4,), None),
        ("gaussian", (0.5,), None),
        ("truncated_laplace", (0.5, 1.0), None),
        (*radial_noise(4.0, 6), np.random.default_rng(3).normal(size=(6, 6))),  # which turns the noise
    ],
)
def test_other_noises_and_other_targets(
    noise: str, parameters: Any, matrix: Any, second: float | None
) -> None:
    centers, targets = gaussian(150, 6), gaussian(150, 6, 1) * 3
    ids, summary = (np.arange(400) % 150).astype(np.int32), NoiseSummary(seed=1)
    for where in (centers, targets):
        made = NoiseSampler.of(centers, where, noise, parameters, SAID, summary, matrix=matrix, second=second)
        wanted = plain_sample(ids, draws_of(400), centers, where, noise, parameters, matrix, second)
        assert (made.sample(ids, draws_of(400)) == wanted).all()
        assert (made.summary.seed, made.summary.noise) == (1, noise)
        assert ("targets" in made.arrays()) == (where is targets)


TINY = (
    [[0.0], [1.0]],
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]],
    [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
    [[0.0] * 9, [0.0] * 9],
    [[-3.0], [0.0], [0.0], [5.0]],
)


@pytest.mark.parametrize("second", [None, 0.5])
@pytest.mark.parametrize("vectors", TINY)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
def test_tiny_lexicons(vectors: list[list[float]], epsilon: float, second: float | None) -> None:
    given = np.array(vectors, np.float32)
    ids = (np.arange(200) % len(given)).astype(np.int32)
    noise = radial_noise(epsilon, given.shape[1])
    wanted = plain_sample(ids, draws_of(200), given, given, *noise, second=second)
    assert (sampler_of(given, epsilon, second=second).sample(ids, draws_of(200)) == wanted).all()


@pytest.mark.parametrize(
    ("epsilon", "wanted", "least"), [(400.0, 1, 0.99), (40.0, 1, 0.3), (40.0, 2, 0.3), (0.1, 1, 0.0)]
)
def test_short_noise_is_settled_by_the_table(epsilon: float, wanted: int, least: float) -> None:
    vectors = clustered()
    made, table = sampler_of(vectors, epsilon), NeighborTable.of(vectors, 64)
    noise = made._noise(made._bits(draws_of(2000), slice(0, 2000)))
    ids = (np.arange(2000) % 300).astype(np.int32)
    found = table.settle(ids, made.centers, made.targets, noise, wanted)
    settled = float((found[:, 0] != OPEN).mean())
    assert least <= settled
    assert (settled > 0) == (least > 0)
    assert (made.table.near.shape[1] == 64) == (epsilon > 1)


def test_equal_blocks_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, blocks, key = sampler_of(gaussian(2500, 12), 8.0, second=0.3), draws_of(60).blocks, bytes(32)
    some = np.random.default_rng(4).integers(0, 60, 1500)
    whole = made.sample((np.arange(60) * 7).astype(np.int32), Draws(key, blocks))
    asked, plain = [], NoiseSampler._sample

    def counted(self: NoiseSampler, ids: np.ndarray, draws: Draws) -> np.ndarray:
        asked.append(len(ids))
        return plain(self, ids, draws)

    monkeypatch.setattr(NoiseSampler, "_sample", counted)
    found = made.sample((some * 7).astype(np.int32), Draws(key, blocks[some]))
    assert asked == [60]
    assert found.dtype == np.int32
    assert (found == whole[some]).all()
    # One block for two words is two draws.
    words = np.array([3, 9, 3], np.int32)
    alone = [made.sample(words[i : i + 1], Draws(key, blocks[[5]]))[0] for i in range(3)]
    assert made.sample(words, Draws(key, blocks[[5, 5, 5]])).tolist() == alone


@pytest.mark.long
def test_memory_does_not_grow_with_batch_times_lexicon() -> None:
    made = sampler_of(gaussian(20_000, 8), 1.0, neighbors=0)
    ids = (np.arange(6000) % 20_000).astype(np.int32)
    made.sample(ids[:600], draws_of(600))
    tracemalloc.start()
    try:
        made.sample(ids, draws_of(6000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10e6  # all scores at once would be 480 MB


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-155])
def test_noise_that_float64_does_not_hold(epsilon: float) -> None:
    with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* is not valid.*Choose a greater one"):
        sampler_of(gaussian(10, 3), epsilon)


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
    found = draw("radial", (epsilon, math.lgamma(dimensions)), random_bits(ROWS, dimensions + 1), dimensions)
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
    tail = np.array([float(r * 2 + 1) / 2**65 for r in rest])  # of `laplace` and `gaussian`
    sizes = {
        "laplace": -3 * np.log(2 * tail),
        "gaussian": stats.norm.isf(tail, scale=0.5),
        "truncated_laplace": -3 * np.log1p(2 * tail * math.expm1(-7 / 3)),
    }
    for noise, size in sizes.items():
        found = draw(noise, PARAMETERS[noise], bits[:, None], 1)[:, 0]
        found = np.where(bits >= np.uint64(2**63), found, -found)
        np.testing.assert_allclose(found, size, rtol=1e-12, atol=0 if "truncated" in noise else 1e-15)


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
    rolled = [np.roll(np.resize(np.array(ENDS, np.uint64), lanes), i) for i in range(8)]
    # In the last row every normal number is 0.
    bits = np.array([*rolled, *(np.full(lanes, end, np.uint64) for end in (0, 2**64 - 1, 2**63 - 1))])
    found = draw(noise, PARAMETERS[noise], bits, 5)
    assert np.isfinite(found).all()
    assert noise != "radial" or (np.linalg.norm(found, axis=1) > 0).all()
