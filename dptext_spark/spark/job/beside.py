"""What goes beside other work of a run, in a thread of its own: reading and progress; nothing that has an effect.

Spark plans and reads logs in its driver, one thing after the other for whoever asks; two that ask take both cores. What is read
here depends on nothing of what it goes beside. Progress is how many tasks are done, and nothing that depends on the text.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.util import inheritable_thread_target

from dptext_spark.runtime.display import Steps
from dptext_spark.spark.session.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Done = TypeVar("Done")
INTERVAL = 2.0


class _Jobs:
    """The jobs of one thread, by a tag of their own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._context = spark, context_of(spark)
        self._tag = f"dptext-reading-{secrets.token_hex(8)}"

    def begin(self) -> None:
        """Tag what this thread asks for from now on."""
        if self._context is None:
            self._spark.addTag(self._tag)
        elif self._pinned:
            # A session's own tags are known to the thread alone that set them.
            self._context.addJobTag(self._tag)

    def cancel(self) -> None:
        """Cancel what is under way."""
        if self._context is None:
            self._spark.interruptTag(self._tag)
        elif self._pinned:
            self._context.cancelJobsWithTag(self._tag)

    @property
    def _pinned(self) -> bool:
        """Whether each thread has one of its own in the JVM; else others would get the tag, and be cancelled."""
        return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "false"


@contextmanager
def reading(spark: SparkSession, work: Callable[[], Done]) -> Iterator[Callable[[], Done]]:
    """Read beside what the block does; nothing that has an effect.

    Yields:
        A function that waits for what `work` returns, or raises what it raised. Where the block ends by an error, Spark is asked
        to end the reading, and how that ends is no matter.
    """
    jobs = _Jobs(spark)

    def tagged() -> Done:
        jobs.begin()
        return work()

    # Spark's properties of a thread (job group, description, pool, tags) are copied now.
    target: Callable[[], Done] = inheritable_thread_target(spark)(tagged)
    with ThreadPoolExecutor(1, "dptext-reading") as pool:
        done = pool.submit(target)
        try:
            yield done.result
        except BaseException:
            with suppress(Exception):  # the error to report is the one that came first
                jobs.cancel()
            raise


@contextmanager
def watched(spark: SparkSession, say: Steps, what: str = "writing") -> Iterator[None]:
    """Tell `say` the tasks done of the stages that run, every two seconds, or as a server of Spark Connect tells them."""
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

    `how` is said beside it once.
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
