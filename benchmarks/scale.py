"""What a token costs as the table grows, on one and two cores and on a standalone cluster; the same files, repeated."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Figure, Goal, Grid, Section, Spread, quotient
from benchmarks.sizes import Sizes
from benchmarks.tables import Done, local, repeat_files, sanitized, standalone, write_files
from dptext_spark.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 8
GROWTH = (Goal(1.1, 1.3, "ratio"),)  # a token of the largest table against one of the smallest
MEMORY = (Goal(1.2, 1.4, "ratio"),)  # of a worker, likewise
MEGABYTE = 1e6


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure each table on each master, the smallest first: a worker's memory never shrinks."""
    tokens = sizes.scale_rows * sizes.words_a_row
    section = Section("scale", f"Tables of {tokens:,} words, repeated, read, sanitized and written by Spark")
    rows: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        say("scale: writing the input")
        write_files(folder / "input", FILES, sizes.scale_rows // FILES, sizes.words_a_row)
        tables = {times: repeat_files(folder / "input", times) for times in sizes.scale_times}
        for name, cores, start in masters(folder):
            try:
                found = _measured(name, start, tables, folder, say)
            except SettingsError as error:
                section.skipped.append(f"{name}: {error}")
                continue
            for times, done in found.items():
                words = tokens * times
                rows.append(
                    (
                        name, words, done.seconds, 1e9 * done.seconds * cores / words, words / done.seconds / 1e6,
                        done.whole_seconds, done.worker_bytes / MEGABYTE,
                    )
                )  # fmt: skip
            _compare(section, name, cores, tokens, found)
    headings = (
        "master",
        "words",
        "write, s",
        "core-ns a word",
        "M words/s",
        "whole run, s",
        "worker at most, MB",
    )
    section.grids.append(Grid("Cost of a word", headings, tuple(rows)))
    section.notes.append(
        "Rows are known by file and place; a word is one of the input. The whole run adds the checks, the account and, "
        "the first time, the start of the workers."
    )
    section.facts = {
        "files": FILES,
        "times": list(sizes.scale_times),
        "mechanism": "CusText, default settings",
    }
    return section


def masters(folder: Path) -> list[tuple[str, int, Callable[[], AbstractContextManager[SparkSession]]]]:
    """Return what is measured on: a name, its cores, and how to start a session."""
    return [
        ("local[1]", 1, lambda: local(1, folder)),
        ("local[2]", 2, lambda: local(2, folder)),
        ("standalone, 2 workers", 2, lambda: standalone(folder)),
    ]


def _measured(
    name: str,
    start: Callable[[], AbstractContextManager[SparkSession]],
    tables: dict[int, Path],
    folder: Path,
    say: Callable[[str], None],
) -> dict[int, Done]:
    """Sanitize each table once, after the smallest one for the start of the workers."""
    found = {}
    with start() as session:
        say(f"scale: {name}, first round")
        sanitized(session, tables[min(tables)], folder / "first")
        for times, table in tables.items():
            say(f"scale: {name}, {times} x")
            found[times] = sanitized(session, table, folder / f"output-{times}")
    return found


def _compare(section: Section, name: str, cores: int, tokens: int, found: dict[int, Done]) -> None:
    """Add the growth of a token's cost and of a worker's memory from the smallest table to the largest."""
    least, most = min(found), max(found)
    costs = {times: 1e9 * done.seconds * cores / (tokens * times) for times, done in found.items()}
    memory = {times: done.worker_bytes / MEGABYTE for times, done in found.items()}
    for what, unit, figure, goals in (
        ("cost of a word", "core-ns", costs, GROWTH),
        ("memory of a worker", "MB", memory, MEMORY),
    ):
        value, peer = Spread((figure[most],)), Spread((figure[least],))
        title, ratio = f"{name}: {what} at {most} x", quotient(value, peer)
        section.figures.append(Figure(title, unit, value, f"at {least} x", peer, ratio, "x", goals))
