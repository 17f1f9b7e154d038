"""The texts that a model's classifier reads are those that a plain reading names, and the words that names are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.arrays import I64, U8
from dptext_spark.encoder.candidates import (
    CANDIDATES_VERSION,
    candidates,
    capitalised,
    in_small_letters,
    name_words,
)
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.text.chunks import padded
from dptext_spark.text.policy import packaged_stop_words
from dptext_spark.text.word_table import CLITICS, WordTable
from tests.core.encoder import plain_candidates as plain

WORDS = ["film", "time", "mother", "law", "people", "long-winded", "strasse", "straße", "東京"]
LONG = "unheardof" * 40
WRITTEN = [
    *WORDS, "xqzt", "Film", "TIME", "anna", "Anna", "new", "york", "los", "angeles", "grace", "hope", "will", "the", "don't",
    "they\u2019ve", "film's", "mother-in-law", "mother-in-xqzt", "o'brien", "I", "x", "I'm", "d'Arcy", "e\u0301cole", "é",
    "zürich", "st.", "j.", "12", "a1b", "abc123", "москва", "\u0301", "ﬁlm", "İ", "😀", "'", "", "ve", "san", "jose", LONG,
    f"{LONG}-film",
]  # fmt: skip
JOINTS = [*[" "] * 8, "\n", ", ", ". ", "-", "'", "\u2019", "  ", "@", "\u200d", "_"]
some_text = st.lists(st.tuples(st.sampled_from(WRITTEN), st.sampled_from(JOINTS)), max_size=6).map(
    lambda pairs: "".join(word + joint for word, joint in pairs)
)
# What CANDIDATES_VERSION stands for: where this fails, other texts are read, and it goes up.
CONTENT = "2", "d7dcf57612180bd0"


@cache
def table() -> WordTable:
    return WordTable.build(Vocabulary.of(sorted(WORDS)), packaged_stop_words())


def known() -> set[str]:
    clitics = {*CLITICS, *(f"'{clitic}" for clitic in CLITICS)}
    return {*WORDS, *packaged_stop_words(), *clitics}


def read(
    texts: list[str] | list[bytes], starts: list[int] | None = None, ends: list[int] | None = None
) -> list[bool]:
    data, rows = padded(pa.array(texts))
    found = candidates(
        data, rows, table(), *(None if one is None else np.array(one, np.int64) for one in (starts, ends))
    )
    return [bool(one) for one in found]


@pytest.mark.cluster
@given(st.lists(some_text, min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
def test_texts_are_those_of_a_plain_reading(texts: list[str]) -> None:
    assert read(texts) == [plain.is_read(text, known()) for text in texts]


@pytest.mark.long
@given(
    st.lists(
        st.tuples(some_text, st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=3)),
        max_size=6,
    )
)
@settings(max_examples=150, deadline=None)
def test_identifiers_are_no_unknown_words(given_: list[tuple[str, list[tuple[int, int]]]]) -> None:
    """Stretches of whole characters, in any order, some of them overlapping."""
    texts = [text for text, _ in given_]
    stretches, starts, ends = [], [], []
    shift = 0
    for text, some in given_:
        own = [(min(start, len(text)), min(start + size, len(text))) for start, size in some]
        stretches.append(own)
        starts += [shift + len(text[:start].encode()) for start, _ in own]
        ends += [shift + len(text[:end].encode()) for _, end in own]
        shift += len(text.encode())
    if texts:
        expected = [plain.is_read(text, known(), own) for text, own in zip(texts, stretches, strict=True)]
        assert read(texts, starts[::-1], ends[::-1]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False), ("the film", False), ("the time of people", False), ("a film about 1234 people", False),
        ("the Film", True), ("Film", True),  # a capital, also where a sentence begins
        ("the xqzt", True), ("the x", False), ("film xq-film", True),  # unknown, of two letters or more
        ("mother-in-law", False), ("film's people don't", False), ("a long-winded film", False), ("the winded film", True),
        ("people film2", False), ("people xq2", True),
        ("the 東", False), ("the 東京", True),  # without case, every letter is as good as a capital
        ("the will", False), ("by the", False),
    ],
)  # fmt: skip
def test_what_is_a_candidate(text: str, expected: bool) -> None:
    assert read(["the film", text, "time"]) == [False, expected, False]


@pytest.mark.long
def test_listed_words_are_candidates_where_the_lexicon_knows_them() -> None:
    words = ["anna", "new", "york", "los", "angeles", "in", "hope", "sun", "met", "we"]
    known_ = WordTable.build(Vocabulary.of(sorted(words)), packaged_stop_words())
    texts = ["we met anna", "new sun in york", "we met in los angeles", "los sun angeles"]
    texts += ["sun in los", "hope", "we met"]
    data, rows = padded(pa.array(texts))
    found = candidates(data, rows, known_).tolist()
    assert found == [plain.holds_listed(text) for text in texts]
    assert found == [True, False, True, False, False, False, False]


def test_identifiers_and_words_beside_them() -> None:
    text = "film xqzt@example.org film"
    assert read([text]) == [True]
    assert read([text], [5], [21]) == [False]
    assert read([text], [5], [8]) == [True]  # example stands outside
    assert read(["film", text, "xqzt"], [9], [25]) == [False, False, True]


def test_bytes_that_are_no_text_and_slices() -> None:
    assert read([b"\xff\xfe film", b"film \xc3", b"\xff xqzt", b"xqzt\xff"]) == [False, False, True, False]
    texts = pa.array(["xqzt", None, "film", "xqzt"])[1:]
    assert candidates(*padded(texts), table()).tolist() == [False, False, True]


def test_a_batch_equals_its_texts_alone() -> None:
    texts = [f"{a} {b}" for a in WRITTEN for b in WRITTEN[:12]]
    assert read(texts) == [read([text])[0] for text in texts]


def test_the_version_stands_for_the_rule() -> None:
    """Each word of the lexicon is a text, and so are pairs of those above."""
    words = Lexicon.default().vocabulary
    texts = [*words.strings().to_pylist(), *(f"{a} {b}" for a in WRITTEN for b in WRITTEN)]
    found = candidates(*padded(pa.array(texts)), WordTable.build(words, packaged_stop_words()))
    assert 0 < found[: len(words)].sum() < len(words)
    assert (CANDIDATES_VERSION, hashlib.sha256(np.packbits(found).tobytes()).hexdigest()[:16]) == CONTENT


def batch(texts: Sequence[str | bytes]) -> tuple[U8, I64]:
    return padded(pa.array([one.encode() if isinstance(one, str) else one for one in texts], pa.binary()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met Anna there", True), ("Then it began", True), ("ANNA", True), ("anna", False), ("", False), ("I am A b", False),
        ("I'm, I'll, I'd and I\u2019ve", False), ("d'Arcy", True), ("D'arcy", True), ("O\u2019neil", True), ("I 'till", False),
        ("ex-Merkel", True), ("X-ray", False), ("iPhone", False), ("Émile", True), ("E\u0301mile", True), ("e\u0301mile", False),
        ("É", False), ("ǅungla", True), ("İstanbul", True), ("\u0131stanbul", True), ("Ωmega", True), ("москва", False),
        ("Москва", True),
        ("東京", True), ("東", False), ("مرحبا", True), ("123 ABC", True), ("12B", False), ("😀 ok", False),
        (b"\xff\xfe no \xc3", False), (b"\xff Yes", True), ("a\u200dB", False),
    ],
)  # fmt: skip
def test_which_texts_hold_a_word_that_is_written_like_a_name(text: str | bytes, expected: bool) -> None:
    assert capitalised(*batch([text])).tolist() == [expected]
    assert capitalised(*batch(["nothing", text] * 2)).tolist() == [False, expected] * 2


def test_words_and_how_they_follow_each_other() -> None:
    texts = [
        "Anna  Maria-Luise O'Neil",
        "A. Keller, Anna. Keller\nKeller",
        b"ab\xffcd",
        "",
        "é\u200dé \u2019x",
    ]
    data, rows = batch(texts)
    found = name_words(data, rows)
    cut = [data[start:end].tobytes().decode() for start, end in zip(found.starts, found.ends, strict=True)]
    expected = [
        (0, "Anna", False), (0, "Maria-Luise", True), (0, "O'Neil", True), (1, "A", False), (1, "Keller", True),
        (1, "Anna", False), (1, "Keller", False), (1, "Keller", False), (2, "cd", False), (4, "é\u200dé", False),
        (4, "x", True),
    ]  # fmt: skip
    assert list(zip(found.texts.tolist(), cut, found.joined.tolist(), strict=True)) == expected


def test_more_words_than_there_was_room_for() -> None:
    data, rows = batch(["a b " * 4000])
    found = name_words(data, rows)
    assert len(found.starts) == 8000
    assert np.array_equal(found.starts, 2 * np.arange(8000))
    assert found.joined.sum() == 7999


def test_words_in_small_letters_are_those_of_scripts_with_capitals() -> None:
    small = ["oslo", "al-asad", "d'arc", "привет", "é", "e\u0301mile"]
    others = ["Oslo", "OSLO", "iPhone", "d'Arc", "Привет", "李", "É", "한국", "al-Asad"]
    data, rows = batch([" ".join([*small, *others]), "", "3d 4 x", "Oslo"])
    words = name_words(data, rows)
    spelt = [bytes(data[a:b]).decode() for a, b in zip(words.starts, words.ends, strict=True)]
    assert spelt == [*small, *others, "d", "x", "Oslo"]
    expected = [True] * len(small) + [False] * len(others) + [True, True, False]
    assert in_small_letters(data, words).tolist() == expected
