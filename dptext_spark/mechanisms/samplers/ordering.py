"""The ordering sampler: a law over the positions of a list, drawn in one step; several lists are averaged.

A position takes a window of the table of displacements (:class:`Window`). A guide table (Chen and Asau 1974) finds a number t in
the window, and j = i + x, kept within the list.

One 63-bit number u draws both list and position. The number u·L/2^63 is the list and a remainder, and the remainder is the place
in the window. The number of u that give a word is an integer. So the sampled law is a ratio of integers out of 2^63, and every
word has at least one.

A window is the part of the table of displacements that a position takes; all positions share the integer weights.

Weights over displacements x = j - i are rounded prefix sums. TEM's windows hold the displacements that stay in the list, so its
law is normalised for each position. The geometric law's windows all have one width, and anything beyond an end of the list
belongs to that end.

Rounding never passes the bound ε·d. Each prefix is within 1/2 of its true value, and a window holds 2^61 to
2^62. So of the M = 2^63/L numbers of a list, those that give an output are M·p within 9.5, p its probability.
The weights hold a floor, the same for every displacement, that makes the bound on p strict. M·p under
position i is at most e^(ε·d)·M·p' - (e^(ε·d) - 1)·f, p' the probability under i' and f the worth of the
floor. The function :func:`floor` makes f so large that this outweighs the rounding of both. At an ε so small
that it cannot, every position draws from the same, uniform law.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from dptext_spark.arrays import F32, F64, U64, Array, Ids
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import DECIDES, TOTAL, Law, Sampler, Summary
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled, inlined, mul_high, prefetch

GUIDE_BITS = (8, 16)
AHEAD = 16  # how many draws ahead a word's positions are asked for
_EVEN = ~np.uint64(1)
_TWO_64, _TOP = 2.0**64, 2.0**64 - 2.0**12
WINDOW = 1 << 62  # what a window holds at most
ROUNDING = 16  # counts that an output's count may be off by, generously
SCALE = 1 << 160  # fixed point of the exact weights
DIGITS = Context(prec=60)  # decimals of e^-x: 199 bits, correctly rounded, the same everywhere


def _guide(edges: U64) -> Ids:
    """Return int32[2^m + 1]: the displacement's number at the beginning of each of 2^m equal parts of the table."""
    last = len(edges) - 2
    bits = min(max(last.bit_length(), GUIDE_BITS[0]), GUIDE_BITS[1])
    begins = np.arange(1 << bits, dtype=np.uint64) << np.uint64(_shift(edges, bits))
    numbers = np.minimum(np.searchsorted(edges, begins, side="right") - 1, last)
    return np.append(numbers, last).astype(np.int32)


def _shift(edges: U64, bits: int) -> int:
    return int(edges[-1]).bit_length() - bits


@compiled
def _draw_all(
    place: Any, order: Any, edges: Any, guide: Any, shift: Int, start: Any, width: Any, ids: Any, numbers: Any, out: Any
) -> None:  # fmt: skip
    many, middle = np.uint64(place.shape[1]), np.int64(place.shape[0] - 1)
    flat = place.reshape(-1)
    final = ids.shape[0] - 1
    for n in range(ids.shape[0]):
        prefetch(flat, np.int64(ids[min(n + AHEAD, final)]) * place.shape[1])
        u = numbers[n] & _EVEN
        # Indices without a sign spare the test whether they count from the end.
        chosen = mul_high(u, many)
        i = np.uint64(place[np.uint64(ids[n]), chosen])
        t = start[i] + mul_high(u * many, width[i])
        part = t >> np.uint64(shift)
        low, high = np.uint64(guide[part]), np.uint64(guide[part + np.uint64(1)])
        while low < high:
            between = (low + high + np.uint64(1)) >> np.uint64(1)
            if edges[between] <= t:
                low = between
            else:
                high = between - np.uint64(1)
        j: Int = min(max(np.int64(i) + np.int64(low) - middle, 0), middle)
        out[n] = order[chosen, np.uint64(j)]


