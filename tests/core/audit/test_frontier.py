"""Curves of utility against risk, and the two risks by each way of finding them: exact, backwards, between bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dptext_spark.audit.attacks import adversary as module
from dptext_spark.audit.attacks.adversary import likeliest
from dptext_spark.audit.attacks.attacked_text import Bigrams
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.frontier import (
    BAYES,
    CONTEXT,
    NOT_REACHED,
    UNDECIDED,
    Baselines,
    Curve,
    Point,
    Text,
    UtilityAtRisk,
    best_at,
    check_levels,
    frontier,
    risks,
)
from dptext_spark.audit.results import Estimate
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms import TEM, CusText, Sampler
from tests.core.mechanisms.lawless import Lawless
from tests.core.names import scattered


def point(
    mechanism: str, epsilon: float, risk: float, utility: float, wide: float = 0.0, unsure: float = 0.0
) -> Point:
    return Point(
        mechanism,
        epsilon,
        {"attack": Estimate(risk, risk - unsure, risk + unsure)},
        {"use": Estimate(utility, utility - wide, utility + wide)},
        Baselines("given", 0.1, None, 10, 5, None),
    )


def curve(*points: Point) -> Curve:
    return Curve.of(points, "attack", "use")


LOW = (point("low", 1, 0.2, 0.3, 0.02), point("low", 2, 0.4, 0.5, 0.02), point("low", 5, 0.8, 0.6, 0.02))
HIGH = (point("high", 0.1, 0.3, 0.7, 0.05), point("high", 0.2, 0.7, 0.9, 0.05))


def reached(points: Sequence[Point], risk: float) -> UtilityAtRisk:
    found = curve(*points).at(risk)
    assert found is not None
    return found


UNSURE = [point("low", e, r, u, 0.0, 0.1) for e, r, u in ((1, 0.2, 0.3), (2, 0.4, 0.5), (5, 0.8, 0.6))]
FALLING = [point("x", 1, 0.5, 0.5), point("x", 2, 0.4, 0.6), point("x", 3, 0.6, 0.8)]
TWINS = [point("x", 2, 0.5, 0.7), point("x", 1, 0.5, 0.5)]
# (points, a risk, the utility there, its bounds, the ε between which it lies).
BETWEEN = {
    "linear": (LOW, 0.3, 0.4, (0.38, 0.42), (1, 2)),
    "linear, further": (LOW, 0.7, 0.5 + 0.1 * 0.75, None, (2, 5)),
    **{
        f"at point {n}": (LOW, LOW[n].risks["attack"].value, u, None, (e, e))
        for n, u, e in ((0, 0.3, 1), (1, 0.5, 2), (2, 0.6, 5))
    },
    # An unsure risk widens the utility. Pessimist: the points stand at 0.3, 0.5, 0.9; optimist: at 0.1, 0.3, 0.7.
    "unsure": (UNSURE, 0.5, 0.525, (0.5, 0.55), None),
    # A risk that falls as ε grows is put in order, and points of one risk count as the most useful of them.
    "falling": (FALLING, 0.45, 0.55, None, None),
    "twins": (TWINS, 0.5, 0.7, None, (2, 2)),
    "twins, first": ([*TWINS[::-1], point("x", 3, 0.9, 0.8)], 0.5, 0.7, None, None),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_lies_between_points(name: str) -> None:
    points, risk, utility, bounds, between = BETWEEN[name]
    found = reached(points, risk)
    assert found.utility == pytest.approx(utility)
    assert bounds is None or (found.lower, found.upper) == pytest.approx(bounds)
    assert between is None or found.between == between


def test_nothing_is_said_outside() -> None:
    assert curve(*LOW).at(0.19) is None
    assert curve(*LOW).at(0.81) is None
    assert curve(*LOW).reach == (0.2, 0.8)
    assert curve(*FALLING).epsilons == (2, 1, 3)


def test_nothing_is_said_where_bounds_leave_open_what_was_passed() -> None:
    unsure = curve(point("x", 1, 0.2, 0.3, 0.0, 0.1), point("x", 2, 0.6, 0.5, 0.0, 0.1))
    assert unsure.reach == pytest.approx((0.3, 0.5))
    assert unsure.at(0.29) is None
    assert unsure.at(0.51) is None
    assert unsure.at(0.4) is not None
    hopeless = curve(point("x", 1, 0.2, 0.3, 0.0, 0.5), point("x", 2, 0.6, 0.5, 0.0, 0.3))
    assert not any(hopeless.at(level / 100) for level in range(101))


def test_the_best_at_a_level() -> None:
    found = best_at([curve(*LOW), curve(*HIGH)], 0.5)
    assert [one.mechanism for one in found.reached] == ["high", "low"]
    assert found.best == ("high",)
    assert found.verdict == "high"
    assert found.missing == ()


def test_overlapping_intervals_are_not_told_apart() -> None:
    near = curve(point("near", 1, 0.3, 0.65, 0.02), point("near", 2, 0.7, 0.85, 0.02))
    found = best_at([near, curve(*HIGH), curve(*LOW)], 0.5)
    assert found.best == ("high", "near")
    assert found.verdict == f"{UNDECIDED}: high, near"
    apart = curve(point("near", 1, 0.3, 0.55, 0.02), point("near", 2, 0.7, 0.75, 0.02))
    assert best_at([apart, curve(*HIGH)], 0.5).best == ("high",)


def test_who_does_not_reach_a_level_is_named() -> None:
    found = best_at([curve(*LOW), curve(*HIGH)], 0.25)
    assert found.missing == ("high",)
    assert found.verdict == "low (no other reaches it)"
    assert best_at([curve(*LOW)], 0.99).verdict == NOT_REACHED


def test_levels_are_round_and_reached() -> None:
    found = frontier([*LOW, *HIGH], "attack", "use")
    assert [one.level for one in found.levels] == [0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert [one.mechanism for one in found.curves] == ["low", "high"]
    asked = frontier([*LOW, *HIGH], "attack", "use", [0.01, 0.5])
    assert [one.verdict for one in asked.levels] == [NOT_REACHED, "high"]


@pytest.mark.parametrize("levels", [[], [0.2, 0.1], [0.1, 0.1], [-0.1], [1.5], [float("nan")]])
def test_levels_that_are_none(levels: list[float]) -> None:
    with pytest.raises(SettingsError, match=r"^levels: .*numbers of 0 to 1"):
        check_levels("levels", levels)


def test_one_point_is_no_curve() -> None:
    with pytest.raises(SettingsError, match=r"^epsilons: the curve of low has 1 point\(s\)\. Give 2"):
        frontier(LOW[:1], "attack", "use")


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
    monkeypatch.setattr(module, "SMALL", 10)
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
