"""The labelled sample, and how what is found is counted against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import identifiers
from benchmarks.labelled import FORMS, Labelled, sample
from benchmarks.sizes import TOY
from dptext_spark.text.identifiers.types import TYPES, Identifiers


def test_the_sample_is_labelled_where_its_identifiers_stand() -> None:
    made = sample(300)
    assert made == sample(300) != sample(300, seed=1)
    assert {name for one in made for name, _, _ in one.spans} == set(FORMS) == set(TYPES)
    for one in made:
        raw = one.text.encode()
        for name, start, end in one.spans:
            held = raw[start:end].decode()
            assert held.strip() == held
            assert "@" in held or name not in ("email", "username")


def test_what_is_found_is_counted_by_type() -> None:
    text = "jane@example.com 12345678 is 5"
    labelled = [
        Labelled(text, (("email", 0, 16), ("phone", 17, 25))),  # found, but as digits
        Labelled("no 1234567", ()),  # found, and none
        Labelled("it is 555-1234", (("phone", 6, 14),)),  # not found
    ]
    found = {score.name: score for score in identifiers.scores(labelled, Identifiers())}
    assert found["email"][1:] == (1, 1, 1, 1, 1)
    assert found["phone"][1:] == (2, 1, 0, 0, 0)
    assert found["phone"].recall == 0.5
    assert found["digits"][1:] == (0, 0, 0, 2, 1)
    assert found["digits"].precision == 0.5


def test_nearly_all_of_the_sample_is_found_and_right() -> None:
    found = identifiers.scores(sample(2_000), Identifiers(date="mask"))
    held, covered = (sum(score[k] for score in found) for k in (1, 2))
    right, all_found = sum(score.right for score in found), sum(score.found for score in found)
    assert covered / held > 0.97
    assert right / all_found > 0.99
    for score in found:
        assert score.recall > 0.9, score.name
        assert score.precision > 0.95, score.name


def test_the_section_measures_both_kinds_of_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))
    section = identifiers.measure(TOY, lambda step: None)
    assert len(section.figures) == 4
    assert len(section.grids[0].rows) == len(TYPES)
    assert section.skipped
    assert all(figure.ratio is not None for figure in section.figures)
