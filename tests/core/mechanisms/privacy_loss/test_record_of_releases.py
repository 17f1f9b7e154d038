"""What a record spends where words are drawn after others or replaced after the draw, against all pairs of small records."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from dptext_spark.arrays import F64
from dptext_spark.mechanisms import TEM, CusText, Diffractor, SanText
from dptext_spark.mechanisms.base import NO_WORD
from dptext_spark.mechanisms.privacy_loss import record_loss
from dptext_spark.mechanisms.privacy_loss.accountant import bounds
from tests.core.mechanisms.fluent_toys import lexicon_of
from tests.core.mechanisms.privacy_loss.test_composition import hockey_stick

WORDS, DELTAS = 24, (1e-1, 1e-2)


def fluent_release(sampler: Any, text: tuple[int, ...], outputs: list[int]) -> F64:
    """The probability of every sequence of outputs of a text: each is drawn after the one before it."""
    found = []
    for sequence in product(outputs, repeat=len(text)):
        chance, before = 1.0, NO_WORD
        for word, output in zip(text, sequence, strict=True):
            law = sampler.law_after(word, before)
            chance *= float(law.probability[law.ids == output].sum())
            before = output
        found.append(chance)
    return np.array(found)


@pytest.mark.parametrize("calibration", ["published", "exact"])
def test_no_two_records_of_fluent_draws_pass_the_bounds(calibration: Any) -> None:
    sampler: Any = CusText(
        epsilon=1.5, k=3, mapping="conservative", calibration=calibration, fluent=True
    ).compile(lexicon_of(WORDS, 5, share=0.6))
    found = record_loss(sampler, WORDS)
    assert found.adapts
    assert found.spread <= 1.5 + 1e-9
    group = [int(word) for word in np.flatnonzero(sampler.of_word == sampler.of_word[0])]
    outputs = [int(u) for u in sampler.sets[sampler.of_word[0]] if u >= 0]
    for draws in (1, 2, 3):
        releases = [fluent_release(sampler, text, outputs) for text in product(group, repeat=draws)]
        for delta in DELTAS:
            stated = list(bounds(found, draws, 1.5, delta))
            assert {by for by, _ in stated} == {"any ε-DP law", "adaptive bounded range"}
            for by, epsilon in stated:
                worst = max(hockey_stick(one, other, epsilon) for one, other in product(releases, releases))
                assert worst <= delta * (1 + 1e-9), (by, draws)


def test_no_two_records_of_remapped_draws_pass_the_bounds() -> None:
    lexicon = lexicon_of(WORDS, 6)
    settings: dict[str, Any] = {"epsilon": 2.0, "k": 5, "calibration": "exact"}
    before, made = (CusText(**settings, remap=remap).compile(lexicon) for remap in ("none", "bayes"))
    assert len(np.unique(made.remap)) < WORDS
    found, drawn = record_loss(made, WORDS), record_loss(before, WORDS)
    assert found.spread <= drawn.spread + 1e-11
    assert found.epsilon <= drawn.epsilon + 1e-11
    assert not found.adapts
    # Who shares an output set is told by the law before the remap, not by what is released.
    groups = before.groups()
    assert (np.equal.outer(made.groups(), made.groups()) == np.equal.outer(groups, groups)).all()
    laws = np.zeros((WORDS, WORDS))
    for word in range(WORDS):
        law = made.law(word)
        laws[word, law.ids] = law.probability
    pairs = [
        (laws[w], laws[v]) for w, v in product(range(WORDS), repeat=2) if groups[w] == groups[v] and w != v
    ]
    for delta in DELTAS:
        for by, epsilon in bounds(found, 2, 2.0, delta):
            worst = max(
                hockey_stick(np.outer(a, c), np.outer(b, d), epsilon)
                for (a, b), (c, d) in product(pairs[::3], pairs)
            )
            assert worst <= delta * (1 + 1e-9), by


@pytest.mark.parametrize(
    "mechanism",
    [SanText(3.0), TEM(3.0), Diffractor(0.5), Diffractor(0.5, "tem", lists=2)],
)
def test_a_remap_over_all_words_keeps_the_range_of_the_draw(mechanism: Any) -> None:
    lexicon = lexicon_of(WORDS, 7)
    found = record_loss(replace(mechanism, remap="bayes").compile(lexicon), WORDS)
    assert found == record_loss(mechanism.compile(lexicon), WORDS)
    assert found.by_distance
