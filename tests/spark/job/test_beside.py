"""What goes side by side: it has the caller's Spark properties, ends before its caller does, and keeps nothing back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from dptext_spark.spark.job.beside import Effect, reading, side_by_side, unobserved

BOTH = (Effect.SETTLEMENT, Effect.METRICS)
LONG = 60  # seconds that nobody waits


class Failing:
    """An effect that fails with its own name, once the other has ended."""

    def __init__(self, name: str, after: threading.Event | None = None) -> None:
        self.name, self.after = name, after

    def __call__(self) -> None:
        if self.after is not None:
            assert self.after.wait(LONG)
        raise OSError(self.name)


@pytest.mark.long
def test_both_are_under_way_at_once(spark: Any) -> None:
    met = threading.Barrier(2, timeout=LONG)
    threads: set[str] = set()

    def meets() -> None:
        met.wait()  # neither passes without the other
        threads.add(str(threading.get_ident()))

    side_by_side(spark, unobserved, *[(effect, meets) for effect in BOTH])
    assert len(threads) == 2


@pytest.mark.parametrize("observed", [False, True])
def test_one_that_fails_keeps_the_other_back_in_no_way(spark: Any, observed: bool) -> None:
    at: Callable[[str], None] = (lambda point: None) if observed else unobserved
    for number in range(2):
        done: list[int] = []

        def work(own: int, number: int = number, done: list[int] = done) -> None:
            if own == number:
                raise OSError(str(own))
            done.append(own)

        with pytest.raises(OSError, match=str(number)):
            side_by_side(spark, at, *[(effect, lambda own=own: work(own)) for own, effect in enumerate(BOTH)])
        assert done == [1 - number]


def test_of_two_that_fail_the_first_named_is_told(spark: Any) -> None:
    ended = threading.Event()

    def second() -> None:
        ended.set()
        raise OSError("second")

    with pytest.raises(OSError, match="first"):
        side_by_side(spark, unobserved, (BOTH[0], Failing("first", ended)), (BOTH[1], second))


def test_what_is_read_beside_comes_or_fails_where_it_is_waited_for(spark: Any) -> None:
    with reading(spark, lambda: spark.range(10).count()) as counted:
        assert counted() == 10
        assert counted() == 10
    with reading(spark, Failing("unread")):
        pass  # whoever does not ask is told nothing
    with reading(spark, Failing("read")) as read, pytest.raises(OSError, match="read"):
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
