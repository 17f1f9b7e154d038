"""Results of audits: estimates with bounds, metrics, the description of a result, and its form as JSON.

Every audit returns an :class:`AuditResult`; writing it to JSON and reading it again loses nothing. The attacks that guess words
are :class:`WordAttack`; a result of a kind that this version does not know is an :class:`OtherResult`.

Rates have bootstrap intervals over records, because the words of a record are not independent.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue, TypeAdapter

from dptext_spark.arrays import F64
from dptext_spark.config.requirements import Metric
from dptext_spark.runtime.validation import Json

RESAMPLES = 1_000
CONFIDENCE = 0.95
BOOTSTRAPPED: Mapping[str, Any] = {"confidence": CONFIDENCE, "resamples": RESAMPLES}  # fields of a result
AT_ONCE = 1 << 22  # numbers of records that are drawn at once
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
_SEED = int.from_bytes(
    hashlib.sha256(b"bootstrap").digest()[:8], "little"
)  # public: an interval is repeatable


@dataclass(frozen=True)
class Estimate:
    """A figure with its bounds.

    Attributes:
        lower: a bound, or the lower end of an interval.
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

    def metric(self, name: str) -> Metric:
        """Return the estimate as a metric of a table."""
        return Metric(name, self.value, self.lower, self.upper)


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
    """Return the smallest value that at least `rank` percent of the values do not exceed: always an element of `ascending`.

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
        percentiles: `min`, `p1`, ..., `max`, by :func:`percentile`.
        edges: of the histogram's bins; each holds its lower edge, the last one also its upper.
    """

    words: int
    percentiles: dict[str, float]
    mean: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: F64, edges: Sequence[float]) -> Distribution:
        """Return the spread of float64[n], n >= 1, over bins; values outside count to the first or the last bin."""
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


Figures = Mapping[str, Estimate | float]
"""Figures by what each is: estimates, or plain numbers."""

Result = TypeVar("Result", bound="AuditResult")
UNPROTECTED = "unprotected text"
_NO_GROUPS = ("baselines", "settings", "also", "axes")


@dataclass(frozen=True)
class Group:
    """Figures of a result that make one chart.

    Attributes:
        name: what they are; empty for figures that need no heading beside the result's own.
        axis: the label along the chart; empty for the name.
        shows: what the chart shows, in a sentence; the first chart of a result shows what the result measures.
    """

    name: str
    figures: Figures
    axis: str = ""
    shows: str = ""


@dataclass(frozen=True)
class ResultView:
    """A result in the form that a report shows.

    Attributes:
        groups: each is a chart, or only a table where a figure is below 0.
        baselines: what the first group is compared with.
        singles: figures of a table.
        read: how the charts are read, where no general sentence says it.
    """

    groups: Sequence[Group] = ()
    baselines: Figures = field(default_factory=dict)
    singles: Figures = field(default_factory=dict)
    read: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """Result of an audit, with its own description.

    A field whose default is None is left out of the JSON where its value is unknown.

    Attributes:
        measures: what was measured, in a sentence.
        knows: what the adversary knows; None where there is none.
        exact: whether the figures were read off laws or counted; else they are estimates.
        restricted: whether they depend on private text.
        draws: of each word, where a law was counted from draws.
        how: how it was found, where that is neither exact nor told by the fields above.
        open: whether a better adversary may find more.
        audit: the run that wrote the audited table, where a result was read from the audit of a table.
        table: the audited table, likewise.
        extra: what was read beside these fields.
    """

    name: str = ""
    measures: str = ""
    knows: str | None = None
    exact: bool = False
    restricted: bool = True
    confidence: float | None = None
    draws: int | None = None
    resamples: int | None = None
    how: str | None = None
    also: Mapping[str, str] | None = None
    open: bool | None = None
    settings: Mapping[str, JsonValue] | None = None
    audit: str | None = None
    table: str | None = None
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    def shown(self) -> ResultView:
        """Return the result as a report shows it; an attack on words is drawn as such."""
        return ResultView()

    def without_names(self) -> AuditResult | None:
        """Return the result without names; None where nothing is left."""
        return self

    @property
    def is_attack(self) -> bool:
        """True if the result describes an adversary's success, not the utility of the text."""
        return self.knows is not None

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        values = {
            attribute.name: _plain(value)
            for attribute in fields(self)
            if attribute.name != "extra"
            and not ((value := getattr(self, attribute.name)) is None and attribute.default is None)
        }
        return values | dict(self.extra)

    @classmethod
    def from_dict(cls: type[Result], values: Mapping[str, JsonValue]) -> Result:
        """Build from :meth:`as_dict`; :class:`ValueError`: a field is missing or of another type."""
        defaults = {
            attribute.name: attribute.default for attribute in fields(cls) if attribute.name != "extra"
        }
        # A null that `as_dict` would leave out goes to `extra`, so that it is written back as it was read.
        own = {
            n: value
            for n, value in values.items()
            if n in defaults and not (value is None and defaults[n] is None)
        }
        result = TypeAdapter(cls).validate_json(json.dumps(own), strict=True)
        return replace(result, extra={name: value for name, value in values.items() if name not in own})


