"""Lists of names in a model: masked or kept whatever the lexicon holds, at every level, and no part of the model."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.importance.budget import Budget
from dptext_spark.importance.selection import Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.word_list import WordList
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

KEY = RunKey.insecure(5)
MASK = ("Good Time", "World", "o'zorbla", "The")
KEEP = ("new music", "school", "Qwxyz", "world school")


@cache
def names() -> Names:
    lists = [WordList.of(name, [one.encode() for one in some]) for name, some in (("a", MASK), ("b", KEEP))]
    return Names(compile_names(lists, name_key(KEY, "r")), 1)


@cache
def model(which: str, consistency: Any) -> Privatizer:
    lexicon, policy = beginning(Lexicon.default(), 300), Policy()
    mechanism = CusText(
        epsilon=2.0, k=5, fluent=which == "fluent", remap="bayes" if which == "remap" else "none"
    )
    chosen = Importance(percent=50, provider="random") if which == "importance" else None
    if chosen is not None and consistency == "record":
        chosen = Importance(percent=50, provider="random", strategy="conservative")
    budget = Budget(record=2.0, delta=0.01) if which == "budget" else None
    if which == "fluent":
        lexicon = with_pairs(lexicon)
    return compile(mechanism, lexicon, policy, consistency, chosen, budget=budget)


def drawn(made: Privatizer, texts: list[str]) -> list[str]:
    found, _ = made.privatize(
        pa.array(texts), column="c", row_ids=pa.array(range(len(texts))), key=KEY, run_id="r"
    )
    return found.to_pylist()


CASES = [
    (which, level)
    for which, level in product(
        ("plain", "remap", "fluent", "importance", "budget"), ("token", "record", "dataset")
    )
    if level == "token" or which in ("plain", "remap") or (level == "record" and which != "fluent")
]


@pytest.mark.parametrize(("which", "level"), CASES)
def test_what_is_listed_is_masked_or_kept_and_the_rest_is_as_it_would_be(which: str, level: str) -> None:
    made = model(which, level).with_names(names())
    (found,) = drawn(made, ["The GOOD time's people like New  Music, o'Zorbla! qwxyz time."])
    words = found.split(" ")
    assert words[:2] == ["[NAME]", "[NAME]'s"]
    assert words[4:7] == ["New", "", "Music,"]
    assert words[7:9] == ["[NAME]!", "qwxyz"]
    assert drawn(made, ["World", "world school", "new music"]) == ["[NAME]", "world school", "new music"]


@pytest.mark.parametrize("level", ["token", "record"])
def test_other_words_are_drawn_as_beside_any_placeholder(level: str) -> None:
    """The draws of other words depend on their places in the text (token level) or on themselves (record level) alone."""
    made = model("plain", level)
    listed, plain = "World people time", "12345 people time"
    (with_lists,), (without,) = drawn(made.with_names(names()), [listed]), drawn(made, [plain])
    assert with_lists.split()[0] == "[NAME]"
    assert with_lists.split()[1:] == without.split()[1:]


def test_they_are_no_part_of_the_model() -> None:
    made = model("plain", "token")
    listing = made.with_names(names())
    assert listing.fingerprint == made.fingerprint
    assert listing.arrays().keys() == made.arrays().keys()
    assert drawn(made, ["World"]) != ["[NAME]"]


def test_what_is_found_otherwise_counts_more_than_what_is_kept() -> None:
    made = model("plain", "token").with_names(names())
    (found,) = drawn(made, ["mail school@world.com about school"])
    assert found.split()[1] == "[EMAIL]"
    assert found.endswith(" school")


def test_a_placeholder_that_is_there_stays() -> None:
    (found,) = drawn(model("plain", "token").with_names(names()), ["[NAME] likes [NAME]"])
    assert found.startswith("[NAME] ")
    assert found.endswith(" [NAME]")


def test_a_preview_says_what_is_listed() -> None:
    found = preview(model("plain", "token").with_names(names()), "World people at school")
    said = {word.text: (word.action, word.became) for word in found.words}
    assert said["World"] == ("masked", "[NAME]")
    assert said["school"] == ("kept", "school")
    assert "identifier" not in found.words[0].reason
