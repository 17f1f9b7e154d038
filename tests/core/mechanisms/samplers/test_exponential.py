"""The kernel of laws over a whole lexicon: its law in exact integers, its tail, its cap on rounds, its compilation."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import sys
from fractions import Fraction

import numpy as np
import pytest

from dptext_spark.mechanisms.samplers import exponential
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler, bound_up
from dptext_spark.mechanisms.samplers.table import laws_of
from dptext_spark.randomness import Draws
from tests.core.mechanisms import plain_whole as plain

LAST = 2**64 - 1
EPSILONS = [0.1, 1.0, 3.0, 8.0, 40.0, 1e5]
LAWS = [(0.5, math.inf), (2.0, math.inf), (2.0, 2.5), (9.0, 4.0)]


class Numbers:
    """Draws that are named by hand: one number for lane 0, one pair for each round."""

    def __init__(self, first: list[int], *rounds: tuple[int, int]) -> None:
        self.first = np.array(first, np.uint64)
        self.rounds = np.array(rounds, np.uint64)
        self.asked = 0

    def u64(self, lane: int) -> np.ndarray:
        assert lane == 0
        return self.first

    def take(self, rows: np.ndarray) -> Numbers:
        self.count = len(rows)
        return self

    def pair(self, index: int) -> np.ndarray:
        self.asked = index
        return np.tile(self.rounds[(index - 1) % len(self.rounds)], (self.count, 1))


def entrance(made: ExponentialSampler, word: int) -> int:
    """A number of lane 0 that leads into the tail."""
    cells, tail = made.cells[word].tolist(), len(made.level)
    shift = 64 - (len(cells).bit_length() - 1)
    for slot, (threshold, both) in enumerate(cells):
        if both & 0xFFFFFFFF == tail and threshold:
            return slot << shift
        if both >> 32 == tail and threshold < 1 << (shift - 1):
            return slot << shift | threshold << 1
    raise AssertionError("no way into the tail")


def enters(made: ExponentialSampler) -> list[int]:
    return [w for w in range(len(made.level)) if (laws_of(made.cells[[w]]).ids == len(made.level)).any()]


def exact_law(made: ExponentialSampler, word: int) -> dict[int, Fraction]:
    """The law as it is drawn, every step counted; how a proposal is decided is found by asking, not by a formula."""
    _, ids, weight = laws_of(made.cells[[word]])
    row = {int(u): Fraction(int(w), 2**63) for u, w in zip(ids, weight, strict=True)}
    entered = row.pop(len(made.level), Fraction(0))
    n, rounds, door = len(made.outputs), int(made.rounds[word]), entrance(made, word)
    asked = dataclasses.replace(made, rounds=made.rounds + np.int32(1))  # a second round tells a rejection
    accepted = {}
    for j, output in enumerate(made.outputs.tolist()):
        first, after = (-(-(i << 64) // n) for i in (j, j + 1))  # the numbers whose upper half of ·n is j
        low, high = -1, LAST  # of the numbers that accept: one that does, and the last that may
        while low < high:
            middle = (low + high + 1) // 2
            numbers = Numbers([door], (first, middle), (after - 1, middle))
            drawn = asked.sample(np.array([word], np.int32), numbers)
            low, high = (middle, high) if numbers.asked == 1 else (low, middle - 1)
            assert numbers.asked > 1 or drawn[0] == output
        accepted[output] = Fraction((after - first) * (low + 1), 2**128)
    acceptance_rate = sum(accepted.values())
    rejected = (1 - acceptance_rate) ** rounds
    for output, part in accepted.items():
        row[output] = row.get(output, Fraction(0)) + entered * (1 - rejected) * part / acceptance_rate
    row[int(made.fallback[word])] += entered * rejected
    return row


class TestLaw:
    @pytest.mark.parametrize("slots", [16, 32, 512])
    @pytest.mark.parametrize("radius", [math.inf, 2.0])
    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_it_is_the_formula(self, epsilon: float, radius: float, slots: int) -> None:
        vectors = plain.gaussian(90, 5)
        vectors[3] = vectors[40] = vectors[80]
        vectors[11] = 0
        made = ExponentialSampler.of(vectors, epsilon, radius, slots=slots)
        cut = float(made.figures[1])
        assert cut == min(radius, 40 * math.log(2) / (epsilon / 2))
        away = plain.distances(vectors)
        wanted = plain.laws(away, epsilon, cut)
        assert made.slack < 2e-6
        for w in range(90):
            plain.check_law(made.law(w), wanted[w], made.slack)
        normaliser = np.log(np.exp(-epsilon * np.minimum(away, cut) / 2).sum(axis=1))
        np.testing.assert_allclose(made.log_normaliser, normaliser, atol=1e-12)

    @pytest.mark.parametrize("slots", [16, 512])
    @pytest.mark.parametrize("keep", [0.0, 0.8])
    @pytest.mark.parametrize("epsilon", [0.5, 5.0])
    def test_some_outputs_only(self, epsilon: float, keep: float, slots: int) -> None:
        vectors, outputs = plain.gaussian(80), np.arange(1, 80, 2, dtype=np.int32)
        made = ExponentialSampler.of(vectors, epsilon, outputs=outputs, keep=keep, slots=slots)
        weight = np.exp(-epsilon * np.minimum(plain.distances(vectors), made.figures[1]) / 2)
        weight[:, ::2] = 0
        for w in range(80):
            wanted = weight[w] / weight[w].sum()
            if w % 2 == 0:
                wanted *= 1 - keep
                wanted[w] = keep
            plain.check_law(made.law(w), wanted, made.slack)

    @pytest.mark.parametrize(
        ("epsilon", "radius"), [(0.4, math.inf), (2.5, math.inf), (9.0, math.inf), (3.0, 1.5)]
    )
    def test_it_is_what_is_sampled_exactly(self, epsilon: float, radius: float) -> None:
        """Numbers are counted, not drawn: the law's integers are off by their rounding and no more."""
        made = ExponentialSampler.of(plain.gaussian(40, 3), epsilon, radius, slots=16)
        for word in enters(made)[:3]:
            exact, law = exact_law(made, word), made.law(word)
            assert sum(exact.values()) == 1
            for u, weight in zip(law.ids.tolist(), law.weight.tolist(), strict=True):
                assert abs(weight - exact[u] * 2**63) <= 2 + exact[u] * 2**63 * Fraction(1, 2**46)

    def test_where_the_ball_fits_the_head_no_distance_is_needed(self) -> None:
        vectors = plain.gaussian(200)
        radius = float(np.median(np.sort(plain.distances(vectors), axis=1)[:, 14]))
        made = ExponentialSampler.of(vectors, 2.0, radius, slots=16)
        fits = made.level == radius
        assert fits.sum() == 100
        assert (made.surely[fits] == LAST).all()
        assert (made.rounds[fits] == 1).all()

    @pytest.mark.parametrize("epsilon", [0.5, 50.0])
    def test_more_duplicates_than_the_head_holds(self, epsilon: float) -> None:
        """Nothing of the head exceeds its last; the rounds go on until what is left cannot matter."""
        vectors = plain.gaussian(60)
        vectors[20:] = vectors[20]
        made = ExponentialSampler.of(vectors, epsilon, slots=16)
        wanted = plain.laws(plain.distances(vectors), epsilon, made.figures[1])
        for w in range(60):
            plain.check_law(made.law(w), wanted[w], made.slack)
        assert (made.rounds[20:] >= 32).all()
        assert made.rounds.max() <= 128
        plain.check_draws(plain.draw(made, 30, 20_000, f"duplicates {epsilon}"), made.law(30))

    def test_the_largest_and_the_smallest_epsilon(self) -> None:
        vectors = plain.gaussian(40)
        for slots in (16, 512):
            sharp = ExponentialSampler.of(vectors, sys.float_info.max, slots=slots).law(7)
            assert sharp.probability[7] == pytest.approx(1 - 39 * 2.0**-40, rel=1e-15)
            for epsilon in (5e-324, 1e-300):
                flat = ExponentialSampler.of(vectors, epsilon, slots=slots).law(7)
                np.testing.assert_allclose(flat.probability, 1 / 40, rtol=1e-12)


