"""Vickrey: the rule, the second winner that a narrow bound loses, and the wrong rule that has no bound."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from dptext_spark.mechanisms import MVC, Mahalanobis, Vickrey
from dptext_spark.mechanisms.samplers.nearest import NeighborTable
from dptext_spark.mechanisms.samplers.noise import choose_second
from tests.core.mechanisms.plain_noise import (
    draws_of,
    plain_choice,
    plain_radial,
    plain_two,
    too_different,
    too_far,
)
from tests.core.mechanisms.plain_whole import gaussian
from tests.core.names import lexicon_at

N = 60_000
LINE = np.array([[-4.0], [-1.5], [-1.0], [0.0], [0.25], [3.0]], np.float32)


def probability(d1: float, d2: float, t: float) -> float:
    """Of the nearest word, by 4,096 evenly spaced coins."""
    noisy, words = np.zeros((4096, 1)), np.array([[d1], [-d2]], np.float32)
    coins = (np.arange(4096, dtype=np.uint64) << np.uint64(52)) + np.uint64(1 << 51)
    out = np.empty(4096, np.int32)
    choose_second(noisy, words, np.tile(np.array([[0, 1]], np.int32), (4096, 1)), coins, t, out)
    return float((out == 0).mean())


@pytest.mark.parametrize("t", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize(
    ("d1", "d2"), [(1.0, 1.0), (1.0, 3.0), (0.0, 2.0), (0.0, 0.0), (1e-20, 1e20), (2.0, 2.5)]
)
def test_the_rule(d1: float, d2: float, t: float) -> None:
    wanted = 1 - t if d2 == 0 or t == 1 else (1 - t) * d2 / (t * d1 + (1 - t) * d2)
    assert abs(probability(d1, d2, t) - wanted) <= 1 / 4096


def test_the_ends_of_the_coin() -> None:
    """t = 0 never releases the second word, not even on the last of 2^64 coins; t = 1 always does."""
    noisy, words = np.zeros((3, 1)), np.array([[1.0], [2.0]], np.float32)
    coins = np.array([0, 2**63, 2**64 - 1], np.uint64)
    pairs = np.tile(np.array([[0, 1]], np.int32), (3, 1))
    for t, wanted in ((0.0, [0, 0, 0]), (1.0, [1, 1, 1]), (0.5, [0, 0, 1])):
        out = np.empty(3, np.int32)
        choose_second(noisy, words, pairs, coins, t, out)
        assert out.tolist() == wanted


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("noise", ["mvc", "mahalanobis"])
def test_t_0_is_the_noise_alone_draw_by_draw(noise: Any, epsilon: float) -> None:
    lexicon = lexicon_at(gaussian(700, 9))
    ids = (np.arange(4000) % 700).astype(np.int32)
    alone = MVC(epsilon) if noise == "mvc" else Mahalanobis(epsilon, 0.4)
    made = Vickrey(epsilon, 0.0, noise, 0.4).compile(lexicon)
    assert (made.sample(ids, draws_of(4000)) == alone.compile(lexicon).sample(ids, draws_of(4000))).all()


@pytest.mark.long
@pytest.mark.parametrize("noise", ["mvc", "mahalanobis"])
@pytest.mark.parametrize("t", [0.3, 1.0])
def test_the_law(t: float, noise: Any) -> None:
    """Against a plain sample: numpy's generator, distances, and the rule as it is written."""
    vectors, n = gaussian(40, 3), 20_000
    made = Vickrey(4.0, t, noise, 0.5).compile(lexicon_at(vectors))
    drawn = made.sample(np.full(n, 5, np.int32), draws_of(n))
    noisy = plain_radial(n, 3, 4.0, seed=3)
    if noise == "mahalanobis":
        spread = np.cov(vectors.T.astype(np.float64), bias=True)
        noisy = noisy @ scipy.linalg.sqrtm(0.5 * spread * 3 / np.trace(spread) + 0.5 * np.eye(3)).real
    noisy += vectors[5]
    coins = np.random.default_rng(4).random(n)
    plain = [plain_choice(q, vectors, plain_two(q, vectors), t, u) for q, u in zip(noisy, coins, strict=True)]
    assert not too_different(np.bincount(drawn, minlength=40), np.bincount(plain, minlength=40))


