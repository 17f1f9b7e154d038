"""What a list of names may hold, and what is refused without a name in the message."""

from __future__ import annotations

from pathlib import Path

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
