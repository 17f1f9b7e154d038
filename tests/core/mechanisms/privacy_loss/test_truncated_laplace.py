"""The exact δ of noisy vectors, against a plain product over all pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import TruncatedLaplace
from dptext_spark.mechanisms.privacy_loss import by_exits, sampled
from dptext_spark.mechanisms.privacy_loss.loss import evenly_spaced
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from tests.core.mechanisms.plain_noise import lexicon_of


def plain(gap: np.ndarray, scale: float, bound: float) -> float:
    """1 - Π P(|Z_i + gap_i| <= A), from the distribution function of Laplace noise cut at ±A."""

    def below(x: np.ndarray) -> np.ndarray:
        x = np.clip(x, -bound, bound)
        return 0.5 + np.sign(x) * np.expm1(-np.abs(x) / scale) / np.expm1(-bound / scale) / 2

    stays = below(bound - gap) - below(-bound - gap)
    return float(1 - np.prod(np.maximum(stays, 0.0)))


def worst(centers: np.ndarray, scale: float, bound: float) -> tuple[float, tuple[int, int]]:
    wide = centers.astype(np.float64)
    return max((plain(wide[i] - wide[j], scale, bound), (i, j)) for j in range(len(wide)) for i in range(j))


@pytest.mark.long
@pytest.mark.parametrize(
    "choice",
    [
        TruncatedLaplace(0.1, calibration="published"),
        TruncatedLaplace(1.0, calibration="published"),
        TruncatedLaplace(9.0, calibration="published"),
        TruncatedLaplace(1.0),
        TruncatedLaplace(9.0, 0.3),
        TruncatedLaplace(9.0, 0.95, clip=3.0),  # a coordinate can differ by more than the support
    ],
)
@pytest.mark.parametrize("dimensions", [1, 5, 40])
def test_it_is_the_worst_of_all_pairs(choice: TruncatedLaplace, dimensions: int) -> None:
    made = choice.compile(lexicon_of(np.random.default_rng(4).normal(size=(130, dimensions)) * 2))
    found, (exact, pair) = by_exits(made), worst(made.centers, *made.parameters)
    assert found.delta == pytest.approx(exact, rel=1e-9)
    assert found.pairs == found.total == 130 * 129 // 2
    assert found.release == "vector"
    assert found.worst == pair or plain(
        made.centers[found.worst[0]].astype(float) - made.centers[found.worst[1]], *made.parameters
    ) == pytest.approx(exact, rel=1e-9)
    assert found.delta <= found.delta_most


def test_pairs_that_were_not_computed_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = TruncatedLaplace(1.0).compile(lexicon_of(np.random.default_rng(4).normal(size=(130, 5))))
    monkeypatch.setattr(sampled, "MARGIN", 1e9)
    monkeypatch.setattr(sampled, "_bound", lambda vectors, noise: None)
    found = by_exits(made)
    assert found.pairs < found.total
    assert 0 < found.delta <= worst(made.centers, *made.parameters)[0] * (1 + 1e-9)


def test_a_sample_of_words() -> None:
    made = TruncatedLaplace(1.0).compile(lexicon_of(np.random.default_rng(4).normal(size=(130, 5))))
    found, ids = by_exits(made, sample=20), evenly_spaced(130, 20)
    exact, pair = worst(made.centers[ids], *made.parameters)
    assert found.delta == pytest.approx(exact, rel=1e-9)
    assert found.worst == tuple(int(ids[i]) for i in pair)
    assert (found.pairs, found.total) == (190, 130 * 129 // 2)
    assert "among 20 words" in found.method


def test_equal_words_have_no_delta() -> None:
    assert by_exits(TruncatedLaplace(1.0).compile(lexicon_of(np.ones((5, 3))))).delta == 0.0


class TestTheCertificate:
    def opposite(self) -> Lexicon:
        """Two opposite words, spread evenly over 300 coordinates, among others."""
        others = np.random.default_rng(0).normal(size=(40, 300)) * 0.01
        return lexicon_of([*others, np.full(300, 0.5), np.full(300, -0.5)])

    def test_the_published_form_is_refuted_with_its_true_delta(self) -> None:
        """0.979 at d = 300, ε = 1, C = 1, and 0.00083 is claimed."""
        made = TruncatedLaplace(1.0, calibration="published").compile(self.opposite())
        claimed = replace(made, guarantee=replace(made.guarantee, status="claimed"))
        found = certify(Privatizer(self.opposite(), claimed))
        assert found.verdict == "refuted"
        assert found.vector is not None
        assert found.vector.worst == (40, 41)
        assert found.vector.delta == pytest.approx(0.979, abs=5e-4)
        assert found.vector.delta_opposite == pytest.approx(found.vector.delta, rel=1e-5)
        assert found.guarantee.delta == pytest.approx(0.00083, rel=5e-3)
        told = found.as_dict()
        assert told["vector"]["verdict"] == "refuted"
        assert told["vector"]["release"] == "vector"
        assert "Release of the noisy vector, refuted: its true δ at ε = 1 is 0.97895" in found.sentence
        assert "Release of the word, " in found.sentence

    @pytest.mark.long
    @pytest.mark.parametrize("share", [0.3, 0.99, 1.01, 4.0])
    def test_the_verified_form_holds_on_both_sides_of_the_root_of_d(self, share: float) -> None:
        lexicon = self.opposite()
        made = TruncatedLaplace(share * math.sqrt(300)).compile(lexicon)
        found = certify(Privatizer(lexicon, made))
        assert found.verdict == "not refuted"
        assert found.vector is not None
        assert found.vector.delta <= found.vector.delta_most <= found.guarantee.delta
        assert found.vector.delta > 0.9 * found.guarantee.delta or share > 1
