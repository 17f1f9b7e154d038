"""Kept words, and the shift of their frequencies."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.word_counts import frequency_shift, kept_words
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.engine import COUNTERS, Counters
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import read


def counted(**columns: list[int]) -> Counters:
    rows = np.zeros((len(next(iter(columns.values()))), len(COUNTERS)), np.int32)
    for name, values in columns.items():
        rows[:, COUNTERS.index(name)] = values
    return Counters(rows, np.zeros(len(rows), np.int64))


def test_shares_of_kept_words() -> None:
    counters = counted(words=[10, 6], drawn=[5, 3], stop_kept=[3, 1], same=[1, 2])
    found = kept_words(counters)
    assert found.of_drawn.value == 3 / 8
    assert found.of_known.value == (3 + 4) / (8 + 4)
    assert found.of_all.value == (3 + 4) / 16
    assert found.tokens == 16
    with_marks = kept_words(counters, np.array([12, 8]))
    assert with_marks.of_all.value == 7 / 20
    assert with_marks.of_known == found.of_known
    assert found.exact
    assert found.restricted
    json.dumps(found.as_dict(), allow_nan=False)
    with pytest.raises(DataError, match="3 rows given for 2"):
        kept_words(counters, np.array([1, 2, 3]))
    nothing = kept_words(counted(words=[0]))
    assert (nothing.of_drawn.value, nothing.of_all.value) == (0.0, 0.0)


def test_shares_are_those_of_the_texts() -> None:
    """Token by token, as the papers count: in words that the lexicon holds, and in all tokens."""
    words = Lexicon(
        Vocabulary.of(["cat", "dog", "the", "sat", "mat", "ran"]),
        np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32),
    )
    policy = Policy(tokenizer="whitespace", oov="keep", stop_word_list=("the",))
    model = Privatizer(words, CusText(epsilon=4.0, k=6).compile(words), policy)
    rows = ["the cat sat , ok", "the mat ran !"] * 50
    texts = pa.array(rows)
    out, counters = model.privatize(texts, column="t", row_ids=pa.array(range(100)), key=RunKey.insecure(2))
    found = kept_words(counters, np.diff(read(model.engine, texts).bounds))
    pairs = [
        (before, after)
        for row, new in zip(rows, out.to_pylist(), strict=True)
        for before, after in zip(row.split(), new.split(), strict=True)
    ]
    drawn = [a == b for a, b in pairs if a in {"cat", "sat", "mat", "ran"}]
    assert 0 < sum(drawn) < len(drawn) == 200
    assert found.of_drawn.value == sum(drawn) / 200
    assert found.of_known.value == (sum(drawn) + 100) / 300
    assert found.of_all.value == (sum(drawn) + 100) / 450 == (sum(drawn) + 100) / len(pairs)
    assert found.of_drawn.lower < found.of_drawn.value < found.of_drawn.upper


def test_the_shift_of_frequencies() -> None:
    plain = np.array([0] * 50 + [1] * 50 + [-1] * 9, np.int32)
    private = np.array([1] * 25 + [2] * 75 + [-2] * 9, np.int32)
    found = frequency_shift(plain, private, 4)
    p, q = np.array([0.5, 0.5, 0, 0]), np.array([0, 0.25, 0.75, 0])
    middle = (p + q) / 2

    def entropy(x: np.ndarray) -> float:
        return -sum(v * math.log2(v) for v in x.tolist() if v > 0)

    assert found.found.bits == pytest.approx(entropy(middle) - (entropy(p) + entropy(q)) / 2)
    assert found.found.total_variation == pytest.approx(0.75)
    assert (found.words, found.distinct) == ((100, 100), (2, 2))
    # 100 throws of a coin: E|x - 1/2| = sqrt(1/(200 pi)) = 0.0399; the mean over 200 samples has a standard error of 0.0021.
    assert found.sampling.total_variation == pytest.approx(0.0399, abs=0.011)
    assert found.sampling_high.total_variation > found.sampling.total_variation
    assert found.sampling.bits < found.sampling_high.bits < 0.05
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_ends_of_the_shift() -> None:
    text = np.array([0, 1, 1], np.int32)
    same = frequency_shift(text, text, 2).found
    assert (same.bits, same.total_variation) == (0.0, 0.0)
    apart = frequency_shift(text, np.array([2], np.int32), 3).found
    assert apart.bits == pytest.approx(1.0)
    assert apart.total_variation == pytest.approx(1.0)
    with pytest.raises(DataError, match="no word of the lexicon"):
        frequency_shift(text, np.array([-1], np.int32), 3)
