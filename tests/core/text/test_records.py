"""Texts from a file: a record a line, and where the label of a line stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dptext_spark.audit.comparison_input import read_records
from dptext_spark.errors import DataError, SettingsError


def file(folder: Path, text: str) -> Path:
    place = folder / "text"
    place.write_bytes(text.encode())
    return place


def test_lines_with_and_without_labels(tmp_path: Path) -> None:
    place = file(tmp_path, "\ufeffa b\t1\r\n\n c\td \u2028 e\t0\n")
    whole = read_records(place, "public")
    assert whole.texts.to_pylist() == ["a b\t1", " c\td \u2028 e\t0"]
    assert whole.labels is None
    last = read_records(place, "public", "last")
    assert last.texts.to_pylist() == ["a b", " c\td \u2028 e"]
    assert last.labels == ("1", "0")
    first = read_records(place, "public", "first")
    assert first.texts.to_pylist() == ["1", "d \u2028 e\t0"]
    assert first.labels == ("a b", "c")


def test_some_of_them_evenly(tmp_path: Path) -> None:
    found = read_records(file(tmp_path, "".join(f"w{i}\t{i}\n" for i in range(10))), "private", "last")
    some = found.spaced(4)
    assert some.texts.to_pylist() == ["w0", "w3", "w6", "w9"]
    assert some.labels == ("0", "3", "6", "9")
    assert found.spaced(10) is found


def test_what_is_wrong_is_said_without_the_text(tmp_path: Path) -> None:
    place = file(tmp_path, "secret\t1\nhidden\n")
    with pytest.raises(DataError, match=r"^private: line 2 has no tab\.") as caught:
        read_records(place, "private", "first")
    assert "hidden" not in str(caught.value)
    for labels, text in (("last", "hidden\t1\nsecret\t \n"), ("first", "1\thidden\n\tsecret\n")):
        with pytest.raises(DataError, match=r"^private: line 2 has an empty label") as caught:
            read_records(file(tmp_path, text), "private", labels)
        assert "secret" not in str(caught.value)
    for nothing in ("", "\n \n"):
        with pytest.raises(DataError, match=r"^private: 0 record\(s\)"):
            read_records(file(tmp_path, nothing), "private")
    with pytest.raises(DataError, match=r"^public: 1 record\(s\)"):
        read_records(file(tmp_path, "one\n\n"), "public")
    with pytest.raises(SettingsError, match=r"^public: .* cannot be read"):
        read_records(tmp_path / "none", "public")
    with pytest.raises(SettingsError, match=r"^labels: 'middle' is not valid. Choose first, last or none"):
        read_records(place, "public", "middle")
    place.write_bytes(b"\xff\xfe\nx\n")
    with pytest.raises(DataError, match=r"^public: .* is not UTF-8 text"):
        read_records(place, "public")
