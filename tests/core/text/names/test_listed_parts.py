"""Names of a list that have pseudonyms are told into the parts that a plain reading of the rules tells them into."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.text.chunks import padded
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable
from dptext_spark.text.names.public_names import LISTED_KINDS
from tests.core.text.names.plain_listed_parts import parts_of
from tests.core.text.names.plain_names import find
from tests.core.text.samples import list_of

PERSONS = (
    "Ada Lovelace", "Ada King Lovelace", "Jean-Luc Picard", "Abraham van Helsing", "Maria de la Cruz", "O\u2019Brien", "James",
    "Robert James", "李 小龍", "Straße Smith", "Louis 14", "von Trapp", "Zorblax",
)  # fmt: skip
PLACES = ("New York", "France", "Paris", "Zorbtown", "Saint Petersburg", "San J.")
MASKED, KEPT = ("World", "Anne Smith"), ("school", "King School")
LISTS, USES = (PERSONS, PLACES, MASKED, KEPT), ("person", "location", "mask", "keep")
WRITTEN = (
    "Ada ada A. R. J. j. Lovelace LOVELACE King Jean Luc Picard Abraham van Van Helsing Maria de la Cruz O'Brien obrien's James "
    "james Robert 李 小龍 Strasse Smith Louis 14 1 von Trapp Zorblax New York France paris Zorbtown Saint St. Petersburg San J. "
    "World Anne school School Dr. dr Mr Queen mrs. the x\u0301 's 'dr l'Mr @"
)
WORDS = (*WRITTEN.split(), "")
JOINTS = (*[" "] * 6, "-", ", ", ",", "\n", ". ", ".", "'", "\u00a0", "--", "", "'s ", "; ")
TEXTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINTS)).map("".join),
        st.sampled_from([
            "Lovelace, Ada King", "Helsing, Abraham van ", "Dr. James ", "Cruz, M. d. l. ", "Cruz, Maria de la", "Mr-O'Brien ",
            "A. Lovelace ", "York, New ", "Trapp, von", "dr. Picard", "Abraham Van Helsing ",
        ]),
    ),
    max_size=8,
).map("".join)  # fmt: skip


@cache
def names() -> NameMatcher:
    return NameMatcher(NameTable.of([list_of(*some) for some in LISTS], USES))


def found(some: NameMatcher, texts: list[str]) -> list[list[tuple[int, int, str, bool]]]:
    """What is found in each text, in characters: (begin, end, type, whether it is kept)."""
    spans = some.find_in(*padded(pa.array(texts, pa.string())))
    out: list[list[tuple[int, int, str, bool]]] = [[] for _ in texts]
    places = zip(spans.rows, spans.starts, spans.ends, spans.types, spans.kept, strict=True)
    for row, start, end, kind, kept in places:
        a, b = (len(texts[row].encode()[:at].decode()) for at in (start, end))
        out[row].append((a, b, some.types[kind], bool(kept)))
    return out


def expected(text: str) -> list[tuple[int, int, str, bool]]:
    made = []
    for start, end, number in find(text, [list(one) for one in LISTS]):
        kind = USES[number]
        if number > 1:
            made.append((start, end, "name", number == 3))
        else:
            made += [(a, b, LISTED_KINDS[part], False) for a, b, part in parts_of(text, start, end, kind)]
    return made


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_parts_are_those_that_the_rules_say(texts: list[str]) -> None:
    assert found(names(), texts) == [expected(text) for text in texts]


def kinds_in(text: str, some: NameMatcher | None = None) -> list[tuple[str, str]]:
    (spans,) = found(some or names(), [text])
    return [(text[a:b], kind.rpartition(":")[2]) for a, b, kind, _ in spans]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Ada Lovelace", [("Ada", "given_name"), ("Lovelace", "surname")]),
        ("Lovelace, Ada", [("Lovelace", "surname"), ("Ada", "given_name")]),
        ("Lovelace, A.", [("Lovelace", "surname"), ("A", "initial")]),
        ("a. lovelace's", [("a", "initial"), ("lovelace", "surname")]),
        ("James", [("James", "given_name")]),
        ("Dr. James", [("James", "surname")]),
        ("dr James", [("James", "surname")]),
        ("Dr., James", [("James", "given_name")]),
        ("Helsing, Abraham van", [("Helsing", "surname"), ("Abraham", "given_name"), ("van", "given_name")]),
        ("Abraham van Helsing", [("Abraham", "given_name"), ("van Helsing", "surname")]),
        ("Jean-Luc Picard", [("Jean", "given_name"), ("Luc", "surname"), ("Picard", "surname")]),
        ("李 小龍", [("李", "surname"), ("小龍", "surname")]),
        ("Louis 14", [("Louis", "given_name"), ("14", "surname")]),
        ("New York", [("New York", "region")]),
        ("in france", [("france", "region")]),
        ("York, New", [("York, New", "city")]),
        ("Zorbtown", [("Zorbtown", "city")]),
    ],
)
def test_named_ways_to_write(text: str, parts: list[tuple[str, str]]) -> None:
    assert kinds_in(text) == parts


def test_each_row_has_kinds_of_its_own() -> None:
    lists = [list_of("James", "New York"), list_of("James")]
    own = NameTable.of(lists, ("person", "mask"), [np.array([0, 1]), np.array([2])])
    some = NameMatcher(NameTable.of([]), own)
    texts = ["Dr. James of New York"] * 3
    assert found(some, texts) == [
        [(4, 9, "name:surname", False)],
        [(13, 16, "name:surname", False), (17, 21, "name:surname", False)],
        [(4, 9, "name", False)],
    ]


@pytest.mark.parametrize(
    ("uses", "said"), [(("person", "mask"), ["given_name", "surname"]), (("mask", "person"), ["name"])]
)
def test_of_two_lists_with_an_entry_the_first_counts(uses: tuple[str, str], said: list[str]) -> None:
    table = NameTable.of([list_of("Ada Lovelace"), list_of("Ada Lovelace")], uses)
    assert [kind for _, kind in kinds_in("ADA LOVELACE", NameMatcher(table))] == said


def test_what_is_masked_already_is_not_told_apart() -> None:
    some = NameMatcher(names().table, masked=True)
    assert found(some, ["Ada Lovelace at school"]) == [[(16, 22, "name", True)]]


def test_there_is_room_for_every_part() -> None:
    long = " ".join(["Maria de la Cruz"] * 4000)
    assert len(kinds_in(long)) == 12_000  # Maria, de la, Cruz


def test_no_utf8_is_passed_over() -> None:
    data: Any
    data, rows = padded(pa.array([b"Dr\xff. James \xc3", b"\xc3James", b"Ada\xff Lovelace"], pa.binary()))
    spans = names().find_in(data, rows)
    assert (spans.ends <= np.diff(rows)[spans.rows]).all()
