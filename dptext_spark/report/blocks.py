"""The parts of a report before it is a page: sections of paragraphs, lists and tables, and charts as inline SVG.

Charts are readable in grey, on a phone and in print, and have the same bytes for the same figures. They are drawn 360 CSS pixels
wide and scale with the page. Text stays text, so it can be searched and read aloud.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Text:
    """A paragraph. `quiet` is for what qualifies the rest: where figures are missing, why."""

    said: str
    quiet: bool = False
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Points:
    """Sentences under a heading of their own; an empty heading is none."""

    heading: str
    sentences: tuple[str, ...]
    kind: ClassVar[str] = "list"


@dataclass(frozen=True)
class Table:
    """Rows under column names; cells are text already. `key` marks a table whose first column names the second."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    key: bool = False
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Chart:
    """A chart with its meaning, its reading, and the table behind it."""

    title: str
    shows: str
    read: str
    svg: str
    table: Table
    kind: ClassVar[str] = "chart"


Block = Text | Points | Table | Chart


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        name: of its anchor.
        heading: as it is printed.
        blocks: in order; consecutive charts form a grid.
        restricted: whether it depends on the private text.
    """

    name: str
    heading: str
    blocks: tuple[Block, ...]
    restricted: bool = False

    @property
    def groups(self) -> list[tuple[str, list[Block]]]:
        """The blocks, with those of a kind that follow each other together: (kind, blocks)."""
        return [(kind, list(blocks)) for kind, blocks in groupby(self.blocks, key=lambda block: block.kind)]


@dataclass(frozen=True)
class Tile:
    """A figure of the summary: its name, its value, and a line with its meaning."""

    name: str
    figure: str
    said: str


def capital(text: str) -> str:
    """Begin a text with a capital letter; a figure that begins with ε keeps it."""
    return text if text.startswith("ε") else text[:1].upper() + text[1:]


def pairs(rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table of names and values."""
    return Table(("", ""), tuple(rows), key=True)


WIDTH, HEIGHT = 3.75, 2.7  # inches of 72 points: 270 points are 360 CSS pixels
MOST_NAMES = 9  # of ranges along x
BAR = 0.34  # inches of height that a bar takes


class _Look(TypedDict):
    """The look of a line."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: str


class _Fill(TypedDict, total=False):
    """The fill of a bar."""

    facecolor: str
    edgecolor: str
    hatch: str


# Lines and fills differ in form as well as in colour, and the colours in lightness.
_LINES: tuple[_Look, ...] = (
    {"color": "#12355b", "linestyle": "-", "marker": "o"},
    {"color": "#c4521b", "linestyle": "--", "marker": "s"},
    {"color": "#5b8c5a", "linestyle": ":", "marker": "^"},
    {"color": "#7d6b91", "linestyle": "-.", "marker": "D"},
    {"color": "#8a8a8a", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#000000", "linestyle": (0, (1, 1)), "marker": "P"},
    {"color": "#3f9fa8", "linestyle": (0, (8, 2)), "marker": "X"},
    {"color": "#d8a100", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
)
MOST_LINES = len(_LINES)
_FILLS: tuple[_Fill, ...] = (
    {"facecolor": "#5b7fa6", "edgecolor": "#12355b"},
    {"facecolor": "#ffffff", "edgecolor": "#8a4a2b", "hatch": "//"},
    {"facecolor": "#b9cbd9", "edgecolor": "#44556a", "hatch": "--"},
    {"facecolor": "#e9e2d0", "edgecolor": "#6b5d3a", "hatch": "xx"},
    {"facecolor": "#b9cbd9", "edgecolor": "#44556a"},
)
_STYLE = {
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.edgecolor": "#444444",
    "grid.color": "#d8d8d8",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.fonttype": "none",
    "mathtext.fontset": "dejavusans",
}


@dataclass(frozen=True)
class Line:
    """A line of a chart: points, and where they are estimates the bounds of each, along x and up."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    left: Sequence[float] | None = None
    right: Sequence[float] | None = None


@dataclass(frozen=True)
class Bar:
    """A bar of a chart; `kind` chooses its fill: 0 for the measurement, 1 and up for its comparisons."""

    name: str
    value: float
    kind: int = 0
    low: float | None = None
    high: float | None = None
    said: str = ""


