"""The nearest vectors of every vector among the same ones, in float32, each pair measured once.

A plain search of V vectors among themselves makes V² products; the distance of two is that from either side, so half of them do.
Tiles of a product are made by one matrix product each; a scan puts every number where it belongs, for its row and its column.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dptext_spark.arrays import F32, I32
from dptext_spark.runtime.jit import Int, compiled, inlined

TILE = 512
CHUNK = 64  # numbers that are looked at together
PART = 128  # columns that are looked at together, row after row


def all_neighbors(vectors: F32, count: int) -> tuple[I32, F32]:
    """Return the nearest vectors of each, itself among them, by float32.

    A square is |x|² + |y|² - 2<x,y>, computed in float32 from rounded lengths: it errs by at most (d+3)·2^-24·(|x|+|y|)²
    in any order of summation, which :func:`~dptext_spark.lexicon.neighbors.rounding` bounds.

    Args:
        vectors: float32[V, d], C order, with squared lengths that float32 holds.
        count: K, 1 to V.

    Returns:
        (ids int32[V, K], squared distances float32[V, K], ascending); none that is left out has a lower square than the last.
    """
    words = len(vectors)
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64).astype(np.float32)
    ids = np.full((words, count), -1, np.int32)
    found = np.full((words, count), np.inf, np.float32)
    bars = np.full(words, np.inf, np.float32)  # the last square of each row

    def look(tile: tuple[int, int]) -> None:
        i, j = tile
        products = vectors[i : i + TILE] @ vectors[j : j + TILE].T
        _rows(products, squares, i, j, ids, found, bars)
        if j > i:
            _columns(products, squares, i, j, ids, found, bars)

    # A thread that makes its own products waits for no other; left to itself, each product would take every thread.
    with ThreadPoolExecutor(os.cpu_count()) as pool, threadpool_limits(1, "blas"):
        for tiles in _rounds(-(-words // TILE)):
            list(pool.map(look, tiles))
    return ids, found


def _rounds(blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield every tile once, as its first row and column, in rounds in which no block of words stands twice.

    So no two threads write to one word: the circle method of a round-robin tournament.
    """
    yield [(block * TILE, block * TILE) for block in range(blocks)]
    turns = blocks - 1 + blocks % 2  # with an odd number, one block rests in each round
    for turn in range(turns):
        others = [((turn + step) % turns, (turn - step) % turns) for step in range(1, (turns + 1) // 2)]
        pairs = [*others, *([] if blocks % 2 else [(turn, turns)])]
        yield [(min(pair) * TILE, max(pair) * TILE) for pair in pairs]


@inlined
def _insert(word: Int, other: Int, square: Any, ids: Any, found: Any, bars: Any) -> None:
    """Put one more into the ascending list of a word."""
    at = found.shape[1] - 1
    while at > 0 and found[word, at - 1] > square:
        found[word, at] = found[word, at - 1]
        ids[word, at] = ids[word, at - 1]
        at -= 1
    found[word, at] = square
    ids[word, at] = other
    bars[word] = found[word, found.shape[1] - 1]


@compiled
def _rows(products: Any, squares: Any, i: Int, j: Int, ids: Any, found: Any, bars: Any) -> None:
    """Look at a tile for the words of its rows, i and on; its columns are words from j on."""
    rows, width = products.shape
    for row in range(rows):
        word = i + row
        mine, part, others = squares[word], products[row], squares[j : j + width]
        for start in range(0, width, CHUNK):
            end = min(start + CHUNK, width)
            bar = bars[word]
            if end == start + CHUNK:
                # A fixed number of turns and 32 bits a turn: this compiles to vector comparisons.
                hits = np.int32(0)
                for c in range(CHUNK):
                    square = (mine + others[start + c]) - np.float32(2.0) * part[start + c]
                    hits |= np.int32(square < bar)
                if hits == 0:
                    continue
            for c in range(start, end):
                square = (mine + others[c]) - np.float32(2.0) * part[c]
                if square < bars[word]:
                    _insert(word, j + c, square, ids, found, bars)


@compiled
def _columns(products: Any, squares: Any, i: Int, j: Int, ids: Any, found: Any, bars: Any) -> None:
    """Look at a tile for the words of its columns, j and on; its rows are words from i on."""
    rows, width = products.shape
    for start in range(0, width, PART):
        end = min(start + PART, width)
        for row in range(rows):
            mine, part = squares[i + row], products[row, start:end]
            others, limits = squares[j + start : j + end], bars[j + start : j + end]
            if end == start + PART:
                hits = np.int32(0)
                for c in range(PART):
                    square = (mine + others[c]) - np.float32(2.0) * part[c]
                    hits |= np.int32(square < limits[c])
                if hits == 0:
                    continue
            for c in range(end - start):
                square = (mine + others[c]) - np.float32(2.0) * part[c]
                if square < limits[c]:
                    _insert(j + start + c, i + row, square, ids, found, bars)
