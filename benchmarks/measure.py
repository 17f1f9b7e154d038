"""What a benchmark measures: repeated figures, each beside a peer that was measured in turn with it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["met", "floor met", "missed"]


@dataclass(frozen=True)
class Spread:
    """Repeated measurements of one figure.

    Attributes:
        runs: every measurement, in the order in which they were made.
    """

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle measurement."""
        return statistics.median(self.runs)

    def as_dict(self) -> dict[str, Any]:
        """Return median, extremes and every run, JSON-able."""
        digits = [float(f"{value:.6g}") for value in self.runs]
        return {"median": float(f"{self.median:.6g}"), "min": min(digits), "max": max(digits), "runs": digits}


@dataclass(frozen=True)
class Goal:
    """What a figure should reach.

    Attributes:
        limit: the goal.
        floor: what is still acceptable.
        of: whether the figure itself or its ratio to the peer is judged.
        at_least: larger is better; otherwise smaller is.
    """

    limit: float
    floor: float
    of: Literal["value", "ratio"]
    at_least: bool = False

    def verdict(self, value: float) -> Verdict:
        """Judge a median."""
        sign = -1 if self.at_least else 1
        if sign * value <= sign * self.limit:
            return "met"
        return "floor met" if sign * value <= sign * self.floor else "missed"


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        name: what is measured.
        unit: of `value` and `peer`.
        value: our measurements.
        peer_name: what it is compared with.
        peer: the peer's measurements, or what was expected.
        ratio: of each pair of measurements.
        ratio_name: how the ratio reads, such as `x faster`.
        goals: what it should reach.
        note: what a reader must know to read the figure.
    """

    name: str
    unit: str
    value: Spread
    peer_name: str = ""
    peer: Spread | None = None
    ratio: Spread | None = None
    ratio_name: str = "x"
    goals: tuple[Goal, ...] = ()
    note: str = ""

    def judged(self) -> list[tuple[Goal, Verdict]]:
        """Return each goal with its verdict on the median."""
        verdicts = []
        for goal in self.goals:
            spread = self.value if goal.of == "value" else self.ratio
            assert spread is not None, f"{self.name}: a goal for a ratio that was not measured"
            verdicts.append((goal, goal.verdict(spread.median)))
        return verdicts

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "name": self.name,
            "unit": self.unit,
            "value": self.value.as_dict(),
            "peer_name": self.peer_name or None,
            "peer": self.peer and self.peer.as_dict(),
            "ratio": self.ratio and self.ratio.as_dict(),
            "ratio_name": self.ratio_name if self.ratio else None,
            "goals": [{**asdict(goal), "verdict": verdict} for goal, verdict in self.judged()],
            "note": self.note or None,
        }


@dataclass(frozen=True)
class Grid:
    """A plain table, where a line of figures has more than one value and no ratio.

    Attributes:
        title: above it.
        headings: of the columns.
        rows: cells; numbers as they were measured, None where there is none.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


@dataclass
class Section:
    """The figures of one subject.

    Attributes:
        name: how it is selected.
        title: what it is about.
        figures: in the order of the table.
        grids: tables that are shown below it.
        notes: what a reader must know, shown below both; a figure's own note comes before them.
        facts: what the figures were measured on, JSON-able.
        skipped: what was not measured, with the reason.
    """

    name: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "title": self.title,
            "figures": [figure.as_dict() for figure in self.figures],
            "facts": self.facts,
            "skipped": self.skipped,
            "grids": [asdict(grid) for grid in self.grids],
            "notes": self.notes,
        }


def seconds_of(run: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def in_turn(rounds: int, *runs: Callable[[], Any]) -> list[tuple[float, ...]]:
    """Time several calls one after the other, `rounds` times, so that a change of the machine's pace meets all of them.

    Returns:
        The seconds of each call, in the order of the rounds.
    """
    times = [[seconds_of(run) for run in runs] for _ in range(rounds)]
    return [tuple(row) for row in zip(*times, strict=True)]


def scaled(times: Sequence[float], factor: float) -> Spread:
    """Return measurements in another unit."""
    return Spread(tuple(value * factor for value in times))


def quotient(above: Spread, below: Spread) -> Spread:
    """Return the ratio of each pair of measurements that were made in turn."""
    return Spread(tuple(a / b for a, b in zip(above.runs, below.runs, strict=True)))
