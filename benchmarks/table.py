"""The figures as tables that a person can read."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Goal, Grid, Section, Spread, Verdict

STYLES: dict[Verdict, str] = {"met": "green", "floor met": "yellow", "missed": "red"}


def show(section: Section, console: Console) -> None:
    """Print one section."""
    table = Table(title=section.title, title_justify="left", title_style="bold", show_lines=False)
    table.add_column("figure", overflow="fold")
    for heading in ("median", "min - max", "peer", "ratio", "min - max"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("goal (floor)", no_wrap=True)
    for figure in section.figures:
        verdicts = [_verdict(goal, verdict) for goal, verdict in figure.judged()]
        table.add_row(
            f"{figure.name}" + (f"\n[dim]beside: {figure.peer_name}[/dim]" if figure.peer_name else ""),
            f"{_number(figure.value.median)} {figure.unit}",
            _range(figure.value),
            _number(figure.peer.median) if figure.peer else "",
            f"{_number(figure.ratio.median)} {figure.ratio_name}" if figure.ratio else "",
            _range(figure.ratio) if figure.ratio else "",
            "\n".join(verdicts),
        )
    if section.figures:
        console.print(table)
    for grid in section.grids:
        console.print(_plain(grid, grid.title or section.title))
    notes = dict.fromkeys([*(figure.note for figure in section.figures if figure.note), *section.notes])
    for line in [*notes, *(f"skipped: {reason}" for reason in section.skipped)]:
        console.print(f"[dim]{line}[/dim]", highlight=False)


def _plain(grid: Grid, title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_lines=False)
    for number, heading in enumerate(grid.headings):
        words = any(isinstance(row[number], str) for row in grid.rows)
        table.add_column(heading, justify="left" if words else "right")
    for row in grid.rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(value: str | int | float | None) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "" if value is None else str(value)


def _verdict(goal: Goal, verdict: Verdict) -> str:
    sign = ">=" if goal.at_least else "<="
    floor = "" if goal.floor == goal.limit else f" ({goal.floor:g})"
    return f"{sign} {goal.limit:g}{floor} [{STYLES[verdict]}]{verdict}[/]"


def _range(spread: Spread) -> str:
    if len(spread.runs) == 1:
        return ""
    return f"{_number(min(spread.runs))} - {_number(max(spread.runs))}"


def _number(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
