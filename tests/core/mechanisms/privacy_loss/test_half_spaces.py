"""Half-spaces that tell released words apart: they refute what is false, and leave alone what is true."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Gaussian, TruncatedLaplace
from dptext_spark.mechanisms.privacy_loss import by_half_spaces
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from tests.core.mechanisms.plain_noise import lexicon_of


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return lexicon_of(np.random.default_rng(5).normal(size=(60, 3)))


@pytest.mark.parametrize(
    "choice", [Gaussian(epsilon=1.0, delta=0.01), TruncatedLaplace(1.0), TruncatedLaplace(4.0)]
)
def test_a_true_claim_is_not_refuted_and_a_false_one_is(lexicon: Lexicon, choice: Gaussian) -> None:
    sampler = choice.compile(lexicon)
    found = by_half_spaces(sampler)
    assert found.delta is not None
    assert found.delta <= sampler.guarantee.delta
    assert found.confidence == 1 - 1e-6
    assert found.pairs == 3 < found.total
    boasting = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.01, delta=1e-9))
    assert by_half_spaces(boasting).delta > 0.05  # type: ignore[operator]
    assert certify(Privatizer(lexicon, boasting)).verdict == "refuted"


def test_the_bound_is_below_the_exact_value() -> None:
    """Two words on a line: the event is one of them, and its probability known."""
    lexicon = lexicon_of([[-1.0], [1.0]])
    sampler = Gaussian(epsilon=1.0, delta=1e-3).compile(lexicon)
    own = (1 + math.erf(1 / float(sampler.parameters[0]) / math.sqrt(2))) / 2
    claimed = replace(sampler, guarantee=replace(sampler.guarantee, epsilon=0.05))
    exact = own - math.exp(0.05) * (1 - own)
    found = by_half_spaces(claimed).delta
    # Clopper and Pearson at 1e-6 on 32,000 draws: about 0.03 below.
    assert exact - 0.04 < found <= exact


def test_all_words_equal() -> None:
    found = by_half_spaces(TruncatedLaplace(1.0).compile(lexicon_of(np.ones((4, 2)))))
    assert found.delta == 0.0


@pytest.mark.cluster
def test_glove(glove: Lexicon) -> None:
    """The published calibration is refuted for the released word, too, at ε = 0.1."""
    found = by_half_spaces(TruncatedLaplace(0.1, calibration="published").compile(glove))
    assert found.delta is not None
    assert found.delta >= 0.03
