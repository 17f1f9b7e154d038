"""Work for each processor: matrix products and compiled loops, which release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dptext_spark.arrays import F32

TILE = 1_024  # words whose numbers stay in the cache while one step after the other goes over them
Found = TypeVar("Found")
Number = TypeVar("Number", np.int32, np.int64)


def in_threads(
    work: Callable[[npt.NDArray[Number]], Found], items: npt.NDArray[Number], at_once: int
) -> list[Found]:
    """Do the work for parts of the items, and return what it found in their order.

    A thread that makes its own matrix products waits for no other; left to itself, each product would take every thread.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads, threadpool_limits(1, "blas"):
        return list(threads.map(work, [items[i : i + at_once] for i in range(0, len(items), at_once)]))


def tiles(words: int) -> Iterator[slice]:
    """Yield parts of the words."""
    for start in range(0, words, TILE):
        yield slice(start, min(start + TILE, words))


def products(some: F32, vectors: F32) -> Iterator[tuple[slice, F32]]:
    """Yield (part of the words, float32[n, part]), the inner products of float32[n, d] with float32[V, d]."""
    for part in tiles(len(vectors)):
        yield part, some @ vectors[part].T
