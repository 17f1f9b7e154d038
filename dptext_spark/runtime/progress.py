"""Progress callbacks: what long work tells while it goes on, in words that hold nothing of the data."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float | None], None]
"""Called with each step, and the share of it that is done, 0 to 1; None where that is not known."""

Steps = Callable[[str], None]
"""Called with each step."""

Counted = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""


def silent(*_: object) -> None:
    """Tell nobody."""
