"""The floors of the package, drawn from the import contract in pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "dptext_spark"
WIDTH, HEIGHT, GAP, SIDE = 720, 34, 6, 8


def layers() -> list[list[str]]:
    """Return the rooms of each floor, from the top down."""
    read = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    (floors,) = [one for one in read["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    return [[room.strip() for room in floor.split("|")] for floor in floors["layers"]]


def picture() -> str:
    """Return the floors as an inline drawing: a floor a row, jobs on top."""
    drawn, stack = [], [["jobs"], *layers()]
    for row, rooms_of in enumerate(stack):
        width = (WIDTH - 2 * SIDE - GAP * (len(rooms_of) - 1)) / len(rooms_of)
        top = SIDE + row * (HEIGHT + GAP)
        for place, room in enumerate(rooms_of):
            left = SIDE + place * (width + GAP)
            kind = "door" if room in ("spark", "demo", "jobs") else "room"
            drawn.append(
                f'<rect class="{kind}" x="{left:.0f}" y="{top}" width="{width:.0f}" height="{HEIGHT}" rx="4"/>'
                f'<text x="{left + width / 2:.0f}" y="{top + HEIGHT / 2 + 5:.0f}">{room}</text>'
            )
    height = 2 * SIDE + len(stack) * (HEIGHT + GAP) - GAP
    title = "The rooms of the package, a floor a row: each imports from the floors below it only"
    return (
        f'<figure class="floors">\n<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">'
        + "".join(drawn)
        + "</svg>\n<figcaption>Each room imports from the floors below it only, and rooms of one floor not from each other. "
        "The coloured ones may import Spark.</figcaption>\n</figure>"
    )


def rooms() -> str:
    """Return a table: each room, and the first sentence of its docstring."""
    lines = ["| room | what is in it |", "|---|---|"]
    for floor in layers():
        for room in floor:
            folder, file = PACKAGE / room / "__init__.py", PACKAGE / f"{room}.py"
            tree = ast.parse((folder if folder.is_file() else file).read_text(encoding="utf-8"))
            said = re.split(r"(?<=\.)\s", (ast.get_docstring(tree) or "").replace("\n", " "), maxsplit=1)[0]
            lines.append(f"| `{room}` | {said} |")
    return "\n".join(lines)
