"""What the log of a Delta table tells: its commits, by Spark's history or from its files, and its schema.

Files are read where they lie on this machine: the JSON commits, and the last checkpoint for what is older than these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dptext_spark.model.tables.schema import Struct, of_json

LOG = "_delta_log"
SEAL = "dptext_bound"  # in the commit of a run: what binds it to its run id
ATTEMPT = "dptext_attempt"  # in the commit of a run: which process made it
CREATED = "dptext_created"  # a property of a table that was made empty for a run to write into: that run


class NeedsSparkError(Exception):
    """What a table is cannot be told without Spark; the message says why, behind "it"."""


@dataclass(frozen=True)
class Commit:
    """A commit of a Delta table, as its history tells of it.

    Attributes:
        version: that it made.
        operation: such as WRITE or RESTORE; `parameters` are its own.
        metadata: what a run of ours said in it, JSON; None in commits of others.
        metrics: such as `numOutputRows`, as text.
    """

    version: int
    operation: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metadata: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def said(self) -> Mapping[str, Any]:
        """What a run of ours said in it; nothing in commits of others."""
        try:
            found = json.loads(self.metadata or "")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and "dptext_run" in found else {}

    @property
    def rows(self) -> int | None:
        """How many it wrote; None where it does not say."""
        counted = self.metrics.get("numOutputRows")
        return None if counted is None else int(counted)


def our_commits(commits: Iterable[Commit]) -> dict[str, Commit]:
    """Return the commits that runs of this package made, by run id."""
    return {str(commit.said["dptext_run"]): commit for commit in commits if commit.said}


def only_created(commits: Iterable[Commit]) -> bool:
    """Whether all that happened to a table is that a run made it, empty."""
    return all(f'"{CREATED}"' in (commit.parameters.get("properties") or "") for commit in commits)


@dataclass(frozen=True)
class DeltaLog:
    """A Delta table, as the files of its log tell of it.

    Attributes:
        id: its identifier.
        schema: of its last version.
        partitions: its partition columns.
        commits: newest first, as far back as their files are there.
    """

    id: str
    schema: Struct
    partitions: tuple[str, ...]
    commits: tuple[Commit, ...]


def read_log(table: Path) -> DeltaLog | None:
    """Read the log of a Delta table on this machine; None where a folder has none.

    Raises:
        NeedsSparkError: the log is damaged, or kept in a way that this reader does not know.
        OSError: a file cannot be read.
    """
    folder = table / LOG
    if not folder.is_dir():
        return None
    commits: list[Commit] = []
    described: Any = None
    files = sorted(folder.glob("[0-9]" * 20 + ".json"))
    if not files:
        raise NeedsSparkError("has a log without commits in files")
    described = _of_checkpoint(folder, int(files[0].stem))
    for file in files:
        info: Any = {}
        for action in _actions(file):
            protocol, info = action.get("protocol") or {}, action.get("commitInfo") or info
            if any("catalog" in one for one in protocol.get("writerFeatures") or ()):
                raise NeedsSparkError("is a Delta table whose commits a catalog keeps")
            described = action.get("metaData") or described
        commits.append(_commit(int(file.stem), info))
    if described is None:
        raise NeedsSparkError(
            "is a Delta table whose log does not say its columns in a file that is known here"
        )
    try:
        schema = of_json(described["schemaString"])
    except (ValueError, KeyError):
        raise NeedsSparkError("is a Delta table whose log is damaged") from None
    if schema is None:
        raise NeedsSparkError("is a Delta table with collations or types that only Spark knows")
    partitions = tuple(described.get("partitionColumns") or ())
    return DeltaLog(str(described.get("id")), schema, partitions, tuple(reversed(commits)))


def _actions(file: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the actions of a commit."""
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            found = json.loads(line) if line.strip() else {}
            if not isinstance(found, dict):
                raise ValueError
            yield found
    except ValueError:
        raise NeedsSparkError("is a Delta table whose log is damaged") from None


def _commit(version: int, info: Any) -> Commit:
    """Read what a commit says of itself."""
    said = [info.get(name) or {} for name in ("operationParameters", "operationMetrics")]
    parameters, metrics = ({str(k): _plain(v) for k, v in one.items()} for one in said)
    return Commit(version, str(info.get("operation", "")), parameters, info.get("userMetadata"), metrics)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of_checkpoint(folder: Path, before: int) -> Any:
    """Return what the newest checkpoint in one file says of the table; None where none is needed, or there is none."""
    if before == 0:
        return None
    found = sorted(folder.glob("[0-9]" * 20 + ".checkpoint.parquet"))
    if not found:
        return None
    try:
        rows = pq.read_table(found[-1], columns=["metaData"])["metaData"].to_pylist()
    except pa.ArrowException:
        raise NeedsSparkError("is a Delta table whose log is damaged") from None
    return next((row for row in rows if row is not None), None)
