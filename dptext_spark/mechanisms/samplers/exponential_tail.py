"""The tail of a law over a whole lexicon: proposals, whether they are accepted, and what that adds to the law.

The arithmetic is here, too: e^-x without a division, the integer that draws with that probability, and sums.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, U64, Ids
from dptext_spark.mechanisms.elementary import LN2_HIGH, LN2_LOW, LOG2_E
from dptext_spark.mechanisms.matrices import squared_distance, squared_distances
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
    """What proposals are decided by: arrays of :class:`~dptext_spark.mechanisms.samplers.exponential.ExponentialSampler`.

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
    """Propose an output for each draw that waits, and move those that wait still to the front.

    Args:
        tail: of the sampler.
        ids: int32[n], the words.
        waiting: int64[p], positions in `ids`.
        numbers: uint64[p, 2]: the proposal, and whether it is accepted.
        turn: the number of the round.
        out: int32[n], filled where a draw is done.

    Returns:
        How many wait still.
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
    """Return the sum of float64[n], none of them negative, with a relative error below 40·2^-53 whatever n."""
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
    """Return the largest of 2^64 numbers that accepts a proposal with probability e^-x; for x <= 0 all of them do."""
    accepted = decay(max(x, 0.0)) * 18446744073709551616.0
    return np.uint64(accepted) - np.uint64(1) if accepted < 18446744073709551616.0 else EVERY
