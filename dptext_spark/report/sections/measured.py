"""Results of audits of any shape: what each says of itself, its groups of figures as charts, its single ones as a table.

The section on the utility of the text is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dptext_spark.report.blocks import Block, Chart, Listed, Section, Table, Text, pairs
from dptext_spark.report.charts import Bar, bars
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.sections.named_results import arranged
from dptext_spark.rounding import exact

Figure = Mapping[str, Any]
_OWN = ("baselines", "settings", "also", "axes")  # groups that are no measured figures
_SAID = ("confidence", "draws", "exact")  # said in words
_ESTIMATE = {"value", "lower", "upper"}
_READ = (
    "Each bar is a figure of its own.",
    "Plain bars were measured, hatched ones are what they are compared with.",
)


def measured(one: Figure, key: str) -> Iterator[Block]:
    """Draw every group of figures of a result, and list its single ones.

    Args:
        one: the result. A figure is a number, or an estimate: `value`, `lower`, `upper`; a group is named figures; `says` holds
            a sentence for groups after the first.
        key: that the ids of its charts begin with.
    """
    one = arranged(one)
    intro = " ".join(sentence(one[part]) for part in ("measures", "knows") if one.get(part))
    groups = {name: value for name, value in one.items() if name not in _OWN and _is_group(value)}
    baselines = one.get("baselines") or {}
    drawable = 0
    for name, figures in groups.items():
        drawn = [_bar(said, value, 0) for said, value in figures.items()]
        if not drawable:
            drawn += [_bar(said, value, 1) for said, value in baselines.items()]
        heading = title(one) if name == "figures" else f"{title(one)}: {name.replace('_', ' ')}"
        table = _table(drawn)
        if min(bar.value for bar in drawn) < 0:
            yield Listed(heading, ())
            yield table
            continue
        shows = one.get("says", {}).get(name, f"More of the same: {name}.") if drawable else intro
        read = one.get("read") or _READ[bool(baselines) and not drawable]
        bounded = any(bar.low is not None for bar in drawn)
        certain = sure(one if bounded else {**one, "confidence": None})
        axis = one.get("axes", {}).get(name) or (name if name != "figures" else one.get("unit", "value"))
        svg = bars(drawn, key=f"{key}-{drawable}", x=axis)
        yield Chart(heading, shows, f"{read} {certain}", svg, table)
        drawable += 1
    if not drawable:
        yield Listed(title(one), (f"{intro} {sure(one)}",))
    single = [
        (name.replace("_", " "), _figure_text(value))
        for name, value in one.items()
        if name not in _SAID and _is_figure(value)
    ]
    if single:
        yield pairs(single)


def _table(drawn: Sequence[Bar]) -> Table:
    """Return bars as a table, with their bounds where one of them has any."""
    columns = 3 if any(_bounds(bar) for bar in drawn) else 2
    rows = tuple((bar.name, bar.said, _bounds(bar))[:columns] for bar in drawn)
    return Table(("", "value", "bounds")[:columns], rows)


def _is_figure(value: Any) -> bool:
    if isinstance(value, Mapping):
        return set(value) == _ESTIMATE and all(_is_figure(each) for each in value.values())
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_group(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and set(value) != _ESTIMATE
        and all(_is_figure(each) for each in value.values())
    )


def _bar(name: str, figure: Any, kind: int) -> Bar:
    if isinstance(figure, Mapping):
        value, low, high = (float(figure[part]) for part in ("value", "lower", "upper"))
        return Bar(name, value, kind, low, high, f"{value:.4g}")
    return Bar(name, float(figure), kind, said=f"{figure:.4g}")


def _bounds(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{bar.low:.4g} to {bar.high:.4g}"


def _figure_text(figure: Any) -> str:
    if isinstance(figure, Mapping):
        return f"{figure['value']:.4g} ({figure['lower']:.4g} to {figure['upper']:.4g})"
    return value_text(figure)


def title(one: Figure) -> str:
    """Return the name of a result, as a heading."""
    name = str(one["name"])
    return name[:1].upper() + name[1:]


def sentence(text: str) -> str:
    """Return text that ends as a sentence does."""
    return text if text.endswith(".") else f"{text}."


def value_text(value: Any) -> str:
    """Return a figure of any kind as text."""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def sure(one: Figure) -> str:
    """Say how exact a result is."""
    if one["exact"]:
        return "Exact."
    if one.get("how"):
        return str(one["how"])
    if not one.get("confidence"):
        return "Estimated; no bounds were computed."
    drawn = f" from {one['draws']:,} draws of a word" if one.get("draws") else ""
    return f"Estimated{drawn}; the black line holds the true value with a confidence of {exact(one['confidence'])}."


def utility(facts: ReportFacts) -> Section:
    """Write what the text is still good for, as far as it was measured."""
    found = facts.utility
    if not found:
        return Section("utility", "Utility", (Text(facts.utility_missing, quiet=True),))
    blocks = [block for place, one in enumerate(found) for block in measured(one, f"use{place}")]
    return Section("utility", "Utility", tuple(blocks), restricted=any(one["restricted"] for one in found))
