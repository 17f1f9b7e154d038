"""The fluent sampler against plain integers: its law, its draws, what is averaged, and what stored arrays may hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dptext_spark.lexicon.prior import SHIFT, PairModel
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.base import NO_WORD, PREVIOUS
from dptext_spark.mechanisms.samplers import fluent, table
from dptext_spark.mechanisms.samplers.fluent import FluentSampler, draw_by_depth
from dptext_spark.mechanisms.samplers.table import TableSummary
from dptext_spark.randomness import Draws
from tests.core.mechanisms.fluent_toys import lexicon_of
from tests.core.mechanisms.plain_whole import check_draws

KEY = bytes(range(32))


@pytest.fixture(scope="module", params=["rows", "tables"])
def sampler(request: pytest.FixtureRequest) -> FluentSampler:
    """One whose contexts have whole rows, and one whose contexts have hash tables; sets of different sizes."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tables":
            patch.setattr(fluent, "MOST_ROWS", 0)
        made: Any = CusText(epsilon=2.0, k=7, mapping="conservative", fluent=True).compile(lexicon_of(40, 3))
    assert (len(made.rows) > 0) == (request.param == "rows")
    assert (len(made.cells) > 0) == (request.param == "tables" or len(made.backoff) > 65)
    return made  # type: ignore[no-any-return]


def blocks(count: int) -> np.ndarray:
    return np.stack([np.arange(count), np.full(count, 9)], axis=1).astype(np.uint64)


def plain_law(sampler: FluentSampler, pairs: PairModel, word: int, before: int) -> dict[int, int]:
    ids = [int(u) for u in sampler.sets[sampler.of_word[word]] if u >= 0]
    h = before if 0 <= before < pairs.contexts else -1
    counted = pairs.weights(np.full(len(ids), h, np.int32), np.array(ids, np.int32))
    factor = sampler.factor[word][: len(ids)]
    return {u: int(b) * int(f) for u, b, f in zip(ids, counted, factor, strict=True)}


def test_the_law_is_the_product_of_both_integers(sampler: FluentSampler) -> None:
    pairs = lexicon_of(40, 3).prior.pairs
    for before in (NO_WORD, *range(pairs.contexts), pairs.contexts + 3):
        for word in (0, 17, 39):
            law = sampler.law(word, before)
            found = dict(zip(law.ids.tolist(), law.weight.tolist(), strict=True))
            assert found == plain_law(sampler, pairs, word, before)
            np.testing.assert_allclose(law.probability, law.weight / law.weight.sum(), rtol=1e-15)


def test_a_draw_is_the_upper_word_of_the_product(sampler: FluentSampler) -> None:
    random, count = np.random.default_rng(1), 3_000
    ids = random.integers(0, 40, count).astype(np.int32)
    before = random.integers(-2, 45, count).astype(np.int32)
    draws = Draws(KEY, blocks(count))
    outputs, numbers = sampler.sample_after(ids, before, draws), draws.pair(0)
    assert (before == PREVIOUS).sum() > 20
    told = np.where(before == PREVIOUS, np.append(NO_WORD, outputs[:-1]), before)
    for i in range(count):
        law = sampler.law(int(ids[i]), int(told[i]))
        ends = np.cumsum(law.weight).tolist()
        x = (int(numbers[i, 0]) << 64) | int(numbers[i, 1])
        assert outputs[i] == law.ids[np.searchsorted(ends, x * ends[-1] >> 128, side="right")]
    # However it is cut, where what was drawn last is told.
    for start in range(0, count, 37):
        rows = np.arange(start, min(count, start + 37))
        some = np.append(told[start], before[rows[1:]]).astype(np.int32)
        np.testing.assert_array_equal(sampler.sample_after(ids[rows], some, draws.take(rows)), outputs[rows])


@pytest.mark.parametrize("word", [0, 21, 38])
@pytest.mark.parametrize("before", [NO_WORD, 2, 11, 50])
def test_draws_follow_the_law_of_their_context(sampler: FluentSampler, word: int, before: int) -> None:
    """Chi-square at a false-alarm rate of 1e-6 for each of twelve contexts, under a fixed key."""
    ids, contexts = (np.full(40_000, number, np.int32) for number in (word, before))
    check_draws(sampler.sample_after(ids, contexts, Draws(KEY, blocks(40_000))), sampler.law(word, before))


