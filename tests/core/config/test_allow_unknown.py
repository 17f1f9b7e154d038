"""Whether a run goes on where most words are unknown: part of the policy's section, no part of the model or of what binds."""

from __future__ import annotations

from typing import Any

import pytest

from dptext_spark.config.load import load_config, parse_config, parse_model_config
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.errors import SettingsError
from dptext_spark.model.compile import prepare
from dptext_spark.report.terminal.plan import plan

PLAIN: dict[str, Any] = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
ALLOWED = {**PLAIN, "policy": {"allow_unknown": True}}


def test_it_stands_in_the_policy_and_is_read_back() -> None:
    config = parse_config(ALLOWED)
    assert config.allow_unknown
    assert config.as_dict()["policy"]["allow_unknown"] is True
    assert parse_config(config.as_dict()) == config
    assert (
        parse_model_config({"policy": {"allow_unknown": True}}).as_dict()["policy"]["allow_unknown"] is True
    )
    assert load_config(
        None, ["input.path=/in", "columns=[b]", "row_key=id", "output.path=/o", "policy.allow_unknown=true"]
    ).allow_unknown


def test_where_it_is_not_used_it_leaves_no_trace() -> None:
    for policy in ({}, {"allow_unknown": False}):
        config = parse_config({**PLAIN, "policy": policy})
        assert not config.allow_unknown
        assert config.as_dict() == parse_config(PLAIN).as_dict()
        assert "allow_unknown" not in config.as_dict()["policy"]


@pytest.mark.long
def test_it_is_no_part_of_what_a_model_is_made_from() -> None:
    one, other = parse_config(ALLOWED), parse_config(PLAIN)
    assert one.spec() == other.spec()
    assert one.policy == other.policy
    assert prepare(one)[0].fingerprint == prepare(other)[0].fingerprint


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"policy": {"allow_unknown": "yes"}}, r"policy\.allow_unknown: 'yes' given; valid: true or false"),
        ({"policy": {"allow_unknown": None}}, r"policy\.allow_unknown: None given; valid: true or false"),
        ({"policy": {"allow_unknown": 1}}, r"policy\.allow_unknown: 1 given; valid: true or false"),
        ({"allow_unknown": True}, r"^allow_unknown: no such setting; valid: policy\.allow_unknown"),
    ],
)
def test_what_is_neither_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_config({**PLAIN, **settings})


def test_names_at_the_top_do_not_list_it() -> None:
    with pytest.raises(
        SettingsError, match=r"other: no such setting; valid here: (?!.*allow_unknown)(?!.*\blists\b)"
    ):
        parse_config({**PLAIN, "other": 1})


@pytest.mark.long
@pytest.mark.parametrize(
    ("oov", "said"),
    [
        ("mask", "Nearly all words then become [OOV]"),
        ("draw", "Nearly all words then become uniform words of the lexicon"),
        ("keep", "Nearly all words then are RELEASED IN CLEAR"),
    ],
)
def test_the_statement_says_what_it_means(oov: str, said: str) -> None:
    def warnings(allowed: bool) -> str:
        config = parse_config({**PLAIN, "policy": {"allow_unknown": allowed, "oov": oov}})
        privatizer, _ = prepare(config)
        return " ".join(disclosure(RunFacts.planned(config, privatizer)).under("Warnings"))

    assert said in warnings(True)
    assert "allow_unknown" not in warnings(False)


def test_a_plan_says_that_rows_are_looked_at() -> None:
    step = "look at a sample of 1,000 rows; refused where most of their words are not in the lexicon"
    assert step in plan(parse_config(PLAIN)).as_dict()["steps"]
    assert step not in plan(parse_config(ALLOWED)).as_dict()["steps"]
