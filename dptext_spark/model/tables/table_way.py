"""Which way a table is read for a first look: by pyarrow where that can, else by Spark. The rule stands here alone.

A file or a folder that is there wins over a catalog name. What lies behind a scheme (`s3a://`, `abfss://`), what is too large for
pyarrow or of a kind that it does not read, and catalog names go by Spark.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dptext_spark.config.locations import TABLE, holds_credentials
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.model.tables.table_files import (
    ENDINGS,
    FIELD,
    FORMATS,
    PACKED,
    AsText,
    SampleNeedsSparkError,
    TableSample,
    read_sample,
)

FORMATS_OF_SPARK = (*FORMATS, "text")


@dataclass(frozen=True)
class BySpark:
    """A table that Spark has to read.

    Attributes:
        place: its path, absolute, or its name in the catalog.
        is_name: which of the two.
        why: Spark reads it.
    """

    place: str
    is_name: bool
    why: str


def sample_here(table: str, format: str | None, as_text: AsText) -> TableSample | BySpark:
    """Read a sample without Spark, or say why that takes Spark.

    Args:
        table: a path, or a name in the catalog.
        format: one of `FORMATS_OF_SPARK`; None: by the names of the files.
        as_text: how CSV files are written.

    Raises:
        SettingsError: it is neither there nor the name of a table, or its path holds a password.
        DataError: as :func:`read_sample`.
    """
    if format is not None:
        require_choice("format", format, FORMATS_OF_SPARK)
    if holds_credentials(table):
        raise SettingsError(
            f"{FIELD}: the path holds a password, key or signature, which a file of settings would keep; valid: a path without, "
            "and credentials in Spark's own settings."
        )
    local = table.removeprefix("file://") if table.startswith("file:///") else table
    if Path(local).exists():
        if format == "text":
            return BySpark(os.path.abspath(local), False, "text, a row a line, is read by Spark alone")
        try:
            return read_sample(local, format, as_text)
        except SampleNeedsSparkError as error:
            return BySpark(os.path.abspath(local), False, error.why)
    if "://" in table and local == table:
        return BySpark(table, False, "it is no path of this machine")
    ending = f".{table.lower().rpartition('.')[2]}"
    if TABLE.fullmatch(table) and ending not in ENDINGS and ending not in PACKED:
        return BySpark(table, True, "no such file is here, so it is a catalog name")
    raise SettingsError(
        f"{FIELD}: {table!r} is not there; valid: a file or a folder of this machine, a path with a scheme such as s3a://, or a "
        "catalog name such as db.table."
    )
