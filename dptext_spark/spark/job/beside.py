"""What is read beside other work of a run, in a thread of its own; nothing that has an effect.

Spark plans and reads logs in its driver, one thing after the other for whoever asks; two that ask take both cores. What is read
here depends on nothing of what it goes beside.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from pyspark.util import inheritable_thread_target

from dptext_spark.spark.session.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Done = TypeVar("Done")


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
