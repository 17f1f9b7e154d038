"""The steps of an audit that Spark makes: each is said when it begins, and the tasks that are done while it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.session.session import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    with watched(spark, lambda line: say(line.replace("writing", what, 1))):
        yield
