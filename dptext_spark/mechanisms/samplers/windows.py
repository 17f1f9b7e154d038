"""Displacements along a list: one table of integer weights that all positions share, and the window of it that each takes.

Weights over displacements x = j - i are rounded prefix sums. TEM's windows hold the displacements that stay in the list, so its
law is normalised for each position; the geometric law's windows all have one width, and what lies beyond an end of the list
belongs to that end.

Rounding never passes the bound ε·d. Each prefix is within 1/2 of its true value and a window holds 2^61 to 2^62, so of the
M = 2^63/L numbers of a list, those that give an output are M·p within 9.5, p its probability. The weights hold a floor, the same
for every displacement, which makes the bound on p strict: M·p under position i is at most e^(ε·d)·M·p' - (e^(ε·d) - 1)·f, p' the
probability under i' and f what the floor is worth. :func:`floor` makes f so large that this outweighs the rounding of both. At an
ε so small that it cannot, every position draws from the same, uniform law.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dptext_spark.mechanisms.numerics.elementary import logarithm

WINDOW = 1 << 62  # what a window holds at most
ROUNDING = 16  # counts that an output's count may be off by, generously
SCALE = 1 << 160  # fixed point of the exact weights
DIGITS = Context(prec=60)  # decimals of e^-x: 199 bits, correctly rounded, the same everywhere


def floor(words: int, lists: int, epsilon: float) -> int | None:
    """Return the weight that every displacement has at least, out of `WINDOW`; None: only a uniform law will do."""
    wanted = ROUNDING / 2 * lists * (1 + 4 / epsilon) if epsilon > 0 else float("inf")
    return int(wanted) + 1 if wanted * words < WINDOW >> 3 else None


def floor_share(words: int, lists: int, epsilon: float) -> float:
    """Return the share of a law that is uniform: what the floor of all displacements is worth together."""
    least = floor(words, lists, epsilon)
    return 1.0 if least is None else least * words / WINDOW


def radius(words: int, epsilon: float, beta: float) -> float:
    """Return G of TEM in places, (2/ε)·ln((1-β)(V-1)/β), between 0 and V-1: no word is farther."""
    log = logarithm(1 - beta) + logarithm(words - 1.0) - logarithm(beta)
    return float(min(2 / epsilon * log, words - 1.0)) if log > 0 else 0.0


def _power(epsilon: float) -> int:
    """Return e^-ε in fixed point; 0 from 200 on, where it is below 2^-288."""
    return int(DIGITS.multiply(DIGITS.exp(Decimal(-epsilon)), SCALE)) if epsilon < 200 else 0


@dataclass(frozen=True, eq=False)
class Window:
    """The table of displacements -(V-1) to V-1, and the window of it that each position takes.

    Attributes:
        edges: uint64[2V]; displacement k - (V-1) has the numbers from edges[k] to edges[k+1].
        start: uint64[V], where the window of a position begins.
        width: uint64[V], how much it holds, 2^61 to 2^62.
    """

    edges: npt.NDArray[np.uint64]
    start: npt.NDArray[np.uint64]
    width: npt.NDArray[np.uint64]

    def unchanged(self, position: int) -> float:
        """Return the probability that a draw stays at `position`."""
        words = len(self.start)
        low, high = self.edges[words - 1], self.edges[words]
        if position == 0:
            low = self.start[0]
        if position == words - 1:
            high = self.start[-1] + self.width[-1]
        return float(high - low) / float(self.width[position])

    def summary(self) -> dict[str, float]:
        """Return the probability that a draw from this list stays where it is, in its middle and at its ends."""
        middle, end = self.unchanged(len(self.start) // 2), self.unchanged(0)
        return {"unchanged_mid_list": middle, "unchanged_list_end": end}

    @classmethod
    def uniform(cls, words: int) -> Window:
        """Return one where every position draws alike."""
        each = WINDOW // (2 * words - 1)
        return cls._normalised([each * k for k in range(2 * words)], words)

    @classmethod
    def tem(cls, words: int, lists: int, epsilon: float, beta: float) -> Window:
        """Return that of P(j|i) ∝ exp(-ε·min(|i-j|, G)/2), G = (2/ε)·ln((1-β)(V-1)/β), 0 at least."""
        least = floor(words, lists, epsilon)
        if least is None:
            return cls.uniform(words)
        ratio = _power(epsilon / 2)
        # exp(-ε·G/2) without a logarithm.
        cut = min(SCALE, int(Fraction(beta) / ((1 - Fraction(beta)) * (words - 1)) * SCALE))
        powers = accumulate(range(words - 1), lambda value, _: value * ratio // SCALE, initial=SCALE)
        weight = [max(value, cut) for value in powers]
        prefix = list(accumulate(weight[:0:-1] + weight, initial=0))
        room = WINDOW - least * (2 * words - 1)
        edges = [_rounded(value * room, prefix[-1]) + least * k for k, value in enumerate(prefix)]
        return cls._normalised(edges, words)

    @classmethod
    def _normalised(cls, edges: list[int], words: int) -> Window:
        """Return the one whose windows hold the displacements that stay in the list."""
        table = np.array(edges, np.uint64)
        start, end = table[words - 1 :: -1], table[: words - 1 : -1]
        return cls(table, start.copy(), end - start)

    @classmethod
    def geometric(cls, words: int, lists: int, epsilon: float) -> Window:
        """Return that of i + X, P(X = x) = (e^ε-1)/(e^ε+1)·e^(-ε|x|), kept within the list."""
        least = floor(words, lists, epsilon)
        if least is None:
            return cls.uniform(words)
        ratio = _power(epsilon)
        room = WINDOW - least * words
        # P(X <= -x) = q^x/(1+q) for x >= 0.
        powers = accumulate(range(words - 1), lambda value, _: value * ratio // SCALE, initial=SCALE)
        below = [_rounded(value * room, SCALE + ratio) for value in powers]
        lower = below[:0:-1]  # P(X <= x) for x from -(V-1) to -1
        upper = [room - value for value in lower[::-1]]  # for x from 0 to V-2
        edges = [0, *(value + least * k for k, value in enumerate(lower + upper, start=1))]
        edges.append(room + least * (2 * words - 1))
        start = np.array([least * (words - 1 - i) for i in range(words)], np.uint64)
        return cls(np.array(edges, np.uint64), start, np.full(words, WINDOW, np.uint64))


def _rounded(top: int, low: int) -> int:
    """Return top/low to the nearest integer."""
    return (2 * top + low) // (2 * low)
