"""How wide a line may be."""

from __future__ import annotations

import sys

import pytest

from dptext_spark.report.terminal.console import LEAST_WIDTH, WIDTH, hanging, width


def test_a_line_is_as_wide_as_the_terminal_and_100_columns_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert width() == WIDTH == 100
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert width() == 77
    monkeypatch.setenv("COLUMNS", "9")
    assert width() == LEAST_WIDTH


def test_lines_hang_below_the_text() -> None:
    assert hanging("  name  ", "one two three-four", 15) == "  name  one two\n        three-four"
    assert hanging("  ", "", 15).strip() == ""
