"""Results of audits of any shape: what each says of itself, its groups of figures as charts, its single ones as a table.

The section on the utility of the text is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dptext_spark.audit.estimates import Estimate
from dptext_spark.audit.results import AuditResult
from dptext_spark.report.blocks import Block, Chart, Listed, Section, Table, Text, pairs
from dptext_spark.report.charts import Bar, bars
from dptext_spark.rounding import exact

_READ = (
    "Each bar is a figure of its own.",
    "Plain bars were measured, hatched ones are what they are compared with.",
)


def measured(one: AuditResult, key: str) -> Iterator[Block]:
    """Draw every group of figures of a result, and list its single ones.

    Args:
        one: the result.
        key: that the ids of its charts begin with.
    """
    intro = " ".join(sentence(part) for part in (one.measures, one.knows) if part)
    shown, drawable = one.shown(), 0
    for group in shown.groups:
        drawn = [_bar(name, value, 0) for name, value in group.figures.items()]
        if not drawable:
            drawn += [_bar(name, value, 1) for name, value in shown.baselines.items()]
        heading = f"{title(one)}: {group.name.replace('_', ' ')}" if group.name else title(one)
        table = _table(drawn)
        if min(bar.value for bar in drawn) < 0:
            yield Listed(heading, ())
            yield table
            continue
        shows = (group.shows or f"More of the same: {group.name or 'figures'}.") if drawable else intro
        read = shown.read or _READ[bool(shown.baselines) and not drawable]
        certain = sure(one, bounded=any(bar.low is not None for bar in drawn))
        svg = bars(drawn, key=f"{key}-{drawable}", x=group.axis or group.name)
        yield Chart(heading, shows, f"{read} {certain}", svg, table)
        drawable += 1
    if not drawable:
        yield Listed(title(one), (f"{intro} {sure(one)}",))
    single = [(name.replace("_", " "), _figure_text(value)) for name, value in shown.singles.items()]
    if single:
        yield pairs(single)


def _table(drawn: Sequence[Bar]) -> Table:
    """Return bars as a table, with their bounds where one of them has any."""
    columns = 3 if any(_bounds(bar) for bar in drawn) else 2
    rows = tuple((bar.name, bar.said, _bounds(bar))[:columns] for bar in drawn)
    return Table(("", "value", "bounds")[:columns], rows)


def _bar(name: str, figure: Estimate | float, kind: int) -> Bar:
    if isinstance(figure, Estimate):
        return Bar(name, figure.value, kind, figure.lower, figure.upper, f"{figure.value:.4g}")
    return Bar(name, float(figure), kind, said=f"{figure:.4g}")


def _bounds(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{bar.low:.4g} to {bar.high:.4g}"


def _figure_text(figure: Estimate | float) -> str:
    if isinstance(figure, Estimate):
        return f"{figure.value:.4g} ({figure.lower:.4g} to {figure.upper:.4g})"
    return f"{figure:,.6g}" if isinstance(figure, float) else str(figure)


def title(one: AuditResult) -> str:
    """Return the name of a result, as a heading."""
    return one.name[:1].upper() + one.name[1:]


def sentence(text: str) -> str:
    """Return text that ends as a sentence does."""
    return text if text.endswith(".") else f"{text}."


def sure(one: AuditResult, *, bounded: bool = True) -> str:
    """Say how exact a result is, or figures of it that have no bounds."""
    if one.exact:
        return "Exact."
    if one.how:
        return one.how
    if not (one.confidence and bounded):
        return "Estimated; no bounds were computed."
    drawn = f" from {one.draws:,} draws of a word" if one.draws else ""
    return (
        f"Estimated{drawn}; the black line holds the true value with a confidence of {exact(one.confidence)}."
    )


def utility(found: Sequence[AuditResult], missing: str) -> Section:
    """Write what the text is still good for, as far as it was measured.

    Args:
        found: by audits.
        missing: what is said where nothing was.
    """
    if not found:
        return Section("utility", "Utility", (Text(missing, quiet=True),))
    blocks = [block for place, one in enumerate(found) for block in measured(one, f"use{place}")]
    return Section("utility", "Utility", tuple(blocks), restricted=any(one.restricted for one in found))
