"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.machine import commit, machine, versions
from benchmarks.measure import Section
from benchmarks.sizes import FULL, QUICK, Sizes
from benchmarks.table import show

# Memory first: its workers are compared with each other, and the rest starts with warm files.
SECTIONS = (
    "memory", "start", "engine", "names", "labelled", "mechanisms", "papers", "paper_tables", "utility_gain", "referee", "spark",
    "scale",
)  # fmt: skip
MODULES = {"labelled": "labelled_names"}  # of sections whose module has another name
RECORDS = Path(__file__).resolve().parent / "records"


def arguments(given: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure figures beside their peers."
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all without"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: to see that it works, not for a record"
    )
    parser.add_argument("--rows", type=int, help="records of the Spark job")
    parser.add_argument("--rounds", type=int, help="how often each short figure is measured")
    parser.add_argument(
        "--record", type=Path, help="where the JSON goes (default: benchmarks/records/, by date)"
    )
    parser.add_argument(
        "--against", help="folder of a lexicon: utility_gain compares the packaged one with it"
    )
    options = parser.parse_args(given)
    if unknown := [name for name in options.sections if name not in SECTIONS]:
        parser.error(f"{unknown[0]!r} is no section; valid: {', '.join(SECTIONS)}")
    return options


def chosen_sizes(options: argparse.Namespace) -> Sizes:
    """Return the sizes that the options name."""
    sizes = replace(QUICK if options.quick else FULL, against=options.against)
    if options.rows is not None:
        sizes = replace(sizes, spark_rows=options.rows)
    return sizes if options.rounds is None else replace(sizes, rounds=options.rounds)


def measured(names: list[str], sizes: Sizes, repeat: str, file: Path, console: Console) -> dict[str, Any]:
    """Measure sections and print each when it is done; return the record.

    The record is written anew after each section, so that an interrupted run leaves what it has measured.
    """
    record: dict[str, Any] = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **commit(),
        "repeat": repeat,
        "sizes": asdict(sizes),
        "machine": machine(),
        "versions": versions(),
        "sections": {},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        with console.status(name) as status:
            module = import_module(f"benchmarks.{MODULES.get(name, name)}")
            section: Section = module.measure(sizes, status.update)
        show(section, console)
        record["sections"][name] = section.as_dict()
        file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return record


def command_line(options: argparse.Namespace) -> str:
    """Return the command that measures the same again; where it recorded is of no matter."""
    parts = ["python -m benchmarks", *options.sections]
    parts += ["--quick"] if options.quick else []
    values = ((name, getattr(options, name)) for name in ("rows", "rounds", "against"))
    parts += [f"--{name} {value}" for name, value in values if value]
    return " ".join(parts)


def main(given: list[str]) -> None:
    """Measure, print and record."""
    options = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 160)
    sizes = chosen_sizes(options)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    file = (
        options.record or RECORDS / f"{stamp}-{'-'.join([*(options.sections or ['all']), sizes.name])}.json"
    )
    record = measured(options.sections or list(SECTIONS), sizes, command_line(options), file, console)
    verdicts = [
        (figure["name"], goal["of"], goal["verdict"])
        for section in record["sections"].values()
        for figure in section["figures"]
        for goal in figure["goals"]
    ]
    missed = [f"{name} ({of})" for name, of, verdict in verdicts if verdict == "missed"]
    if sizes.name != FULL.name:
        console.print("small sizes: the goals are for full ones")
    console.print(f"goals: {len(verdicts) - len(missed)} of {len(verdicts)} met or within their floor")
    for line in missed:
        console.print(f"missed: {line}", highlight=False)
    console.print(f"record: {file}", highlight=False)


if __name__ == "__main__":
    main(sys.argv[1:])
