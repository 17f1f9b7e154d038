"""The attacks on every mechanism of the registry, with a law or without."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.attacks.attacked_text import LEVELS, Bigrams, simulate
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.attacks.context import context_attack
from dptext_spark.audit.attacks.frequency import frequency_attack
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS
from tests.core.mechanisms.test_contract import PARAMETERS, WORDS
from tests.core.names import scattered

DRAWS = 60


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 4, 5)


@pytest.mark.parametrize("name", MECHANISMS)
def test_it_can_be_attacked(name: str, lexicon: Lexicon) -> None:
    sampler = MECHANISMS[name](**PARAMETERS[name]).compile(lexicon)
    lawful = sampler.law(0) is not None
    one = bayes_attack(sampler, WORDS, draws=DRAWS)
    assert one.exact is lawful
    assert one.draws == (None if lawful else DRAWS)
    assert 0 <= one.lower <= one.success <= one.upper <= 1
    # The optimum is at least what the most frequent word gives.
    assert one.upper >= one.baseline
    assert not lawful or one.success >= one.baseline - 1e-12
    random = np.random.default_rng(6)
    words = random.choice(WORDS, 400, p=1 / np.arange(2, WORDS + 2) / (1 / np.arange(2, WORDS + 2)).sum())
    words, bounds = words.astype(np.int32), np.arange(0, 401, 10)
    model = Bigrams.of(words[:200], bounds[:21], WORDS)
    for level in LEVELS:
        tokens = simulate(sampler, words, words > 2, bounds, level)
        found = context_attack(sampler, tokens, model, np.arange(WORDS) > 2, level=level, draws=DRAWS)
        assert found.lower <= found.success <= found.upper
        assert 0 <= found.certainty <= 1
        assert found.draws == one.draws
        assert found.covered == 1.0
        assert found.tokens == (words > 2).sum()
    assert 0 <= frequency_attack(tokens, model, np.arange(WORDS) > 2).success <= 1
