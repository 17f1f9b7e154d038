"""Changes of a table that other processes change, too: one after the other on a local disk, elsewhere again until one passes."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dptext_spark.config.locations import normal_path
from dptext_spark.config.sections import is_table_name
from dptext_spark.errors import RunError
from dptext_spark.spark.errors import condition_of

Done = TypeVar("Done")
TRIES = 40
PATIENCE = 120.0  # seconds that one process waits for another


def retry_on_conflict(path: str, once: Callable[[], Done | None]) -> Done:
    """Do something with a table until nobody came in between; None says that somebody did."""
    for turn in range(TRIES):
        with _alone(path):
            try:
                done = once()
            except Exception as error:
                if not _conflicts(error):
                    raise
                done = None
        if done is not None:
            return done
        time.sleep(min(2.0, 0.05 * 2**turn) * (0.5 + secrets.randbelow(1000) / 1000))
    raise RunError(f"other runs kept changing {path!r}; try again when they have ended.")


def _conflicts(error: Exception) -> bool:
    """Whether another commit came first, by the name of the error; its text is not looked at."""
    called = f"{type(error).__name__} {condition_of(error)}".upper()
    return any(
        word in called
        for word in (
            "CONCURRENT",
            "PROTOCOLCHANGED",
            "PROTOCOL_CHANGED",
            "METADATACHANGED",
            "METADATA_CHANGED",
        )
    )


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold the lock of a table on a local disk; elsewhere the log store lets one commit pass."""
    folder = path if is_table_name(path) else normal_path(path)
    handle = None
    if folder.startswith("/"):
        try:
            os.makedirs(folder, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY)
        except OSError:
            handle = (
                None  # not a disk of this machine; a table that cannot be written is refused by its write
            )
    try:
        if handle is not None:
            _lock(handle, path)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int, path: str) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise RunError(
                    f"another process has held {path!r} for {PATIENCE:.0f} s; try again when it has ended."
                ) from None
            time.sleep(0.05)
        except OSError:
            return  # a file system without locks
