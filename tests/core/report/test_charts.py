"""Charts: the same bytes for the same figures, no address, no clash of ids, readable without colour."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")

from dptext_spark.report.blocks import Bar, Line, bars, histogram, lines

LINES = [
    Line("median", [0.5, 1, 2], [0.1, 0.2, 0.4]),
    Line("worst", [0.5, 1, 2], [0.2, 0.5, 0.9], [0.1, 0.4, 0.8], [0.3, 0.6, 1.0]),
]
CHARTS: dict[str, Callable[[str], str]] = {
    "lines": lambda key: lines(LINES, key=key, x="ε", y="N_w", log_x=True, top=1.0),
    "log": lambda key: lines(LINES, key=key, x="ε", y="N_w", log_x=True, log_y=True),
    "histogram": lambda key: histogram([0, 0.5, 1], [3, 4], key=key, x="N_w", y="words", marks=[(0.4, "median")]),
    "even": lambda key: histogram([1, 2, 5, 10], [3, 4, 0], key=key, x="S_w", y="words", even=True),
    "bars": lambda key: bars([Bar("a <b> & c", 0.3, 0, 0.2, 0.4), Bar("guess", 0.1, 1)], key=key, x="share"),
    "nothing": lambda key: bars([Bar("none", 0.0)], key=key, x="share"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_an_element_that_repeats_and_fetches_nothing(name: str) -> None:
    svg = CHARTS[name]("one")
    assert svg == CHARTS[name]("one")
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert "viewBox" in root.attrib
    assert "width" not in root.attrib
    for outside in ("://", "xmlns", "<metadata", "<!"):
        assert outside not in svg
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("one-") for name in ids)
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg)) == set(ids)
    assert len(svg) < 40_000


def test_two_charts_share_no_id() -> None:
    one, two = ({*re.findall(r'\bid="([^"]+)"', CHARTS["bars"](key))} for key in ("one", "two"))
    assert one
    assert not one & two


def test_text_stays_text_lines_differ_in_form_and_bars_in_filling() -> None:
    texts = {node.text for node in ElementTree.fromstring(CHARTS["bars"]("k")).iter("text")}
    assert {"a <b> & c", "share"} <= texts
    assert "stroke-dasharray" in CHARTS["lines"]("k")
    assert ["<pattern" in CHARTS[name]("k") for name in ("bars", "nothing")] == [True, False]
