"""`bayes` of a requirement: the formula for laws, bounds that hold it for others, and what cannot be asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dptext_spark.audit import adversary
from dptext_spark.audit.calibrate import calibrate
from dptext_spark.audit.guessed import guessed
from dptext_spark.audit.prior import zipf
from dptext_spark.audit.requirement import Requirement, figures_of
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import Calibrated, CusText, SanText, Tem
from dptext_spark.mechanisms.kernels import TableSampler

WORDS = 150


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    vectors = np.random.default_rng(6).normal(size=(WORDS, 4)).astype(np.float32)
    names = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(WORDS)]
    return Lexicon(Vocabulary.of(names), vectors)


def plain(sampler: Any, prior: np.ndarray) -> np.ndarray:
    """How often each word is guessed, by argmax_w P(w)·P(u|w), ties to the lower id."""
    law = np.zeros((WORDS, WORDS))
    for word in range(WORDS):
        found = sampler.law(word)
        law[word, found.ids] = found.probability
    guess = (prior[:, None] * law).argmax(axis=0)
    return np.array([law[word, guess == word].sum() for word in range(WORDS)])


def some_prior() -> np.ndarray:
    prior = np.where(np.arange(WORDS) % 4 > 0, 1 / (np.arange(WORDS) + 2.7), 0.0)
    return np.asarray(prior / prior.sum())


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    "mechanism", [CusText(epsilon=2.0, k=5), Tem(epsilon=2.0), SanText(sensitive=0.5, p=0.4)]
)
def test_of_a_law_it_is_the_formula(
    mechanism: Any, backwards: bool, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backwards:
        monkeypatch.setattr("dptext_spark.audit.adversary.SMALL", WORDS - 1)
    prior = some_prior()
    sampler = mechanism.compile(lexicon)
    each, found = plain(sampler, prior), guessed(sampler, prior, 0.99)
    able = each[prior > 0]
    assert found.exact == (not backwards or isinstance(mechanism, CusText)) and len(found.words) == len(able)
    for name, truth in {
        "token": (prior * each).sum(), "worst": np.sort(able)[-2:].mean(), "mean": able.mean(), "max": able.max(),
        "p50": np.sort(able)[-(-len(able) // 2) - 1],
    }.items():  # fmt: skip
        value, word = found.statistic("values", name)
        assert value == pytest.approx(truth, rel=1e-6)
        assert word is None or each[word] == pytest.approx(truth, rel=1e-6)
        assert found.statistic("lower", name)[0] <= truth * (1 + 1e-6) and found.statistic("upper", name)[
            0
        ] >= truth * (1 - 1e-6)


def test_without_a_law_the_bounds_hold_what_many_draws_show(lexicon: Lexicon) -> None:
    prior = some_prior()
    sampler = Calibrated(epsilon=6.0).compile(lexicon)
    found = guessed(sampler, prior, 1 - 1e-6, tries=4_096)
    # Counted on a million draws, guessed by the shares of a million others: a lower bound of the optimum within 0.01.
    truth = adversary.bayes_attack(sampler, WORDS, prior, draws=4_000, confidence=1 - 1e-6)
    assert not found.exact and found.token.lower <= truth.upper and truth.lower <= found.token.upper
    assert found.token.upper - found.token.lower < 0.15 and "noisy vector" in found.how
    for name in ("max", "worst", "mean", "p99"):
        with pytest.raises(
            SettingsError, match=f"require: 'bayes {name}' is about single words.*valid: 'bayes token'"
        ):
            Requirement.parse(f"bayes {name} <= 0.5").judge(found)


def test_forms() -> None:
    for text in (
        "bayes token <= 0.3",
        "bayes worst < 0.9",
        "bayes max <= 1",
        "bayes p99.5 <= 0.5",
        "bayes mean >= 0.01",
    ):
        assert str(Requirement.parse(text)) == text
    for text in (
        "N_w token <= 0.3",
        "S_w worst >= 3",
        "bayes median <= 0.3",
        "bayes(0.1) max <= 0.3",
        "bayes <= 0.3",
    ):
        with pytest.raises(SettingsError, match="of bayes also token and worst"):
            Requirement.parse(text)
    assert figures_of([Requirement.parse("bayes token <= 0.3")]) == []


def staying(epsilon: float) -> TableSampler:
    """Two words that stay with a probability of (1 + 2ε)/(2 + 2ε)."""
    p = (1 + 2 * epsilon) / (2 + 2 * epsilon)
    ids, share = np.array([[0, 1], [1, 0]], np.int32), np.array([[p, 1 - p]] * 2)
    return TableSampler.of(ids, share, Guarantee("epsilon_dp_within_group", epsilon), {"words": 2})


def search(*texts: str, **options: Any) -> Any:
    requirements = [Requirement.parse(text) for text in texts]
    return calibrate(staying, requirements, 2, sample=lambda: np.arange(2, dtype=np.int32), **options)


def test_the_largest_epsilon_in_closed_form() -> None:
    """Once p passes P(0), the output is the best guess, and p its success: 0.8 at ε = 1.5."""
    found = search("bayes token <= 0.8")
    assert (
        found.epsilon == pytest.approx(1.5, rel=2e-3) and found.epsilon <= 1.5 and found.monotone == (True,)
    )
    assert found.words == 0 and found.draws is None and found.as_dict()["exact"]
    assert found.guessing.words == 2 and found.guessing.exact
    # Below that the commoner word is always named: found surely, as is the other never.
    first = found.points[0].findings[0]
    assert first.value == pytest.approx(zipf(2)[0]) and first.exact and first.word is None
    together = search("bayes token <= 0.8", "N_w max <= 0.6")
    assert together.epsilon == pytest.approx(0.25, rel=2e-3) and together.words == 2


def test_a_word_that_is_always_named_is_told() -> None:
    """`bayes max` is 1 where outputs tell nothing: it holds in a stretch in the middle only, and no finer search is made."""
    found = search("bayes max <= 0.8", low=0.1, high=10.0, steps=20)
    share = zipf(2)[0]  # p passes it from (2·share - 1)/(2 - 2·share) on
    assert found.points[0].findings[0].value == 1.0 and found.monotone == (False,)
    assert (2 * share - 1) / (2 - 2 * share) <= found.holds_from < found.epsilon <= 1.5 and len(
        found.points
    ) == 10
    alone = search("bayes token <= 0.8", prior=np.array([0.0, 1.0]), low=0.1, high=10.0)
    assert alone.epsilon is None and alone.guessing.words == 1
