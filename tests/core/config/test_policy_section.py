"""What stands beside the policy's choices in its section: lists of words, unknown words, and settings that left."""

from __future__ import annotations

from typing import Any

import pytest

from dptext_spark.config.load import load_config, load_model_config, parse_config, parse_model_config
from dptext_spark.config.values import _LEFT
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.text.names.search import ListSource, ListSources

PLAIN: dict[str, Any] = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
MASKED = [{"file": "a.txt"}, {"table": "crm.people", "column": "name"}, {"column": "who"}]
GIVEN = {"mask": MASKED, "keep": [{"file": "b"}]}


def test_they_stand_in_the_policy_and_are_read_back() -> None:
    config = parse_config({**PLAIN, "policy": {"oov": "draw", **GIVEN}})
    masked = (ListSource("a.txt"), ListSource(None, "crm.people", "name"), ListSource(None, None, "who"))
    assert config.lists == ListSources(masked, (ListSource("b"),))
    named = [field for field, _ in config.lists.named()]
    assert named == [*(f"policy.mask[{i}]" for i in range(3)), "policy.keep[0]"]
    assert config.as_dict()["policy"] | GIVEN == config.as_dict()["policy"]
    assert parse_config(config.as_dict()) == config
    # They are no part of what a model is made from.
    without = parse_config({**PLAIN, "policy": {"oov": "draw", "mask": [], "keep": None}})
    assert (config.spec(), config.policy) == (without.spec(), without.policy)
    assert without.as_dict() == parse_config({**PLAIN, "policy": {"oov": "draw"}}).as_dict()


A, NAMED = {"file": "a"}, {"kind": "person", "replace": "pseudonym"}


def test_pseudonyms_are_asked_for_by_a_kind_and_what_is_masked_leaves_no_trace() -> None:
    place = {"column": "c", "kind": "location", "replace": "pseudonym"}
    given = {"mask": [{"file": "a", **NAMED}, place, {"file": "b"}]}
    config = parse_config({**PLAIN, "policy": given})
    assert config.lists.mask[:2] == (ListSource("a", **NAMED), ListSource(**place))
    assert config.lists.kinds == ("person", "location")
    assert config.as_dict()["policy"]["mask"] == given["mask"]
    assert parse_config(config.as_dict()) == config
    masked = parse_config({**PLAIN, "policy": {"mask": [{"file": "a", "replace": "mask", "kind": None}]}})
    assert masked.as_dict() == parse_config({**PLAIN, "policy": {"mask": [{"file": "a"}]}}).as_dict()
    assert masked.lists.kinds == ()
    assert config.spec() == parse_config(PLAIN).spec()


