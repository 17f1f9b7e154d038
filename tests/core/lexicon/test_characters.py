"""The packaged character tables against Python's own Unicode database, and the loops that read them."""

# Look-alikes of other scripts are what these tables are about.
# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon import characters as ch
from tests.core.text import plain_engine as plain
from tools.characters import PACKAGED, build

KINDS = (ch.PASS, ch.SPACE, ch.LETTER, ch.MARK, ch.DIGIT, ch.APOSTROPHE, ch.HYPHEN, ch.EXTEND, ch.OTHER)
NAMES = dict(zip(KINDS, "PSLMDAHXO", strict=True))


@cache
def codes() -> list[int]:
    return [c for c in range(0x110000) if plain.comparable(chr(c))]


def cells() -> np.ndarray:
    points = np.arange(0x110000)
    return ch.tables().stage[points >> 7].astype(np.int64) * 128 + (points & 127)


@pytest.mark.long
def test_the_class_of_every_code_point() -> None:
    classes = ch.tables().classes[cells()]
    assert [c for c in codes() if NAMES[int(classes[c])] != plain.kind(chr(c))] == []
    # What never changes: no characters, private use, surrogates.
    for c in (*range(0xFDD0, 0xFDF0), *range(0xE000, 0xF900), *range(0xD800, 0xE000)):
        assert classes[c] == ch.OTHER


def test_the_case_of_every_code_point() -> None:
    table, where = ch.tables(), cells()
    points = np.arange(0x110000)
    lower, upper = points + table.lower[where], points + table.upper[where]
    for c in codes():
        if not 0xD800 <= c < 0xE000:
            assert chr(lower[c]) == plain.lower(chr(c)), hex(c)
            assert chr(upper[c]) == plain.upper(chr(c)), hex(c)
    # Lower case has none below it, and upper case leads back: a word is one word in every case.
    assert (lower[lower] == lower).all()
    assert ((upper == points) | (lower[upper] == points)).all()


def test_the_zeros_of_every_decimal_script() -> None:
    zeros = ch.tables().zeros.tolist()
    assert zeros == sorted(zeros)
    wanted = {c for c in codes() if unicodedata.category(chr(c)) == "Nd" and unicodedata.digit(chr(c)) == 0}
    known = {z for z in zeros if plain.comparable(chr(z))}
    assert known == wanted
    for z in known:
        assert [unicodedata.digit(chr(z + i)) for i in range(10)] == list(range(10))


@given(st.text(st.characters(exclude_categories=["Cs"]).filter(plain.comparable), max_size=8))
def test_the_look_up_form_follows_the_table(text: str) -> None:
    assert ch.look_up_form(text) == plain.form(text)


@given(st.characters())
def test_encode_and_decode(char: str) -> None:
    out = np.zeros(12, np.uint8)
    if 0xD800 <= ord(char) < 0xE000:
        data = np.frombuffer(char.encode("utf-8", "surrogatepass"), np.uint8)
        assert ch.decode(data, 0, len(data)) == (-1, 1)
        return
    encoded = char.encode()
    assert ch.encode(ord(char), out, 3) == len(encoded)
    assert out[3 : 3 + len(encoded)].tobytes() == encoded
    assert ch.decode(out, 3, 3 + len(encoded)) == (ord(char), len(encoded))
    for short in range(1, len(encoded)):
        assert ch.decode(out, 3, 3 + short) == (-1, 1)  # the rest is there, but belongs to the next row


@given(st.binary(min_size=4, max_size=4))
def test_decode_accepts_what_python_accepts(data: bytes) -> None:
    wanted = (-1, 1)
    for n in range(1, 5):
        try:
            wanted = (ord(data[:n].decode()), n)
            break
        except (UnicodeDecodeError, TypeError):
            continue
    assert ch.decode(np.frombuffer(data, np.uint8), 0, 4) == wanted


YES = ["cat", "o'clock", "mother-in-law", "e\u0301te\u0301", "می\u200cخواهم", "日本"]
BETWEEN_SPACES = ["cat's-", "-cat", "'s", "cat--dog", "cat'-dog", "cat\u200d", "\u0301cat"]
BETWEEN_SPACES += ["1980s", "3", "½", "."]
# The Kelvin sign is looked up as k, the curly apostrophe as the straight one; a NUL is lost in the padding of a look-up key.
NEVER = ["", "Cat", "\u212a", "o\u2019clock", "two words", "a\u00a0b", "a\tb", "a\0"]


class TestProducible:
    def test_by_name(self) -> None:
        words = pa.array([*YES, *BETWEEN_SPACES, *NEVER])
        count, more, none = len(YES), len(BETWEEN_SPACES), len(NEVER)
        assert ch.producible(words, "words").tolist() == [True] * count + [False] * (more + none)
        assert ch.producible(words, "whitespace").tolist() == [True] * (count + more) + [False] * none

    @given(st.lists(st.text(st.sampled_from("abéZ'-\u2019\u0301\u200d 1½日\u00a0."), max_size=8), max_size=6))
    def test_against_the_plain_tokenizer(self, words: list[str]) -> None:
        def whole(word: str) -> bool:
            match = plain.TOKEN.match("".join(map(plain.kind, word)))
            is_word = match is not None and match.lastgroup == "word" and match.end() == len(word)
            return is_word and plain.form(word) == word

        def between_spaces(word: str) -> bool:
            return bool(word) and "S" not in map(plain.kind, word) and plain.form(word) == word

        for kind in (pa.string(), pa.large_string()):
            array = pa.array(["x y", *words], kind).slice(1)
            assert ch.producible(array).tolist() == list(map(whole, words))
            assert ch.producible(array, "whitespace").tolist() == list(map(between_spaces, words))

    def test_an_unknown_tokenizer(self) -> None:
        with pytest.raises(SettingsError, match="whitespace"):
            ch.producible(pa.array(["a"]), "white")  # type: ignore[arg-type]


def test_what_is_built_anew_is_what_is_read(tmp_path: Path) -> None:
    packaged = Path(str(files("dptext_spark.lexicon").joinpath("characters.npz")))
    assert packaged == PACKAGED
    build(tmp_path / "built.npz")
    with np.load(packaged) as read, np.load(tmp_path / "built.npz") as built:
        assert set(built) == set(read)
        assert {name: built[name].dtype for name in built} == {name: read[name].dtype for name in read}
        same = str(built["unicode_version"]) == str(read["unicode_version"])  # of Python's own database
        for name in built if same else ():
            np.testing.assert_array_equal(built[name], read[name])
