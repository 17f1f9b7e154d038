"""Laws over a whole lexicon from all pairs of its words at once, for many ε in one pass over the distances.

The compiled laws of SanText and TEM cost a pass of their own for each ε, and exact calibration several. Here the distances
are made once for all of them, by a float64 matrix product, tile by tile, each pair once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.lexicon.neighbors import nearest

Reals = npt.NDArray[np.float64]
TILE = 512
SAME = 1e-5  # a distance below it is rounding: the two vectors are equal
ROUNDS = 20  # of a search, between two looks at all pairs
NEAR = 9  # neighbours of a word, itself included, by which a search is steered


@dataclass(frozen=True)
class Exponential:
    """P(u|w) ∝ exp(-step·min(d(w,u), cut)) over the whole lexicon.

    Attributes:
        step: half of the internal ε.
        cut: γ; infinite for none.
    """

    step: float
    cut: float


def _tiles(vectors: Reals, each: Callable[[int, int, Reals], Any]) -> Iterator[Any]:
    """Yield each(i, j, distances) for tiles of rows from i and columns from j >= i, with a thread for each processor."""
    squares = np.einsum("ij,ij->i", vectors, vectors)

    def tile(place: tuple[int, int]) -> Any:
        i, j = place
        rows, columns = slice(i, i + TILE), slice(j, j + TILE)
        distance = squares[rows, None] + squares[columns] - 2.0 * (vectors[rows] @ vectors[columns].T)
        np.sqrt(np.maximum(distance, 0.0, out=distance), out=distance)
        if i == j:
            np.fill_diagonal(distance, 0.0)
        return each(i, j, distance)

    starts = range(0, len(vectors), TILE)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(tile, [(i, j) for i in starts for j in starts if j >= i])


def sums(vectors: Reals, laws: list[Exponential], distances: bool = False) -> tuple[Reals, Reals]:
    """Return (ln Z float64[laws, V], mean distance of the output float64[laws, V], zeros unless asked for)."""
    total, far = np.zeros((2, len(laws), len(vectors)))

    def tile(i: int, j: int, distance: Reals) -> tuple[int, int, list[tuple[Reals, ...]]]:
        found = []
        for law in laws:
            weight = np.minimum(distance, law.cut)
            np.exp(np.multiply(weight, -law.step, out=weight), out=weight)
            parts = [weight.sum(axis=1), weight.sum(axis=0)]
            if distances:
                weight *= distance
                parts += [weight.sum(axis=1), weight.sum(axis=0)]
            found.append(tuple(parts))
        return i, j, found

    for i, j, found in _tiles(vectors, tile):
        for number, parts in enumerate(found):
            for into, (rows, columns) in zip((total, far), (parts[:2], parts[2:] or (0.0, 0.0)), strict=True):
                into[number, i : i + TILE] += rows
                if j > i:
                    into[number, j : j + TILE] += columns
    return np.log(total), far / total


def losses(vectors: Reals, laws: list[Exponential], logs: Reals) -> Reals:
    """Return float64[laws]: the largest loss for each unit of distance over all pairs, as a certificate computes it."""

    def tile(i: int, j: int, distance: Reals) -> list[float]:
        return [
            _steepest(law, distance, log[i : i + TILE, None], log[j : j + TILE])
            for law, log in zip(laws, logs, strict=True)
        ]

    found = np.max(list(_tiles(vectors, tile)), axis=0)
    return np.array([law.step for law in laws]) + found


def _steepest(law: Exponential, distance: Reals, left: Reals, right: Reals) -> float:
    gap = np.where(distance > SAME, np.minimum(distance, law.cut), np.inf)
    return float((np.abs(left - right) / gap).max(initial=0.0))


def calibrated(
    vectors: npt.NDArray[np.float32],
    asked: list[float],
    law_of: Callable[[float, int], Exponential],
    close: float,
) -> tuple[list[float], tuple[Reals, Reals], tuple[Reals, Reals]]:
    """Find the internal ε whose worst loss over all pairs is within each ε asked for, and at most `close` below, relative to it.

    The search is steered by each word's nearest neighbours, where the worst pair usually is; then all pairs are looked at,
    and a loss above what was asked sends it on.

    Args:
        vectors: float32[V, d].
        asked: the promises.
        law_of: (internal ε, number of the promise) -> law.
        close: as `internal_epsilon` takes it.

    Returns:
        (the internal ε, (ln Z, mean distance) at the ε asked for, the same at the internal ε), each float64[asked, V].
    """
    points, wanted = vectors.astype(np.float64), np.array(asked)
    near, away = nearest(vectors, np.arange(len(points), dtype=np.int32), min(NEAR, len(points)), "euclidean")

    def laws(at: Reals) -> list[Exponential]:
        return [law_of(float(epsilon), number) for number, epsilon in enumerate(at)]

    def among_neighbours(at: Reals, logs: Reals) -> Reals:
        return np.array(
            [
                law.step + _steepest(law, away, log[:, None], log[near])
                for law, log in zip(laws(at), logs, strict=True)
            ]
        )

    internal = wanted.copy()
    published = sums(points, laws(internal), distances=True)
    reached = among_neighbours(internal, published[0])
    while True:
        for _ in range(ROUNDS):
            off = (reached > wanted) | (reached < wanted * (1 - close))
            if not off.any():
                break
            # The loss is nearly proportional to ε.
            internal = np.where(
                off, np.maximum(wanted, internal * wanted / reached * (1 - close / 4)), internal
            )
            reached = among_neighbours(internal, sums(points, laws(internal))[0])
        exact = sums(points, laws(internal), distances=True)
        reached = losses(points, laws(internal), exact[0])
        if (reached <= wanted).all():
            return internal.tolist(), published, exact
        internal = np.where(
            reached > wanted, np.maximum(wanted, internal * wanted / reached * (1 - close / 4)), internal
        )
        reached = np.minimum(reached, wanted)
