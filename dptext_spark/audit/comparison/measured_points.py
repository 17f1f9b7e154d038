"""Measured points on disk, so that a comparison that was broken off goes on where it was: a JSON line for each point.

A line is found by a digest of everything that its figures depend on. Its first field says that it is restricted: figures depend
on the private text. A line that is cut off or was changed does not match its own digest and counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from dptext_spark.audit.comparison.frontier import Point
from dptext_spark.errors import DataError

FILE = "points.jsonl"
RESTRICTED = "figures in this file depend on the private text. Not for sharing."


def digest(value: Any) -> str:
    """Return the sha256 of a JSON-able value, hex."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class KeptPoints:
    """The points of a folder; without a folder they are kept nowhere."""

    def __init__(self, folder: Path | None) -> None:
        """Read what is there, and make the folder where it is not.

        Raises:
            DataError: the folder or the file cannot be made or read.
        """
        self.file = None if folder is None else folder / FILE
        self._found: dict[str, Point] = {}
        if folder is None or self.file is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = self.file.read_bytes().split(b"\n") if self.file.exists() else []
        except OSError as error:
            raise DataError(f"out: {str(folder)!r} cannot be used ({error.strerror}).") from None
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            if value["sha256"] == digest(value["point"]):
                self._found[str(value["key"])] = Point.of(value["point"])
        except (ValueError, TypeError, KeyError):
            return  # damaged: it is measured again

    def get(self, key: str) -> Point | None:
        """Return the point of a key, or None."""
        return self._found.get(key)

    def put(self, key: str, point: Point) -> None:
        """Keep a point.

        Raises:
            DataError: the file cannot be written.
        """
        self._found[key] = point
        if self.file is None:
            return
        values = point.as_dict()
        line = {"restricted": RESTRICTED, "key": key, "sha256": digest(values), "point": values}
        try:
            with open(self.file, "ab", opener=_private) as file:
                os.fchmod(file.fileno(), 0o600)
                # A line that was cut off ends here, not in the middle of the next one.
                start = b"" if file.tell() == 0 else b"\n"
                file.write(start + json.dumps(line, ensure_ascii=False, allow_nan=False).encode())
        except OSError as error:
            raise DataError(f"out: {str(self.file)!r} cannot be written ({error.strerror}).") from None


def write_private(file: Path, text: str) -> None:
    """Write a text that nobody but the user may read.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        with open(file, "w", encoding="utf-8", opener=_private) as out:
            os.fchmod(out.fileno(), 0o600)
            out.write(text)
    except OSError as error:
        raise DataError(f"out: {str(file)!r} cannot be written ({error.strerror}).") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
