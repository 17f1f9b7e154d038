"""What a report is made of, before it is a page: sections of paragraphs, lists, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar


@dataclass(frozen=True)
class Text:
    """A paragraph. `quiet` is for what qualifies the rest: where figures are missing, why."""

    said: str
    quiet: bool = False
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Listed:
    """Sentences under a heading of their own; an empty heading is none."""

    heading: str
    sentences: tuple[str, ...]
    kind: ClassVar[str] = "list"


@dataclass(frozen=True)
class Table:
    """Rows under column names; cells are text already. `key` marks a table whose first column names the second."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    key: bool = False
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Chart:
    """A chart with what it shows, how it is read, and the table behind it."""

    title: str
    shows: str
    read: str
    svg: str
    table: Table
    kind: ClassVar[str] = "chart"


Block = Text | Listed | Table | Chart


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        name: of its anchor.
        heading: as it is printed.
        blocks: in order; charts that follow each other stand in a grid.
        restricted: whether it depends on the private text.
    """

    name: str
    heading: str
    blocks: tuple[Block, ...]
    restricted: bool = False

    @property
    def groups(self) -> list[tuple[str, list[Block]]]:
        """The blocks, with those of a kind that follow each other together: (kind, blocks)."""
        return [(kind, list(blocks)) for kind, blocks in groupby(self.blocks, key=lambda block: block.kind)]


@dataclass(frozen=True)
class Tile:
    """A figure of the summary: its name, itself, and a line that says what it means."""

    name: str
    figure: str
    said: str


def capital(text: str) -> str:
    """Begin a text with a capital letter; a figure that begins with ε keeps it."""
    return text if text.startswith("ε") else text[:1].upper() + text[1:]


def pairs(rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table of names and values."""
    return Table(("", ""), tuple(rows), key=True)
