"""The choice of types and actions, and what an invalid one says."""

from __future__ import annotations

from typing import Any

import pytest

from dptext_spark.config.load import load_model_config, parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS, TYPES, Identifiers, placeholder
from dptext_spark.text.policy import Policy


def test_all_types_but_dates_are_masked_where_nothing_is_said() -> None:
    assert Policy().identifiers.wanted("mask") == tuple(name for name in TYPES if name != "date")
    assert Policy().identifiers.wanted("keep") == ("date",)


def test_a_mapping_changes_what_it_names() -> None:
    chosen = Policy(identifiers={"phone": "fake", "url": "keep", "date": "mask"}).identifiers  # type: ignore[arg-type]
    assert (chosen.phone, chosen.url, chosen.date, chosen.email) == ("fake", "keep", "mask", "mask")
    assert chosen.wanted("fake") == ("phone",)


def test_none_turns_all_off() -> None:
    assert Policy(identifiers="none").identifiers == NO_IDENTIFIERS  # type: ignore[arg-type]
    assert not NO_IDENTIFIERS
    assert NO_IDENTIFIERS.wanted() == ()
    assert Identifiers(**{**dict.fromkeys(TYPES, "keep"), "ip": "fake"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"mail": "mask"}, "policy.identifiers.mail: no such type of identifier; valid: email, url, phone, iban, card, ip,"),
        ({"emial": "mask"}, "Did you mean 'email'?"),
        ({"phone": "hide"}, "policy.identifiers.phone: 'hide' is not known; valid: mask, fake, keep."),
        ({"date": "fake"}, "policy.identifiers.date: 'fake' is not known; valid: mask, keep."),
        ("all", "policy.identifiers: 'all' given; valid: none, or a mapping of types (email,"),
        (None, "policy.identifiers: None given; valid: none"),
        (["email"], "policy.identifiers: ['email'] given; valid: none"),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_named_with_what_is(value: Any, said: str) -> None:
    for make in (
        lambda: Policy(identifiers=value),
        lambda: parse_model_config({"policy": {"identifiers": value}}),
    ):
        with pytest.raises(SettingsError) as caught:
            make()
        assert said in str(caught.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Policy(oov="burn", identifiers={"mail": "mask", "ip": "hide"})  # type: ignore[arg-type]
    assert str(caught.value).count("\n") == 2


def test_settings_are_a_mapping_of_all_types() -> None:
    config = load_model_config(overrides=["policy.identifiers.phone=fake"])
    assert config.as_dict()["policy"]["identifiers"] == {
        **dict.fromkeys(TYPES, "mask"),
        "phone": "fake",
        "date": "keep",
    }
    off = load_model_config(overrides=["policy.identifiers=none"])
    assert set(off.as_dict()["policy"]["identifiers"].values()) == {"keep"}


def test_a_placeholder_is_of_its_type() -> None:
    assert [placeholder(name) for name in ("email", "ip")] == ["[EMAIL]", "[IP]"]
