"""The requirements on the first page and in the annex, for every number of them that hold, are broken, or were not measured."""

from __future__ import annotations

import itertools

import pytest

from dptext_spark.config.requirements import BROKEN, FIGURES, HOLDS, NOT_MEASURED, Judgement, Standing
from dptext_spark.report.requirements_section import NAMED, ROWS, first_rows, requirements

COUNTS = (0, 1, 3, 9, 30)
ORDER: tuple[Standing, ...] = (BROKEN, NOT_MEASURED, HOLDS)


def of(held: int, broken: int, waiting: int) -> list[Judgement]:
    standings = [HOLDS] * held + [BROKEN] * broken + [NOT_MEASURED] * waiting
    names = sorted(FIGURES, key=len, reverse=True)
    numbered = [(f"{names[n % len(names)]} <= 0.{n:03d}", n % 3, each) for n, each in enumerate(standings)]
    made = [Judgement(text, each, n > 0, "" if n else "0.25") for text, n, each in numbered]
    return made[::2] + made[1::2]


@pytest.mark.parametrize("counts", list(itertools.product(COUNTS, repeat=3)))
def test_none_is_left_out_and_the_broken_ones_come_first(counts: tuple[int, int, int]) -> None:
    judged = of(*counts)
    page, beyond = first_rows(judged)
    looks = [row.look for row in page]
    assert looks == sorted(looks, key=["broken", "open", "holds"].index)
    assert len(looks) <= ROWS + 2  # a line for each other way to stand
    assert sum(counts) > ROWS or all(row.requirement for row in page)
    hidden = 0
    for standing, look in zip(ORDER, ("broken", "open", "holds"), strict=True):
        group = [requirement.requirement for requirement in judged if requirement.standing == standing]
        rows = [row for row in page if row.look == look]
        if all(row.requirement for row in rows):
            assert [row.requirement for row in rows] == group  # each in full
            continue
        (row,) = rows
        assert row.standing.split()[0] == f"{len(group):,}"  # else one line, which counts them
        assert row.annex
        assert row.said.split("; ")[:NAMED] == group[:NAMED]
        more = max(0, len(group) - NAMED)
        assert (f"; and {more:,} more" in row.said) == bool(more)
        hidden += more if standing == BROKEN else 0
    assert beyond == hidden
    section = requirements(judged)
    assert (section is None) == (not judged)
    if section is not None:
        assert [row[0] for row in section.blocks[1].rows] == [each.requirement for each in judged]
