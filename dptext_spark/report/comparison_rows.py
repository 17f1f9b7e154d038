"""The rows and sentences of a comparison, which its text and its page share."""

from __future__ import annotations

from collections.abc import Sequence

from dptext_spark.audit.comparison import risks
from dptext_spark.audit.comparison.compare import Comparison
from dptext_spark.audit.comparison.frontier import Best, Curve, Frontier, Reached
from dptext_spark.audit.comparison.points import Measure, Point
from dptext_spark.audit.utility import retained
from dptext_spark.audit.utility.retained import TESTED
from dptext_spark.rounding import exact, percent_down, percent_up

NONE = "-"
SHORT = {
    risks.BAYES: "alone",
    risks.CONTEXT: "in context",
    retained.KEPT: "kept",
    retained.COSINE: "meaning",
    retained.EMBEDDED: "embedding",
    retained.ACCURACY: "accuracy",
}
INTERVALS = (
    "Intervals hold 95 %: of the risk over drawn words or records, of the utility over records. At a level of risk both "
    "count: the interval there runs from the least utility at the largest possible risk to the largest at the least. "
    "Mechanisms whose intervals overlap are not told apart: undecided, the one that measured best first."
)


def table_of(one: Frontier) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return (head, rows): what is best at each level of risk, and what every mechanism keeps there."""
    head = ("risk", "best", *(curve.mechanism for curve in one.curves))
    return head, [(_percent(best.level), best.verdict, *_cells(best, one.curves)) for best in one.levels]


def runs_of(one: Frontier) -> list[tuple[str, str]]:
    """Return (levels of risk, what is best there), with levels that follow each other together where that is the same."""
    runs: list[list[Best]] = []
    for best in one.levels:
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


def points_head(found: Comparison) -> tuple[str, ...]:
    """Return the names of the columns of the points."""
    first = found.points[0]
    named = (*((name, "risk ") for name in first.risks), *((name, "") for name in first.utilities))
    return ("mechanism", "ε", *(f"{what}{SHORT[name]}, %" for name, what in named))


def points_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return the points, and the text as it is."""
    rows = [_row(one) for one in found.points]
    plain = found.unprotected
    first = found.points[0]
    cells = [between(plain[name]) for name in first.utilities]
    return [*rows, ("unprotected text", "", *("100" for _ in first.risks), *cells)]


def _row(one: Point) -> tuple[str, ...]:
    cells = (*map(risk_of, one.risks.values()), *map(between, one.utilities.values()))
    return (one.mechanism, exact(one.epsilon), *cells)


def _cells(best: Best, curves: Sequence[Curve]) -> list[str]:
    by_name = {one.mechanism: one for one in best.reached}
    return [_reached(by_name.get(curve.mechanism)) for curve in curves]


def _reached(one: Reached | None) -> str:
    if one is None:
        return NONE
    return f"{100 * one.utility:.1f} ({100 * one.lower:.1f}-{100 * one.upper:.1f})"


def between(one: Measure) -> str:
    """Write a utility in percent."""
    if one.exact:
        return f"{100 * one.value:.1f}"
    return f"{100 * one.value:.1f} ({100 * one.lower:.1f}-{100 * one.upper:.1f})"


def risk_of(one: Measure) -> str:
    """Write a risk in percent, never as less than it is."""
    value, low, high = percent_up(one.value), percent_down(one.lower), percent_up(one.upper)
    shown = [part.removesuffix(" %") for part in (value, low, high)]
    return shown[0] if one.exact else f"{shown[0]} ({shown[1]}-{shown[2]})"


def _percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def sentences_of(found: Comparison) -> list[str]:
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
    sentences += [f"{capital(name)}: {retained.EXPLAINED[name]}" for name in first.utilities]
    if retained.ACCURACY in first.utilities:
        sentences.append(
            f"The classifier is tested on every {TESTED}th record and sees the lexicon's words; unknown words, numbers and "
            "punctuation are left out."
        )
    sentences += [
        f"{made['records']:,} records were replaced, {made['consistency']} level, over {made['words']:,} words; stop words: "
        f"{made['policy']['stop_words']}.",
        INTERVALS,
        "Between two ε utility is taken as linear in risk; outside the measured risks, or where their bounds leave that open: "
        f"not reached ({NONE}).",
    ]
    sentences += _alike(found.points)
    sentences += [f"{name} refuses ε = {epsilon:g}: {why}" for name, epsilon, why in found.refused]
    return sentences


def _alike(points: Sequence[Point]) -> list[str]:
    """Say which curves are one: the same figures at every ε."""
    of_curve: dict[str, list[tuple[object, ...]]] = {}
    for one in points:
        of_curve.setdefault(one.mechanism, []).append(
            (one.epsilon, *one.risks.values(), *one.utilities.values())
        )
    groups: dict[str, list[str]] = {}
    for name, figures in of_curve.items():
        groups.setdefault(repr(figures), []).append(name)
    return [
        f"{' and '.join(names)} have the same figures at every ε."
        for names in groups.values()
        if len(names) > 1
    ]


def capital(text: str) -> str:
    """Begin a text with a capital letter."""
    return text[:1].upper() + text[1:]
