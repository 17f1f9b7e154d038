"""ε of a record: the least of the bounds that are valid for its law, with the bound's name and its δ.

The joint cost of n draws of one law, up to a probability δ: closed forms, each from a figure of one draw.

A draw's log ratio is ρ(u) = ln P(u|w) - ln P(u|w'). It has a range R = max ρ - min ρ, a largest size, and a Rényi divergence D_α
of each order. All bounds hold where the words differ from draw to draw (concepts/mechanisms, Composition over a record):

- :func:`bounded_range`: laws fixed without looking at outputs, from R (Dong, Durfee and Rogers 2020, "Optimal Differential
  Privacy Composition for Exponential Mechanisms", ICML).
- :func:`bounded_range_divergence`: D_α of any law of range R, at most α·R²/8 (Cesar and Rogers 2021, "Bounding, Concentrating,
  and Truncating", ALT). Divergences add up, also where each law is chosen by looking at the outputs before it.
- :func:`of_divergences`: ε of a sum of divergences (Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential
  Privacy", Proposition 12).
- :func:`pure`: any ε-DP law, also chosen by looking (Kairouz, Oh and Viswanath 2015, "The Composition Theorem for Differential
  Privacy", ICML).

Every figure is rounded up: by bisection from above, and by a share of δ for the rounding of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Literal

import numpy as np
from scipy.special import gammaln

from dptext_spark.arrays import F64
from dptext_spark.rounding import exact
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.validation import Record

# Orders α - 1 of the fixed grid at which divergences are read off a law: quarter powers of two.
STEP, OCTAVES, LEAST = 4, 12, 2.0**-4
ORDERS: F64 = LEAST * 2.0 ** (np.arange(STEP * OCTAVES) / STEP)
# Where D_α is known for every α, a finer grid costs nothing.
FINE: F64 = 2.0 ** np.linspace(-7.0, 17.0, 2_401)
LONGEST = 1_000  # draws up to which the closed form of bounded range, n² terms, is summed
SLACK = 1e-9  # relative, of δ and of a divergence: what sums in float64 can be off by
CLOSE = 1e-9  # relative: where bisection stops, from above
STEPS = 200


@compiled
def _bounded_range_delta(g: float, draws: Int, spread: float, choose: Any) -> float:
    """Compute δ at ε = g for `draws` draws of range `spread`: the largest sum over l; choose: float64[n + 1], ln C(n, i)."""
    best = 0.0
    for turn in range(draws + 1):
        t = min(max((g + (turn + 1) * spread) / (draws + 1), 0.0), spread)
        # ln p and ln(1 - p), p = (e^R - e^t)/(e^R - 1).
        above = np.log(-np.expm1(t - spread)) - np.log(-np.expm1(-spread)) if t < spread else -np.inf
        below = t - spread + np.log(-np.expm1(-t)) - np.log(-np.expm1(-spread)) if t > 0.0 else -np.inf
        total = 0.0
        for i in range(draws + 1):
            loss = draws * t - i * spread
            if loss <= g:
                break
            log = choose[i]
            if i < draws:
                log += (draws - i) * above
            if i > 0:
                log += i * below
            if log > -745.0:
                total += np.exp(log) * -np.expm1(g - loss)
        best = max(best, total)
    return best


def bounded_range_delta(epsilon: float, draws: int, spread: float) -> float:
    """Return the least δ for which draws of range R are together (ε, δ)-private, whatever the laws: the closed form.

    Args:
        epsilon: ε of all draws together.
        draws: n.
        spread: R > 0, the largest range of a draw.
    """
    return float(_bounded_range_delta(float(epsilon), draws, float(spread), _log_choose(draws)))


def bounded_range(draws: int, spread: float, delta: float) -> float:
    """Return ε of n draws of laws of range R that do not look at outputs; infinite past `LONGEST` draws.

    Args:
        draws: n.
        spread: R >= 0.
        delta: δ > 0.
    """
    if not draws or not spread:
        return 0.0
    if draws > LONGEST or spread > 700.0:
        return math.inf
    return least_epsilon(lambda g: bounded_range_delta(g, draws, spread), draws * spread, delta)


def bounded_range_divergence(spread: float, orders: F64 = FINE) -> F64:
    """Compute the largest D_α of a law of range R, float64[n] for orders α - 1 float64[n].

    max over t in [0, R] of ln(p·e^((α-1)t) + (1-p)·e^((α-1)(t-R)))/(α-1). With x = e^t the sum is a polynomial of one maximum, at
    x = (α-1)(e^R - e^(-(α-1)R)) / (α(1 - e^(-(α-1)R))). So no search is needed.
    """
    order = np.asarray(orders, np.float64)
    if spread <= 0.0:
        return np.zeros(len(order))
    cap = (order + 1.0) * spread**2 / 8.0
    if spread > 300.0:
        return np.full(len(order), float(spread))
    whole, part = -np.expm1(-(order + 1.0) * spread), -np.expm1(-order * spread)
    # x/e^R, in which nothing overflows.
    scaled = np.clip(order * whole / ((order + 1.0) * part), math.exp(-spread), 1.0)
    t = spread + np.log(scaled)
    least = -math.expm1(-spread)
    p = (1.0 - scaled) / least
    rest = (scaled - math.exp(-spread)) / least
    with np.errstate(divide="ignore"):
        logs = np.logaddexp(np.log(p) + order * t, np.log(rest) + order * (t - spread))
    divergence = np.minimum(np.minimum(logs / order * (1.0 + SLACK) + 1e-15, cap), spread)
    return np.asarray(np.maximum(divergence, 0.0), np.float64)


def of_divergences(draws: int, divergences: F64, orders: F64, delta: float) -> float:
    """Compute ε of n draws with D_α of at most `divergences`: min over α of n·D_α + ln(1 - 1/α) - ln(δα)/(α - 1).

    Args:
        draws: n.
        divergences: float64[m]; infinite where there is none.
        orders: float64[m], α - 1 > 0.
        delta: δ > 0.
    """
    if not draws or not np.any(divergences):
        return 0.0
    alpha = orders + 1.0
    epsilons = draws * divergences + np.log(orders / alpha) - (math.log(delta) + np.log(alpha)) / orders
    least = float(np.min(epsilons))
    return max(0.0, least + SLACK * abs(least))


def adaptive(draws: int, spread: float, delta: float) -> float:
    """Return ε of n draws of laws of range R that may be chosen by looking at outputs.

    Args:
        draws: n.
        spread: R >= 0.
        delta: δ > 0.
    """
    return of_divergences(draws, bounded_range_divergence(spread), FINE, delta)


def pure_delta(epsilon: float, draws: int, each: float) -> float:
    """Return the least δ for which any ε-DP draws are together (`epsilon`, δ)-private.

    Args:
        epsilon: ε of all draws together.
        draws: n.
        each: ε of one draw.
    """
    wrong = np.arange(draws + 1)
    high, low = -math.log1p(math.exp(-each)), -each - math.log1p(math.exp(-each))
    loss = (draws - 2 * wrong) * each
    counts = loss > epsilon
    logs = _log_choose(draws)[counts] + (draws - wrong[counts]) * high + wrong[counts] * low
    return float(np.sum(np.exp(logs) * -np.expm1(epsilon - loss[counts])))


def pure(draws: int, each: float, delta: float) -> float:
    """Return ε of n draws of any ε-DP laws, also where they are chosen by looking at outputs.

    Args:
        draws: n.
        each: ε of one draw.
        delta: δ > 0.
    """
    if not draws or not each:
        return 0.0
    return least_epsilon(lambda g: pure_delta(g, draws, each), draws * each, delta)


def least_epsilon(delta_of: Callable[[float], float], most: float, delta: float) -> float:
    """Return an ε with delta_of(ε) <= δ, at most a hair above the least: bisection that ends on the side that holds.

    Args:
        delta_of: δ at an ε, falling.
        most: an ε at which it is 0.
        delta: δ > 0.
    """
    target = delta * (1.0 - SLACK)
    if delta_of(0.0) <= target:
        return 0.0
    low, high = 0.0, float(most)
    for _ in range(STEPS):
        if high - low <= CLOSE * high:
            break
        between = (low + high) / 2.0
        if delta_of(between) <= target:
            high = between
        else:
            low = between
    return high


def _log_choose(draws: int) -> F64:
    """Return ln C(n, i), float64[n + 1]."""
    i = np.arange(draws + 1)
    return np.asarray(gammaln(draws + 1) - gammaln(i + 1) - gammaln(draws - i + 1), np.float64)


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
class RecordLoss(Record):
    """The figures of a law that decide the ε of a record.

    Attributes:
        epsilon: the largest loss of one draw; for each unit of distance where `by_distance`.
        delta: of one draw.
        spread: R, the largest range of the log ratio; likewise. None where only the loss is known.
        additive: what rounding adds to R whatever the distance.
        by_distance: whether the figures are for each unit of distance, so that no number of words has an ε.
        adapts: whether a law depends on what was drawn before it: then only bounds that allow for that are valid.
        divergences: the largest D_α for each order of the grid; empty where laws were not compared so closely.
        why: why a record has no figure, as a sentence; empty where it has one.
    """

    epsilon: float
    delta: float = 0.0
    spread: float | None = None
    additive: float = 0.0
    by_distance: bool = False
    adapts: bool = False
    divergences: tuple[float, ...] = ()
    why: str = ""


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
    """Compute the least quarter power of two that is at least `draws`, as an integer: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, ..."""
    if draws <= 1:
        return max(0, draws)
    step = max(0, math.floor(4.0 * math.log2(draws)) - 1)
    powers: Iterator[int] = (math.ceil(math.pow(2.0, power / 4.0)) for power in range(step, step + 8))
    return next(power for power in powers if power >= draws)


def rounded_up(number: float) -> float:
    """Return the next number of four digits: equal on every processor, but for a hair at its edge."""
    return float(_UP.create_decimal(Decimal(repr(float(number)))))
