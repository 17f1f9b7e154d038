"""How wide a line may be, and that a screen has 40 lines with every warning and verdict on it."""

from __future__ import annotations

import sys

import pytest

from dptext_spark.report.console import LEAST_WIDTH, LINES, WIDTH, Screen, width

LONG = "a sentence of several words that goes on " * 12


def test_a_line_is_as_wide_as_the_terminal_and_100_columns_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert width() == WIDTH == 100
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert width() == 77
    monkeypatch.setenv("COLUMNS", "9")
    assert width() == LEAST_WIDTH


@pytest.mark.parametrize("columns", [40, 60, WIDTH, 200])
def test_what_does_not_fit_is_for_full_but_no_warning_and_no_verdict(columns: int) -> None:
    shown = Screen(
        "done", [*((f"name {n}", LONG) for n in range(9)), ("verdict", "BROKEN " * 10)],
        table=[(f"figure {n}", "1", LONG) for n in range(50)], warnings=[f"WARNING{n} {LONG}" for n in range(9)],
        places=[("output", "/out/" * 30)], next="dptext report", more=[("settings", "epsilon: 2\n  k: 20")],
    )  # fmt: skip
    lines = shown.text(columns).splitlines()
    assert (len(lines) <= LINES, max(map(len, lines)) <= columns) == (True, True)
    text = "\n".join(lines)
    assert text.count("BROKEN") == 10
    assert all(f"WARNING{n}" in text for n in range(9))
    assert "settings: --full" in " ".join(text.split())
    assert ("figure 4 " in text) > ("figure 49" in text)
    whole = shown.text(columns, full=True)
    assert "epsilon: 2\n  k: 20" in whole
    assert whole.count("figure ") == 50
    assert " ".join(whole.split()).count(LONG.strip()) == 68
    assert "--full" not in whole
