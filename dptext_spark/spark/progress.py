"""Progress while Spark works: how many tasks are done, told from a thread of its own; nothing that depends on the text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 2.0


@contextmanager
def watched(spark: SparkSession, say: Callable[[str], None]) -> Iterator[None]:
    """Tell `say` the tasks done of the stages that run, every two seconds (classic sessions)."""
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        tracker = context.statusTracker()
        last = ""
        while not done.wait(INTERVAL):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            total = sum(stage.numTasks for stage in known)
            line = f"writing: {sum(stage.numCompletedTasks for stage in known)} of {total} tasks done"
            if total and line != last:
                say(line)
                last = line

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
