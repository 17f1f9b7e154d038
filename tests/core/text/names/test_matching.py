"""Names are found as a plain reading of the rules finds them, however they are written."""

from __future__ import annotations

import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.matching import OWN, OwnNames, names_in
from dptext_spark.text.names.name_table import REMEMBERED_BITS, NameTable, compile_names, name_key
from dptext_spark.text.names.normal_words import siphash, siphash_short
from tests.core.text.names.plain_names import find
from tests.core.text.samples import list_of

KEY = name_key(RunKey.insecure(1), "r")
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
    return compile_names([list_of(*entries) for entries in LISTS], KEY)


def found_in(texts: list[str], names: NameTable) -> list[list[tuple[int, int, int]]]:
    """In characters of each text."""
    data, rows = padded(pa.array(texts, pa.string()))
    return in_characters(texts, rows, names_in(data, rows, names))


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
        (
            "Smith & Sons, Smith&Sons, smith sons, Smith and Sons",
            ["Smith & Sons", "Smith&Sons", "smith sons", "Smith"],
        ),
        ("A/B Corp, A B Corp; A-B Corp", ["A/B Corp", "A B Corp", "A-B Corp"]),
        ("St. Mary's and St Mary", ["St. Mary", "St Mary"]),
        ("Ann (Nancy) de Vries", ["Ann (Nancy) de Vries"]),
        # One comma: a surname stands before it.
        (
            "Byron, Augusta; Augusta Byron; Byron Augusta",
            ["Byron, Augusta", "Augusta Byron", "Byron Augusta"],
        ),
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
    return compile_names([list_of(*entries) for entries in AMID], KEY)


@pytest.mark.cluster
@settings(max_examples=2000, deadline=None)
@given(st.lists(AMID_TEXTS, min_size=1, max_size=3))
def test_it_finds_names_amid_the_letters_of_a_stretch(texts: list[str]) -> None:
    assert found_in(texts, amid()) == [find(text, [list(one) for one in AMID]) for text in texts]


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


def test_a_row_may_have_names_of_its_own() -> None:
    entries = ["Ada Lovelace", "Smith", "José"]
    made = compile_names([list_of(*entries)], KEY, [np.array([1, 2, 2], np.uint64)])
    texts = [
        "Ada Lovelace Smith Jose, Dr. Lovelace; A. Lovelace",
        "Ada Lovelace Smith JOSÉ A. Lovelace",
        "Smith",
    ]
    data, rows = padded(pa.array(texts))
    spans = names_in(data, rows, compile_names([], KEY), 0, OwnNames(made, 1))
    assert in_characters(texts, rows, spans) == [
        [(0, 12, OWN), (29, 37, OWN), (39, 50, OWN)], [(13, 18, OWN), (19, 23, OWN)], [],
    ]  # fmt: skip


def test_the_hash_is_that_of_the_paper() -> None:
    """Appendix A of Aumasson and Bernstein 2012: key 00..0f, message 00..0e."""
    k0, k1 = np.uint64(0x0706050403020100), np.uint64(0x0F0E0D0C0B0A0908)
    first, rest = np.uint64(0x0706050403020100), np.arange(8, 15, dtype=np.uint8)
    assert siphash(k0, k1, first, rest, 7) == 0xA129CA6149BE45E5
    padded_rest = np.uint64(int.from_bytes(rest.tobytes(), "little"))
    assert siphash_short(k0, k1, first, padded_rest, np.uint64(0), 7) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("size", range(1, 16))
def test_short_words_hash_alike(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, 16).astype(np.uint8)
    data[size:] = 0
    first, second = data.view("<u8")
    before = np.uint64(5)
    assert siphash_short(KEY[0], KEY[1], before, first, second, size) == siphash(
        KEY[0], KEY[1], before, data, size
    )


def test_another_key_or_run_has_other_hashes() -> None:
    held = {
        frozenset(
            compile_names([list_of("Ada Lovelace")], name_key(RunKey.insecure(key), run)).cells.tolist()
        )
        - {0}
        for key, run in ((1, "r"), (2, "r"), (1, "s"))
    }
    assert not frozenset.intersection(*held)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["ok", "!!"], "list: entry 2 holds no letter or digit"),
        (["x"], "list: entry 1 is a single letter"),
        (["É"], "list: entry 1 is a single letter"),
        (["J."], "list: entry 1 is a single letter"),
        (["a b c d e f g h i j k l m"], "list: entry 1 has more than 12 words"),
        (["ok", "z" * 65], "list: entry 2 has more than 12 words, or one of more than 64 bytes"),
    ],
)
def test_entries_that_cannot_be_found_are_refused_without_being_named(entries: list[str], said: str) -> None:
    with pytest.raises(DataError) as raised:
        compile_names([list_of(*entries)], KEY)
    assert said in str(raised.value)
    assert entries[-1] not in str(raised.value).removeprefix(said) or len(entries[-1]) == 1


def test_more_names_than_there_is_room_for_at_first() -> None:
    text = "ab " * 4_000
    names = compile_names([list_of("ab")], KEY)
    assert found_in([text, "ab"], names)[0] == [(3 * i, 3 * i + 2, 0) for i in range(4_000)]


OWN_LISTS: list[list[str]] = [[], ["ada lovelace", "O'Brien"], ["Mary Pepper", "Smith"], ["straße", "mary"]]


