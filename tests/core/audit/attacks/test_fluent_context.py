"""The contextual adversary against fluent draws: its posterior is that of every text, with laws of words where they stand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.attacks.bigrams import Bigrams, states
from dptext_spark.audit.attacks.context import context_attack, posterior_guesses
from dptext_spark.audit.attacks.posterior import candidates_after
from dptext_spark.audit.attacks.tokens import SUBKEY, Tokens, simulate
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.base import NO_WORD
from dptext_spark.randomness.draws import Draws
from dptext_spark.text.tokens import EDGE, UNKNOWN
from tests.core.mechanisms.fluent_toys import lexicon_of

WORDS = 12
BEYOND = WORDS + 3  # a stop word that the lexicon lacks
# Kept words are those below 3; records of a chain, a kept word between, marks, unknown words, one of the last kind at the end.
TEXT = [[5, 6, 7, 8], [9, 1, 10], [4, EDGE, 11, 5], [6, UNKNOWN, 7, 3], [UNKNOWN, 4]]
NUMBERS = [*TEXT[:4], [BEYOND, 4]]


@pytest.fixture(scope="module")
def sampler() -> Any:
    return CusText(epsilon=3.0, k=4, mapping="aggressive", fluent=True).compile(
        lexicon_of(WORDS, 9, share=0.5)
    )


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return np.array([w for row in rows for w in row], np.int32), bounds


@pytest.fixture(scope="module")
def tokens(sampler: Any) -> Tokens:
    words, bounds = flat(TEXT)
    return simulate(sampler, words, words >= 3, bounds, numbers=flat(NUMBERS)[0])


@pytest.fixture(scope="module")
def bigrams() -> Bigrams:
    public = np.random.default_rng(3).integers(0, WORDS, 300).astype(np.int32)
    return Bigrams.of(public, np.arange(0, 301, 5), WORDS)


@pytest.mark.long
def test_words_are_replaced_after_what_is_released(sampler: Any, tokens: Tokens) -> None:
    at = np.flatnonzero(tokens.drawn)
    before = tokens.before
    known = flat(NUMBERS)[0]
    for row in range(tokens.records):
        for i in range(int(tokens.bounds[row]), int(tokens.bounds[row + 1])):
            last = NO_WORD
            if i > tokens.bounds[row]:
                last = tokens.outputs[i - 1] if tokens.drawn[i - 1] else max(known[i - 1], NO_WORD)
            assert before[i] == last
    blocks = np.stack([at, np.zeros(len(at))], axis=1).astype(np.uint64)
    again = sampler.sample_after(tokens.words[at], before[at], Draws(SUBKEY, blocks))
    np.testing.assert_array_equal(again, tokens.outputs[at])
    assert before[-1] == BEYOND


@pytest.mark.long
def test_the_posterior_is_that_of_every_text(sampler: Any, tokens: Tokens, bigrams: Bigrams) -> None:
    prior = bigrams.unigram[:WORDS] / bigrams.unigram[:WORDS].sum()
    at = np.flatnonzero(tokens.drawn)
    before = tokens.before
    listed, pairs = candidates_after(sampler, prior, tokens.outputs[at], before[at], WORDS)
    assert (listed.covered == 1.0).all()
    observed = np.zeros(len(tokens.words), np.int32)
    observed[at] = pairs
    guesses, certainty = posterior_guesses(tokens, listed, bigrams, observed)
    emission = {
        (w, int(before[i])): dict(zip(*law_of(sampler, w, int(before[i])), strict=True)) for i in at for w in range(WORDS)
    }  # fmt: skip
    edge = WORDS + 1
    for row in range(tokens.records):
        part = list(range(int(tokens.bounds[row]), int(tokens.bounds[row + 1])))
        hidden = [i for i in part if tokens.drawn[i]]
        totals = {i: np.zeros(WORDS) for i in hidden}
        for words in itertools.product(range(WORDS), repeat=len(hidden)):
            filled = dict(zip(hidden, words, strict=True))
            chance = 1.0
            for i in hidden:
                chance *= emission[filled[i], int(before[i])].get(int(tokens.outputs[i]), 0.0)
            if not chance:
                continue
            seen = [filled.get(i, int(states(tokens.words[i : i + 1], WORDS)[0])) for i in part]
            steps = np.array([edge, *seen, edge], np.int32)
            chance *= float(bigrams.probability(steps[:-1], steps[1:]).prod())
            for i in hidden:
                totals[i][filled[i]] += chance
        for i in hidden:
            assert guesses[i] == totals[i].argmax()
            assert certainty[i] == pytest.approx(totals[i].max() / totals[i].sum(), rel=1e-9)


def law_of(sampler: Any, word: int, before: int) -> tuple[list[int], list[float]]:
    found = sampler.law(word, before)
    return found.ids.tolist(), found.probability.tolist()


def test_the_attack_takes_the_laws_where_words_stand(sampler: Any, bigrams: Bigrams) -> None:
    random = np.random.default_rng(8)
    words = random.integers(3, WORDS, 4_000).astype(np.int32)
    bounds = np.arange(0, 4_001, 8)
    drawn = np.arange(WORDS) >= 3
    tokens = simulate(sampler, words, words >= 3, bounds)
    found = context_attack(sampler, tokens, bigrams, drawn)
    alone = bayes_attack(sampler, WORDS, bigrams.unigram[:WORDS], drawn)
    assert alone.exact
    assert "averaged over the word before" in (alone.how or "")
    assert found.covered == 1.0
    assert 1 / WORDS < found.random < found.success < 1


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_draws_are_not_shared(sampler: Any, level: Any) -> None:
    words, bounds = flat(TEXT)
    with pytest.raises(SettingsError, match=r"given with mechanism\.fluent"):
        simulate(sampler, words, words >= 3, bounds, level)
