"""The benchmark of importance levels at toy size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import importance
from benchmarks.sizes import TOY
from benchmarks.word_classes import KINDS, LISTS, kind_of


@pytest.fixture(autouse=True)
def without_real_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv(importance.MODEL, "no_such_encoder")


def test_the_section() -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    section = importance.measure(TOY, lambda step: None)
    assert section.facts["providers"] == ["idf", "random"]
    assert len(section.skipped) == 3
    rows, kinds = section.grids
    place = {name: rows.headings.index(name) for name in ("here, both", "drawn", "known of all", "%")}
    # Two ends; by document frequency top, medium and bottom, by chance any: two strategies, every second share.
    assert len(rows.rows) == 2 + 3 * 2 * 4 + 2 * 4
    for row in rows.rows:
        assert len(row) == len(rows.headings)
        assert 0 <= row[place["here, both"]] <= 1
        assert 0 <= row[place["drawn"]] <= 1
        assert 0 <= row[place["known of all"]] <= 1
    drawn = [row[place["drawn"]] for row in rows.rows if row[0] == "random" and row[2] == "aggressive"]
    assert drawn == sorted(drawn)
    assert [row[0] for row in kinds.rows] == list(KINDS)
    for column in range(1, len(kinds.headings)):
        assert sum(row[column] for row in kinds.rows) == pytest.approx(1.0)
    json.dumps(section.as_dict(), allow_nan=False)


def test_kinds_of_words() -> None:
    assert [kind_of(word) for word in ("she", "the", "of", "and", "was", "n't", "3rd", "...", "film")] == [
        "pronoun", "determiner", "preposition", "conjunction", "auxiliary", "negation", "number", "punctuation",
        "content word",
    ]  # fmt: skip
    listed = [word for words in LISTS.values() for word in words.split()]
    assert len(listed) == len(set(listed)), sorted(word for word in listed if listed.count(word) > 1)
