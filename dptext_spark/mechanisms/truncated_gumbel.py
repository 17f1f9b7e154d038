"""Truncated Gumbel: the least noisy distance among a random number of the nearest words. Its claimed bound does not hold.

Paper: Xu, Feyisetan et al. 2021, "Density-Aware Differentially Private Textual Perturbations Using Truncated Gumbel Noise".
Formula: k ~ Poisson(ln V) conditioned on [1, V]. Gumbel noise of scale b, conditioned on |x| <= Δmax, is added to the Euclidean
distances of the k nearest words. The word itself is among them at distance 0. The smallest sum is released. Let Δmin and Δmax be
the smallest and largest distance of two words. Then a = (ε - 2(1 + ln V)/Δmin)/3, b = 2Δmax / min(W(2aΔmax), ln(aΔmin)).
Guarantee: the paper claims metric DP, ε times the Euclidean distance, if a·Δmin > 1, that is ε > (5 + 2 ln V)/Δmin. It does not
hold. From w itself w is drawn whenever k = 1, from w' only if k reaches the rank of w seen from w'. So the loss is at least ln
P(k = 1) - ln P(k >= rank). This is evaluated for every word and its nearest other one; where it passes ε times the distance, the
guarantee is refuted.
Deviations: Δmin and Δmax are taken over all pairs (the authors' code: from one random word). Words with equal vectors count as
one place, that of the lowest id. They share its neighbours; their distance 0 is not Δmin. The law of k is rounded to integers out
of 2^63 and ends where less than 2^-63 is left. `unsafe: published` draws without any guarantee below the floor. If a < 0 it takes
the real part of W, as the authors' code does. If that leaves no positive b, it takes the limit b -> ∞, uniform noise.

Noisy selection: noise on the distances of a random number of the nearest words; the smallest sum wins.

The number of words that take part has a finite law in integers out of 2^63. The noise on each is a Gumbel law cut at both ends,
drawn by its inverse distribution function. Lane 0 says how many, lane j + 1 is the noise of the j-th nearest word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, U64, Ids
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import nearest, nearest_in
from dptext_spark.mechanisms.base import TOTAL, Mechanism, Sampler, Summary
from dptext_spark.mechanisms.elementary import (
    expm1,
    exponential,
    lambert,
    lambert_real_part,
    log1p,
    logarithm,
)
from dptext_spark.mechanisms.matrices import largest_distance, pair_distances, ranks
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, number
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.validation import Record

ROWS = 1 << 13  # draws whose numbers are held at once
FLAT = 2.0**-40  # a Gumbel law cut at ±h is uniform up to h²/2
_SIGN = np.uint64(1 << 63)
_STEP, _HALF_STEP = 2.0**-64, 2.0**-65
_BITS = 200  # of the terms of a Poisson law before they are rounded


def poisson_weights(rate: float, largest: int) -> list[int]:
    """Compute the law of a Poisson number that is at least 1 and at most `largest`, as integers that sum to 2^63.

    Args:
        rate: the mean of the unconditioned law, > 0.
        largest: 1 or more.

    Returns:
        The weights of 1, 2, ..., each at least 1. The table ends at `largest`, or where all that follows together has a
        mass below 2^-63. What rounding leaves over goes to the heaviest (the first of equals).
    """
    numerator, denominator = rate.as_integer_ratio()
    terms = [(numerator << _BITS) // denominator]
    total = terms[0]
    while len(terms) < largest:
        k = len(terms) + 1
        term = terms[-1] * numerator // (k * denominator)
        # Each further term is at most rate / (k + 1) of the one before.
        shrink = (k + 1) * denominator - numerator
        if shrink > 0 and (term * (k + 1) * denominator // shrink + 1) << 63 < total:
            break
        terms.append(term)
        total += term
    weights = [max(1, term * TOTAL // total) for term in terms]
    heaviest = weights.index(max(weights))
    weights[heaviest] += TOTAL - sum(weights)
    return weights


@compiled
def gumbel_ends(end: float) -> Any:
    """Return the three constants of the Gumbel law cut to [-end, end] that :func:`truncated_gumbel_quantile` needs.

    With G(y) = exp(-e^-y): up to end = 1 they are (G(end)/G(-end) - 1, e^-end, 0), else (G(-end), 1 - G(end), the mass between).
    """
    if end <= 1.0:
        return expm1(expm1(end) - expm1(-end)), exponential(-end), 0.0
    below = exponential(-exponential(end))
    above = -expm1(-exponential(-end))
    return below, above, 1.0 - above - below


@compiled
def truncated_gumbel_quantile(bits: Int, end: float, ends: Any) -> Any:
    """Return a draw of the Gumbel law (distribution function exp(-e^-y)) cut to [-end, end], divided by `end`.

    Both ends keep their digits. A short interval's law is written from its lower end, a long interval's from both ends.

    Args:
        bits: uint64; the draw grows with it.
        end: 0 or more; the law is uniform below 2^-40.
        ends: the constants of `end`, see :func:`gumbel_ends`.
    """
    first, second, mass = ends
    if end <= 1.0:
        u = np.float64(bits) * _STEP + _HALF_STEP
        if end < FLAT:
            return min(2.0 * u - 1.0, 1.0)
        # G(y) = G(-end)·(1 + u·(G(end)/G(-end) - 1)), solved for y + end.
        y = -end - log1p(-second * log1p(u * first))
    elif bits & _SIGN:
        rest = np.float64(~bits)
        y = -logarithm(-log1p(-(second + mass * (rest * _STEP + _HALF_STEP))))
    else:
        y = -logarithm(-logarithm(first + mass * (np.float64(bits) * _STEP + _HALF_STEP)))
    return min(max(y / end, -1.0), 1.0)


@compiled
def _count(cumulative: Any, numbers: Any, out: Any) -> int:
    """Fill `out`, int64[n], with how many words take part in each draw; return the largest."""
    largest = 0
    for i in range(numbers.shape[0]):
        u = numbers[i] >> np.uint64(1)
        k = 0
        while u >= cumulative[k]:
            k += 1
        out[i] = k + 1
        largest = max(largest, k + 1)
    return largest


@compiled
def _select(
    near: Any, distance: Any, limit: float, end: float, ids: Any, counts: Any, numbers: Any, out: Any
) -> None:
    """Choose the word with the smallest noisy distance; of equals the lower id."""
    ends = gumbel_ends(end)
    for i in range(ids.shape[0]):
        word = ids[i]
        chosen = near[word, 0]
        best = np.inf
        for j in range(counts[i]):
            value = distance[word, j] + limit * truncated_gumbel_quantile(numbers[i, j], end, ends)
            if value < best or (value == best and near[word, j] < chosen):
                best = value
                chosen = near[word, j]
        out[i] = chosen


@dataclass(frozen=True)
class WorstPair(Record):
    """A word and its nearest other one that lose most for each unit of distance.

    Attributes:
        rank: of the second, seen from the first.
        loss: the least that it is.
        refuted_up_to: the ε below which a claim is refuted.
    """

    words: tuple[int, int]
    rank: int
    distance: float
    loss: float
    refuted_up_to: float


@dataclass(frozen=True, kw_only=True)
class SelectionSummary(Summary):
    """Figures of the choice among the nearest words.

    Attributes:
        equal_vectors: how many words have the vector of another one.
        candidates: the most words that take part.
        smallest_distance: Δmin.
        largest_distance: Δmax.
        floor: the ε above which the paper claims a bound.
        a: as in the paper.
        b: the scale of the noise; None where it is uniform.
    """

    equal_vectors: int
    candidates: int
    smallest_distance: float
    largest_distance: float
    floor: float
    a: float
    b: float | None
    pair: WorstPair


@dataclass(frozen=True, eq=False)
class SelectionSampler(Sampler):
    """Sampler of the smallest noisy distance among the nearest words.

    Attributes:
        near: int32[V, K], the nearest words of each word, nearest first.
        distance: float64[V, K], their distances.
        cumulative: uint64[K], sums of the weights of 1, 2, ... words taking part; the last is 2^63.
        noise: float64[2]: the largest noise, and the same in units of its scale.
    """

    ARRAYS = ("near", "distance", "cumulative", "noise")
    summary_type = SelectionSummary
    cost = "constant: a noisy distance for each of the few dozen nearest words at most"
    certified_by = (
        "by a lower bound in closed form, for every word and its nearest other one; it refutes the claim on real lexicons "
        "and never confirms it: `not refuted` is the best verdict"
    )
    draws_quickly = True

    near: Ids
    distance: F64
    cumulative: U64
    noise: F64
    guarantee: Guarantee
    summary: SelectionSummary

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n] by lanes 0 to at most K."""
        out = np.empty(len(ids), np.int32)
        counts = np.empty(min(len(ids), ROWS), np.int64)
        for start in range(0, len(ids), ROWS):
            rows = slice(start, min(start + ROWS, len(ids)))
            some = counts[: rows.stop - rows.start]
            largest = _count(self.cumulative, draws.u64(0, rows), some)
            numbers = np.empty((len(some), largest), np.uint64)
            for j in range(largest):
                numbers[:, j] = draws.u64(j + 1, rows)
            limit, end = float(self.noise[0]), float(self.noise[1])
            _select(self.near, self.distance, limit, end, ids[rows], some, numbers, out[rows])
        return out


