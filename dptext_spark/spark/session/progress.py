"""Progress while Spark works: how many tasks are done, told from a thread of its own; nothing that depends on the text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dptext_spark.spark.session.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 2.0


@contextmanager
def watched(spark: SparkSession, say: Callable[[str], None]) -> Iterator[None]:
    """Tell `say` the tasks done of the stages that run, every two seconds, or as a server of Spark Connect tells them."""
    context = context_of(spark)
    if context is None:
        with _told_by_the_server(spark, say):
            yield
        return
    done = threading.Event()
    line = _Line(say)

    def watch() -> None:
        tracker = context.statusTracker()
        while not done.wait(INTERVAL):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            line.show(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _told_by_the_server(spark: Any, say: Callable[[str], None]) -> Iterator[None]:
    line = _Line(say)

    def told(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        known = list(stages or ())
        line.show(sum(stage.num_completed_tasks for stage in known), sum(stage.num_tasks for stage in known))

    spark.registerProgressHandler(told)
    try:
        yield
    finally:
        spark.removeProgressHandler(told)


class _Line:
    """Says how many tasks are done, and nothing twice."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._last = say, ""

    def show(self, done: int, total: int) -> None:
        line = f"writing: {done} of {total} tasks done"
        if total and line != self._last:
            self._say(line)
            self._last = line
