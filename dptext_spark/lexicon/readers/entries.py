"""What every reader hands over: blocks of keys with their vectors, as the file holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.errors import DataError

Block = tuple[pa.Array, npt.NDArray[np.float32]]
MOST_DIMENSIONS = 1 << 16


@dataclass(frozen=True)
class Entries:
    """The entries of one lexicon file, in order.

    Attributes:
        dimensions: d.
        announced: how many entries the file says that it holds; None where it does not say.
        likely: how many it may hold, to reserve memory for.
        blocks: (keys large_string[n], not checked to be UTF-8; rows float32[n, d], valid until the next
            block); raises :class:`~dptext_spark.errors.DataError` when it comes to a malformed entry.
    """

    dimensions: int
    announced: int | None
    likely: int
    blocks: Iterator[Block]


def check_dimensions(path: Path, dimensions: int) -> None:
    """Raise :class:`~dptext_spark.errors.DataError` for a number of dimensions that cannot be."""
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise DataError(f"{path}: {dimensions:,} dimensions; valid: 1 to {MOST_DIMENSIONS:,}.")


def keys_of(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Return large_string[n] over bytes that nobody has checked yet.

    Args:
        data: uint8[...], the keys one after the other.
        offsets: int64[n+1].
    """
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def keys_from(array: pa.Array) -> pa.Array:
    """Return large_string[n] with the bytes of a string or binary array, unchecked."""
    plain = array.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    start = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    return keys_of(np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), start)
