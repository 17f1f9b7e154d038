"""The noise sampler: add noise to a word's vector, release the word nearest to the sum (concepts/mechanisms, Samplers).

Tokens go through in tiles: random bits, noise, noisy vectors. A table of near neighbours settles those with short noise, and a
search over the whole lexicon the others. The answer is that of a plain float64 search, and depends on the word and its numbers
alone. Where an approximate search is asked for, its index answers every draw, and no table is made: see
:mod:`~dptext_spark.mechanisms.samplers.approximate` for why.

Noise is made in float64 from 64 random bits a number. The noisy vector is never released, only the word next to it; this is
post-processing. But the law of a float64 vector is not exactly the real vector's (Mironov 2012, On Significance of the Least
Significant Bits for Differential Privacy). So guarantees are stated for noise in real numbers.

The noise laws are drawn by inverse distribution functions in our own code. A draw has a fixed number of 64-bit lanes and no
rejection. Both tails are exact. A uniform number is never 0 or 1, and each tail is computed from the number of its own side. The
noise is a float64. Its law is exact up to the rounding of the last few units in the last place, and the 2^-64 steps of the
uniform numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, U64, Ids, Vectors, read_only
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import REFUTES, Ends, Quantiles, Sampler, Summary
from dptext_spark.mechanisms.elementary import (
    expm1,
    gamma_quantile,
    laplace_quantile,
    log1p,
    logarithm,
    normal_quantile,
)
from dptext_spark.mechanisms.matrices import transform
from dptext_spark.mechanisms.samplers.approximate import (
    POINTS,
    CellIndex,
    Search,
    recall,
    with_recall,
    words_evenly,
)
from dptext_spark.mechanisms.samplers.nearest import OPEN, SIZE, TOKENS, NeighborTable, Targets
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.validation import Record

PROBES = 1000  # draws of noise that say how long it is
LARGEST = 1e150  # longer noise has a square that float64 does not hold

FLOATING_POINT = (
    "This holds for noise in real numbers. The noise is computed in float64 from 64 random bits a number, and the released "
    "word is a function of that float64 vector. The effect of rounding on the bound is not proved (Mironov 2012)."
)
SINGULAR = 1e6  # condition number from which the matrix that shapes noise is not inverted
NOISES = ("radial", "laplace", "gaussian", "truncated_laplace")
RADIAL, LAPLACE, GAUSSIAN, TRUNCATED_LAPLACE = range(4)
_SIGN = np.uint64(1 << 63)
_STEP = 2.0**-63


@dataclass(frozen=True)
class SearchSummary(Record):
    """An approximate search.

    Attributes:
        recall: share of the searches that find what an exact one finds, over `recall_draws` noisy vectors.
        recall_draws: how many were tried.
        searched: how many of them a search looks at.
    """

    index: str
    recall: float
    recall_draws: int
    cells: int
    searched: int


@dataclass(frozen=True, kw_only=True)
class NoiseSummary(Summary):
    """Figures of noise on vectors.

    Attributes:
        dimensions: d, of the vectors that are searched.
        noise_length: of 1,000 draws.
        nearest_distance: between a word and its nearest other one, over the words; None where no table was made.
        eigenvalues: the ends of those of M, which shapes the noise.
        projected_from: the dimensions before it.
        clip: the length to which longer vectors are shortened.
        clipped_share: share of the words whose vectors are longer.
        snap: which vectors a noisy one is compared with.
        variance: of a coordinate of the noise.
        calibration: how the scale was found.
        dimensions_calibrated: for which truncated noise is made.
        bound: where truncated noise ends.
        laplace_variance: of plain Laplace noise at this ε.
        delta: δ of the promise.
        exit_probability: that truncated noise shows which of two words it was, for one pair of opposite vectors.
        exit_bound: the same for any pair.
    """

    dimensions: int | None = None
    noise: str | None = None
    noise_length: Quantiles | None = None
    nearest_distance: Quantiles | None = None
    search: SearchSummary | None = None
    eigenvalues: Ends | None = None
    seed: int | None = None
    projected_from: int | None = None
    clip: float | None = None
    clipped_share: float | None = None
    snap: str | None = None
    scale: float | None = None
    variance: float | None = None
    calibration: str | None = None
    dimensions_calibrated: int | None = None
    bound: float | None = None
    laplace_variance: float | None = None
    delta: float | None = None
    exit_probability: float | None = None
    exit_bound: float | None = None


@dataclass(frozen=True, eq=False)
class NoiseSampler(Sampler):
    """Sampler that adds noise to vectors and snaps to the nearest word.

    Attributes:
        centers: float32[V, d], what noise is added to.
        targets: the vectors that a noisy vector is snapped to, often the centers.
        noise: one of `NOISES`.
        parameters: float64[p], of the noise.
        columns: float64[d, d], the columns of a matrix that multiplies the noise, one a row; or float64[0, 0].
        second: t of the rule that may release the second nearest word (Vickrey); None: never.
        table: the nearest targets of each center, or none.
        index: of an approximate search; None: the search is exact.
    """

    summary_type = NoiseSummary
    cost = "a search over the lexicon a token, or none where the noise cannot reach another word"
    certified_by = f"by draws of the words of near and distant pairs: a lower bound on the loss at a stated confidence; {REFUTES}"
    searches = True

    centers: Vectors
    targets: Targets
    noise: str
    parameters: F64
    columns: F64
    second: float | None
    table: NeighborTable
    guarantee: Guarantee
    summary: NoiseSummary = NoiseSummary()
    index: CellIndex | None = None

    @classmethod
    def of(
        cls,
        centers: Vectors,
        targets: Vectors,
        noise: str,
        parameters: tuple[float, ...],
        guarantee: Guarantee,
        summary: NoiseSummary,
        *,
        matrix: F64 | None = None,
        second: float | None = None,
        neighbors: int = SIZE,
        search: Search = "exact",
    ) -> NoiseSampler:
        """Build the sampler, with a table of neighbours where noise can be short enough for it.

        Args:
            centers: float32[V, d].
            targets: float32[V, d]; the same object as `centers` where they are the same.
            noise: one of `NOISES`.
            parameters: of the noise, see :func:`~dptext_spark.mechanisms.samplers.noise.fill`.
            guarantee: what holds for one draw.
            summary: public figures; those of the noise are added.
            matrix: float64[d, d], multiplies the noise.
            second: t in [0, 1].
            neighbors: the size of the table, 2 or more; 0 for none. It never changes a draw.
            search: `exact`, or the kind of an approximate index, which is made here.

        Raises:
            SettingsError: the noise is so long that float64 does not hold its square.
        """
        words, size = centers.shape
        stored_centers = read_only(centers)
        sampler = cls(
            centers=stored_centers,
            targets=Targets.of(stored_centers if targets is centers else read_only(targets)),
            noise=noise,
            parameters=np.array(parameters, np.float64),
            columns=np.zeros((0, 0)) if matrix is None else matrix.T,
            second=second,
            table=NeighborTable.none(words),
            guarantee=guarantee,
        )
        lengths = sampler.noise_lengths()
        if not float(lengths[-1]) <= LARGEST:
            raise SettingsError(
                f"mechanism.epsilon: {guarantee.epsilon!r} is not valid, because its noise is longer than 1e150. Choose a "
                "greater one."
            )
        summary = replace(summary, words=words, dimensions=size, noise=noise, noise_length=_spread(lengths))
        nearest_count = 1 if second is None else 2
        if search != "exact":
            index = CellIndex.of(sampler.targets.vectors)
            rows = words_evenly(words)
            points = stored_centers[rows] + sampler._noise_of_public_draws(len(rows))
            share = recall(index, sampler.targets, points, nearest_count)
            sampler = replace(sampler, index=index, guarantee=with_recall(guarantee, search, share))
            summary = replace(summary, search=SearchSummary(search, share, len(rows), *index.cells_searched))
        elif targets is centers:
            table, gaps = NeighborTable.for_noise(stored_centers, lengths, nearest_count, neighbors)
            sampler = replace(sampler, table=table)
            summary = replace(summary, nearest_distance=_spread(gaps))
        return replace(sampler, summary=summary)

    def noise_lengths(self) -> F64:
        """Return the lengths of 1,000 draws of noise by public numbers, ascending: float64[1000]."""
        noise = self._noise_of_public_draws(PROBES)
        with np.errstate(all="ignore"):  # an overflow is told by its result
            return np.sort(np.sqrt(np.cumsum(noise * noise, axis=1)[:, -1]))

    def _noise_of_public_draws(self, n: int) -> F64:
        """Return the noise of n draws by public numbers, float64[n, d]."""
        blocks = np.zeros((n, 2), np.uint64)
        blocks[:, 0] = np.arange(n)
        return self._noise(self._bits(Draws(bytes(32), blocks), slice(0, n)))

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n]; equal blocks of equal words are drawn once."""
        first, where = _distinct(ids, draws.blocks)
        if len(first) < len(ids):
            return self._sample(ids[first], draws.take(first))[where]
        return self._sample(ids, draws)

    def noisy(self, ids: Ids, draws: Draws) -> F64:
        """Compute the noisy vectors behind :meth:`sample`, for audits alone: vectors of int32[n] with noise, float64[n, d]."""
        out = np.empty((len(ids), self.centers.shape[1]))
        for start in range(0, len(ids), TOKENS):
            rows = slice(start, min(start + TOKENS, len(ids)))
            out[rows] = self.centers[ids[rows]] + self._noise(self._bits(draws, rows))
        return out

    def _sample(self, ids: Ids, draws: Draws) -> Ids:
        out = np.empty(len(ids), np.int32)
        nearest_count = 1 if self.second is None else 2
        tile = TOKENS if self.index is None else POINTS
        # What the table leaves open is searched a full tile at a time: a product of few rows costs what many cost.
        at, coins = np.empty(0, np.int64), np.empty(0, np.uint64)
        points = np.empty((0, self.centers.shape[1]))
        for start in range(0, len(ids), tile):
            rows = slice(start, min(start + tile, len(ids)))
            bits = self._bits(draws, rows)
            noisy = self._noise(bits)
            coin = np.ascontiguousarray(bits[:, -1])
            words = self.table.settle(ids[rows], self.centers, self.targets, noisy, nearest_count)
            out[rows] = self._released(noisy, words, coin)
            left = np.flatnonzero(words[:, 0] == OPEN)
            at, points, coins = _joined((at, left + start), (points, noisy[left]), (coins, coin[left]))
            ready = len(at) if rows.stop == len(ids) else len(at) - len(at) % tile
            if ready:
                words = self._search(points[:ready], nearest_count)
                out[at[:ready]] = self._released(points[:ready], words, coins[:ready])
                at, points, coins = at[ready:], points[ready:], coins[ready:]
        return out

    def _search(self, points: F64, wanted: int) -> Ids:
        if self.index is None:
            return self.targets.search(points, wanted)
        return self.index.search(self.targets, points, wanted)

    def _bits(self, draws: Draws, rows: slice) -> U64:
        """Return uint64[n, lanes]; where a second word can come out, the last number of a row is for that choice."""
        lanes = lanes_of(self.noise, self.centers.shape[1]) + (self.second is not None)
        bits = np.empty((rows.stop - rows.start, lanes), np.uint64)
        for lane in range(0, lanes, 2):
            bits[:, lane : lane + 2] = draws.pair(lane // 2, rows)[:, : lanes - lane]
        return bits

    def _noise(self, bits: U64) -> F64:
        """Return the noise, float64[n, d]."""
        noise = np.empty((len(bits), self.centers.shape[1]))
        fill(NOISES.index(self.noise), self.parameters, bits, noise)
        if not len(self.columns):
            return noise
        turned = np.empty_like(noise)
        transform(self.columns, noise, turned)
        return turned

    def _released(self, noisy: F64, found: Ids, coins: U64) -> Ids:
        """Return the nearest word of each, or by the rule of Vickrey one of the two nearest: int32[n]."""
        if self.second is None:
            return found[:, 0]
        out = np.empty(len(found), np.int32)
        choose_second(noisy, self.targets.vectors, found, coins, self.second, out)
        return out

    def noisy_vectors(self) -> NoiseSampler | None:
        """Return itself where the density of the noise is known everywhere: a matrix that multiplies it can be taken back."""
        known = not len(self.columns) or float(np.linalg.cond(self.columns)) < SINGULAR
        return self if known else None

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that sampling needs; `targets` only if they are not the centers."""
        named: dict[str, npt.NDArray[Any]] = {
            "centers": self.centers,
            "halves": self.targets.halves,
            "noise": np.array([NOISES.index(self.noise)], np.int64),
            "parameters": self.parameters,
            "columns": self.columns,
            "second": np.array([] if self.second is None else [self.second], np.float64),
            "near": self.table.near,
            "reach": self.table.reach,
        }
        if self.index is not None:
            named |= self.index.arrays()
        return named if self.targets.vectors is self.centers else named | {"targets": self.targets.vectors}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], guarantee: Guarantee, summary: Summary
    ) -> NoiseSampler:
        """Build again from :meth:`arrays`."""
        assert isinstance(summary, NoiseSummary)
        stored = {name: read_only(array) for name, array in arrays.items()}
        return cls(
            stored["centers"],
            Targets(stored.get("targets", stored["centers"]), stored["halves"]),
            NOISES[int(stored["noise"][0])],
            stored["parameters"],
            stored["columns"],
            float(stored["second"][0]) if len(stored["second"]) else None,
            NeighborTable(stored["near"], stored["reach"]),
            guarantee,
            summary,
            CellIndex.restore(stored) if "cells.words" in stored else None,
        )


def _joined(*pairs: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], ...]:
    return tuple(np.concatenate(pair) if len(pair[0]) else pair[1] for pair in pairs)


def _spread(ascending: F64) -> Quantiles:
    """Return the ends and the middle of sorted figures."""
    return Quantiles(float(ascending[0]), float(ascending[-1]), float(ascending[len(ascending) // 2]))


def _distinct(ids: Ids, blocks: U64) -> tuple[I64, I64]:
    """Return (first place of each distinct pair of word and block, pair of each draw)."""
    order = np.lexsort((ids, blocks[:, 1], blocks[:, 0]))
    word, block = ids[order], blocks[order]
    new = np.ones(len(ids), bool)
    new[1:] = (word[1:] != word[:-1]) | (block[1:] != block[:-1]).any(axis=1)
    where = np.empty(len(ids), np.int64)
    where[order] = np.cumsum(new) - 1
    return order[new], where


def lanes_of(noise: str, dimensions: int) -> int:
    """Return the number of 64-bit numbers that one draw of `noise` (one of `NOISES`) reads in `dimensions` dimensions."""
    return dimensions + 1 if NOISES.index(noise) == RADIAL else dimensions


@compiled
def truncated_laplace_quantile(bits: Int, end: float, less: float) -> Any:
    """Return a draw with density ∝ e^-|x| on [-end, end], from 64 random bits: the first is the sign.

    With w uniform, |x| = -ln(1 - w·(1 - e^-end)). For large w it is -ln(v + w·e^-end), v = 1 - w from the bits themselves.

    Args:
        bits: uint64.
        end: the bound, in units of the scale.
        less: 1 - e^-end.
    """
    rest = bits & ~_SIGN
    w = (np.float64(rest) + 0.5) * _STEP
    if w * less <= 0.25:
        size = -log1p(-(w * less))
    else:
        v = (np.float64(~_SIGN - rest) + 0.5) * _STEP
        size = -logarithm(v + w * (1.0 - less))
    size = min(size, end)
    return size if bits & _SIGN else -size


@compiled
def _fill_radial(epsilon: float, log_factor: float, bits: Any, out: Any) -> None:
    """Length from the gamma law by lane 0, direction from normal numbers by the other lanes."""
    size = out.shape[1]
    for i in range(out.shape[0]):
        square = 0.0
        for j in range(size):
            out[i, j] = normal_quantile(bits[i, j + 1])
            square += out[i, j] * out[i, j]
        length = gamma_quantile(bits[i, 0], size, log_factor) / epsilon
        if square == 0.0:  # only where every normal number is 0: probability 2^-54 to the power d
            out[i, 0] = length if bits[i, 1] & _SIGN else -length
        else:
            scale = length / math.sqrt(square)
            for j in range(size):
                out[i, j] *= scale


@compiled
def fill(noise: Int, parameters: Any, bits: Any, out: Any) -> None:
    """Draw noise for each row.

    Args:
        noise: index in `NOISES`: `radial`, density ∝ e^(-ε|z|) with |z| Euclidean, parameters (ε, ln (d-1)!);
            `laplace`, parameters (scale); `gaussian`, parameters (standard deviation); `truncated_laplace`, density of a
            coordinate ∝ e^(-|x|/scale) on [-A, A], parameters (scale, A).
        parameters: float64[p].
        bits: uint64[n, lanes], uniform; lanes as :func:`lanes_of`.
        out: float64[n, d], filled.
    """
    if noise == RADIAL:
        _fill_radial(parameters[0], parameters[1], bits, out)
        return
    scale = parameters[0]
    end = 0.0
    less = 0.0
    if noise == TRUNCATED_LAPLACE:
        end = parameters[1] / scale
        less = -expm1(-end)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if noise == LAPLACE:
                out[i, j] = scale * laplace_quantile(bits[i, j])
            elif noise == GAUSSIAN:
                out[i, j] = scale * normal_quantile(bits[i, j])
            else:
                x = scale * truncated_laplace_quantile(bits[i, j], end, less)
                out[i, j] = min(max(x, -parameters[1]), parameters[1])


@compiled
def choose_second(noisy: Any, words: Any, found: Any, coins: Any, t: float, out: Any) -> None:
    """Release the nearest word, or the second, by a coin that looks at the noisy vector alone (Vickrey).

    Let d1 <= d2 be the distances of the noisy vector to its nearest and its second nearest word. The nearest is released with
    probability (1-t)·d2 / (t·d1 + (1-t)·d2).

    Where d2 = 0 (so d1, too) the probability is 1-t; where t = 1, it is 0.

    Args:
        noisy: float64[n, d].
        words: float32[V, d].
        found: int32[n, 2], the nearest and the second nearest word, or `OPEN`, which stays.
        coins: uint64[n].
        t: in [0, 1].
        out: int32[n], filled.
    """
    for i in range(out.shape[0]):
        out[i] = found[i, 0]
        if found[i, 0] == OPEN:
            continue
        d1 = _distance(noisy[i], words[found[i, 0]])
        d2 = _distance(noisy[i], words[found[i, 1]])
        rest = (1.0 - t) * d2
        p = 1.0 - t if d2 == 0.0 or t == 1.0 else rest / (t * d1 + rest)
        if p < 1.0 and coins[i] >= np.uint64(p * 2.0**64):
            out[i] = found[i, 1]


@compiled
def _distance(x: Any, y: Any) -> Any:
    """Return the Euclidean distance of float64[d] and float32[d], summed in order."""
    total = 0.0
    for k in range(x.shape[0]):
        gap = x[k] - np.float64(y[k])
        total += gap * gap
    return np.sqrt(total)
