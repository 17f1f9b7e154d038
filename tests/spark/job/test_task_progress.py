"""Progress of a write: what a server of Spark Connect tells, each line once, and nothing after the end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from dptext_spark.spark.job.beside import watched


class Remote:
    """A session as the Connect client has it: no `_sc`, handlers of progress."""

    def __init__(self) -> None:
        self.handlers: list[Callable[..., None]] = []

    def registerProgressHandler(self, handler: Callable[..., None]) -> None:
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Callable[..., None]) -> None:
        self.handlers.remove(handler)


def test_of_a_connect_session() -> None:
    remote, said = Remote(), []

    def stages(*pairs: tuple[int, int]) -> list[Any]:
        return [SimpleNamespace(num_completed_tasks=done, num_tasks=of) for done, of in pairs]

    with watched(remote, said.append):  # type: ignore[arg-type]
        (handler,) = remote.handlers
        handler(None, 0, None, False)
        for pairs in (((0, 4),), ((1, 4), (2, 2)), ((1, 4), (2, 2))):
            handler(stages(*pairs), 1, "op", False)
    assert said == ["writing: 0 of 4 tasks done", "writing: 3 of 6 tasks done"]
    assert remote.handlers == []
