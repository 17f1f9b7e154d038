"""`bayes` of a requirement, and the words that an adversary finds most often: the trial chooses, fresh draws tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dptext_spark.audit.attacks.adversary import FRESH, TRIAL, adversary, bayes_vulnerability, worst_words
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.epsilon_search import Search, judge, word_requirement
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import zipf
from dptext_spark.mechanisms import MVC, TEM, CusText, SanText
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from tests.core.audit.plain_attacks import law_table, table_sampler
from tests.core.names import scattered

WORDS = 150


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 4, 6)


def plain(sampler: Any, prior: np.ndarray) -> np.ndarray:
    """How often each word is guessed, by argmax_w P(w)·P(u|w), ties to the lower id."""
    law = law_table(sampler, WORDS)
    guess = (prior[:, None] * law).argmax(axis=0)
    return np.array([law[word, guess == word].sum() for word in range(WORDS)])


def some_prior() -> np.ndarray:
    prior = np.where(np.arange(WORDS) % 4 > 0, 1 / (np.arange(WORDS) + 2.7), 0.0)
    return np.asarray(prior / prior.sum())


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mechanism", [CusText(epsilon=2.0, k=5), TEM(epsilon=2.0), SanText(sensitive=0.5)])
def test_of_a_law_it_is_the_formula(
    mechanism: Any, backwards: bool, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backwards:
        monkeypatch.setattr("dptext_spark.audit.attacks.adversary.SMALL", WORDS - 1)
    prior = some_prior()
    sampler = mechanism.compile(lexicon)
    some = np.arange(WORDS) % 3 == 0
    groups = {"names": some, "words": prior == 0}
    each, found = plain(sampler, prior), bayes_vulnerability(sampler, prior, 0.99, groups=groups)
    able = each[prior > 0]
    with pytest.raises(SettingsError, match=r"'bayes words' is about the words of --words, and the policy"):
        found.statistic("values", "words")
    assert found.of_names == found.statistic("upper", "names")[0]
    assert found.exact == (not backwards or isinstance(mechanism, CusText))
    assert len(found.words) == len(able)
    for name, truth in {
        "token": (prior * each).sum(), "worst": np.sort(able)[-2:].mean(), "mean": able.mean(), "max": able.max(),
        "names": (prior * each)[some].sum() / prior[some].sum(), "p50": np.sort(able)[-(-len(able) // 2) - 1],
    }.items():  # fmt: skip
        value, word = found.statistic("values", name)
        assert value == pytest.approx(truth, rel=1e-6)
        assert word is None or each[word] == pytest.approx(truth, rel=1e-6)
        assert found.statistic("lower", name)[0] <= truth * (1 + 1e-6)
        assert found.statistic("upper", name)[0] >= truth * (1 - 1e-6)


def test_without_a_law_the_bounds_hold_what_many_draws_show(lexicon: Lexicon) -> None:
    prior = some_prior()
    sampler = MVC(epsilon=6.0).compile(lexicon)
    found = bayes_vulnerability(sampler, prior, 1 - 1e-6, tries=4_096)
    # Counted on a million draws, guessed by the shares of a million others: a lower bound of the optimum within 0.01.
    truth = bayes_attack(sampler, WORDS, prior, draws=4_000, confidence=1 - 1e-6)
    assert not found.exact
    assert found.token.lower <= truth.upper
    assert truth.lower <= found.token.upper
    assert found.token.upper - found.token.lower < 0.15
    assert "noisy vector" in found.how
    for name in ("max", "worst", "mean", "p99"):
        with pytest.raises(SettingsError, match=f"require: 'bayes {name}' needs a law"):
            judge(word_requirement(f"bayes {name} <= 0.5"), found)


def staying(epsilon: float) -> TableSampler:
    """Two words that stay with a probability of (1 + 2ε)/(2 + 2ε)."""
    p = (1 + 2 * epsilon) / (2 + 2 * epsilon)
    ids, share = np.array([[0, 1], [1, 0]], np.int32), np.array([[p, 1 - p]] * 2)
    return TableSampler.of(ids, share, Guarantee("epsilon_dp_within_group", epsilon), TableSummary(words=2))


def search(*texts: str, **options: Any) -> Any:
    requirements = [word_requirement(text) for text in texts]
    prior = options.pop("prior", None)
    every: Any = {"compile_at": staying, "sample": lambda: np.arange(2, dtype=np.int32), "total": 2}
    looking = Search(requirements=requirements, prior=prior, **every)
    return looking.largest(**options)


def test_the_largest_epsilon_in_closed_form() -> None:
    """Once p passes P(0), the output is the best guess, and p its success: 0.8 at ε = 1.5."""
    found = search("bayes token <= 0.8")
    assert found.epsilon == pytest.approx(1.5, rel=2e-3)
    assert found.epsilon <= 1.5
    assert found.monotone == (True,)
    assert found.words == 0
    assert found.draws is None
    assert found.as_dict()["exact"]
    assert found.guessing.words == 2
    assert found.guessing.exact
    # Below that the commoner word is always named: found surely, as is the other never.
    first = found.points[0].findings[0]
    assert first.value == pytest.approx(zipf(2)[0])
    assert first.exact
    assert first.word is None
    together = search("bayes token <= 0.8", "N_w max <= 0.6")
    assert together.epsilon == pytest.approx(0.25, rel=2e-3)
    assert together.words == 2


def test_a_word_that_is_always_named_is_told() -> None:
    """`bayes max` is 1 where outputs tell nothing: it holds in a stretch in the middle only, and no finer search is made."""
    found = search("bayes max <= 0.8", low=0.1, high=10.0, steps=20)
    share = zipf(2)[0]  # p passes it from (2·share - 1)/(2 - 2·share) on
    assert found.points[0].findings[0].value == 1.0
    assert found.monotone == (False,)
    assert (2 * share - 1) / (2 - 2 * share) <= found.holds_from < found.epsilon <= 1.5
    assert len(found.points) == 10
    alone = search("bayes token <= 0.8", prior=np.array([0.0, 1.0]), low=0.1, high=10.0)
    assert alone.epsilon is None
    assert alone.guessing.words == 1


MANY = 300
CONFIDENCE = 1 - 1e-6


def test_they_are_the_ones_that_hardly_change() -> None:
    """Three words stay with 0.95; all others become any word, and of equally likely inputs the first is guessed."""
    law = np.full((MANY, MANY), 1 / MANY)
    held = [150, 200, 299]
    for word in held:
        law[word] = 0.05 / (MANY - 1)
        law[word, word] = 0.95
    prior = np.full(MANY, 1 / MANY)
    sampler = table_sampler(law)
    found = worst_words(sampler, adversary(sampler, prior), np.ones(MANY, np.bool_), CONFIDENCE, MANY)
    assert set(found.words) <= {0, *held}
    assert len(found.words) == 3
    assert found.looked_at == MANY
    assert found.mean.lower <= 0.95 <= found.mean.upper
    assert found.mean.lower < found.mean.value < found.mean.upper
    assert found.draws == (TRIAL, FRESH)


@pytest.mark.parametrize(("looked_at", "chosen"), [(250, 3), (60, 1), (1, 1)])
def test_chance_finds_of_the_trial_are_not_believed(looked_at: int, chosen: int) -> None:
    """Every word is found with 0.3. The luckiest of a trial of 60 words or more are found six times of ten, drawn anew as any."""
    law = np.full((MANY, MANY), 0.7 / (MANY - 1))
    np.fill_diagonal(law, 0.3)
    sampler, prior = table_sampler(law), np.full(MANY, 1 / MANY)
    found = worst_words(sampler, adversary(sampler, prior), np.arange(MANY) > 0, CONFIDENCE, looked_at)
    assert found.mean.lower <= 0.3 <= found.mean.upper < 0.6
    assert 0 not in found.words
    assert (found.looked_at, len(found.words)) == (looked_at, chosen)