class TestSampling:
    @pytest.mark.parametrize("slots", [16, 64])
    @pytest.mark.parametrize(
        ("epsilon", "radius"), [(0.2, 9.0), (1.0, 9.0), (2.5, 9.0), (5.0, 9.0), (3.0, 1.2)]
    )
    def test_draws_follow_the_law(self, epsilon: float, radius: float, slots: int) -> None:
        made = ExponentialSampler.of(plain.gaussian(300, 6), epsilon, radius, slots=slots)
        for w in (0, 7, 299):
            drawn = plain.draw(made, w, 40_000, f"{epsilon} {radius} {slots}")
            plain.check_draws(drawn, made.law(w))

    def test_after_the_last_round_comes_the_fallback(self) -> None:
        made = ExponentialSampler.of(plain.gaussian(60, 6), 4.0, slots=16)
        found = enters(made)
        assert len(found) == 60
        assert (made.fallback == np.arange(60)).all()
        assert made.rounds.min() > 1
        for w in found:
            farthest = int(plain.distances(plain.gaussian(60, 6))[w].argmax())
            numbers = Numbers([entrance(made, w)], (-(-(farthest << 64) // 60), LAST))
            assert made.sample(np.array([w], np.int32), numbers)[0] == w
            assert numbers.asked == made.rounds[w]

    def test_a_draw_depends_on_its_word_and_block_alone(self) -> None:
        made = ExponentialSampler.of(plain.gaussian(150, 8), 1.5, slots=16)
        assert made.rounds.max() > 1
        ids = np.arange(3000, dtype=np.int32) % 150
        blocks = np.random.default_rng(2).integers(0, 2**63, (3000, 2)).astype(np.uint64)
        every = made.sample(ids, Draws(bytes(32), blocks))
        order = np.random.default_rng(1).permutation(3000)
        assert (made.sample(ids[order], Draws(bytes(32), blocks[order])) == every[order]).all()
        for part in (slice(0, 0), slice(0, 1), slice(1, 400), slice(2999, 3000)):
            assert (made.sample(ids[part], Draws(bytes(32), blocks[part])) == every[part]).all()


class TestCompilation:
    def test_threads_make_no_difference(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = ExponentialSampler.of(plain.gaussian(333, 9), 1.0, slots=32).arrays()
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
        second = ExponentialSampler.of(plain.gaussian(333, 9), 1.0, slots=32).arrays()
        assert all((first[name] == second[name]).all() for name in first)

    def test_rows_are_as_long_as_they_need_to_be(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def slots(words: int, **options: object) -> int:
            return int(ExponentialSampler.of(plain.gaussian(words), 1.0, **options).cells.shape[1])  # type: ignore[arg-type]

        assert [slots(words) for words in (2, 3, 4, 5, 512, 513)] == [2, 4, 4, 8, 512, 512]
        half = np.arange(4, dtype=np.int32)
        assert (slots(8, outputs=half), slots(8, outputs=half, keep=0.5)) == (4, 8)
        assert slots(3, outputs=half[:1]) == 1
        # Certificates measure by the vectors.
        assert ExponentialSampler.of(plain.gaussian(512), 1.0).vectors.shape == (512, 4)
        for most, expected in ((600 * (128 * 16 + 16), 128), (0, 16)):
            monkeypatch.setattr(exponential, "MOST_BYTES", most)
            assert slots(600) == expected

    def test_the_guarantee_states_what_rounding_adds(self) -> None:
        made = ExponentialSampler.of(plain.gaussian(60), 2.0, 1.75, slots=16)
        likeliest = plain.laws(plain.distances(plain.gaussian(60)), 2.0, 1.75).diagonal()
        unchanged = made.summary.as_dict()["unchanged"]
        assert [unchanged[name] for name in ("min", "p50", "max", "mean")] == pytest.approx(
            [likeliest.min(), np.median(likeliest), likeliest.max(), likeliest.mean()]
        )
        assert "never more than 3.5 " in made.guarantee.sentence
        stated = re.search(r"rounding adds at most (\S+)\)", made.guarantee.sentence)
        assert stated
        assert 2 * made.slack <= float(stated[1]) <= 3 * made.slack
        rounded = ["3.5", "1.6095", "0.0001", "0", "55.4518"]
        assert [bound_up(x) for x in (3.5, 1.60941, 1e-300, 0.0, 55.45177)] == rounded


class TestTogether:
    @pytest.mark.parametrize(("epsilon", "radius"), LAWS)
    def test_rows_and_draws_are_those_of_each_law_alone(self, epsilon: float, radius: float) -> None:
        vectors, chosen = plain.gaussian(700, 9), np.array([0, 3, 64, 65, 300, 301, 698], np.int32)
        numbers = Draws(bytes(32), np.arange(8_000, dtype=np.uint64).reshape(4_000, 2))
        ids = np.resize(chosen, 4_000)
        made = ExponentialSampler.compile_many(vectors, LAWS, chosen)[LAWS.index((epsilon, radius))]
        alone = ExponentialSampler.of(vectors, epsilon, radius)
        np.testing.assert_array_equal(made.cells, alone.cells[chosen])
        for name in ("level", "surely", "rounds", "fallback"):
            np.testing.assert_array_equal(getattr(made, name)[chosen], getattr(alone, name)[chosen])
        np.testing.assert_array_equal(made.sample(ids, numbers), alone.sample(ids, numbers))
        for word in (3, 698):
            np.testing.assert_array_equal(made.law(word).weight, alone.law(word).weight)
        # Sums of words without rows are made in another order.
        np.testing.assert_allclose(made.log_normaliser, alone.log_normaliser, rtol=1e-13, atol=1e-13)
        assert made.slack == pytest.approx(alone.slack, rel=1e-12)
        assert made.guarantee.epsilon == epsilon

    def test_a_word_without_a_row_is_not_drawn(self) -> None:
        words = np.array([1, 5], np.int32)
        (made,) = ExponentialSampler.compile_many(plain.gaussian(700), LAWS[:1], words)
        draws = Draws(bytes(32), np.zeros((2, 2), np.uint64))
        for use in (lambda: made.sample(np.array([1, 6], np.int32), draws), lambda: made.law(0)):
            with pytest.raises(ValueError, match="some words only"):
                use()
        with pytest.raises(ValueError, match="cannot be stored"):
            made.arrays()
