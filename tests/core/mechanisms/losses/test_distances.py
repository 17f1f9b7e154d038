"""The loss of laws over the whole lexicon, against a plain search over all pairs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.mechanisms.kernels.whole import WholeSampler
from dptext_spark.mechanisms.losses import by_distance


def plain(sampler: WholeSampler, vectors: np.ndarray, words: list[int]) -> float:
    """max over pairs and outputs of |ln P - ln P'| / min(d, γ), by the laws that are sampled."""
    laws = {w: np.log(sampler.law(w).probability) for w in words}
    worst = 0.0
    for i, w in enumerate(words):
        for v in words[i + 1 :]:
            gap = min(
                np.linalg.norm(vectors[w].astype(float) - vectors[v].astype(float)), float(sampler.figures[1])
            )
            if gap > 0:
                worst = max(worst, float(np.abs(laws[w] - laws[v]).max() / gap))
    return worst


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("slots", [16, 512])
def test_all_pairs(epsilon: float, slots: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(90, 4)).astype(np.float32)
    vectors[3] = vectors[40]
    sampler = WholeSampler.of(vectors, epsilon, slots=slots)
    found = by_distance(sampler)
    worst = plain(sampler, vectors, list(range(90)))
    smallest = 0.05  # no two different vectors here are nearer
    assert found.pairs == found.total == 90 * 89 // 2
    assert worst <= found.value + found.additive / smallest
    assert found.value <= epsilon
    assert found.value == pytest.approx(worst, rel=1e-4)
    assert found.attained <= worst and found.attained == pytest.approx(worst, rel=1e-3)


def test_only_words_that_can_come_out_are_compared() -> None:
    vectors = np.random.default_rng(2).normal(size=(60, 3)).astype(np.float32)
    listed = np.arange(0, 60, 3, dtype=np.int32)
    sampler = WholeSampler.of(vectors, 2.0, outputs=listed, keep=0.5, slots=16)
    found = by_distance(sampler)
    assert found.total == 20 * 19 // 2 and found.worst is not None
    assert set(found.worst) <= set(listed.tolist())
    logs = {int(w): dict(zip(*map(np.ndarray.tolist, sampler.law(int(w))[::2]), strict=True)) for w in listed}
    worst = 0.0
    for w in logs:
        for v in logs:
            gap = float(np.linalg.norm(vectors[w].astype(float) - vectors[v].astype(float)))
            if w < v:
                worst = max(worst, *(abs(np.log(logs[w][u] / logs[v][u])) / gap for u in logs[w]))
    assert found.value == pytest.approx(worst, rel=1e-4)


def test_equal_words_have_no_loss() -> None:
    sampler = WholeSampler.of(np.ones((5, 3), np.float32), 2.0)
    found = by_distance(sampler)
    assert found.worst is None and found.value <= 1e-12
