"""A ledger read for people: what all releases of each input have spent, by one reading of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptext_spark.config.locations import absolute
from dptext_spark.errors import DPTextError, SettingsError
from dptext_spark.ledger.balance import Balance, balances
from dptext_spark.ledger.entry import Book
from dptext_spark.runtime.progress import Steps, silent
from dptext_spark.spark.errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.job.entries import book_of
from dptext_spark.spark.session.session import brief_session, step
from dptext_spark.spark.tables.tables import opened_if_there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEWEST = 0  # any version that is one: nothing is decided on it


def read(path: str, spark: SparkSession | None = None, progress: Steps | None = None) -> list[Balance]:
    """Return what a ledger says of each of its inputs.

    Args:
        path: its folder.
        spark: a session; None takes the active one, or starts a local one that suits a small table.
        progress: progress callback, called with each step.

    Raises:
        SettingsError: there is none.
        DataError: what is there is no ledger, or one of a newer version.
    """
    say = progress or silent
    path = absolute(path)
    if spark is None:
        say("starting Spark")
    session = spark or brief_session()
    with suppress_sensitive_logs(session):
        try:
            with step(session, say, "reading the ledger"):
                book = _read(session, path)
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise reduced(error, []) from None
    if book is None:
        raise SettingsError(
            f"ledger: there is none in {path!r}; valid: the folder that a run named, <target>_audit/shareable/ledger unless "
            "ledger.path says otherwise."
        )
    return balances(book.entries, path, book.decisions)


def _read(spark: SparkSession, path: str) -> Book | None:
    """Read the table as it is now; None where there is none. Its log is read once, its history not at all."""
    table = opened_if_there(spark, path)
    return None if table is None else book_of(table, path, NEWEST)
