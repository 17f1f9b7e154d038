"""The ledger of an input: the one that the settings name, else the nearest one, else a new one beside the input."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from dptext_spark.config.locations import has_scheme, normal_path
from dptext_spark.config.sections import Input, Ledger

FOLDER = "_dptext_ledger"  # readers of tables skip names that begin with _
NAME = "dptext_ledger"
FIELDS = "ledger.path or ledger.table"
_PATTERN = re.compile(r"[*?\[{]")
_ROOT = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?")


def ledger_place(
    source: Input, settings: Ledger, is_there: Callable[[str], bool], schema: Callable[[], str] = str
) -> str:
    """Return the ledger that counts the releases of an input: a folder, or a catalog name.

    Args:
        source: the input.
        settings: that may name a ledger.
        is_there: whether a folder is a Delta table.
        schema: of the session, where the input's name has none; empty where it is not known.
    """
    if settings.place is not None:
        return settings.place
    if source.table is not None:
        qualifier = source.table.rpartition(".")[0] or schema()
        return f"{qualifier}.{NAME}" if qualifier else NAME
    near = [f"{folder.rstrip('/')}/{FOLDER}" for folder in parents_of(str(source.path))]
    return next(filter(is_there, near), near[0])


def ledger_on_disk(source: Input, settings: Ledger) -> str:
    """Return the same as far as the disks of this machine tell."""
    return ledger_place(source, settings, is_delta_here)


def is_delta_here(path: str) -> bool:
    """Check whether a folder of this machine is a Delta table."""
    return os.path.isdir(os.path.join(normal_path(path), "_delta_log"))


def is_table_name(place: str) -> bool:
    """Check whether a ledger is named by a catalog name: paths are absolute."""
    return not (place.startswith(("/", "~")) or has_scheme(place))


def parents_of(path: str) -> list[str]:
    """Return the folders that an input lies in, the nearest first: of a pattern, those of the folder that it is looked for in."""
    here = not has_scheme(path) or path.startswith("file:")
    if here:
        path = normal_path(path)
    if _PATTERN.search(path) and not (here and os.path.lexists(path)):
        path = path[: _PATTERN.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
    root = _ROOT.match(path)
    prefix = root[0] if root is not None else ""
    parts = [part for part in path[len(prefix) :].split("/") if part]
    return ["/".join([prefix, *parts[:number]]) or "/" for number in range(max(len(parts) - 1, 0), -1, -1)]
