"""Pairing a source with its output: nothing sound is called broken, and what is broken is found."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.importance.budget import Budget, BudgetSelector
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey, hash_keys
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.word_list import WordList
from dptext_spark.text.pair_tokens import align
from dptext_spark.text.policy import Policy
from tests.core.text.samples import NAMING, NAMING_TEXTS, WORDS, FirstLane, Step, run

KEYS = hash_keys(RunKey.insecure(9).derive("audit", length=16))


@functools.cache
def pair(policy: Policy, level: Any) -> tuple[Privatizer, Privatizer]:
    """A privatizer, and one that changes nothing but gaps and case."""
    made = Privatizer(Vocabulary.of(list(WORDS)), FirstLane(0, len(WORDS)), policy, level)
    same = dataclasses.replace(policy, oov="keep", numbers="keep")
    return made, Privatizer(made.vocabulary, Step(0, len(WORDS)), same, "token", "unchanging", made.table)


def audit(policy: Policy, level: str, source: list[str], output: list[str]) -> tuple[list[bool], int, int]:
    """Which rows fit; how many groups of equal words there are; how many of them have two replacements."""
    made, plain = pair(policy, level)
    shaped, _, placed = plain.privatize_with_spans(
        pa.array(source, pa.string()),
        column="",
        row_ids=pa.array(range(len(source)), pa.int64()),
        key=RunKey.insecure(1),
    )
    groups, replacements, rows, fits = align(made.engine, shaped, pa.array(output, pa.string()), KEYS, placed)
    assert len(groups) == len(replacements) == len(rows)
    assert fits[rows].all()
    seen: dict[Any, set[int]] = {}
    for group, replacement in zip(map(tuple, groups.tolist()), replacements.tolist(), strict=True):
        seen.setdefault(group, set()).add(replacement)
    return fits.tolist(), len(seen), sum(len(s) > 1 for s in seen.values())


def align_under_budget(policy: Policy, texts: list[str], output: list[str], *, known: bool = True) -> Any:
    _, plain = pair(policy, "record")
    ids = pa.array(range(len(texts)), pa.int64())
    shaped, _, placed = plain.privatize_with_spans(
        pa.array(texts, pa.string()), column="", row_ids=ids, key=RunKey.insecure(1)
    )
    engine = pair(policy, "record")[0].engine
    return align(engine, shaped, pa.array(output, pa.string()), KEYS, placed, masks_words=known)


@pytest.mark.long
@settings(max_examples=300)
@given(policy=NAMING, texts=st.lists(NAMING_TEXTS, min_size=1, max_size=3), most=st.integers(1, 3))
def test_no_false_alarm_where_a_budget_masks_words(policy: Policy, texts: list[str], most: int) -> None:
    selector = BudgetSelector(Budget(record=1.0), np.array([most]))
    made = dataclasses.replace(pair(policy, "record")[0], selector=selector, fingerprint="")
    output = [text.decode() for text in run(made, texts)[0]]
    groups, replacements, rows, fits = align_under_budget(policy, texts, output)
    assert fits.tolist() == [True] * len(texts)
    seen: dict[Any, set[int]] = {}
    for row, group, one in zip(
        rows.tolist(), map(tuple, groups.tolist()), replacements.tolist(), strict=True
    ):
        seen.setdefault((row, group), set()).add(one)
    assert all(len(found) == 1 for found in seen.values())


@pytest.mark.parametrize(
    ("output", "fits"),
    [
        ("[BGT] [BGT]-[BGT] [BGT].", True),
        ("cat [BGT]-cat cat.", True),
        ("cat cat-[BGT] cat.", True),
        ("cat [BGT]--cat cat.", False),
        ("cat [BGT]- cat.", False),
        ("cat [BGX]-cat cat.", False),
        ("cat [BGT]-cat [BGT]", False),
    ],
)
def test_what_a_budget_masks_stands_in_the_place_of_a_word(output: str, fits: bool) -> None:
    source = ["dog ox-dog ox."]
    assert align_under_budget(Policy(), source, [output])[3].tolist() == [fits]
    assert align_under_budget(Policy(), source, [output], known=False)[3].tolist() == [False]


@pytest.mark.long
@settings(max_examples=500)
@given(
    policy=NAMING,
    level=st.sampled_from(["record", "dataset"]),
    texts=st.lists(NAMING_TEXTS, min_size=1, max_size=3),
)
def test_no_false_alarm(policy: Policy, level: str, texts: list[str]) -> None:
    """A false alarm fails a run that is sound."""
    out, _ = run(pair(policy, level)[0], texts, record_ids=pa.array(["r"] * len(texts)))
    fits, _, broken = audit(policy, level, texts, [text.decode() for text in out])
    assert all(fits)
    assert broken == 0


LISTED = (
    ("Ada Lovelace", "Robert", "Mary Ann", "Smith-Jones"),
    ("New York", "Oslo"),
    ("cat ox", "zebra"),
    ("dog",),
)


@functools.cache
def lists_of_names() -> Names:
    lists = [WordList.of("list", [one.encode() for one in some]) for some in LISTED]
    table = compile_names(lists, name_key(RunKey.insecure(0), "r"))
    return Names(table, 3, kinds=("person", "location", None))


@pytest.mark.long
@settings(max_examples=300)
@given(
    policy=NAMING,
    level=st.sampled_from(["record", "dataset"]),
    texts=st.lists(NAMING_TEXTS, min_size=1, max_size=3),
)
def test_no_false_alarm_where_lists_have_pseudonyms(policy: Policy, level: str, texts: list[str]) -> None:
    made, plain = (one.with_names(lists_of_names()) for one in pair(policy, level))
    out, _ = run(made, texts, record_ids=pa.array(["r"] * len(texts)))
    output = [text.decode() for text in out]
    shaped, _, placed = plain.privatize_with_spans(
        pa.array(texts), column="", row_ids=pa.array(range(len(texts)), pa.int64()), key=RunKey.insecure(1)
    )
    groups, replacements, _, fits = align(
        pair(policy, level)[0].engine, shaped, pa.array(output), KEYS, placed
    )
    assert fits.tolist() == [True] * len(texts)
    seen: dict[Any, set[int]] = {}
    for group, one in zip(map(tuple, groups.tolist()), replacements.tolist(), strict=True):
        seen.setdefault(group, set()).add(one)
    assert all(len(found) == 1 for found in seen.values())


@pytest.mark.parametrize(("output", "fits"), [
    ("Robert Smith met dog.", True), ("Xavier Smith met dog.", True), ("Robert Smith met cat.", False),
    ("Robert met dog.", False), ("Robert, Smith met dog.", False),
])  # fmt: skip
def test_what_is_no_pseudonym_of_a_list_does_not_fit(output: str, fits: bool) -> None:
    made, plain = (
        one.with_names(lists_of_names()) for one in pair(Policy(stop_word_list=("met",)), "record")
    )
    shaped, _, placed = plain.privatize_with_spans(
        pa.array(["Ada Lovelace met dog."]), column="", row_ids=pa.array([0]), key=RunKey.insecure(1)
    )
    engine = pair(Policy(stop_word_list=("met",)), "record")[0].engine
    assert made.engine.finder is not None
    assert align(engine, shaped, pa.array([output]), KEYS, placed)[3].tolist() == [fits]


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (Policy(case="lower"), "the cat's S s 's frob's"),  # a kept clitic, and the same letter as a word
        (Policy(oov="draw"), "1½cups ½ cups ™cat cat™ the™ ™the"),  # words with nothing between them
        (Policy(), "cat-dog cat dog dog-cat ox-cat-dog"),  # replacements hold hyphens and apostrophes
        (Policy(), "1" * 32 + " " + "1" * 16 + " 1"),  # long numbers are drawn in parts
        # Without its joiner the first would be the second, one word in place of two.
        (Policy(gaps="normalise", oov="draw"), "self-\u200dmade self-made"),
        (Policy(oov="keep", case="lower"), "Ⓐ FROB Don'tWHO\u2019LL cat'twho\u2019ll"),
    ],
)
def test_named_sound_outputs(policy: Policy, text: str) -> None:
    for key in range(30):
        out, _ = run(pair(policy, "record")[0], [text], key=RunKey.insecure(key))
        fits, groups, broken = audit(policy, "record", [text], [out[0].decode()])
        assert fits == [True]
        assert broken == 0
        assert groups > 0


def test_two_replacements_of_one_word_are_found() -> None:
    source = ["cat dog cat", "CAT the frob"]
    assert audit(Policy(), "record", source, ["ox ox ox", "OX the [OOV]"]) == ([True, True], 3, 0)
    assert audit(Policy(), "record", source, ["ox ox zebra", "OX the [OOV]"]) == ([True, True], 3, 1)
    assert audit(Policy(), "record", source, ["ox ox ox", "DON the [OOV]"]) == ([True, True], 3, 1)
    assert audit(Policy(), "record", ["12 12 3"], ["45 45 6"]) == ([True], 2, 0)
    assert audit(Policy(), "record", ["12 12 3"], ["45 44 6"]) == ([True], 2, 1)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "ox",
        "ox [OOV]",
        "ox  [OOV], the 45!",
        "ox [OOV], the 45",
        "ox [OOV], the 45!!",
        "ox [OOV], the 456!",
        "ox [OOV], it 45!",
        "ox [OOV]; the 45!",
        "[OOV], the 45!",
        "!ox [OOV], the 45!",
        "ox frob, the 45!",
        "7 [OOV], the 45!",
    ],
)
def test_what_was_not_made_from_the_source_does_not_fit(output: str) -> None:
    source = "cat frob, the 12!"
    assert audit(Policy(), "record", [source], ["ox [OOV], the 45!"])[0] == [True]
    fits, groups, _ = audit(Policy(), "record", [source, source], [output, "ox [OOV], the 45!"])
    assert fits == [False, True]
    assert groups == 3


def test_a_planted_replacement_is_found_anywhere() -> None:
    """Every word of a longer output in turn is replaced by another one."""
    words = ["cat", "dog", "ox", "zebra", "été", "internationalisation"] * 3
    out, _ = run(pair(Policy(), "dataset")[0], [" ".join(words)])
    sound = out[0].decode().split()
    for i in range(len(words)):
        planted = [*sound[:i], "don" if sound[i] != "don" else "cat", *sound[i + 1 :]]
        assert audit(Policy(), "dataset", [" ".join(words)], [" ".join(planted)]) == ([True], 6, 1)


FAKES = Policy(identifiers={"phone": "fake", "email": "fake"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "fits"),
    [
        ("ox x@yy.zz ox 0999 8888, [IP] ox!", True),
        ("ox x@yy.zz ox 0999 8888, [IP] don!", True),
        ("ox xx@y.zz ox 0999 8888, [IP] ox!", False),
        ("ox x@yy.z1 ox 0999 8888, [IP] ox!", False),
        ("ox x@yy.zz ox 0999-8888, [IP] ox!", False),
        ("ox [EMAIL] ox 0999 8888, [IP] ox!", False),
        ("ox x@yy.zz ox 0999 8888, 10.0.0.1 ox!", False),
        ("ox x@yy.zz ox 0999 8888, [EMAIL] ox!", False),
        ("ox x@yy.zz ox 0999 8888, ox!", False),
    ],
)
def test_identifiers_are_compared_by_shape_or_as_placeholders(output: str, fits: bool) -> None:
    source = "cat a@bb.cc dog 0171 1234, 10.0.0.1 cat!"
    result, _, broken = audit(FAKES, "record", [source], [output])
    assert result == [fits]
    assert broken == (1 if fits and "don" in output else 0)


def test_no_rows() -> None:
    assert audit(Policy(), "record", [], []) == ([], 0, 0)
    assert audit(Policy(), "record", ["", " "], ["", " "]) == ([True, True], 0, 0)


def test_hashes_are_keyed() -> None:
    made = pair(Policy(), "record")[0]
    source, output = pa.array(["cat"]), pa.array(["ox"])
    first = align(made.engine, source, output, KEYS)
    other = align(made.engine, source, output, hash_keys(RunKey.insecure(8).derive("audit", length=16)))
    assert first[0].tolist() != other[0].tolist()
    assert int(first[1][0]) not in np.asarray(other[1]).tolist()
