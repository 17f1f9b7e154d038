"""Laws over a whole lexicon from all pairs of its words at once, for many ε in one pass over the distances.

The compiled laws of SanText and TEM cost a pass of their own for each ε, and exact calibration several. Here the distances
are made once for all of them, tile by tile, each pair once.
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
from dptext_spark.mechanisms.numerics.matrices import squared_distances
from dptext_spark.runtime.jit import Int, compiled

Reals = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]
TILE = 512
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


@compiled
def _distances(flat: Any, size: Int, i: Int, j: Int, out: Any) -> None:
    """Fill out float64[n, m] with the distances of n rows from i to m rows from j."""
    for row in range(out.shape[0]):
        squared_distances(flat, size, i + row, flat, j, j + out.shape[1], out[row])
        for column in range(out.shape[1]):
            out[row, column] = np.sqrt(out[row, column])


def _tiles(vectors: Vectors, each: Callable[[int, int, Reals], Any]) -> Iterator[Any]:
    """Yield each(i, j, distances) for tiles of rows from i and columns from j >= i, with a thread for each processor."""
    words, size = vectors.shape
    flat = np.ascontiguousarray(vectors).reshape(-1)

    def tile(place: tuple[int, int]) -> Any:
        i, j = place
        distance = np.empty((min(TILE, words - i), min(TILE, words - j)))
        _distances(flat, size, i, j, distance)
        return each(i, j, distance)

    starts = range(0, words, TILE)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(tile, [(i, j) for i in starts for j in starts if j >= i])


def sums(vectors: Vectors, laws: list[Exponential], distances: bool = False) -> tuple[Reals, Reals]:
    """Return (ln Z float64[laws, V], mean distance of the output float64[laws, V], zeros unless asked for).

    Weights are float32, which is good for six digits of a sum; distances are made in float64.
    """
    total, far = np.zeros((2, len(laws), len(vectors)))

    def tile(i: int, j: int, distance: Reals) -> tuple[int, int, list[tuple[Any, ...]]]:
        near = distance.astype(np.float32)
        weight = np.empty_like(near)
        found = []
        for law in laws:
            np.multiply(near, np.float32(-law.step), out=weight)
            np.maximum(weight, np.float32(-law.step * law.cut), out=weight)
            np.exp(weight, out=weight)
            parts: tuple[Any, ...] = (weight.sum(axis=1), weight.sum(axis=0))
            if distances:
                weight *= near
                parts += (weight.sum(axis=1), weight.sum(axis=0))
            found.append(parts)
        return i, j, found

    for i, j, found in _tiles(vectors, tile):
        for number, parts in enumerate(found):
            for into, (rows, columns) in zip((total, far), (parts[:2], parts[2:] or (0.0, 0.0)), strict=True):
                into[number, i : i + TILE] += rows
                if j > i:
                    into[number, j : j + TILE] += columns
    return np.log(total), far / total


def losses(vectors: Vectors, laws: list[Exponential], logs: Reals) -> Reals:
    """Return float64[laws]: the largest loss for each unit of distance over all pairs, as a certificate computes it."""

    def tile(i: int, j: int, distance: Reals) -> list[float]:
        return [
            _steepest(law, distance, log[i : i + TILE, None], log[j : j + TILE])
            for law, log in zip(laws, logs, strict=True)
        ]

    return np.array([law.step for law in laws]) + np.array(list(_tiles(vectors, tile))).max(axis=0)


def _steepest(law: Exponential, distance: Reals, left: Reals, right: Reals) -> float:
    gap = np.where(distance > 0.0, np.minimum(distance, law.cut), np.inf)
    return float((np.abs(left - right) / gap).max(initial=0.0))


def calibrated(
    vectors: Vectors,
    asked: list[float],
    law_of: Callable[[float, int], Exponential],
    close: float,
) -> tuple[list[float], tuple[Reals, Reals], tuple[Reals, Reals]]:
    """Find the internal ε whose worst loss over all pairs is within each ε asked for, and hardly below it.

    The search is steered by each word's nearest neighbours, where the worst pair usually is; then all pairs are looked at,
    and a loss above what was asked sends it on.

    Args:
        vectors: float32[V, d].
        asked: the promises.
        law_of: (internal ε, number of the promise) -> law.
        close: how far below the promise the loss may stay, relative to it.

    Returns:
        (the internal ε, (ln Z, mean distance) at the ε asked for, the same at the internal ε), each float64[asked, V].
    """
    words, wanted = np.arange(len(vectors), dtype=np.int32), np.array(asked)
    near, away = nearest(vectors, words, min(NEAR, len(vectors)), "euclidean")
    centered = vectors.astype(np.float64) - vectors.mean(axis=0)
    reach = 2.0 * float(np.linalg.norm(centered, axis=1).max())  # no distance is greater

    def laws(at: Reals) -> list[Exponential]:
        made = [law_of(float(epsilon), number) for number, epsilon in enumerate(at)]
        return [Exponential(law.step, min(law.cut, reach)) for law in made]

    def summed(at: Reals, old: dict[Exponential, Reals], distances: bool = False) -> tuple[Reals, Reals]:
        """Sum each law once, and those not at all that are known."""
        new = [law for law in dict.fromkeys(laws(at)) if distances or law not in old]
        logs, far = sums(vectors, new, distances) if new else (np.empty((0, 0)), np.empty((0, 0)))
        old.update(zip(new, logs, strict=True))
        means = dict(zip(new, far, strict=True))
        return np.array([old[law] for law in laws(at)]), np.array(
            [means[law] if distances else 0.0 for law in laws(at)]
        )

    def among_neighbours(at: Reals, logs: Reals) -> Reals:
        return np.array(
            [
                law.step + _steepest(law, away, log[:, None], log[near])
                for law, log in zip(laws(at), logs, strict=True)
            ]
        )

    internal, power, known = wanted.copy(), np.ones(len(wanted)), {}
    published = summed(internal, known, distances=True)
    reached = among_neighbours(internal, published[0])
    while True:
        for _ in range(ROUNDS):
            off = (reached > wanted) | (reached < wanted * (1 - close))
            if not off.any():
                break
            # The loss is nearly a power of ε, and the power nearly 1; the last two steps tell it.
            further = np.maximum(internal * (wanted / reached * (1 - close / 4)) ** (1 / power), wanted)
            before, last = internal, reached
            internal = np.where(off, further, internal)
            reached = among_neighbours(internal, summed(internal, known)[0])
            with np.errstate(invalid="ignore", divide="ignore"):
                power = np.where(off, np.log(reached / last) / np.log(internal / before), power)
            power = np.where(np.isfinite(power), power, 1.0).clip(0.5, 2.0)
        exact = summed(internal, known, distances=True)
        reached = losses(vectors, laws(internal), exact[0])
        if (reached <= wanted).all():
            return internal.tolist(), published, exact
        internal = np.where(reached > wanted, internal * wanted / reached * (1 - close / 4), internal)
        internal, reached = np.maximum(internal, wanted), np.minimum(reached, wanted)
