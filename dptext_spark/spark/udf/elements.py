"""The texts of a batch of lists: flattened for the engine, each with an identity of its own, and put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, Bools


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type is that of a column of several texts a row."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


@dataclass(frozen=True, eq=False)
class Elements:
    """The texts of a batch of lists.

    Attributes:
        texts: string or binary [m].
        bounds: int64[n+1], where the texts of each row begin and end; those of a NULL list are none.
        null: bool[n], the lists that are NULL.
    """

    texts: pa.Array
    bounds: I64
    null: Bools

    @classmethod
    def of(cls, lists: pa.Array) -> Elements:
        """Flatten list<string> or list<binary> [n]."""
        sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        return cls(lists.flatten(), bounds, np.asarray(lists.is_null(), np.bool_))

    @property
    def rows(self) -> I64:
        """The row of each text: int64[m]."""
        rows: I64 = np.repeat(np.arange(len(self.null)), np.diff(self.bounds))
        return rows

    def identities(self, row_ids: pa.Array) -> pa.Array:
        """Return the identity of each text: its row's, and its number in the row as the last 8 bytes.

        Two texts of a column share one only if both are the same, since the number has a fixed width.

        Args:
            row_ids: integer, string or binary [n].
        """
        number = np.arange(len(self.texts)) - self.bounds[:-1][self.rows]
        if pa.types.is_integer(row_ids.type):
            ids = row_ids.to_numpy(zero_copy_only=False).astype("<i8")
            return _fixed(np.column_stack([ids[self.rows], number.astype("<i8")]))
        ids = row_ids.take(pa.array(self.rows)).cast(pa.large_binary())
        return pc.binary_join_element_wise(
            ids, _fixed(number.astype("<i8")[:, None]), pa.scalar(b"", pa.large_binary())
        )

    def sums(self, counts: npt.NDArray[Any]) -> I64:
        """Sum a count of each text over its row: int[m] -> int64[n]."""
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        sums: I64 = np.diff(total[self.bounds])
        return sums

    def whole(self, texts: pa.Array) -> pa.Array:
        """Return list<string> [n] with new texts [m] in the places of the old ones; NULL lists stay NULL."""
        offsets = pa.array(self.bounds.astype(np.int32))
        return pa.ListArray.from_arrays(offsets, texts, mask=pa.array(self.null))


def _fixed(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return the bytes of each row of '<i8'[m, k] as large_binary [m]."""
    raw = np.ascontiguousarray(numbers)
    width = raw.shape[1] * raw.itemsize
    offsets = np.arange(len(raw) + 1, dtype=np.int64) * width
    return pa.Array.from_buffers(
        pa.large_binary(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(raw.tobytes())]
    )
