"""What a search for the worst-case loss has found.

Where it rests on draws, bounds on a probability come from how often an event was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from dptext_spark.arrays import F64, I32

# A logarithm of a ratio of two 64-bit integers, taken in float64, errs by less than this.
LOG_SLACK = 1e-13


def evenly_spaced(count: int, sample: int | None) -> I32:
    """Return which of `count` are looked at: all, or as many as `sample` from the first to the last at equal steps: int32[n]."""
    if sample is None or sample >= count:
        return np.arange(count, dtype=np.int32)
    return np.unique(np.arange(sample) * (count - 1) // (sample - 1)).astype(np.int32)


@dataclass(frozen=True)
class Loss:
    """The largest loss that was found: max over outputs u of |ln P(u|w) - ln P(u|w')|, under metric DP for each unit of distance.

    Attributes:
        value: with its slack added: no pair that is covered exceeds it, but for `additive`.
        attained: the loss of the worst pair that was looked at, with its slack taken off: that pair has at least this.
        pairs: pairs of words examined, or covered by the stated bound.
        closed: whether an analytic bound, within the claimed ε, covers the pairs that `pairs` leaves out.
        others: for pairs with a word that cannot come out, the largest loss for each unit of distance on outputs that can,
            but for ln(1/p), p the probability that such a word is drawn: an upper bound; None where every word can come out.
        total: pairs that the guarantee speaks of.
        worst: (w, w'), ids of the worst pair; None where there is no pair.
        method: how it was found, in words.
        additive: what the rounding of the law to integers can add to a pair's loss whatever its distance.
        confidence: of `attained` and `delta`, where they rest on draws; None where they are exact.
        delta: a lower bound on δ at the claimed ε, where the claim has one: `worst` needs at least this much.
        delta_most: an upper bound on δ over all words, where there is one.
        delta_opposite: the δ of two opposite vectors of the clipped length whose difference is spread evenly over the
            coordinates, where that is known; a lexicon need not hold such words.
        outside: what holds of words that the guarantee does not compare, a sentence; empty where that is not looked at.
        among: which pairs were looked at, where a finding is of these alone: `nearest pairs`.
        release: of what: the `word` that comes out, or the noisy `vector` that it is nearest to, which shows more.
    """

    value: float
    attained: float
    pairs: int
    total: int
    worst: tuple[int, int] | None
    method: str
    closed: bool = False
    others: float | None = None
    additive: float = 0.0
    confidence: float | None = None
    delta: float | None = None
    delta_most: float | None = None
    delta_opposite: float | None = None
    outside: str = ""
    among: str = ""
    release: Literal["word", "vector"] = "word"


def clopper_pearson(counts: npt.ArrayLike, draws: int, alpha: float) -> tuple[F64, F64]:
    """Bound the probabilities of events (Clopper and Pearson 1934).

    Args:
        counts: [m], how often each was seen, from 0 to `draws`.
        draws: how many independent draws there were.
        alpha: the probability that one of the two bounds is wrong, for each of them.

    Returns:
        (lower, upper), float64[m] each.
    """
    seen, where = np.unique(np.asarray(counts, np.float64), return_inverse=True)
    # The ends are put in afterwards: the inverse has no value there.
    low: Any = betaincinv(np.maximum(seen, 1.0), draws - seen + 1.0, alpha)
    high: Any = 1.0 - betaincinv(np.maximum(draws - seen, 1.0), seen + 1.0, alpha)
    low[seen == 0], high[seen == draws] = 0.0, 1.0
    return low[where.reshape(-1)], high[where.reshape(-1)]
