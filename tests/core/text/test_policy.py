"""The choices that a policy accepts: of words, of the search for names and of identifiers; and the packaged stop words."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.config.load import load_model_config, parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.characters import producible
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer, fingerprint_of
from dptext_spark.text.names.search import VERSION, NameSearch
from dptext_spark.text.policy import (
    NO_IDENTIFIERS,
    TYPES,
    Identifiers,
    Policy,
    packaged_stop_words,
    placeholder,
)
from tests.core.text.plain_engine import form
from tests.core.text.samples import Step, run


@pytest.mark.parametrize("name", ["stop_words", "oov", "numbers", "case", "gaps", "tokenizer"])
@pytest.mark.parametrize("value", ["", "nope", None, True, 1, ["keep"]])
def test_a_choice_outside_the_list_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=rf"policy\.{name}"):
        Policy(**{name: value})


@pytest.mark.parametrize(
    "words", ["the", ["the", ""], ["the", " "], ["the", 3], [None], 5, {"the"}, {"the": 1}]
)
def test_a_stop_word_list_is_a_list_of_words(words: object) -> None:
    """A set has no order, and the order is part of the table's fingerprint."""
    with pytest.raises(SettingsError, match=r"policy\.stop_word_list"):
        Policy(stop_word_list=words)  # type: ignore[arg-type]


def test_stop_words_are_compared_in_look_up_form() -> None:
    policy = Policy(stop_word_list=["The", " don\u2019t ", "the"])  # type: ignore[arg-type]
    assert policy.stop_word_list == ("The", " don\u2019t ", "the")
    assert policy.stop_list() == ("the", "don't")
    assert Policy(stop_word_list=()).stop_list() == ()
    assert policy == Policy(stop_word_list=("The", " don\u2019t ", "the"))
    assert hash(policy) == hash(dataclasses.replace(policy))


def test_stop_words_are_lowered_as_texts_are() -> None:
    """Python lowers a sigma at the end of a word, and the dotted capital I, to something else."""
    listed = ("ΤΟΥΣ", "İÇİN", "Cent\u2019s")
    policy = Policy(stop_word_list=listed)
    assert policy.stop_list() == ("τουσ", "için", "cent's") == tuple(map(form, listed))
    made = Privatizer(Vocabulary.of(["a", "b"]), Step(1, 2), policy)
    for words in (listed, policy.stop_list()):
        out, counters = run(made, [" ".join((*words, "A"))])
        assert out[0].decode() == " ".join((*words, "B"))
        assert counters.totals()["stop_kept"] == 3


def test_a_stop_word_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"policy\.stop_word_list: a list of 2 .*Unicode"):
        Policy(stop_word_list=("the", "\udc80"))


def test_the_packaged_list_can_be_looked_up() -> None:
    words = packaged_stop_words()
    assert len(set(words)) == len(words) > 200
    assert {"the", "not", "i", "don't", "n't", "you're"} <= set(words)
    assert producible(pa.array(words)).all()


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
        (True, r"policy\.names: bool is not valid. Choose none, or a mapping"),
        ({"list": True}, r"policy\.names\.list: no such setting.*did you mean 'lists'"),
        ({"lists": "yes"}, r"policy\.names\.lists: 'yes' is not valid. Choose true or false"),
        ({"lists": True, "person": "fake"}, r"policy\.names\.person: 'fake'.*Choose mask, pseudonym or keep"),
        ({"lists": True, "location": None}, r"policy\.names\.location"),
        ({"person": "pseudonym"}, r"policy\.names: .*no search for names"),
        ({"model": 1}, r"policy\.names\.model: 1 is not valid. Choose null, a folder"),
        ({"model": " "}, r"policy\.names\.model: ' ' is not valid. Choose null, a folder"),
        *(
            ({"model": "m", "threshold": value}, rf"policy\.names\.threshold: {value!r} is not valid")
            for value in (0, 1.01, True, "0.5", float("nan"))
        ),
        ({"lists": True, "threshold": 0.6}, r"policy\.names\.threshold: 0\.6 .* without policy\.names\.mod"),
        ("lists", r"policy\.names: str is not valid"),
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
    with pytest.raises(SettingsError, match=r"policy\.names\.version: '0' is not valid. Choose '1'.*again"):
        NameSearch(lists=True, version="0").check_version()
    NameSearch(version="0").check_version()
    replace(NameSearch(lists=True)).check_version()


