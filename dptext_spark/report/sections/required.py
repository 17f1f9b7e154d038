"""What was required and how it stands: on the first page the first of them, in the annex each.

A broken requirement is never left out: where not all are named, the page says how many more the annex holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dptext_spark.audit.verdict import BROKEN, HOLDS, NOT_MEASURED, UNDECIDED, Judged, Standing
from dptext_spark.config.requirements import ALONE, FIGURES
from dptext_spark.report.blocks import Section, Table, Text, capital

MARKS = {HOLDS: "✔", BROKEN: "✖", NOT_MEASURED: "?", UNDECIDED: "?"}
WORDS = {HOLDS: "holds", BROKEN: "IS BROKEN", NOT_MEASURED: "was not measured"}
SEVERAL = {HOLDS: "hold", BROKEN: "ARE BROKEN", NOT_MEASURED: "were not measured"}
CLASSES = {HOLDS: "holds", BROKEN: "broken", NOT_MEASURED: "open", UNDECIDED: "open"}
HEADING = "What was required"
_ORDER: tuple[Standing, ...] = (BROKEN, NOT_MEASURED, HOLDS)
ROWS, NAMED = 6, 8  # lines of the first page, and names in one that stands for several


@dataclass(frozen=True)
class Row:
    """A line of the page: a requirement, or several that stand alike.

    Attributes:
        mark: a sign.
        look: how it is coloured.
        requirement: itself; empty where the line stands for several.
        standing: how it stands, in words; of several with their number.
        said: what the figure is; of several their names, as far as they are given.
        annex: whether there is more to read in the annex.
    """

    mark: str
    look: str
    requirement: str
    standing: str
    said: str
    annex: bool = False


class Arranged(NamedTuple):
    """The lines of the page, and how many broken requirements are named in the annex alone."""

    rows: tuple[Row, ...]
    beyond: int


def arranged(judged: Sequence[Judged]) -> Arranged:
    """Return what the page shows of the requirements: broken ones first, then those not measured, then those that hold.

    Those that stand alike have a line each while `ROWS` are enough, else one line with the first names.
    """
    rows: list[Row] = []
    beyond = 0
    for standing in _ORDER:
        group = [requirement for requirement in judged if requirement.standing == standing]
        if len(group) <= max(1, ROWS - len(rows)):
            rows += map(row_of, group)
        else:
            rows.append(_several(group))
            beyond += max(0, len(group) - NAMED) if standing == BROKEN else 0
    return Arranged(tuple(rows), beyond)


def requirements(judged: Sequence[Judged]) -> Section | None:
    """Write the section of the annex: each requirement, in the order of the settings; None where there is none."""
    if not judged:
        return None
    rows = [row_of(one) for one in judged]
    return Section(
        "required",
        HEADING,
        (
            Text("Each requirement of the settings (require), how it stands, and what its figure is."),
            Table(
                ("requirement", "how it stands", "its figure"),
                tuple((row.requirement, f"{row.mark} {row.standing}", row.said) for row in rows),
            ),
        ),
    )


def row_of(one: Judged) -> Row:
    """Return the line of one requirement."""
    name = one.requirement.split()[0]
    said = capital(ALONE.get(name) or FIGURES[name])
    if one.shown:
        said += f"; it came to {one.shown}"  # beside its limit, which the requirement names
    elif one.restricted and one.standing != NOT_MEASURED:
        said += "; the figure is restricted"
    return Row(MARKS[one.standing], CLASSES[one.standing], one.requirement, WORDS[one.standing], f"{said}.")


def _several(group: Sequence[Judged]) -> Row:
    """Return one line of some requirements that stand alike, with the names of the first."""
    standing, count = group[0].standing, len(group)
    names = "; ".join(requirement.requirement for requirement in group[:NAMED])
    if count > NAMED:
        names += f"; and {count - NAMED:,} more"
    return Row(MARKS[standing], CLASSES[standing], "", f"{count:,} {SEVERAL[standing]}", names, annex=True)
