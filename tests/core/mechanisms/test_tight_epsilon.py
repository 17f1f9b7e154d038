"""Exact calibration: from below, to the promise, and never past it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, CusText, Diffractor, SanText
from dptext_spark.mechanisms.privacy_loss.loss import internal_epsilon
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from tests.core.names import lexicon_at, scattered

WORDS = 80
CALIBRATED = ("custext", "santext", "tem", "diffractor")


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 4, 5)


@pytest.mark.parametrize(
    "loss",
    [
        lambda e: e,
        lambda e: 0.6 * e,
        lambda e: 0.5 * e + 0.2 * math.sqrt(e),
        lambda e: e * e / 10,
        lambda e: 2 * e,  # the promise does not hold at all: nothing is made worse
        lambda e: 0.0,
    ],
)
@pytest.mark.parametrize("asked", [0.01, 1.0, 9.0])
def test_the_search_stays_below(loss, asked: float) -> None:  # type: ignore[no-untyped-def]
    found = internal_epsilon(asked, loss)
    assert found >= asked
    if 0 < loss(asked) <= asked:
        assert asked * (1 - 2e-4) <= loss(found) <= asked
    else:
        assert found == asked


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("name", CALIBRATED)
def test_the_same_promise_with_better_text(lexicon: Lexicon, name: str, epsilon: float) -> None:
    parameters = {"custext": {"k": 6}, "diffractor": {"form": "tem"}}.get(name, {})
    published, exact = (
        MECHANISMS[name](epsilon=epsilon, calibration=how, **parameters).compile(lexicon)
        for how in ("published", "exact")
    )
    assert exact.guarantee.epsilon == published.guarantee.epsilon == epsilon
    before, after = (certify(Privatizer(lexicon, sampler)) for sampler in (published, exact))
    assert before.verdict == after.verdict == "confirmed"
    assert before.loss.value < after.loss.value <= epsilon
    assert after.loss.value >= epsilon * (1 - 3e-4)
    kept = [
        sum(float(law.probability[law.ids == w][0]) for w in range(WORDS) for law in [sampler.law(w)])
        for sampler in (published, exact)
    ]
    assert kept[1] > kept[0]
    assert exact.summary.internal_epsilon > epsilon
    assert published.summary.internal_epsilon is None


@pytest.mark.parametrize("p", [0.2, 1.0])
def test_santext_plus(lexicon: Lexicon, p: float) -> None:
    """The promise of words that cannot come out, ln(1/p) aside, is kept as well as that of sensitive words."""
    published, exact = (
        SanText(2.0, 0.5, p, calibration=how).compile(lexicon) for how in ("published", "exact")
    )
    found = certify(Privatizer(lexicon, exact))
    assert found.verdict == "confirmed"
    # With p = 1 no word is released as it is: the promise is one for all words, and the loss is over all pairs of them.
    assert (found.loss.others is None) == (p == 1.0)
    most = found.loss.value if found.loss.others is None else found.loss.others
    assert found.loss.value <= most <= 2.0
    assert most >= 2.0 * (1 - 3e-4)
    assert p < 1.0 or found.loss.total == len(lexicon) * (len(lexicon) - 1) // 2
    assert exact.summary.internal_epsilon > 2.0 == exact.guarantee.epsilon
    assert (
        exact.guarantee.sentence.split("never more")[0] == published.guarantee.sentence.split("never more")[0]
    )


def test_the_geometric_law_has_nothing_to_gain(lexicon: Lexicon) -> None:
    exact = Diffractor(epsilon=1.0, calibration="exact").compile(lexicon)
    assert exact.summary.internal_epsilon == pytest.approx(1.0, rel=1e-3)
    uniform = CusText(epsilon=0.0, k=6, calibration="exact").compile(lexicon)
    assert uniform.guarantee.epsilon == 0.0
    assert certify(Privatizer(lexicon, uniform)).verdict == "confirmed"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "choice", [SanText(2.0, calibration="exact"), SanText(2.0, sensitive=0.5, calibration="exact")]
)
def test_equal_vectors_have_nothing_to_gain(choice: SanText) -> None:
    words = lexicon_at(np.ones((30, 4)))
    made = choice.compile(words)
    found = certify(Privatizer(words, made))
    json.dumps([made.summary.as_dict(), found.as_dict()], allow_nan=False)
    assert made.figures[0] < 10.0  # ε does not grow without end
    assert found.verdict == "confirmed"
    assert "nan" not in found.sentence
