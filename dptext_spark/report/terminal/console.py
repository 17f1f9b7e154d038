"""How commands talk: figures on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


WIDTH = 100  # columns, where stdout is no terminal
PRICE = 0.05  # of a core-hour, in whatever currency the reader pays; a round figure for rented machines
LEAST_WIDTH = 40


def width() -> int:
    """Return how wide the lines of stdout may be."""
    from rich.console import Console

    return max(LEAST_WIDTH, Console().width) if sys.stdout.isatty() else WIDTH


def hanging(head: str, text: str, columns: int) -> str:
    """Return text behind a head, wrapped between words, with the lines that follow indented as far as the head goes."""
    return textwrap.fill(
        text, columns, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def entries(rows: Sequence[tuple[str, str]], columns: int, head: int | None = None) -> list[str]:
    """Return values behind their names, indented by two; names are as wide as the widest one, or as `head`."""
    wide = max((len(name) for name, _ in rows), default=0) if head is None else head
    return [hanging(f"  {name:<{wide}}  ", value, columns) for name, value in rows]


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Lay cells out in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def write(text: str) -> None:
    """Write text and a newline to stdout."""
    sys.stdout.write(f"{text}\n")


def write_error(text: str) -> None:
    """Write a line about what is wrong to stderr, where stdout has the figures."""
    sys.stderr.write(f"dptext: {text}\n")


def write_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    write(json.dumps(value, indent=2, ensure_ascii=plain, default=str))


def show(what: RenderableType) -> None:
    """Write something that rich renders to stdout; brackets and colons in it mean themselves."""
    from rich.console import Console

    Console(highlight=False, emoji=False, markup=False).print(what)


@contextmanager
def progress() -> Iterator[Callable[[str, float | None], None]]:
    """Tell steps on stderr: one line that changes on a terminal, a line for each new step elsewhere."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        with console.status("starting") as status:
            yield lambda step, share: status.update(step if share is None else f"{step}: {share:.0%}")
        return
    said: list[str] = []

    def say(step: str, _: float | None) -> None:
        if step not in said[-1:]:
            said.append(step)
            console.print(step)

    yield say