@inlined
def _remainder(part: Int, whole: Int, found: Int) -> tuple[Int, Int]:
    """Return part·2^64 - found·whole in two words, the upper one signed."""
    low = np.uint64(0) - found * whole
    return np.int64(part - mul_high(found, whole) - np.uint64(low > np.uint64(0))), low


@compiled
def _scaled_up(part: Int, whole: Int) -> Int:
    """Compute part·2^64/whole rounded up, for part < whole < 2^63: the first f whose mul_high(f, whole) is part or more.

    A quotient in float64 is off by less than 2^13; twice, the exact remainder that it leaves says by how much.
    """
    scaled = np.uint64(min(np.float64(part) / np.float64(whole) * _TWO_64, _TOP))
    for _ in range(2):
        high, low = _remainder(part, whole, scaled)
        if high >= 0:
            rest = np.float64(high) * _TWO_64 + np.float64(low)
        elif low == np.uint64(0):
            rest = np.float64(high) * _TWO_64
        else:
            rest = np.float64(high + 1) * _TWO_64 - np.float64(np.uint64(0) - low)
        scaled += np.uint64(np.int64(np.floor(rest / np.float64(whole))))
    # Off by one at most now: the remainder lies above -whole and below 2·whole.
    high, low = _remainder(part, whole, scaled)
    if high < 0:
        return scaled
    if low >= whole:
        scaled += np.uint64(1)
        low -= whole
    return scaled + np.uint64(low > np.uint64(0))


@compiled
def _count(
    place: Any, order: Any, edges: Any, start: Any, width: Any, first: Any, rest: Any, word: Int, out: Any
) -> None:
    """Add to out uint64[V] how many 63-bit numbers draw each word.

    `first` uint64[L + 1] is l·2^63/L rounded down, 2^63 for l = L; `rest` is l·2^64 - 2L·first. The others are the sampler's.
    """
    words, lists = place.shape
    for chosen in range(lists):
        i = np.int64(place[word, chosen])
        before = _begin(edges, start, width, first, rest, chosen, i, np.int64(0))
        for j in range(words):
            after = _begin(edges, start, width, first, rest, chosen, i, j + 1)
            out[order[chosen, j]] += after - before
            before = after


@inlined
def _begin(edges: Any, start: Any, width: Any, first: Any, rest: Any, chosen: Int, i: Int, j: Int) -> Int:
    """Return the first number that draws position j or a later one of a list from position i; j = V: the end of the list."""
    words, lists = start.shape[0], first.shape[0] - 1
    if j == 0:
        return first[chosen] + np.uint64(rest[chosen] > 0)
    if j == words:
        return first[chosen + 1] + np.uint64(rest[chosen + 1] > 0)
    both = np.uint64(2 * lists)
    f = _scaled_up(edges[words - 1 - i + j] - start[i], width[i])
    return first[chosen] + f // both + (rest[chosen] + f % both + both - np.uint64(1)) // both


@compiled
def _stay(place: Any, edges: Any, start: Any, width: Any, first: Any, rest: Any, ids: Any, out: Any) -> None:
    """Fill `out`, uint64[n], with how many 63-bit numbers draw each of ids int32[n] from itself; the rest as for `_count`."""
    for n in range(ids.shape[0]):
        out[n] = np.uint64(0)
        for chosen in range(place.shape[1]):
            i = np.int64(place[ids[n], chosen])
            before = _begin(edges, start, width, first, rest, chosen, i, i)
            out[n] += _begin(edges, start, width, first, rest, chosen, i, i + 1) - before


@dataclass(frozen=True, kw_only=True)
class OrderingSummary(Summary):
    """Figures of laws along lists.

    Attributes:
        form: `geometric` or `tem`.
        embeddings: how many lexicons they were made from.
        preset: the name of a paper's set of lists, or `none`.
        list_seed: what the words that lists begin at are made from.
        starts: the words that lists begin at.
        floor: share of a law that is uniform.
        unchanged_mid_list: P(w|w) of the word in the middle of a list.
        unchanged_list_end: P(w|w) of the words at its ends.
        beta: of the form `tem`.
        gamma: γ, the cut-off of the form `tem`, in places.
    """

    form: str | None = None
    lists: int | None = None
    embeddings: int | None = None
    preset: str | None = None
    list_seed: int | None = None
    starts: tuple[int, ...] | None = None
    floor: float | None = None
    unchanged_mid_list: float | None = None
    unchanged_list_end: float | None = None
    beta: float | None = None
    gamma: float | None = None


