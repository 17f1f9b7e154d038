"""Occurrences that share a draw, put together: against every possible text, added up by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.audit.attacks.context import context_attack, pooled_guesses, posterior_guesses
from dptext_spark.audit.attacks.posterior import candidates
from dptext_spark.audit.attacks.tokens import Tokens, simulate
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.text.tokens import EDGE
from tests.core.audit.plain_attacks import posterior, some_law, table_sampler, transitions

WORDS = 6
ALLOWED = np.array([False, True, True, True, True, True])


def text(records: int, seed: int, length: int = 5) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    out = random.choice([EDGE, 0, 1, 2, 3, 4, 5], (records, length))
    for t in range(1, length):
        follows = (random.random(records) < 0.5) & (out[:, t - 1] >= 0)
        out[:, t] = np.where(follows, (out[:, t - 1] + 1) % WORDS, out[:, t])
    return out.ravel().astype(np.int32), np.arange(0, out.size + 1, length)


def model_of(seed: int) -> tuple[Bigrams, np.ndarray]:
    words, bounds = text(80, seed)
    rows = [words[a:b].tolist() for a, b in itertools.pairwise(bounds)]
    return Bigrams.of(words, bounds, WORDS), transitions(rows, WORDS, None)[0]


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_it_is_the_sum_over_occurrences(level: str) -> None:
    law, (model, step) = some_law(WORDS, 1), model_of(2)
    words, bounds = text(20, 3)
    tokens = simulate(table_sampler(law), words, (words >= 0) & ALLOWED[words], bounds, level)  # type: ignore[arg-type]
    prior = of_drawn(model.unigram[:WORDS], ALLOWED)
    plausible = candidates(table_sampler(law), prior, tokens.outputs[tokens.drawn], WORDS)
    guesses, certainty = pooled_guesses(tokens, plausible, model, prior, level == "record")
    scores: dict[tuple[int, int], np.ndarray] = {}
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        found = posterior(words[a:b], tokens.outputs[a:b], tokens.drawn[a:b], law, ALLOWED, step)
        for t, n in enumerate(range(a, b)):
            if tokens.drawn[n]:
                u = int(tokens.outputs[n])
                with np.errstate(divide="ignore", invalid="ignore"):
                    told = np.log(found[t][:WORDS] / (law[:, u] * prior))
                    start = np.log(law[:, u] * prior)
                key = (i if level == "record" else 0, u)
                scores[key] = scores.get(key, start) + np.where(np.isnan(told), -np.inf, told)
    assert any((tokens.outputs[tokens.drawn] == u).sum() > 5 for u in range(WORDS))
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        for n in range(a, b):
            if tokens.drawn[n]:
                score = scores[i if level == "record" else 0, int(tokens.outputs[n])]
                assert guesses[n] == score.argmax()
                assert certainty[n] == pytest.approx(1 / np.exp(score - score.max()).sum())
            else:
                assert guesses[n] == -1


def test_a_word_that_occurs_once_is_guessed_as_before() -> None:
    law, (model, _) = some_law(WORDS, 4), model_of(5)
    words = np.array([1, 0, 3, 2, EDGE, 4], np.int32)
    drawn = words > 0
    tokens = Tokens(words, words, drawn, np.array([0, 2, 4, 6]))
    prior = of_drawn(model.unigram[:WORDS], ALLOWED)
    plausible = candidates(table_sampler(law), prior, words[drawn])
    apart, sure = posterior_guesses(tokens, plausible, model)
    together, certain = pooled_guesses(tokens, plausible, model, prior, by_record=False)
    assert (apart == together).all()
    assert certain == pytest.approx(sure)


def test_sharing_draws_helps_the_adversary() -> None:
    words, bounds = text(300, 6)
    sampler, (model, _) = table_sampler(np.full((WORDS, WORDS), 1 / WORDS)), model_of(7)
    # A cipher: word w is always released as w.
    tokens = Tokens(words, words, (words >= 0) & ALLOWED[words], bounds)
    found = context_attack(sampler, tokens, model, ALLOWED, level="dataset")
    assert found.success == 1.0 > 0.6 > found.apart > found.bayes
    assert found.settings["level"] == "dataset"
    again = context_attack(sampler, tokens, model, ALLOWED)
    assert again.success == again.apart == found.apart
    with pytest.raises(SettingsError, match=r"^level: "):
        context_attack(sampler, tokens, model, ALLOWED, level="row")  # type: ignore[arg-type]


def test_an_output_that_nothing_leads_to() -> None:
    model, _ = model_of(8)
    tokens = Tokens(
        *(np.array(x, np.int32) for x in ([1, 2], [1, 0])), np.array([True, True]), np.array([0, 2])
    )
    prior = of_drawn(model.unigram[:WORDS], ALLOWED)
    plausible = candidates(table_sampler(np.eye(WORDS)), prior, tokens.outputs)
    guesses, certainty = pooled_guesses(tokens, plausible, model, prior, by_record=True)
    assert guesses.tolist() == [1, 0]
    assert certainty.tolist() == [1.0, 0.0]
