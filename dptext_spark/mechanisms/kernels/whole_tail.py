"""The tail of a law over a whole lexicon: proposals, whether they are accepted, and what that adds to the law."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.compiled import Int, compiled, inlined, mul_high, prefetch
from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.distances import squared_distance
from dptext_spark.mechanisms.kernels.decay import acceptance, summed

AHEAD = 6  # how many proposals ahead their vectors are asked for
LINE = 16  # float32 in a cache line


class Tail(NamedTuple):
    """What proposals are decided by: arrays of :class:`~dptext_spark.mechanisms.kernels.whole.WholeSampler`.

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

    flat: npt.NDArray[np.float32]
    size: int
    outputs: Ids
    level: npt.NDArray[np.float64]
    surely: npt.NDArray[np.uint64]
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


@compiled
def add_tail(tail: Tail, word: Int, weight: float, every: Any) -> None:
    """Add what the tail of `word`, entered with `weight` out of 2^63, gives to each id: every uint64[V]."""
    n = tail.outputs.shape[0]
    accepted = np.empty(n)
    for j in range(n):
        accepted[j] = np.float64(_accepts(tail, word, tail.outputs[j])) + 1.0
    total = summed(accepted)
    rejected, done = max(0.0, 1.0 - total / n / 18446744073709551616.0), 1
    while done < tail.rounds[word]:
        rejected *= rejected
        done *= 2
    every[tail.fallback[word]] += np.uint64(weight * rejected + 0.5)
    scale = weight * (1.0 - rejected)
    for j in range(n):
        every[tail.outputs[j]] += max(np.uint64(scale * (accepted[j] / total) + 0.5), np.uint64(1))
