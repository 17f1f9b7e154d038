"""The benchmark of labelled names: what it reads, and shares that are counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import labelled_names
from benchmarks.sizes import TOY

CONLL = """\
We\tO
met\tO
Ada\tB-person
Lovelace\tI-person
in\tO
Oslo\tB-location
.\tO
\t
Robert\tO
saw\tO
Zorblax\tB-product
"""


def test_texts_are_read_with_their_names() -> None:
    first, second = labelled_names.labelled(CONLL)
    assert first.names == [("persons", [2, 3]), ("places", [5])]
    assert first.others == [0, 1, 4]
    assert second.names == [("others", [2])]


def test_shares_are_those_counted_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample.conll").write_text(CONLL, encoding="utf-8")
    monkeypatch.setenv("DPTEXT_LABELLED", str(tmp_path / "sample.conll"))
    found, stay = labelled_names.measure(TOY, lambda step: None).grids
    assert dict((row[0], row[1:]) for row in found.rows) == {
        "persons": (1, 1.0, 1.0),
        "places": (1, 1.0, 1.0),
        "others": (1, 0.0, 0.0),
        "words without a label that are taken": (5, 0.2, None),  # Robert
    }
    for style, search, *shares in stay.rows:
        assert style in ("balanced", "strict")
        assert (
            shares == [0.0] * 4 if search == "on" else all(0 <= float(share or 0) < 0.5 for share in shares)
        )
