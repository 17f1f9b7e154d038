"""Public counts of word pairs as fluent draws look them up: a small hash table for each word that others follow, or a whole row.

A slot of a table holds a word and its weight. A bit for each word that begins at a slot tells most words that are not there
without a look at the slots. A pair that was not counted has max(1, λ(h)·base(u) >> SHIFT), as in the pair model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.arrays import I64, U8, U32, U64, Bools, Ids
from dptext_spark.lexicon.prior import SHIFT, PairModel
from dptext_spark.runtime.jit import Int, compiled, inlined

# Contexts that are followed by more than a 64th of the words have their weights in a row, as far as that takes 8 MB.
MOST_ROWS, ROW_BYTES, LEAST_SHARE = 64, 1 << 23, 64
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOWER, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _EIGHTH, _SEVEN, _BITS = np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(SHIFT)


@inlined
def place_of(u: Int, size: Int) -> Int:
    """Return where a word is in a table of `size` slots: its first slot, times 8, plus its bit in that slot's byte of `held`."""
    return ((np.uint64(u) * _MIX) >> _HALF) & (np.uint64(8) * np.uint64(size) - _ONE)


@compiled
def _fill(starts: Any, following: Any, weight: Any, slots: Any, cells: Any, held: Any) -> None:
    """Fill the hash tables; slots: int64[H + 1], where the table of each context begins."""
    for h in range(slots.shape[0] - 1):
        low, size = slots[h], slots[h + 1] - slots[h]
        for e in range(starts[h], starts[h + 1] if size > 0 else starts[h]):
            place = place_of(following[e], size)
            slot = np.int64(place >> _EIGHTH)
            held[low + slot] |= np.uint8(1) << np.uint8(place & _SEVEN)
            while cells[low + slot] != 0:
                slot = (slot + 1) & (size - 1)
            cells[low + slot] = np.uint64(following[e]) | (np.uint64(weight[e]) << _HALF)


@inlined
def unseen(backoff: Int, base: Int) -> Int:
    """Return b(u|h) of a pair that was not counted."""
    return max(_ONE, (np.uint64(backoff) * np.uint64(base)) >> _BITS)


@inlined
def seen(cells: Any, low: Int, size: Int, u: Int, slot: Int, otherwise: Int) -> Int:
    """Return b(u|h) of a counted pair, looked for from a slot on; `otherwise` where it is none."""
    found = np.uint64(otherwise)
    cell = cells[low + slot]
    while cell != np.uint64(0):
        if (cell & _LOWER) == u:
            found = cell >> _HALF
            break
        slot = (slot + _ONE) & (size - _ONE)
        cell = cells[low + slot]
    return found


def whole_rows(pairs: PairModel) -> tuple[Ids, U32]:
    """Return which contexts have all their weights in a row, int32[H + 1] with -1 for none, and the rows, uint32[D, V]."""
    counts, words = np.diff(pairs.starts), pairs.words
    most = min(MOST_ROWS, ROW_BYTES // (4 * words))
    chosen = np.lexsort((np.arange(len(counts)), -counts))[:most]
    chosen = np.sort(chosen[counts[chosen] > words // LEAST_SHARE])
    row = np.full(len(counts) + 1, -1, np.int32)
    row[chosen] = np.arange(len(chosen), dtype=np.int32)
    every = np.arange(words, dtype=np.int32)
    rows = [pairs.weights(np.full(words, h, np.int32), every) for h in chosen.tolist()]
    return row, np.stack(rows) if rows else np.zeros((0, words), np.uint32)


def hashed(pairs: PairModel, listed: Bools) -> tuple[I64, U64, U8]:
    """Return the counted pairs of some contexts (bool[H + 1]) as hash tables, at least half empty.

    Returns:
        starts int64[H + 2], cells uint64[m], held uint8[m].
    """
    counts = np.where(listed[:-1], np.diff(pairs.starts), 0)
    sizes = np.where(counts > 0, 1 << np.ceil(np.log2(np.maximum(2 * counts, 2))).astype(np.int64), 0)
    starts = np.concatenate([[0], np.cumsum(sizes), [sizes.sum()]]).astype(np.int64)
    cells, held = np.zeros(int(starts[-1]), np.uint64), np.zeros(int(starts[-1]), np.uint8)
    _fill(pairs.starts, pairs.following, pairs.weight, starts[:-1], cells, held)
    return starts, cells, held
