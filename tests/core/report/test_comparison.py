"""A comparison as it is read: every point, the best at each risk, what is uncertain, and a page that says it is restricted."""

from __future__ import annotations

import re

import pytest

from dptext_spark.audit.comparison.compare import Comparison
from dptext_spark.audit.comparison.corpus import CorpusSettings
from dptext_spark.audit.comparison.frontier import BAYES, CONTEXT, Basis, Point, frontier
from dptext_spark.audit.estimates import Estimate
from dptext_spark.audit.utility.retained import COSINE, KEPT
from dptext_spark.report.comparison import comparison_page, comparison_text

MORE = Basis("exact: every law of the lexicon was read", 0.0301, 0.1, 1234, 100, 0.2)
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


def test_the_text_has_the_points_and_the_best() -> None:
    text = comparison_text(FOUND, 100)
    parts = text.split("\n\n")
    assert [row.split()[0] for row in parts[0].splitlines()] == [
        "mechanism",
        "one",
        "one",
        "other:k=2",
        "other:k=2",
        "unprotected",
    ]
    assert "0.5  10 " in parts[0]
    assert "15 (14-16)" in parts[0]
    title, head, *rows = parts[1].splitlines()
    assert title == "Words kept at equal risk, one word alone"
    assert head.split() == [
        "risk",
        "best",
        "one",
        "other:k=2",
    ]
    by_level = {row.split(" %")[0]: row for row in rows}
    assert "one (no other reaches it)" in by_level["10"]
    assert by_level["10"].endswith(" -")
    assert re.search(r"other:k=2 +20\.0 \(19\.0-21\.0\) +35\.0 \(34\.0-36\.0\)", by_level["20"])
    assert len(parts) == 1 + 4 + 1


def test_a_risk_is_never_rounded_down() -> None:
    found = comparison(*points("one", (1, 0.10001, 0.1), (2, 0.4, 0.4)))
    row = comparison_text(found, 100).splitlines()[1]
    assert "10.1 " in row
    assert "15.1 (14-16.1)" in row


def test_it_says_how_it_was_measured() -> None:
    said = " ".join(comparison_text(FOUND, 100).split())
    for sentence in (
        "Guessing the commonest word finds 3.01 %.",
        "one, other:k=2: exact: every law of the lexicon was read.",
        "Measured on 1,234 replaced words of 100 records; a stronger attack may find more.",
        "200 records were replaced, token level, over 5,000 words; stop words: keep.",
        "Mechanisms whose intervals overlap are not told apart: undecided, the one that measured best first.",
        "outside the measured risks, or where their bounds leave that open: not reached (-).",
        "other:k=2 refuses ε = 0: mechanism.epsilon: 0 given",
        "Restricted: figures in this file depend on the private text. Not for sharing.",
    ):
        assert sentence in said


def test_ties_are_said() -> None:
    alike = comparison(
        *points("one", (1, 0.1, 0.1), (2, 0.9, 0.9)), *points("two", (1, 0.1, 0.11), (2, 0.9, 0.91))
    )
    said = comparison_text(alike, 100)
    assert "undecided: two, one" in said
    assert "the same figures" not in said
    one, two = (points(name, (1, 0.1, 0.1), (2, 0.9, 0.9)) for name in ("one", "two"))
    assert "one and two have the same figures at every ε." in comparison_text(comparison(*one, *two), 100)


def test_a_narrow_terminal_gets_what_is_best_and_no_line_that_is_too_long() -> None:
    text = comparison_text(FOUND, 70)
    first, best = text.split("\n\n")[:2]
    assert [row for row in first.splitlines() if not row.startswith(" ")] == [
        "one",
        "other:k=2",
        "unprotected text",
    ]
    assert max(map(len, text.split("\n\n", 1)[1].splitlines())) <= 70
    rows = [" ".join(row.split()) for row in best.splitlines()]
    assert rows == [
        "Words kept at equal risk, one word alone",
        "risk best",
        "10 to 15 % one (no other reaches it)",
        "20 to 40 % other:k=2",
        "50 to 80 % other:k=2 (no other reaches it)",
    ]
    assert "stands in the page of --out, and in --json" in " ".join(text.split())


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
    assert "Further to the right the attack finds more" in page


def test_more_curves_than_a_chart_tells_apart_are_two_charts() -> None:
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")

    def charts(curves: int) -> list[int]:
        """How many curves each chart of the first section's first utility has, by the rows of its table."""
        many = [
            one
            for n in range(curves)
            for one in points(f"m{n}", (1, 0.1, 0.1 + n / 50), (2, 0.9, 0.8 + n / 50))
        ]
        tables = comparison_page(comparison(*many)).split("The table behind it")[1:]
        return [table.split("</details>")[0].count('<th scope="row">') // 2 for table in tables]

    assert charts(6) == [6] * 4
    assert charts(9) == [5, 4] * 4
