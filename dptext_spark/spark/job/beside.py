"""Work that goes on beside other work of a run, in a thread of its own.

Spark plans, commits and reads logs in its driver, one thing after the other for whoever asks; two that ask take both cores. What
goes side by side here depends on nothing of what it goes beside.

The external effects of a run and of a micro-batch: each has a name, and is announced before and after.

What happens outside of the process happens in one of these and nowhere else. So where a process may end is a list: between two
effects it leaves what the one before left. A test gives the functions that have effects an observer, which ends the process at a
point of that list; a run has none.

What may stand without what, where a process ends between two effects:

- the reservation without the run row: it counts, and the next attempt finds it. The row without the reservation cannot be: what
  can be refused comes first, and a refused run has no row that says that it began. Both stand before the first data file.
- the settlement without the metrics, and the metrics without the settlement: these two go side by side. The run
  has committed and has no account, so that the next attempt writes the metrics again and settles what is not settled.
- both without the account. The account comes alone, for it says that both stand: a run that has one is not made again.
- a stream's metrics without its account, and the account without the metrics: side by side as well. They are sums over its
  micro-batches, and each start of the stream writes both anew.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark.util import inheritable_thread_target

from dptext_spark.spark.session.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Observer = Callable[[str], None]


class Effect(Enum):
    """What a run changes outside of its process, in the order in which that happens."""

    CHECKPOINT_BINDING = "checkpoint binding"  # of a stream: the table that binds its checkpoint
    STREAM_ROW = "stream row"  # in `runs`
    # Spark's own files in the checkpoint, written between two micro-batches: that one is done, and what the next one is.
    CHECKPOINT = "checkpoint"
    RESERVATION = "reservation"  # in the ledger
    RUN_ROW = "run row"  # in `runs`: it binds the run
    TABLE_CREATION = "table creation"  # of a target by name, empty; its removal where the write fails
    DATA_COMMIT = "data commit"  # data files and their commit
    SETTLEMENT = "settlement"  # in the ledger
    METRICS = "metrics"
    ACCOUNT = "account"  # in `runs`: how the run ended
    STREAM_METRICS = "stream metrics"
    STREAM_ACCOUNT = "stream account"

    @property
    def before(self) -> str:
        """The point before the effect."""
        return f"before {self.value}"

    @property
    def after(self) -> str:
        """The point after the effect; it is not passed where the effect failed."""
        return f"after {self.value}"


def unobserved(point: str) -> None:
    """Do nothing at a point: what a run does."""


@contextmanager
def announced(effect: Effect, at: Observer) -> Iterator[None]:
    """Announce an effect, which is what the block does."""
    at(effect.before)
    yield
    at(effect.after)


Done = TypeVar("Done")


class _Thread(Generic[Done]):
    """Does something in a thread that has the caller's Spark properties; keeps what it returns or raises."""

    def __init__(self, spark: SparkSession, work: Callable[[], Done]) -> None:
        self._work = work
        self._done: list[Done] = []
        self._failed: BaseException | None = None
        # Spark's properties of a thread (job group, description, pool, tags) are copied now.
        target: Callable[[], None] = inheritable_thread_target(spark)(self._run)
        self._thread = threading.Thread(target=target, name="dptext-beside", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._done.append(self._work())
        except BaseException as error:  # it is raised where the work is waited for
            self._failed = error

    def join(self) -> None:
        """Wait until it has ended, however."""
        self._thread.join()

    def result(self) -> Done:
        """Wait for what it returns, or raise what it raised."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return self._done[0]


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

    thread = _Thread(spark, tagged)
    try:
        yield thread.result
    except BaseException:
        with suppress(Exception):  # the error to report is the one that came first
            jobs.cancel()
        raise
    finally:
        thread.join()


def side_by_side(spark: SparkSession, at: Observer, *effects: tuple[Effect, Callable[[], object]]) -> None:
    """Have effects of which none proves another: all at once, so that they take as long as the longest one.

    One that fails keeps none of the others back. A process that ends meanwhile leaves any of them and not the others. Before an
    observer they come one after the other, as they are named, for only then a point between two is one state: with each in turn
    failing, those are all that a process can leave.

    Args:
        spark: the session.
        at: the observer.
        effects: each with what it is.

    Raises:
        Exception: of the first that failed, as they are named; all have ended then.
    """
    failed: list[Exception] = []
    if at is not unobserved:
        for effect, work in effects:
            try:
                with announced(effect, at):
                    work()
            except Exception as error:
                failed.append(error)
    else:
        threads = [_Thread(spark, work) for _, work in effects]
        for thread in threads:
            thread.join()
        for thread in threads:
            try:
                thread.result()
            except Exception as error:
                failed.append(error)
    if failed:
        raise failed[0]
