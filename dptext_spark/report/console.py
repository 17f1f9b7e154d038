"""Output of commands: one screen of figures on stdout, progress on stderr."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from dptext_spark.runtime.display import table

WIDTH = 100  # columns, where stdout is no terminal
LEAST_WIDTH = 40
LINES = 40  # of a screen
LEAST_TABLE = 6  # lines of a table that the rows around it leave room for
RESTRICTED = "RESTRICTED: this shows private text and figures of it. Do not share it."
UNCUT = ("problem", "required", "verdict", "guarantee")  # rows that are whole on every screen
FULL = ContextVar("full", default=False)  # whether the command line has --full
JSON = ContextVar("json", default=False)  # whether it has --json

Rows = Sequence[
    tuple[str, ...]
]  # a name, its value and, where it has one, a note; one without a text is left out


def width() -> int:
    """Return the width of the lines of stdout."""
    return max(LEAST_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH


@dataclass(frozen=True)
class Screen:
    """The output of a command.

    Attributes:
        title: what happened.
        rows: what a person decides by.
        table: many rows; a screen shows the first rows that fit.
        warnings: sentences.
        places: where things are.
        next: the command that comes next.
        more: headings with rows that only `--full` shows; a text in place of rows is shown unchanged.
        restricted: whether it depends on the private text.
    """

    title: str
    rows: Rows = ()
    table: Rows = ()
    warnings: Sequence[str] = ()
    places: Rows = ()
    next: str = ""
    more: Sequence[tuple[str, Rows | str]] = ()
    restricted: bool = False

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Names with values: rows, warnings and places."""
        rows = (*self.rows, *(("WARNING", warning) for warning in self.warnings), *self.places)
        return [(name, ", ".join(cells)) for name, *cells in rows if cells[-1]]

    def html(self, note: str = "") -> str:
        """Return the pairs for a notebook, with a sentence below."""
        return table(self.title, self.pairs, note=note)

    def text(self, columns: int = WIDTH, *, full: bool = False) -> str:
        """Return the screen in lines of so many columns: whole, or at most `LINES` lines."""
        lines = self._lines(columns, len(self.table), full=full)
        if full or len(lines) <= LINES:
            return "\n".join(lines)
        for most in range(8, 0, -1):
            room = LINES - len(self._lines(columns, 0, most))
            if room >= min(LEAST_TABLE, len(self.table)):
                break
        return "\n".join(self._lines(columns, max(0, room), most))

    def _lines(self, columns: int, shown: int, most: int | None = None, *, full: bool = False) -> list[str]:
        """Return so many rows of the table, a line each, and the others in at most `most` lines; None cuts nothing."""
        rest = [f"{len(self.table) - shown:,} rows"] * (shown < len(self.table))
        rest += [heading for heading, _ in self.more] or ["whole sentences"] * (most is not None)
        below = [
            *(("WARNING", warning) for warning in self.warnings),
            *self.places,
            ("more", f"{listed(rest)}: --full" if rest and not full else ""),
            ("next", self.next),
        ]
        below = [row for row in below if row[-1]]
        around = laid_out([*self.rows, *below], columns, most)
        lines = [*[RESTRICTED] * self.restricted, *wrapped("", self.title, columns)]
        parts = [
            around[: len(around) - len(below)],
            laid_out(self.table[:shown], columns, None if most is None else 1),
            around[len(around) - len(below) :],
        ]
        for heading, rows in self.more if full else ():
            block = (
                rows.splitlines() if isinstance(rows, str) else chain.from_iterable(laid_out(rows, columns))
            )
            parts.insert(-1, [["", heading, *block]])
        return [*lines, *(line for part in parts for row in part for line in row)]


def laid_out(rows: Rows, columns: int, most: int | None = None) -> list[list[str]]:
    """Return the lines of each row that has a text: cells below each other, the last one wrapped between words.

    A row that is none of `UNCUT` has at most `most` lines.
    """
    filled = [row for row in rows if row[-1]]
    sizes = [max(map(len, cells)) for cells in zip_longest(*(row[:-1] for row in filled), fillvalue="")]
    lines = []
    for *cells, last in filled:
        head = "".join(f"  {cell:<{size}}" for cell, size in zip(cells, sizes, strict=False)) + "  "
        lines.append(wrapped(head, last, columns, None if cells[:1] and cells[0] in UNCUT else most))
    return lines


def wrapped(head: str, text: str, columns: int, most: int | None = None) -> list[str]:
    """Return text behind a head, in lines that begin below the text; below the head where that leaves little room."""
    lines = []
    if most == 1:
        head = head[: columns - 8]
    elif len(head) > columns // 2 and len(head) + len(text) > columns:
        lines, head = [head.rstrip()], " " * 8
    lines += textwrap.wrap(
        text, columns, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=most is not None,
        break_on_hyphens=False,
    )  # fmt: skip
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"{lines[most - 1][: columns - 4].rstrip()} ..."]


def listed(names: Sequence[str], none: str = "none") -> str:
    """Return names, those that do not fit into a line as a number."""
    shown: list[str] = []
    size = 0
    for name in names:
        size += len(name) + 2
        if size > 50 and shown:
            return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
        shown.append(name)
    return ", ".join(shown) or none


def write(text: str) -> None:
    """Write text and a newline to stdout."""
    sys.stdout.write(f"{text}\n")


def write_error(text: str) -> None:
    """Write a line about an error to stderr, where stdout has the figures."""
    sys.stderr.write(f"dptext: {text}\n")


def write_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    write(json.dumps(value, indent=2, ensure_ascii=plain, default=str))


def show(screen: Screen, record: Any) -> None:
    """Write a command's screen, with `--full` the whole screen; with `--json` write the record instead."""
    if JSON.get():
        write_json(record)
    else:
        write(screen.text(width(), full=FULL.get()))


LOADING = "loading libraries"


@contextmanager
def progress(first: str = "") -> Iterator[Callable[[str, float | None], None]]:
    """Show steps on stderr: one line that changes on a terminal, a line for each new step elsewhere.

    A command opens it before its own imports, with `LOADING` as the first step: they take seconds.
    """
    from rich.console import Console

    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        with console.status(first or "starting") as status:
            yield lambda step, share: status.update(step if share is None else f"{step}: {share:.0%}")
        return
    steps: list[str] = []

    def say(step: str, _: float | None) -> None:
        if step not in steps[-1:]:
            steps.append(step)
            console.print(step)

    if first:
        say(first, None)
    yield say
