"""Compile laws over a whole lexicon: for each word the nearest outputs, the sums, and one alias row in integers.

Let f(u) = exp(-ε·min(d(w,u), γ)/2), Z its sum, and F the value at the farthest output of the head. The row holds (f(u) - F)/Z for
the head. One more outcome, the tail, has min(f(u), F)/Z of every output together.

Distances of words to every output, and the sums Z, are made a block of words at a time.

The tail is drawn by proposals that are accepted or rejected. Their part of the law is computed here, too. So is the arithmetic:
e^-x without a division, the integer that draws with that probability, and sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, I64, U64, Ids
from dptext_spark.mechanisms.base import TOTAL
from dptext_spark.mechanisms.elementary import LN2_HIGH, LN2_LOW, LOG2_E, logarithm
from dptext_spark.mechanisms.matrices import in_threads, squared_distance, squared_distances
from dptext_spark.mechanisms.samplers.table import alias_rows
from dptext_spark.runtime.jit import Int, compiled, inlined, mul_high, prefetch

AHEAD = 6  # how many proposals ahead their vectors are asked for
LINE = 16  # float32 in a cache line
TILE = 64  # outputs whose vectors stay in the cache while some words are compared with them
EVERY = np.uint64(2**64 - 1)
# e^-r for |r| <= ln(2)/2, highest power first: the next term of the series is below 2^-57.
(_C13, _C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3) = (
    1.0 / math.factorial(i) for i in range(13, 2, -1)
)
_HALVES = np.ldexp(1.0, -np.arange(64))


class Tail(NamedTuple):
    """The inputs that decide proposals: arrays of :class:`~dptext_spark.mechanisms.samplers.exponential.ExponentialSampler`.

    Attributes:
        flat: float32[V * d], the vectors.
        size: d.
        outputs: int32[n].
        level: float64[V].
        surely: uint64[V].
        rounds: int32[V].
        fallback: int32[V].
        step: ε/2.
        radius: γ.
    """

    flat: F32
    size: int
    outputs: Ids
    level: F64
    surely: U64
    rounds: Ids
    fallback: Ids
    step: float
    radius: float


@inlined
def _accepts(tail: Any, word: Int, output: Int) -> Any:
    """Return the largest number that accepts `output` as a proposal for `word`: uint64."""
    distance = min(math.sqrt(squared_distance(tail.flat, tail.size, word, output)), tail.radius)
    return acceptance(tail.step * (distance - tail.level[word]))


@compiled
def propose(tail: Tail, ids: Any, waiting: Any, numbers: Any, turn: Int, out: Any) -> Any:
    """Propose an output for each draw that waits, move those that wait still to the front, and return how many.

    Args:
        tail: of the sampler.
        ids: int32[n], the words.
        waiting: int64[p], positions in `ids`.
        numbers: uint64[p, 2]: the proposal, and whether it is accepted.
        turn: the number of the round.
        out: int32[n], filled where a draw is done.
    """
    n, left = np.uint64(tail.outputs.shape[0]), 0
    for i in range(waiting.shape[0]):
        ahead = min(i + AHEAD, waiting.shape[0] - 1)
        word = ids[waiting[ahead]]
        if numbers[ahead, 1] > tail.surely[word]:
            output = tail.outputs[np.int64(mul_high(numbers[ahead, 0], n))]
            for k in range(0, tail.size, LINE):
                prefetch(tail.flat, np.int64(output) * tail.size + k)
                prefetch(tail.flat, np.int64(word) * tail.size + k)
        draw = waiting[i]
        word = ids[draw]
        output = tail.outputs[np.int64(mul_high(numbers[i, 0], n))]
        number = numbers[i, 1]
        if number <= tail.surely[word] or number <= _accepts(tail, word, output):
            out[draw] = output
        elif turn + 1 >= tail.rounds[word]:
            out[draw] = tail.fallback[word]
        else:
            waiting[left] = draw
            left += 1
    return left


@inlined
def _spread(tail: Tail, word: Int, weight: float, accepted: Any, every: Any) -> None:
    """Add the tail of `word` to every uint64[V]; accepted float64[n]: how many of 2^64 numbers accept each output."""
    n = tail.outputs.shape[0]
    total = summed(accepted)
    rejected, done = max(0.0, 1.0 - total / n / 18446744073709551616.0), 1
    while done < tail.rounds[word]:
        rejected *= rejected
        done *= 2
    every[tail.fallback[word]] += np.uint64(weight * rejected + 0.5)
    scale = weight * (1.0 - rejected)
    for j in range(n):
        every[tail.outputs[j]] += max(np.uint64(scale * (accepted[j] / total) + 0.5), np.uint64(1))


@compiled
def add_tails(tail: Tail, others: Any, words: Any, weights: Any, every: Any) -> None:
    """Add what the tails of some words give to each id.

    Args:
        tail: of the sampler.
        others: float32[n * d], the vectors of the outputs.
        words: int32[w].
        weights: float64[w], with which each tail is entered, out of 2^63; rows of 0 are left alone.
        every: uint64[w, V].
    """
    n = tail.outputs.shape[0]
    away = np.empty((words.shape[0], n))
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        for i in range(words.shape[0]):
            squared_distances(tail.flat, tail.size, words[i], others, start, end, away[i, start:end])
    for i in range(words.shape[0]):
        if weights[i] <= 0.0:
            continue
        level = tail.level[words[i]]
        for j in range(n):
            distance = min(math.sqrt(away[i, j]), tail.radius)
            away[i, j] = np.float64(acceptance(tail.step * (distance - level))) + 1.0
        _spread(tail, words[i], weights[i], away[i], every[i])


@inlined
def decay(x: float) -> Any:
    """Return e^-x for 0 <= x <= 43, within 2 units in the last place: as :func:`exponential`, without its divisions."""
    k = np.floor(x * LOG2_E + 0.5)
    r = (k * LN2_HIGH - x) + k * LN2_LOW
    total = _C13
    for c in (_C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3, 0.5, 1.0, 1.0):
        total = total * r + c
    return total * _HALVES[np.int64(k)]


@inlined
def summed(values: Any) -> Any:
    """Compute the sum of float64[n], none of them negative, with a relative error below 40·2^-53 whatever n."""
    total, lost = 0.0, 0.0
    for start in range(0, values.shape[0], 32):
        part = 0.0
        for j in range(start, min(start + 32, values.shape[0])):
            part += values[j]
        part -= lost  # Kahan's summation, over sums of 32
        after = total + part
        lost = (after - total) - part
        total = after
    return total


@inlined
def acceptance(x: float) -> Any:
    """Compute the largest of 2^64 numbers that accepts a proposal with probability e^-x; for x <= 0 all numbers do."""
    accepted = decay(max(x, 0.0)) * 18446744073709551616.0
    return np.uint64(accepted) - np.uint64(1) if accepted < 18446744073709551616.0 else EVERY


TURN = 4  # words that the laws take in turn
BINS = 2048  # of the search for the nearest outputs
# Rounds go on until at most this share of the draws from the tail is rejected in all of them.
REJECTED = 1.0 / 32.0
NEVER = 2.0**-64  # a probability that no longer matters
MARGIN = 1e-9
_TOTAL = np.uint64(TOTAL)
WORDS = 32  # words whose distances are held at once: beside a tile of outputs they stay in a core's cache


class ExponentialRows(NamedTuple):
    """Compiled arrays for V words; of words that were not chosen the last two only.

    Attributes:
        cells: uint64[c, 2^m, 2], alias rows over ids of the words that were chosen; id V stands for the tail.
        level: float64[V], the distance of the farthest output of the head, γ at most.
        surely: uint64[V]; a proposal whose number is at most this is accepted whatever its distance.
        rounds: int32[V], how many proposals the tail may reject.
        fallback: int32[V], the output after so many: the word itself, or the nearest output.
        log_normaliser: float64[V], ln Z.
        least: float64[V], the smallest probability of an output, of the ideal law.
    """

    cells: U64
    level: F64
    surely: U64
    rounds: Ids
    fallback: Ids
    log_normaliser: F64
    least: F64


def head_of(outputs: int, spare: int, slots: int) -> int:
    """Compute the number of outputs in a row of `slots`: all, or the most that leave room for the tail and `spare` others."""
    return outputs if outputs + spare <= slots else slots - 1 - spare


def compile_rows(
    vectors: F32,
    outputs: Ids,
    laws: Sequence[tuple[float, float]],
    keep: F64,
    slots: int,
    chosen: Ids | None = None,
) -> list[ExponentialRows]:
    """Compile laws that differ in ε and γ alone, with a thread for each processor; each row is the work of one thread.

    Distances and the order of the nearest are found once for all laws.

    Args:
        vectors: float32[V, d].
        outputs: int32[n], ids, ascending.
        laws: (ε/2, γ) of each, γ at most 43/(ε/2).
        keep: float64[V], the probability that a word which is no output is released as it is; 0 for outputs.
        slots: 2^m, size of an alias row; it holds all outputs if they fit (and the word kept), else the tail too.
        chosen: int32[c], ids, ascending, of the words that get a row; of the others only the sums are made. None: all.
    """
    words = len(vectors)
    everything = np.arange(words, dtype=np.int32)
    rows = everything if chosen is None else chosen
    logs, least = np.empty((len(laws), words)), np.empty((len(laws), words))
    compiled_rows = [
        ExponentialRows(
            np.empty((len(rows), slots, 2), np.uint64), np.zeros(words), np.zeros(words, np.uint64),
            np.zeros(words, np.int32), np.zeros(words, np.int32), logs[k], least[k],
        )
        for k in range(len(laws))
    ]  # fmt: skip
    flat = np.ascontiguousarray(vectors).reshape(-1)
    others = flat if len(outputs) == words else np.ascontiguousarray(vectors[outputs]).reshape(-1)
    place = np.full(words, -1, np.int64)
    place[outputs] = np.arange(len(outputs))
    head = head_of(len(outputs), int((keep > 0).any()), slots)

    def fill(at: I64) -> None:
        first, some = int(at[0]), rows[at]
        away, near = np.empty((len(some), len(outputs))), np.empty((len(some), head), np.int64)
        measure(flat, others, vectors.shape[1], some, away)
        own = np.flatnonzero(place[some] >= 0)
        away[own, place[some[own]]] = -1.0  # before its duplicates
        best = np.empty(len(some), np.int64)
        _order(away, near, best)
        ids, weight = np.zeros((len(some), slots), np.int32), np.zeros((len(some), slots), np.uint64)
        # The distances of a few words stay in the cache while one law after the other reads them.
        for start in range(0, len(some), TURN):
            turn = slice(start, start + TURN)
            begin = first + start
            for (step, radius), law_rows in zip(laws, compiled_rows, strict=True):
                ids[turn], weight[turn] = 0, 0
                _fill(
                    away[turn], near[turn], best[turn], outputs, keep, some[turn], step, radius, ids[turn], weight[turn], law_rows
                )  # fmt: skip
                law_rows.cells[begin : begin + TURN] = alias_rows(
                    ids[turn], weight[turn], slots.bit_length() - 1
                )

    left = np.delete(everything, rows)
    steps, radii = (np.array(numbers, np.float64) for numbers in zip(*laws, strict=True))

    def add(some: Ids) -> None:
        away = np.empty((len(some), len(outputs)))
        measure(flat, others, vectors.shape[1], some, away)
        sums(away, some, steps, radii, logs, least)
        least[:, some] *= 1.0 - keep[some]

    in_threads(fill, np.arange(len(rows)), WORDS)
    in_threads(add, left, WORDS)
    return compiled_rows


@compiled
def _order(away: Any, near: Any, best: Any) -> None:
    """Find the nearest outputs of some words, and take the roots of their squared distances float64[w, n] (-1: the word itself).

    Fills `near` int64[w, head], in no order, and `best` int64[w], the place of the nearest of all in it.
    """
    n, head = away.shape[1], near.shape[1]
    spare, counts = np.empty(n, np.int64), np.empty(BINS, np.int64)
    for row in range(away.shape[0]):
        nearest(away[row], near[row], spare, counts)
        best[row] = 0
        for i in range(head):
            if away[row, near[row, i]] < away[row, near[row, best[row]]]:
                best[row] = i
        for j in range(n):
            away[row, j] = math.sqrt(max(away[row, j], 0.0))


@compiled
def _fill(
    away: Any, near: Any, nearest_of: Any, outputs: Any, keep: Any, some: Any, step: float, radius: float, ids: Any,
    weight: Any, made: ExponentialRows,
) -> None:  # fmt: skip
    """Compile some words: their outcomes with integer weights, and the other figures of each word."""
    n, head, words = away.shape[1], near.shape[1], made.level.shape[0]
    excess, values = np.empty(head), np.empty(n)
    for row in range(some.shape[0]):
        w = some[row]
        best = nearest_of[row]
        far, bound = 0.0, 0.0
        for j in range(n):
            values[j] = min(away[row, j], radius)
            far = max(far, values[j])
        for i in range(head):
            bound = max(bound, values[near[row, i]])
        floor = decay(step * bound) if head < n else 0.0
        for i in range(head):
            excess[i] = decay(step * values[near[row, i]]) - floor
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
        made.level[w], made.fallback[w] = bound, outputs[near[row, best]]
        made.log_normaliser[w] = logarithm(everything)
        made.least[w] = (1.0 - keep[w]) * decay(step * far) / everything
        # A billionth farther away, for the last bits of the exponential to have no say.
        made.surely[w] = acceptance(step * (far - bound) + MARGIN) if far > bound else EVERY
        for i in range(head):
            ids[row, i] = outputs[near[row, i]]
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

    Values go into bins between the least and the greatest. The bins below the one that overflows are taken, and that one is
    searched again.

    Args:
        away: float64[n], finite.
        near: int64[m], filled; m <= n.
        order: int64[n], for work.
        counts: int64[b], for work; b >= 2.
    """
    n, needed, bins = away.shape[0], near.shape[0], counts.shape[0]
    for j in range(n):
        order[j] = j
    taken = 0
    while taken < needed:
        low, high = away[order[0]], away[order[0]]
        for i in range(n):
            low, high = min(low, away[order[i]]), max(high, away[order[i]])
        if taken + n == needed or low == high:
            for i in range(needed - taken):
                near[taken + i] = order[i]
            return
        counts[:] = 0
        for i in range(n):
            counts[np.int64((away[order[i]] - low) / (high - low) * (bins - 1))] += 1
        full, reached = 0, taken
        while reached + counts[full] <= needed:
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


