"""What levels cost together: the weakest guarantee, and units that add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.selection import LARGEST, common_unit, require_one_distance, weakest_guarantee
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.mvc import Mahalanobis


def of(*epsilons: float, **more: float) -> list[Guarantee]:
    return [Guarantee("epsilon_dp", epsilon, sentence=f"{epsilon}.", **more) for epsilon in epsilons]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilons", "unit", "multiples"),
    [
        ([3.0], 3.0, (1,)),
        ([1.0, 5.0], 1.0, (1, 5)),
        ([0.5, 2.0, 3.0], 0.5, (1, 4, 6)),
        ([0.1, 0.3], 0.1, (1, 3)),
        ([2.0, 2.0], 2.0, (1, 1)),
        ([0.0, 4.0], 4.0, (0, 1)),
        ([0.0, 0.0], 0.0, (1, 1)),
        ([1e-9, 1.0], 1e-9, (1, 10**9)),
    ],
)
def test_units(epsilons: list[float], unit: float, multiples: tuple[int, ...]) -> None:
    found = common_unit(of(*epsilons))
    assert (found.of_one.epsilon, found.multiples) == (unit, multiples)


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=5))
def test_a_level_never_counts_as_less_than_it_is(epsilons: list[float]) -> None:
    found = common_unit(of(*epsilons))
    for epsilon, times in zip(epsilons, found.multiples, strict=True):
        assert found.of_one.compose(times).epsilon >= epsilon * (1 - 1e-15)
        assert times <= max(LARGEST, 1)
        assert found.of_one.compose(times).epsilon <= epsilon + 2e-9 * max(epsilons)


def test_delta_adds_up_too() -> None:
    levels = [Guarantee("approx_dp", epsilon, delta) for epsilon, delta in ((1.0, 1e-3), (4.0, 1e-3))]
    found = common_unit(levels)
    assert found.multiples == (1, 4)
    assert found.of_one.delta == 1e-3


def test_the_weakest_holds_for_all() -> None:
    levels = [
        Guarantee("epsilon_dp", 1.0, status="claimed", sentence="One."),
        Guarantee("epsilon_dp", 3.0, status="proved", sentence="Three."),
    ]
    found = weakest_guarantee(levels)
    assert (found.epsilon, found.status) == (3.0, "claimed")
    assert found.sentence == "Level 1: One. Level 2: Three."
    assert weakest_guarantee(levels[:1]) is levels[0]


def test_kinds_that_differ_have_no_sum() -> None:
    metric = Guarantee("metric_dp", 1.0, metric="euclidean")
    with pytest.raises(
        SettingsError, match=r"levels\[1\]: its guarantee is of the kind metric_dp \(euclidean\)"
    ):
        weakest_guarantee([*of(1.0), metric])


def test_distances_that_differ_have_no_sum() -> None:
    metric = Guarantee("metric_dp", 1.0, metric="mahalanobis")
    one, other = Mahalanobis(1.0, lam=0.2), Mahalanobis(2.0, lam=0.2)
    require_one_distance([one, other], [metric, metric])
    with pytest.raises(SettingsError, match=r"levels\[1\]: its distance \(mahalanobis\)"):
        require_one_distance([one, Mahalanobis(1.0, lam=0.3)], [metric, metric])
    require_one_distance([CusText(1.0, 5), CusText(2.0, 7)], of(1.0, 2.0))
