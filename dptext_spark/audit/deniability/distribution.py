"""How a figure is spread over the words of a lexicon: percentiles, mean, histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dptext_spark.arrays import F64

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


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

    def as_dict(self) -> dict[str, Any]:
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
