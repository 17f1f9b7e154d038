"""Word order: the formula word by word, what common words gain, and a text in no order."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from dptext_spark.arrays import I64, Ids
from dptext_spark.audit.attacks.attacked_text import Bigrams
from dptext_spark.audit.text_utility import OwnOrder, log_probability, word_order
from dptext_spark.errors import DataError
from dptext_spark.text.tokens import EDGE, UNKNOWN

WORDS = 40


def chain(records: int, seed: int, kept: float = 0.9) -> tuple[Ids, I64]:
    """Words that mostly follow each other by number, with punctuation and unknown words between."""
    random = np.random.default_rng(seed)
    tokens: list[int] = []
    bounds = [0]
    for _ in range(records):
        word = int(random.integers(WORDS))
        for _ in range(int(random.integers(3, 9))):
            tokens.append(word)
            word = (word + 1) % WORDS if random.random() < kept else int(random.integers(WORDS))
        tokens.extend((UNKNOWN, EDGE))
        bounds.append(len(tokens))
    return np.array(tokens, np.int32), np.array(bounds, np.int64)


@pytest.fixture(scope="module")
def language() -> Bigrams:
    return Bigrams.of(*chain(400, 1), WORDS)


def test_the_probability_of_a_word_is_the_formula(language: Bigrams) -> None:
    words, bounds = chain(20, 2)
    state = {UNKNOWN: WORDS, EDGE: WORDS + 1}
    logs = []
    for start, end in pairwise(bounds):
        before = WORDS + 1
        for token in words[start:end].tolist():
            now = state.get(token, token)
            if token >= 0:
                share = language.probability(np.array([before], np.int32), np.array([now], np.int32))
                logs.append(math.log(share[0]))
            before = now
    here = np.flatnonzero(words >= 0)
    assert log_probability(words, bounds, here, language) == pytest.approx(logs, rel=1e-12)


def test_words_in_order_gain_and_the_same_words_dealt_anew_do_not(language: Bigrams) -> None:
    words, bounds = chain(300, 3)
    ordered = word_order(words, bounds, language)
    assert ordered.lower > 1.0
    dealt = words.copy()
    dealt[words >= 0] = np.random.default_rng(4).permutation(words[words >= 0])
    assert word_order(dealt, bounds, language).upper < 0.1
    own = OwnOrder.of(words, bounds, language)
    assert own.left(words, bounds).value == pytest.approx(1.0)
    assert own.left(dealt, bounds).upper < 0.1


def test_one_common_word_everywhere_reads_well_and_is_in_no_order(language: Bigrams) -> None:
    words, bounds = chain(100, 5)
    common = np.where(words >= 0, int(language.unigram[:WORDS].argmax()), words).astype(np.int32)
    assert word_order(common, bounds, language).value == pytest.approx(0.0, abs=1e-12)


def test_a_text_in_no_order_and_one_without_words_are_refused(language: Bigrams) -> None:
    words, bounds = chain(100, 6, kept=0.0)
    with pytest.raises(DataError, match=r"language: .* no order"):
        OwnOrder.of(words, bounds, language)
    with pytest.raises(DataError, match="no word is in the lexicon"):
        word_order(np.full(4, UNKNOWN, np.int32), np.array([0, 4]), language)