Unsafe = Literal["refuse", "published"]


class _LexiconFigures(NamedTuple):
    """Figures of a lexicon, whatever ε is.

    Attributes:
        words: V.
        equal: how many words have the vector of another one.
        rate: ln V.
        weights: of 1, 2, ... words taking part.
        near: int32[V, K], the nearest words of each word.
        distance: float64[V, K], their distances.
        smallest: Δmin.
        largest: Δmax.
    """

    words: int
    equal: int
    rate: float
    weights: list[int]
    near: Ids
    distance: F64
    smallest: float
    largest: float
    pair: WorstPair

    @classmethod
    def of(cls, lexicon: Lexicon) -> _LexiconFigures:
        words, vectors = len(lexicon), np.ascontiguousarray(lexicon.vectors)
        rate = logarithm(float(words))
        weights = poisson_weights(rate, words)
        near, distance, place = neighbours_by_place(vectors, len(weights))
        places = np.flatnonzero(place == np.arange(words)).astype(np.int32)
        if len(places) == 1:
            raise SettingsError(
                "mechanism.name: truncated_gumbel is not valid for this lexicon, because all words have the same vector. "
                "Choose a lexicon with different vectors."
            )
        other, gap = nearest_other(vectors, near, distance, places)
        pair = worst_pair(vectors, places, other, gap, rate)
        extent = float(gap.min()), largest_distance(vectors)
        return cls(words, words - len(places), rate, weights, near, distance, *extent, pair)


