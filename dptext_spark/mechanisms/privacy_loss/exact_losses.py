"""Worst-case losses that are read off the law: along lists, within output sets, by rank, and over the whole lexicon.

Along lists neighbours bound all pairs. Along one list the distance |i - j| is a sum of steps. So no pair
loses more for each unit of distance than some two neighbours do. Under the average of several lists
P(u|w)/P(u|w') is at most the largest of the lists' ratios. The claim is about the max over the lists of the
distance, so the same bound holds.

Between words that share an output set the loss is read off the integers that are sampled.

By rank, for truncated Gumbel noise: a word comes out of another only if that many of the nearest words take
part. From w itself w is drawn whenever k = 1, from w' only if k reaches the rank of w seen from w'. So the
pair loses at least ln P(k = 1) - ln P(k >= rank): for k as the paper has it. As sampled, k ends where less
than 2^-63 is left. Beyond that end w cannot come out of w' at all. The guarantee excepts that probability,
and it is not counted here. A lower bound: it refutes, and cannot confirm.

The worst-case loss of a law whose outputs are replaced.

Q(z|w)/Q(z|w') lies between the least and the greatest P(y|w)/P(y|w') of the outputs y that become z. So no pair loses more under
Q than under P. Rows of a table are read after the remap, integer by integer, between words with a common output set before the
remap. Sets of released words may agree by chance; about such words the guarantee promises nothing. Under P laws over the whole
lexicon and along lists have a short cut: the output that separates two words best is known. Under Q it is not known, so the loss
of P is stated as a bound of that of Q. For some words every output is compared.

The worst-case loss of a law over the whole lexicon, for each unit of distance. It covers all pairs, from the compiled sums.

Let P(u|w) = exp(-ε·m(w,u)/2)/Z(w) with m a metric. The output that separates w from w' best is then w or w' itself (triangle
inequality). So a pair loses ε·m/2 + |ln Z(w) - ln Z(w')|: V²/2 numbers in place of V³ (concepts/mechanisms, Guarantee and
certificate).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import F32, F64, U64, Ids
from dptext_spark.mechanisms.base import TOTAL, Sampler
from dptext_spark.mechanisms.matrices import pair_distances, squared_distances
from dptext_spark.mechanisms.privacy_loss.loss import (
    LOG_SLACK,
    Loss,
    compared_closely,
    evenly_spaced,
    internal_epsilon,
)
from dptext_spark.mechanisms.remap import telling
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler, cut_off
from dptext_spark.mechanisms.samplers.exponential_rows import log_normalisers
from dptext_spark.mechanisms.samplers.ordering import DIGITS, OrderingSampler
from dptext_spark.mechanisms.samplers.table import RemappedSampler, RemappedTable, outputs_in_common
from dptext_spark.mechanisms.truncated_gumbel import SelectionSampler
from dptext_spark.rounding import digits_up
from dptext_spark.runtime.display import Counted
from dptext_spark.runtime.jit import Int, compiled

ROWS = 32  # words looked at together, so that a tile of others serves them all from the cache
TILE = 64
SUMS = 1e-9  # relative: room for sums that were added up in another order than those of the rows


@compiled
def _steepest_rows(
    flat: Any, size: Int, logs: Any, cut: float, first: Int, last: Int, near: Any
) -> tuple[Any, Int, Int]:
    """Return (the largest |ln Z - ln Z'|/m, w, w') over rows first..last with later rows, but for those at distance 0."""
    best = 0.0
    best_i: Int = np.int64(-1)
    best_j: Int = np.int64(-1)
    words = logs.shape[0]
    for start in range(first, words, TILE):
        end = min(start + TILE, words)
        for i in range(first, last):
            if end - 1 <= i:
                continue
            squared_distances(flat, size, i, flat, start, end, near)
            for j in range(max(start, i + 1), end):
                gap = min(np.sqrt(near[j - start]), cut)
                if gap > 0.0:
                    slope = abs(logs[i] - logs[j]) / gap
                    if slope > best or best_i < 0:
                        best, best_i, best_j = slope, i, j
    return best, best_i, best_j


class SteepestPair(NamedTuple):
    """The pair that loses most for each unit of distance.

    Attributes:
        value: its loss, with slack.
        pair: its places among the words that were compared, None where no two differ.
    """

    value: float
    pair: tuple[int, int] | None


def steepest(
    vectors: F32, logs: F64, step: float, cut: float, progress: Counted | None = None
) -> SteepestPair:
    """Return the largest step + |ln Z - ln Z'| / min(distance, cut) over all pairs.

    Args:
        vectors: float32[n, d].
        logs: float64[n], ln Z.
        step: ε/2.
        cut: γ.
        progress: is told how many words are done.
    """
    vectors, count = np.ascontiguousarray(vectors), len(vectors)
    flat, size = vectors.reshape(-1), vectors.shape[1]

    def block(first: int) -> tuple[Any, int, int]:
        return _steepest_rows(flat, size, logs, cut, first, min(first + ROWS, count), np.empty(TILE))

    best = (0.0, -1, -1)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, part in enumerate(pool.map(block, range(0, count, ROWS))):
            if part[1] >= 0 and (best[1] < 0 or part[0] > best[0]):
                best = part
            if progress:
                progress(min((done + 1) * ROWS, count), count)
    slope, i, j = float(best[0]), int(best[1]), int(best[2])
    if i < 0:
        return SteepestPair(LOG_SLACK, None)
    value = step + slope
    return SteepestPair(value + LOG_SLACK * (1.0 + value), (i, j))


def by_distance(
    sampler: ExponentialSampler, progress: Counted | None = None, sample: int | None = None
) -> Loss:
    """Return the largest loss for each unit of distance over all pairs of words that the guarantee compares.

    The sum Z of a word that cannot come out (SanText+) obeys the same triangle inequality. If such a word may be released as it
    is, the guarantee does not compare it, and its loss is stated separately.

    Args:
        sampler: of SanText or TEM.
        progress: is told how many words are done.
        sample: look at pairs among so many words, spread evenly over the lexicon; the rest by the triangle inequality.
    """
    outputs, words = np.asarray(sampler.outputs), len(sampler.level)
    kept_share = float(sampler.law_columns().kept.max())
    compared = outputs if kept_share else np.arange(words, dtype=np.int32)
    ids = compared[evenly_spaced(len(compared), sample)]
    vectors, logs = np.asarray(sampler.vectors), np.asarray(sampler.log_normaliser)
    step, cut = float(sampler.figures[0]), float(sampler.figures[1])
    largest = steepest(vectors[ids], np.ascontiguousarray(logs[ids]), step, cut, progress)
    pairs, total = (n * (n - 1) // 2 for n in (len(ids), len(compared)))
    value, closed, attained, worst = largest.value, False, 0.0, None
    if largest.pair is not None:
        attained, worst = _attained_by_pair(
            sampler, ids, (int(ids[largest.pair[0]]), int(ids[largest.pair[1]]))
        )
        value = max(value, attained)
    method = f"every pair of {sampler.guarantee.compared}, by the exact sum of each law"
    if pairs < total:
        method = f"every pair among {len(ids):,} words at equal steps through the lexicon, by the exact sum of each law"
        value, closed = max(value, 2.0 * step), 2.0 * step <= sampler.guarantee.epsilon
        method += f"; no other pair loses more than {2.0 * step:.6g}, by the triangle inequality"
    others, outside = None, ""
    if kept_share:
        every = evenly_spaced(words, sample)
        bound = steepest(vectors[every], np.ascontiguousarray(logs[every]), step, cut, progress).value
        others = bound if len(every) == words else 2.0 * step
        outside = _outside_sample(others, kept_share)
    return Loss(
        value,
        attained,
        pairs,
        total,
        worst,
        method,
        closed=closed,
        others=others,
        additive=2.0 * sampler.slack,
        outside=outside,
    )


def _outside_sample(others: float, kept: float) -> str:
    """Write what words lose that are released as they are with probability `kept`."""
    return (
        "It does not cover words that are not sensitive. An output that is not sensitive reveals its input. On sensitive outputs "
        f"such a word loses at most {digits_up(others, 6)} for each unit of distance, with ln(1/p) = "
        f"{digits_up(-math.log1p(-kept), 6)} more against a sensitive word."
    )


def calibrated_whole(
    vectors: F32,
    epsilon: float,
    calibration: str,
    *,
    radius: Callable[[float], float] = lambda _: math.inf,
    outputs: Ids | None = None,
    keep: float = 0.0,
    note: str = "",
) -> ExponentialSampler:
    """Return the sampler of a law over the whole lexicon, its internal ε as published or raised to what the promise allows.

    The search needs the sums of the laws only; rows are compiled once.

    Args:
        vectors: float32[V, d].
        epsilon: the promise.
        calibration: `published` or `exact`.
        radius: γ for an internal ε.
        outputs: as of :meth:`ExponentialSampler.of`.
        keep: as of :meth:`ExponentialSampler.of`.
        note: as of :meth:`ExponentialSampler.of`.
    """
    if calibration == "published":
        return ExponentialSampler.of(vectors, epsilon, radius(epsilon), outputs=outputs, keep=keep, note=note)
    released = np.arange(len(vectors), dtype=np.int32) if outputs is None else outputs

    def loss(internal: float) -> float:
        step = internal / 2.0
        cut = cut_off(radius(internal), step)
        logs = log_normalisers(vectors, released, step, cut)
        return steepest(vectors, logs, step, cut).value * (1.0 + SUMS)

    internal = internal_epsilon(epsilon, loss)
    return ExponentialSampler.of(
        vectors, internal, radius(internal), outputs=outputs, keep=keep, note=note, promised=float(epsilon)
    )


def _attained_by_pair(
    sampler: ExponentialSampler, ids: Ids, pair: tuple[int, int]
) -> tuple[float, tuple[int, int]]:
    """Return (the largest loss for each unit of distance by the integers that are sampled, less their slack; its pair).

    The check runs over every output of the worst pair by the sums, and of pairs among some words. It would detect that another
    law is sampled than the one whose sums were compared.
    """
    words = np.unique(np.append(compared_closely(ids), pair)).astype(np.int32)
    probability = sampler.laws(words).dense(len(sampler.level))
    # What cannot come out: an infinite loss, where the other word leads there.
    with np.errstate(divide="ignore"):
        logs = np.log(probability[:, np.asarray(sampler.outputs)])
    flat, size, cut = sampler.vectors.reshape(-1), sampler.vectors.shape[1], float(sampler.figures[1])
    attained, worst, gaps = 0.0, pair, np.empty(1)
    for i, w in enumerate(words):
        for j in range(i):
            squared_distances(flat, size, int(w), flat, int(words[j]), int(words[j]) + 1, gaps)
            gap = min(math.sqrt(gaps[0]), cut)
            loss = float(np.abs(logs[i] - logs[j]).max()) - 2.0 * sampler.slack - LOG_SLACK
            if gap > 0.0 and loss / gap > attained:
                attained, worst = loss / gap, (int(words[j]), int(w))
    return attained, worst


# How far the count of numbers that give an output can be from its ideal value, see mechanisms/samplers/ordering.py.
COUNT_ERROR = Fraction(19, 2)
_COUNT_ERROR = float(COUNT_ERROR)
BLOCK = 512
READ = 512  # laws
LOOKED_AT = 64  # neighbours whose laws are compared count by count, for a loss that is surely attained
# Relative, of a loss: the roundings of a difference, a weight, their quotient and its logarithm.
ERROR = 1e-14
SLACK = 1e-9  # relative: what the logarithms of the bound can be off by


@compiled
def _steepest_step(edges: Any, start: Any, width: Any, many: float, first: Int, last: Int) -> tuple[Any, Int]:
    """Return (the largest ratio of counts between positions i and i + 1, that i), the error of counts included."""
    words = start.shape[0]
    best = 0.0
    at: Int = np.int64(-1)
    for i in range(first, last):
        for j in range(words):
            here = share(edges, start, width, i, j) * many
            next_count = share(edges, start, width, i + 1, j) * many
            ratio = max(
                (here + _COUNT_ERROR) / (next_count - _COUNT_ERROR),
                (next_count + _COUNT_ERROR) / (here - _COUNT_ERROR),
            )
            if ratio > best:
                best, at = ratio, i
    return best, at


@compiled
def share(edges: Any, start: Any, width: Any, i: Int, j: Int) -> float:
    """Return the probability of position j under position i, as the window says."""
    words = start.shape[0]
    low = start[i] if j == 0 else edges[words - 1 - i + j]
    high = start[i] + width[i] if j == words - 1 else edges[words - i + j]
    probability: float = np.float64(high - low) / np.float64(width[i])
    return probability


def by_steps(sampler: OrderingSampler, progress: Counted | None = None, sample: int | None = None) -> Loss:
    """Return the largest loss for each unit of the largest distance over the lists.

    Args:
        sampler: of the diffractor.
        progress: is told how many positions are done.
        sample: look at so many steps, spread evenly over the lists; those of the geometric law are all known anyhow.
    """
    words, lists = sampler.place.shape
    edges, start, width = (np.asarray(a) for a in (sampler.edges, sampler.start, sampler.width))
    many = TOTAL // lists
    if (width == width[0]).all():
        value, at = _exactly(edges, start, int(width[0]), many)
    else:
        best, at = 0.0, -1
        for first, last in _blocks(words - 1, sample):
            ratio, where = _steepest_step(edges, start, width, float(many), first, last)
            if ratio > best:
                best, at = float(ratio), int(where)
            if progress:
                progress(last + 1, words)
        value = math.log(best) * (1.0 + LOG_SLACK) + LOG_SLACK
    attained, worst = _attained_by_step(sampler, at)
    pairs = words * (words - 1) // 2
    if sample is not None and sample < words - 1 and (width != width[0]).any():
        method = f"{sample:,} steps of {words - 1:,} from a word of a list to the next, by the integers of the table"
        return Loss(value, attained, sample, pairs, worst, method)
    method = "every two neighbours of a list and every output, by the integers of the table; longer distances are sums of steps"
    return Loss(value, attained, pairs, pairs, worst, method)


def _blocks(steps: int, sample: int | None) -> list[tuple[int, int]]:
    """Return half-open ranges of steps, (first, one past the last): single steps of a sample, else blocks of all."""
    if sample is not None and sample < steps:
        return [(int(i), int(i) + 1) for i in evenly_spaced(steps, sample)]
    return [(first, min(first + BLOCK, steps)) for first in range(0, steps, BLOCK)]


def _exactly(edges: Any, start: Any, width: int, many: int) -> tuple[float, int]:
    """Return (the largest loss between neighbours, rounded up, the position of the first), in integers.

    For windows of equal width, as in the geometric law. There every step loses ε, as near as integers come, and float64 could
    not decide on which side. A ratio depends on the displacement alone, but at the two ends of the list.
    """
    words = len(start)
    table, first = [int(edge) for edge in edges], [int(edge) for edge in start]
    inner = [high - low for low, high in pairwise(table)]
    left = [table[words - i] - first[i] for i in range(words)]
    right = [first[i] + width - table[2 * words - 2 - i] for i in range(words)]
    worst, at = Fraction(1), 0
    # A displacement x and x - 1 belong to the same output under positions i and i + 1.
    for weights, at_an_end in ((inner[1:-1], False), (left, True), (right, True)):
        for number, pair in enumerate(pairwise(weights)):
            above = Fraction(max(pair) * many, width) + COUNT_ERROR
            below = Fraction(min(pair) * many, width) - COUNT_ERROR
            if above > worst * below:
                worst, at = above / below, number if at_an_end else 0
    exact = DIGITS.ln(DIGITS.divide(Decimal(worst.numerator), Decimal(worst.denominator)))
    rounded = float(exact)
    return (rounded if Decimal(rounded) >= exact else math.nextafter(rounded, math.inf)), at


def _attained_by_step(sampler: OrderingSampler, at: int) -> tuple[float, tuple[int, int]]:
    """Compare laws count by count for some neighbours, the worst position first; return (largest loss per unit, its pair)."""
    words, lists = sampler.place.shape
    positions = dict.fromkeys(
        [at, *np.linspace(0, words - 2, min(LOOKED_AT, words - 1)).astype(int).tolist()]
    )
    attained, worst = 0.0, (int(sampler.order[0, at]), int(sampler.order[0, at + 1]))
    for position in positions:
        pair = (int(sampler.order[0, position]), int(sampler.order[0, position + 1]))
        gap = max(
            abs(int(sampler.place[pair[0], chosen]) - int(sampler.place[pair[1], chosen]))
            for chosen in range(lists)
        )
        first, second = (sampler.law(word).weight.astype(np.float64) for word in pair)
        loss = (float(np.abs(np.log(first / second)).max()) - LOG_SLACK) / gap
        if loss > attained:
            attained, worst = loss, pair
    return attained, worst


def weights_of_groups(
    sampler: Sampler, groups: Ids, progress: Counted | None = None
) -> Iterator[tuple[Ids, U64 | None]]:
    """Give the words of each group of several, int32[n], and their weights, uint64[n, K]; None where their outputs differ.

    Args:
        sampler: with laws.
        groups: int32[V], equal numbers are of one group.
        progress: is told how many words are read.
    """
    order = np.argsort(groups, kind="stable").astype(np.int32)
    bounds = np.append(np.flatnonzero(np.diff(groups[order], prepend=-1)), len(order))
    first = 0
    while first < len(bounds) - 1:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + READ, side="right")) - 1)
        laws = sampler.laws(order[bounds[first] : bounds[last]])
        assert laws is not None
        for begin, end in pairwise((bounds[first : last + 1] - bounds[first]).tolist()):
            count, part = end - begin, slice(laws.starts[begin], laws.starts[end])
            if count > 1:
                # Ids ascend within a word: only equal sets repeat each other so.
                ids, weight = laws.ids[part], laws.weight[part]
                same = np.array_equal(ids, np.tile(ids[: len(ids) // count], count))
                words = order[bounds[first] + begin : bounds[first] + end]
                yield words, weight.reshape(count, -1) if same else None
        first = last
        if progress:
            progress(int(bounds[last]), len(order))


def within_groups(sampler: Sampler, words: int, progress: Counted | None = None) -> Loss:
    """Return the largest loss between words that share an output set (the same set of possible outputs), exactly.

    Over a group the worst loss of an output is ln of its largest weight over its smallest. So one pass over the group's table
    covers all pairs.
    """
    groups = outputs_in_common(sampler, words)
    return _between(sampler, groups, "every pair of words that share an output set", progress)


def by_groups(sampler: RemappedTable) -> Loss:
    """Return the largest loss between words that share an output set of P, exactly, from the integers that are sampled."""
    return _between(sampler, sampler.group, "every pair of words that shared an output set before the remap")


def _between(sampler: Sampler, groups: Ids, which: str, progress: Counted | None = None) -> Loss:
    """Return the largest loss between words within a group; `which` names the pairs."""
    value, worst, sizes = 0.0, None, np.bincount(groups)
    for members, weight in weights_of_groups(sampler, groups, progress):
        if weight is None:
            loss, pair = math.inf, _told_apart(sampler, members)
        else:
            high, low = weight.max(axis=0), weight.min(axis=0)
            # The difference of integers is exact, so that a small loss keeps its digits and equal weights lose nothing.
            losses = np.log1p((high - low).astype(np.float64) / low.astype(np.float64))
            loss, column = float(losses.max()), weight[:, losses.argmax()]
            pair = (int(members[column.argmax()]), int(members[column.argmin()]))
        if worst is None or loss > value:
            value, worst = loss, pair
    pairs = int((sizes * (sizes - 1) // 2).sum())
    method = f"{which}, and every output, from the integers that are sampled"
    return Loss(value * (1.0 + ERROR), value * (1.0 - ERROR), pairs, pairs, worst, method)


def _told_apart(sampler: Sampler, members: Ids) -> tuple[int, int]:
    """Return a word that leads to an output, and one of the same group that cannot."""
    laws = sampler.laws(members)
    assert laws is not None
    able = np.bincount(laws.ids)
    output = np.flatnonzero((able > 0) & (able < len(members)))[0]
    leads = np.isin(np.arange(len(members)), laws.owners[laws.ids == output])
    return int(members[leads][0]), int(members[~leads][0])


NEAREST = "nearest pairs"


def by_rank(sampler: SelectionSampler, words: int) -> Loss:
    """Compute the known loss of the worst pair of a word and its nearest other word, for each unit of distance.

    Args:
        sampler: of truncated Gumbel noise; its compilation ranked every word from its nearest other one.
        words: V.
    """
    pair = sampler.summary.pair
    places = words - sampler.summary.equal_vectors
    method = (
        "each word against its nearest other word: it comes out of itself whenever one word takes part, of the other only if so "
        f"many do as its rank there; for the worst pair rank {pair.rank:,}, and a loss of {pair.loss:.6g} at a distance of "
        f"{pair.distance:.4g}"
    )
    attained = max(0.0, pair.refuted_up_to) * (1.0 - SLACK)
    return Loss(
        math.inf,
        attained,
        places,
        words * (words - 1) // 2,
        (pair.words[0], pair.words[1]),
        method,
        among=NEAREST,
    )


def by_bound(sampler: RemappedSampler, before: Loss) -> Loss:
    """Return the loss of P as a bound of that of Q, and what pairs of some words lose under Q."""
    inner = sampler.inner
    compared = np.arange(len(sampler.table), dtype=np.int32)
    if isinstance(inner, ExponentialSampler) and inner.keeps:
        compared = np.asarray(inner.outputs, np.int32)
    some = compared_closely(compared)
    if before.worst is not None:
        some = np.unique(np.append(some, before.worst)).astype(np.int32)
    attained, worst = _attained_by_words(sampler, some)
    method = f"before the remap, which bounds what is released: {before.method}"
    outside = before.outside
    if isinstance(inner, ExponentialSampler) and before.others is not None and outside:
        outside = _outside_remap(sampler, before.others, inner)
    return replace(before, attained=attained, worst=worst or before.worst, method=method, outside=outside)


def _attained_by_words(sampler: RemappedSampler, words: Ids) -> tuple[float, tuple[int, int] | None]:
    """Return (the largest loss of Q for each unit of distance over all pairs of some words, less its slack; its pair)."""
    probability = sampler.laws(words).dense(len(sampler.table))
    possible = (probability > 0).any(axis=0)
    with np.errstate(divide="ignore"):
        logs = np.log(probability[:, possible])
    slack = 2.0 * (sampler.inner.summary.rounding or 0.0) + LOG_SLACK
    attained, worst = 0.0, None
    distances = _distances(sampler, words)
    for i in range(1, len(words)):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(logs[i] - logs[:i])
        losses = np.nan_to_num(gaps, nan=0.0, posinf=np.inf).max(axis=1) - slack
        away = distances[i, :i]
        slopes = np.where(away > 0, losses / np.where(away > 0, away, 1.0), 0.0)
        at = int(slopes.argmax())
        if slopes[at] > attained:
            attained, worst = float(slopes[at]), (int(words[at]), int(words[i]))
    return attained, worst


def _distances(sampler: RemappedSampler, words: Ids) -> F64:
    """Return the distances that the guarantee counts, float64[n, n]."""
    inner = sampler.inner
    if isinstance(inner, OrderingSampler):
        place = np.asarray(inner.place)[words].astype(np.int64)
        return np.asarray(np.abs(place[:, None] - place[None]).max(axis=2), np.float64)
    assert isinstance(inner, ExponentialSampler)
    others = np.tile(words, (len(words), 1))
    return np.minimum(pair_distances(np.asarray(inner.vectors), words, others), float(inner.figures[1]))


def _outside_remap(sampler: RemappedSampler, others: float, inner: ExponentialSampler) -> str:
    """Write what words of SanText+ lose that are not sensitive."""
    alone, words = len(sampler.table) - len(inner.outputs), len(telling(inner, sampler.table))
    stays = float(inner.law_columns().kept.max())
    return (
        f"It does not cover words that are not sensitive. Released as it is, such a word is revealed by {words:,} of {alone:,} "
        "outputs, because they come of it alone, and by the others as far as few words lead to them. On all other outputs "
        f"it loses at most {digits_up(others, 6)} for each unit of distance, with ln(1/p) = "
        f"{digits_up(-np.log1p(-stays), 6)} more against a sensitive word."
    )
