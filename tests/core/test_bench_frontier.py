"""The benchmark of the comparison at toy size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import frontier
from benchmarks.sizes import TOY


def test_the_frontier_section(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))
    section = frontier.measure(TOY, lambda step: None)
    (figure,) = section.figures
    assert figure.judged()[0][1] == "met"
    assert "30 points" in figure.name
    assert len(section.grids) == 4
    assert len(section.grids[0].headings) == 2 + 6
    assert section.facts["text"] == "made-up sentences"
    assert len(section.facts["points"]) == 30
    json.dumps(section.as_dict(), allow_nan=False)
