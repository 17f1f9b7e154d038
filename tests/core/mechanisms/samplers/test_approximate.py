"""Approximate search: an inverted file against a plain one; of noise, a function of the noisy vector that the guarantee names."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, Laplace, Vickrey
from dptext_spark.mechanisms.samplers.approximate import RECALL_DRAWS, CellIndex, recall, words_evenly
from dptext_spark.mechanisms.samplers.nearest import Targets
from tests.core.mechanisms.plain_noise import draws_of, plain_two
from tests.core.mechanisms.plain_whole import gaussian
from tests.core.names import lexicon_at, scattered


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(2000, 16, 3)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [2.0, 8.0, 1e6])
def test_no_table_stands_before_the_index(lexicon: Lexicon, epsilon: float) -> None:
    """Else a noisy vector could be answered in two ways, and which one would tell the word."""
    made = MVC(epsilon, search="ivf").compile(lexicon)
    assert made.table.near.shape[1] == 0
    ids = (np.arange(1500) % 2000).astype(np.int32)
    points = made.centers[ids] + made._noise_of_public_draws(1500)
    # The same points come from other words with other noise; what comes out is the index's answer in both cases.
    found = made.index.search(made.targets, points, 1)[:, 0]
    assert (made.sample(ids, draws_of(1500, 0)) == found).all()
    if epsilon == 1e6:
        assert MVC(epsilon).compile(lexicon).table.near.shape[1] > 0


@pytest.mark.parametrize("second", [False, True])
def test_recall_is_measured_and_told(lexicon: Lexicon, second: bool) -> None:
    kind = Vickrey if second else MVC
    made, exact = kind(3.0, search="ivf").compile(lexicon), kind(3.0).compile(lexicon)
    figures, wanted = made.summary.search, 1 + second
    points = made.centers[words_evenly(2000)].astype(np.float64) + exact._noise_of_public_draws(RECALL_DRAWS)
    wide = made.centers.astype(np.float64)
    best = np.argsort(-(points @ wide.T - 0.5 * (wide * wide).sum(1)), axis=1)[:, :wanted]
    found = made.index.search(made.targets, points, wanted)[:, :wanted]  # type: ignore[union-attr]
    assert figures.recall == (best == found).all(axis=1).mean()
    assert figures.recall > 0.5
    assert figures.recall < 1
    assert (figures.index, figures.recall_draws) == ("ivf", RECALL_DRAWS)
    assert f"approximately (ivf): in {figures.recall:.1%} of 512 public draws" in made.guarantee.sentence
    told, plain = (dataclasses.replace(x.guarantee, sentence="") for x in (made, exact))
    assert told == plain
    assert exact.summary.search is None
    assert "approximately" not in exact.guarantee.sentence


def test_an_index_of_the_words_that_are_snapped_to() -> None:
    """`snap: published`: the noise is added to clipped vectors, and the index holds the others."""
    lexicon = lexicon_at(np.random.default_rng(4).normal(size=(500, 6)) * 3)
    made = Laplace(9.0, snap="published", search="ivf").compile(lexicon)
    assert made.targets.vectors is not made.centers
    every = dataclasses.replace(made.index, probes=len(made.index.starts) - 1)  # type: ignore[union-attr]
    whole = dataclasses.replace(made, index=every).sample(np.arange(500, dtype=np.int32), draws_of(500))
    exact = dataclasses.replace(made, index=None).sample(np.arange(500, dtype=np.int32), draws_of(500))
    assert (whole == exact).all()
    assert recall(every, made.targets, lexicon.vectors.astype(np.float64), 1) == 1.0


@pytest.mark.cluster
def test_recall_on_real_vectors(glove: Lexicon) -> None:
    """What docs/guide/mechanism says of cells: binomial limits at 1e-6, and .005 for the rounded figures."""
    made = MVC(1.0, search="ivf").compile(glove)
    ids, factor = words_evenly(len(glove)), made.parameters[1]
    for epsilon, wanted in ((1.0, 0.76), (10.0, 0.87), (20.0, 0.99)):
        at = dataclasses.replace(made, parameters=np.array([epsilon, factor]))
        exact = dataclasses.replace(at, index=None).sample(ids, draws_of(RECALL_DRAWS))
        share = float((at.sample(ids, draws_of(RECALL_DRAWS)) == exact).mean())
        limit = stats.norm.isf(5e-7) * math.sqrt(wanted * (1 - wanted) / RECALL_DRAWS)
        assert abs(share - wanted) < limit + 0.005, (epsilon, share)


def points_near(vectors: np.ndarray, n: int, spread: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return vectors[rng.integers(0, len(vectors), n)] + spread * rng.normal(size=(n, vectors.shape[1]))


@pytest.mark.parametrize("size", [1, 3, 4, 9, 20])
def test_the_nearest_cells(size: int) -> None:
    vectors = gaussian(900, size)
    made = CellIndex.of(vectors)
    points = points_near(vectors, 200, 0.5)
    found = made.nearest_cells(points)
    gaps = np.linalg.norm(points[:, None] - made.columns.T[None], axis=2)
    wanted = np.sort(gaps, axis=1)[:, : found.shape[1]]
    assert np.allclose(np.take_along_axis(gaps, found, axis=1), wanted, atol=1e-3)
    assert all(len(set(row.tolist())) == made.probes for row in found)


@pytest.mark.parametrize("wanted", [1, 2])
@pytest.mark.parametrize("spread", [0.1, 3.0, 1e4])
def test_the_answer_is_exact_within_the_cells(wanted: int, spread: float) -> None:
    vectors = gaussian(600, 6)
    made, targets = CellIndex.of(vectors), Targets.of(vectors)
    points = points_near(vectors, 300, spread)
    found = made.search(targets, points, wanted)
    for point, cells, answer in zip(points, made.nearest_cells(points), found, strict=True):
        words = np.sort(np.concatenate([made.words[made.starts[c] : made.starts[c + 1]] for c in cells]))
        pair = plain_two(point, vectors[words])
        assert answer[:wanted].tolist() == words[list(pair)][:wanted].tolist()


@pytest.mark.parametrize("wanted", [1, 2])
def test_all_cells_are_an_exact_search(wanted: int) -> None:
    """Near ties and equal vectors among the words."""
    vectors = gaussian(800, 5)
    vectors[500:] = np.nextafter(vectors[:300], np.float32(9))
    vectors[400:500] = vectors[:100]
    made, targets = CellIndex.of(vectors), Targets.of(vectors)
    every = dataclasses.replace(made, probes=len(made.starts) - 1)
    points = points_near(vectors, 500, 0.3)
    assert (
        every.search(targets, points, wanted)[:, :wanted] == targets.search(points, wanted)[:, :wanted]
    ).all()
    few = dataclasses.replace(made, probes=2).search(targets, points_near(vectors, 500, 3.0), 1)
    assert (few[:, 0] != targets.search(points_near(vectors, 500, 3.0), 1)[:, 0]).any()


@pytest.mark.parametrize(
    "vectors",
    [[[0.0], [1.0]], [[1.0, 2.0]] * 3, [[0.0] * 9, [0.0] * 9], [[-3.0], [0.0], [0.0], [5.0]], [[0.0, 0.0], [1.0, 0.0]]],
)  # fmt: skip
def test_tiny_lexicons(vectors: list[list[float]]) -> None:
    given = np.array(vectors, np.float32)
    made, targets = CellIndex.of(given), Targets.of(given)
    points = points_near(given, 50, 2.0)
    found = made.search(targets, points, 2)
    assert ((found >= 0) & (found < len(given))).all()
    assert (found[:, 0] != found[:, 1]).all()
    if len(made.starts) - 1 <= made.probes:
        assert (found == targets.search(points, 2)).all()


@pytest.mark.parametrize("length", [1e12, 1e16, 1e40, 1e150, np.nan])
def test_points_that_float32_does_not_hold(length: float) -> None:
    """They are compared with every word, and change nothing for the points beside them."""
    vectors = gaussian(400, 4)
    made, targets = CellIndex.of(vectors), Targets.of(vectors)
    points = points_near(vectors, 40, 1.0)
    alone = made.search(targets, points, 2)
    points[7] *= length
    found = made.search(targets, points, 2)
    assert (np.delete(found, 7, axis=0) == np.delete(alone, 7, axis=0)).all()
    if not length < 1e15:
        assert found[7].tolist() == targets.search(points, 2)[7].tolist()
