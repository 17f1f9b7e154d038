"""The requirements of a run's settings and how they stand: on the first page of a report, in its annex, and in a terminal.

A broken requirement is never left out: where not all are named, the page says how many more the annex holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dptext_spark.config.requirements import BROKEN, HOLDS, NOT_MEASURED, Judgement, Verdict, meaning_of
from dptext_spark.report.blocks import Section, Table, Text, capital


class Look(NamedTuple):
    """How a standing is shown: its sign, its class in the page's style, and its words for one requirement and for several."""

    mark: str
    style: str
    single: str
    several: str


LOOKS = {
    BROKEN: Look("✖", "broken", "IS BROKEN", "ARE BROKEN"),
    NOT_MEASURED: Look("?", "open", "was not measured", "were not measured"),
    HOLDS: Look("✔", "holds", "holds", "hold"),
}
HEADING = "What was required"
ROWS, NAMED = 6, 8  # lines of the first page, and names in one that stands for several


@dataclass(frozen=True)
class Row:
    """A line of the page: a requirement, or several with equal standing.

    Attributes:
        mark: a sign.
        look: how it is coloured.
        requirement: itself; empty where the line represents several.
        standing: the standing in words; of several with their number.
        said: what the figure is; of several their names, as far as they are given.
        annex: whether there is more to read in the annex.
    """

    mark: str
    look: str
    requirement: str
    standing: str
    said: str
    annex: bool = False


def first_rows(judged: Sequence[Judgement]) -> tuple[tuple[Row, ...], int]:
    """Return the requirements that the page shows: broken ones first, then those not measured, then those that hold.

    Requirements of equal standing have a line each while `ROWS` are enough, else one line with the first names.

    Returns:
        (the lines; how many broken requirements only the annex names).
    """
    rows: list[Row] = []
    beyond = 0
    for standing in LOOKS:
        group = [requirement for requirement in judged if requirement.standing == standing]
        if len(group) <= max(1, ROWS - len(rows)):
            rows += map(row_of, group)
        else:
            rows.append(_several(group))
            beyond += max(0, len(group) - NAMED) if standing == BROKEN else 0
    return tuple(rows), beyond


def requirements(judged: Sequence[Judgement]) -> Section | None:
    """Write the section of the annex: each requirement, in the order of the settings; None where there is none."""
    if not judged:
        return None
    rows = [row_of(entry) for entry in judged]
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


def row_of(entry: Judgement) -> Row:
    """Return the line of a requirement."""
    figure = capital(meaning_of(entry.requirement.split()[0], alone=True))
    if entry.shown:
        figure += f"; it came to {entry.shown}"  # beside its limit, which the requirement names
    elif entry.restricted and entry.measured:
        figure += "; the figure is restricted"
    look = LOOKS[entry.standing]
    return Row(look.mark, look.style, entry.requirement, look.single, f"{figure}.")


def _several(group: Sequence[Judgement]) -> Row:
    """Return one line for some requirements of equal standing, with the names of the first."""
    look, count = LOOKS[group[0].standing], len(group)
    names = "; ".join(requirement.requirement for requirement in group[:NAMED])
    if count > NAMED:
        names += f"; and {count - NAMED:,} more"
    return Row(look.mark, look.style, "", f"{count:,} {look.several}", names, annex=True)


def verdict_rows(verdict: Verdict | None) -> Iterator[tuple[str, str]]:
    """Describe the standing of the settings' requirements; their figures are not shown."""
    if verdict is None:
        return
    yield from required((each.requirement, each.loud) for each in verdict.judged)
    for reason in verdict.against:
        yield "required", f"BROKEN in any case: {reason}"
    stands = verdict.standing if verdict.standing != BROKEN else "BROKEN: do not publish this table"
    yield "verdict", stands + (f" ({depending(verdict.bits)}, a bit each)" if verdict.bits else "")


def depending(bits: int) -> str:
    """Count the answers that depend on the private text, as the beginning of a sentence."""
    which = "one of these answers depends" if bits == 1 else f"{bits:,} of these answers depend"
    return f"{which} on the private text"


def required(standings: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield requirements by their standing, a row each; broken ones first."""
    grouped: dict[str, list[str]] = {"BROKEN": []}
    for requirement, standing in standings:
        grouped.setdefault(standing, []).append(requirement)
    yield from (
        ("required", f"{standing}: {'; '.join(names)}") for standing, names in grouped.items() if names
    )