def lines(
    drawn: Sequence[Line], *, key: str, x: str, y: str, log_x: bool = False, log_y: bool = False, top: float | None = None,
    bottom: float = 0.0,
) -> str:  # fmt: skip
    """Draw lines over a common axis.

    The ids of the SVG begin with `key`. Without `top`, y ends above the points.

    Returns:
        The SVG element.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    with _drawing(key) as (figure, axes):
        for line, look in zip(drawn, _LINES, strict=False):
            axes.plot(line.x, line.y, label=line.name, **look)
            if line.low is not None and line.high is not None:
                axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.18, linewidth=0)
            if line.left is not None and line.right is not None:
                axes.hlines(line.y, line.left, line.right, color=look["color"], linewidth=0.7)
        if log_x:
            axes.set_xscale("log")
            _plain_ticks(axes.xaxis, sorted({value for line in drawn for value in line.x}))
        if log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.minorticks_off()
        else:
            axes.set_ylim(bottom, top or 1.08 * max(value for line in drawn for value in line.y))
        return _upright(figure, key, x, y, legend=len(drawn) > 1)


def histogram(
    edges: Sequence[float], counts: Sequence[float], *, key: str, x: str, y: str,
    marks: Sequence[tuple[float, str]] = (),
    even: bool = False,
) -> str:  # fmt: skip
    """Draw how often a figure falls into each range.

    `edges` [n + 1] ascend, `counts` is [n]. `marks` are upright lines with names. `even` draws all ranges equally wide.

    Returns:
        The SVG element.
    """
    import numpy as np

    with _drawing(key) as (figure, axes):
        places = list(range(len(edges))) if even else list(edges)
        widths = [after - before for before, after in pairwise(places)]
        axes.bar(places[:-1], list(counts), width=widths, align="edge", linewidth=0.6, **_FILLS[4])
        for (value, name), look in zip(marks, _LINES, strict=False):
            at = float(np.interp(value, edges, places))
            axes.axvline(at, color=look["color"], linestyle=look["linestyle"], label=name, linewidth=1.6)
        if even:
            # Names of more than four digits run into each other where each stands.
            step = 2 if len(edges) > MOST_NAMES else 1
            axes.set_xticks(places[::step], [f"{edge:,g}" for edge in edges[::step]])
        axes.set_xlim(places[0], places[-1])
        axes.set_axisbelow(True)
        return _upright(figure, key, x, y, legend=bool(marks))


def bars(drawn: Sequence[Bar], *, key: str, x: str, top: float | None = None) -> str:
    """Draw horizontal bars, each with its name above it and its value at its end.

    Without `top`, x ends behind the longest bar.

    Returns:
        The SVG element.
    """
    with _drawing(key, height=0.75 + BAR * 1.35 * len(drawn)) as (figure, axes):
        end = top or max([bar.value for bar in drawn] + [bar.high or 0.0 for bar in drawn]) or 1.0
        for place, bar in enumerate(reversed(drawn)):
            axes.barh(place, bar.value, height=0.42, linewidth=0.8, **_FILLS[bar.kind % len(_FILLS)])
            if bar.low is not None and bar.high is not None:
                axes.plot([bar.low, bar.high], [place, place], color="#000000", linewidth=1.2, marker="|")
            axes.text(0, place + 0.29, bar.name, va="bottom", ha="left")
            behind = max(bar.value, bar.high or 0.0) + end * 0.02
            axes.text(behind, place, bar.said or f"{bar.value:.3g}", va="center", ha="left")
        axes.set_xlim(0, end * 1.25)
        axes.set_ylim(-0.5, len(drawn) - 0.2)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= end * 1.0001])
        axes.set_axisbelow(True)
        axes.grid(True, axis="x")
        axes.set_xlabel(x)
        return _svg(figure, key)


@contextmanager
def _drawing(key: str, height: float = HEIGHT) -> Iterator[tuple[Figure, Axes]]:
    """Open a figure with its axes, in the style of the charts; equal charts get equal ids in SVG."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {**_STYLE, "svg.hashsalt": key}  # matplotlib names its keys one by one
    with rc_context(style):
        figure = FigureCanvasSVG(Figure(figsize=(WIDTH, height), layout="constrained")).figure
        yield figure, figure.add_subplot()


def _upright(figure: Figure, key: str, x: str, y: str, *, legend: bool) -> str:
    """Name the axes of a chart with upright figures, and return its SVG."""
    (axes,) = figure.axes
    axes.grid(True, axis="y")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if legend:
        figure.legend(loc="outside lower center", ncols=2, handlelength=3.2)
    return _svg(figure, key)


def _plain_ticks(axis: Axis, values: list[float]) -> None:
    """Name the values themselves along a logarithmic axis, where they are few."""
    if len(values) <= 8:
        axis.set_ticks(values, [f"{value:g}" for value in values])
        axis.axes.minorticks_off()


def _svg(figure: Figure, key: str) -> str:
    """Return a figure as an SVG element for a page: no prolog, no metadata, no address, ids of its own."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(r'\s+id="([^"]+)"', lambda m: f' id="{key}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", svg)
    # The page says how wide it is; the height follows from the box.
    return re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true" focusable="false">', svg, count=1
    )
