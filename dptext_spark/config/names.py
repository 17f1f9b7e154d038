"""Names of columns: a path with dots through nested ones, unusual parts in back-ticks."""

from __future__ import annotations

import re

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parts_of(name: str) -> tuple[str, ...] | None:
    """Split a path at its dots, back-ticks respected: `meta.note`, or `` meta.`the note` ``; None where it is no path."""
    parts, at = [], 0
    while True:
        found = _PART.match(name, at)
        if found is None:
            return None
        parts.append(found[1].replace("``", "`") if found[1] else found[2])
        at = found.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            return None
        at += 1


def spelled(parts: tuple[str, ...]) -> str:
    """Return the one spelling of a path: back-ticks only where a part holds a dot or a back-tick."""
    return ".".join("`" + p.replace("`", "``") + "`" if "." in p or "`" in p else p for p in parts)
