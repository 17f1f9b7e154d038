"""Lists of names in a worker: the table of all rows' lists from a file, and the lists of each row from its columns.

The file holds hashes without a key: who reads it can test guesses. It lies in a folder of the driver that only its user may
read, is emptied when the run ends, and goes with the process. Spark hands it to executors that start later, too, and ends their
tasks where it is gone. The copies on executors go with the application.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U64
from dptext_spark.errors import DataError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.paths import PRIVATE
from dptext_spark.spark.errors import LIST_ENTRY, TaskError
from dptext_spark.spark.tables.paths import Elements, is_list
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ShippedLists:
    """What a worker needs to know of the lists of names of a run; it travels in the function's closure, and holds no entry.

    Attributes:
        file: the table, by the name that Spark shipped it under; empty: there is none.
        uses: what becomes of the entries of each of its lists, see :class:`NameTable`.
        columns: whose texts are the lists of their rows, those that mask first: an argument each.
        column_uses: what becomes of the entries of each.
    """

    file: str = ""
    uses: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    column_uses: tuple[str, ...] = ()


NO_LISTS = ShippedLists()


class PrivateFile:
    """A file on the driver that only its user may read, shipped to all workers under `name`."""

    def __init__(self, spark: SparkSession, kind: str, write: Callable[[BinaryIO], None]) -> None:
        """Write the file, and ship it."""
        folder = Path(tempfile.mkdtemp(prefix=f"dptext-{kind}-"))  # for its user alone
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.name = f"{kind}-{secrets.token_hex(12)}.npy"
        self.path = folder / self.name
        with open(self.path, "wb", opener=lambda path, flags: os.open(path, flags, PRIVATE)) as out:
            write(out)
        spark.addArtifact(str(self.path), file=True)

    def empty(self) -> None:
        """Empty the file: no task of the run needs it any more."""
        if self.path.exists():
            os.truncate(self.path, 0)


def table_file(spark: SparkSession, table: NameTable) -> PrivateFile:
    """Ship a table of names."""
    return PrivateFile(spark, "names", lambda out: np.save(out, table.cells))


def with_lists(
    privatizer: Privatizer, lists: ShippedLists, arrays: Sequence[pa.Array | Elements]
) -> Privatizer:
    """Return a model that looks for the lists of all rows, and in each row of a batch for the row's own.

    Args:
        privatizer: the model.
        lists: of the run.
        arrays: of each of the columns string or binary [n], or lists of them, flattened or not.

    Raises:
        TaskError: an invalid entry.
    """
    matcher = matcher_of(lists, arrays)
    return privatizer if matcher is None else privatizer.with_names(matcher)


def matcher_of(lists: ShippedLists, arrays: Sequence[pa.Array | Elements]) -> NameMatcher | None:
    """Return what is looked for in a batch, as :func:`with_lists` takes it; None without lists."""
    if not lists.file and not lists.columns:
        return None
    table = NameTable(_cells(lists.file), lists.uses)
    if not lists.columns:
        return NameMatcher(table)
    entries, rows = [], []
    for name, values in zip(lists.columns, arrays, strict=True):
        texts, row = _texts_of(values)
        try:
            words = WordList.of_texts(name, texts, needed=False)
        except DataError:
            raise TaskError(LIST_ENTRY, 0, 0, len(texts)) from None
        entries.append(words)
        rows.append(row[words.places])
    try:
        own = NameTable.of(entries, lists.column_uses, rows)
    except DataError:
        raise TaskError(LIST_ENTRY, 0, 0, sum(map(len, entries))) from None
    return NameMatcher(table, own)


@lru_cache(maxsize=8)
def _cells(file: str) -> U64:
    """Map the table of the lists of all rows, once a process; without a file it holds none."""
    from pyspark import SparkFiles

    return np.load(SparkFiles.get(file), mmap_mode="r") if file else NameTable.of([]).cells


def _texts_of(values: pa.Array | Elements) -> tuple[pa.Array, I64]:
    """Return the texts of a column and the row of each."""
    if not isinstance(values, Elements) and is_list(values.type):
        values = Elements.of(values)
    return (values.texts, values.rows) if isinstance(values, Elements) else (values, np.arange(len(values)))
