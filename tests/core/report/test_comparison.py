"""A comparison as it is read: every point, the best at each risk, what is uncertain, and a page that says it is restricted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dptext_spark.audit.frontier import frontier
from dptext_spark.audit.points import Measure, Point
from dptext_spark.audit.risks import BAYES, CONTEXT
from dptext_spark.audit.usefulness import COSINE, KEPT
from dptext_spark.compare import Comparison
from dptext_spark.report.comparison import comparison_page, comparison_text

MORE: dict[str, Any] = {
    "how": "exact: every law of the lexicon was read",
    "baseline": 0.0301,
    "in_context_without_output": 0.1,
    "in_context_words_attacked": 1234,
    "in_context_records": 100,
    "in_context_of_one_word_alone": 0.2,
}
SETTINGS = {"records": 200, "consistency": "token", "words": 5000, "policy": {"stop_words": "keep"}}


def about(value: float, wide: float) -> Measure:
    return Measure(*(round(one, 6) for one in (value, value - wide, value + wide)))


def points(name: str, *at: tuple[float, float, float], wide: float = 0.01) -> list[Point]:
    return [
        Point(
            name, epsilon, {BAYES: Measure(risk, risk, risk, exact=True), CONTEXT: about(risk + 0.05, 0.01)},
            {KEPT: about(use, wide), COSINE: about(0.9 + use / 20, 0.002)}, MORE,
        )
        for epsilon, risk, use in at
    ]  # fmt: skip


def comparison(*found: Point, refused: tuple[tuple[str, float, str], ...] = ()) -> Comparison:
    frontiers = tuple(frontier(found, risk, use) for risk in (BAYES, CONTEXT) for use in (KEPT, COSINE))
    whole = Measure(1.0, 1.0, 1.0, exact=True)
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
    assert "0.5  10 " in parts[0] and "15 (14 to 16)" in parts[0]
    title, head, *rows = parts[1].splitlines()
    assert title == "Words kept at equal risk, one word alone" and head.split() == [
        "risk",
        "best",
        "one",
        "other:k=2",
    ]
    by_level = {row.split(" %")[0]: row for row in rows}
    assert "one (no other reaches it)" in by_level["10"] and "not reached" in by_level["10"]
    assert re.search(r"other:k=2 +20\.0 \(19\.0 to 21\.0\) +35\.0 \(34\.0 to 36\.0\)", by_level["20"])
    assert len(parts) == 1 + 4 + 1


def test_a_risk_is_never_rounded_down() -> None:
    found = comparison(*points("one", (1, 0.10001, 0.1), (2, 0.4, 0.4)))
    row = comparison_text(found, 100).splitlines()[1]
    assert "10.1 " in row and "15.1 (14 to 16.1)" in row


def test_it_says_how_it_was_measured() -> None:
    said = " ".join(comparison_text(FOUND, 100).split())
    for sentence in (
        "Guessing the commonest word finds 3.01 %.",
        "one, other:k=2: exact: every law of the lexicon was read.",
        "Measured on 1,234 replaced words of 100 records; a stronger attack may find more.",
        "200 records were replaced, token level, over 5,000 words; stop words: keep.",
        "Mechanisms whose intervals overlap are not distinguishable.",
        "outside the measured risks, or where their bounds leave that open: not reached.",
        "other:k=2 refuses ε = 0: mechanism.epsilon: 0 given",
        "Restricted: figures in this file depend on the private text. Not for sharing.",
    ):
        assert sentence in said


def test_ties_are_said() -> None:
    alike = comparison(
        *points("one", (1, 0.1, 0.1), (2, 0.9, 0.9)), *points("two", (1, 0.1, 0.11), (2, 0.9, 0.91))
    )
    assert "not distinguishable: two, one" in comparison_text(alike, 100)


def test_the_page_is_restricted_and_has_its_charts() -> None:
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    page = comparison_page(FOUND)
    assert page == comparison_page(FOUND)
    assert page.splitlines()[0].startswith("<!doctype html><!-- RESTRICTED: figures in this file depend")
    assert page.count("<svg") == page.count("The table behind it") == 4
    assert "<script" not in page and "://" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "other:k=2 refuses ε = 0" in page
    assert "Further to the right the attack finds more" in page


def test_more_curves_than_a_chart_tells_apart_are_two_charts() -> None:
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    many = [one for n in range(6) for one in points(f"m{n}", (1, 0.1, 0.1 + n / 50), (2, 0.9, 0.8 + n / 50))]
    assert comparison_page(comparison(*many)).count("<svg") == 8
