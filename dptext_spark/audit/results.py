"""Results of audits: what each says of itself, which of its figures make a chart, and its form as JSON.

Every audit returns an :class:`AuditResult`, which is written to JSON and read again without loss. The attacks that guess words
are :class:`WordAttack`; a result of a kind that this version does not know is an :class:`OtherResult`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TypeVar, cast

from pydantic import JsonValue, TypeAdapter

from dptext_spark.audit.estimates import Estimate, Metric
from dptext_spark.runtime.validation import Json

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
        figures: at least one.
        axis: what stands along the chart; empty for the name.
        shows: what the chart shows, in a sentence; the first chart of a result shows what the result measures.
    """

    name: str
    figures: Figures
    axis: str = ""
    shows: str = ""


@dataclass(frozen=True)
class Shown:
    """How a report shows a result.

    Attributes:
        groups: each is a chart, or only a table where a figure is below 0.
        baselines: what the first group is compared with.
        singles: figures that stand in a table.
        read: how the charts are read, where no general sentence says it.
    """

    groups: Sequence[Group] = ()
    baselines: Figures = field(default_factory=dict)
    singles: Figures = field(default_factory=dict)
    read: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found, and what it says of itself.

    A field whose default is None is left out of the JSON where nothing is known of it.

    Attributes:
        name: of the kind of result.
        measures: what was measured, in a sentence.
        knows: what the adversary knows; None where there is none.
        exact: whether the figures were read off laws or counted; else they are estimates.
        restricted: whether they depend on private text.
        confidence: of their intervals.
        draws: of each word, where a law was counted from draws.
        resamples: bootstrap draws.
        how: how it was found, where that is neither exact nor told by the fields above.
        also: what else is known, as text.
        open: whether a better adversary may find more.
        settings: what it was made with.
        audit: the run that wrote the audited table, where a result was read from the audit of one.
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

    def shown(self) -> Shown:
        """Return how a report shows it; an attack on words is drawn as such."""
        return Shown()

    def without_names(self) -> AuditResult | None:
        """Return it without what it says of names; None where nothing is left."""
        return self

    @property
    def is_attack(self) -> bool:
        """Whether it says what an adversary finds, and not what the text is good for."""
        return self.knows is not None

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        said = {
            one.name: _plain(value)
            for one in fields(self)
            if one.name != "extra"
            and not ((value := getattr(self, one.name)) is None and one.default is None)
        }
        return said | dict(self.extra)

    @classmethod
    def from_dict(cls: type[Result], values: Mapping[str, JsonValue]) -> Result:
        """Build from :meth:`as_dict`.

        Raises:
            ValueError: a field is missing or of another type.
        """
        defaults = {one.name: one.default for one in fields(cls) if one.name != "extra"}
        # A null that `as_dict` would leave out goes to `extra`, so that it is written back as it was read.
        own = {
            n: value
            for n, value in values.items()
            if n in defaults and not (value is None and defaults[n] is None)
        }
        found = TypeAdapter(cls).validate_json(json.dumps(own), strict=True)
        return replace(found, extra={name: value for name, value in values.items() if name not in own})


@dataclass(frozen=True, kw_only=True)
class WordAttack(AuditResult):
    """An attack that guesses words, beside what it is compared with.

    Attributes:
        success: the share of the words that it guesses.
        lower: a bound of it, or of the best possible attack; and `upper`.
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
        """Return what its success is compared with, in the order in which it is drawn."""
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
    sentence for groups after the first, `axes` what stands along each, `unit` what stands along the group `figures`, and
    `baselines` what the first group is compared with.
    """

    def shown(self) -> Shown:
        """Show every object that holds nothing but figures, and every figure that stands alone."""
        says, axes = (_texts(self.extra.get(name)) for name in ("says", "axes"))
        unit = str(self.extra.get("unit", "value"))
        found = ((name, _group(value)) for name, value in self.extra.items() if name not in _NO_GROUPS)
        groups = [
            Group("", figures, axes.get(name) or unit)
            if name == "figures"
            else Group(name, figures, axes.get(name, name), says.get(name, ""))
            for name, figures in found
            if figures
        ]
        singles = {name: _figure(value) for name, value in self.extra.items()}
        return Shown(
            groups, _group(self.extra.get("baselines")) or {},
            {name: one for name, one in singles.items() if one is not None}, str(self.extra.get("read") or ""),
        )  # fmt: skip


def _plain(value: object) -> Json:
    if isinstance(value, Estimate):
        return {"value": value.value, "lower": value.lower, "upper": value.upper}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return cast(Json, value)


def _figure(value: JsonValue) -> Estimate | float | None:
    """Return a figure; None for what is none."""
    if isinstance(value, dict):
        parts = [_figure(value.get(name)) for name in ("value", "lower", "upper")]
        numbers = [one for one in parts if isinstance(one, int | float)]
        if len(numbers) != len(value) or len(numbers) != len(parts):
            return None
        return Estimate(numbers[0], numbers[1], numbers[2])
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _group(value: JsonValue) -> Figures | None:
    """Return a group of figures; None for what is none, and for an estimate."""
    if not isinstance(value, dict) or not value or _figure(value) is not None:
        return None
    figures = {name: _figure(part) for name, part in value.items()}
    known = {name: one for name, one in figures.items() if one is not None}
    return known if len(known) == len(figures) else None


def _texts(value: JsonValue) -> dict[str, str]:
    return {name: str(text) for name, text in value.items()} if isinstance(value, dict) else {}
