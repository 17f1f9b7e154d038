"""Exact calibration: the largest internal ε whose worst-case loss, as certified, is still within the ε that is asked for.

The exponential mechanism's factor 2 is slack: the loss of the law that is sampled is often far below the bound. The law is
known, so the parameter can be raised until the certificate's own number meets the promise, from below (concepts/mechanisms,
Exact calibration). The guarantee stays the same; more words stay near to what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dptext_spark.mechanisms.parameters import choice

if TYPE_CHECKING:
    from dptext_spark.mechanisms.privacy_loss.loss import Loss

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
    """Return the sampler that `made` gives for ε, or with `exact` for the internal ε, which its summary then names.

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

    The loss is taken to grow with ε; where it does not, the result still holds, for its own loss was computed, but a larger
    one may exist.

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
        found = loss_of(guess)
        if found <= asked:
            low, reached = guess, found
        else:
            high = guess
    return low