@dataclass(frozen=True, kw_only=True)
class WordAttack(AuditResult):
    """An attack that guesses words, with its baselines.

    Attributes:
        success: the share of the words that it guesses.
        lower: a bound of the success, or of the best possible attack; and `upper`.
        worst: the same on the words that it finds most often; with `worst_lower` and `worst_upper`.
        random: what a random guess finds.
        most_frequent: always naming the commonest word.
        bigram_baseline: the context alone, without the output.
        bayes: each word alone, without context.
        unchanged: naming the output itself.
        unprotected: the text without replacement.
    """

    success: float
    lower: float | None = None
    upper: float | None = None
    worst: float | None = None
    worst_lower: float | None = None
    worst_upper: float | None = None
    random: float | None = None
    most_frequent: float | None = None
    bigram_baseline: float | None = None
    bayes: float | None = None
    unchanged: float | None = None
    unprotected: float | None = None

    def baselines(self) -> dict[str, float]:
        """The baselines of the success, in the order in which they are drawn."""
        named = {
            "random guess": self.random,
            "always the commonest word": self.most_frequent,
            "context alone, without the output": self.bigram_baseline,
            "each word alone, without context": self.bayes,
            "the output itself as the guess": self.unchanged,
            UNPROTECTED: self.unprotected,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def is_attack(self) -> bool:
        """True."""
        return True

    @property
    def at_most(self) -> float:
        """The largest success that is possible, as far as it is bounded."""
        return self.success if self.upper is None else self.upper

    def metric(self, name: str) -> Metric:
        """Return its success as a metric of a table."""
        return Metric(name, self.success, self.lower, self.upper)

    @property
    def worst_at_most(self) -> float:
        """The same on the words that are found most often; 0 where that was not measured."""
        return self.worst_upper or self.worst or 0.0


@dataclass(frozen=True, kw_only=True)
class OtherResult(AuditResult):
    """A result of a kind that has no class here, as it was read.

    A figure is a number, or an estimate (`value`, `lower`, `upper`); an object of named figures is a group. `says` holds a
    sentence for groups after the first, and `axes` the label along each. `unit` is the label along the group `figures`, and
    `baselines` holds the comparison for the first group.
    """

    def shown(self) -> ResultView:
        """Show every object that holds nothing but figures, and every single figure."""
        says, axes = (_texts(self.extra.get(name)) for name in ("says", "axes"))
        unit = str(self.extra.get("unit", "value"))
        named_groups = ((name, _group(value)) for name, value in self.extra.items() if name not in _NO_GROUPS)
        groups = [
            Group("", figures, axes.get(name) or unit)
            if name == "figures"
            else Group(name, figures, axes.get(name, name), says.get(name, ""))
            for name, figures in named_groups
            if figures
        ]
        singles = {name: _figure(value) for name, value in self.extra.items()}
        return ResultView(
            groups, _group(self.extra.get("baselines")) or {},
            {name: single for name, single in singles.items() if single is not None}, str(self.extra.get("read") or ""),
        )  # fmt: skip


def _plain(value: object) -> Json:
    if isinstance(value, Estimate):
        return {"value": value.value, "lower": value.lower, "upper": value.upper}
    if is_dataclass(value):
        return {attribute.name: _plain(getattr(value, attribute.name)) for attribute in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return cast(Json, value)


def _figure(value: JsonValue) -> Estimate | float | None:
    """Return a figure; None for anything else."""
    if isinstance(value, dict):
        parts = [_figure(value.get(name)) for name in ("value", "lower", "upper")]
        numbers = [part for part in parts if isinstance(part, int | float)]
        if len(numbers) != len(value) or len(numbers) != len(parts):
            return None
        return Estimate(numbers[0], numbers[1], numbers[2])
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _group(value: JsonValue) -> Figures | None:
    """Return a group of figures; None for anything else, and for an estimate."""
    if not isinstance(value, dict) or not value or _figure(value) is not None:
        return None
    figures = {name: _figure(part) for name, part in value.items()}
    known = {name: figure for name, figure in figures.items() if figure is not None}
    return known if len(known) == len(figures) else None


def _texts(value: JsonValue) -> dict[str, str]:
    return {name: str(text) for name, text in value.items()} if isinstance(value, dict) else {}