def test_all_types_but_dates_are_masked_where_nothing_is_said() -> None:
    assert Policy().identifiers.wanted("mask") == tuple(name for name in TYPES if name != "date")
    assert Policy().identifiers.wanted("keep") == ("date",)
    assert [placeholder(name) for name in ("email", "ip")] == ["[EMAIL]", "[IP]"]


def test_a_mapping_changes_what_it_names() -> None:
    chosen = Policy(identifiers={"phone": "fake", "url": "keep", "date": "mask"}).identifiers  # type: ignore[arg-type]
    assert (chosen.phone, chosen.url, chosen.date, chosen.email) == ("fake", "keep", "mask", "mask")
    assert chosen.wanted("fake") == ("phone",)
    config = load_model_config(overrides=["policy.identifiers.phone=fake"])  # a date is masked by the style
    assert config.as_dict()["policy"]["identifiers"] == {**dict.fromkeys(TYPES, "mask"), "phone": "fake"}


def test_none_turns_all_off() -> None:
    assert Policy(identifiers="none").identifiers == NO_IDENTIFIERS  # type: ignore[arg-type]
    assert not NO_IDENTIFIERS
    assert NO_IDENTIFIERS.wanted() == ()
    assert Identifiers(**{**dict.fromkeys(TYPES, "keep"), "ip": "fake"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"mail": "mask"}, "policy.identifiers.mail: no such type of identifier. Choose email, url, phone, iban, card, ip,"),
        ({"emial": "mask"}, "Did you mean 'email'?"),
        ({"phone": "hide"}, "policy.identifiers.phone: 'hide' is not valid. Choose mask, fake or keep."),
        ({"date": "fake"}, "policy.identifiers.date: 'fake' is not valid. Choose mask or keep."),
        ({"language": ["de"]}, "Did you mean 'languages'?"),
        ({"date": "mask", "languages": "de"}, "policy.identifiers.languages: 'de' is not valid. Choose a list."),
        ({"date": "mask", "languages": [1]}, "policy.identifiers.languages[0]: 1 is not valid. Choose ar, bg,"),
        ({"date": "mask", "languages": ["de", "xx"]}, "policy.identifiers.languages[1]: 'xx' is not valid. Choose ar, bg, cs,"),
        ({"date": "mask", "languages": [False]}, "policy.identifiers.languages[0]: False is not valid. Choose ar,"),
        ({"languages": ["de"]}, "policy.identifiers.languages: ['de'] is not valid without a search for dates."),
        ("all", "policy.identifiers: 'all' is not valid. Choose none, or a mapping of types (email,"),
        (None, "policy.identifiers: None is not valid. Choose none"),
        (["email"], "policy.identifiers: ['email'] is not valid. Choose none"),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_named_with_what_is(value: Any, said: str) -> None:
    for make in (
        lambda: Policy(identifiers=value),
        lambda: parse_model_config({"policy": {"identifiers": value}}),
    ):
        with pytest.raises(SettingsError, match=re.escape(said)):
            make()


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Policy(oov="burn", identifiers={"mail": "mask", "ip": "hide"})  # type: ignore[arg-type]
    assert str(caught.value).count("\n") == 2


def test_languages_of_dates_leave_a_trace_only_where_they_are_named() -> None:
    plain = Policy(identifiers={"date": "mask"})  # type: ignore[arg-type]
    assert "languages" not in plain.as_dict()["identifiers"]
    assert Policy(identifiers={"date": "mask", "languages": []}) == plain  # type: ignore[arg-type]
    overrides = ["policy.identifiers.date=mask", "policy.identifiers.languages=[fr,de,fr]"]
    chosen = load_model_config(overrides=overrides).policy
    assert chosen.identifiers.languages == ("de", "fr")  # one value, in whatever order it is given
    written = json.loads(json.dumps(chosen.as_dict()))
    assert written["identifiers"]["languages"] == ["de", "fr"]
    assert Policy(**written) == chosen
    one = Policy(identifiers=Identifiers(date="mask", languages=("de",)))
    prints = {fingerprint_of({}, policy, "token") for policy in (plain, chosen, Policy(), one)}
    assert len(prints) == 4
