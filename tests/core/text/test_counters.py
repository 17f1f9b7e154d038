"""Words of names: which are counted, and which came out as they were."""

# Scripts are what some of these texts are about.
from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.chunks import padded
from dptext_spark.text.engine import OF_STAYED
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable
from dptext_spark.text.names.public_names import parts_of_names
from dptext_spark.text.policy import Policy
from tests.core.text.names.plain_names import words
from tests.core.text.samples import list_of, privatizer, row, run

KEY = RunKey.insecure(1)
CITY, REGION = 2, 3
TEXTS = [
    "We met Ada Lovelace and Mrs. A. Lovelace in Oslo, not in New York.", "Ada LOVELACE wrote to cat.", None, "no name",
    "[PERSON] likes [NAME]", "Products: Blue Ox and the Blue Ox 3000 of Acme.",
    "Dr. van Helsing saw Robert Smith in London; Robert Smith left. best,\nMary Jane",
]  # fmt: skip


def searching(**names: str) -> Privatizer:
    return privatizer(Policy(names={"lists": True, **names}), 0)  # type: ignore[arg-type]


def parts() -> list[tuple[int, bool, str]]:
    """(text, whether it is a place, the words) of each part of a name that the rules find."""
    data, bounds = padded(pa.array(TEXTS))
    return [
        (number, kind in (CITY, REGION), bytes(data[start:end]).decode())
        for start, end, kind, _, number in parts_of_names(data, bounds).tolist()
    ]


def test_words_of_masked_names_are_found_and_none_is_kept() -> None:
    _, counters = run(searching(), TEXTS)
    for number in range(len(TEXTS)):
        counts = row(counters, number)
        for name, place in (("person_words", False), ("location_words", True)):
            mine = (part for text, is_place, part in parts() if (text, is_place) == (number, place))
            assert (counts[name], counts[f"{name}_kept"]) == (sum(len(words(part)) for part in mine), 0)
        assert counts["listed_words"] == counts["listed_words_kept"] == 0
    assert counters.totals()["person_words"] > 10
    assert counters.totals()["location_words"] == 4


def test_a_kind_that_is_not_looked_for_has_no_words() -> None:
    totals = run(searching(location="keep"), TEXTS)[1].totals()
    assert totals["location_words"] == 0 < totals["person_words"]


def test_a_pseudonym_that_is_the_name_itself_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that differs in case, accents or a word beside it holds the word that was there."""
    made = searching(person="pseudonym", location="pseudonym")
    _, before = run(made, ["Ada Lovelace met José in New York"])
    assert before.totals()["person_words_kept"] == before.totals()["location_words_kept"] == 0
    texts = {"ada": "ADA", "lovelace": "Miller", "josé": "Jose", "new york": "York"}

    def same(data, where, *_):  # type: ignore[no-untyped-def]
        parts = [bytes(data[start:end]).decode().lower() for start, end in zip(*where[1:], strict=True)]
        made = [texts[part].encode() for part in parts]
        return np.frombuffer(b"".join(made), np.uint8), np.cumsum([0, *map(len, made)])

    monkeypatch.setattr("dptext_spark.text.replacements.pseudonyms", same)
    (out,), after = run(made, ["Ada Lovelace met José in New York"])
    assert out.decode().startswith("ADA Miller ")
    counts = after.totals()
    assert (counts["person_words"], counts["person_words_kept"]) == (3, 2)
    assert (counts["location_words"], counts["location_words_kept"]) == (2, 1)


def test_entries_of_lists_count_word_by_word() -> None:
    lists = [list_of("Ada Lovelace", "王小明"), list_of("Blue Ox", "Oslo")]
    made = searching().with_names(NameMatcher(NameTable.of(lists, ("mask", "keep"))))
    texts = ["We saw Ada Lovelace, the Blue Ox and Mary in Oslo.", "今天王小明的手机", "Blue Ox [NAME]"]
    _, counters = run(made, texts)
    names = ("listed_words", "listed_words_kept", "person_words")
    assert [[row(counters, n)[name] for name in names] for n in range(3)] == [
        [5, 3, 1], [1, 0, 0], [2, 2, 0],
    ]  # fmt: skip
    assert row(counters, 0)["location_words"] == 0


def test_nothing_is_counted_where_nothing_looks_for_names() -> None:
    totals = run(privatizer(Policy(), 0), TEXTS)[1].totals()
    assert not any(totals[name] for name in OF_STAYED)