class _Numbers:
    """Draws whose first blocks are given: all zeros ask for the next block, unless Σ is a power of two."""

    def __init__(self, first: np.ndarray) -> None:
        self.first, self.asked = first, list[int]()

    def pair(self, index: int, rows: slice = slice(None)) -> np.ndarray:
        self.asked.append(index)
        if index == 0:
            return self.first[rows]
        made = np.zeros((rows.stop - rows.start, 2), np.uint64)
        made[:, 0] = (index - 1) << 60 if index > 2 else 0  # block 2 is refused, too
        return made


def test_a_number_below_the_remainder_is_drawn_again(sampler: FluentSampler) -> None:
    first = np.array([[1 << 63, 5], [0, 0], [1 << 63, 5]], np.uint64)
    ids, before = np.array([3, 3, 3], np.int32), np.array([NO_WORD, PREVIOUS, PREVIOUS], np.int32)
    numbers: Any = _Numbers(first)
    outputs = sampler.sample_after(ids, before, numbers)
    assert numbers.asked == [0, 2, 3]
    law = sampler.law(3, int(outputs[0]))
    ends = np.cumsum(law.weight).tolist()
    assert outputs[1] == law.ids[np.searchsorted(ends, ((2 << 60) << 64) * ends[-1] >> 128, side="right")]
    for total in (3, 1 << 40, (1 << 64) - 1, 12345678901234567):
        assert int(fluent._remainder(np.uint64(total))) == pow(2, 128, total)


@pytest.mark.long
def test_the_largest_sum_fits() -> None:
    words, most = table.MAX_SLOTS, (1 << 28) - 1
    none = np.zeros(0, np.int32)
    backoff, base = np.full(words + 1, 1 << SHIFT, np.uint32), np.full(words, most, np.uint32)
    pairs = PairModel(np.zeros(words + 1, np.int64), none, none.astype(np.uint32), backoff, base)
    sets = np.arange(words, dtype=np.int32)[None, :]
    factor = np.full((words, words), 1 << 24, np.uint32)
    guarantee: Any = CusText().compile(lexicon_of(30)).guarantee
    made = FluentSampler.of(sets, np.zeros(words, np.int32), factor, pairs, guarantee, TableSummary())
    law = made.law(7, NO_WORD)
    assert sum(law.weight.tolist()) == words * (most << 24) < 1 << 64
    top = np.full((1, 2), np.iinfo(np.uint64).max, np.uint64)
    out, order, ends = np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([0, 1, 1], np.int64)
    ids, before = np.array([7], np.int32), np.array([NO_WORD], np.int32)
    assert draw_by_depth(made.tables, made._bases, ids, before, top, order, ends, 1, 0, out) == 1
    assert out[0] == words - 1


def test_a_law_without_a_context_is_the_average_that_is_sampled(sampler: FluentSampler) -> None:
    contexts, shares = sampler._average_contexts
    assert math.isclose(float(shares.sum()), 1.0)
    law = sampler.law(5)
    mean = sum(float(s) * sampler.law(5, int(h)).probability for h, s in zip(contexts, shares, strict=True))
    np.testing.assert_allclose(law.probability, mean, rtol=1e-12)
    assert int(law.weight.sum()) == 2**63
    count = 60_000
    check_draws(sampler.sample(np.full(count, 5, np.int32), Draws(KEY, blocks(count))), law)


def test_inputs_are_all_words_that_can_give_an_output(sampler: FluentSampler) -> None:
    outputs, before = np.array([4, 30, 4], np.int32), np.array([NO_WORD, 12, 7], np.int32)
    found = sampler.inputs_after(outputs, before)
    for i, (u, h) in enumerate(zip(outputs, before, strict=True)):
        part = slice(int(found.starts[i]), int(found.starts[i + 1]))
        laws = [(w, sampler.law(w, int(h))) for w in range(40)]
        expected = {w: float(law.probability[law.ids == u][0]) for w, law in laws if u in law.ids}
        assert found.words[part].tolist() == list(expected)
        assert found.probability[part].tolist() == pytest.approx(list(expected.values()))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 32.0])
def test_factors_are_rounded_and_never_zero(epsilon: float) -> None:
    score, held = np.array([[0.0, 0.25, 1.0, 0.5]]), np.array([[True, True, True, False]])
    exact = [2**24 * Fraction(math.exp(epsilon * (s - 1) / 2)) for s in score[0][:3]]
    assert fluent.factors(score, held, epsilon)[0].tolist() == [*(max(1, round(x)) for x in exact), 0]
