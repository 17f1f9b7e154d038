"""A ledger read for people: what all releases of each input have spent, by one reading of its table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dptext_spark.config.load import load_config
from dptext_spark.config.locations import absolute
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import FOLDER, NAME, Input, Ledger, is_table_name
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.ledger.balance import Balance, balances
from dptext_spark.ledger.entry import Book
from dptext_spark.runtime.progress import Steps, silent
from dptext_spark.spark.errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.job.entries import book_of, ledger_of
from dptext_spark.spark.session.session import brief_session, step
from dptext_spark.spark.tables.tables import Target, opened_if_there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEWEST = 0  # any version that is one: nothing is decided on it


def read(path: str, spark: SparkSession | None = None, progress: Steps | None = None) -> list[Balance]:
    """Return what a ledger says of each of its inputs.

    Args:
        path: its folder or catalog name; or an input, or a file of settings, whose ledger is read.
        spark: a session; None takes the active one, or starts a local one that suits a small table.
        progress: progress callback, called with each step.

    Raises:
        SettingsError: there is none.
        DataError: what is there is no ledger, or one of a newer version.
    """
    say = progress or silent
    config = load_config(path) if path.endswith((".yaml", ".yml")) else None
    place = path if is_table_name(path) and not os.path.exists(path) and "." in path else absolute(path)
    if spark is None:
        say("starting Spark")
    session = spark or brief_session()
    with suppress_sensitive_logs(session):
        try:
            with step(session, say, "reading the ledger"):
                place, book = _found(session, place, config)
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise reduced(error, []) from None
    if book is None:
        raise SettingsError(
            f"ledger: there is none in {place!r}; valid: a ledger, which is the nearest {FOLDER} in a parent folder of its "
            f"input, {NAME} in its schema, or what ledger.path or ledger.table names; that input; or the settings of a run."
        )
    return balances(book.entries, place, book.decisions)


def _found(spark: SparkSession, place: str, config: RunConfig | None) -> tuple[str, Book | None]:
    """Read the ledger at a place, or that of the input or of the settings there; None where there is none."""
    if config is not None:
        place = ledger_of(spark, config.input, config.ledger)
        return place, _read(spark, place)
    source = Input(table=place) if is_table_name(place) else Input(path=place)
    of_input = ledger_of(spark, source, Ledger())
    try:
        book = _read(spark, place)
    except DataError:
        book = _read(spark, of_input)
        if book is None:
            raise
        return of_input, book
    return (place, book) if book is not None else (of_input, _read(spark, of_input))


def _read(spark: SparkSession, path: str) -> Book | None:
    """Read the table as it is now; None where there is none. Its log is read once, its history not at all."""
    table = opened_if_there(spark, Target.of_ledger(path))
    return None if table is None else book_of(table, path, NEWEST)
