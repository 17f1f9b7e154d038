"""SipHash-2-4 with 64 bits (Aumasson and Bernstein 2012), chained over the words of a phrase, in compiled loops.

It is a pseudo-random function: whoever sees hashes and guesses words, but lacks the key, can check no guess. The hash of a phrase
is that of its last word with the hash of what stands before it in front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.runtime.jit import Int, compiled, inlined

_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)


@inlined
def _round(v0: Int, v1: Int, v2: Int, v3: Int) -> tuple[Int, Int, Int, Int]:
    v0 += v1
    v1 = (v1 << np.uint64(13)) | (v1 >> np.uint64(51))
    v1 ^= v0
    v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
    v2 += v3
    v3 = (v3 << np.uint64(16)) | (v3 >> np.uint64(48))
    v3 ^= v2
    v0 += v3
    v3 = (v3 << np.uint64(21)) | (v3 >> np.uint64(43))
    v3 ^= v0
    v2 += v1
    v1 = (v1 << np.uint64(17)) | (v1 >> np.uint64(47))
    v1 ^= v2
    v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
    return v0, v1, v2, v3


@inlined
def _take(block: Int, v0: Int, v1: Int, v2: Int, v3: Int) -> tuple[Int, Int, Int, Int]:
    v3 ^= block
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= block
    return v0, v1, v2, v3


@inlined
def _end(v0: Int, v1: Int, v2: Int, v3: Int) -> Int:
    v2 ^= np.uint64(0xFF)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@compiled
def siphash_short(k0: Int, k1: Int, before: Int, first: Int, second: Int, size: Int) -> Int:
    """Return :func:`siphash` of at most 15 bytes, which stand in two numbers, zeros behind them."""
    v0, v1, v2, v3 = _take(before, k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3)
    last = first
    if size >= 8:
        v0, v1, v2, v3 = _take(first, v0, v1, v2, v3)
        last = second
    v0, v1, v2, v3 = _take(last | (np.uint64(size + 8) << np.uint64(56)), v0, v1, v2, v3)
    return _end(v0, v1, v2, v3)


@compiled
def siphash(k0: Int, k1: Int, before: Int, data: Any, size: Int) -> Int:
    """Return the hash of eight bytes `before` and data[:size] under the key (k0, k1).

    Args:
        k0: uint64, the first half of the key.
        k1: uint64, the second.
        before: uint64, the hash of what stands before; 0 at the beginning.
        data: uint8[...].
        size: bytes of it.
    """
    v0, v1, v2, v3 = _take(before, k0 ^ _V0, k1 ^ _V1, k0 ^ _V2, k1 ^ _V3)
    at = np.int64(0)
    while at + 8 <= size:
        block = np.uint64(0)
        for j in range(8):
            block |= np.uint64(data[at + j]) << np.uint64(8 * j)
        v0, v1, v2, v3 = _take(block, v0, v1, v2, v3)
        at += 8
    block = np.uint64((size + 8) & 0xFF) << np.uint64(56)
    for j in range(size - at):
        block |= np.uint64(data[at + j]) << np.uint64(8 * j)
    v0, v1, v2, v3 = _take(block, v0, v1, v2, v3)
    return _end(v0, v1, v2, v3)
