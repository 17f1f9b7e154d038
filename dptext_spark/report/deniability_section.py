"""The section of a report on plausible deniability: histograms, curves over ε, percentiles, the worst words.

The figures come from the compiled model alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dptext_spark.arrays import Ids, spaced
from dptext_spark.audit.deniability import STANDARD, WordValues, measure
from dptext_spark.audit.word_figures import SmallestSet, StayRate, WordFigure
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.blocks import Block, Chart, Line, Points, Section, Table, Text, histogram, lines
from dptext_spark.rounding import digits_up, exact
from dptext_spark.runtime.display import Progress, counted
from dptext_spark.runtime.validation import Json
from dptext_spark.text.tokens import drawn_words

SAMPLED = 200  # words that are looked at where a law is as long as the lexicon
DRAWN = 50  # where there is none, and each word takes a thousand draws
CURVES = 10  # of those, at each ε of the curves
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the run's ε, for the curves


@dataclass(frozen=True)
class Model:
    """The compiled model of a run.

    Attributes:
        privatizer: opened; its fingerprint is the run's.
        compile_at: compiles the same mechanism at another ε; None where its lexicon cannot be read.
    """

    privatizer: Privatizer
    compile_at: Callable[[float], Sampler] | None = None


@dataclass(frozen=True)
class Deniability:
    """Figures at the run's ε and at others.

    Attributes:
        figures: at the run's ε.
        by_epsilon: those of the curves, by ε, ascending.
        basis: how exact they are, in a sentence.
        words: the worst words by id, as text.
        why_missing: what is missing, and why.
        basis_of_curves: how exact the curves are, where they are estimated.
    """

    figures: Sequence[WordValues] = ()
    by_epsilon: Mapping[float, Sequence[WordValues]] = field(default_factory=dict)
    basis: str = ""
    words: Mapping[int, str] = field(default_factory=dict)
    why_missing: str = ""
    basis_of_curves: str = ""

    def figure(self, name: str) -> WordValues | None:
        """Return a figure at the run's ε by its name; None where it was not measured."""
        return next((figure for figure in self.figures if figure.figure.name == name), None)

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able."""
        return {
            "figures": [figure.as_dict() for figure in self.figures],
            "by_epsilon": [
                {"epsilon": epsilon, "figures": [figure.as_dict() for figure in figures]}
                for epsilon, figures in self.by_epsilon.items()
            ],
            "basis": self.basis,
            "words": {str(word): text for word, text in self.words.items()},
            "missing": self.why_missing,
            "basis_of_curves": self.basis_of_curves,
        }


def deniability_of(epsilon: float, model: Model, say: Progress) -> Deniability:
    """Measure plausible deniability at the run's ε and around it."""
    sampler, total = model.privatizer.sampler, len(model.privatizer.vocabulary)
    # What the policy keeps in clear is never drawn: no word of it can be the worst.
    drawn = np.flatnonzero(drawn_words(model.privatizer.engine)[:total]).astype(np.int32)
    drawn = drawn if len(drawn) else np.arange(total, dtype=np.int32)
    words = _looked_at(model.privatizer, drawn)
    figures = _measured(sampler, words, drawn, total, STANDARD, counted("deniability", say))
    grid: dict[float, list[WordValues]] = {}
    why = basis = ""
    if model.compile_at is None:
        why = "There are no curves over ε, because the model's lexicon cannot be read here."
    else:
        at = [epsilon * times for times in TIMES] if epsilon else [0.0, 0.5, 1.0, 2.0, 4.0]
        some = words if figures[-1].exact or len(words) <= CURVES else words[:: -(-len(words) // CURVES)]
        grid, refused = _over(model.compile_at, at, total, some, drawn, say)
        why = f"The mechanism refuses {', '.join(f'ε = {each:g}' for each in refused)}." if refused else ""
        basis = "" if figures[-1].exact else _of_curves(figures[-1], len(some))
    strings = model.privatizer.vocabulary.strings()
    named = {word: strings[word].as_py() for figure in figures for word, _ in figure.worst()}
    laws = f" Laws are {sampler.law_is}." if sampler.law_is else ""
    return Deniability(figures, grid, f"{_basis(figures, total)}{laws}", named, why, basis)


def _over(
    compile_at: Callable[[float], Sampler],
    epsilons: Sequence[float],
    total: int,
    words: Ids,
    drawn: Ids,
    say: Progress,
) -> tuple[dict[float, list[WordValues]], list[float]]:
    """Return (the figures of the curves by ε, the ε that the mechanism refuses)."""
    grid: dict[float, list[WordValues]] = {}
    refused: list[float] = []
    for epsilon in epsilons:
        step = f"ε = {epsilon:g}"
        say(f"{step}: compiling", None)
        try:
            sampler = compile_at(epsilon)
        except SettingsError:
            refused.append(epsilon)
            continue
        say(step, None)
        grid[epsilon] = _measured(sampler, words, drawn, total, (StayRate(), SmallestSet()))
    return grid, refused


def _measured(
    sampler: Sampler,
    words: Ids,
    drawn: Ids,
    total: int,
    figures: Sequence[WordFigure],
    progress: Callable[[int, int], None] | None = None,
) -> list[WordValues]:
    """Return figures of some words; of every drawn word where a figure has a short cut, for the worst may be any."""
    measurements: list[WordValues] = []
    for figure in figures:
        if figure.shortcut(sampler, words[:1]) is not None:
            measurements += measure(sampler, drawn, total, [figure])
    whole = [figure.figure for figure in measurements]
    rest = [figure for figure in figures if figure not in whole]
    measurements += measure(sampler, words, total, rest, progress=progress)
    return [replace(figure, pool=len(drawn)) for figure in measurements]


def _of_curves(last: WordValues, words: int) -> str:
    return (
        f"Estimated from {last.draws:,} draws of each of {words:,} words. The line of the worst word bounds all of them with a "
        f"confidence of {last.confidence}."
    )


def _looked_at(privatizer: Privatizer, drawn: Ids) -> Ids:
    """Return all drawn words where that is quick, else some, evenly spaced over them: int32[n]."""
    if privatizer.sampler.has_short_laws:
        return drawn
    some = SAMPLED if privatizer.sampler.law(0) is not None else DRAWN
    return np.asarray(drawn[spaced(len(drawn), some)])


def _basis(figures: Sequence[WordValues], lexicon: int) -> str:
    last = figures[-1]
    words, total = len(last.words), last.pool or lexicon
    of = (
        "words of the lexicon"
        if total == lexicon
        else f"drawn words of the lexicon ({lexicon - total:,} are kept in clear)"
    )
    if not last.exact:
        return (
            f"Estimated from {last.draws:,} draws of each of {words:,} words of {total:,}, evenly spaced. All their bounds "
            f"hold together with a confidence of {last.confidence}. Other words may be worse."
        )
    if words == total:
        return f"Exact, over all {total:,} {of}."
    some = f"Exact for {words:,} words of {total:,}, evenly spaced. Other words may be worse."
    every = " and ".join(each.figure.name for each in figures if len(each.words) == total)
    return f"{some} {every}: exact, over all {total:,} {of}." if every else some


DECADE = 10.0
WHOLE = 100.0  # from here on counts are written without decimals
_RANKS = ("min", "p5", "p25", "p50", "p75", "p95", "max", "mean")  # as many as stand side by side on a page
_HISTOGRAMS = {
    "N_w": (
        "How often a word stays as it is",
        "{} by N_w, the probability that a word becomes itself.",
        "Words on the left nearly always change, and words on the right nearly never. The worst word limits a promise, not the "
        "median one.",
        "N_w",
    ),
    "S_w": (
        "Number of outputs that a word hides among",
        "{} by S_w, the number of outputs with 95 % of the probability together.",
        "Words on the right can become many others. A word with S_w = 1 has nowhere to hide.",
        "S_w (outputs)",
    ),
}

# Figure, the rank that most words reach, how it is called, the rank of the worst, title, how it is read.
_CURVES = (
    (
        "N_w", "p95", "95 % of words", "max", "Staying as it is, by ε",
        "A line near 1 leaves words unchanged. Choose an ε at which the worst word is low enough.",
    ),
    (
        "S_w", "p5", "95 % of words, at least", "min", "Outputs to hide among, by ε",
        "A line near 1 means that one output is all but certain.",
    ),
)  # fmt: skip


def deniability(model: Deniability, epsilon: float) -> Section:
    """Write how often words stay themselves, and among how many outputs they hide."""
    if not model.figures:
        return Section("deniability", "Plausible deniability", (Text(model.why_missing, quiet=True),))
    blocks: list[Block] = [
        Text(
            "The author of a word can deny it if the word often becomes another one, and if it can become many others. "
            f"{model.basis}"
        )
    ]
    blocks += [_histogram(figure) for figure in map(model.figure, ("N_w", "S_w")) if figure is not None]
    blocks += _curves(model.by_epsilon, exact(epsilon), model.basis_of_curves)
    if model.why_missing:
        blocks.append(Text(model.why_missing, quiet=True))
    blocks.append(Points("All figures, over the drawn words", ()))
    blocks.append(_percentiles(model.figures))
    blocks += _worst(model)
    return Section("deniability", "Plausible deniability", tuple(blocks))


def _histogram(figure: WordValues) -> Chart:
    name, spread = figure.figure.name, figure.distribution()
    title, shows, read, x = _HISTOGRAMS[name]
    edges, counts = spread.edges, spread.counts
    if name == "S_w":
        # Its bins double or so, up to the whole lexicon: those above the largest are left out.
        last = max((i for i, count in enumerate(counts) if count), default=0) + 2
        edges, counts = edges[1 : last + 1], counts[1:last]
    rank, side = ("max", "upper") if name == "N_w" else ("min", "lower")
    worst = "worst word" if figure.is_whole else "worst of these"
    marks = [(spread.at("p50"), "median word"), (spread.at(rank), worst)]
    if not figure.exact:
        marks[1] = (figure.distribution(side).at(rank), f"{worst}, by its bound")
    if name == "S_w" and not figure.exact:
        read += f" A count from draws is too small: no word can show more outputs than its {figure.draws:,} draws."
    shows = shows.format(
        "The drawn words of the lexicon" if figure.is_whole else f"{len(figure.words):,} words of the lexicon"
    )
    rows = tuple(
        (f"{low:g} to {high:g}", f"{count:,}")
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
        if count
    )
    even = name == "S_w"
    svg = histogram(edges, counts, key=f"spread{name}".lower(), x=x, y="words", marks=marks, even=even)
    return Chart(title, shows, read, svg, Table((name, "words"), rows))


def _curves(grid: Mapping[float, Sequence[WordValues]], chosen: str, basis: str) -> Iterator[Chart]:
    if len(grid) < 2:
        return
    epsilons = list(grid)
    first = next(iter(grid.values()))

    def line(figure: str, rank: str, name: str) -> Line:
        rows = [next(measured for measured in at if measured.figure.name == figure) for at in grid.values()]
        bounded = rank in ("min", "max") and not rows[0].exact
        side = "values" if not bounded else "upper" if rank == "max" else "lower"
        values = [row.statistic(side, rank)[0] for row in rows]
        return Line(name, epsilons, values)

    def table(drawn: Sequence[Line]) -> Table:
        rows = zip(epsilons, *(curve.y for curve in drawn), strict=True)
        return Table(
            ("ε", *(curve.name for curve in drawn)), tuple(tuple(_number(v) for v in row) for row in rows)
        )

    def worst_of(figure: str) -> str:
        measured = next(measured for measured in first if measured.figure.name == figure)
        return "worst word" if measured.is_whole else f"worst of {len(measured.words):,} words"

    for figure, rank, most, worst, title, read in _CURVES:
        drawn = [
            line(figure, "p50", "median word"),
            line(figure, rank, most),
            line(figure, worst, worst_of(figure)),
        ]
        shows = f"{figure} of the same mechanism at other ε. This run has ε = {chosen}. {basis}".strip()
        if figure == "N_w":
            svg = lines(drawn, key="nw", x="ε", y="N_w", log_x=True, top=1.02)
        else:
            values = [value for curve in drawn for value in curve.y]
            is_wide = min(values) > 0 and max(values) / min(values) > DECADE
            svg = lines(drawn, key="sw", x="ε", y="S_w (outputs)", log_x=True, log_y=is_wide)
        yield Chart(title, shows, read, svg, table(drawn))


def _percentiles(figures: Sequence[WordValues]) -> Table:
    sides = [
        (f"{figure.figure.name}{bound}", figure.distribution(side))
        for figure in figures
        for side, bound in (("values", ""), ("lower", ", lower bound"), ("upper", ", upper bound"))
        if side == "values" or not figure.exact
    ]
    rows = tuple((name, *(_number(spread.at(rank)) for rank in _RANKS)) for name, spread in sides)
    return Table(("over the words", *_RANKS), rows)


def _number(value: float) -> str:
    """Return a figure of a word: counts whole, all others with three digits, rounded up."""
    return f"{math.ceil(value):,}" if value >= WHOLE else digits_up(value, 3)


def _worst(model: Deniability) -> Iterator[Block]:
    sentences = []
    for figure in model.figures:
        if figure.figure.name in ("N_w", "S_w"):
            listed = ", ".join(
                f"{model.words[word]} ({digits_up(value, 3)})" for word, value in figure.worst()
            )
            sentences.append(f"{figure.figure.name}: {listed}.")
    if sentences:
        which = (
            "The worst drawn words of the lexicon"
            if all(figure.is_whole for figure in model.figures)
            else "The worst of these words"
        )
        yield Points(f"{which} (public: no text was read for them)", tuple(sentences))
