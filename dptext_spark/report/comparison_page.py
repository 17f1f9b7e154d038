"""A comparison of mechanisms as a person reads it: the curves, the best at each level of risk, and an offline page with both.

Text and page share rows and sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from dptext_spark.audit import text_utility
from dptext_spark.audit.comparison import Comparison
from dptext_spark.audit.frontier import BAYES, CONTEXT, EXPLAINED, NOT_REACHED, Best, Curve, Frontier, Point
from dptext_spark.audit.results import Estimate
from dptext_spark.audit.text_utility import TESTED
from dptext_spark.errors import DataError, require_extra
from dptext_spark.report.blocks import (
    MOST_LINES,
    Block,
    Chart,
    Line,
    Points,
    Section,
    Table,
    Text,
    capital,
    lines,
    pairs,
)
from dptext_spark.report.console import Screen
from dptext_spark.report.page import build_page
from dptext_spark.rounding import exact, percent_down, percent_up
from dptext_spark.runtime.paths import PRIVATE, write_atomically

RESTRICTED = "figures in this file depend on the private text. Not for sharing."
READ = (
    "A curve is a mechanism, and a mark on it is an ε. The attack finds more to the right. Of two curves the upper one keeps "
    "more at the same risk. A curve is straight between marks by assumption, and nothing was measured beyond them. The shade "
    "is the interval of the utility, and a thin line across a mark is that of the risk. The vertical scale need not begin at 0."
)
NONE = "-"
SHORT = {
    BAYES: "alone",
    CONTEXT: "in context",
    text_utility.KEPT: "kept",
    text_utility.COSINE: "meaning",
    text_utility.EMBEDDED: "embedding",
    text_utility.ORDER: "order",
    text_utility.DISTINCT: "different",
    text_utility.ACCURACY: "accuracy",
}
INTERVALS = (
    "Intervals have a confidence of 95 %: of the risk over drawn words or records, of the utility over records. At a level of "
    "risk the interval covers both. It runs from the least utility at the largest possible risk to the largest utility at the "
    "least possible risk. Mechanisms with overlapping intervals are undecided, and the best measured one comes first."
)


def write_private(file: Path, text: str) -> None:
    """Write a text that nobody but the user may read, atomically.

    Raises:
        DataError: the folder cannot be made, or the file not be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text, PRIVATE)
    except OSError as error:
        raise DataError(f"out: {str(file)!r} cannot be written ({error.strerror}).") from None


def comparison(compared: Comparison) -> Screen:
    """Return the best at each level of each risk for each utility, and the points of every curve."""
    best, tables = [], []
    for frontier in compared.frontiers:
        name = f"{capital(frontier.utility)}, {frontier.risk}"
        runs = "; ".join(f"{levels}: {verdict}" for levels, verdict in runs_of(frontier))
        best.append((name, runs or f"{NOT_REACHED} by any mechanism"))
        head, rows = table_of(frontier)
        if rows:
            tables.append((f"{name}, at equal risk", [head, *rows]))
    return Screen(
        "Which mechanism keeps most of the text at equal risk",
        best,
        table=[points_head(compared), *points_rows(compared)],
        warnings=refused(compared),
        more=[*tables, ("how it was measured", [("-", sentence) for sentence in sentences_of(compared)])],
        restricted=True,
    )


def refused(compared: Comparison) -> list[str]:
    """Name the mechanisms that refuse an ε, with the reasons."""
    return [f"{name} refuses ε = {epsilon:g}: {why}" for name, epsilon, why in compared.refused]


def comparison_page(compared: Comparison) -> str:
    """Build the page: restricted, and the same for the same figures."""
    require_extra("audit", "jinja2", "matplotlib")
    names = list(dict.fromkeys(point.mechanism for point in compared.points))
    points = Table(points_head(compared), tuple(points_rows(compared)))
    return build_page(
        "Which mechanism keeps most of the text at equal risk",
        [
            _section(compared, BAYES, "bayes"),
            _section(compared, CONTEXT, "context"),
            Section("points", "All that was measured", (points,), True),
            Section("made", "How it was measured", (Points("", tuple(sentences_of(compared))),), True),
        ],
        lead=f"The text that each mechanism keeps, at equal success of an attack: {', '.join(names)}. ε has another "
        "meaning for each mechanism and is not compared.",
        source="a comparison",
        warnings=refused(compared),
        restricted=RESTRICTED,
    )