def test_what_is_kept_has_no_pseudonyms_however_it_is_built() -> None:
    with pytest.raises(SettingsError, match=r"policy\.keep\[0\]\.replace: not valid"):
        ListSources(keep=(ListSource("a", kind="person", replace="pseudonym"),))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"mask": "a.txt"}, r"policy\.mask: 'a\.txt' is not valid. Choose a list of sections"),
        ({"mask": ["a.txt"]}, r"policy\.mask\[0\]: .*a section"),
        ({"mask": [{}]}, r"policy\.mask\[0\]: nothing is not valid. Choose file; table with column"),
        ({"mask": [{"file": "a", "column": "b"}]}, r"policy\.mask\[0\]: file, column is not valid"),
        ({"mask": [{"file": 5}]}, r"policy\.mask\[0\]\.file: 5 is not valid. Choose a text"),
        ({"mask": [{"file": " "}]}, r"policy\.mask\[0\]\.file: ' ' is not valid. Choose a text"),
        ({"mask": [{"fiel": "a"}]}, r"policy\.mask\[0\]\.fiel: no such setting. Choose file, table, column, kind or"),
        ({"mask": [{"table": "a b", "column": "c"}]}, r"policy\.mask\[0\]\.table: 'a b' is not valid. Choose catalog"),
        ({"keep": [{"fiel": "a"}]}, r"policy\.keep\[0\]\.fiel: no such setting. Choose file, table or column\. .*file"),
        ({"mask": [{**A, "kind": "person"}]}, r"policy\.mask\[0\]\.kind: 'person' is not valid"),
        ({"mask": [{**A, "replace": "pseudonym"}]}, r"policy\.mask\[0\]\.replace: .*kind: person or location; or replace: mask"),
        ({"mask": [{**A, **NAMED, "kind": "peson"}]}, r"policy\.mask\[0\]\.kind: 'peson' .*Choose person or location\. .*person"),
        ({"mask": [{**A, **NAMED, "kind": ["person"]}]}, r"policy\.mask\[0\]\.kind: a list of 1 is not valid"),
        ({"mask": [{**A, **NAMED, "replace": "keep"}]}, r"policy\.mask\[0\]\.replace: 'keep' .*Choose mask or pseudonym"),
        ({"keep": [{**A, "replace": "mask"}]}, r"policy\.keep\[0\]\.replace: not valid, because .* Choose file, table"),
        ({"keep": [{**A, "kind": "person"}]}, r"policy\.keep\[0\]\.kind: not valid, because .*ists of policy\.mask"),
    ],
)  # fmt: skip
def test_what_names_no_list_is_refused(policy: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_config({**PLAIN, "policy": policy})
    with pytest.raises(SettingsError, match=r"lists: no such setting. Choose policy\.mask or policy\.keep"):
        parse_config({**PLAIN, "lists": {"mask": []}})


ALLOWED = {**PLAIN, "policy": {"allow_unknown": True}}


def test_it_stands_in_the_policy_and_is_read_back() -> None:
    config = parse_config(ALLOWED)
    assert config.allow_unknown
    assert config.as_dict()["policy"]["allow_unknown"] is True
    assert parse_config(config.as_dict()) == config
    model = parse_model_config({"policy": {"allow_unknown": True}})
    assert model.as_dict()["policy"]["allow_unknown"] is True
    least = ["input.path=/in", "columns=[b]", "row_key=id", "output.path=/o"]
    assert load_config(None, [*least, "policy.allow_unknown=true"]).allow_unknown


def test_it_is_no_part_of_a_model_and_leaves_no_trace_where_it_is_not_used() -> None:
    allowed, plain = parse_config(ALLOWED), parse_config(PLAIN)
    assert (allowed.spec(), allowed.policy) == (plain.spec(), plain.policy)
    assert parse_config({**PLAIN, "policy": {"allow_unknown": False}}).as_dict() == plain.as_dict()
    assert "allow_unknown" not in plain.as_dict()["policy"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"policy": {"allow_unknown": "yes"}}, r"policy\.allow_unknown: 'yes' is not valid"),
        ({"policy": {"allow_unknown": 1}}, r"policy\.allow_unknown: 1 is not valid"),
        ({"policy": {"allow_unknown": None}}, r"policy\.allow_unknown: None is not valid"),
        ({"other": 1}, r"other: no such setting. Choose (?!.*allow_unknown)(?!.*\blists\b)"),
        ({"allow_unknown": True}, r"^allow_unknown: no such setting. Choose policy\.allow_unknown"),
    ],
)
def test_what_is_neither_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_config({**PLAIN, **settings})


@pytest.mark.parametrize(("oov", "said"), [("mask", "[OOV]"), ("draw", "uniform"), ("keep", "IN CLEAR")])
def test_the_statement_warns_of_what_becomes_of_nearly_all_words(oov: str, said: str) -> None:
    def warnings(allowed: bool) -> str:
        config = parse_config({**PLAIN, "policy": {"allow_unknown": allowed, "oov": oov}})
        facts = RunFacts(config=config, guarantee=Guarantee("epsilon_dp", 1.0))
        return " ".join(disclosure(facts).under("Warnings"))

    assert said in warnings(True).partition("allow_unknown")[2]
    assert "allow_unknown" not in warnings(False)


@pytest.mark.parametrize("path", _LEFT)
def test_the_error_names_the_setting_and_what_to_do_instead(path: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_model_config(None, [f"{path}=lexicon"])
    assert str(caught.value) == f"{path}: no such setting. Instead, {_LEFT[path]}."


def test_all_that_left_are_named_at_once_whatever_else_is_wrong() -> None:
    with pytest.raises(SettingsError, match=r"^policy\.segment: no such setting. Instead, put spaces"):
        parse_config({"columns": 3, "policy": {"segment": "none"}})
