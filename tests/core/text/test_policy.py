"""The choices that a policy accepts, and the packaged stop words."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.characters import producible
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.identifiers.types import TYPES
from dptext_spark.text.policy import Policy, packaged_stop_words
from tests.core.text.plain_engine import form
from tests.core.text.samples import Step, run


def test_defaults_are_those_of_the_issue() -> None:
    assert dataclasses.asdict(Policy()) == {
        "stop_words": "keep",
        "stop_word_list": None,
        "oov": "mask",
        "numbers": "random",
        "case": "carry",
        "gaps": "keep",
        "tokenizer": "words",
        "identifiers": {**dict.fromkeys(TYPES, "mask"), "date": "keep", "languages": ()},
        "names": {
            "lists": False,
            "person": "mask",
            "location": "mask",
            "version": "1",
            "model": None,
            "threshold": 0.5,
        },
        "providers": (),
    }


@pytest.mark.parametrize("name", ["stop_words", "oov", "numbers", "case", "gaps", "tokenizer"])
@pytest.mark.parametrize("value", ["", "nope", None, True, 1, ["keep"]])
def test_a_choice_outside_the_list_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=rf"policy\.{name}"):
        Policy(**{name: value})


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'normalise'"):
        Policy(gaps="normalize")  # type: ignore[arg-type]


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
    assert policy.stop_list() == ("τουσ", "için", "cent's")
    made = Privatizer(Vocabulary.of(["a", "b"]), Step(1, 2), policy)
    for words in (listed, policy.stop_list()):
        text = " ".join((*words, "A"))
        out, counters = run(made, [text])
        assert out[0].decode() == " ".join((*words, "B"))
        assert counters.totals()["stop_kept"] == 3
    assert policy.stop_list() == tuple(map(form, listed))


def test_a_stop_word_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"policy\.stop_word_list: .*no valid Unicode"):
        Policy(stop_word_list=("the", "\udc80"))


def test_the_packaged_list_can_be_looked_up() -> None:
    words = packaged_stop_words()
    assert len(set(words)) == len(words) > 200
    assert {"the", "not", "i", "don't", "n't", "you're"} <= set(words)
    assert producible(pa.array(words)).all()
