"""Names are found by the public lists as a plain reading of the rules finds them; how the lists are made."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.public_names import (
    ALWAYS,
    COMMON,
    FOLDER,
    GIVEN,
    LISTS,
    PublicNames,
    parts_of_names,
    public_entries,
    public_lists,
)
from dptext_spark.text.names.public_names import KINDS as PARTS
from dptext_spark.text.names.search import VERSION, NameSearch
from tests.core.text.names import plain_public_names as plain
from tools.names import build

WRITTEN = (
    "Ada ada Mary Smith smith JOHN McDonald van de la St. New York new york London in from Paris Texas The the will Will May "
    "Rose Grace grace Dr. Mr mr. Queen I J. K. j. É. Ünal O'Brien d'Ávila's John's 's Xqzt 1234 a1b @ada # Regards Best "
    "Turkey Jordan Reading Nice Bath Fort Worth Tel Aviv İzmir ß. straße ﬁ Łódź Müller Lee-Ann 東京 x\u0301 Saint Petersburg "
    "San Jose Dr. Mr."
)
WORDS = (*WRITTEN.split(), "")
JOINTS = (
    *[" "] * 8, "\n", "\n\n", ", ", ". ", "! ", " - ", "-", "  ", "\t", ": ",
    "\u201c", "\u2026 ", "|", "", "_", "'", "@", "\u2028",
)  # fmt: skip
# The lists' content and the rules that VERSION stands for: where this fails, names are found otherwise, and VERSION goes up.
CONTENT = "1", "8ec562a0e7ad7624", "a671bba3b8d62c15"

some_text = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINTS)), max_size=16).map(
    lambda pairs: "".join(word + joint for word, joint in pairs)
)


def found(texts: list[str | None], most_words: int = 4096) -> list[list[tuple[int, int, int]]]:
    data, rows = padded(pa.array(texts, pa.string()))
    out: list[list[tuple[int, int, int]]] = [[] for _ in texts]
    for start, end, kind, _, row in parts_of_names(data, rows, most_words).tolist():
        out[row].append((start - int(rows[row]), end - int(rows[row]), kind))
    return out


def wanted(text: str, most_words: int = 4096) -> list[tuple[int, int, int]]:
    return [
        (len(text[: part.start].encode()), len(text[: part.end].encode()), part.kind)
        for part in plain.find(text, most_words)
    ]


@pytest.mark.long
@given(st.lists(some_text, min_size=1, max_size=12))
@settings(max_examples=250, deadline=None)
def test_found_as_a_plain_reading_finds_them(texts: list[str]) -> None:
    assert found(list(texts)) == [wanted(text) for text in texts]


@given(st.lists(some_text, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_long_lines_are_cut_alike(texts: list[str]) -> None:
    assert found(list(texts), 3) == [wanted(text, 3) for text in texts]


def shown(text: str, **choices: str) -> list[str]:
    """Return the spans of a text with their types."""
    provider = PublicNames(NameSearch(lists=True, **choices))  # type: ignore[arg-type]
    spans = provider.find(pa.array([text]))
    raw = text.encode()
    return [
        f"{raw[start:end].decode()}/{provider.types[kind]}"
        for start, end, kind in zip(spans.starts, spans.ends, spans.types, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I met Ada Lovelace in London.", ["Ada Lovelace/person", "London/location"]),
        ("Dr. van Helsing was late", ["van Helsing/person"]),
        ("We asked J. K. Rowling's agent", ["J. K. Rowling/person"]),
        ("from New York, France", ["New York/location", "France/location"]),
        ("she lives in paris", ["paris/location"]),
        ("Will you come in May?", []),
        ("it was nice reading this in the bath", []),
        ("thanks to robert it works", ["robert/person"]),
        ("The food is good.\nRegards,\nHope Young", ["Hope Young/person"]),
        ("Hope Young people come", []),
        ("GREAT FOOD AND NICE STAFF", []),
        ("Mr. Young and Mrs. Rose", ["Young/person", "Rose/person"]),
        ("mail @John and @mary", []),
        ("", []),
    ],
)
def test_rules_by_example(text: str, names: list[str]) -> None:
    assert shown(text) == names


def test_parts_have_types_where_pseudonyms_take_their_place() -> None:
    text = "Mr. Young and Ada M. Lovelace in New York"
    assert shown(text, person="pseudonym") == [
        "Young/surname", "Ada/given_name", "M/initial", "Lovelace/surname", "New York/location",
    ]  # fmt: skip
    assert shown(text, person="keep") == ["New York/location"]
    assert shown(text, location="pseudonym") == ["Young/person", "Ada M. Lovelace/person", "New York/region"]
    assert tuple(PARTS) == ("given_name", "surname", "city", "region", "initial")


def test_batch_equals_its_rows() -> None:
    texts = ["Ada Lovelace", None, "in paris\nBest,\nMary", "", "Dr. Who @", "Ada"]
    alone = [found([text])[0] for text in texts]
    assert found(list(texts)) == alone
    data, rows = padded(pa.array(["x Ada Lovelace y"] * 3000))
    assert len(parts_of_names(data, rows)) == 6000  # more than there is room for at first


def test_no_utf8_is_passed_over() -> None:
    data, rows = padded(pa.array([b"Ada \xff Lovelace", b"\xc3", b"Ada"], pa.binary()))
    parts = parts_of_names(data, rows)
    assert parts[-1, 4] == 2
    assert (parts[:, 1] <= rows[parts[:, 4] + 1]).all()


def test_every_name_is_found_with_its_class() -> None:
    for kind, name in enumerate(LISTS):
        entries = public_entries(kind)
        lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert len(entries.classes) == len(lines)
        assert set(np.unique(entries.classes)) <= set(range(COMMON, ALWAYS + 1))
        assert (entries.classes == ALWAYS).any() == (kind == GIVEN)
        step = max(1, len(lines) // 200)
        for line in lines[::step]:
            forms = plain.normal(line[:-2])
            assert plain.lists().entries[forms][kind] >= int(line[-1])


def test_version_stands_for_the_content() -> None:
    chosen = random.Random(20)
    texts = ["".join(chosen.choice(WORDS) + chosen.choice(JOINTS) for _ in range(12)) for _ in range(2_000)]
    data, rows = padded(pa.array(texts))
    digests = (
        hashlib.sha256(array.tobytes()).hexdigest()[:16]
        for array in (public_lists(), parts_of_names(data, rows))
    )
    assert (VERSION, *digests) == CONTENT


def test_names_of_tweets(shared_data: Path) -> None:
    """The rules were made on the even tweets; these are the odd ones. The bounds are a little below what was measured."""
    whole, mentions = Counter[str](), Counter[str]()
    others = wrong = 0
    for tokens in _tweets(shared_data / "wnut17" / "train.conll")[1::2]:
        (spans,) = found([" ".join(token for token, _ in tokens)])
        begin, names = 0, list[tuple[str, list[bool]]]()
        for token, tag in tokens:
            end = begin + len(token.encode())
            if any(char.isalpha() for char in token):
                covered = any(start < end and stop > begin for start, stop, _ in spans)
                if tag == "O":
                    others, wrong = others + 1, wrong + covered
                elif tag[0] == "B" or not names:
                    names.append((tag[2:], [covered]))
                else:
                    names[-1][1].append(covered)
            begin = end + 1
        for kind, parts in names:
            mentions[kind] += 1
            whole[kind] += all(parts)
    assert whole["person"] >= 0.6 * mentions["person"] > 150
    assert whole["location"] >= 0.45 * mentions["location"] > 100
    assert wrong <= 0.0125 * others


def _tweets(file: Path) -> list[list[tuple[str, str]]]:
    """Return the tokens of each text with their tags."""
    texts: list[list[tuple[str, str]]] = [[]]
    for line in file.read_text(encoding="utf-8").splitlines():
        token, _, tag = line.partition("\t")
        if token:
            texts[-1].append((token, tag.split("\t")[0]))
        elif texts[-1]:
            texts.append([])
    return [text for text in texts if text]


SOURCES = {
    "dist.male.first": "JAMES 3.318 3.318 1\nWILL 0.010 3.328 2\n",
    "dist.female.first": "MARY 2.629 2.629 1\nWILL 0.002 2.631 2\n",
    "dist.all.last": "SMITH 1.006 1.006 1\nOF 0.001 1.007 2\n",
    "cities15000.json": '{"1": {"name": "Oslo", "population": 9}, "2": {"name": "New York", "population": 1}}',
    "countries.json": '{"TR": {"name": "Turkey"}}',
    "us_states.json": '{"OH": {"name": "Ohio"}}',
    "frequency_dictionary_en_82_765.txt": "of 900\nwill 90\nmary 1\nsmith 1\nturkey 8\n",
}


def test_the_lists_have_names_and_classes(tmp_path: Path) -> None:
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "out").mkdir()
    build(tmp_path, tmp_path / "out")
    lists = {file.stem: file.read_text().splitlines() for file in (tmp_path / "out").iterdir()}
    assert lists["given"] == ["James 3", "Mary 4", "Will 1"]
    assert lists["surname"] == ["Smith 3", "Of 1"]
    assert lists["city"] == ["Oslo 3", "New York 3"]
    assert {"Turkey 2", "Ohio 3", "England 3"} <= set(lists["region"])


def test_a_source_that_lacks(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="frequency_dictionary"):
        build(tmp_path, tmp_path)
