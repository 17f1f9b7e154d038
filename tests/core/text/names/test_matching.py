"""Names are found as a plain reading of the rules finds them, however they are written."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.matching import OWN, NameMatcher
from dptext_spark.text.names.name_table import NameTable
from dptext_spark.text.names.normal_words import FOLDED, FORM, chain, hash_word
from tests.core.text.names.plain_names import find
from tests.core.text.samples import list_of

LISTS = (
    (
        *("Ada Lovelace", "O\u2019Brien", "José", "Jean-Luc Picard", "Straße", "Mary Anne Smith"),
        *("Dr Pepper", "de la Cruz", "Smith"),
    ),
    ("Acme Corp", "Studio 54", "josé", "Bartholomew-Featherstonehaugh", "李小龍", "Anne"),
    ("Smith & Sons", "Byron, Augusta", "A/B Corp", "St. Mary's", "Acme, Inc.", "Ann (Nancy) de Vries"),
)
WRITTEN = (
    "Ada ada A. M. M Lovelace LOVELACE O'Brien OBrien o\u2019brien Jose José jose\u0301 JOSÉ'S Jean Luc Picard Strasse "
    "STRASSE Straße Mary Anne Smith Smith's Dr dr Dr. mrs Pepper de la Cruz Acme Corp Studio 54 545 a I the 李小龍 x\u0345y ﬁn "
    "bartholomew Featherstonehaugh Ms. prof & Sons Byron, Augusta, Byron A/B Corp St. Mary Mary's Acme Inc. Ann (Nancy) "
    "Nancy Vries Byron Augusta"
)
PIECES = (*WRITTEN.split(), "")
JOINTS = (
    *(" ", " ", " ", "  ", "-", ", ", ",", "\n", ". ", ".", "'", "\u2019"),
    *("\u00a0", "\u2010", "; ", "--", ", , ", "\t", " & ", "/", " (", ") ", ""),
)


@cache
def table() -> NameTable:
    return NameTable.of([list_of(*entries) for entries in LISTS])


def found_in(texts: list[str], names: NameTable) -> list[list[tuple[int, int, int]]]:
    """In characters of each text."""
    data, rows = padded(pa.array(texts, pa.string()))
    return in_characters(texts, rows, NameMatcher(names).entries_in(data, rows))


def in_characters(texts: list[str], rows: Any, spans: Any) -> list[list[tuple[int, int, int]]]:
    """The same of each text, in characters."""
    out: list[list[tuple[int, int, int]]] = [[] for _ in texts]
    for begin, end, number, row in spans.tolist():
        raw = texts[row].encode()
        chars = [len(raw[: at - rows[row]].decode()) for at in (begin, end)]
        out[row].append((chars[0], chars[1], number))
    return out


TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(JOINTS)), max_size=12).map(
    lambda pairs: "".join(word + joint for word, joint in pairs)
)


@pytest.mark.long
@settings(max_examples=1200, deadline=None)
@given(st.lists(st.one_of(TEXTS, st.text(max_size=20)), min_size=1, max_size=3))
def test_it_finds_what_the_rules_say(texts: list[str]) -> None:
    assert found_in(texts, table()) == [find(text, [list(one) for one in LISTS]) for text in texts]


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("ADA LOVELACE met obrien's dog", ["ADA LOVELACE", "obrien"]),
        ("Lovelace, Ada; Lovelace , A.", ["Lovelace, Ada", "Lovelace , A."]),
        ("A. Lovelace, but a lovelace", ["A. Lovelace"]),
        ("Dr. Lovelace met Lovelace", ["Lovelace"]),
        ("Mrs Ada Lovelace", ["Ada Lovelace"]),
        ("jose JOSE\u0301 Josés", ["jose", "JOSE\u0301"]),
        ("jean luc picard; Jean-Luc\nPicard", ["jean luc picard"]),
        ("STRASSE strasse straße", ["STRASSE", "strasse", "straße"]),
        ("M. A. Smith, Mary Smith and M. Smith", ["M. A. Smith", "Mary Smith", "M. Smith"]),
        ("Dr Pepper and Dr. Pepper", ["Dr Pepper", "Pepper"]),
        ("studio 54 but not studio 545", ["studio 54"]),
        # With the marks of its entry, and without.
        ("Smith & Sons, Smith&Sons, smith sons", ["Smith & Sons", "Smith&Sons", "smith sons"]),
        ("Smith and Sons", ["Smith"]),
        ("A/B Corp, A B Corp; A-B Corp", ["A/B Corp", "A B Corp", "A-B Corp"]),
        ("St. Mary's and St Mary", ["St. Mary", "St Mary"]),
        ("Ann (Nancy) de Vries", ["Ann (Nancy) de Vries"]),
        # One comma: a surname stands before it.
        ("Byron, Augusta; Augusta Byron", ["Byron, Augusta", "Augusta Byron"]),
        ("Byron Augusta", ["Byron Augusta"]),
        ("A. Byron and Byron, A. and Dr. Byron, not Dr. Augusta", ["A. Byron", "Byron, A.", "Byron"]),
        ("Acme, Inc. and Acme Inc.", ["Acme, Inc", "Acme Inc"]),
    ],
)
def test_ways_to_write_a_name(text: str, stretches: list[str]) -> None:
    (spans,) = found_in([text], table())
    assert [text[a:b] for a, b, _ in spans] == stretches


# Names of scripts without spaces, which stand amid other letters; one is the beginning of another, one of several words.
AMID = (
    (
        *("王小明", "小明", "王小明手", "李Lei", "김철수", "스미스", "ジョン・スミス", "มานี", "T恤", "がく"),
        *("東京 都", "ｶﾅ", "x" * 50 + "李雷"),
    ),
    ("手机", "明天", "今天 天气", "สมชาย", "王.小", "เก้า"),
)
AMID_OWN: list[list[str]] = [[], ["王小明", "天气"], ["小明手机", "김철"], ["smith", "李雷"]]
AMID_PIECES = (
    *"王小明手机李雷天气今东京都都のはがか学校가은김철수",
    *("王小明", "小明", "李lei", "ジョン", "スミス", "มานี", "มาน", "มานะ", "สมชาย", "เก้า", "เกา", "T恤", "カナ", "ｶﾅ"),
    *("Smith", "x" * 50),
    *("\u200b", "'", "\u2019s", "\u3099", "\u0e35", "\u0e48", "\u0301", "・", "·", "-", " ", "。", ",", ".", "3", "๓", "s", "\n"),
)  # fmt: skip
AMID_TEXTS = st.lists(st.sampled_from(AMID_PIECES), max_size=14).map("".join)


@cache
def amid() -> NameTable:
    return NameTable.of([list_of(*entries) for entries in AMID])


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("今天王小明的手机", ["王小明", "手机"]),
        ("王小明手机", ["王小明手"]),  # the longest from the beginning
        ("小明天", ["小明"]),  # whatever comes then
        ("李LEI和李Lei's手机。李leigh", ["李LEI", "李Lei", "手机"]),
        ("김철수가 김 철수는", ["김철수"]),
        ("彼はジョン・スミスです", ["ジョン・スミス"]),
        ("ฉันชื่อมานีนะ มานะ", ["มานี"]),
        ("T恤和xT恤", ["T恤"]),
        ("去東京 都是", ["東京 都"]),
        ("カナダ", ["カナ"]),
        ("这" * 100 + "小明" + "那" * 100, ["小明"]),
    ],
)
def test_ways_to_write_a_name_amid_letters(text: str, stretches: list[str]) -> None:
    (spans,) = found_in([text], amid())
    assert [text[a:b] for a, b, _ in spans] == stretches


def test_the_first_of_two_lists_counts() -> None:
    assert found_in(["jose anne"], table()) == [[(0, 4, 0), (5, 9, 1)]]


@pytest.mark.parametrize("size", range(65))
def test_a_word_is_hashed_by_its_bytes_alone(size: int) -> None:
    """A reference in plain integers; what stands behind the word in the buffer is no part of it."""

    def mixed(before: int, token: int) -> int:
        state = (before * 0x9E3779B97F4A7C15 % 2**64) ^ token
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        return state ^ (state >> 31)

    form = np.random.default_rng(size).integers(0, 256, FORM).astype(np.uint8)
    raw, expected = form[:size].tobytes(), 0
    for at in range(0, size, 8):
        expected = mixed(expected, int.from_bytes(raw[at : at + 8], "little"))
    assert int(hash_word(form, size)) == expected
    assert int(chain(np.uint64(expected), np.uint64(5))) == mixed(expected, 5)


def test_hashes_are_spread_over_the_table() -> None:
    """A million hashes of names that differ little, and of phrases of them: all differ, as at random."""
    form, words = np.zeros(FORM, np.uint8), []
    for number in range(1_000):
        name = f"name{number}".encode()
        form[: len(name)] = list(name)
        words.append(hash_word(form, len(name)))
    each: Any = np.array(words, np.uint64)
    hashes = chain.py_func(each[:, None], each).reshape(-1)  # type: ignore[attr-defined]
    assert len(np.unique(hashes)) == len(hashes)
    # Of 2^21 slots a million fill 1 - e^(-1e6 / 2^21).
    cells = len(np.unique(hashes & np.uint64((1 << 21) - 1)))
    assert abs(cells / 2**21 - (1 - np.exp(-1e6 / 2**21))) < 0.001


def test_no_later_code_point_is_folded() -> None:
    for code in range(FOLDED, 0x110000):
        char = chr(code)
        assert not unicodedata.decomposition(char)
        assert char.casefold() == char
        assert not unicodedata.combining(char)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["ok", "!!"], "list: entry 2 has no letter or digit"),
        (["x"], "list: entry 1 is a single letter"),
        (["É"], "list: entry 1 is a single letter"),
        (["J."], "list: entry 1 is a single letter"),
        (["a b c d e f g h i j k l m"], "list: entry 1 has more than 12 words"),
        (["ok", "z" * 65], "list: entry 2 has more than 12 words, or a word of more than 64 bytes"),
    ],
)
def test_entries_that_cannot_be_found_are_refused_without_being_named(entries: list[str], said: str) -> None:
    with pytest.raises(DataError) as raised:
        NameTable.of([list_of(*entries)])
    assert said in str(raised.value)
    assert entries[-1] not in str(raised.value).removeprefix(said) or len(entries[-1]) == 1


def test_more_names_than_there_is_room_for_at_first() -> None:
    text = "ab " * 4_000
    names = NameTable.of([list_of("ab")])
    assert found_in([text, "ab"], names)[0] == [(3 * i, 3 * i + 2, 0) for i in range(4_000)]


OWN_LISTS: list[list[str]] = [[], ["ada lovelace", "O'Brien"], ["Mary Pepper", "Smith"], ["straße", "mary"]]


# Rows: a text, and which of the lists of its own mask and keep in it.
OWN_ROWS, AMID_ROWS = (
    st.lists(st.tuples(some, st.sampled_from(range(4)), st.sampled_from(range(4))), min_size=1, max_size=6)
    for some in (TEXTS, AMID_TEXTS)
)


def check_rows(rows: list[tuple[str, int, int]], every: Any, names: NameTable, own: Any, times: int) -> None:
    """Of all rows one list masks and the others keep; of a row one masks and one keeps; a row has some texts."""
    lists, places = [], []
    for which in (1, 2):
        entries = [(entry, row) for row, one in enumerate(rows) for entry in own[one[which]]]
        lists.append(list_of(*(entry for entry, _ in entries)))
        places.append(np.array([row for _, row in entries], np.int64))
    uses = ["mask", *["keep"] * (len(every) - 1)]
    own_table = NameTable.of(lists, ("mask", "keep"), places)
    matcher = NameMatcher(replace(names, uses=tuple(uses)), own_table, np.repeat(np.arange(len(rows)), times))
    rows = [row for row in rows for _ in range(times)]
    texts = [text for text, _, _ in rows]
    data, bounds = padded(pa.array(texts, pa.string()))
    spans = in_characters(texts, bounds, matcher.entries_in(data, bounds))
    for (text, first, second), found in zip(rows, spans, strict=True):
        # Of equal entries what masks counts, and of those the list of all rows.
        order = [list(every[0]), own[first], *map(list, every[1:]), own[second]]
        numbers = [0, OWN, *range(1, len(every)), OWN + 1]
        assert found == [(begin, end, numbers[number]) for begin, end, number in find(text, order)]


@pytest.mark.long
@settings(max_examples=250, deadline=None)
@given(OWN_ROWS)
def test_the_lists_of_a_row_are_found_in_its_texts_beside_those_of_all(
    given: list[tuple[str, int, int]],
) -> None:
    check_rows(given, LISTS, table(), OWN_LISTS, times=2)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(AMID_ROWS)
def test_names_of_a_row_are_found_amid_letters_beside_those_of_all(given: list[tuple[str, int, int]]) -> None:
    check_rows(given, AMID, amid(), AMID_OWN, times=1)


def test_a_table_that_is_mapped_from_a_file_finds_the_same(tmp_path: Path) -> None:
    np.save(tmp_path / "cells.npy", table().cells)
    mapped = NameTable(np.load(tmp_path / "cells.npy", mmap_mode="r"), table().uses)
    texts = [" ".join(PIECES)]
    assert found_in(texts, mapped) == found_in(texts, table())


def test_digests_are_those_of_what_is_listed() -> None:
    def digests(*entries: str) -> tuple[str, ...]:
        return NameTable.of([list_of(*entries), list_of("other")]).digests

    one = digests("Ada Lovelace", "Smith")
    assert one == digests("smith", "ADA  LOVELACE", "Smith")
    assert one[0] != digests("Ada Lovelace", "Smyth")[0]
    assert one[1] == digests("Smyth")[1]


@pytest.mark.parametrize(
    ("entry", "ways"),
    [
        ("Łukasz Żakowski", ["Lukasz Zakowski", "łukasz zakowski", "ŁUKASZ ŻAKOWSKI"]),
        ("Søren Ødegård", ["Soren Odegard", "SØREN ØDEGÅRD"]),
        ("Đorđe Đukić", ["Dorde Dukic"]),
        ("Þóra Björk", ["Thora Bjork", "þora bjork"]),
        (
            "\u0130brahim Y\u0131ld\u0131z",
            ["Ibrahim Yildiz", "\u0130BRAHIM YILDIZ", "ibrahim y\u0131ld\u0131z"],
        ),
        ("Quillon Brambleby", [f"Quillon{sign}brambleby" for sign in ("_", "^", "`", " _ ")]),
        ("Quillon_Brambleby", ["Quillon Brambleby", "Quillon-Brambleby"]),
    ],
)
def test_letters_without_a_stroke_and_signs_that_join_are_the_same_name(entry: str, ways: list[str]) -> None:
    names = NameTable.of([list_of(entry)])
    for way in [entry, *ways]:
        text = f"from {way}, today"
        assert found_in([text], names) == [[(5, 5 + len(way), 0)]]
        assert find(text, [[entry]]) == [(5, 5 + len(way), 0)]


def test_the_guide_tells_how_names_are_found() -> None:
    guide = (Path(__file__).resolve().parents[4] / "docs" / "guide" / "names.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in guide.splitlines() if line.startswith("| `")]
    assert len(rows) == 6
    for (entry,), ways in (map(re.compile("`([^`]+)`").findall, row) for row in rows):
        assert ways
        names = NameTable.of([list_of(entry)])
        for way in [entry, *(way for way in ways if way != "Picard")]:
            ((begin, end, _),) = found_in([way], names)[0]
            assert way[begin:end] == way.removeprefix("Dr. ").removesuffix("\u2019s")
        if "Picard" in ways:
            assert found_in(["Picard", "the Picard"], names) == [[], []]


def test_a_word_ends_with_its_text() -> None:
    texts = ["Smi", "th", "Smith", "Smith", "", "S", "mith", "x" * 57 + " Smith"]
    texts += ["5Smith", "O", "'Brien", "Jos", "é"]
    wanted: list[list[tuple[int, int, int]]] = [[] for _ in texts]
    wanted[2] = wanted[3] = [(0, 5, 0)]
    wanted[7], wanted[8] = [(58, 63, 0)], [(1, 6, 0)]
    assert found_in(texts, NameTable.of([list_of("Smith", "O'Brien", "José")])) == wanted
