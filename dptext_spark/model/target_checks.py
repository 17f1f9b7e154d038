"""Check the places that a run writes to. The run and its dry run share one set of rules.

The commits of a Delta table are here too, and what runs of dptext write into them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dptext_spark.config.locations import normal_path
from dptext_spark.config.sections import FIELDS, is_table_name, ledger_on_disk
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.table_schema import Struct

if TYPE_CHECKING:
    from dptext_spark.config.model import RunConfig

SEAL = "dptext_bound"  # in the commit of a run: what binds it to its run id
ATTEMPT = "dptext_attempt"  # in the commit of a run: which process made it
CREATED = "dptext_created"  # a property of a table that was made empty for a run to write into: that run


@dataclass(frozen=True)
class Commit:
    """A commit of a Delta table, from its history.

    Attributes:
        operation: such as WRITE or RESTORE; `parameters` are its own.
        metadata: of a run of ours, JSON; None in commits of others.
        metrics: such as `numOutputRows`, as text.
    """

    version: int
    operation: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metadata: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def said(self) -> Mapping[str, Any]:
        """Metadata of a run of ours; empty in commits of others."""
        try:
            written = json.loads(self.metadata or "")
        except (ValueError, RecursionError):
            return {}
        return written if isinstance(written, dict) and "dptext_run" in written else {}

    @property
    def rows(self) -> int | None:
        """Number of written rows; None if it is not stated."""
        counted = self.metrics.get("numOutputRows")
        return None if counted is None else int(counted)


def our_commits(commits: Iterable[Commit]) -> dict[str, Commit]:
    """Return the commits that runs of this package made, by run id."""
    return {str(commit.said["dptext_run"]): commit for commit in commits if commit.said}


def only_created(commits: Iterable[Commit]) -> bool:
    """Check whether all that happened to a table is that a run made it, empty."""
    return all(f'"{CREATED}"' in (commit.parameters.get("properties") or "") for commit in commits)


# Operations that change a Delta table and write no row.
_WITHOUT_ROWS = ("CREATE TABLE", "ADD COLUMNS", "CHANGE COLUMN", "ADD CONSTRAINT", "SET TBLPROPERTIES")


def never_written(commits: Sequence[Commit]) -> bool:
    """Check whether a table never held a row: its whole history is there, and no commit of it wrote any."""
    return commits[-1].version == 0 and all(commit.operation in _WITHOUT_ROWS for commit in commits)


# Delta takes these in a name only where files know a column by another one (delta.columnMapping.mode: name).
UNUSUAL = frozenset(" ,;{}()\n\t=")


def mapped_names(columns: Collection[str]) -> str:
    """Return a warning of columns whose names force column mapping on a new target; empty where there are none."""
    unusual = [name for name in columns if UNUSUAL & set(name)]
    if not unusual:
        return ""
    return (
        f"Delta needs column mapping (reader version 2) for the names of {', '.join(map(repr, unusual))}, because they have "
        "a space or another special sign. Readers without it cannot read the target: Polars (`scan_delta`), pyarrow "
        "datasets of `deltalake`, Delta Lake before 1.2. To avoid that, rename the columns in a view of the input."
    )


def engine_of_commit(commit: Commit) -> str | None:
    """Return the version of the engine that made the draws of a commit of ours; None where it does not say.

    Raises:
        DataError: the commit says something else there.
    """
    seal = commit.said.get(SEAL)
    engine = None if seal is None else seal.get("engine")
    if not isinstance(engine, str | None):
        raise DataError(f"{SEAL}.engine: a {type(engine).__name__} is not valid. Choose a text.")
    return engine


def other_engine(then: str | None) -> str:
    """Explain that another engine made the draws, and the consequence."""
    return f"engine ({then} then, {ENGINE_VERSION} now): the package has changed, so that the same key gives other draws"


def holds_other_files(path: str) -> SettingsError:
    """Return the error for a folder with other files than a Delta table: raw files would lie beside the output."""
    return SettingsError(
        f"output.path: {path!r} has files and is not a Delta table. Choose a new or empty folder, or a Delta table."
    )


def is_the_input(config: RunConfig, target: str) -> SettingsError:
    """Return the error for a target that is the input, if names and paths did not show it."""
    field = "output.table" if config.output.table else "output.path"
    return SettingsError(f"{field}: {target!r} is the input. Choose another place.")


def check_releases(config: RunConfig, target: str, commits: Sequence[Commit], *, persistent: bool) -> bool:
    """Refuse a target that exists under mode `error`, keeps raw text, or would release records again unasked.

    Args:
        config: the settings.
        target: its path or its name.
        commits: of the target, newest first; at least one.
        persistent: whether the key outlives the run, so that equal runs draw equal noise.

    Returns:
        Whether it has columns that the output must have.

    Raises:
        RunError: the target exists under mode `error`.
        SettingsError: what the settings must name first.
    """
    if only_created(commits):
        return False
    ours = our_commits(commits)
    mode, accepted = config.output.mode, config.run.second_release == "accept"
    if config.run.id and config.run.id in ours:
        return False
    if mode == "error":
        raise RunError(
            f"output: {target!r} exists. Choose output.mode append or overwrite, or another place."
        )
    if not ours and not never_written(commits):
        raise SettingsError(
            f"output.mode: no run of dptext wrote {target!r}. It may hold raw text, and raw text stays readable in its "
            "history. Choose another place, or a table that never held a row."
        )
    if ours and not persistent and not accepted:
        raise SettingsError(
            f"output.mode: {target!r} has {len(ours)} release(s) of earlier runs. With a key of this run only, {mode} adds "
            "independent draws, and ε adds up. Use a persistent key (key.file), or run.second_release=accept."
        )
    # A stream says so of its checkpoint.
    then = ENGINE_VERSION if config.is_stream or not ours else engine_of_commit(next(iter(ours.values())))
    if then != ENGINE_VERSION and not accepted:
        raise SettingsError(
            f"output.mode: {target!r} has {len(ours)} release(s) of earlier runs, the newest with another "
            f"{other_engine(then)}. So {mode} adds independent draws, and ε adds up. Choose another output, or "
            "run.second_release=accept."
        )
    return True


def check_schema(
    target: Struct, written: Struct, columns: Collection[str], kept: Sequence[str], mode: str
) -> None:
    """Refuse a target that cannot take replacements of any length, or has other columns than the output.

    Overwriting too: Delta Lake would keep the table's columns, and fill those that are missing with NULL.

    Args:
        target: its schema.
        written: the schema of what is written, with at least the columns in `kept`.
        columns: those with text.
        kept: the target's columns.
        mode: of the output.

    Raises:
        DataError: naming the column.
    """
    for column in target.fields:
        if column.name in columns and re.search(r"\b(var)?char\(|\bcollate\b", column.raw):
            raise DataError(
                f"output: column {column.name!r} of the target is {column.raw}, but replacements vary in length. Make it a "
                "plain string."
            )
    if mode not in ("append", "overwrite"):
        return
    written_types = {name: str(written.kinds[name]) for name in kept}
    target_types = {field.name: str(field.kind) for field in target.fields}
    differ = sorted(set(written_types.items()) ^ set(target_types.items()))
    untyped = [
        name
        for name in kept
        if target_types.get(name) == "string" and written_types[name] not in ("string", "binary")
    ]
    if differ and {name for name, _ in differ} == set(untyped):
        names = [f"{name} ({written_types[name]})" for name in untyped]
        raise DataError(
            f"output.mode: {mode} needs the target's columns, but it has these as strings: {', '.join(names)}. Numbers of JSON "
            "keep their type. Choose another output, or a target with these types."
        )
    if differ:
        raise DataError(
            f"output.mode: {mode} needs the target's columns, but {differ[0][0]!r} differs. Target: "
            f"{', '.join((f'{n} {t}' for n, t in target_types.items()))}. Change output.other_columns (drop, a list, or "
            "keep), or choose another output."
        )


def places_written(config: RunConfig) -> Mapping[str, str]:
    """Return the paths that a run writes to, by the settings that name them."""
    ledger = ledger_on_disk(config.input, config.ledger)
    places = {
        "output.path": config.output.path,
        "audit.shareable": config.shareable,
        "audit.restricted": config.restricted,
        FIELDS: None if is_table_name(ledger) else ledger,
        "stream.checkpoint": config.checkpoint if config.is_stream else None,
    }
    return {field: path for field, path in places.items() if path is not None}


def check_writable(places: Mapping[str, str]) -> None:
    """Refuse folders of this machine that nothing can be written to.

    Raises:
        SettingsError: a folder on the way is a file, or this user may not write there.
    """
    for setting, path in places.items():
        folder = normal_path(path)
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            raise SettingsError(
                f"{setting}: {path!r} cannot be written, because {folder!r} is not a folder. Choose a folder. It need not "
                "exist yet."
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SettingsError(
                f"{setting}: {path!r} cannot be written, because this user may not write to {folder!r}. Choose another "
                "place."
            )