def _section(compared: Comparison, risk: str, key: str) -> Section:
    """Write the charts of one risk, each with its table of the best mechanisms."""
    of_risk = [frontier for frontier in compared.frontiers if frontier.risk == risk]
    blocks: list[Block] = [Text(EXPLAINED[risk])]
    for frontier in of_risk:
        runs = runs_of(frontier) or [("", f"{NOT_REACHED} by any mechanism")]
        blocks += [Points(f"Best by {frontier.utility}, at each level of risk", ()), pairs(runs)]
    for place, frontier in enumerate(of_risk):
        charts = -(-len(frontier.curves) // MOST_LINES)
        each = -(-len(frontier.curves) // charts)  # nine curves are five and four, not eight and one
        for part in range(0, len(frontier.curves), each):
            blocks.append(_chart(frontier, frontier.curves[part : part + each], f"{key}{place}x{part}"))
    for frontier in of_risk:
        head, rows = table_of(frontier)
        blocks += [Points(f"{capital(frontier.utility)} at equal risk, %", ()), Table(head, tuple(rows))]
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
        (curve.mechanism, exact(epsilon), risk_of(risk), between(utility))
        for curve in curves
        for epsilon, risk, utility in zip(curve.epsilons, curve.risk, curve.utility, strict=True)
    )
    bottom = _bottom(drawn)
    # A release may hold more different words than its text. There is room for a mark above.
    highest = max(100.0, *(value for line in drawn for value in line.high or line.y))
    top = highest + (highest - bottom) / 50.0
    svg = lines(drawn, key=key, x=f"risk, %: {one.risk}", y=f"{one.utility}, %", top=top, bottom=bottom)
    table = Table(("mechanism", "ε", "risk, %", f"{one.utility}, %"), rows)
    return Chart(
        f"{capital(one.utility)} against risk", text_utility.EXPLAINED[one.utility], READ, svg, table
    )


def _bottom(drawn: Sequence[Line]) -> float:
    """Return the lower end of the upright scale: 0, or, where all lies in the upper half, a round number below it."""
    least = min(value for line in drawn for value in line.low or line.y)
    return 0.0 if least < 50.0 else 5.0 * math.floor(min(least, 95.0) / 5.0)


def table_of(one: Frontier) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return (head, rows): the best mechanism at each level of risk, and the utility that every mechanism keeps there."""
    head = ("risk", "best", *(curve.mechanism for curve in one.curves))
    return head, [(_percent(best.level), best.verdict, *_cells(best, one.curves)) for best in one.levels]


def runs_of(frontier: Frontier) -> list[tuple[str, str]]:
    """Return (levels of risk, best mechanisms there); consecutive levels with the same result go together."""
    runs: list[list[Best]] = []
    for best in frontier.levels:
        same = runs and (set(runs[-1][-1].best), len(runs[-1][-1].reached) > 1) == (
            set(best.best), len(best.reached) > 1,
        )  # fmt: skip
        if same:
            runs[-1].append(best)
        else:
            runs.append([best])
    return [
        (
            _percent(run[0].level)
            if len(run) == 1
            else f"{100 * run[0].level:.4g} to {_percent(run[-1].level)}",
            run[0].verdict,
        )
        for run in runs
    ]


def points_head(compared: Comparison) -> tuple[str, ...]:
    """Return the names of the columns of the points."""
    first = compared.points[0]
    named = (*((name, "risk ") for name in first.risks), *((name, "") for name in first.utilities))
    return ("mechanism", "ε", *(f"{what}{SHORT[name]}, %" for name, what in named))


def points_rows(compared: Comparison) -> list[tuple[str, ...]]:
    """Return the points, and the text as it is."""
    rows = [
        (
            point.mechanism,
            exact(point.epsilon),
            *map(risk_of, point.risks.values()),
            *map(between, point.utilities.values()),
        )
        for point in compared.points
    ]
    first = compared.points[0]
    cells = [between(compared.unprotected[name]) for name in first.utilities]
    return [*rows, ("unprotected text", "", *("100" for _ in first.risks), *cells)]


def _cells(best: Best, curves: Sequence[Curve]) -> Iterator[str]:
    reached = {each.mechanism: each for each in best.reached}
    for curve in curves:
        utility = reached.get(curve.mechanism)
        yield NONE if utility is None else _spread(utility.utility, utility.lower, utility.upper)


def _spread(value: float, lower: float, upper: float) -> str:
    return f"{100 * value:.1f} ({100 * lower:.1f}-{100 * upper:.1f})"


def between(figure: Estimate) -> str:
    """Write a utility in percent."""
    return f"{100 * figure.value:.1f}" if figure.exact else _spread(figure.value, figure.lower, figure.upper)


def risk_of(risk: Estimate) -> str:
    """Write a risk in percent, never as less than it is."""
    value, low, high = percent_up(risk.value), percent_down(risk.lower), percent_up(risk.upper)
    shown = [part.removesuffix(" %") for part in (value, low, high)]
    return shown[0] if risk.exact else f"{shown[0]} ({shown[1]}-{shown[2]})"


def _percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def sentences_of(compared: Comparison) -> list[str]:
    """Describe the measurement."""
    settings = compared.settings
    first = compared.points[0]
    hows: dict[str, list[str]] = {}
    for point in compared.points:
        hows.setdefault(point.more.how, [])
        if point.mechanism not in hows[point.more.how]:
            hows[point.more.how].append(point.mechanism)
    sentences = [
        f"Risk, {BAYES}: {EXPLAINED[BAYES]} Guessing the commonest word finds "
        f"{percent_up(first.more.baseline)}.",
        *(f"{', '.join(names)}: {how}." for how, names in hows.items()),
        f"Risk, {CONTEXT}: {EXPLAINED[CONTEXT]} Measured on "
        f"{first.more.in_context_words_attacked:,} replaced words of {first.more.in_context_records:,} records. A "
        "stronger attack may find more.",
    ]
    sentences += [f"{capital(name)}: {text_utility.EXPLAINED[name]}" for name in first.utilities]
    if text_utility.ACCURACY in first.utilities:
        sentences.append(
            f"The classifier is tested on every {TESTED}th record. It sees the lexicon's words, without unknown words, numbers "
            "and punctuation."
        )
    sentences += [
        f"{settings.records:,} records were replaced at {settings.consistency} level, over {settings.words:,} words. Stop "
        f"words: {settings.policy['stop_words']}.",
        f"The adversary knows words and pairs of the public text, completed by {settings.prior}.",
        INTERVALS,
        "Utility is linear in risk between two ε, by assumption. A level of risk is not reached "
        f"({NONE}) outside the measured risks, or if their bounds leave it open.",
    ]
    if compared.remapped:
        sentences.append(
            f"{', '.join(compared.remapped)}: the figures are those of the released words, after the remap. More words may "
            "stay, though nobody learns more. So compare curves at equal risk, never at equal ε. Fewer words can be released."
        )
    return sentences + _alike(compared.points)


def _alike(points: Sequence[Point]) -> list[str]:
    """Name the curves that coincide: the same figures at every ε."""
    of_curve: dict[str, list[tuple[object, ...]]] = {}
    for point in points:
        of_curve.setdefault(point.mechanism, []).append(
            (point.epsilon, *point.risks.values(), *point.utilities.values())
        )
    groups: dict[str, list[str]] = {}
    for name, figures in of_curve.items():
        groups.setdefault(repr(figures), []).append(name)
    return [
        f"{' and '.join(names)} have the same figures at every ε."
        for names in groups.values()
        if len(names) > 1
    ]
