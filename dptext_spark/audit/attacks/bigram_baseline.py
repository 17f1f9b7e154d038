"""What a bigram model guesses for a word without its replacement, from the neighbours that were kept: a baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.runtime.jit import Int, compiled

HIDDEN = -1  # a neighbour that was replaced: it tells nothing here
Ids = npt.NDArray[np.int32]


@compiled
def _share(starts: Any, following: Any, share: Any, a: Int, b: Int) -> float:
    """Return c(a,b)/c(a)."""
    low, high = starts[a], starts[a + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if following[middle] < b:
            low = middle + 1
        else:
            high = middle
    return float(share[low]) if low < end and following[low] == b else 0.0


@compiled
def _guess(left: Any, right: Any, model: Any, back: Any, guessable: Any, likely: Any, out: Any) -> None:
    unigram, weight, starts, following, share = model
    back_starts, preceding = back
    for n in range(left.shape[0]):
        a, b = np.int64(left[n]), np.int64(right[n])
        best, top = np.int64(-1), -1.0
        # A word seen neither after a nor before b: the best of those depends on b only by whether it is known.
        ends = (
            starts[a] if a >= 0 else np.int64(0), starts[a + 1] if a >= 0 else np.int64(0),
            back_starts[b] if b >= 0 else np.int64(0), back_starts[b + 1] if b >= 0 else np.int64(0),
        )  # fmt: skip
        many = ends[1] - ends[0] + ends[3] - ends[2]
        for e in range(-1, many):
            if e < 0:
                w = np.int64(likely[1] if b >= 0 else likely[0])
            elif e < ends[1] - ends[0]:
                w = np.int64(following[ends[0] + e])
            else:
                w = np.int64(preceding[ends[2] + e - (ends[1] - ends[0])])
            if not guessable[w]:
                continue
            value = unigram[w]
            if a >= 0:
                value = (1.0 - weight[a]) * value + weight[a] * _share(starts, following, share, a, w)
            if b >= 0:
                value *= (1.0 - weight[w]) * unigram[b] + weight[w] * _share(starts, following, share, w, b)
            if value > top or (value == top and w < best):
                best, top = w, value
        out[n] = best


def guess_unaided(bigrams: Bigrams, left: Ids, right: Ids, drawn: npt.NDArray[np.bool_]) -> Ids:
    """Return argmax_w P(w|left)·P(right|w) over the words that the policy draws, exactly; ties to the lower id.

    Args:
        bigrams: the model.
        left: int32[n], the state before each word; `HIDDEN` leaves P(w) in its place.
        right: int32[n], the state after it; `HIDDEN` leaves the factor out.
        drawn: bool[V].

    Returns:
        int32[n].
    """
    words, size = bigrams.words, len(bigrams.unigram)
    order = np.argsort(bigrams.following, kind="stable")
    first = np.repeat(np.arange(size, dtype=np.int32), np.diff(bigrams.starts))
    counts = np.bincount(bigrams.following, minlength=size)
    back = (np.append(0, np.cumsum(counts)).astype(np.int64), first[order])
    guessable = np.append(drawn, np.zeros(size - words, np.bool_))
    alone = np.where(guessable, bigrams.unigram, -1.0)
    likely = np.array([alone.argmax(), (alone * (1.0 - bigrams.weight)).argmax()], np.int64)
    # Neighbours repeat: "the _ of" is looked at once.
    keys, where = np.unique(
        (np.asarray(left, np.int64) + 1) * (size + 1) + np.asarray(right, np.int64) + 1, return_inverse=True
    )
    out = np.empty(len(keys), np.int32)
    model = (bigrams.unigram, bigrams.weight, bigrams.starts, bigrams.following, bigrams.share)
    _guess(keys // (size + 1) - 1, keys % (size + 1) - 1, model, back, guessable, likely, out)
    return out[where.reshape(-1)]
