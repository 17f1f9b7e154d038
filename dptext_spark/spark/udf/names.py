"""The private lists of a run in a worker: the compiled ones from a file of their own, and those of each row from its columns.

The file holds hashes under a subkey of the run key and what the run is called. It lies in a folder of the driver that only its
user may read, is emptied when the run ends, and goes with the process: Spark hands it to executors that start later, too, and
ends their tasks where it is gone. The copies on executors go with the application.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64
from dptext_spark.errors import DataError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.paths import PRIVATE
from dptext_spark.spark.errors import LIST_ENTRY, TaskError
from dptext_spark.spark.tables.paths import Elements, is_list
from dptext_spark.text.names.listed_parts import Names
from dptext_spark.text.names.matching import OwnNames
from dptext_spark.text.names.name_table import NameTable, compile_names, name_key
from dptext_spark.text.names.word_list import WordList

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ShippedNames:
    """What a worker needs to know of the lists of a run; it travels in the function's closure, and holds no entry.

    Attributes:
        scope: what the hashes are keyed for beside the key: a run, or a stream.
        file: the compiled lists, by the name that Spark shipped them under; empty: there are none.
        masking: how many of them mask; the others keep.
        columns: whose texts are the lists of their rows, those that mask first: an argument each.
        masking_columns: how many of them mask.
        kinds: of what each list that masks holds names, where they have pseudonyms; None where they are masked.
        column_kinds: the same of the columns that mask.
    """

    scope: str = ""
    file: str = ""
    masking: int = 0
    columns: tuple[str, ...] = ()
    masking_columns: int = 0
    kinds: tuple[str | None, ...] = ()
    column_kinds: tuple[str | None, ...] = ()


NO_NAMES = ShippedNames()


class NamesFile:
    """The compiled lists of a run on the driver, and under which name Spark has them."""

    def __init__(self, spark: SparkSession, table: NameTable) -> None:
        """Write the file, and ship it."""
        folder = Path(tempfile.mkdtemp(prefix="dptext-names-"))  # for its user alone
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.name = f"names-{secrets.token_hex(12)}.npy"
        self.path = folder / self.name
        with open(self.path, "wb", opener=lambda path, flags: os.open(path, flags, PRIVATE)) as out:
            np.save(out, table.packed())
        spark.addArtifact(str(self.path), file=True)

    def empty(self) -> None:
        """Empty the file: no task of the run needs it any more."""
        if self.path.exists():
            os.truncate(self.path, 0)


def with_lists(
    privatizer: Privatizer, names: ShippedNames, arrays: Sequence[pa.Array | Elements], key: RunKey
) -> Privatizer:
    """Return a model that looks for the lists of all rows, and in each row of a batch for the row's own.

    Args:
        privatizer: the model.
        names: the lists.
        arrays: of each of the columns string or binary [n], or lists of them, flattened or not.
        key: the run key.

    Raises:
        TaskError: an entry that can be none.
    """
    found = names_of(names, arrays, key)
    return privatizer if found is None else privatizer.with_names(found)


def names_of(names: ShippedNames, arrays: Sequence[pa.Array | Elements], key: RunKey) -> Names | None:
    """Return what is looked for in a batch, as :func:`with_lists` takes it; None without lists."""
    if not names.file and not names.columns:
        return None
    hashing = name_key(key, names.scope)
    opened = _opened(
        names.file, names.masking, key.commitment(names.scope), tuple(int(one) for one in hashing)
    )
    opened = replace(opened, kinds=names.kinds, own_kinds=names.column_kinds)
    if not names.columns:
        return opened
    lists, roots = [], []
    for name, values in zip(names.columns, arrays, strict=True):
        texts, rows = _texts_of(values)
        try:
            one = WordList.of_texts(name, texts, needed=False)
        except DataError:
            raise TaskError(LIST_ENTRY, 0, 0, len(texts)) from None
        lists.append(one)
        roots.append(rows[one.places].astype(np.uint64) + np.uint64(1))
    try:
        table = compile_names(lists, hashing, roots)
    except DataError:
        raise TaskError(LIST_ENTRY, 0, 0, sum(map(len, lists))) from None
    return replace(opened, own=OwnNames(table, names.masking_columns))


@lru_cache(maxsize=8)
def _opened(file: str, masking: int, commitment: str, key: tuple[int, int]) -> Names:  # noqa: ARG001  (keys are told apart)
    """Open the lists of all rows, once a process; without a file there are none."""
    from pyspark import SparkFiles

    keys = np.array(key, np.uint64)
    if not file:
        return Names(compile_names([], keys), 0)
    return Names(NameTable.unpacked(np.load(SparkFiles.get(file), mmap_mode="r"), keys), masking)


def _texts_of(values: pa.Array | Elements) -> tuple[pa.Array, I64]:
    """Return the texts of a column and the row of each."""
    if not isinstance(values, Elements) and is_list(values.type):
        values = Elements.of(values)
    return (values.texts, values.rows) if isinstance(values, Elements) else (values, np.arange(len(values)))
