"""The range of the log ratio against every pair of words and against priors that come close to it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.custext import MAPPINGS
from dptext_spark.mechanisms.privacy_loss import by_log_range, worst_loss
from dptext_spark.mechanisms.samplers.fluent import FluentSampler
from tests.core.mechanisms.fluent_toys import lexicon_of


def made(**settings: Any) -> FluentSampler:
    found = CusText(fluent=True, **settings).compile(lexicon_of(30, 1))
    return found


def ranges(sampler: FluentSampler) -> dict[tuple[int, int], Fraction]:
    """Return e^R of every pair that shares a set, in integers."""
    found = {}
    for a, b in itertools.combinations(range(len(sampler.of_word)), 2):
        mine, other = (sampler.sets[sampler.of_word[w]].tolist() for w in (a, b))
        if mine != other:
            continue
        ratios = [
            Fraction(int(x), int(y)) for x, y in zip(sampler.factor[a], sampler.factor[b], strict=True) if x
        ]
        found[a, b] = max(ratios) / min(ratios)
    return found


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_it_is_the_largest_of_all_pairs(mapping: str) -> None:
    sampler = made(epsilon=3.0, k=6, mapping=mapping)
    loss, found = by_log_range(sampler), ranges(sampler)
    assert (loss.pairs, loss.total) == (len(found), len(found))
    if not found:
        assert loss.value == 0.0
        return
    largest = math.log(max(found.values()))
    assert loss.attained <= largest <= loss.value <= largest + 1e-12
    assert found[tuple(sorted(loss.worst))] == max(found.values())  # type: ignore[index]
    assert worst_loss(sampler, 30) == loss


def test_no_prior_loses_more_and_some_come_close() -> None:
    sampler = made(epsilon=2.0, k=5)
    loss = by_log_range(sampler)
    w, v = loss.worst
    f, g = (sampler.factor[one].astype(np.float64) for one in (w, v))
    f, g = f[f > 0], g[g > 0]
    random, closest = np.random.default_rng(0), 0.0
    ratio = np.log(f) - np.log(g)
    heaped = [np.where(np.arange(len(f)) == at, 1.0, 1e-9) for at in (ratio.argmin(), ratio.argmax())]
    for b in [*random.pareto(0.5, (200, len(f))) + 1e-6, *heaped]:
        p, q = b * f / (b * f).sum(), b * g / (b * g).sum()
        closest = max(closest, float(np.abs(np.log(p) - np.log(q)).max()))
    assert closest <= loss.value
    assert closest >= loss.value - 1e-6


@pytest.mark.parametrize("calibration", ["published", "exact"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 2.0, 8.0, 25.0, 32.0])
def test_the_integers_of_a_law_keep_the_claim(epsilon: float, calibration: str) -> None:
    sampler = made(epsilon=epsilon, k=6, calibration=calibration)
    largest = max(ranges(sampler).values())
    assert math.log(largest) <= epsilon + 1e-15
    if calibration == "exact" and 0.5 <= epsilon <= 8.0:
        assert math.log(largest) >= epsilon * (1 - 1e-3)
