"""Truncated Gumbel: its constants, its law against an integral, its refutation, and what it refuses."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats
from scipy.special import logsumexp

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import TruncatedGumbel
from dptext_spark.mechanisms.privacy_loss import worst_loss
from dptext_spark.mechanisms.truncated_gumbel import loss_by_rank
from dptext_spark.model.certificate import certify, verdict
from dptext_spark.model.privatizer import Privatizer
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.names import lexicon_at, scattered

FALSE_ALARM = 1e-6
ROWS = 200_000


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(60, 4, 5)


def test_the_constants(lexicon: Lexicon) -> None:
    """The formulas of the paper, from all pairs and scipy's functions."""
    vectors = lexicon.vectors.astype(float)
    table = np.sqrt(((vectors[:, None] - vectors[None]) ** 2).sum(axis=2))
    smallest, largest = table[table > 0].min(), table.max()
    made = TruncatedGumbel(epsilon=400.0).compile(lexicon).summary
    a = (400 - 2 * (1 + math.log(60)) / smallest) / 3
    b = 2 * largest / min(special.lambertw(2 * a * largest).real, math.log(a * smallest))
    assert (made.smallest_distance, made.largest_distance) == pytest.approx((smallest, largest), rel=1e-12)
    assert (made.a, made.b) == pytest.approx((a, b), rel=1e-12)
    assert made.floor == pytest.approx((5 + 2 * math.log(60)) / smallest, rel=1e-12)


def exact_law(
    distance: np.ndarray, words: int, scale: float, limit: float, squared: bool = False, zero: bool = False
) -> np.ndarray:
    """Integrate: k from the Poisson law, then the probability that each sum is the least.

    `squared` and `zero` are two wrong forms: noise on squared distances, and k = 0 that returns the word itself.
    """
    rate = math.log(words)
    k = np.arange(0 if zero else 1, words + 1)
    mass = stats.poisson.pmf(k, rate)
    mass = mass / mass.sum()
    order = np.argsort(distance, kind="stable")
    at = distance[order] ** (2 if squared else 1)
    low, high = stats.gumbel_r.cdf([-limit, limit], scale=scale)
    noise = np.linspace(-limit, limit, 20_001)
    # Midpoints of the noise and their mass; nothing is assumed of its density.
    step = np.diff(stats.gumbel_r.cdf(noise, scale=scale)) / (high - low)
    middle = (noise[1:] + noise[:-1]) / 2
    beyond = np.empty((words, words, len(middle)))  # P(d_j + noise > d_i + x)
    for i in range(words):
        for j in range(words):
            x = np.clip(middle + at[i] - at[j], -limit, limit)
            beyond[i, j] = 1 - (stats.gumbel_r.cdf(x, scale=scale) - low) / (high - low)
    law = np.zeros(words)
    for count, p in zip(k.tolist(), mass.tolist(), strict=True):
        if count == 0:
            law[order[0]] += p
        for i in range(count):
            others = [j for j in range(count) if j != i]
            law[order[i]] += p * (step * beyond[i, others].prod(axis=0)).sum()
    return law


def test_the_law_and_its_wrong_forms() -> None:
    vectors = np.array([[0.0], [1.0], [1.5], [3.0], [7.0], [9.0]])
    made = TruncatedGumbel(epsilon=40.0).compile(lexicon_at(vectors))
    drawn = made.sample(np.full(ROWS, 1, np.int32), draws_of(ROWS))
    counts = np.bincount(drawn, minlength=6)
    scale, limit = made.summary.b, made.summary.largest_distance
    distance = np.abs(vectors[:, 0] - 1.0)
    law = exact_law(distance, 6, scale, limit)
    assert law.sum() == pytest.approx(1, abs=1e-4)
    assert stats.chisquare(counts, law / law.sum() * ROWS).pvalue > FALSE_ALARM
    for wrong in ({"squared": True}, {"zero": True}):
        law = np.maximum(exact_law(distance, 6, scale, limit, **wrong), 1e-9)  # 0: drawn, but impossible
        assert stats.chisquare(counts, law / law.sum() * ROWS).pvalue < FALSE_ALARM


