"""The result of a search for the worst-case loss.

If it rests on draws, an event's count bounds its probability.

Exact calibration: the largest internal ε with a certified worst-case loss within the requested ε.

The exponential mechanism's factor 2 is slack: the loss of the sampled law is often far below the bound. The law is known. So the
parameter can be raised until the certificate's number meets the promise, from below (concepts/mechanisms, Exact calibration). The
guarantee stays the same; more words stay near the original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from dptext_spark.arrays import F64, I32
from dptext_spark.mechanisms.parameters import choice

EVERY, SOME = (
    96,
    12,
)  # words whose laws are compared output by output: of a small lexicon all, of a larger one some
# A logarithm of a ratio of two 64-bit integers, taken in float64, errs by less than this.
LOG_SLACK = 1e-13


def evenly_spaced(count: int, sample: int | None) -> I32:
    """Return which of `count` are compared, int32[n]: all, or `sample` at equal steps from the first to the last."""
    if sample is None or sample >= count:
        return np.arange(count, dtype=np.int32)
    return np.unique(np.arange(sample) * (count - 1) // (sample - 1)).astype(np.int32)


def compared_closely(words: I32) -> I32:
    """Choose the words for which laws are compared output by output: all of `EVERY` or fewer, `SOME` of more."""
    return words[evenly_spaced(len(words), len(words) if len(words) <= EVERY else SOME)]


@dataclass(frozen=True)
class Loss:
    """The largest loss in a search: max over outputs u of |ln P(u|w) - ln P(u|w')|, under metric DP per unit of distance.

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
    """Bound the probabilities of events (Clopper and Pearson 1934): (lower, upper), float64[m] each.

    Args:
        counts: [m], how often each was seen, from 0 to `draws`.
        draws: how many independent draws there were.
        alpha: the probability that one of the two bounds is wrong, for each of them.
    """
    distinct, where = np.unique(np.asarray(counts, np.float64), return_inverse=True)
    # The ends are put in afterwards: the inverse has no value there.
    low: Any = betaincinv(np.maximum(distinct, 1.0), draws - distinct + 1.0, alpha)
    high: Any = 1.0 - betaincinv(np.maximum(draws - distinct, 1.0), distinct + 1.0, alpha)
    low[distinct == 0], high[distinct == draws] = 0.0, 1.0
    return low[where.reshape(-1)], high[where.reshape(-1)]


Calibration = Literal["published", "exact"]
S = TypeVar("S")  # a sampler
CLOSE = 1e-4  # how far below the promise the loss may stay, relative to it
STEPS = 40
NOTHING = 2e-13  # a loss that is no more than the slack of logarithms, as where all vectors are equal


def calibration_choice(only: str = "") -> Any:
    """Declare the parameter `calibration`; `only` says for which form of the mechanism `exact` is offered."""
    meaning = "`exact`: the largest internal ε whose certified loss is within ε"
    return choice(Calibration, "published", f"`published`, or {meaning}{only}.")


def calibrate(
    made: Callable[[float], S], epsilon: float, calibration: str, loss_of: Callable[[S], Loss]
) -> S:
    """Build the sampler for ε by `made`, or with `exact` for the internal ε, which its summary then names.

    Args:
        made: compiles for an internal ε.
        epsilon: ε of the promise.
        calibration: `published` or `exact`.
        loss_of: certifies a sampler.
    """
    if calibration == "published":
        return made(epsilon)
    internal = internal_epsilon(epsilon, lambda tried: loss_of(made(tried)).value)
    sampler: Any = made(internal)
    tight: S = replace(sampler, summary=replace(sampler.summary, internal_epsilon=internal))
    return tight


def lowered_epsilon(asked: float, loss_of: Callable[[float], float]) -> float:
    """Return an internal ε, `asked` at most, with loss_of(ε) <= asked: the first that a search from above finds.

    For laws in integers whose rounding can lift the loss above ε by a little; at ε = 0 the loss is 0.

    Args:
        asked: the ε of the promise.
        loss_of: the certified loss under an internal ε.
    """
    tried, step = asked, 1.0
    while tried > 0.0:
        above = loss_of(tried) - asked
        if above <= 0.0:
            return tried
        # What is too much, and more each time: rounding jumps where ε is large.
        tried, step = tried - max(above * step, tried * 1e-12), step * 1.25
    return 0.0


def internal_epsilon(
    asked: float, loss_of: Callable[[float], float], close: float = CLOSE, least: float | None = None
) -> float:
    """Return an internal ε, `least` at least, with loss_of(ε) <= asked: the largest that a search from below finds.

    The search assumes that the loss grows with ε. If it does not, the result still holds, for its own loss was computed, but a
    larger one may exist.

    Args:
        asked: the ε of the promise, > 0.
        loss_of: the certified loss under an internal ε. One call or more for each of up to `STEPS` steps.
        close: stop where the loss is at least asked·(1 - close).
        least: where to begin; None for `asked`.
    """
    low = asked if least is None else least
    reached = loss_of(low)
    if not max(NOTHING, asked * 1e-12) < reached <= asked:
        return low  # nothing to gain, or no pair that could lose
    high = float("inf")
    for _ in range(STEPS):
        if reached >= asked * (1.0 - close) or high - low <= low * 1e-12:
            break
        # The loss is nearly proportional to ε; where that overshoots, between what holds and what does not.
        guess = low * asked / reached * (1.0 - close / 4.0)
        if not low < guess < high:
            guess = (low + high) / 2.0
        loss = loss_of(guess)
        if loss <= asked:
            low, reached = guess, loss
        else:
            high = guess
    return low