@dataclass(frozen=True, eq=False)
class OrderingSampler(Sampler):
    """Sampler of the average of some lists' laws.

    Attributes:
        order: int32[L, V], the words of each list.
        place: int32[V, L], where each word stands in each list.
        edges: uint64[2V], see :class:`Window`.
        guide: int32[2^m + 1], where to look in `edges`.
        start: uint64[V].
        width: uint64[V].
    """

    ARRAYS = ("order", "place", "edges", "guide", "start", "width")
    summary_type = OrderingSummary
    cost = "constant: a table look-up a token"
    certified_by = f"by a proved bound: every two neighbours in a list, compared output by output, bound all pairs; {DECIDES}"
    compiles_quickly = True

    order: Ids
    place: Ids
    edges: U64
    guide: Ids
    start: U64
    width: U64
    guarantee: Guarantee
    summary: OrderingSummary = OrderingSummary()

    @classmethod
    def of(
        cls, order: Ids, window: Window, guarantee: Guarantee, summary: OrderingSummary
    ) -> OrderingSampler:
        """Build from lists int32[L, V], each of which holds every word once."""
        place = np.ascontiguousarray(np.argsort(order, axis=1).T, dtype=np.int32)
        guide = _guide(window.edges)
        return cls(order, place, window.edges, guide, window.start, window.width, guarantee, summary)

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n] by lane 0."""
        out = np.empty(len(ids), np.int32)
        shift = _shift(self.edges, (len(self.guide) - 1).bit_length() - 1)
        _draw_all(
            self.place, self.order, self.edges, self.guide, shift, self.start, self.width, ids, draws.u64(0), out
        )  # fmt: skip
        return out

    def law(self, word_id: int) -> Law:
        """Return the law of a word: how many of the 2^63 numbers give each output."""
        weight = np.zeros(len(self.place), np.uint64)
        _count(self.place, self.order, self.edges, self.start, self.width, *self._shares(), word_id, weight)
        return Law.of(np.arange(len(weight), dtype=np.int32), weight)

    def law_bytes(self) -> int:
        """Return the bytes of a law over the lexicon while it is made."""
        return 32 * len(self.place)

    def law_columns(self) -> OrderingColumns:
        """Return the reader of P(u|w) off the lists."""
        return OrderingColumns(self)

    def unchanged(self, words: Ids) -> tuple[F64, F64]:
        """Return P(w|w) of each of int32[n], as its law has it, and no error: float64[n] each."""
        weight = np.empty(len(words), np.uint64)
        _stay(self.place, self.edges, self.start, self.width, *self._shares(), words, weight)
        return np.asarray(weight / TOTAL, np.float64), np.zeros(len(words))

    def _shares(self) -> tuple[U64, U64]:
        """Compute the first number of each list: (l·2^63/L rounded down, the rest of it out of 2L), uint64[L + 1] each."""
        lists = len(self.order)
        first = [chosen * TOTAL // lists for chosen in range(lists + 1)]
        rest = [2 * (chosen * TOTAL - lists * whole) for chosen, whole in enumerate(first)]
        return np.array(first, np.uint64), np.array(rest, np.uint64)


def floor(words: int, lists: int, epsilon: float) -> int | None:
    """Return the weight that every displacement has at least, out of `WINDOW`; None: only a uniform law will do."""
    least = ROUNDING / 2 * lists * (1 + 4 / epsilon) if epsilon > 0 else float("inf")
    return int(least) + 1 if least * words < WINDOW >> 3 else None


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
    """The table of displacements -(V-1) to V-1, and each position's window in the table.

    Attributes:
        edges: uint64[2V]; displacement k - (V-1) has the numbers from edges[k] to edges[k+1].
        start: uint64[V], where the window of a position begins.
        width: uint64[V], how much it holds, 2^61 to 2^62.
    """

    edges: U64
    start: U64
    width: U64

    def unchanged(self, position: int) -> float:
        """Return the probability that a draw stays at `position`."""
        words = len(self.start)
        low, high = self.edges[words - 1], self.edges[words]
        if position == 0:
            low = self.start[0]
        if position == words - 1:
            high = self.start[-1] + self.width[-1]
        return float(high - low) / float(self.width[position])

    @classmethod
    def uniform(cls, words: int) -> Window:
        """Build the window where every position draws alike."""
        each = WINDOW // (2 * words - 1)
        return cls._normalised([each * k for k in range(2 * words)], words)

    @classmethod
    def tem(cls, words: int, lists: int, epsilon: float, beta: float) -> Window:
        """Build the window of P(j|i) ∝ exp(-ε·min(|i-j|, G)/2), G = (2/ε)·ln((1-β)(V-1)/β), 0 at least."""
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
        """Build the window of i + X, P(X = x) = (e^ε-1)/(e^ε+1)·e^(-ε|x|), kept within the list."""
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


@compiled
def _of_lists(
    place: Any, edges: Any, start: Any, width: Any, outputs: Any, every: Any, low: Any, found: Any
) -> None:
    """Add P(u|w) of the outputs u over all words w to found float32[n, V]; every float64[V] and low int64[V] are for work."""
    words, lists = place.shape
    for chosen in range(lists):
        for w in range(words):
            i = np.int64(place[w, chosen])
            every[w], low[w] = np.float64(width[i]) * lists, words - 1 - i
        for row in range(outputs.shape[0]):
            j = np.int64(place[outputs[row], chosen])
            for w in range(words):
                i = place[w, chosen]
                # A number of the table that passes an end of the list belongs to that end.
                begin = start[i] if j == 0 else edges[low[w] + j]
                end = start[i] + width[i] if j == words - 1 else edges[low[w] + j + 1]
                found[row, w] += np.float64(end - begin) / every[w]


@dataclass(frozen=True, eq=False)
class OrderingColumns:
    """P(u|w) of the average of some lists' laws, output by output."""

    sampler: OrderingSampler

    def __call__(self, outputs: Ids) -> F32:
        """Return P(u|w) of some outputs u over all words w: float32[n, V]."""
        return self._filled(outputs, np.zeros((len(outputs), len(self.sampler.place)), np.float32))

    def precise(self, outputs: Ids) -> F64:
        """Return P(u|w) of some outputs u over all words w, as :meth:`fixed` does: float64[n, V]."""
        return self._filled(outputs, np.zeros((len(outputs), len(self.sampler.place))))

    def _filled(self, outputs: Ids, found: Array) -> Array:
        sampler, words = self.sampler, len(self.sampler.place)
        _of_lists(
            sampler.place, sampler.edges, sampler.start, sampler.width, outputs, np.empty(words), np.empty(words, np.int64),
            found,
        )  # fmt: skip
        return found

    def fixed(self, output: int) -> F64:
        """Return P(output|w) over all words w, the same bits on every processor: float64[V]."""
        return np.asarray(self.precise(np.array([output], np.int32))[0], np.float64)

    def probability(self, words: Ids, outputs: Ids) -> F64:
        """Return P(outputs[i] | words[i]) of int32[n] each, in float64, as the formula says: float64[n]."""
        sampler = self.sampler
        lists, total = sampler.order.shape
        probabilities = np.zeros(len(words))
        for chosen in range(lists):
            i, j = (sampler.place[some, chosen].astype(np.int64) for some in (words, outputs))
            start, width = sampler.start[i], sampler.width[i]
            low = np.where(j == 0, start, sampler.edges[total - 1 - i + j])
            high = np.where(
                j == total - 1, start + width, sampler.edges[np.minimum(total - i + j, 2 * total - 1)]
            )
            probabilities += (high - low) / width.astype(np.float64) / lists
        return probabilities
