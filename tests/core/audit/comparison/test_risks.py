"""The two risks by each way of finding them: exact, read backwards, and between bounds that hold what is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dptext_spark.audit.attacks import adversary as module
from dptext_spark.audit.attacks.adversary import likeliest
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.audit.comparison.frontier import BAYES, CONTEXT, Text, risks
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms import TEM, CusText, Sampler
from tests.core.mechanisms.lawless import Lawless
from tests.core.names import scattered

V = 120


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(V, 4, 8)


@pytest.fixture(scope="module")
def text() -> Text:
    random = np.random.default_rng(9)
    drawable = np.arange(V) >= 10

    def some(records: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        # Every other word follows from the one before it.
        ids = (V * random.random((records, 8)) ** 2).astype(np.int32)
        ids[:, 1::2] = (ids[:, ::2] * 7 + 3) % V
        return ids.ravel(), np.arange(0, 8 * records + 1, 8, dtype=np.int64)

    public = Bigrams.of(*some(600), V)
    words, bounds = some(150)
    return Text(words, drawable[words], bounds, drawable, public, "token")


def exact(sampler: Sampler, text: Text) -> float:
    return bayes_attack(sampler, V, of_drawn(text.public.unigram[:V], text.drawable)).success


def test_a_table_is_attacked_exactly(lexicon: Lexicon, text: Text) -> None:
    sampler = CusText(epsilon=3.0, k=6).compile(lexicon)
    found, basis = risks(sampler, text)
    assert found[BAYES].exact
    assert found[BAYES].value == exact(sampler, text)
    assert basis.how.startswith("exact")
    assert found[CONTEXT].lower < found[CONTEXT].value < found[CONTEXT].upper
    assert found[CONTEXT].value > basis.in_context_of_one_word_alone
    assert basis.in_context_records == 150
    assert basis.in_context_words_attacked == int(text.drawn.sum())


def test_read_backwards_it_agrees(lexicon: Lexicon, text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = TEM(epsilon=3.0).compile(lexicon)
    forward, basis = risks(sampler, text)
    assert forward[BAYES].exact
    assert basis.how.startswith("exact")
    monkeypatch.setattr("dptext_spark.audit.attacks.adversary.SMALL", 10)
    monkeypatch.setattr(module, "CONFIDENCE", 1 - 1e-6)
    backward, basis = risks(sampler, text, tries=4_000)
    assert not backward[BAYES].exact
    assert "4,000 words drawn" in basis.how
    assert backward[BAYES].lower <= forward[BAYES].value <= backward[BAYES].upper
    # The same draws, and the same candidates but for ties within float32.
    assert backward[CONTEXT].value == pytest.approx(forward[CONTEXT].value, abs=0.005)


@pytest.mark.parametrize(("epsilon", "few"), [(1.0, 40), (4.0, 40), (4.0, 200)])
def test_bounds_hold_what_is_exact(lexicon: Lexicon, text: Text, epsilon: float, few: int) -> None:
    sampler = TEM(epsilon=epsilon).compile(lexicon)
    hidden: Any = Lawless(sampler)
    truth, _ = risks(sampler, text)
    found, basis = risks(hidden, text, few=few, draws=400, tries=2_000)
    assert basis.how.startswith("bounded: the adversary considers the")
    assert "400 draws" in basis.how
    assert not found[BAYES].exact
    assert found[BAYES].lower <= truth[BAYES].value <= found[BAYES].upper
    assert truth[CONTEXT].value <= found[CONTEXT].upper
    if few > V:
        assert "the 110 likeliest words, 100.0 % of the prior" in basis.how
        assert found[BAYES].upper < 1.0


def test_the_likeliest_words() -> None:
    prior = np.array([0.1, 0.3, 0.0, 0.3, 0.2, 0.1])
    assert likeliest(prior, 3).tolist() == [False, True, False, True, True, False]
    assert likeliest(prior, 4).tolist() == [True, True, False, True, True, False]
    assert likeliest(prior, 99).sum() == 5
