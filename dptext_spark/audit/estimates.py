"""What audits return of one figure: an estimate with its bounds, a metric of a table, how a figure is spread over words.

Rates have bootstrap intervals over records, because the words of one record are not independent.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64
from dptext_spark.runtime.validation import Json

RESAMPLES = 1_000
CONFIDENCE = 0.95
AT_ONCE = 1 << 22  # numbers of records that are drawn at once
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
_SEED = int.from_bytes(
    hashlib.sha256(b"bootstrap").digest()[:8], "little"
)  # public: an interval is repeatable


@dataclass(frozen=True)
class Estimate:
    """A figure with its bounds.

    Attributes:
        value: as measured.
        lower: a bound, or the lower end of an interval.
        upper: as that.
        exact: whether it was read off laws, and the bounds are the value.
    """

    value: float
    lower: float
    upper: float
    exact: bool = False

    @classmethod
    def known(cls, value: float) -> Estimate:
        """Return a figure that is exact."""
        return cls(value, value, value, exact=True)


@dataclass(frozen=True)
class Metric:
    """A figure of a table, as the table of metrics and requirements name it.

    Attributes:
        name: of the figure.
        value: None where nothing could be counted.
        lower: of its interval; None where it was counted, not estimated. And `upper`.
        column: the text column; None for the whole table.
    """

    name: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    column: str | None = None

    @classmethod
    def of(cls, name: str, found: Estimate) -> Metric:
        """Return an estimate under its name."""
        return cls(name, found.value, found.lower, found.upper)

    def as_dict(self) -> dict[str, Json]:
        """Return the fields."""
        return asdict(self)


def rate_interval(
    hits: npt.ArrayLike, totals: npt.ArrayLike, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return the percentile interval of Σ hits / Σ totals over `RESAMPLES` times resampled records (Efron 1979).

    Args:
        hits: [s], of each record; may be differences.
        totals: [s], what could have been hit.
        confidence: of the interval.

    Returns:
        (lower, upper); (0, 0) where nothing could be hit.
    """
    top, bottom = np.asarray(hits, np.float64), np.asarray(totals, np.float64)
    # Records without anything to hit change no rate.
    top, bottom = top[bottom > 0], bottom[bottom > 0]
    if not len(top):
        return 0.0, 0.0
    random = np.random.default_rng(_SEED)
    rates: list[F64] = []
    step = max(1, AT_ONCE // len(top))
    for start in range(0, RESAMPLES, step):
        chosen = random.integers(0, len(top), (min(step, RESAMPLES - start), len(top)))
        rates.append(top[chosen].sum(axis=1) / bottom[chosen].sum(axis=1))
    return middle(np.concatenate(rates), confidence)


def middle(resampled: F64, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the ends of the middle share of resampled figures: their percentile interval."""
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def rate(hits: npt.ArrayLike, totals: npt.ArrayLike) -> Estimate:
    """Return Σ hits / Σ totals with its :func:`rate_interval`; 0 where nothing could be hit."""
    value = float(np.sum(hits)) / max(1, int(np.sum(totals)))
    return Estimate(value, *rate_interval(hits, totals))


def mean(values: F64) -> Estimate:
    """Return the mean of a figure of each record, float64[s], with its interval."""
    return Estimate(float(values.mean()), *rate_interval(values, np.ones(len(values))))


def percentile(ascending: F64, rank: float) -> float:
    """Return the smallest value that at least `rank` percent of the values do not exceed: always one of them.

    Args:
        ascending: float64[n], n >= 1.
        rank: 0 to 100.
    """
    # 7 % of 100 words are 7 of them, though 0.07·100 is 7.000000000000001.
    place = math.ceil(round(rank * len(ascending) / 100.0, 9))
    return float(ascending[max(place, 1) - 1])


def statistic(values: F64, name: str) -> tuple[float, int | None]:
    """Return (a statistic of float64[n], the place of a value that is it; None for the mean).

    Args:
        values: float64[n], n >= 1.
        name: `max`, `min`, `mean`, or a percentile as `p99`.
    """
    if name == "mean":
        return float(values.mean()), None
    rank = {"min": 0.0, "max": 100.0}.get(name)
    value = percentile(np.sort(values), float(name[1:]) if rank is None else rank)
    return value, int(np.flatnonzero(values == value)[0])


@dataclass(frozen=True)
class Distribution:
    """A figure's distribution over words.

    Attributes:
        words: how many.
        percentiles: `min`, `p1`, ..., `max`, by :func:`percentile`.
        mean: the mean.
        edges: of the histogram's bins; each holds its lower edge, the last one also its upper.
        counts: words in each bin.
    """

    words: int
    percentiles: dict[str, float]
    mean: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: F64, edges: Sequence[float]) -> Distribution:
        """Return the spread of float64[n], n >= 1, over bins; what lies outside of them counts to the first or the last."""
        ascending = np.sort(values)
        named = {f"p{rank}": percentile(ascending, rank) for rank in PERCENTILES}
        ends = (float(ascending[0]), float(ascending[-1]))
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), np.asarray(edges, np.float64))
        return cls(
            len(values),
            {"min": ends[0], **named, "max": ends[1]},
            float(values.mean()),
            tuple(float(edge) for edge in edges),
            tuple(int(count) for count in counts),
        )

    def at(self, name: str) -> float:
        """Return the mean, or one of the percentiles by its name."""
        return self.mean if name == "mean" else self.percentiles[name]

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able."""
        return {
            "words": self.words,
            **self.percentiles,
            "mean": self.mean,
            "histogram": {"edges": list(self.edges), "counts": list(self.counts)},
        }


def count_edges(most: int) -> tuple[float, ...]:
    """Return bins for counts from 0 to `most`: 0, 1, 2, 5, 10, 20, 50, ..."""
    edges = [0.0, 1.0]
    while edges[-1] < most:
        # 1, 2 and 5 times each power of ten.
        edges.append(edges[-1] * (2.5 if f"{edges[-1]:.0f}".startswith("2") else 2.0))
    return tuple(edges)
