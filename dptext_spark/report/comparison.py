"""A comparison of mechanisms as a person reads it: the curves, the best at each level of risk, and an offline page with both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files

from dptext_spark.audit import risks, usefulness
from dptext_spark.audit.frontier import NOT_REACHED, Best, Curve, Frontier, Reached
from dptext_spark.audit.points import Measure, Point
from dptext_spark.audit.usefulness import TESTED
from dptext_spark.compare import Comparison
from dptext_spark.figures import exact, percent_down, percent_up
from dptext_spark.measured_points import RESTRICTED
from dptext_spark.report.blocks import Block, Chart, Listed, Section, Table, Text, Tile
from dptext_spark.report.charts import Line, lines
from dptext_spark.report.console import hanging
from dptext_spark.version import __version__

A_CHART = 5  # curves that one chart tells apart
READ = (
    "A curve is a mechanism, a mark on it an ε. Further to the right the attack finds more; of two curves the upper one keeps "
    "more at the same risk. Between marks a curve is straight by assumption, beyond them nothing was measured. The shade is the "
    "interval of the utility, a thin line across a mark that of the risk. The upright scale need not begin at 0."
)
INTERVALS = (
    "Intervals hold 95 %: of the risk over drawn words or records, of the utility over records. At a level of risk both "
    "count: the interval there runs from the least utility at the largest possible risk to the largest at the least. "
    "Mechanisms whose intervals overlap are not distinguishable."
)


def comparison_text(found: Comparison, columns: int) -> str:
    """Return the points of every curve, and the best at each level of each risk for each utility."""
    parts = [_grid(_points_head(found), _points_rows(found))]
    for one in found.frontiers:
        head = ("risk", "best", *(f"{curve.mechanism}" for curve in one.curves))
        title = hanging("", f"{_capital(one.utility)} at equal risk, {one.risk}", columns)
        rows = [(_percent(best.level), best.verdict, *_cells(best, one.curves)) for best in one.levels]
        parts.append(f"{title}\n{_grid(head, rows)}" if rows else f"{title}\n{NOT_REACHED} by any mechanism")
    said = [*_sentences(found), f"Restricted: {RESTRICTED}"]
    return "\n\n".join([*parts, "\n".join(hanging("", one, columns) for one in said)])


def comparison_page(found: Comparison) -> str:
    """Write the page: HTML, restricted, which fetches nothing; the same for the same figures."""
    from dptext_spark.errors import require_extra

    require_extra("audit", "jinja2", "matplotlib")
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        files("dptext_spark.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    names = list(dict.fromkeys(one.mechanism for one in found.points))
    return template.render(
        title="Which mechanism keeps most of the text at equal risk",
        restricted=RESTRICTED,
        lead=f"{', '.join(names)}: what is left of the private text, where an attack is as successful against each of them. ε "
        "means another thing for each mechanism and is not compared.",
        tiles=_tiles(found),
        warnings=[f"{name} refuses ε = {epsilon:g}: {why}" for name, epsilon, why in found.refused],
        sections=[
            *(
                _section(found, risk, key)
                for key, risk in (("bayes", risks.BAYES), ("context", risks.CONTEXT))
            ),
            Section(
                "points",
                "All that was measured",
                (Table(_points_head(found), tuple(_points_rows(found))),),
                True,
            ),
            Section("made", "How it was measured", (Listed("", tuple(_sentences(found))),), True),
        ],
        foot=f"Made by dptext {__version__} from a comparison; it fetches nothing and runs no script.",
    )


def _section(found: Comparison, risk: str, key: str) -> Section:
    """Write the charts of one risk, each with its table of the best."""
    blocks: list[Block] = [Text(risks.EXPLAINED[risk])]
    of_risk = [one for one in found.frontiers if one.risk == risk]
    for place, one in enumerate(of_risk):
        for part in range(0, len(one.curves), A_CHART):
            curves = one.curves[part : part + A_CHART]
            blocks.append(_chart(one, curves, f"{key}{place}x{part}"))
    for one in of_risk:
        head = ("risk", "best", *(curve.mechanism for curve in one.curves))
        rows = tuple((_percent(best.level), best.verdict, *_cells(best, one.curves)) for best in one.levels)
        blocks += [Listed(f"Best by {one.utility}", ()), Table(head, rows)]
    return Section(key, f"Risk: {risk}", tuple(blocks), True)


def _chart(one: Frontier, curves: Sequence[Curve], key: str) -> Chart:
    drawn = [
        Line(
            curve.mechanism,
            [100 * risk.value for risk in curve.risk],
            [100 * utility.value for utility in curve.utility],
            [100 * utility.lower for utility in curve.utility],
            [100 * utility.upper for utility in curve.utility],
            [100 * risk.lower for risk in curve.risk],
            [100 * risk.upper for risk in curve.risk],
        )
        for curve in curves
    ]
    rows = tuple(
        (curve.mechanism, exact(epsilon), _risk(risk), _between(utility))
        for curve in curves
        for epsilon, risk, utility in zip(curve.epsilons, curve.risk, curve.utility, strict=True)
    )
    bottom = _bottom(drawn)
    top = 100.0 + (100.0 - bottom) / 50.0  # room for a mark
    svg = lines(drawn, key=key, x=f"risk, %: {one.risk}", y=f"{one.utility}, %", top=top, bottom=bottom)
    table = Table(("mechanism", "ε", "risk, %", f"{one.utility}, %"), rows)
    return Chart(f"{_capital(one.utility)} against risk", usefulness.EXPLAINED[one.utility], READ, svg, table)


def _bottom(drawn: Sequence[Line]) -> float:
    """Return where the upright scale begins: at 0, or, where all lies in the upper half, at a round number below it."""
    least = min(value for line in drawn for value in line.low or line.y)
    return 0.0 if least < 50.0 else 5.0 * math.floor(least / 5.0)


def _tiles(found: Comparison) -> list[Tile]:
    """Say how often each mechanism is the best alone, by the utility that matters most, in context."""
    chosen = [one for one in found.frontiers if one.risk == risks.CONTEXT][-1]
    tiles = []
    for curve in chosen.curves:
        rival = [best for best in chosen.levels if len(best.reached) > 1]
        alone = sum(best.best == (curve.mechanism,) for best in rival)
        tiles.append(
            Tile(
                curve.mechanism,
                f"{alone} of {len(rival)}",
                f"levels of risk where it alone is best by {chosen.utility}, in context",
            )
        )
    return tiles


def _points_head(found: Comparison) -> tuple[str, ...]:
    first = found.points[0]
    return ("mechanism", "ε", *(f"{name}, %" for name in (*first.risks, *first.utilities)))


def _points_rows(found: Comparison) -> list[tuple[str, ...]]:
    rows = [_row(one) for one in found.points]
    plain = found.unprotected
    first = found.points[0]
    cells = [_between(plain[name]) for name in first.utilities]
    return [*rows, ("unprotected text", "", *("100" for _ in first.risks), *cells)]


def _row(one: Point) -> tuple[str, ...]:
    cells = (*map(_risk, one.risks.values()), *map(_between, one.utilities.values()))
    return (one.mechanism, exact(one.epsilon), *cells)


def _cells(best: Best, curves: Sequence[Curve]) -> list[str]:
    by_name = {one.mechanism: one for one in best.reached}
    return [_reached(by_name.get(curve.mechanism)) for curve in curves]


def _reached(one: Reached | None) -> str:
    if one is None:
        return NOT_REACHED
    return f"{100 * one.utility:.1f} ({100 * one.lower:.1f} to {100 * one.upper:.1f})"


def _between(one: Measure) -> str:
    if one.exact:
        return f"{100 * one.value:.1f}"
    return f"{100 * one.value:.1f} ({100 * one.lower:.1f} to {100 * one.upper:.1f})"


def _risk(one: Measure) -> str:
    """Write a risk in percent, never as less than it is."""
    value, low, high = percent_up(one.value), percent_down(one.lower), percent_up(one.upper)
    shown = [part.removesuffix(" %") for part in (value, low, high)]
    return shown[0] if one.exact else f"{shown[0]} ({shown[1]} to {shown[2]})"


def _percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def _sentences(found: Comparison) -> list[str]:
    """Say how it was measured."""
    made = found.settings
    first = found.points[0]
    hows: dict[str, list[str]] = {}
    for one in found.points:
        hows.setdefault(one.more["how"], [])
        if one.mechanism not in hows[one.more["how"]]:
            hows[one.more["how"]].append(one.mechanism)
    sentences = [
        f"Risk, {risks.BAYES}: {risks.EXPLAINED[risks.BAYES]} Guessing the commonest word finds "
        f"{percent_up(first.more['baseline'])}.",
        *(f"{', '.join(names)}: {how}." for how, names in hows.items()),
        f"Risk, {risks.CONTEXT}: {risks.EXPLAINED[risks.CONTEXT]} Measured on "
        f"{first.more['in_context_words_attacked']:,} replaced words of {first.more['in_context_records']:,} records; a "
        "stronger attack may find more.",
    ]
    sentences += [f"{_capital(name)}: {usefulness.EXPLAINED[name]}" for name in first.utilities]
    if usefulness.ACCURACY in first.utilities:
        sentences.append(
            f"The classifier is tested on every {TESTED}th record and sees the lexicon's words; unknown words, numbers and "
            "punctuation are left out."
        )
    sentences += [
        f"{made['records']:,} records were replaced, {made['consistency']} level, over {made['words']:,} words; stop words: "
        f"{made['policy']['stop_words']}.",
        INTERVALS,
        "Between two ε utility is taken as linear in risk; outside the measured risks, or where their bounds leave that open: "
        "not reached.",
    ]
    sentences += [f"{name} refuses ε = {epsilon:g}: {why}" for name, epsilon, why in found.refused]
    return sentences


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay cells out in columns."""
    table = [tuple(head), *map(tuple, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