class TestTheFloor:
    def test_below_it_is_refused_with_the_floor(self, lexicon: Lexicon) -> None:
        floor = TruncatedGumbel(epsilon=1e6).compile(lexicon).summary.floor
        for epsilon in (1e-6, floor / 2, floor * (1 - 1e-12), floor):
            with pytest.raises(SettingsError, match=rf"mechanism\.epsilon: .*ε > {floor:.6g} ") as raised:
                TruncatedGumbel(epsilon=epsilon).compile(lexicon)
            assert "unsafe: published" in str(raised.value)
        made = TruncatedGumbel(epsilon=floor * (1 + 1e-9)).compile(lexicon)
        assert made.guarantee.status in ("claimed", "refuted")
        assert made.summary.b > 1e6

    @pytest.mark.parametrize("share", [1e-7, 0.2, 0.6, 0.8, 0.95, 1.0])
    def test_unsafe_draws_without_a_guarantee(self, lexicon: Lexicon, share: float) -> None:
        floor = TruncatedGumbel(epsilon=1e6).compile(lexicon).summary.floor
        made = TruncatedGumbel(epsilon=share * floor, unsafe="published").compile(lexicon)
        assert made.guarantee.status == "refuted"
        assert "Nothing is promised" in made.guarantee.sentence
        drawn = made.sample(np.full(2000, 3, np.int32), draws_of(2000))
        assert 1 < len(np.unique(drawn)) <= 60

    def test_unsafe_is_the_published_scale(self, lexicon: Lexicon) -> None:
        made = TruncatedGumbel(epsilon=20.0, unsafe="published").compile(lexicon).summary
        assert made.a < 0
        real = special.lambertw(2 * made.a * made.largest_distance).real
        assert made.b == pytest.approx(2 * made.largest_distance / real, rel=1e-10)

    def test_without_a_positive_scale_the_noise_is_uniform(self) -> None:
        lexicon = lexicon_at([[0.0], [1.0]])
        made = TruncatedGumbel(epsilon=5.0, unsafe="published").compile(lexicon)  # 0 < a·Δmin < 1
        assert made.summary.b is None
        assert made.noise.tolist() == [1.0, 0.0]
        # k = 2 with probability ln 2 / (ln 2 + 2); then uniforms on [-1, 1], one of them raised by 1: 1/8 of the square.
        wanted = math.log(2) / (math.log(2) + 2) / 8
        found = made.sample(np.zeros(ROWS, np.int32), draws_of(ROWS)).mean()
        assert abs(found - wanted) < stats.norm.isf(FALSE_ALARM / 2) * math.sqrt(wanted / ROWS)


class TestRefutation:
    def test_an_outlier_is_told_apart(self) -> None:
        """30 words in a cluster and one far away: seen from its nearest word it is the last of all."""
        cluster = np.random.default_rng(2).normal(size=(30, 3)) * 0.5
        lexicon = lexicon_at([*cluster, [40.0, 0.0, 0.0], [40.0, 1.0, 0.0]])
        found = TruncatedGumbel(epsilon=1e4).compile(lexicon).summary.pair
        assert found.refuted_up_to == pytest.approx(found.loss / found.distance)
        lexicon = lexicon_at([*cluster, [2.5, 0.0, 0.0]])
        made = TruncatedGumbel(epsilon=1e4).compile(lexicon)
        pair = made.summary.pair
        mass = stats.poisson.pmf(np.arange(1, 32), math.log(31))
        assert pair.loss == pytest.approx(math.log(mass[0] / mass[pair.rank - 1 :].sum()))
        order = np.argsort(np.linalg.norm(lexicon.vectors - lexicon.vectors[pair.words[1]], axis=1))
        assert order[pair.rank - 1] == pair.words[0]
        assert made.guarantee.status == "claimed"

    def test_the_status_turns_at_the_figure(self, outlying: Lexicon) -> None:
        summary = TruncatedGumbel(epsilon=1e6).compile(outlying).summary
        floor, turn = summary.floor, summary.pair.refuted_up_to
        assert turn > floor
        for epsilon, status in (
            (floor * 1.001, "refuted"),
            (turn * 0.999, "refuted"),
            (turn * 1.001, "claimed"),
        ):
            made = TruncatedGumbel(epsilon=epsilon).compile(outlying)
            assert made.guarantee.status == status
            found = certify(Privatizer(outlying, made))
            # Above the figure it is not refuted, and never confirmed.
            assert found.verdict == ("refuted" if status == "refuted" else "not refuted")
            assert found.loss.pairs < found.loss.total

    @pytest.mark.cluster
    def test_glove(self, glove_rows: tuple[list[str], np.ndarray]) -> None:
        """Refuted at every admissible ε up to about 25,900.

        Computed beforehand: floor 34.73, Δmin 0.7446, Δmax 16.25; for the pair nedra/abd alone rank 30,856 and a loss of 215,766
        against 289. With abd itself at rank 1, as here, nedra's rank is one more, and the loss 215,774.
        """
        rows, vectors = glove_rows
        made = TruncatedGumbel(epsilon=34.74).compile(lexicon_at(vectors))
        found = made.summary
        assert found.floor == pytest.approx(34.73, abs=0.005)
        assert found.smallest_distance == pytest.approx(0.7446, abs=5e-5)
        assert found.largest_distance == pytest.approx(16.25, abs=5e-3)
        pair = found.pair
        assert [rows[i] for i in pair.words] == ["nedra", "abd"]
        assert pair.rank == 30_857
        assert round(pair.loss) == 215_774
        assert round(loss_by_rank(math.log(len(rows)), len(rows))[30_856]) == 215_766
        assert round(34.74 * pair.distance) == 289
        assert made.guarantee.status == "refuted"
        assert pair.refuted_up_to == pytest.approx(25_900, rel=1e-3)
        loss = worst_loss(made, len(rows))
        assert loss.attained == pytest.approx(25_900, rel=1e-3)
        assert verdict(replace(made.guarantee, status="claimed"), loss) == "refuted"


