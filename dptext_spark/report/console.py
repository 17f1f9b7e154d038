"""How commands talk: figures on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


def write(text: str) -> None:
    """Write text and a newline to stdout."""
    sys.stdout.write(f"{text}\n")


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

    def say(step: str, share: float | None) -> None:
        if step not in said[-1:]:
            said.append(step)
            console.print(step)

    yield say
