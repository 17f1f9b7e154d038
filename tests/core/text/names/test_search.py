"""The search for names as settings give it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.text.names.search import VERSION, NameSearch
from dptext_spark.text.policy import Policy


def test_nothing_is_looked_for_by_default() -> None:
    assert not Policy().names
    assert "names" not in Policy().as_dict()
    assert NameSearch.of("none") == NameSearch()
    assert Policy(names={"lists": False}).names == NameSearch()  # type: ignore[arg-type]


def test_a_search_is_recorded_with_the_version_of_the_lists() -> None:
    policy = Policy(names={"lists": True, "person": "pseudonym"})  # type: ignore[arg-type]
    assert policy.names.wanted("pseudonym") == ("person",)
    assert policy.names.wanted("mask") == ("location",)
    assert policy.as_dict()["names"] == {
        "lists": True, "person": "pseudonym", "location": "mask", "version": VERSION,
    }  # fmt: skip
    assert Policy(**policy.as_dict()) == policy


def test_what_is_kept_is_not_looked_for() -> None:
    assert not NameSearch(lists=True, person="keep", location="keep")
    assert NameSearch(lists=True, person="keep")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, r"policy\.names: bool given; valid: none, or a mapping"),
        ({"list": True}, r"policy\.names\.list: no such setting.*did you mean 'lists'"),
        ({"lists": "yes"}, r"policy\.names\.lists: 'yes' given; valid: true, false"),
        ({"lists": True, "person": "fake"}, r"policy\.names\.person: 'fake'.*valid: mask, pseudonym, keep"),
        ({"lists": True, "location": None}, r"policy\.names\.location"),
        ({"person": "pseudonym"}, r"policy\.names: .*none are looked for"),
        ({"model": 1}, r"policy\.names\.model: int given; valid: null, a folder"),
        ({"model": " "}, r"policy\.names\.model: str given; valid: null, a folder"),
        ({"model": "m", "threshold": 0}, r"policy\.names\.threshold: 0 given; valid: above 0 and at most 1"),
        ({"model": "m", "threshold": 1.01}, r"policy\.names\.threshold: 1\.01 given"),
        ({"model": "m", "threshold": True}, r"policy\.names\.threshold: True given"),
        ({"model": "m", "threshold": "0.5"}, r"policy\.names\.threshold: '0\.5' given"),
        ({"model": "m", "threshold": float("nan")}, r"policy\.names\.threshold: nan given"),
        (
            {"lists": True, "threshold": 0.6},
            r"policy\.names\.threshold: 0\.6 given; valid: with policy\.names\.model",
        ),
        ("lists", r"policy\.names: str given"),
        ({1: 2}, r"policy\.names\.1: no such setting"),
    ],
)
def test_wrong_settings_are_named(value: object, message: str) -> None:
    with pytest.raises(SettingsError, match=f"(?i){message}"):
        Policy(names=value)  # type: ignore[arg-type]


def test_a_classifier_alone_or_with_lists() -> None:
    alone = NameSearch.of({"model": "m", "person": "pseudonym"})
    assert alone
    assert alone.classifies
    assert alone.wanted("pseudonym") == ("person",)
    assert alone.wanted("mask") == ("location",)
    assert alone.as_dict() == {
        "lists": False, "person": "pseudonym", "location": "mask", "version": VERSION, "model": "m", "threshold": 0.5,
    }  # fmt: skip
    assert NameSearch.of(alone.as_dict()) == alone
    assert not NameSearch(model="m", person="keep", location="keep").classifies
    assert not NameSearch(lists=True).classifies
    assert type(NameSearch(model="m", threshold=1).threshold) is float
    assert "model" not in NameSearch(lists=True).as_dict()


def test_another_version_is_refused_where_names_are_looked_for() -> None:
    with pytest.raises(SettingsError, match=r"policy\.names\.version: '0' given; valid: '1'.*prepared again"):
        NameSearch(lists=True, version="0").check_version()
    NameSearch(version="0").check_version()
    replace(NameSearch(lists=True)).check_version()
