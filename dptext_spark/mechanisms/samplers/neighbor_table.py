"""Draws that the nearest neighbours settle: where noise is short, no word far away can be nearest to the noisy vector.

With p0 <= p1 <= ... the distances of a word's vector c to the targets and q = c + Z, a target at distance p is at least p - |Z|
from q, while the nearest is at most p0 + |Z| and the second nearest at most p1 + |Z| away. So only targets with p <= p0 + 2|Z|
can be nearest, and only those with p <= p1 + 2|Z| can be among the two nearest. The bounds are widened by all that float64 can
have rounded, so that an answer is the one of a search over the whole lexicon: not nearly always, but always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dptext_spark.arrays import F64, Ids, ReadOnlyArrays, Vectors
from dptext_spark.lexicon.neighbors import nearest
from dptext_spark.mechanisms.samplers.nearest import Targets
from dptext_spark.mechanisms.samplers.scores import best_two
from dptext_spark.runtime.jit import Int, compiled, inner_product

SIZE = 64
SAMPLE = 256  # words by which the table's use is judged
LEAST = 0.01  # share of draws that a table must settle to be worth its memory
OPEN = -1  # in the place of a word: the table does not settle this draw


@dataclass(frozen=True, eq=False)
class NeighborTable(ReadOnlyArrays):
    """The nearest targets of each word.

    Attributes:
        near: int32[V, k], nearest first, ties by id; k = 0 settles nothing.
        reach: float64[V, 3], the distances of the first, the second and the last; the last infinite where k = V.
    """

    near: Ids
    reach: F64

    @classmethod
    def none(cls, words: int) -> NeighborTable:
        """Return a table that settles nothing."""
        return cls(np.empty((words, 0), np.int32), np.zeros((words, 3)))

    @classmethod
    def of(cls, vectors: Vectors, size: int = SIZE) -> NeighborTable:
        """Find the `size` nearest words of each of float32[V, d], 2 or more; all where V is less."""
        near, reach = _nearest(vectors, np.arange(len(vectors), dtype=np.int32), size)
        return cls(near, reach)

    @classmethod
    def for_noise(
        cls, vectors: Vectors, lengths: F64, wanted: int, size: int = SIZE
    ) -> tuple[NeighborTable, F64]:
        """Build a table if it settles enough draws. It never changes one.

        Args:
            vectors: float32[V, d].
            lengths: float64[n], lengths of noise.
            wanted: 1 for the nearest word alone, 2 for the second, too.
            size: of the table, 2 or more; 0 for none.

        Returns:
            (the table, or one that settles nothing; the distance to the nearest other word for 256 words, ascending).
        """
        words = len(vectors)
        rows = np.unique(np.linspace(0, words - 1, SAMPLE).astype(np.int32))
        _, reach = _nearest(vectors, rows, max(size, 2))
        room = reach[:, 2] - reach[:, wanted - 1]
        if wanted == 1:
            room = np.maximum(room, reach[:, 1])
        useful = size > 0 and bool((2.0 * lengths[:, None] < room).mean() >= LEAST)
        return cls.of(vectors, size) if useful else cls.none(words), np.sort(reach[:, 1])

    def settle(self, ids: Ids, centers: Vectors, targets: Targets, noisy: F64, wanted: int) -> Ids:
        """Add the vectors to the noise and answer where the table can.

        Args:
            ids: int32[n], the words.
            centers: float32[V, d].
            targets: what a noisy vector is snapped to.
            noisy: float64[n, d], noise; the words' vectors are added to it.
            wanted: 1 for the nearest word alone, 2 for the second, too.

        Returns:
            int32[n, 2]: the nearest and the second nearest word (if wanted), or `OPEN`.
        """
        out = np.full((len(ids), 2), OPEN, np.int32)
        _settle(
            ids, centers.reshape(-1), centers.shape[1], targets.vectors.reshape(-1), targets.halves, targets.reach,
            self.near, self.reach, wanted, noisy.reshape(-1), out,
        )  # fmt: skip
        return out


def _nearest(vectors: Vectors, rows: Ids, size: int) -> tuple[Ids, F64]:
    """Return the nearest words of some rows, and `reach` as the table has it."""
    k = min(len(vectors), size)
    near, distance = nearest(vectors, rows, k, "euclidean")
    reach = np.ascontiguousarray(distance[:, [0, 1, -1]])
    if k == len(vectors):
        reach[:, 2] = np.inf
    return near, reach


@compiled
def _length(flat: Any, i: Int, size: Int) -> float:
    """Return the length of row i of float64[n * d], in a fixed order."""
    whole = size - size % 8
    total = inner_product(flat, i * size, flat, i * size, whole)
    for k in range(whole, size):
        total += flat[i * size + k] * flat[i * size + k]
    return math.sqrt(total)


@compiled
def _settle(
    ids: Any, centers: Any, size: Int, words: Any, halves: Any, longest: float, near: Any, reach: Any, wanted: Int,
    noisy: Any, out: Any,
) -> None:  # fmt: skip
    """See :meth:`NeighborTable.settle`.

    A float64 sum of d products is off by at most e times the product of the lengths, e = 1.02·(d + 8)·2^-53. Two scores that
    differ by more than 2·e·(|q|·L + L²/2), L the longest target, are ordered as the real ones; that holds where distances
    differ by m with m²/2 as large.
    """
    error = 1.02 * (size + 8) * 2.0**-53
    for i in range(ids.shape[0]):
        word = np.int64(ids[i])
        noise = _length(noisy, i, size)
        for k in range(size):
            noisy[i * size + k] += np.float64(centers[word * size + k])
        if near.shape[1] == 0:
            continue
        length = _length(noisy, i, size)
        margin = math.sqrt(5.0 * error * (length * longest + longest * longest))
        bound = (reach[word, wanted - 1] + 2.0 * noise) * (1.0 + 2.0 * error) + 2.0**-50 * length + margin
        if wanted == 1 and reach[word, 1] * (1.0 - 2.0 * error) > bound:
            out[i, 0] = near[word, 0]
        elif reach[word, 2] * (1.0 - 2.0 * error) > bound:
            first, second, _, _ = best_two(noisy, i, words, size, halves, near[word], near.shape[1])
            out[i, 0], out[i, 1] = first, second
