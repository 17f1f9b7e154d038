"""Where the jobs for spark-submit and the commented settings lie: inside an installed package, beside it in a checkout."""

from __future__ import annotations

import ast
from pathlib import Path

from dptext_spark.errors import DataError, unknown


def folder_of(name: str) -> Path:
    """Return the folder `jobs` or `conf`.

    Raises:
        DataError: it is not there: the package was neither installed from its wheel nor checked out.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise DataError(f"{name}: not installed with the package in {str(package)!r}; install its wheel.")


def jobs_by_name() -> dict[str, Path]:
    """Return the files to hand to spark-submit, by their names."""
    return {file.stem: file for file in sorted(folder_of("jobs").glob("[!_]*.py"))}


def job_file(name: str) -> Path:
    """Return the file of one job.

    Raises:
        SettingsError: there is none of that name.
    """
    found = jobs_by_name()
    if name not in found:
        raise unknown("name", name, found)
    return found[name]


def first_line(file: Path) -> str:
    """Return what the first line of a Python file's docstring says, without the example that follows."""
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0].partition(": `")[0]
