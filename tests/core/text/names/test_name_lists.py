"""The lists of a run: what they may hold, what is shown of them, and lists that would leave no text, or protect none."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness import RunKey
from dptext_spark.text.names import name_table
from dptext_spark.text.names.name_lists import NameLists
from dptext_spark.text.names.name_table import LONGEST_ENTRY, MOST_LISTS, WordList
from dptext_spark.text.names.search import VERSION, ListSource, ListSources
from dptext_spark.text.policy import Policy
from tests.core.text.samples import list_of as named_list

KEY = RunKey.insecure(3)
FILE, TABLE = ListSource(file="/a.txt"), ListSource(table="t", column="c")
ROWS = ListSource(column="customer")
list_of = partial(named_list, name="policy.mask[0]")
KNOWN = (Lexicon.default().vocabulary, Policy().kept_words())


def of(*entries: str, known: Any = KNOWN) -> NameLists:
    return NameLists.of(ListSources(mask=(FILE,)), [list_of(*entries)], *known)


def digest(*entries: str, key: RunKey = KEY, scope: str = "r") -> str:
    (shown,) = of(*entries).shown(key, scope)["mask"]  # type: ignore[misc]
    return str(shown["digest"])


def test_what_is_shown_is_where_it_comes_from_its_size_and_a_keyed_digest() -> None:
    sources = ListSources(mask=(FILE, ROWS), keep=(TABLE,))
    lists = [list_of("Ada Lovelace", "Zorblax"), None, list_of("music")]
    made = NameLists.of(sources, lists, *KNOWN)
    shown = made.shown(KEY, "r")
    first, rows = shown["mask"]  # type: ignore[misc]
    (kept,) = shown["keep"]  # type: ignore[misc]
    assert {name: first[name] for name in ("file", "entries")} == {"file": "/a.txt", "entries": 2}
    assert rows == {"column": "customer"}
    assert kept["entries"] == 1
    assert first["digest"] != kept["digest"]
    assert (made.table.uses, made.columns) == (("mask", "keep"), (("customer", "mask"),))
    assert "Zorblax" not in str(shown)


def test_pseudonyms_are_bound_to_the_version_of_the_public_lists() -> None:
    named = {"kind": "person", "replace": "pseudonym"}
    sources = ListSources(mask=(FILE, ListSource(file="/b", **named), ListSource(column="c", **named), TABLE))
    lists = [list_of("Zorblax"), list_of("Ada Lovelace"), None, list_of("Oslo")]
    made = NameLists.of(sources, lists, *KNOWN)
    first, second, third, fourth = made.shown(KEY, "r")["mask"]  # type: ignore[misc]
    assert "version" not in first.keys() | fourth.keys()
    assert second.items() >= {**named, "version": VERSION}.items()
    assert third == {"column": "c", **named, "version": VERSION}
    assert made.table.uses == ("mask", "person", "mask")
    assert made.columns == (("c", "person"),)
    assert digest("Ada Lovelace") == digest("ada lovelace")


def test_a_digest_depends_on_the_entries_the_key_and_the_run_alone() -> None:
    digests = {
        digest(*entries, key=key, scope=scope)
        for entries in (("Ada Lovelace", "Zorblax"), ("zorblax", "ADA LOVELACE"))
        for key, scope in ((KEY, "r"), (RunKey.insecure(3), "r"))
    }
    assert len(digests) == 1
    others = {digest("Ada Lovelace"), digest("Ada Lovelace", "Zorblax", key=RunKey.insecure(4))}
    assert len(digests | others | {digest("Ada Lovelace", "Zorblax", scope="another")}) == 4


def test_lists_of_files_are_read_for_a_preview_and_the_others_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ada Lovelace\n\nZorblax\n")
    sources = ListSources(mask=(TABLE, ListSource(file=str(tmp_path / "a.txt"))), keep=(ROWS,))
    made, left = NameLists.of_files(sources, *KNOWN)
    assert left == ("policy.mask[0]", "policy.keep[0]")
    assert made.matcher.find(pa.array(["Dr. Lovelace met zorblax"])).starts.tolist() == [4, 17]
    none, left = NameLists.of_files(ListSources(keep=(ROWS,)), *KNOWN)
    assert (none.matcher, left) == (None, ("policy.keep[0]",))
    with pytest.raises(DataError, match=r"policy\.mask\[0\]: '/nowhere' cannot be read"):
        NameLists.of_files(ListSources(mask=(ListSource(file="/nowhere"),)), *KNOWN)


def test_a_list_of_stop_words_is_refused_by_its_share() -> None:
    stop_words = [word for word in Policy().kept_words() if word.isalpha() and len(word) > 2]
    vocabulary = Lexicon.default().vocabulary
    made_up = [f"Zorblax{chr(97 + i)}" for i in range(26)]
    most = [*stop_words[:30], *made_up[:20]]
    with pytest.raises(DataError, match=r"policy\.mask\[0\]: \d\d% of its 50 entries are stop words"):
        of(*most, known=(vocabulary, stop_words))
    of(*most, known=(vocabulary, Policy(stop_words="draw").kept_words()))
    # Too few to tell; they are names, too.
    of("Will", "May", "Zorblax", known=(vocabulary, stop_words))
    of(*stop_words[:10], *made_up, known=(vocabulary, stop_words))


def test_a_list_of_the_lexicon_is_refused_by_its_share() -> None:
    words = Lexicon.default().vocabulary.strings().to_pylist()
    entries = [word for word in words if len(word) > 1]
    with pytest.raises(DataError, match=r"policy\.mask\[0\]: it has \d+% of the lexicon's words"):
        of(*entries, known=(Lexicon.default().vocabulary, ()))
    of(*entries[: len(words) // 3], known=(Lexicon.default().vocabulary, ()))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (Policy().kept_words(), r"\d\d% of its \d+ entries are stop words"),
        (Lexicon.default().vocabulary.strings().to_pylist(), r"it has \d+% of the lexicon's words"),
        (["Ada", "x", "Zorblax"], r"entry 2 is a single letter"),
        ([*(f"Zorblax{chr(97 + i)}" for i in range(20)), "---", "a"], r"entry 21 has no letter or digit"),
    ],
    ids=["the packaged stop words", "the whole lexicon", "a letter", "no letter"],
)
def test_the_share_is_named_before_an_entry(entries: Sequence[str], said: str) -> None:
    """Both hold single letters, and as a whole are no lists of names."""
    with pytest.raises(DataError, match=said):
        NameLists.of(ListSources(mask=(FILE, FILE)), [list_of("Ada Lovelace"), list_of(*entries)], *KNOWN)


def test_too_many_lists() -> None:
    count = MOST_LISTS + 1
    with pytest.raises(SettingsError, match=f"policy.mask: {count} lists"):
        NameLists.of(ListSources(mask=(FILE,) * count), [list_of("Zorblax")] * count, *KNOWN)


def entries(one: WordList) -> list[str]:
    data = one.data.tobytes()
    return [data[a:b].decode() for a, b in zip(one.bounds[:-1], one.bounds[1:], strict=True)]


@contextmanager
def peak_below(size: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size


def test_a_file_holds_an_entry_a_line(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes("\ufeffAda Lovelace\r\n\n  \nJosé\n李小龍".encode())
    assert entries(WordList.read("list", str(file))) == ["Ada Lovelace\r", "José", "李小龍"]


def test_a_column_holds_an_entry_a_row() -> None:
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(["x", "Ada", None, "", " ", "José"], kind).slice(1)
        assert entries(WordList.of_texts("list", column)) == ["Ada", "José"]
    with pytest.raises(DataError, match="list: a column of type int64 is not valid"):
        WordList.of_texts("list", pa.array([1]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "list: no entry"),
        (b"\n \n\t\n", "list: no entry"),
        (b"Ada\nsecr\xe9t\n", "list: entry 2 is not UTF-8"),
        (b"Ada\n" + b"secret" * 200, f"list: entry 2 has 1,200 bytes. Choose at most {LONGEST_ENTRY:,}"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes(content)
    with pytest.raises(DataError, match=said) as raised:
        WordList.read("list", str(file))
    assert "secr" not in str(raised.value)


def test_too_large_and_missing_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "names.txt"
    with pytest.raises(DataError, match=r"list: .*names.txt' cannot be read \(No such file"):
        WordList.read("list", str(file))
    file.write_bytes(b"Ada\nEve\nBob\n")
    monkeypatch.setattr(name_table, "MOST_ENTRIES", 2)
    with pytest.raises(DataError, match=r"list: 3 entries are too many\. Choose at most 2"):
        WordList.read("list", str(file))
    monkeypatch.setattr(name_table, "LARGEST", 5)
    with pytest.raises(DataError, match=r"has 12 bytes\. Choose at most 5"):
        WordList.read("list", str(file))


def test_a_file_of_too_many_lines_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    """What is allocated does not grow with the file: a line of two bytes made eleven of a hundred."""
    file, said = tmp_path / "names.txt", r"list: 1,000,000 entries are too many\. Choose at most 999,999"
    file.write_bytes(b"a\n\n" * 1_000_000)
    monkeypatch.setattr(name_table, "MOST_ENTRIES", 999_999)
    monkeypatch.setattr(name_table, "BLOCK", 1 << 14)
    with peak_below(1 << 20), pytest.raises(DataError, match=said):
        WordList.read("list", str(file))  # the file has three million bytes
    # Reading takes a few bytes for each of the file.
    monkeypatch.undo()
    file.write_bytes((b"x" * 900 + b"\n") * 5_000)
    with peak_below(8 * file.stat().st_size):
        assert len(WordList.read("list", str(file))) == 5_000


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_lines_are_counted_wherever_blocks_end(tmp_path: Path, monkeypatch: Any, block: int) -> None:
    chance, file = random.Random(block), tmp_path / "names.txt"
    monkeypatch.setattr(name_table, "BLOCK", block)
    for _ in range(200):
        text = "".join(chance.choice("a \n\n\r\té") for _ in range(chance.randint(0, 30)))
        file.write_text(text, encoding="utf-8", newline="")
        wanted = [line for line in text.split("\n") if any(char > " " for char in line)]
        monkeypatch.setattr(name_table, "MOST_ENTRIES", len(wanted))
        if wanted:
            assert entries(WordList.read("list", str(file))) == wanted
            monkeypatch.setattr(name_table, "MOST_ENTRIES", len(wanted) - 1)
        with pytest.raises(DataError, match=f"list: {len(wanted):,} entries" if wanted else "list: no entry"):
            WordList.read("list", str(file))
