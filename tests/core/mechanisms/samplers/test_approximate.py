"""Approximate search in the noise mechanisms: a function of the noisy vector alone, told in the summary and the guarantee."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, MVC, Laplace, Vickrey
from dptext_spark.mechanisms.samplers.approximate import RECALL_DRAWS, recall, words_evenly
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from tests.core.mechanisms.plain_noise import draws_of, lexicon_of

SEARCHES = ("ivf",)
NOISY = [name for name, mechanism in MECHANISMS.items() if mechanism.sampler is NoiseSampler]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return lexicon_of(np.random.default_rng(3).normal(size=(2000, 16)))


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("epsilon", [2.0, 8.0, 1e6])
def test_no_table_stands_before_the_index(lexicon: Lexicon, search: str, epsilon: float) -> None:
    """Else a noisy vector could be answered in two ways, and which one would tell the word."""
    made = MVC(epsilon, search=search).compile(lexicon)  # type: ignore[arg-type]
    assert made.table.near.shape[1] == 0
    assert made.index is not None
    ids = (np.arange(1500) % 2000).astype(np.int32)
    points = made.centers[ids] + made._noise_of_public_draws(1500)
    # The same points come from other words with other noise; what comes out is the index's answer in both cases.
    found = made.index.search(made.targets, points, 1)[:, 0]
    assert (made.sample(ids, draws_of(1500, 0)) == found).all()
    if epsilon == 1e6:
        assert MVC(epsilon).compile(lexicon).table.near.shape[1] > 0


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("second", [False, True])
def test_recall_is_measured_and_told(lexicon: Lexicon, search: str, second: bool) -> None:
    kind = Vickrey if second else MVC
    made, exact = kind(3.0, search=search).compile(lexicon), kind(3.0).compile(lexicon)  # type: ignore[arg-type]
    figures, wanted = made.summary.search, 1 + second
    points = made.centers[words_evenly(2000)].astype(np.float64) + exact._noise_of_public_draws(RECALL_DRAWS)
    wide = made.centers.astype(np.float64)
    best = np.argsort(-(points @ wide.T - 0.5 * (wide * wide).sum(1)), axis=1)[:, :wanted]
    found = made.index.search(made.targets, points, wanted)[:, :wanted]  # type: ignore[union-attr]
    assert figures.recall == (best == found).all(axis=1).mean()
    assert figures.recall > 0.5
    assert figures.recall < 1
    assert (figures.index, figures.recall_draws) == (search, RECALL_DRAWS)
    assert f"approximately ({search}): in {figures.recall:.1%} of 512 public draws" in made.guarantee.sentence
    told, plain = (dataclasses.replace(x.guarantee, sentence="") for x in (made, exact))
    assert told == plain
    assert exact.summary.search is None
    assert "approximately" not in exact.guarantee.sentence


def test_an_index_of_the_words_that_are_snapped_to() -> None:
    """`snap: published`: the noise is added to clipped vectors, and the index holds the others."""
    lexicon = lexicon_of(np.random.default_rng(4).normal(size=(500, 6)) * 3)
    made = Laplace(9.0, snap="published", search="ivf").compile(lexicon)
    assert made.index is not None
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
