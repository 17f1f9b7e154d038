"""Python workers of Spark, watched from outside while a job runs: the most memory that one of them held."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERVAL = 0.1  # seconds between looks
DAEMON = "pyspark.daemon"


class Peak:
    """The largest resident size of one worker so far, in bytes."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.bytes = 0

    def look(self) -> None:
        """Look at every worker that descends from this process."""
        import psutil

        for process in psutil.Process().children(recursive=True):
            try:
                if DAEMON in " ".join(process.cmdline()):
                    self.bytes = max(self.bytes, int(process.memory_info().rss))
            except psutil.Error:
                continue  # it ended while we looked


@contextmanager
def watched_workers() -> Iterator[Peak]:
    """Watch the workers as long as the context lasts."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(INTERVAL):
            peak.look()

    thread: Any = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
