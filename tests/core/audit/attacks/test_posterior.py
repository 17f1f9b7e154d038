"""Columns of laws are the laws; candidates and the attack from them are those of the laws read forward."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dptext_spark.audit.attacks.adversary import adversary
from dptext_spark.audit.attacks.bayes import (
    bayes_attack,
    bayes_by_tries,
    candidates,
    columns_of,
    from_columns,
)
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import zipf
from dptext_spark.mechanisms import MVC, TEM, CusText, Diffractor, Mechanism, Sampler, SanText
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from tests.core.audit.plain_attacks import law_table
from tests.core.names import scattered

V = 160
WORDS = [f"w{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}" for i in range(V)]
MADE: dict[str, Mechanism] = {
    "santext": SanText(epsilon=1.5),
    "santext, published": SanText(epsilon=0.3, calibration="published"),
    "santext+": SanText(epsilon=1.5, sensitive=0.5, p=0.3),
    "santext+, every word drawn": SanText(epsilon=1.5, sensitive=0.5, p=1.0),
    "tem": TEM(epsilon=2.0),
    "tem, narrow": TEM(epsilon=2.0, gamma=1.5),
    "geometric": Diffractor(epsilon=0.4),
    "geometric, three lists": Diffractor(epsilon=0.4, lists=3),
    "tem on lists": Diffractor(epsilon=0.6, form="tem", lists=2),
}


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(V, 6, 3)


@pytest.fixture(scope="module")
def samplers(lexicon: Lexicon) -> dict[str, Sampler]:
    return {name: mechanism.over_epsilons(lexicon)(mechanism.epsilon) for name, mechanism in MADE.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", MADE)
def test_columns_are_the_laws(samplers: dict[str, Sampler], name: str) -> None:
    outputs = np.array([0, 5, V - 1, 77, *range(20, 60)], np.int32)
    assert samplers[name].law_columns() is not None
    found, laws = columns_of(samplers[name])(outputs), law_table(samplers[name], V)
    np.testing.assert_allclose(found, laws[:, outputs].T, rtol=2e-4, atol=1e-12)


@pytest.mark.parametrize("name", MADE)
def test_single_probabilities_are_the_laws(samplers: dict[str, Sampler], name: str) -> None:
    words, outputs = (one.ravel() for one in np.divmod(np.arange(V * V, dtype=np.int32), V))
    found = columns_of(samplers[name]).probability(words, outputs).reshape(V, V)
    np.testing.assert_allclose(found, law_table(samplers[name], V), rtol=1e-9, atol=1e-15)


def test_laws_with_a_tail_are_the_formula_too() -> None:
    """700 outputs do not fit an alias row of 512: the rest of each law is proposed and accepted."""
    words = 1_400
    sampler = SanText(epsilon=1.0, sensitive=0.5, p=0.3).compile(scattered(words, 6, 5))
    every = np.arange(words, dtype=np.int32)
    for word in (0, 699, 700, 1_399):  # kept or not
        law = sampler.law(word)
        assert law is not None
        whole = np.zeros(words)
        whole[law.ids] = law.probability
        single = columns_of(sampler).probability(np.full(words, word, np.int32), every)
        np.testing.assert_allclose(single, whole, rtol=1e-9, atol=1e-15)
        some = np.array([word, 5, 800, 1_200], np.int32)
        np.testing.assert_allclose(columns_of(sampler)(some)[:, word], whole[some], rtol=2e-4, atol=1e-12)


def test_every_end_of_a_list_is_right(samplers: dict[str, Sampler]) -> None:
    for name in ("geometric", "tem on lists"):
        every = columns_of(samplers[name])(np.arange(V, dtype=np.int32))
        np.testing.assert_allclose(every.sum(axis=0), 1.0, atol=1e-5)


@pytest.mark.parametrize("name", ["tem", "geometric, three lists"])
def test_candidates_are_those_of_the_laws(samplers: dict[str, Sampler], name: str) -> None:
    prior = zipf(V)
    prior[[2, 9]] = 0.0
    prior /= prior.sum()
    outputs = np.array([4, 4, 150, 31], np.int32)
    ours = from_columns(columns_of(samplers[name]), prior, outputs, 7)
    theirs = candidates(samplers[name], prior, outputs, 7)
    np.testing.assert_array_equal(ours.slot, theirs.slot)
    np.testing.assert_array_equal(ours.starts, theirs.starts)
    np.testing.assert_array_equal(ours.ids, theirs.ids)
    np.testing.assert_allclose(ours.probability, theirs.probability, rtol=2e-4)
    np.testing.assert_allclose(ours.covered, theirs.covered, rtol=2e-4)
    np.testing.assert_array_equal(ours.possible, theirs.possible)
    np.testing.assert_array_equal(ours.best, theirs.best)
    assert not {2, 9} & set(ours.ids.tolist())
    few = from_columns(columns_of(samplers[name]), np.where(np.arange(V) < 3, 1 / 3, 0.0), outputs, 7)
    assert np.diff(few.starts).max() <= 3


@pytest.mark.parametrize("name", ["tem", "santext", "geometric"])
def test_tries_agree_with_the_exact_attack(samplers: dict[str, Sampler], name: str) -> None:
    prior = zipf(V)
    exact = bayes_attack(samplers[name], V, prior).success
    found = bayes_by_tries(samplers[name], prior, 20_000, 1 - 1e-6)
    value, lower, upper = found.value, found.lower, found.upper
    assert lower <= exact <= upper
    assert lower < value < upper < lower + 0.04
    assert exact > prior.max() + 0.03


def test_what_has_no_columns(lexicon: Lexicon) -> None:
    for mechanism in (CusText(k=10), MVC()):
        assert mechanism.compile(lexicon).law_columns() is None
        with pytest.raises(ValueError, match="cannot be read output by output"):
            columns_of(mechanism.compile(lexicon))


def test_equal_likelihoods_are_taken_by_their_ids() -> None:
    prior = np.full(6, 1 / 6)
    prior[1], prior[4] = 0.0, 1 / 3
    table = np.array([[0.5, 1.0, 0.5, 0.5, 0.25, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]], np.float32)
    found = from_columns(lambda part: table[part], prior, np.array([1, 0, 0], np.int32), 3)
    # Words 0, 2, 3 and 4 are equally likely, 1 is never drawn, 5 never leads there; nothing leads to the second.
    np.testing.assert_array_equal(found.ids, [0, 2, 3])
    np.testing.assert_array_equal(found.starts, [0, 3, 3])
    np.testing.assert_array_equal(found.probability, [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(found.possible, [4, 0])
    np.testing.assert_allclose(found.covered, [0.75, 1.0], rtol=1e-6)


def test_many_candidates_are_the_largest() -> None:
    random = np.random.default_rng(11)
    prior, table = random.random(500), random.random((9, 500)).astype(np.float32)
    found = from_columns(lambda part: table[part], prior, np.arange(9, dtype=np.int32), 40)
    for row in range(9):
        score = table[row] * prior.astype(np.float32)
        np.testing.assert_array_equal(found.row(row)[0], np.argsort(-score, kind="stable")[:40])


def test_a_law_compiled_for_some_words_is_attacked(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.audit.attacks.adversary.SMALL", 10)
    # The first word, by whose law kinds are told apart, has none.
    some = np.arange(5, len(lexicon), dtype=np.int32)
    (sampler,) = ExponentialSampler.compile_many(lexicon.vectors, [(2.0, math.inf)], some)
    prior = np.where(np.arange(len(lexicon)) < 5, 0.0, 1.0) / len(some)
    whole = SanText(epsilon=2.0).compile(lexicon)
    assert adversary(sampler, prior, tries=500).alone == adversary(whole, prior, tries=500).alone
