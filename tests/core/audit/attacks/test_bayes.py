"""The Bayes-optimal adversary against its formula, and its bounds against the exact figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dptext_spark.audit.attacks.bayes import WORST, bayes_attack
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import counted, of_drawn, zipf
from dptext_spark.mechanisms import CusText, Diffractor, SanText
from dptext_spark.mechanisms.santext import TEM
from tests.core.audit.plain_attacks import law_table, some_law, table_sampler
from tests.core.mechanisms.lawless import Lawless
from tests.core.names import scattered

WORDS = 40


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 4, 5)


def by_formula(law: np.ndarray, prior: np.ndarray) -> tuple[float, np.ndarray]:
    """Return (Σ_u max_w P(w)P(u|w), P(guessed | w) for each w), ties to the lower id."""
    score = prior[:, None] * law
    guess = score.argmax(axis=0)
    each = np.array([law[w, (guess == w) & (score.max(axis=0) > 0)].sum() for w in range(len(law))])
    return float(score.max(axis=0).sum()), each


@pytest.mark.parametrize("mechanism", [CusText(epsilon=2.0, k=5), TEM(epsilon=2.0)])
@pytest.mark.parametrize("some", [False, True])
def test_it_is_the_formula(mechanism: Any, some: bool, lexicon: Lexicon) -> None:
    sampler = mechanism.compile(lexicon)
    drawn = np.arange(WORDS) % 3 > 0 if some else None
    prior = 1 / (np.arange(WORDS) + 2.7) * (1 if drawn is None else drawn)
    prior /= prior.sum()
    success, each = by_formula(law_table(sampler, WORDS), prior)
    found = bayes_attack(sampler, WORDS, drawn=drawn)
    assert found.success == pytest.approx(success)
    assert found.lower == found.success == found.upper
    assert (found.exact, found.draws, found.confidence) == (True, None, None)
    inputs = np.flatnonzero(prior)
    order = sorted(inputs, key=lambda w: (-round(each[w], 12), w))
    assert found.worst_words == tuple(order[: -(-len(inputs) // 100)])
    assert found.worst_mean == pytest.approx(each[order[0]])
    assert found.by_word_mean == pytest.approx(each[inputs].mean())
    assert found.by_word["1"] == pytest.approx(max(each))
    assert found.never == pytest.approx((each[inputs] == 0).mean())
    assert found.baseline == pytest.approx(prior.max())
    assert found.candidates == len(inputs)
    assert (found.restricted, found.unprotected) == (False, 1.0)


@pytest.mark.parametrize(
    "mechanism",
    [TEM(epsilon=2.0), SanText(epsilon=2.0, sensitive=0.5, p=0.4), Diffractor(epsilon=0.5, lists=2)],
)
def test_read_backwards_it_is_the_same(mechanism: Any, lexicon: Lexicon) -> None:
    sampler = mechanism.compile(lexicon)
    drawn = np.arange(WORDS) % 3 > 0
    forward, found = (bayes_attack(sampler, WORDS, drawn=drawn, backwards=flag) for flag in (False, True))
    assert found.success == pytest.approx(forward.success, rel=1e-6)
    assert found.worst_words == forward.worst_words
    assert found.by_word == pytest.approx(forward.by_word, rel=1e-6)
    assert found.never == forward.never
    assert not found.exact
    assert found.lower == found.success < found.upper < found.success * 1.0011
    assert found.how.startswith("Read from the law")
    assert forward.how == ""
    assert found.draws is None


def test_the_worst_hundredth() -> None:
    words = 250
    law = some_law(words, 3, 0.9)
    prior = zipf(words)
    _, each = by_formula(law, prior)
    found = bayes_attack(table_sampler(law), words, prior)
    worst = np.sort(each)[-3:]
    assert WORST == 0.01
    assert found.worst_mean == pytest.approx(worst.mean())
    assert len(found.worst_words) == 3


def test_ties_go_to_the_lower_id() -> None:
    found = bayes_attack(table_sampler(np.full((4, 4), 0.25)), 4, np.full(4, 0.25))
    assert found.success == 0.25 == found.baseline
    assert found.worst_words == (0,)
    assert (found.worst_mean, found.never) == (1.0, 0.75)


@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_bounds_hold_the_exact_figure(zeros: float) -> None:
    """The bounds of 20 runs at 1 - 1e-6 each: a false alarm has a probability of 2e-5."""
    for seed in range(10):
        law = some_law(WORDS, seed, zeros)
        prior = zipf(WORDS)
        truth, _ = by_formula(law, prior)
        found = bayes_attack(Lawless(table_sampler(law)), WORDS, prior, draws=600, confidence=1 - 1e-6)  # type: ignore[arg-type]
        assert not found.exact
        assert found.draws == 600
        assert found.confidence == 1 - 1e-6
        assert found.lower <= truth <= found.upper
        assert found.lower < found.success < found.upper
        assert found.success == pytest.approx(truth, abs=0.05)


def test_overfitted_guesses_are_not_believed() -> None:
    """With three draws a word most outputs were seen from one word by chance: the same draws would call it a success."""
    law, prior = np.full((200, 200), 1 / 200), np.full(200, 1 / 200)
    found = bayes_attack(Lawless(table_sampler(law)), 200, prior, draws=6)  # type: ignore[arg-type]
    assert found.success < 0.03
    assert found.lower == 0.0
    assert found.upper > 0.2
    assert found.worst_mean < 0.5


def test_the_prior_of_a_public_text() -> None:
    counts = np.array([0, 6, 3, 0], np.int64)
    base = 1 / (np.arange(4) + 2.7)
    base /= base.sum()
    assert counted(counts) == pytest.approx((counts + 2 * base) / 11)
    assert counted(counts).sum() == pytest.approx(1)
    assert counted(np.zeros(4, np.int64)) == pytest.approx(base)
    assert zipf(4) == pytest.approx(base)
    assert of_drawn(np.array([1.0, 2.0, 1.0]), np.array([True, False, True])).tolist() == [0.5, 0.0, 0.5]


def test_settings_that_are_wrong() -> None:
    sampler = table_sampler(np.eye(3))
    for wrong in (np.array([1.0, -1.0, 1.0]), np.array([np.nan, 1.0, 1.0]), np.zeros(3), np.ones(2)):
        with pytest.raises(SettingsError, match=r"^prior: "):
            bayes_attack(sampler, 3, wrong)
    with pytest.raises(SettingsError, match=r"^drawn: "):
        bayes_attack(sampler, 3, drawn=np.ones(2, np.bool_))
    with pytest.raises(SettingsError, match=r"^draws: 1 "):
        bayes_attack(sampler, 3, draws=1)
    for confidence in (0.0, 1.0, float("nan")):
        with pytest.raises(SettingsError, match=r"^confidence: "):
            bayes_attack(sampler, 3, confidence=confidence)