def narrow(made: Any) -> Any:
    """The same sampler with the bound of the first winner for both."""
    table = made.table
    return dataclasses.replace(made, table=NeighborTable(table.near, table.reach[:, [0, 0, 2]]))


def test_the_second_winner_needs_the_wider_bound() -> None:
    """A word far from all others but one: noise of length 1 can bring up a second word beyond 2·1."""
    rng = np.random.default_rng(2)
    vectors = np.concatenate([rng.normal(size=(150, 4)), rng.normal(size=(150, 4)) * 0.1 + 9]).astype(
        np.float32
    )
    lexicon = lexicon_at(vectors)
    ids = (np.arange(3000) % 300).astype(np.int32)
    made = Vickrey(9.0, 1.0).compile(lexicon)
    assert made.table.near.shape[1] == 64
    # With two neighbours stored, what the bound lets through is quickly wrong.
    made = dataclasses.replace(made, table=NeighborTable.of(made.centers, 3))
    whole = dataclasses.replace(made, table=NeighborTable.none(300)).sample(ids, draws_of(3000))
    assert (made.sample(ids, draws_of(3000)) == whole).all()
    lost = (narrow(made).sample(ids, draws_of(3000)) != whole).mean()
    assert lost > 0.02
    # The first winner alone needs no more than the narrow bound.
    first = dataclasses.replace(made, second=None)
    alone = dataclasses.replace(first, table=NeighborTable.none(300)).sample(ids, draws_of(3000))
    assert (first.sample(ids, draws_of(3000)) == alone).all()


def line_law(word: int, epsilon: float, t: float, drop_original: bool = False) -> np.ndarray:
    """The law on a line by integration; `drop_original` is the wrong rule, which leaves the input out."""
    points = LINE[:, 0].astype(np.float64)
    x = np.linspace(-60, 60, 2_400_001)
    density = epsilon / 2 * np.exp(-epsilon * np.abs(x - points[word])) * (x[1] - x[0])
    apart = np.abs(x[:, None] - points)
    if drop_original:
        apart[:, word] = np.inf
    order = apart.argsort(axis=1, kind="stable")[:, :2]
    d1, d2 = (apart[np.arange(len(x)), order[:, i]] for i in (0, 1))
    p = (1 - t) * d2 / (t * d1 + (1 - t) * d2)
    law = np.zeros(len(points))
    np.add.at(law, order[:, 0], density * p)
    np.add.at(law, order[:, 1], density * (1 - p))
    return law


@pytest.mark.long
def test_the_rule_on_the_noisy_vector_keeps_the_bound() -> None:
    epsilon, t = 1.2, 0.5
    made = Vickrey(epsilon, t).compile(lexicon_at(LINE))
    laws = np.array([line_law(word, epsilon, t) for word in range(6)])
    for word in range(6):
        drawn = made.sample(np.full(N, word, np.int32), draws_of(N, word))
        assert not too_far(np.bincount(drawn, minlength=6), laws[word])
    loss = np.abs(np.log(laws[:, None] / laws[None])).max(axis=2)
    assert (loss <= epsilon * np.abs(LINE - LINE.T) + 1e-6).all()


@pytest.mark.long
def test_the_rule_that_drops_the_original_word_has_no_bound() -> None:
    """It never releases the input: an output is proof that it was not the word. The samples tell it apart, too."""
    wrong = np.array([line_law(word, 1.2, 0.5, drop_original=True) for word in range(6)])
    assert (np.diag(wrong) == 0).all()
    assert (wrong[~np.eye(6, dtype=bool)] > 0).sum() >= 20
    with np.errstate(divide="ignore"):
        loss = np.log(wrong[1, 2] / wrong[2, 2])
    assert loss == math.inf
    made = Vickrey(1.2, 0.5).compile(lexicon_at(LINE))
    drawn = made.sample(np.full(N, 2, np.int32), draws_of(N))
    assert too_far(np.bincount(drawn, minlength=6), wrong[2])


def test_the_guarantee_is_the_noise_s() -> None:
    lexicon = lexicon_at(gaussian(40, 3))
    assert Vickrey(2.0).compile(lexicon).guarantee == MVC(2.0).compile(lexicon).guarantee
    made = Vickrey(2.0, noise="mahalanobis", lam=0.3).compile(lexicon)
    assert made.guarantee == Mahalanobis(2.0, 0.3).compile(lexicon).guarantee
    assert made.second == 0.5
