"""A file is there whole, or as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dptext_spark.runtime import paths
from dptext_spark.runtime.paths import PRIVATE, write_atomically


@pytest.mark.parametrize(("mode", "expected"), [(0o666, 0o644), (PRIVATE, 0o600)])
def test_it_is_written_in_place_of_what_was_there(tmp_path: Path, mode: int, expected: int) -> None:
    file = tmp_path / "a file.json"
    file.write_text("before")
    before = os.umask(0o022)
    try:
        write_atomically(file, "after: ε\n", mode)
    finally:
        os.umask(before)
    assert file.read_text(encoding="utf-8") == "after: ε\n"
    assert file.stat().st_mode & 0o777 == expected
    assert list(tmp_path.iterdir()) == [file]


def test_one_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "\ud800")

    def full(*_: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(paths.os, "replace", full)
    with pytest.raises(OSError, match="full"):
        write_atomically(file, "after")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(OSError, match="No such file"):
        write_atomically(tmp_path / "none" / "file", "after")