# Rows: a text, and which of the lists of its own mask and keep in it.
OWN_ROWS, AMID_ROWS = (
    st.lists(st.tuples(some, st.sampled_from(range(4)), st.sampled_from(range(4))), min_size=1, max_size=6)
    for some in (TEXTS, AMID_TEXTS)
)


def check_rows(rows: list[tuple[str, int, int]], every: Any, names: NameTable, own: Any, times: int) -> None:
    """Of all rows one list masks and the others keep; of a row one masks and one keeps; a row has some texts."""
    lists, roots = [], []
    for which in (1, 2):
        entries = [(entry, row) for row, one in enumerate(rows) for entry in own[one[which]]]
        lists.append(list_of(*(entry for entry, _ in entries)))
        roots.append(np.array([row + 1 for _, row in entries], np.uint64))
    looked = OwnNames(compile_names(lists, KEY, roots), 1, np.repeat(np.arange(len(rows)), times))
    rows = [row for row in rows for _ in range(times)]
    texts = [text for text, _, _ in rows]
    data, bounds = padded(pa.array(texts, pa.string()))
    spans = in_characters(texts, bounds, names_in(data, bounds, names, 1, looked))
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


def test_packed_lists_find_the_same() -> None:
    packed = table().packed()
    packed.flags.writeable = False
    texts = [" ".join(PIECES)]
    assert found_in(texts, NameTable.unpacked(packed, KEY)) == found_in(texts, table())


def test_digests_are_those_of_what_is_listed() -> None:
    def digests(*entries: str, key: Any = KEY) -> tuple[str, ...]:
        return compile_names([list_of(*entries), list_of("other")], key).digests

    one = digests("Ada Lovelace", "Smith")
    assert one == digests("smith", "ADA  LOVELACE", "Smith")
    assert one[0] != digests("Ada Lovelace", "Smyth")[0]
    assert one[1] == digests("Smyth")[1]
    assert one[0] != digests("Ada Lovelace", "Smith", key=KEY + np.uint64(1))[0]


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
    names = compile_names([list_of(entry)], KEY)
    for way in [entry, *ways]:
        text = f"from {way}, today"
        assert found_in([text], names) == [[(5, 5 + len(way), 0)]]
        assert find(text, [[entry]]) == [(5, 5 + len(way), 0)]


def test_the_guide_tells_how_names_are_found() -> None:
    guide = (Path(__file__).resolve().parents[4] / "docs" / "guide" / "names.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in guide.splitlines() if line.startswith("| `")]
    assert len(rows) == 6
    for listed, too in rows:
        (entry,) = re.findall("`([^`]+)`", listed)
        ways = re.findall("`([^`]+)`", too)
        assert ways
        names = compile_names([list_of(entry)], KEY)
        for way in [entry, *(way for way in ways if way != "Picard")]:
            ((begin, end, _),) = found_in([way], names)[0]
            assert way[begin:end] == (
                way.removeprefix("Dr. ") if way.startswith("Dr. ") else way.removesuffix("\u2019s")
            )
        if "Picard" in ways:
            assert found_in(["Picard", "the Picard"], names) == [[], []]


def test_what_is_remembered_of_words_changes_nothing() -> None:
    """More different words than are remembered, in two batches, and the same words for other lists."""
    rng = np.random.default_rng(1)
    letters = rng.integers(ord("a"), ord("z") + 1, (4 << REMEMBERED_BITS, 7)).astype(np.uint8)
    words = [row.tobytes().decode() for row in letters]
    words[::100] = ["SMITH" if n % 2 else "Jos\u00e9" for n in range(len(words[::100]))]
    text, places = " ".join(words), np.cumsum([0, *(len(word) + 1 for word in words)])
    smith, jose = (compile_names([list_of(name)], KEY) for name in ("Smith", "Jose"))
    expected = [
        [(at, at + len(word), 0) for at, word in zip(places[:-1], words, strict=True) if word == name]
        for name in ("SMITH", "Jos\u00e9")
    ]
    for _ in range(2):
        assert found_in([text], smith) == [expected[0]]
        assert found_in([text], jose) == [expected[1]]


def test_a_word_ends_with_its_text() -> None:
    texts = [
        "Smi",
        "th",
        "Smith",
        "Smith",
        "",
        "S",
        "mith",
        f"{'x' * 57} Smith",
        "5Smith",
        "O",
        "'Brien",
        "Jos",
        "é",
    ]
    assert found_in(texts, compile_names([list_of("Smith", "O'Brien", "José")], KEY)) == [
        [], [], [(0, 5, 0)], [(0, 5, 0)], [], [], [], [(58, 63, 0)], [(1, 6, 0)], [], [], [], [],
    ]  # fmt: skip


def test_two_threads_do_not_share_what_is_remembered() -> None:
    names = compile_names([list_of("Smith")], KEY)
    with names.remembered() as one, names.remembered() as other:
        assert not np.shares_memory(one, other)
    with names.remembered() as again:
        assert again is one
    assert found_in(["Smith"], pickle.loads(pickle.dumps(names))) == [[(0, 5, 0)]]
    assert len(pickle.dumps(names)) < len(pickle.dumps(compile_names([list_of("Smith")], KEY))) + 1_000
