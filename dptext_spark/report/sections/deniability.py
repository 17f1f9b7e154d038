"""The section of a report on plausible deniability: histograms, curves over ε, percentiles, the worst words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dptext_spark.audit.deniability import Measured
from dptext_spark.report.blocks import Block, Chart, Listed, Section, Table, Text
from dptext_spark.report.charts import Line, histogram, lines
from dptext_spark.report.sections.model_figures import Deniability
from dptext_spark.rounding import digits_up, exact

DECADE = 10.0
WHOLE = 100.0  # from here on counts are written without decimals
_RANKS = ("min", "p5", "p25", "p50", "p75", "p95", "max", "mean")  # as many as stand side by side on a page
_HISTOGRAMS = {
    "N_w": (
        "How often a word stays as it is",
        "{} by N_w, the probability that a word comes out as itself.",
        "Bars on the left are words that nearly always change; on the right, words that nearly never do. The worst word "
        "decides what can be promised, not the median one.",
        "N_w",
    ),
    "S_w": (
        "Among how many outputs a word hides",
        "{} by S_w, the number of outputs that together have 95 % of the probability.",
        "Bars on the right are words that can become many others. A word with S_w = 1 has nowhere to hide.",
        "S_w (outputs)",
    ),
}

# Figure, the rank that most words reach, how it is called, the rank of the worst, title, how it is read.
_CURVES = (
    (
        "N_w", "p95", "95 % of words", "max", "Staying as it is, by ε",
        "A line that is near 1 leaves words as they are; take the ε at which the worst word is still low enough.",
    ),
    (
        "S_w", "p5", "95 % of words, at least", "min", "Outputs to hide among, by ε",
        "A line near 1 says that one output is all but certain.",
    ),
)  # fmt: skip


def deniability(found: Deniability, epsilon: float) -> Section:
    """Write how often words stay themselves, and among how many outputs they hide.

    Args:
        found: of the model of the run.
        epsilon: the run's.
    """
    if not found.figures:
        return Section("deniability", "Plausible deniability", (Text(found.why_missing, quiet=True),))
    blocks: list[Block] = [
        Text(
            "Whoever wrote a word can deny it if it often comes out as another one, and if what comes out could have been "
            f"many others. {found.basis}"
        )
    ]
    blocks += [_histogram(one) for one in map(found.figure, ("N_w", "S_w")) if one is not None]
    blocks += _curves(found.by_epsilon, exact(epsilon), found.basis_of_curves)
    if found.why_missing:
        blocks.append(Text(found.why_missing, quiet=True))
    blocks.append(Listed("All figures, over the drawn words", ()))
    blocks.append(_percentiles(found.figures))
    blocks += _worst(found)
    return Section("deniability", "Plausible deniability", tuple(blocks))


def _histogram(one: Measured) -> Chart:
    name, found = one.figure.name, one.distribution()
    title, shows, read, x = _HISTOGRAMS[name]
    edges, counts = found.edges, found.counts
    if name == "S_w":
        # Its bins double or so, up to the whole lexicon: those above the largest are left out.
        last = max((i for i, count in enumerate(counts) if count), default=0) + 2
        edges, counts = edges[1 : last + 1], counts[1:last]
    rank, side = ("max", "upper") if name == "N_w" else ("min", "lower")
    worst = "worst word" if one.is_whole else "worst of these"
    marks = [(found.at("p50"), "median word"), (found.at(rank), worst)]
    if not one.exact:
        marks[1] = (one.distribution(side).at(rank), f"{worst}, by its bound")
    if name == "S_w" and not one.exact:
        read += f" Counted from draws it is too small: no word can show more outputs than its {one.draws:,} draws."
    shows = shows.format(
        "The drawn words of the lexicon" if one.is_whole else f"{len(one.words):,} words of the lexicon"
    )
    rows = tuple(
        (f"{low:g} to {high:g}", f"{count:,}")
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
        if count
    )
    even = name == "S_w"
    svg = histogram(edges, counts, key=f"spread{name}".lower(), x=x, y="words", marks=marks, even=even)
    return Chart(title, shows, read, svg, Table((name, "words"), rows))


def _curves(grid: Mapping[float, Sequence[Measured]], chosen: str, basis: str) -> Iterator[Chart]:
    if len(grid) < 2:
        return
    epsilons = list(grid)
    first = next(iter(grid.values()))

    def line(figure: str, rank: str, said: str) -> Line:
        rows = [next(one for one in at if one.figure.name == figure) for at in grid.values()]
        bounded = rank in ("min", "max") and not rows[0].exact
        side = "values" if not bounded else "upper" if rank == "max" else "lower"
        values = [one.statistic(side, rank)[0] for one in rows]
        return Line(said, epsilons, values)

    def table(drawn: Sequence[Line]) -> Table:
        rows = zip(epsilons, *(one.y for one in drawn), strict=True)
        return Table(
            ("ε", *(one.name for one in drawn)), tuple(tuple(_number(v) for v in row) for row in rows)
        )

    def worst_of(figure: str) -> str:
        one = next(one for one in first if one.figure.name == figure)
        return "worst word" if one.is_whole else f"worst of {len(one.words):,} words"

    for figure, rank, most, worst, title, read in _CURVES:
        drawn = [
            line(figure, "p50", "median word"),
            line(figure, rank, most),
            line(figure, worst, worst_of(figure)),
        ]
        shows = f"{figure} of the same mechanism at other ε; this run has ε = {chosen}. {basis}".strip()
        if figure == "N_w":
            svg = lines(drawn, key="nw", x="ε", y="N_w", log_x=True, top=1.02)
        else:
            svg = lines(drawn, key="sw", x="ε", y="S_w (outputs)", log_x=True, log_y=_spans(drawn))
        yield Chart(title, shows, read, svg, table(drawn))


def _spans(drawn: Sequence[Line]) -> bool:
    """Whether lines span so much that they need a logarithmic axis."""
    values = [value for one in drawn for value in one.y]
    return min(values) > 0 and max(values) / min(values) > DECADE


def _percentiles(figures: Sequence[Measured]) -> Table:
    sides = [
        (f"{one.figure.name}{said}", one.distribution(side))
        for one in figures
        for side, said in (("values", ""), ("lower", ", lower bound"), ("upper", ", upper bound"))
        if side == "values" or not one.exact
    ]
    rows = tuple((name, *(_number(found.at(rank)) for rank in _RANKS)) for name, found in sides)
    return Table(("over the words", *_RANKS), rows)


def _number(value: float) -> str:
    """Return a figure of a word: counts whole, all others with three digits, rounded up."""
    return f"{math.ceil(value):,}" if value >= WHOLE else digits_up(value, 3)


def _worst(found: Deniability) -> Iterator[Block]:
    said = []
    for one in found.figures:
        if one.figure.name in ("N_w", "S_w"):
            listed = ", ".join(f"{found.words[word]} ({digits_up(value, 3)})" for word, value in one.worst())
            said.append(f"{one.figure.name}: {listed}.")
    if said:
        which = (
            "The worst drawn words of the lexicon"
            if all(one.is_whole for one in found.figures)
            else "The worst of these words"
        )
        yield Listed(f"{which} (public: no text was read for them)", tuple(said))
