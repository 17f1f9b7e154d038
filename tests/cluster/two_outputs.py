"""The scan of everything that lies in a target's folder, committed or not: does a record have two different outputs there?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_PART = re.compile(r"(part-\d+)-")
_HEADER = 4  # bytes of a Parquet file's name of the format: nothing of a record


@dataclass(frozen=True)
class Scan:
    """What lies in a folder."""

    files: int  # data files that could be read whole
    cut: int  # files that were not finished, and are the beginning of a finished one of the same task
    unknown: tuple[str, ...]  # names of unfinished files that are the beginning of none
    twice: tuple[Any, ...]  # keys of records with two different outputs, at most ten

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.twice and not self.unknown


def scan(folder: Path, key: str = "id") -> Scan:
    """Read every Parquet file under `folder` except the log's own.

    A file that a killed task left unfinished cannot be read. What a task writes is settled by its input and the run key,
    byte for byte up to the file's end, so it must be the beginning of the file that another attempt of that task finished.
    """
    outputs: dict[Any, Any] = {}
    twice: list[Any] = []
    whole: dict[str, list[bytes]] = {}
    broken: list[Path] = []
    files = 0
    for file in sorted(folder.rglob("*.parquet")):
        if "_delta_log" in file.parts:
            continue
        content = file.read_bytes()
        try:
            rows = pq.ParquetFile(pa.BufferReader(content)).read().to_pylist()
        except pa.ArrowInvalid:
            broken.append(file)
            continue
        files += 1
        whole.setdefault(_task(file), []).append(content)
        for row in rows:
            identity = row.pop(key)
            if outputs.setdefault(identity, row) != row:
                twice.append(identity)
    cut, unknown = 0, []
    for file in broken:
        content = file.read_bytes()
        if len(content) <= _HEADER or any(done.startswith(content) for done in whole.get(_task(file), ())):
            cut += 1
        else:
            unknown.append(file.name)
    return Scan(files, cut, tuple(unknown), tuple(twice[:10]))


def _task(file: Path) -> str:
    found = _PART.match(file.name)
    return found[1] if found else file.name
