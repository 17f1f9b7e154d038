"""The loss of laws over the whole lexicon, against a plain search over all pairs and outputs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dptext_spark.mechanisms.privacy_loss import by_distance
from dptext_spark.mechanisms.privacy_loss.exact_losses import calibrated_whole
from dptext_spark.mechanisms.privacy_loss.loss import evenly_spaced
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.model.certificate import verdict
from dptext_spark.rounding import digits_up


def plain(sampler: ExponentialSampler, vectors: np.ndarray, words: list[int]) -> float:
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
    sampler = ExponentialSampler.of(vectors, epsilon, slots=slots)
    found = by_distance(sampler)
    worst = plain(sampler, vectors, list(range(90)))
    smallest = 0.05  # no two different vectors here are nearer
    assert found.pairs == found.total == 90 * 89 // 2
    assert worst <= found.value + found.additive / smallest
    assert found.value <= epsilon
    assert found.value == pytest.approx(worst, rel=1e-4)
    assert found.attained <= worst
    assert found.attained == pytest.approx(worst, rel=1e-3)


def test_equal_words_have_no_loss() -> None:
    sampler = ExponentialSampler.of(np.ones((5, 3), np.float32), 2.0)
    found = by_distance(sampler)
    assert found.worst is None
    assert found.value <= 1e-12


@pytest.mark.parametrize("p", [0.2, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_words_that_cannot_come_out_are_bounded(epsilon: float, p: float) -> None:
    """Against the laws: on sensitive outputs ln(1/p) more than the stated slope times the distance, and no more."""
    vectors = np.random.default_rng(2).normal(size=(60, 3)).astype(np.float32)
    listed = np.arange(0, 60, 3, dtype=np.int32)
    sampler = ExponentialSampler.of(vectors, epsilon, outputs=listed, keep=1.0 - p, slots=16)
    found = by_distance(sampler)
    most = found.value if found.others is None else found.others
    assert found.value <= most <= epsilon
    # With p = 1 nothing is released as it is, and the guarantee compares all words: nothing is left beside it.
    assert (found.others is None, found.outside == "", found.total) == (
        (False, False, 190) if p < 1 else (True, True, 1770)
    )
    assert ("An output that is not sensitive reveals its input" in found.outside) == (p < 1)
    assert (f"ln(1/p) = {digits_up(np.log(1 / p), 6)} more against" in found.outside) == (p < 1)
    logs = np.empty((60, len(listed)))
    for w in range(60):
        law = sampler.law(w)
        logs[w] = np.log(law.probability[np.isin(law.ids, listed)])
    wide, sensitive = vectors.astype(float), np.isin(np.arange(60), listed)
    if p < 1:  # words that can come out are compared with each other alone
        pairs = combinations(listed.tolist(), 2)
        worst = max(np.abs(logs[w] - logs[v]).max() / np.linalg.norm(wide[w] - wide[v]) for w, v in pairs)
        assert found.value == pytest.approx(worst, rel=1e-4)
        assert set(found.worst) <= set(listed.tolist())
    for w in range(60):
        for v in range(w):
            gap = min(float(np.linalg.norm(wide[w] - wide[v])), float(sampler.figures[1]))
            more = np.log(1 / p) if sensitive[w] != sensitive[v] else 0.0
            assert np.abs(logs[w] - logs[v]).max() <= most * gap + more + 2 * sampler.slack + 1e-12


class TestASample:
    def sampler(self) -> ExponentialSampler:
        return ExponentialSampler.of(np.random.default_rng(1).normal(size=(90, 4)).astype(np.float32), 1.0)

    def test_words_are_taken_at_equal_steps(self) -> None:
        assert evenly_spaced(10, 4).tolist() == [0, 3, 6, 9]
        assert evenly_spaced(10, 2).tolist() == [0, 9]
        assert [evenly_spaced(5, most).tolist() for most in (5, 9, None)] == [[0, 1, 2, 3, 4]] * 3
        assert (np.diff(evenly_spaced(32_857, 2_000)) > 0).all()

    def test_the_triangle_inequality_closes_the_rest(self) -> None:
        sampler = self.sampler()
        found = by_distance(sampler, sample=30)
        assert (found.pairs, found.total, found.closed, found.value) == (435, 4005, True, 1.0)
        assert set(found.worst or ()) <= set(evenly_spaced(90, 30).tolist())
        assert found.attained <= by_distance(sampler).attained
        assert verdict(sampler.guarantee, found) == "confirmed"
        assert "every pair among 30 words at equal steps" in found.method

    def test_where_the_internal_epsilon_is_greater_nothing_closes_it(self) -> None:
        vectors = np.random.default_rng(1).normal(size=(90, 4)).astype(np.float32)
        sampler = calibrated_whole(vectors, 1.0, "exact")
        assert verdict(sampler.guarantee, by_distance(sampler)) == "confirmed"
        found = by_distance(sampler, sample=30)
        assert not found.closed
        assert found.value > 1.0
        assert verdict(sampler.guarantee, found) == "not refuted"

    def test_a_loss_in_the_sample_is_found(self) -> None:
        sampler = self.sampler()
        boasting = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.1))
        assert verdict(boasting.guarantee, by_distance(boasting, sample=30)) == "refuted"