class TestTinyLexicons:
    def test_equal_vectors_are_one_place(self) -> None:
        """Three equal words draw the same from the same number, their distance is not Δmin, and they count once."""
        lexicon = lexicon_at([[5.0, 0], [1.0, 1], [1.0, 1], [1.0, 1], [0.0, 0]])
        made = TruncatedGumbel(epsilon=40.0).compile(lexicon)
        assert made.summary.equal_vectors == 2
        assert made.summary.smallest_distance == pytest.approx(math.sqrt(2))
        drawn = [made.sample(np.full(2000, w, np.int32), draws_of(2000)) for w in (1, 2, 3)]
        assert (np.array(drawn) == drawn[0]).all()
        assert made.near[2].tolist()[:3] == [1, 2, 3]
        found = worst_loss(made, 5)
        assert (found.pairs, found.total) == (3, 10)

    def test_more_equal_words_than_candidates(self) -> None:
        lexicon = lexicon_at(np.concatenate([np.zeros((100, 2)), np.ones((90, 2)), [[5.0, 5.0]]]))
        made = TruncatedGumbel(epsilon=40.0).compile(lexicon)
        assert made.summary.smallest_distance == pytest.approx(math.sqrt(2))
        assert made.near[99, 0] == 0
        assert made.near[150, 0] == 100

    def test_huge_epsilon(self, lexicon: Lexicon) -> None:
        for epsilon in (1e100, 1e308):
            made = TruncatedGumbel(epsilon=epsilon).compile(lexicon)
            drawn = made.sample(np.arange(60, dtype=np.int32), draws_of(60))
            assert np.isfinite(made.noise).all()
            assert (drawn == np.arange(60)).mean() > 0.5


@pytest.fixture(scope="module")
def outlying() -> Lexicon:
    """400 words that lie together, and one whose nearest word has all the others nearer."""
    cluster = np.random.default_rng(2).normal(size=(400, 60))
    return lexicon_at([*cluster, *(cluster[:4] * 3)])


def rank_bound(vectors: np.ndarray) -> float:
    """max over words w and their nearest w' of (ln P(k = 1) - ln P(k >= rank of w from w')) / d, from all distances."""
    wide = vectors.astype(np.float64)
    words = len(wide)
    mass = stats.poisson.logpmf(np.arange(1, words + 1), math.log(words))
    table = np.sqrt(((wide[:, None] - wide) ** 2).sum(axis=2))
    worst = 0.0
    for w in range(words):
        other = int(np.argmin(np.where(np.arange(words) == w, np.inf, table[w])))
        rank = int((table[other] < table[other, w]).sum()) + 1
        worst = max(worst, (mass[0] - logsumexp(mass[rank - 1 :])) / table[w, other])
    return worst


def test_it_is_refuted_by_the_worst_pair(outlying: Lexicon) -> None:
    turn = rank_bound(outlying.vectors)
    made = TruncatedGumbel(epsilon=0.9 * turn).compile(outlying)
    claimed = replace(made, guarantee=replace(made.guarantee, status="claimed"))
    found = certify(Privatizer(outlying, claimed))
    assert found.verdict == "refuted"
    assert turn * (1 - 1e-6) < found.loss.attained <= turn * (1 + 1e-9)
    assert found.loss.pairs == 404 < found.loss.total
    assert found.loss.confidence is None
    assert "a pair of words loses at least" in found.sentence
    assert "for the worst pair rank" in found.sentence
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["loss"]["value"] is None