@dataclass(frozen=True)
class TruncatedGumbel(Mechanism):
    """The parameters of the truncated Gumbel mechanism.

    Examples:
        >>> mechanism = dp.TruncatedGumbel(epsilon=60.0)
        >>> mechanism.protects
        'claimed: metric DP (Euclidean); refuted on real lexicons'
    """

    name: ClassVar[str] = "truncated_gumbel"
    paper: ClassVar[str] = (
        "Xu et al. 2021, Density-Aware Differentially Private Textual Perturbations Using Truncated Gumbel Noise"
    )
    protects: ClassVar[str] = "claimed: metric DP (Euclidean); refuted on real lexicons"
    sampler: ClassVar[type[Sampler]] = SelectionSampler

    epsilon: float = number(
        50.0,
        "ε per unit of Euclidean distance; greater than (5 + 2 ln V)/Δmin of the lexicon, about 35 on 34,000 GloVe vectors.",
        least=LEAST_EPSILON,
    )
    unsafe: Unsafe = choice(
        Unsafe,
        "refuse",
        "A smaller ε, for which the paper has no guarantee. `refuse` it, or `published`: draw anyway, to compare with published "
        "figures.",
    )

    def compile(self, lexicon: Lexicon) -> SelectionSampler:
        """Return the sampler; the lexicon's own metric is not used, distances are Euclidean."""
        return self._sampler(_LexiconFigures.of(lexicon))

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], SelectionSampler]:
        """Return a function that compiles it at another ε; the ranks and distances are found once."""
        ranked = _LexiconFigures.of(lexicons[0])
        return lambda epsilon: replace(self, epsilon=epsilon)._sampler(ranked)

    def _sampler(self, ranked: _LexiconFigures) -> SelectionSampler:
        words, equal, rate, weights, near, distance, smallest, largest, pair = ranked
        floor = (5.0 + 2.0 * rate) / smallest
        a = (self.epsilon - 2.0 * (1.0 + rate) / smallest) / 3.0
        admissible = self.epsilon > floor and a * smallest > 1.0
        if not admissible and self.unsafe == "refuse":
            raise SettingsError(
                f"mechanism.epsilon: {self.epsilon:.16g} is not valid for truncated_gumbel. Its guarantee on this lexicon "
                f"needs ε > {floor:.6g} = (5 + 2 ln V)/Δmin (V = {words}, Δmin = {smallest:.6g}). Choose a greater ε, or "
                "`unsafe: published` to draw without a guarantee."
            )
        end = _interval(a, smallest, largest) / 2.0
        summary = SelectionSummary(
            words=words,
            equal_vectors=equal,
            candidates=len(weights),
            smallest_distance=smallest,
            largest_distance=largest,
            floor=floor,
            a=a,
            b=largest / end if end > 0 else None,
            pair=pair,
        )
        noise = np.array([largest, end])
        cumulative = np.cumsum(np.array(weights, np.uint64), dtype=np.uint64)
        guarantee = self._guarantee(pair, admissible, floor)
        return SelectionSampler(near, distance, cumulative, noise, guarantee, summary)

    def _guarantee(self, pair: WorstPair, admissible: bool, floor: float) -> Guarantee:
        epsilon, claimed = float(self.epsilon), float(self.epsilon) * pair.distance
        refuted = pair.loss > claimed * (1.0 + 1e-9)
        sentence = (
            f"One drawn word is claimed to be ε-metric-private with ε = {epsilon:.16g} per unit of Euclidean distance, "
            "up to a probability of 2^-63."
        )
        if not admissible:
            sentence = f"Nothing is promised: ε = {epsilon:.16g} is not above {floor:.6g}, below which the paper claims nothing."
        if refuted:
            sentence += (
                f" This is refuted: the words {pair.words[0]} and {pair.words[1]} of the lexicon have a loss of at least "
                f"{pair.loss:.6g}, and ε times their distance is {claimed:.4g}."
            )
        # Where nothing is claimed, nothing may be read out of the status either.
        status: Literal["refuted", "claimed"] = "refuted" if refuted or not admissible else "claimed"
        return Guarantee("metric_dp", epsilon, metric="euclidean", status=status, sentence=sentence)


