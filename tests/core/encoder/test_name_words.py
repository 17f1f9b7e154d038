"""The words that names are made of, and the texts that hold one that is written like a name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.arrays import I64, U8
from dptext_spark.encoder.candidates import capitalised, in_small_letters, name_words
from dptext_spark.text.engine import padded


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
    assert capitalised(*batch(["nothing", text, "nor this", text])).tolist() == [
        False,
        expected,
        False,
        expected,
    ]


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
    assert in_small_letters(data, words).tolist() == [True] * len(small) + [False] * len(others) + [
        True,
        True,
        False,
    ]
