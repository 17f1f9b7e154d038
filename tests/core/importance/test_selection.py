"""What the user may choose, what is said where it is wrong, and what levels cost together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.config.load import parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import (
    LARGEST,
    Importance,
    Level,
    agree,
    common_unit,
    require_one_distance,
    weakest_guarantee,
)
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.calibrated_noise import Mahalanobis
from tests.core.config.test_model import accepted, refused

WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "importance: neither of percent and levels"),
    ({"percent": 10, "levels": [{"share": 5}]}, "importance: both of percent and levels"),
    *(({"percent": one}, f"importance.percent: {one!r} is") for one in (0, 100.5, float("nan"), True, "30")),
    ({"percent": 0.0000001}, "6 decimals or fewer"),
    ({"percent": 10, "provider": "tfidf"}, "importance.provider: 'tfidf'"),
    ({"percent": 10, "strategy": "timid"}, "importance.strategy: 'timid'"),
    ({"percent": 10, "precent": 3}, "Did you mean 'percent'?"),
    ({"percent": 10, "rank_punctuation": "yes"}, "importance.rank_punctuation: 'yes'"),
    ({"percent": 10, "weights": "w"}, "importance.weights: not valid with provider idf"),
    ({"percent": 10, "provider": "column"}, "importance.weights: not set"),
    ({"percent": 10, "provider": "attention"}, "importance.model: not set"),
    ({"percent": 10, "provider": "random", "corpus": "x.txt"}, "corpus: not valid with provider random"),
    ({"percent": 10, "corpus": "https://u:p@x/c.txt"}, "importance.corpus: the path holds a password"),
    ({"levels": 3}, "importance.levels: 3 is not valid"),
    ({"levels": [3]}, "importance.levels[0]: 3 is not valid"),
    ({"levels": [{"share": 60}, {"share": 41}]}, "the sum of the shares is 101 %"),
    ({"levels": [{"epsilon": 1}, {"share": 41}]}, "importance.levels[0].share: not set"),
    ({"levels": [{"share": 0}]}, "importance.levels[0].share: 0 is not valid"),
    ({"levels": [{"share": 5, "epsilon": -1}]}, "importance.levels[0]: mechanism.epsilon: -1 is not valid"),
    ({"levels": [{"share": 5, "epsilon": 1, "mechanism": {"name": "tem"}}]}, "epsilon and mechanism"),
    ({"levels": [{"share": 5, "mechanism": {"name": "temp"}}]}, "mechanism.name: 'temp'"),
]
NO_PERCENT = {"percent": None, "levels": [{"share": 5, "mechanism": {"name": "tem"}}]}
TWO_LEXICONS = {"lexicon": {"more": ["/x.txt"]}, "mechanism": {"name": "diffractor"}}
WEIGHTS = {"provider": "column", "weights": ["w"]}
AGAINST: list[tuple[dict[str, Any], dict[str, Any], str]] = [  # settings of the run, of importance
    ({}, {"strategy": "conservative"}, "importance.strategy: 'conservative' is not valid with"),
    ({"consistency": "record"}, {"strategy": "aggressive"}, "importance.strategy: 'aggressive'"),
    ({"consistency": "dataset"}, {}, "consistency: 'dataset' is not valid with importance"),
    ({"mode": "incremental", "row_key": "id"}, {}, "importance.corpus: not set, but mode incremental"),
    ({"run": {"artifact": "/model"}}, {}, "importance.corpus: not set, but run.artifact"),
    ({"columns": ["a", "b"]}, WEIGHTS, "importance.weights: 1 columns are not valid for 2 text"),
    ({"columns": ["a.b"]}, WEIGHTS, "columns: 'a.b' is nested"),
    ({}, {"provider": "column", "weights": ["Body"]}, "importance.weights: 'Body' is a text column"),
    (TWO_LEXICONS, NO_PERCENT, "importance.levels[0]: lexicon.more: "),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    assert said in refused(importance=given)


@pytest.mark.parametrize(("more", "given", "said"), AGAINST)
def test_what_does_not_agree_is_named(more: dict[str, Any], given: dict[str, Any], said: str) -> None:
    assert said in refused(**more, importance={"percent": 10, **given})


def test_without_importance_all_words_are_drawn() -> None:
    for empty in ({}, {"importance": None}):
        config = parse_model_config(empty)
        assert config.importance is None
        assert config.spec()["importance"] is None
        assert config.mechanisms() == (config.mechanism,)


def test_each_level_has_its_mechanism() -> None:
    levels = [{"share": 20, "epsilon": 0.5}, {"share": 30}, {"mechanism": {"name": "custext", "k": 5}}]
    config = parse_model_config({"mechanism": {"k": 7, "epsilon": 2}, "importance": {"levels": levels}})
    assert config.mechanisms() == (CusText(0.5, 7), CusText(2, 7), CusText(k=5))
    assert config.importance is not None
    assert config.importance.cumulative == (20_000_000, 50_000_000, 100_000_000)
    written = json.loads(json.dumps(config.importance.as_dict()))
    assert Importance.of(written) == config.importance
    assert parse_model_config({"importance": written}).importance == config.importance


def test_a_share_is_exact() -> None:
    assert Importance(percent=12.345678).cumulative == (12_345_678,)
    levels = (Level(0.1), Level(0.2), Level(None))
    assert Importance(levels=levels).cumulative == (100_000, 300_000, 100_000_000)


def test_the_strategy_follows_from_the_consistency() -> None:
    assert agree(None, "token") == agree("aggressive", "token") == "aggressive"
    assert agree(None, "record") == agree("conservative", "record") == "conservative"


def test_one_column_of_weights_needs_no_list() -> None:
    config = accepted(importance={"provider": "column", "weights": "w", "percent": 5})
    assert config.importance is not None
    assert config.importance.weights == ("w",)


def of(*epsilons: float, **more: float) -> list[Guarantee]:
    return [Guarantee("epsilon_dp", epsilon, sentence=f"{epsilon}.", **more) for epsilon in epsilons]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilons", "unit", "multiples"),
    [
        ([3.0], 3.0, (1,)),
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
    first = Guarantee("epsilon_dp", 1.0, status="claimed", sentence="One.")
    levels = [first, Guarantee("epsilon_dp", 3.0, status="proved", sentence="Three.")]
    found = weakest_guarantee(levels)
    assert (found.epsilon, found.status) == (3.0, "claimed")
    assert found.sentence == "Level 1: One. Level 2: Three."
    assert weakest_guarantee(levels[:1]) is levels[0]


def test_kinds_that_differ_have_no_sum() -> None:
    metric = Guarantee("metric_dp", 1.0, metric="euclidean")
    with pytest.raises(SettingsError, match=r"levels\[1\]: .* metric_dp \(euclidean\)"):
        weakest_guarantee([*of(1.0), metric])


def test_distances_that_differ_have_no_sum() -> None:
    metric = Guarantee("metric_dp", 1.0, metric="mahalanobis")
    one, other = Mahalanobis(1.0, lam=0.2), Mahalanobis(2.0, lam=0.2)
    require_one_distance([one, other], [metric, metric])
    with pytest.raises(SettingsError, match=r"levels\[1\]: its distance \(mahalanobis\)"):
        require_one_distance([one, Mahalanobis(1.0, lam=0.3)], [metric, metric])
    require_one_distance([CusText(1.0, 5), CusText(2.0, 7)], of(1.0, 2.0))
