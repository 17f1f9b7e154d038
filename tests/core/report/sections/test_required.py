"""The requirements on the first page and in the annex, for every number of them that hold, are broken, or were not measured."""

from __future__ import annotations

import itertools

import pytest

from dptext_spark.audit.verdict import BROKEN, HOLDS, NOT_MEASURED, Judged, Standing
from dptext_spark.config.requirements import FIGURES
from dptext_spark.report.sections.required import arranged, least_height, requirements, text_height

COUNTS = (0, 1, 3, 30)
ROOMS = (-50.0, 0.0, 30.0, 90.0, 200.0, 400.0, 1e9)
ORDER: tuple[Standing, ...] = (BROKEN, NOT_MEASURED, HOLDS)


def of(held: int, broken: int, waiting: int) -> list[Judged]:
    """Requirements of long names, in an order that mixes how they stand."""
    standings = [HOLDS] * held + [BROKEN] * broken + [NOT_MEASURED] * waiting
    names = sorted(FIGURES, key=len, reverse=True)
    made = [
        Judged(f"{names[n % len(names)]} <= 0.{n:03d}", standing, n % 3 > 0, "0.25" if n % 3 == 0 else "")
        for n, standing in enumerate(standings)
    ]
    return made[::2] + made[1::2]


@pytest.mark.parametrize("room", ROOMS)
def test_none_is_left_out_and_the_broken_ones_come_first(room: float) -> None:
    for counts in itertools.product(COUNTS, repeat=3):
        judged = of(*counts)
        found = arranged(judged, room)
        stood = [row.look for row in found.rows]
        assert stood == sorted(stood, key=["broken", "open", "holds"].index)
        for standing, look in zip(ORDER, ("broken", "open", "holds"), strict=True):
            group = [one.requirement for one in judged if one.standing == standing]
            rows = [row for row in found.rows if row.look == look]
            if all(row.requirement for row in rows):
                assert [row.requirement for row in rows] == group  # each in full
                continue
            (row,) = rows
            assert row.standing.split()[0] == f"{len(group):,}"  # else one line, which counts them
            assert row.annex
            named = [name for name in row.said.split("; ") if not name.startswith("and ")] if row.said else []
            assert named == group[: len(named)]
            if standing == BROKEN:
                assert len(named) + found.beyond == len(group)
                assert (f"and {found.beyond:,} more" in row.said) == (0 < found.beyond < len(group))
        section = requirements(judged)
        assert (section is None) == (not judged)
        if section is not None:
            table = section.blocks[1]
            assert [row[0] for row in table.rows] == [one.requirement for one in judged]


@pytest.mark.parametrize("room", ROOMS)
def test_it_takes_no_more_than_its_room_wherever_counting_is_enough(room: float) -> None:
    for counts in itertools.product(COUNTS, repeat=3):
        judged = of(*counts)
        found = arranged(judged, room)
        counted = [row for row in arranged(judged, -1.0).rows]
        assert found.height <= max(room, sum(row.height for row in counted))
        assert found.beyond == 0 or least_height(judged) > room
        assert arranged(judged, least_height(judged)).beyond == 0
        if room == 1e9:
            assert all(row.requirement for row in found.rows)


def test_more_room_never_says_less() -> None:
    for counts in ((3, 4, 5), (30, 30, 30), (0, 100, 0)):
        judged = of(*counts)
        beyond = [arranged(judged, float(room)).beyond for room in range(0, 2000, 40)]
        assert beyond == sorted(beyond, reverse=True)
        full = [
            sum(bool(row.requirement) for row in arranged(judged, float(room)).rows)
            for room in range(0, 9000, 60)
        ]
        assert full == sorted(full)
        assert full[-1] == sum(counts)


def test_letters_that_are_wide_take_twice_the_room() -> None:
    assert (
        text_height("x" * 600) < text_height("\u6f22" * 600) <= 2 * text_height("x" * 600) + text_height("x")
    )
    assert text_height("") == text_height("x")
