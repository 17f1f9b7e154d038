"""The loss along lists, against a plain search over all pairs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Diffractor
from dptext_spark.mechanisms.privacy_loss import by_steps
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler
from dptext_spark.model.certificate import verdict
from tests.core.mechanisms.plain_noise import lexicon_of

WORDS = 40


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return lexicon_of(np.random.default_rng(5).normal(size=(WORDS, 3)))


def plain(sampler: OrderingSampler) -> float:
    logs = np.array([np.log(sampler.law(w).weight.astype(np.float64)) for w in range(WORDS)])
    worst = 0.0
    for w in range(WORDS):
        for v in range(w):
            gap = int(np.abs(sampler.place[w].astype(int) - sampler.place[v]).max())
            worst = max(worst, float(np.abs(logs[w] - logs[v]).max()) / gap)
    return worst


@pytest.mark.parametrize("form", ["geometric", "tem"])
@pytest.mark.parametrize("lists", [1, 3])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_bound_covers_every_pair(lexicon: Lexicon, form: str, lists: int, epsilon: float) -> None:
    sampler = Diffractor(epsilon=epsilon, form=form, lists=lists).compile(lexicon)  # type: ignore[arg-type]
    worst, found = plain(sampler), by_steps(sampler)
    assert worst <= found.value * (1 + 1e-12)
    assert found.value <= epsilon
    assert found.attained <= worst * (1 + 1e-9)
    assert found.pairs == found.total == WORDS * (WORDS - 1) // 2
    if lists == 1:
        assert found.value == pytest.approx(worst, rel=1e-6)
        assert found.attained == pytest.approx(worst, rel=1e-6)


def test_a_sample_of_steps(lexicon: Lexicon) -> None:
    sampler = Diffractor(epsilon=1.0, form="tem").compile(lexicon)
    found, whole = by_steps(sampler, sample=8), by_steps(sampler)
    assert (found.pairs, found.total) == (8, WORDS * (WORDS - 1) // 2)
    assert found.value <= whole.value
    assert verdict(sampler.guarantee, found) == "not refuted"
    assert verdict(sampler.guarantee, whole) == "confirmed"
    # Every step of the geometric law is known from its one window.
    assert by_steps(Diffractor(epsilon=1.0).compile(lexicon), sample=8).pairs == whole.pairs