def neighbours_by_place(vectors: F32, count: int) -> tuple[Ids, F64, Ids]:
    """Return (ids int32[V, K], distances float64[V, K], place int32[V]): words with equal vectors share one row.

    The order is by the distances of :func:`nearest`; the distances are those of the fixed order. The two can differ in their last
    bits.
    """
    words = np.arange(len(vectors), dtype=np.int32)
    near, measured = nearest(vectors, words, max(2, count), "euclidean")
    # The nearest other word at distance 0 is the lowest id among the others with this vector.
    place = np.where(measured[:, 1] == 0, np.minimum(words, near[:, 1]), words).astype(np.int32)
    near = np.ascontiguousarray(near[place, :count])
    return near, pair_distances(vectors, place, near), place


def nearest_other(vectors: F32, near: Ids, distance: F64, places: Ids) -> tuple[Ids, F64]:
    """Return (ids int32[p], distances float64[p]): the nearest word with another vector, of each place."""
    if len(places) == len(vectors) and near.shape[1] > 1:
        return near[places, 1], distance[places, 1]
    other = nearest_in(vectors, places, places, 2, "euclidean")[0][:, 1:]
    return other[:, 0], pair_distances(vectors, places, np.ascontiguousarray(other))[:, 0]


@compiled
def loss_by_rank(rate: float, words: Int) -> Any:
    """Compute float64[V + 1]: at r, ln P(k = 1) - ln P(k >= r) for k ~ Poisson(rate) conditioned on [1, V]; 0 at 0."""
    out = np.zeros(words + 1)
    for r in range(2, words + 1):  # ln P(k = 1) - ln P(k = r)
        out[r] = out[r - 1] + logarithm(np.float64(r)) - logarithm(rate)
    more = 1.0  # P(k >= r) / P(k = r)
    for r in range(words, 0, -1):
        out[r] -= logarithm(more)
        more = 1.0 + more * rate / r
    return out


def worst_pair(vectors: F32, places: Ids, other: Ids, gap: F64, rate: float) -> WorstPair:
    """Return the pair (w, w'), w' the nearest other word of w, with the largest loss per unit of distance, and its figures."""
    rank = ranks(vectors, places, other)
    loss = loss_by_rank(rate, len(vectors))[rank]
    worst = int(np.argmax(loss / gap))
    return WorstPair(
        (int(places[worst]), int(other[worst])),
        int(rank[worst]),
        float(gap[worst]),
        float(loss[worst]),
        float(loss[worst] / gap[worst]),
    )


def _interval(a: float, smallest: float, largest: float) -> float:
    """Return 2Δmax/b = min(W(2aΔmax), ln(aΔmin)) for the scale b, or 0 for b -> ∞."""
    if a > 0:
        shorter = logarithm(a) + logarithm(smallest)
        if shorter <= 0:
            return 0.0
        return float(min(shorter, lambert(logarithm(2.0) + logarithm(a) + logarithm(largest))))
    return max(0.0, lambert_real_part(2.0 * a * largest)) if a < 0 else 0.0
