"""Array types by their standard names, and arrays that cannot be written. Docstrings give shapes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

Ids = I32
"""Word ids, int32[n]: the place of a word in the lexicon."""

Vectors = F32
"""Word vectors, float32[V, dim]: a row for each word."""

Array = TypeVar("Array", bound=npt.NDArray[np.generic])


def read_only(array: Array) -> Array:
    """Return a view in C order that cannot be written; the array itself where it is one.

    Loops are compiled for each kind of array that they are given: fresh ones then take the code of memory-mapped ones.
    """
    if array.flags.writeable or not array.flags.c_contiguous:
        contiguous: Any = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        array = contiguous.view()
        array.flags.writeable = False
    return array


def bounds_of(owners: I64, count: int) -> I64:
    """Return the bounds of each of `count` owners' entries: ascending int64[n], the entries' owners -> int64[count + 1]."""
    bounds = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=bounds[1:])
    return bounds


def offsets(sizes: npt.ArrayLike) -> I64:
    """Return the starts of consecutive parts of these sizes, and the end of the last: [n] -> int64[n + 1]."""
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def spaced(count: int, most: int) -> I64:
    """Return at most so many places of 0 to count - 1, evenly spaced and ascending."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.int64))


class ReadOnlyArrays:
    """The base of a dataclass that holds arrays: they are :func:`read_only`, whoever made them."""

    def __post_init__(self) -> None:
        """Let no array be written."""
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))
