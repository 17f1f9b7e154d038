"""Lists of names in a model: masked or kept whatever the lexicon holds, at every level, and no part of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.importance.budget import Budget
from dptext_spark.importance.selection import Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.compile import compile
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.search import NameSearch
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


SEARCHED = ("mask", "pseudonym")
TEXT = "World, Ada Lovelace met Mrs. A. Lovelace in Oslo.\nBest,\nADA LOVELACE"


def searching(action: str, which: str, consistency: Any, **names: str) -> Privatizer:
    made = model(which, consistency)
    search = {"lists": True, "person": action, "location": action, **names}
    return replace(made, policy=replace(made.policy, names=search), fingerprint="")  # type: ignore[arg-type]


@pytest.mark.parametrize(("which", "level"), CASES)
def test_names_are_found_at_every_level_and_a_batch_equals_its_rows(which: str, level: str) -> None:
    masked = searching("mask", which, level)
    (found,) = drawn(masked, [TEXT])
    assert found.count("[PERSON]") == 3
    assert found.count("[LOCATION]") == 1
    assert not {"ada", "lovelace", "oslo"} & set(found.lower().replace(".", " ").split())
    named = searching("pseudonym", which, level)
    texts = [TEXT, "", "Dr. Ada Lovelace", TEXT]
    together = drawn(named, texts)
    for number, text in enumerate(texts):
        alone, _ = named.privatize(
            pa.array([text]), column="c", row_ids=pa.array([number]), key=KEY, run_id="r"
        )
        assert alone.to_pylist() == [together[number]]
    surnames = [line.split(" ")[-1].strip(".").lower() for line in together[0].splitlines()[-1:]]
    repeated = sum(together[0].lower().count(one) for one in surnames)
    assert (repeated == 3) is (level != "token")


def test_counts_of_names_are_those_of_the_output() -> None:
    _, counts = searching("mask", "plain", "token").privatize(
        pa.array([TEXT, "no name", None]), column="c", row_ids=pa.array([1, 2, 3]), key=KEY, run_id="r"
    )
    totals = counts.totals()
    assert (totals["persons_found"], totals["locations_found"]) == (3, 1)
    assert totals["identifiers_provided"] == totals["names_masked"] == 0


def test_pseudonyms_are_those_of_every_run_with_the_key_and_the_level() -> None:
    found = {}
    for level in ("record", "dataset"):
        for which in ("plain", "remap"):
            made = searching("pseudonym", which, level)
            for run_id in ("r", "s"):
                (text,), _ = made.privatize(
                    pa.array([TEXT]), column=run_id, row_ids=pa.array([1]), key=KEY, run_id=run_id
                )
                found.setdefault(level, set()).add(text.as_py().splitlines()[-1])
    assert [len(some) for some in found.values()] == [1, 1]
    tokens = {
        searching("pseudonym", "plain", "token")
        .privatize(pa.array([TEXT]), column="c", row_ids=pa.array([1]), key=KEY, run_id=run_id)[0][0]
        .as_py()
        .splitlines()[-1]
        for run_id in ("r", "s")
    }
    assert len(tokens) == 2


@pytest.mark.parametrize("action", SEARCHED)
def test_what_a_list_keeps_or_masks_comes_before_the_search(action: str) -> None:
    lists = [WordList.of("a", [b"Oslo"]), WordList.of("b", [b"Ada Lovelace", b"Mary"])]
    made = searching(action, "plain", "token").with_names(Names(compile_names(lists, name_key(KEY, "r")), 1))
    (found,) = drawn(made, ["Ada Lovelace, Mary Smith and Oslo"])
    assert found.startswith("Ada Lovelace, Mary ")
    assert found.endswith("[NAME]")
    assert "Smith" not in found


def test_a_search_enters_the_fingerprint_and_its_absence_does_not() -> None:
    plain = model("plain", "token")
    assert (
        replace(plain, policy=replace(plain.policy, names="none"), fingerprint="").fingerprint
        == plain.fingerprint
    )  # type: ignore[arg-type]
    prints = {
        searching(action, "plain", "token", location=other).fingerprint
        for action, other in product(SEARCHED, SEARCHED)
    }
    assert len(prints | {plain.fingerprint}) == 5


def test_a_model_with_a_search_is_saved_and_opened(tmp_path: Path) -> None:
    made = searching("pseudonym", "plain", "record")
    save_model(made, tmp_path / "model")
    opened = open_model(tmp_path / "model")
    assert opened.policy == made.policy
    assert drawn(opened, [TEXT]) == drawn(made, [TEXT])


def test_a_model_for_other_lists_is_refused() -> None:
    made = model("plain", "token")
    policy = replace(made.policy, names=NameSearch(lists=True, version="0"))
    with pytest.raises(SettingsError, match=r"policy\.names\.version: '0'"):
        replace(made, policy=policy, fingerprint="")


def test_a_provider_may_not_take_the_types_of_parts() -> None:
    made = model("plain", "token")

    @dataclass(frozen=True)
    class Own:
        name: str = "own"
        types: tuple[str, ...] = ("surname",)

        def find(self, texts: pa.Array) -> TypedSpans:
            return TypedSpans([], [], [], [])

    assert replace(made, providers=(Own(),), fingerprint="").providers
    with pytest.raises(SettingsError, match="the type 'surname' of 'own' is taken"):
        replace(searching("mask", "plain", "token"), providers=(Own(),), fingerprint="")


@pytest.mark.parametrize("action", SEARCHED)
def test_a_preview_shows_what_takes_the_place_of_a_name(action: str) -> None:
    found = preview(searching(action, "plain", "token"), "World, Ada Lovelace of Oslo met Dr. Zorblax")
    shown = {word.text: word for word in found.words}
    names = (
        ("Ada", "Lovelace", "Oslo", "Zorblax")
        if action == "pseudonym"
        else ("Ada Lovelace", "Oslo", "Zorblax")
    )
    for name in names:
        word = shown[name]
        assert (word.action, word.reason) == (
            "pseudonym" if action == "pseudonym" else "masked", "a name, by public lists",
        )  # fmt: skip
        assert word.became
        assert word.became in found.output
        assert word.became != name
    assert ("[PERSON]" in found.output) is (action == "mask")
