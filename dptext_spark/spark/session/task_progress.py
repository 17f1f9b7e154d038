"""Progress of what Spark does, told from a thread of its own: how many tasks are done, and nothing that depends on the text."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.session.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


INTERVAL = 2.0


@contextmanager
def watched(spark: SparkSession, say: Steps, what: str = "writing") -> Iterator[None]:
    """Tell `say` the tasks done of the stages that run, every two seconds, or as a server of Spark Connect tells them.

    Args:
        spark: the session.
        say: progress callback.
        what: the stages do.
    """
    context = context_of(spark)
    line = _Line(say, what)
    if context is None:
        with _server_progress(spark, line):
            yield
        return
    from py4j.protocol import Py4JError

    done = threading.Event()

    def watch() -> None:
        tracker = context.statusTracker()
        while not done.wait(INTERVAL):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except (Py4JError, OSError):  # the JVM has ended; whoever waits for the write is told
                return
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
def step(spark: SparkSession, say: Steps, what: str, how: str = "") -> Iterator[None]:
    """Say what Spark is about to do, and every two seconds how many of its tasks are done.

    Args:
        spark: the session.
        say: progress callback, called with each step.
        what: it does.
        how: is said beside it once.
    """
    say(f"{what} ({how})" if how else what)
    with watched(spark, say, what):
        yield


@contextmanager
def _server_progress(spark: Any, line: _Line) -> Iterator[None]:
    def on_progress(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001  (Spark passes them)
        known = list(stages or ())
        line.show(sum(stage.num_completed_tasks for stage in known), sum(stage.num_tasks for stage in known))

    spark.registerProgressHandler(on_progress)
    try:
        yield
    finally:
        spark.removeProgressHandler(on_progress)


class _Line:
    """Says how many tasks are done, and nothing twice."""

    def __init__(self, say: Steps, what: str) -> None:
        self._say, self._what, self._last = say, what, ""

    def show(self, done: int, total: int) -> None:
        line = f"{self._what}: {done} of {total} tasks done"
        if total and line != self._last:
            self._say(line)
            self._last = line
