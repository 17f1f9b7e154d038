"""What is read beside other work: it has the caller's Spark properties, ends before its caller does, and keeps nothing back."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.spark.session import reading, watched

LONG = 60  # seconds that nobody waits


def failing() -> None:
    raise OSError("read")


def test_what_is_read_beside_comes_or_fails_where_it_is_waited_for(spark: Any) -> None:
    with reading(spark, lambda: spark.range(10).count()) as counted:
        assert counted() == 10
        assert counted() == 10
    with reading(spark, failing):
        pass  # whoever does not ask is told nothing
    with reading(spark, failing) as read, pytest.raises(OSError, match="read"):
        read()


def test_it_has_the_spark_properties_of_its_caller(spark: Any) -> None:
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setLocalProperty("spark.job.description", "of the caller")
    try:
        with reading(spark, lambda: context.getLocalProperty("spark.job.description")) as read:
            context.setLocalProperty("spark.job.description", "since then")
            assert read() == "of the caller"
        assert spark.getTags() == set()
    finally:
        context.setLocalProperty("spark.job.description", before)


def test_what_is_read_beside_is_given_up_where_its_caller_fails(spark: Any) -> None:
    tracker = spark.sparkContext.statusTracker()
    slow = spark.range(10**15).selectExpr("sum(hash(id))")  # days
    with pytest.raises(OSError, match="refused"), reading(spark, slow.collect):  # noqa: PT012
        until = time.monotonic() + LONG
        while not tracker.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.01)
        raise OSError("refused")


class Remote:
    """A session as the Connect client has it: no `_sc`, handlers of progress."""

    def __init__(self) -> None:
        self.handlers: list[Callable[..., None]] = []

    def registerProgressHandler(self, handler: Callable[..., None]) -> None:
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Callable[..., None]) -> None:
        self.handlers.remove(handler)


def test_a_server_of_spark_connect_tells_each_line_once_and_nothing_after_the_end() -> None:
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
