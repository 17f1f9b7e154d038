"""A comparison as it is read: every point, the best at each risk, what is uncertain, and a page that says it is restricted."""

from __future__ import annotations

import re

import pytest

from dptext_spark.audit.comparison import Comparison
from dptext_spark.audit.comparison_input import CorpusSettings
from dptext_spark.audit.frontier import BAYES, CONTEXT, Baselines, Point, frontier
from dptext_spark.audit.results import Estimate
from dptext_spark.audit.text_utility import COSINE, KEPT
from dptext_spark.report.comparison_page import comparison as screen_of
from dptext_spark.report.comparison_page import comparison_page
from dptext_spark.report.console import LINES
from tests.frozen.written import assert_as_frozen

MORE = Baselines("exact: the laws of all words of the lexicon were read", 0.0301, 0.1, 1234, 100, 0.2)
SETTINGS = CorpusSettings(
    version="0", engine="1", lexicon_fingerprints=("ab",), words=5000, policy={"stop_words": "keep"}, stop_words="cd",
    consistency="token", few=500, draws=100, records=200, attacked=100,
)  # fmt: skip


def about(value: float, wide: float) -> Estimate:
    return Estimate(*(round(one, 6) for one in (value, value - wide, value + wide)))


def points(name: str, *at: tuple[float, float, float], wide: float = 0.01) -> list[Point]:
    return [
        Point(
            name, epsilon, {BAYES: Estimate(risk, risk, risk, exact=True), CONTEXT: about(risk + 0.05, 0.01)},
            {KEPT: about(use, wide), COSINE: about(0.9 + use / 20, 0.002)}, MORE,
        )
        for epsilon, risk, use in at
    ]  # fmt: skip


def comparison(*found: Point, refused: tuple[tuple[str, float, str], ...] = ()) -> Comparison:
    frontiers = tuple(frontier(found, risk, use) for risk in (BAYES, CONTEXT) for use in (KEPT, COSINE))
    whole = Estimate(1.0, 1.0, 1.0, exact=True)
    return Comparison(frontiers, found, refused, {KEPT: whole, COSINE: whole}, SETTINGS)


FOUND = comparison(
    *points("one", (0.5, 0.1, 0.1), (2, 0.4, 0.4)),
    *points("other:k=2", (1, 0.2, 0.35), (5, 0.8, 0.9)),
    refused=(("other:k=2", 0.0, "mechanism.epsilon: 0 given"),),
)


ALIKE = [points(name, (1, 0.1, 0.1), (2, 0.9, 0.9)) for name in ("one", "two")]
CASES = {
    "plain": FOUND,
    "ties": comparison(*ALIKE[0], *points("two", (1, 0.1, 0.11), (2, 0.9, 0.91))),
    "the same figures": comparison(*ALIKE[0], *ALIKE[1]),
}


def test_comparisons_are_as_they_were() -> None:
    texts = {name: screen_of(compared).text() for name, compared in CASES.items()}
    texts["in full"] = screen_of(FOUND).text(full=True)
    assert_as_frozen("terminal", "comparison", texts)
    assert all(len(text.splitlines()) <= LINES for name, text in texts.items() if name != "in full")


def test_a_risk_is_never_rounded_down() -> None:
    _, row, *_ = screen_of(comparison(*points("one", (1, 0.10001, 0.1), (2, 0.4, 0.4)))).table
    assert row[2:4] == ("10.1", "15.1 (14-16.1)")


def test_the_page_is_restricted_and_has_its_charts() -> None:
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    page = comparison_page(FOUND)
    assert page == comparison_page(FOUND)
    assert page.splitlines()[0].startswith("<!doctype html><!-- RESTRICTED: figures in this file depend")
    assert page.count("<svg") == page.count("The table behind it") == 4
    assert "<script" not in page
    assert "://" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "other:k=2 refuses ε = 0" in page
    assert "<h3>Best by words kept, at each level of risk</h3>" in page
    assert '<th scope="row">20 to 40 %</th><td>other:k=2</td>' in page
    assert "The attack finds more to the right" in page


def test_more_curves_than_a_chart_tells_apart_are_two_charts() -> None:
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")

    def charts(curves: int) -> list[int]:
        """How many curves each chart of the first section's first utility has, by the rows of its table."""
        pairs = [points(f"m{n}", (1, 0.1, 0.1 + n / 50), (2, 0.9, 0.8 + n / 50)) for n in range(curves)]
        many = [point for pair in pairs for point in pair]
        tables = comparison_page(comparison(*many)).split("The table behind it")[1:]
        return [table.split("</details>")[0].count('<th scope="row">') // 2 for table in tables]

    assert charts(6) == [6] * 4
    assert charts(9) == [5, 4] * 4
