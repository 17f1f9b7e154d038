"""Progress callbacks: what long work tells while it goes on, in words that hold nothing of the data."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from dptext_spark.runtime.display import in_notebook

Progress = Callable[[str, float | None], None]
"""Called with each step, and the share of it that is done, 0 to 1; None where that is not known."""

Steps = Callable[[str], None]
"""Called with each step."""

Counted = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""


def silent(*_: object) -> None:
    """Tell nobody."""


VARIABLE = "DPTEXT_PROGRESS"


class OnStderr:
    """Tells each new step in a line of its own on stderr."""

    _last = ""

    def __call__(self, step: str, share: float | None = None) -> None:  # noqa: ARG002  (a line for each share is too many)
        """Tell a step, unless it goes on."""
        if step != self._last:
            self._last = step
            sys.stderr.write(f"{step}\n")
            sys.stderr.flush()


def by_default() -> Callable[..., None]:
    """Return what long work tells its steps where no callback is given.

    Returns:
        :class:`OnStderr` in a notebook, and where stderr is a terminal; else, and where the variable `DPTEXT_PROGRESS` is `off`,
        :func:`silent`.
    """
    if os.environ.get(VARIABLE) == "off":
        return silent
    terminal = sys.stderr is not None and sys.stderr.isatty()  # a program without a console has no stderr
    return OnStderr() if in_notebook() or terminal else silent


def counted(step: str, progress: Progress | None = None) -> Counted:
    """Return a callback that tells what share of one step is done.

    Args:
        step: the step.
        progress: progress callback, called with the step; None takes :func:`by_default`.
    """
    say = progress or by_default()

    def tell(done: int, whole: int) -> None:
        say(step, done / whole if whole else None)

    return tell
