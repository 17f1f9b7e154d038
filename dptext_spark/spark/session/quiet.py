"""Hold back what Spark prints while it starts: ninety lines about its JARs, of use only where it fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_KEPT_BYTES = 1 << 16


class _Relay:
    """A pipe in the place of standard error, read by a thread: kept at first, passed on after `open`."""

    def __init__(self) -> None:
        self._target = os.dup(2)
        self._source, sink = os.pipe()
        os.dup2(sink, 2, inheritable=True)
        os.close(sink)
        self._lock = threading.Lock()
        self._kept = bytearray()
        self._passing = False
        threading.Thread(target=self._pump, name="stderr-relay", daemon=True).start()

    def _pump(self) -> None:
        # Ends when the last holder of the other end is gone: the JVM keeps it as its own standard error.
        while chunk := os.read(self._source, _KEPT_BYTES):
            with self._lock:
                if self._passing:
                    os.write(self._target, chunk)
                else:
                    self._kept = (self._kept + chunk)[-_KEPT_BYTES:]
        os.close(self._source)
        os.close(self._target)

    def open(self) -> None:
        os.dup2(self._target, 2, inheritable=True)
        with self._lock:
            self._passing = True

    def kept(self) -> str:
        with self._lock:
            return self._kept.decode("utf-8", "replace")


@contextmanager
def held_stderr() -> Iterator[Callable[[], str]]:
    """Keep what this process and the children that it starts write to standard error, while the block runs.

    Afterwards the process has its own standard error back, and what those children still write is passed on.

    Yields:
        a function that returns the last 64 kB kept so far, as text.
    """
    relay = _Relay()
    try:
        yield relay.kept
    finally:
        relay.open()
