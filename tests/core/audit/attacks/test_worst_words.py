"""The words that an adversary finds most often: the trial chooses them, and fresh draws say how often they are found."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.attacks.adversary import FRESH, TRIAL, adversary, worst_words
from tests.core.audit.plain_attacks import table_sampler

WORDS = 300
CONFIDENCE = 1 - 1e-6


def test_they_are_the_ones_that_hardly_change() -> None:
    """Three words stay with 0.95; all others become any word, and of equally likely inputs the first is guessed."""
    law = np.full((WORDS, WORDS), 1 / WORDS)
    held = [150, 200, 299]
    for word in held:
        law[word] = 0.05 / (WORDS - 1)
        law[word, word] = 0.95
    prior = np.full(WORDS, 1 / WORDS)
    sampler = table_sampler(law)
    found = worst_words(sampler, adversary(sampler, prior), np.ones(WORDS, np.bool_), CONFIDENCE, WORDS)
    assert set(found.words) <= {0, *held}
    assert len(found.words) == 3
    assert found.looked_at == WORDS
    assert found.mean.lower <= 0.95 <= found.mean.upper
    assert found.mean.lower < found.mean.value < found.mean.upper
    assert found.draws == (TRIAL, FRESH)


@pytest.mark.parametrize(("looked_at", "chosen"), [(250, 3), (60, 1), (1, 1)])
def test_chance_finds_of_the_trial_are_not_believed(looked_at: int, chosen: int) -> None:
    """Every word is found with 0.3. The luckiest of a trial of 60 words or more are found six times of ten, drawn anew as any."""
    law = np.full((WORDS, WORDS), 0.7 / (WORDS - 1))
    np.fill_diagonal(law, 0.3)
    sampler, prior = table_sampler(law), np.full(WORDS, 1 / WORDS)
    found = worst_words(sampler, adversary(sampler, prior), np.arange(WORDS) > 0, CONFIDENCE, looked_at)
    assert found.mean.lower <= 0.3 <= found.mean.upper < 0.6
    assert 0 not in found.words
    assert (found.looked_at, len(found.words)) == (looked_at, chosen)
