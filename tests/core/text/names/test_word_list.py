"""What a list of names may hold, and what is refused without a name in the message."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError
from dptext_spark.text.names import word_list
from dptext_spark.text.names.word_list import LONGEST_ENTRY, WordList


def entries(one: WordList) -> list[str]:
    data = one.data.tobytes()
    return [data[a:b].decode() for a, b in zip(one.bounds[:-1], one.bounds[1:], strict=True)]


def test_a_file_holds_an_entry_a_line(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes("\ufeffAda Lovelace\r\n\n  \nJosé\n李小龍".encode())
    assert entries(WordList.read("list", str(file))) == ["Ada Lovelace\r", "José", "李小龍"]


def test_a_column_holds_an_entry_a_row() -> None:
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(["x", "Ada", None, "", " ", "José"], kind).slice(1)
        assert entries(WordList.of_texts("list", column)) == ["Ada", "José"]
    with pytest.raises(DataError, match="list: a column of type int64; valid: a text column"):
        WordList.of_texts("list", pa.array([1]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "list: no entry"),
        (b"\n \n\t\n", "list: no entry"),
        (b"Ada\nsecr\xe9t\n", "list: entry 2 is no UTF-8"),
        (b"Ada\n" + b"secret" * 200, f"list: entry 2 has 1,200 bytes; valid: at most {LONGEST_ENTRY:,}"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes(content)
    with pytest.raises(DataError) as raised:
        WordList.read("list", str(file))
    assert said in str(raised.value)
    assert "secr" not in str(raised.value)


def test_too_large_and_missing_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "names.txt"
    with pytest.raises(DataError, match=r"list: .*names.txt cannot be read \(No such file"):
        WordList.read("list", str(file))
    file.write_bytes(b"Ada\nEve\nBob\n")
    monkeypatch.setattr(word_list, "MOST_ENTRIES", 2)
    with pytest.raises(DataError, match="list: 3 entries; valid: at most 2"):
        WordList.read("list", str(file))
    monkeypatch.setattr(word_list, "LARGEST", 5)
    with pytest.raises(DataError, match="holds 12 bytes; valid: at most 5"):
        WordList.read("list", str(file))


def test_a_file_of_too_many_lines_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is allocated does not grow with the file: a line of two bytes made eleven of a hundred."""
    file = tmp_path / "names.txt"
    file.write_bytes(b"a\n\n" * 1_000_000)
    monkeypatch.setattr(word_list, "MOST_ENTRIES", 999_999)
    monkeypatch.setattr(word_list, "BLOCK", 1 << 14)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="list: 1,000,000 entries; valid: at most 999,999"):
            WordList.read("list", str(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20  # the file has three million bytes


def test_reading_takes_a_few_bytes_for_each_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes((b"x" * 900 + b"\n") * 5_000)
    tracemalloc.start()
    try:
        read = WordList.read("list", str(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(read) == 5_000
    assert peak < 8 * file.stat().st_size


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_lines_are_counted_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    chance, file = random.Random(block), tmp_path / "names.txt"
    monkeypatch.setattr(word_list, "BLOCK", block)
    for _ in range(200):
        text = "".join(chance.choice("a \n\n\r\té") for _ in range(chance.randint(0, 30)))
        file.write_text(text, encoding="utf-8", newline="")
        wanted = [line for line in text.split("\n") if any(char > " " for char in line)]
        monkeypatch.setattr(word_list, "MOST_ENTRIES", len(wanted))
        if wanted:
            assert entries(WordList.read("list", str(file))) == wanted
            monkeypatch.setattr(word_list, "MOST_ENTRIES", len(wanted) - 1)
        with pytest.raises(DataError, match=f"list: {len(wanted):,} entries" if wanted else "list: no entry"):
            WordList.read("list", str(file))


def test_some_entries_keep_their_places() -> None:
    whole = WordList.of("list", [b"Ada", b"x", "José".encode(), b"Eve"])
    some = whole.only(np.array([False, True, True, False]))
    assert (entries(some), some.places.tolist()) == (["x", "José"], [1, 2])
    assert some.data[some.bounds[-1] :].tolist() == [0] * word_list.PADDING
    assert len(whole.only(np.zeros(4, np.bool_))) == 0
