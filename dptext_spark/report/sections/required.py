"""What was required and how it stands: on the first page as far as it fits there, in the annex each of them.

A broken requirement is never left out: where not all can be named, the page says how many more the annex holds.

How much of a printed sheet text takes, in points: an estimate for the print style of `page.html`, rather too large.

What a browser sets differs by its fonts; these figures are those of a wide one, on the narrower and the shorter of A4 and Letter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dptext_spark.audit.verdict import BROKEN, HOLDS, NOT_MEASURED, UNDECIDED, Judged, Standing
from dptext_spark.config.requirements import ALONE, FIGURES
from dptext_spark.report.blocks import Section, Table, Text

SHEET = 697.0  # Letter, less the margins
WIDTH = 514.0  # A4, less the margins
BODY, SMALL = 10.0, 8.5  # sizes of letters
_LETTER, _BOLD = 0.57, 0.66  # widths of a letter, to its size
_LINE = 1.38  # height of a line, to the size
_LATIN = 0x1100  # letters beyond may be twice as wide


def text_height(
    said: str,
    size: float = BODY,
    *,
    width: float = WIDTH,
    bold: bool = False,
    line: float = _LINE,
    around: float = 0.0,
) -> float:
    """Return the height of a paragraph.

    Args:
        said: its text.
        size: of its letters.
        width: that it has.
        bold: whether it is.
        line: the height of a line, to the size.
        around: what stands above and below it.
    """
    letters = sum(1 if ord(letter) < _LATIN else 2 for letter in said)
    lines = max(1, math.ceil(letters * size * (_BOLD if bold else _LETTER) / width))
    return lines * size * line + around


def heading_height() -> float:
    """Return the height of a heading of the first two pages."""
    return 31.5


def list_height(sentences: Iterable[str], *, width: float = WIDTH - 16.0) -> float:
    """Return the height of a list; of one sentence, of the paragraph."""
    return sum(text_height(one, width=width, around=3.6) for one in sentences) + 9.6


def pairs_height(rows: Iterable[tuple[str, str]]) -> float:
    """Return the height of a table of names and values."""
    return sum(text_height(value, SMALL, width=WIDTH - 84.0, around=6.8) for _, value in rows) + 14.4


MARKS = {HOLDS: "✔", BROKEN: "✖", NOT_MEASURED: "?", UNDECIDED: "?"}
WORDS = {HOLDS: "holds", BROKEN: "IS BROKEN", NOT_MEASURED: "was not measured"}
SEVERAL = {HOLDS: "hold", BROKEN: "ARE BROKEN", NOT_MEASURED: "were not measured"}
CLASSES = {HOLDS: "holds", BROKEN: "broken", NOT_MEASURED: "open", UNDECIDED: "open"}
HEADING = "What was required"
_ORDER: tuple[Standing, ...] = (BROKEN, NOT_MEASURED, HOLDS)
# How those that are broken, not measured and held are shown, from the fullest to the shortest.
_FULL, _NAMED, _COUNTED = range(3)
_SHOWN = (
    (_FULL, _FULL, _FULL),
    (_FULL, _FULL, _NAMED),
    (_FULL, _FULL, _COUNTED),
    (_FULL, _NAMED, _COUNTED),
    (_FULL, _COUNTED, _COUNTED),
    (_NAMED, _COUNTED, _COUNTED),
)
_INSIDE = WIDTH - 28.0  # beside the mark
_AROUND = 8.0


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

    @property
    def height(self) -> float:
        """How much of a printed page it takes, in points."""
        return (
            text_height(f"{self.requirement} {self.standing}", width=_INSIDE, bold=True)
            + text_height(f"{self.said}{' (each in the annex)' * self.annex}", SMALL, width=_INSIDE)
            + _AROUND
        )


class Arranged(NamedTuple):
    """The lines of the page, and how many broken requirements are named in the annex alone."""

    rows: tuple[Row, ...]
    beyond: int

    @property
    def height(self) -> float:
        """How much of a printed page they take, in points."""
        return sum(row.height for row in self.rows)


def arranged(judged: Sequence[Judged], room: float) -> Arranged:
    """Return what the page shows of the requirements: broken ones first, then those not measured, then those that hold.

    Args:
        judged: each of them.
        room: points of a printed page. Where even the names of the broken ones take more, as many stand there as fit, and the
            line says how many more there are. A group of one is never counted: its line names it.
    """
    for shown in _SHOWN:
        found = _laid(judged, shown)
        if found.height <= room:
            return found
    broken = [one for one in judged if one.standing == BROKEN]
    for named in range(len(broken) - 1, -1, -1) if len(broken) > 1 else ():
        found = Arranged((_several(broken, named), *found.rows[1:]), len(broken) - named)
        if found.height <= room:
            break
    return found


def least_height(judged: Sequence[Judged]) -> float:
    """Return how much of a printed page they take where all broken ones are named and the others counted."""
    return _laid(judged, _SHOWN[-1]).height


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
    said = ALONE.get(name) or FIGURES[name]
    said = said if said.startswith("ε") else said[:1].upper() + said[1:]
    if one.shown:
        said += f"; it came to {one.shown}"
    elif one.restricted and one.standing != NOT_MEASURED:
        said += "; the figure is restricted"
    return Row(MARKS[one.standing], CLASSES[one.standing], one.requirement, WORDS[one.standing], f"{said}.")


def _laid(judged: Sequence[Judged], shown: Sequence[int]) -> Arranged:
    rows: list[Row] = []
    for standing, how in zip(_ORDER, shown, strict=True):
        rows += _rows([one for one in judged if one.standing == standing], how)
    return Arranged(tuple(rows), 0)


def _rows(group: Sequence[Judged], how: int) -> Iterator[Row]:
    if how == _FULL or len(group) == 1:
        yield from map(row_of, group)
    elif group:
        yield _several(group, len(group) if how == _NAMED else 0)


def _several(group: Sequence[Judged], named: int) -> Row:
    """Return one line of some requirements that stand alike, with the names of the first."""
    standing, count = group[0].standing, len(group)
    names = "; ".join(one.requirement for one in group[:named])
    if 0 < named < count:
        names += f"; and {count - named:,} more"
    return Row(MARKS[standing], CLASSES[standing], "", f"{count:,} {SEVERAL[standing]}", names, annex=True)
