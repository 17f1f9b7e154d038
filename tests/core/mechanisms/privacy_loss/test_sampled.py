"""Bounds from draws, half-spaces and the exact δ of noisy vectors: they refute what is false, and leave alone what is true."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, Gaussian, Laplace, Mahalanobis, TruncatedLaplace, Vickrey
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.privacy_loss import by_draws, by_exits, by_half_spaces, sampled
from dptext_spark.mechanisms.privacy_loss.loss import evenly_spaced
from dptext_spark.mechanisms.privacy_loss.sampled import distance
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.mechanisms.plain_whole import gaussian
from tests.core.mechanisms.test_mvc import plain_matrix
from tests.core.names import lexicon_at, scattered

WORDS = 60
RADIAL = [MVC(epsilon=2.0), Mahalanobis(epsilon=2.0), Vickrey(epsilon=2.0)]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 3, 5)


@pytest.mark.parametrize("mechanism", [*RADIAL, Laplace(epsilon=3.0)])
def test_a_true_claim_is_not_refuted(lexicon: Lexicon, mechanism: MVC) -> None:
    found = by_draws(mechanism.compile(lexicon), pairs=12, draws=4000)
    assert 0 < found.attained <= mechanism.epsilon
    assert found.pairs == 12 < found.total
    assert found.confidence == 1 - 1e-6


def boasting(sampler: Sampler, **claims: float) -> Any:
    return replace(sampler, guarantee=replace(sampler.guarantee, **claims))


@pytest.mark.parametrize(("mechanism", "epsilon"), [(MVC(epsilon=4.0), 0.4), (Laplace(epsilon=3.0), 0.01)])
def test_a_claim_that_is_too_small_is_refuted(lexicon: Lexicon, mechanism: MVC, epsilon: float) -> None:
    sampler = boasting(mechanism.compile(lexicon), epsilon=epsilon)
    assert by_draws(sampler, pairs=12, draws=4000).attained > epsilon


@pytest.mark.parametrize("mechanism", RADIAL)
def test_equal_vectors_at_mirrored_places(mechanism: MVC) -> None:
    """Each word has a twin at the other end of the list: no nearest pair and no mirrored one has a distance."""
    half = gaussian(30, 3, 5)
    found = by_draws(mechanism.compile(lexicon_at(np.concatenate([half, half[::-1]]))), pairs=12, draws=4000)
    assert 0 < found.attained <= 2.0
    assert found.pairs == 12
    same = by_draws(mechanism.compile(lexicon_at(np.ones((6, 3)))))
    assert (same.attained, same.pairs, same.worst) == (0.0, 0, None)


@pytest.mark.parametrize(
    ("vectors", "outside"),
    [
        (np.random.default_rng(1).normal(size=(5, 9)), 1e-6),
        (np.insert(np.random.default_rng(2).normal(size=(30, 3)), 1, 1.0, axis=1), 1e-6),
        (np.random.default_rng(3).normal(size=(30, 2)) @ [[1, 0, 0.3], [0, 1, 1.7]], 1.0),
        (np.random.default_rng(4).normal(size=(30, 2)) @ [[1, 0, 1], [0, 1, 0]], 1e-6),
    ],
    ids=["fewer words than dimensions", "a constant dimension", "a dependent one", "a copied one"],
)
def test_mahalanobis_noise_of_words_in_a_plane(vectors: np.ndarray, outside: float) -> None:
    """Nothing was to divide by: a singular matrix, or (dependent) one whose inverse is rounding."""
    lexicon = lexicon_at(vectors)
    for mechanism in (Mahalanobis(2.0, 1.0), Vickrey(2.0, noise="mahalanobis", lam=1.0)):
        sampler = mechanism.compile(lexicon)
        assert 0 < by_draws(sampler, pairs=8, draws=4000).attained <= 2.0
    # In the range of M the distance is that of the pseudo-inverse.
    wide = lexicon.vectors.astype(np.float64)
    spread = np.cov(wide.T, bias=True)
    inverse = np.linalg.pinv(spread * wide.shape[1] / np.trace(spread), rcond=1e-11, hermitian=True)
    for w, v in ((0, 1), (2, 4)):
        gap = wide[w] - wide[v]
        # Where float32 rounded a dependent dimension, the words do differ a little outside of it.
        wanted = float(np.sqrt(gap @ inverse @ gap))
        assert 1 - 1e-6 <= distance(sampler, w, v) / wanted <= 1 + outside


def test_words_that_differ_where_the_lexicon_hardly_does_are_not_told_apart() -> None:
    """Without noise there, the two always come out as themselves, an infinite loss at a distance that M says is finite."""
    vectors = np.random.default_rng(6).normal(size=(40, 3)).astype(np.float32) * [1, 1, 0]
    vectors[0], vectors[1] = (1, 1, 0), (1, 1, 1e-8)
    sampler = Mahalanobis(1.0, 1.0).compile(lexicon_at(vectors))
    ids = np.repeat(np.arange(2, dtype=np.int32), 20_000)
    came = sampler.sample(ids, draws_of(len(ids))).reshape(2, -1)
    first, second = ((side == 0).sum() / (side < 2).sum() for side in came)
    assert abs(np.log(first / second)) < 0.5
    assert 0.2 < first < 0.8


def test_the_distance_is_that_of_the_noise(lexicon: Lexicon) -> None:
    vectors = lexicon.vectors.astype(np.float64)
    gap = vectors[3] - vectors[8]
    assert distance(MVC(epsilon=2.0).compile(lexicon), 3, 8) == pytest.approx(np.linalg.norm(gap))
    metric = np.linalg.inv(plain_matrix(lexicon.vectors, 0.7))
    found = distance(Mahalanobis(epsilon=2.0, lam=0.7).compile(lexicon), 3, 8)
    assert found == pytest.approx(float(np.sqrt(gap @ metric @ gap)), rel=1e-3)


@pytest.mark.parametrize(
    "choice", [Gaussian(epsilon=1.0, delta=0.01), TruncatedLaplace(1.0), TruncatedLaplace(4.0)]
)
def test_half_spaces_refute_a_false_claim_alone(lexicon: Lexicon, choice: Gaussian) -> None:
    sampler = choice.compile(lexicon)
    found = by_half_spaces(sampler)
    assert found.delta <= sampler.guarantee.delta
    assert found.confidence == 1 - 1e-6
    assert found.pairs == 3 < found.total
    false = boasting(sampler, epsilon=0.01, delta=1e-9)
    assert by_half_spaces(false).delta > 0.05
    assert certify(Privatizer(lexicon, false)).verdict == "refuted"


def test_half_spaces_are_below_the_exact_value() -> None:
    """Two words on a line: the event is one of them, and its probability known."""
    sampler = Gaussian(epsilon=1.0, delta=1e-3).compile(lexicon_at([[-1.0], [1.0]]))
    own = (1 + math.erf(1 / float(sampler.parameters[0]) / math.sqrt(2))) / 2
    exact = own - math.exp(0.05) * (1 - own)
    # Clopper and Pearson at 1e-6 on 32,000 draws: about 0.03 below.
    assert exact - 0.04 < by_half_spaces(boasting(sampler, epsilon=0.05)).delta <= exact


def test_all_words_equal_have_no_loss() -> None:
    sampler = TruncatedLaplace(1.0).compile(lexicon_at(np.ones((5, 3))))
    assert by_half_spaces(sampler).delta == by_exits(sampler).delta == 0.0


@pytest.mark.cluster
def test_half_spaces_on_real_vectors(glove: Lexicon) -> None:
    """The published calibration is refuted for the released word, too, at ε = 0.1."""
    found = by_half_spaces(TruncatedLaplace(0.1, calibration="published").compile(glove))
    assert found.delta >= 0.03


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
    made = choice.compile(lexicon_at(np.random.default_rng(4).normal(size=(130, dimensions)) * 2))
    found, (exact, pair) = by_exits(made), worst(made.centers, *made.parameters)
    assert found.delta == pytest.approx(exact, rel=1e-9)
    assert found.pairs == found.total == 130 * 129 // 2
    assert found.release == "vector"
    assert found.worst == pair or plain(
        made.centers[found.worst[0]].astype(float) - made.centers[found.worst[1]], *made.parameters
    ) == pytest.approx(exact, rel=1e-9)
    assert found.delta <= found.delta_most


def test_pairs_that_were_not_computed_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = TruncatedLaplace(1.0).compile(scattered(130, 5, 4))
    monkeypatch.setattr(sampled, "MARGIN", 1e9)
    monkeypatch.setattr(sampled, "_bound", lambda vectors, noise: None)
    found = by_exits(made)
    assert found.pairs < found.total
    assert 0 < found.delta <= worst(made.centers, *made.parameters)[0] * (1 + 1e-9)


def test_a_sample_of_words() -> None:
    made = TruncatedLaplace(1.0).compile(scattered(130, 5, 4))
    found, ids = by_exits(made, sample=20), evenly_spaced(130, 20)
    exact, pair = worst(made.centers[ids], *made.parameters)
    assert found.delta == pytest.approx(exact, rel=1e-9)
    assert found.worst == tuple(int(ids[i]) for i in pair)
    assert (found.pairs, found.total) == (190, 130 * 129 // 2)
    assert "among 20 words" in found.method


class TestTheCertificate:
    def opposite(self) -> Lexicon:
        """Two opposite words, spread evenly over 300 coordinates, among others."""
        others = np.random.default_rng(0).normal(size=(40, 300)) * 0.01
        return lexicon_at([*others, np.full(300, 0.5), np.full(300, -0.5)])

    def test_the_published_form_is_refuted_with_its_true_delta(self) -> None:
        """0.979 at d = 300, ε = 1, C = 1, and 0.00083 is claimed."""
        made = TruncatedLaplace(1.0, calibration="published").compile(self.opposite())
        found = certify(Privatizer(self.opposite(), boasting(made, status="claimed")))
        assert found.verdict == "refuted"
        assert found.vector.worst == (40, 41)
        assert found.vector.delta == pytest.approx(0.979, abs=5e-4)
        assert found.vector.delta_opposite == pytest.approx(found.vector.delta, rel=1e-5)
        assert found.guarantee.delta == pytest.approx(0.00083, rel=5e-3)
        vector = found.as_dict()["vector"]
        assert (vector["verdict"], vector["release"]) == ("refuted", "vector")
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
