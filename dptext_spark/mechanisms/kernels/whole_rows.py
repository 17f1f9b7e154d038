"""Compile laws over a whole lexicon: for each word the nearest outputs, the sums, and one alias row in integers.

With f(u) = exp(-ε·min(d(w,u), γ)/2), Z its sum, and F the value at the farthest output of the head: the row holds
(f(u) - F)/Z for the head and, as one more outcome, the tail: min(f(u), F)/Z of every output together.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.compiled import Int, compiled, inlined
from dptext_spark.mechanisms.base import TOTAL, Ids
from dptext_spark.mechanisms.distances import squared_distances
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.mechanisms.kernels.alias import alias_rows
from dptext_spark.mechanisms.kernels.decay import EVERY, acceptance, decay, summed

WORDS = 32  # words whose distances are held at once: beside a tile of outputs they stay in a core's cache
TILE = 64
BINS = 2048  # of the search for the nearest outputs
REJECTED = (
    1.0 / 32.0
)  # rounds go on until at most this share of the draws from the tail is rejected in all of them
NEVER = 2.0**-64  # a probability that no longer matters
MARGIN = 1e-9
_TOTAL = np.uint64(TOTAL)


class Rows(NamedTuple):
    """What is compiled for V words.

    Attributes:
        cells: uint64[V, 2^m, 2], alias rows over ids; id V stands for the tail.
        level: float64[V], the distance of the farthest output of the head, γ at most.
        surely: uint64[V]; a proposal whose number is at most this is accepted whatever its distance.
        rounds: int32[V], how many proposals the tail may reject.
        fallback: int32[V], the output after so many: the word itself, or the nearest output.
        log_normaliser: float64[V], ln Z.
        least: float64[V], the smallest probability of an output, of the ideal law.
    """

    cells: npt.NDArray[np.uint64]
    level: npt.NDArray[np.float64]
    surely: npt.NDArray[np.uint64]
    rounds: Ids
    fallback: Ids
    log_normaliser: npt.NDArray[np.float64]
    least: npt.NDArray[np.float64]


def compile_rows(
    vectors: npt.NDArray[np.float32],
    outputs: Ids,
    step: float,
    radius: float,
    keep: npt.NDArray[np.float64],
    slots: int,
) -> Rows:
    """Compile every word's row, with a thread for each processor; each row is the work of one thread.

    Args:
        vectors: float32[V, d].
        outputs: int32[n], ids, ascending.
        step: ε/2.
        radius: γ, at most 43/step.
        keep: float64[V], the probability that a word which is no output is released as it is; 0 for outputs.
        slots: 2^m, size of an alias row; it holds all outputs if they fit (and the word kept), else the tail too.
    """
    words = len(vectors)
    made = Rows(
        np.empty((words, slots, 2), np.uint64), np.empty(words), np.empty(words, np.uint64),
        np.empty(words, np.int32), np.empty(words, np.int32), np.empty(words), np.empty(words),
    )  # fmt: skip
    flat = np.ascontiguousarray(vectors).reshape(-1)
    others = flat if len(outputs) == words else np.ascontiguousarray(vectors[outputs]).reshape(-1)
    place = np.full(words, -1, np.int64)
    place[outputs] = np.arange(len(outputs))
    spare = 1 if bool((keep > 0).any()) else 0
    head = len(outputs) if len(outputs) + spare <= slots else slots - 1 - spare

    def fill(first: int) -> None:
        last = min(first + WORDS, words)
        ids, weight = np.zeros((last - first, slots), np.int32), np.zeros((last - first, slots), np.uint64)
        _fill(
            flat, others, vectors.shape[1], outputs, place, keep, first, last, head, step, radius, ids, weight, made
        )  # fmt: skip
        made.cells[first:last] = alias_rows(ids, weight, slots.bit_length() - 1)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(fill, range(0, words, WORDS)):
            pass
    return made


def log_normalisers(
    vectors: npt.NDArray[np.float32], outputs: Ids, step: float, radius: float
) -> npt.NDArray[np.float64]:
    """Return ln Z of every word, float64[V], without the rows: what certificates need.

    Args:
        vectors: float32[V, d].
        outputs: int32[n], ids, ascending.
        step: ε/2.
        radius: γ, at most 43/step.
    """
    words, size = vectors.shape
    out = np.empty(words)
    flat = np.ascontiguousarray(vectors).reshape(-1)
    others = flat if len(outputs) == words else np.ascontiguousarray(vectors[outputs]).reshape(-1)

    def fill(first: int) -> None:
        _sums(flat, others, size, len(outputs), first, min(first + WORDS, words), step, radius, out)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(fill, range(0, words, WORDS)):
            pass
    return out


@compiled
def _sums(
    flat: Any, others: Any, size: Int, n: Int, first: Int, last: Int, step: float, radius: float, out: Any
) -> None:
    """Fill out[first:last] with ln Z."""
    values = np.empty((last - first, n))
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        for w in range(first, last):
            squared_distances(flat, size, w, others, start, end, values[w - first, start:end])
    for w in range(first, last):
        for j in range(n):
            values[w - first, j] = decay(step * min(math.sqrt(values[w - first, j]), radius))
        out[w] = logarithm(summed(values[w - first]))


@compiled
def _fill(
    flat: Any, others: Any, size: Int, outputs: Any, place: Any, keep: Any, first: Int, last: Int, head: Int,
    step: float, radius: float, ids: Any, weight: Any, made: Rows,
) -> None:  # fmt: skip
    """Compile the words first..last: their outcomes with integer weights, and what else there is a word."""
    n, words = outputs.shape[0], place.shape[0]
    away = np.empty((last - first, n))
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        for w in range(first, last):
            squared_distances(flat, size, w, others, start, end, away[w - first, start:end])
    near, excess = np.empty(head, np.int64), np.empty(head)
    spare, counts = np.empty(n, np.int64), np.empty(BINS, np.int64)
    values = np.empty(n)
    for w in range(first, last):
        row = w - first
        if place[w] >= 0:
            away[row, place[w]] = -1.0  # before its duplicates
        nearest(away[row], near, spare, counts)
        best = 0
        for i in range(head):
            if away[row, near[i]] < away[row, near[best]]:
                best = i
        far, bound = 0.0, 0.0
        for j in range(n):
            values[j] = min(math.sqrt(max(away[row, j], 0.0)), radius)
            far = max(far, values[j])
        for i in range(head):
            bound = max(bound, values[near[i]])
        floor = decay(step * bound) if head < n else 0.0
        for i in range(head):
            excess[i] = decay(step * values[near[i]]) - floor
        everything, tail = summed(excess), 0.0
        entered, rejected = 0.0, 0.0
        if head < n:
            for j in range(n):
                values[j] = decay(step * (max(values[j], bound) - bound))
            tail = summed(values)
            everything += floor * tail
            entered, rejected = floor * tail / everything, max(0.0, 1.0 - tail / n)
        # Twice as many rounds square the probability that all of them reject.
        made.rounds[w] = 1
        while rejected > NEVER and (
            rejected > REJECTED or 2.0 * entered * rejected > excess[best] / everything * (1.0 - rejected)
        ):
            rejected *= rejected
            made.rounds[w] *= 2
        entered /= 1.0 - rejected
        excess[best] = max(0.0, excess[best] - everything * entered * rejected)
        made.level[w], made.fallback[w] = bound, outputs[near[best]]
        made.log_normaliser[w] = logarithm(everything)
        made.least[w] = (1.0 - keep[w]) * decay(step * far) / everything
        # A billionth farther away, for the last bits of the exponential to have no say.
        made.surely[w] = acceptance(step * (far - bound) + MARGIN) if far > bound else EVERY
        for i in range(head):
            ids[row, i] = outputs[near[i]]
            excess[i] /= everything
        if head < n:
            ids[row, head] = words
        if keep[w] > 0.0:
            ids[row, -1] = w
        _integers(excess, entered, head < n, keep[w], weight[row])


@inlined
def _integers(excess: Any, entered: float, tail: bool, keep: float, weight: Any) -> None:
    """Round one row to integers that sum to 2^63: the head, the tail, and last the word that may be kept."""
    head = excess.shape[0]
    scale = 9223372036854775808.0 * (1.0 - keep)
    rest = np.uint64(scale)
    if keep > 0.0:
        weight[-1] = _TOTAL - rest
    for i in range(head):
        weight[i] = np.uint64(excess[i] * scale)
    if tail:
        weight[head] = max(np.uint64(entered * scale), np.uint64(1))
    largest = 0
    outcomes = head + 1 if tail else head
    for i in range(outcomes):
        if weight[i] > weight[largest]:
            largest = i
    weight[largest] = np.uint64(0)
    others = np.uint64(0)
    for i in range(outcomes):
        others += weight[i]
    weight[largest] = rest - others


@compiled
def nearest(away: Any, near: Any, order: Any, counts: Any) -> None:
    """Pick the positions of the smallest values, ties by position, in no order.

    Values go into bins between the least and the greatest; the bins below the one that overflows are taken, and that one
    is searched again.

    Args:
        away: float64[n], finite.
        near: int64[m], filled; m <= n.
        order: int64[n], for work.
        counts: int64[b], for work; b >= 2.
    """
    n, wanted, bins = away.shape[0], near.shape[0], counts.shape[0]
    for j in range(n):
        order[j] = j
    taken = 0
    while taken < wanted:
        low, high = away[order[0]], away[order[0]]
        for i in range(n):
            low, high = min(low, away[order[i]]), max(high, away[order[i]])
        if taken + n == wanted or low == high:
            for i in range(wanted - taken):
                near[taken + i] = order[i]
            return
        counts[:] = 0
        for i in range(n):
            counts[np.int64((away[order[i]] - low) / (high - low) * (bins - 1))] += 1
        full, reached = 0, taken
        while reached + counts[full] <= wanted:
            reached += counts[full]
            full += 1
        left = 0
        for i in range(n):
            j = order[i]
            where = np.int64((away[j] - low) / (high - low) * (bins - 1))
            if where < full:
                near[taken] = j
                taken += 1
            elif where == full:
                order[left] = j
                left += 1
        n = left
