"""ε of a record: the least of the bounds that are valid for its law, with the bound's name and the δ that goes with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

import numpy as np

from dptext_spark.mechanisms.privacy_loss.composition import (
    ORDERS,
    adaptive,
    bounded_range,
    of_divergences,
    pure,
)
from dptext_spark.mechanisms.privacy_loss.log_ratios import RecordLoss
from dptext_spark.rounding import exact
from dptext_spark.runtime.validation import Record

By = Literal[
    "sum",
    "certified losses",
    "bounded range",
    "adaptive bounded range",
    "Rényi divergences",
    "any ε-DP law",
    "budget",
]
DELTA = 1e-6  # of a record, where nothing else is asked for
_UP = Context(prec=4, rounding=ROUND_CEILING)
SAID: dict[By, str] = {
    "sum": "the plain sum",
    "certified losses": "the sum of the losses that the law has",
    "bounded range": "the range of the law's log ratio (Dong, Durfee and Rogers 2020)",
    "adaptive bounded range": "the range of the law's log ratio, draw by draw (Cesar and Rogers 2021)",
    "Rényi divergences": "the law's own Rényi divergences",
    "any ε-DP law": "what holds for any ε-DP law (Kairouz, Oh and Viswanath 2015)",
    "budget": "the budget, for the law is chosen by the number of drawn words",
}


@dataclass(frozen=True)
class RecordBound(Record):
    """ε of a record of so many drawn words.

    Attributes:
        draws: the number of drawn words; at record level of distinct ones; None where words of several ε are counted by their
            sum.
        epsilon: rounded up.
        delta: up to which it holds; 0 of a sum.
        by: the bound that is the least.
        total: the plain sum, n·ε.
    """

    draws: int | None
    epsilon: float
    delta: float
    by: By
    total: float

    def __str__(self) -> str:
        """Return the figure as a part of a sentence."""
        up_to = f" up to a probability δ = {exact(self.delta)}" if self.delta else ""
        return f"ε = {exact(self.epsilon)}{up_to} (by {SAID[self.by]})"

    @property
    def short(self) -> str:
        """The figure without where it comes from."""
        return f"ε = {exact(self.epsilon)}" + (f", δ = {exact(self.delta)}" if self.delta else "")


def record_bound(loss: RecordLoss, draws: int, promised: float, delta: float = DELTA) -> RecordBound | None:
    """Return the least valid bound for a record, None where there is none.

    Args:
        loss: what is known of the law.
        draws: n, drawn words of the record.
        promised: ε of one draw, as the guarantee says; the sum is of this.
        delta: δ of the record, besides n times that of a draw; at 0 sums alone hold.
    """
    if loss.why or loss.by_distance:
        return None
    total = float(Decimal(repr(float(promised))) * draws)
    own = rounded_up(loss.delta * draws) if loss.delta else 0.0
    if own >= 1.0:
        return None
    least = RecordBound(draws, total, own, "sum", total)
    if loss.epsilon < promised and rounded_up(draws * loss.epsilon) < total:
        least = RecordBound(draws, rounded_up(draws * loss.epsilon), own, "certified losses", total)
    if delta <= 0.0 or own + delta >= 1.0:
        return least
    for by, epsilon in bounds(loss, draws, promised, delta):
        if math.isfinite(epsilon) and rounded_up(epsilon) < least.epsilon:
            least = RecordBound(
                draws, rounded_up(epsilon), rounded_up(own + delta) if own else delta, by, total
            )
    return least


def bounds(loss: RecordLoss, draws: int, promised: float, delta: float) -> Iterator[tuple[By, float]]:
    """Give each bound but the sum that is valid for a law, with its ε at δ.

    Args:
        loss: what is known of the law.
        draws: n.
        promised: ε of one draw.
        delta: δ > 0.
    """
    # With a δ of its own a draw is an ε-DP one but for that probability (Kairouz, Oh and Viswanath 2015, Theorem 3.3).
    yield "any ε-DP law", pure(draws, min(loss.epsilon, promised), delta)
    if loss.spread is None or loss.delta:
        return
    yield "adaptive bounded range", adaptive(draws, loss.spread, delta)
    if loss.adapts:
        return
    yield "bounded range", bounded_range(draws, loss.spread, delta)
    if loss.divergences:
        yield "Rényi divergences", of_divergences(draws, np.array(loss.divergences), ORDERS, delta)


def quarter_power(draws: int) -> int:
    """Return the least quarter power of two that is at least `draws`, as an integer: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, ..."""
    if draws <= 1:
        return max(0, draws)
    step = max(0, math.floor(4.0 * math.log2(draws)) - 1)
    powers: Iterator[int] = (math.ceil(math.pow(2.0, power / 4.0)) for power in range(step, step + 8))
    return next(power for power in powers if power >= draws)


def rounded_up(number: float) -> float:
    """Return the next number of four digits: equal on every processor, but for a hair at its edge."""
    return float(_UP.create_decimal(Decimal(repr(float(number)))))