@compiled
def measure(flat: Any, others: Any, size: Int, some: Any, away: Any) -> None:
    """Fill away float64[w, n] with the squared distances of some words int32[w] to the outputs."""
    n = away.shape[1]
    for start in range(0, n, TILE):
        end = min(start + TILE, n)
        for i in range(some.shape[0]):
            squared_distances(flat, size, some[i], others, start, end, away[i, start:end])


@compiled
def sums(away: Any, some: Any, steps: Any, radii: Any, logs: Any, least: Any) -> None:
    """Fill in ln Z of some words under some laws, and the smallest probability of an output.

    A word's distances stay in the cache while one law after the other reads them.

    Args:
        away: float64[w, n], squared distances; distances afterwards.
        some: int32[w], ids.
        steps: float64[k], ε/2.
        radii: float64[k], γ, at most 43/step.
        logs: float64[k, V].
        least: float64[k, V].
    """
    n = away.shape[1]
    values = np.empty(n)
    for i in range(some.shape[0]):
        longest = 0.0
        for j in range(n):
            away[i, j] = math.sqrt(away[i, j])
            longest = max(longest, away[i, j])
        for k in range(steps.shape[0]):
            step, radius = steps[k], radii[k]
            for j in range(n):
                values[j] = decay(step * min(away[i, j], radius))
            everything = summed(values)
            logs[k, some[i]] = logarithm(everything)
            least[k, some[i]] = decay(step * min(longest, radius)) / everything


def log_normalisers(vectors: F32, outputs: Ids, step: float, radius: float) -> F64:
    """Return ln Z of every word, float64[V], without the rows: what certificates need.

    Args:
        vectors: float32[V, d].
        outputs: int32[n], ids, ascending.
        step: ε/2.
        radius: γ, at most 43/step.
    """
    nobody, none_kept = np.empty(0, np.int32), np.zeros(len(vectors))
    return compile_rows(vectors, outputs, [(step, radius)], none_kept, 1, nobody)[0].log_normaliser
