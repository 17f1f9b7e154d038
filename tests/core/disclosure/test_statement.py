"""The statement as a value: what it renders as, and how it grows."""

from __future__ import annotations

import re

from dptext_spark.disclosure.statement import Statement

STATEMENT = Statement(
    (("Warnings", ("A <b> & 'c'.",)), ("Protected", ("Drawn words.", "ε = 2.")), ("Across runs", ()))
)


def test_it_is_markdown() -> None:
    assert STATEMENT.markdown() == (
        "### Warnings\n\n- A <b> & 'c'.\n\n### Protected\n\n- Drawn words.\n- ε = 2.\n\n### Across runs\n\n"
    )


def test_it_is_html_with_all_text_escaped() -> None:
    assert re.findall(r"<(h\d|li)>(.*?)</\1>", STATEMENT.html(level=2)) == [
        ("h2", "Warnings"),
        ("li", "A &lt;b&gt; &amp; &#x27;c&#x27;."),
        ("h2", "Protected"),
        ("li", "Drawn words."),
        ("li", "ε = 2."),
        ("h2", "Across runs"),
    ]
    assert "<b>" not in STATEMENT.html()
    assert "<h3>" in STATEMENT.html()


def test_it_grows_under_a_heading_or_by_one() -> None:
    assert STATEMENT.extended("Protected", "More.").under("Protected")[-1] == "More."
    assert STATEMENT.extended("New", "First.").sections[-1] == ("New", ("First.",))
    assert STATEMENT.extended("New", "First.").sections[:-1] == STATEMENT.sections


def test_what_records_came_to_is_marked_as_restricted_and_never_rounded_down() -> None:
    said = STATEMENT.with_composed({"mean": 12.31, "p95": 40.0, "max": 81.25}).under("Protected")[-1]
    assert said.startswith("Restricted, ")
    assert re.findall(r"\d+\.\d", said) == ["12.4", "40.0", "81.3"]
