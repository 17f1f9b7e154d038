"""Pairing a source with its output, whole or word by word: nothing sound is called broken, and what is broken is found."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.importance.budget import Budget, BudgetSelector
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey, hash_keys
from dptext_spark.text.engine import Engine
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.pair_tokens import align, pair
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import (
    DRAWN_WORD,
    KEPT_WORD,
    NO_WORD,
    NUMBER,
    UNKNOWN,
    UNKNOWN_WORD,
    Words,
    words_of,
)
from dptext_spark.text.word_table import WordTable
from tests.core.names import beginning
from tests.core.text.samples import NAMING, NAMING_TEXTS, WORDS, FirstLane, Step, list_of, run

LEVELS, NAMED_TEXTS = st.sampled_from(["record", "dataset"]), st.lists(NAMING_TEXTS, min_size=1, max_size=3)
KEYS = hash_keys(RunKey.insecure(9).derive("audit", length=16))


@functools.cache
def privatizers(policy: Policy, level: Any) -> tuple[Privatizer, Privatizer]:
    """A privatizer, and one that changes nothing but gaps and case."""
    made = Privatizer(Vocabulary.of(list(WORDS)), FirstLane(0, len(WORDS)), policy, level)
    same = dataclasses.replace(policy, oov="keep", numbers="keep")
    return made, Privatizer(made.vocabulary, Step(0, len(WORDS)), same, "token", "unchanging", made.table)


def aligned(made: Privatizer, plain: Privatizer, source: list[str], output: list[str], **more: bool) -> Any:
    """Pair an output with what the privatizer that changes nothing makes of its source."""
    shaped, _, placed = plain.privatize_with_spans(
        pa.array(source, pa.string()),
        column="", row_ids=pa.array(range(len(source)), pa.int64()), key=RunKey.insecure(1),
    )  # fmt: skip
    return align(made.engine, shaped, pa.array(output, pa.string()), KEYS, placed, **more)


def audit(policy: Policy, level: str, source: list[str], output: list[str]) -> tuple[list[bool], int, int]:
    """Which rows fit; how many groups of equal words there are; how many of them have two replacements."""
    made, plain = privatizers(policy, level)
    groups, replacements, rows, fits = aligned(made, plain, source, output)
    assert len(groups) == len(replacements) == len(rows)
    assert fits[rows].all()
    return fits.tolist(), len({*map(tuple, groups.tolist())}), broken_groups(groups, replacements)


def broken_groups(groups: Any, replacements: Any, rows: Any = None) -> int:
    """How many groups of equal words, of all rows or of each, have two replacements."""
    seen: dict[Any, set[int]] = {}
    of = [None] * len(groups) if rows is None else rows.tolist()
    for row, group, replacement in zip(of, map(tuple, groups.tolist()), replacements.tolist(), strict=True):
        seen.setdefault((row, group), set()).add(replacement)
    return sum(len(some) > 1 for some in seen.values())


@pytest.mark.long
@settings(max_examples=300)
@given(policy=NAMING, texts=NAMED_TEXTS, most=st.integers(1, 3))
def test_no_false_alarm_where_a_budget_masks_words(policy: Policy, texts: list[str], most: int) -> None:
    selector = BudgetSelector(Budget(record=1.0), np.array([most]))
    plain = privatizers(policy, "record")
    made = dataclasses.replace(plain[0], selector=selector, fingerprint="")
    output = [text.decode() for text in run(made, texts)[0]]
    groups, replacements, rows, fits = aligned(*plain, texts, output, masks_words=True)
    assert fits.tolist() == [True] * len(texts)
    assert broken_groups(groups, replacements, rows) == 0


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
    for masks in (True, False):
        found = aligned(*privatizers(Policy(), "record"), ["dog ox-dog ox."], [output], masks_words=masks)
        assert found[3].tolist() == [fits and masks]


@pytest.mark.parametrize("source", ["itdon't½don't", "dog-the-ox-the-it"])
@pytest.mark.parametrize("step", range(len(WORDS)))
def test_a_kept_part_that_comes_twice_ends_no_word_late(source: str, step: int) -> None:
    """The longest replacement of the first word would reach to the second kept part."""
    policy = Policy(oov="draw")
    moved = Privatizer(Vocabulary.of(list(WORDS)), Step(step, len(WORDS)), policy, "token")
    made, plain = privatizers(policy, "token")
    output = [text.decode() for text in run(moved, [source])[0]]
    assert aligned(made, plain, [source], output)[3].tolist() == [True]


@pytest.mark.long
@settings(max_examples=500)
@given(policy=NAMING, level=LEVELS, texts=NAMED_TEXTS)
def test_no_false_alarm(policy: Policy, level: str, texts: list[str]) -> None:
    """A false alarm fails a run that is sound."""
    out, _ = run(privatizers(policy, level)[0], texts, record_ids=pa.array(["r"] * len(texts)))
    fits, _, broken = audit(policy, level, texts, [text.decode() for text in out])
    assert all(fits)
    assert broken == 0


LISTED = {
    "person": ("Ada Lovelace", "Robert", "Mary Ann", "Smith-Jones"),
    "location": ("New York", "Oslo"),
    "mask": ("cat ox", "zebra"),
    "keep": ("dog",),
}


@functools.cache
def lists_of_names() -> NameMatcher:
    return NameMatcher(NameTable.of([list_of(*some) for some in LISTED.values()], tuple(LISTED)))


@pytest.mark.long
@settings(max_examples=300)
@given(policy=NAMING, level=LEVELS, texts=NAMED_TEXTS)
def test_no_false_alarm_where_lists_have_pseudonyms(policy: Policy, level: str, texts: list[str]) -> None:
    made, plain = (one.with_names(lists_of_names()) for one in privatizers(policy, level))
    out, _ = run(made, texts, record_ids=pa.array(["r"] * len(texts)))
    output = [text.decode() for text in out]
    groups, replacements, _, fits = aligned(privatizers(policy, level)[0], plain, texts, output)
    assert fits.tolist() == [True] * len(texts)
    assert broken_groups(groups, replacements) == 0


@pytest.mark.parametrize("text", ["X-XSELF-MADE", "Mary-Ann-made", "x-Mary-Ann-Robert-zebra", "c=1.Oslo1 x"])
@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_a_hyphen_or_number_behind_a_pseudonym_is_no_part_of_it(text: str, tokenizer: str) -> None:
    names = NameSearch(lists=True, person="pseudonym", location="pseudonym")
    policy = Policy(oov="draw", tokenizer=tokenizer, names=names)
    made, plain = (one.with_names(lists_of_names()) for one in privatizers(policy, "record"))
    out, _ = run(made, [text], record_ids=pa.array(["r"]))
    assert aligned(privatizers(policy, "record")[0], plain, [text], [out[0].decode()])[3].tolist() == [True]


@pytest.mark.parametrize(("output", "fits"), [
    ("Robert Smith met dog.", True), ("Xavier Smith met dog.", True), ("Robert Smith met cat.", False),
    ("Robert met dog.", False), ("Robert, Smith met dog.", False),
])  # fmt: skip
def test_what_is_no_pseudonym_of_a_list_does_not_fit(output: str, fits: bool) -> None:
    made, plain = privatizers(Policy(stop_word_list=("met",)), "record")
    listing = plain.with_names(lists_of_names())
    assert aligned(made, listing, ["Ada Lovelace met dog."], [output])[3].tolist() == [fits]


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
        out, _ = run(privatizers(policy, "record")[0], [text], key=RunKey.insecure(key))
        fits, groups, broken = audit(policy, "record", [text], [out[0].decode()])
        assert fits == [True]
        assert broken == 0
        assert groups > 0


@pytest.mark.parametrize(
    ("source", "output", "groups", "broken"),
    [
        (["cat dog cat", "CAT the frob"], ["ox ox ox", "OX the [OOV]"], 3, 0),
        (["cat dog cat", "CAT the frob"], ["ox ox zebra", "OX the [OOV]"], 3, 1),
        (["cat dog cat", "CAT the frob"], ["ox ox ox", "DON the [OOV]"], 3, 1),
        (["12 12 3"], ["45 45 6"], 2, 0),
        (["12 12 3"], ["45 44 6"], 2, 1),
        ([], [], 0, 0),
        (["", " "], ["", " "], 0, 0),
    ],
)
def test_two_replacements_of_one_word_are_found(source: Any, output: Any, groups: int, broken: int) -> None:
    assert audit(Policy(), "record", source, output) == ([True] * len(source), groups, broken)


MISFITS = (
    *("", "ox", "ox [OOV]", "ox  [OOV], the 45!", "ox [OOV], the 45", "ox [OOV], the 45!!", "ox [OOV], the 456!"),
    *("ox [OOV], it 45!", "ox [OOV]; the 45!", "[OOV], the 45!", "!ox [OOV], the 45!", "ox frob, the 45!"),
    "7 [OOV], the 45!",
)  # fmt: skip


@pytest.mark.parametrize("output", MISFITS)
def test_what_was_not_made_from_the_source_does_not_fit(output: str) -> None:
    source = "cat frob, the 12!"
    assert audit(Policy(), "record", [source], ["ox [OOV], the 45!"])[0] == [True]
    fits, groups, _ = audit(Policy(), "record", [source, source], [output, "ox [OOV], the 45!"])
    assert fits == [False, True]
    assert groups == 3


def test_a_planted_replacement_is_found_anywhere() -> None:
    """Every word of a longer output in turn is replaced by another one."""
    words = ["cat", "dog", "ox", "zebra", "été", "internationalisation"] * 3
    out, _ = run(privatizers(Policy(), "dataset")[0], [" ".join(words)])
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


def test_hashes_are_keyed() -> None:
    keys = (KEYS, hash_keys(RunKey.insecure(8).derive("audit", length=16)))
    engine = privatizers(Policy(), "record")[0].engine
    first, other = (align(engine, pa.array(["cat"]), pa.array(["ox"]), key) for key in keys)
    assert first[0].tolist() != other[0].tolist()
    assert int(first[1][0]) not in np.asarray(other[1]).tolist()


PAIR_KEYS = (np.uint64(5), np.uint64(7))
LEXICON = ("the", "dog", "cat", "house", "mother-in-law", "well", "known")


@pytest.fixture(scope="module")
def read() -> Callable[..., Words]:
    vocabulary = Vocabulary.of(pa.array(LEXICON))

    def words(*texts: str | bytes | None, **policy: object) -> Words:
        chosen = Policy(**policy)  # type: ignore[arg-type]
        engine = Engine(WordTable.build(vocabulary, chosen.stop_list()), chosen)
        return words_of(
            engine, pa.array(texts, pa.binary() if isinstance(texts[0], bytes) else pa.string()), PAIR_KEYS
        )

    return words


def test_each_word_has_its_kind_its_id_and_its_place(read) -> None:
    words = read("The dog,  cat-zzz 12", None, "House")
    assert words.kind.tolist() == [KEPT_WORD, DRAWN_WORD, DRAWN_WORD, UNKNOWN_WORD, NUMBER, DRAWN_WORD]
    assert words.ids.tolist() == [0, 1, 2, UNKNOWN, UNKNOWN, 3]
    assert words.starts.tolist() == [0, 1, 2, 4, 5, 6]
    assert words.pieces.tolist() == [0, 4, 4, 5]
    assert words.bounds.tolist() == [0, 5, 5, 6]
    assert words.marked.tolist() == [False, False, True, False, False, False]
    assert not words.invalid.any()


def test_the_policy_says_what_is_drawn_and_nothing_else(read) -> None:
    for oov in ("mask", "draw", "keep"):
        for numbers in ("random", "mask", "keep"):
            words = read("the dog zzz 12", oov=oov, numbers=numbers)
            assert words.kind.tolist() == [KEPT_WORD, DRAWN_WORD, UNKNOWN_WORD, NUMBER]
    assert read("the dog", stop_words="draw").kind.tolist() == [DRAWN_WORD, DRAWN_WORD]


def test_forms_are_equal_without_case_and_hold_no_word(read) -> None:
    form = read("Dog dog DOG cat").form
    assert (form[:3] == form[0]).all()
    assert (form[3] != form[0]).all()
    assert b"dog" not in form.tobytes()


def test_invalid_text_is_marked(read) -> None:
    assert read(b"dog", b"dog \xff\xfe").invalid.tolist() == [False, True]


@pytest.mark.parametrize(
    ("source", "output", "partner"),
    [
        ("dog cat", "house well", [0, 1]),
        ("dog  cat\n", "house well", [0, 1]),
        ("a zzz b", "a [OOV] b", [0, 1, 2]),
        ("dog, cat-house 12", "dog, well-known 97", [0, 1, 2, 3]),
        ("dog cat", "dog", [-1, -1]),
        ("dog cat", "dog the cat", [-1, -1]),
        # One word becomes three within a piece: the pieces beside it stay aligned.
        ("dog cat-house well", "dog cat-well-known dog", [0, -1, -1, 4]),
        ("-- dog !", "dog", [0]),
        ("", "", []),
        (None, "", []),
        ("dog", None, [-1]),
    ],
)
def test_words_are_paired_within_pieces(read, source, output, partner: list[int]) -> None:
    assert pair(read(source), read(output)).partner.tolist() == partner


def test_rows_are_apart(read) -> None:
    found = pair(read("dog", "cat house", "well"), read("cat", "cat", "known"))
    assert found.partner.tolist() == [0, -1, -1, 2]
    assert found.rows.tolist() == [True, False, True]


def test_only_words_alone_in_their_piece_are_sure(read) -> None:
    # A drawn word may hold a hyphen of its own: where it ends beside another one is not certain.
    found = pair(read("dog cat-house"), read("mother-in-law well-known"))
    assert found.alone.tolist() == [True, False, False]


def test_what_the_engine_writes_is_aligned() -> None:
    """Words of the packaged lexicon, unknown ones, numbers, clitics and joiners between them."""
    lexicon, rows = beginning(Lexicon.default(), 5000), range(1200)
    words = lexicon.vocabulary.strings().to_pylist()
    made = Privatizer(lexicon, CusText(k=10).compile(lexicon))
    texts = pa.array([
        f"{words[7 * i % 5000]}, {words[i].title()}-{words[2 * i]} zanzibarian{i} isn't {i}.5 ({words[3 * i]}) état-{words[i]}"
        for i in rows
    ])  # fmt: skip
    out, _ = made.privatize(texts, column="", row_ids=pa.array(rows), key=RunKey.insecure(1))
    found = pair(*(words_of(made.engine, some, PAIR_KEYS) for some in (texts, out)))
    assert found.rows.all()
    assert (found.partner >= 0).mean() > 0.98


def test_an_identifier_is_paired_with_its_placeholder_and_is_no_word(read: Callable[..., Words]) -> None:
    source, output = read("The cat 0171 1234567, dog jane@example.com"), read("The dog [PHONE], cat [EMAIL]")
    for words in (source, output):
        assert words.kind.tolist() == [KEPT_WORD, DRAWN_WORD, NO_WORD, DRAWN_WORD, NO_WORD]
    assert pair(source, output).partner.tolist() == [0, 1, 2, 3, 4]
