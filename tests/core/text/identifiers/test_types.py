"""The choice of types and actions, and what an invalid one says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dptext_spark.config.load import load_model_config, parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.model.privatizer import fingerprint_of
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
        ({"language": ["de"]}, "Did you mean 'languages'?"),
        ({"date": "mask", "languages": "de"}, "policy.identifiers.languages: 'de' given; valid: a list of ar, bg, cs, da, de,"),
        ({"date": "mask", "languages": [1]}, "policy.identifiers.languages: [1] given; valid: a list of ar,"),
        ({"date": "mask", "languages": ["de", "xx"]}, "policy.identifiers.languages: 'xx' is not known; valid: ar, bg, cs,"),
        ({"date": "mask", "languages": [False]}, "policy.identifiers.languages: [False] given; valid: a list of ar,"),
        ({"languages": ["de"]}, "policy.identifiers.languages: ['de'] given, but dates are not looked for; valid: with "
                                "policy.identifiers.date: mask."),
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
        "phone": "fake",  # a date is masked by the style
    }
    off = load_model_config(overrides=["policy.identifiers=none"])
    assert set(off.as_dict()["policy"]["identifiers"].values()) == {"keep"}


def test_languages_of_dates_leave_a_trace_only_where_they_are_named() -> None:
    plain = Policy(identifiers={"date": "mask"})  # type: ignore[arg-type]
    assert "languages" not in plain.as_dict()["identifiers"]
    assert Policy(identifiers={"date": "mask", "languages": []}) == plain  # type: ignore[arg-type]
    chosen = load_model_config(
        overrides=["policy.identifiers.date=mask", "policy.identifiers.languages=[fr,de,fr]"]
    )
    assert chosen.policy.identifiers.languages == ("de", "fr")  # one value, in whatever order it is given
    written = json.loads(json.dumps(chosen.policy.as_dict()))
    assert written["identifiers"]["languages"] == ["de", "fr"]
    assert Policy(**written) == chosen.policy

    def bound(policy: Policy) -> str:
        return fingerprint_of({}, policy, "token")

    assert len({bound(plain), bound(chosen.policy), bound(Policy())}) == 3
    one_more = Identifiers(date="mask", languages=("de",))
    assert bound(Policy(identifiers=one_more)) not in (bound(plain), bound(chosen.policy))


def test_a_placeholder_is_of_its_type() -> None:
    assert [placeholder(name) for name in ("email", "ip")] == ["[EMAIL]", "[IP]"]
