"""The examples in the docstrings of the public names: where each one is, and a runner for them."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import dptext_spark as dp
from dptext_spark import audit, mechanisms
from dptext_spark import spark as dps

DOORS: dict[str, ModuleType] = {"dp": dp, "audit": audit, "dps": dps}
# What others use, first; the names that an example makes are there for those after it, as in a notebook.
FIRST = ("run", "audit", "report", "doctor", "compare")
HEADING = re.compile(r"^\s*Examples:$", re.MULTILINE)


def documented(door: str) -> Iterator[tuple[str, str]]:
    """Yield (name, docstring) of a door and of what it holds; a dictionary has that of its module."""
    module = DOORS[door]
    yield door, module.__doc__ or ""
    names = set(module.__all__) - {"__version__"}
    for name in [*(name for name in FIRST if name in names), *sorted(names - set(FIRST))]:
        found = mechanisms if name == "MECHANISMS" else getattr(module, name)
        yield f"{door}.{name}", inspect.getdoc(found) or ""


def failures(door: str, names: dict[str, Any], left_out: tuple[str, ...] = ()) -> str:
    """Run the examples of a door, one after the other with the same names; return what went wrong, if anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    said: list[str] = []
    for name, text in documented(door):
        if name in left_out:
            continue
        found = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
        found.globs = names  # not a copy
        runner.run(found, out=said.append, clear_globs=False)
    return "".join(said)
