"""The newest full record of each section of the benchmarks, as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docs.generate.references import table

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "records"
SHOWN = 25  # rows of a grid; the record has the others


def newest() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return of each section's name the newest full record that holds it, and the section."""
    found = {}
    for file in sorted(RECORDS.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["sizes"]["name"] == "full":
            for name, section in record["sections"].items():
                found[name] = ({**record, "file": file.name}, section)
    return dict(sorted(found.items()))


def newest_sections() -> str:
    """Return every section with its figures, grids and notes."""
    return "\n\n".join(_section(name, *found) for name, found in newest().items())


def grids_of(section: str) -> str:
    """Return the grids of the newest record of a section, those at equal success where it has some, and where it is from.

    Args:
        section: its name.
    """
    record, found = newest()[section]
    parts = [f"Record of {record['date'][:10]}, {record['machine']['cores']} cores; `{record['file']}`."]
    equal = [grid for grid in found["grids"] if grid["title"].endswith("at equal success")]
    for grid in equal or found["grids"]:
        reached = [row for row in grid["rows"] if row[2] is not None]
        parts += [f"**{grid['title']}**"] if grid["title"] else []
        parts.append(_table(grid["headings"], reached))
    return "\n\n".join(parts)


def _table(headings: list[str], rows: list[list[str | float | None]]) -> str:
    return table(map(_cell, headings), (map(_cell, row) for row in rows))


def _section(name: str, record: dict[str, Any], section: dict[str, Any]) -> str:
    machine = record["machine"]
    parts = [
        f"### {name}",
        f"{_cell(section['title'])}. Record of {record['date'][:10]}, {machine['cores']} cores, {machine['cpu']}; "
        f"`{record['file']}`.",
    ]
    if section["figures"]:
        rows = [
            "| figure | median | compared with | its median | ratio |",
            "|---|--:|---|--:|--:|",
            *map(_figure, section["figures"]),
        ]
        parts.append("\n".join(rows))
    for grid in section.get("grids", []):
        more = len(grid["rows"]) - SHOWN
        parts += [f"**{grid['title']}**"] if grid["title"] else []
        parts.append(_table(grid["headings"], grid["rows"][:SHOWN]))
        parts += [f"The record has {more} more rows."] if more > 0 else []
    notes = dict.fromkeys(
        [*(one["note"] for one in section["figures"] if one["note"]), *section.get("notes", [])]
    )
    parts += [f"- {_cell(note)}" for note in notes]
    return "\n\n".join(parts)


def _figure(figure: dict[str, Any]) -> str:
    cells = [_cell(figure["name"]), f"{_cell(figure['value']['median'])} {figure['unit']}"]
    peer, ratio = figure["peer"], figure["ratio"]
    cells += [_cell(figure["peer_name"] or ""), _cell(peer["median"]) if peer else ""]
    cells.append(f"{_cell(ratio['median'])} {figure['ratio_name']}" if ratio else "")
    return "| " + " | ".join(cells) + " |"


def _cell(value: str | float | None) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    shown = "" if value is None else f"{value:,}" if isinstance(value, int) else value
    return shown.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
