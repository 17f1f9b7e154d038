"""What `make chaos` counts: how often each scenario struck and held, and which never struck and so showed nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


class Tally:
    """Counts by scenario and how a run of it ended."""

    def __init__(self) -> None:
        self._ended: Counter[tuple[str, str]] = Counter()

    def add(self, scenario: str, struck: int, violated: bool) -> None:
        """Count a run that was struck so many times."""
        self._ended[scenario, "violated" if violated else "held" if struck else "not struck"] += 1

    @property
    def idle(self) -> list[str]:
        """The scenarios that never struck: their runs were undisturbed ones."""
        seen = {name for name, _ in self._ended}
        return sorted(seen - {name for name, ended in self._ended if ended != "not struck"})

    @property
    def failures(self) -> int:
        """The runs of which something did not hold, and the scenarios that never struck."""
        return sum(times for (_, ended), times in self._ended.items() if ended == "violated") + len(self.idle)

    def lines(self) -> Iterator[str]:
        """Return a line a scenario and ending."""
        for (name, ended), times in sorted(self._ended.items()):
            yield f"{name:<22} {ended:<12} {times}"
        for name in self.idle:
            yield f"{name:<22} shows nothing: it never struck"
