"""What the user may choose, and what is said where it is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.importance.selection import Importance, Level, agree
from dptext_spark.mechanisms import CusText

RUN: dict[str, Any] = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "importance: neither of percent and levels given"),
    ({"percent": 10, "levels": [{"share": 5}]}, "importance: both of percent and levels given"),
    ({"percent": 0}, "importance.percent: 0 given; valid: a number above 0 and at most 100"),
    ({"percent": -5}, "importance.percent: -5 given"),
    ({"percent": 100.5}, "importance.percent: 100.5 given"),
    ({"percent": float("nan")}, "importance.percent: nan given"),
    ({"percent": True}, "importance.percent: True given"),
    ({"percent": "30"}, "importance.percent: '30' given"),
    ({"percent": 0.0000001}, "6 decimals or fewer"),
    ({"percent": 10, "provider": "tfidf"}, "importance.provider: 'tfidf' is not known"),
    ({"percent": 10, "direction": "middle"}, "importance.direction: 'middle' is not known"),
    ({"percent": 10, "strategy": "timid"}, "importance.strategy: 'timid' is not known"),
    ({"percent": 10, "precent": 3}, "Did you mean 'percent'?"),
    ({"percent": 10, "rank_punctuation": "yes"}, "importance.rank_punctuation: 'yes' given"),
    ({"percent": 10, "weights": "w"}, "importance.weights: given with provider idf; valid: with column"),
    ({"percent": 10, "provider": "column"}, "importance.weights: none given; provider column needs"),
    ({"percent": 10, "provider": "attention"}, "importance.model: none given; provider attention needs"),
    (
        {"percent": 10, "provider": "random", "corpus": "x.txt"},
        "importance.corpus: given with provider random",
    ),
    ({"percent": 10, "corpus": "https://u:p@x/c.txt"}, "importance.corpus: holds a password"),
    ({"levels": 3}, "importance.levels: 3 given; valid: a list"),
    ({"levels": [3]}, "importance.levels[0]: 3 given; valid: a section"),
    ({"levels": [{"share": 60}, {"share": 41}]}, "shares of 101 % together given; valid: at most 100"),
    ({"levels": [{"epsilon": 1}, {"share": 41}]}, "importance.levels[0].share: none given"),
    ({"levels": [{"share": 0}]}, "importance.levels[0].share: 0 given"),
    ({"levels": [{"share": 5, "epsilon": -1}]}, "importance.levels[0]: mechanism.epsilon: -1 given"),
    ({"levels": [{"share": 5, "epsilon": 9e-7}]}, "importance.levels[0]: mechanism.epsilon: 9e-07 given"),
    (
        {"levels": [{"share": 5, "epsilon": 1, "mechanism": {"name": "tem"}}]},
        "both of epsilon and mechanism given",
    ),
    ({"levels": [{"share": 5, "mechanism": {"name": "temp"}}]}, "mechanism.name: 'temp' is not known"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_model_config({"importance": given})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("more", "given", "said"),
    [
        (
            {},
            {"strategy": "conservative"},
            "importance.strategy: 'conservative' given with consistency: token",
        ),
        (
            {"consistency": "record"},
            {"strategy": "aggressive"},
            "valid: consistency token, or strategy conservative",
        ),
        ({"consistency": "dataset"}, {}, "consistency: 'dataset' given with importance"),
        ({"mode": "incremental", "row_key": "id"}, {}, "importance.corpus: none given with mode incremental"),
        ({"run": {"artifact": "/model"}}, {}, "importance.corpus: none given with run.artifact"),
        (
            {"columns": ["a", "b"]},
            {"provider": "column", "weights": ["w"]},
            "importance.weights: 1 given for 2 text",
        ),
        ({"columns": ["a.b"]}, {"provider": "column", "weights": ["w"]}, "columns: 'a.b' is nested"),
        (
            {"lexicon": {"more": ["/x.txt"]}, "mechanism": {"name": "diffractor"}},
            {"percent": None, "levels": [{"share": 5, "mechanism": {"name": "tem"}}]},
            "importance.levels[0].mechanism: tem is compiled for another number of embeddings",
        ),
        ({}, {"provider": "column", "weights": ["Body"]}, "importance.weights: 'Body' is a text column"),
    ],
)
def test_what_does_not_agree_is_named(more: dict[str, Any], given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_config({**RUN, **more, "importance": {"percent": 10, **given}})
    assert said in str(caught.value)


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
    assert Importance(levels=(Level(0.1), Level(0.2), Level(None))).cumulative == (
        100_000,
        300_000,
        100_000_000,
    )


def test_the_strategy_follows_from_the_consistency() -> None:
    assert agree(None, "token") == agree("aggressive", "token") == "aggressive"
    assert agree(None, "record") == agree("conservative", "record") == "conservative"


def test_one_column_of_weights_needs_no_list() -> None:
    config = parse_config({**RUN, "importance": {"provider": "column", "weights": "w", "percent": 5}})
    assert config.importance is not None
    assert config.importance.weights == ("w",)
