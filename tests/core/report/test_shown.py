"""A report shows itself: in a notebook whole, in a frame; elsewhere a sentence says where its file is."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark import spark as dps
from dptext_spark.report.facts import Example, gathered
from dptext_spark.report.page import page
from tests.core.report.accounts import METRICS, row, small_model

MARK = "Clear the output before you share the notebook."


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    def display(data: dict[str, str], **_: Any) -> None:
        found.append(data)

    kernel = SimpleNamespace(
        version_info=(9, 0),  # which matplotlib asks for
        get_ipython=lambda: SimpleNamespace(kernel=object()),
        display=SimpleNamespace(display=display),
    )
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize(
    "more", [{}, {"metrics": METRICS}, {"examples": [Example("body", "a <script>", "b")]}]
)
def test_a_notebook_shows_the_page_writes_no_file_and_says_what_is_not_for_sharing(
    shown: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, Any]
) -> None:
    facts = gathered(row(small_model(words=60)), model="not examined.", **more)
    dps.RunReport(facts).show()
    (html,) = (data["text/html"] for data in shown)
    before, frame, _ = html.partition("<iframe ")
    assert frame
    assert html.count(f'srcdoc="{escape(page(facts))}"') == 1
    assert before.count(MARK) == bool(more)
    assert "<script>" not in html
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_elsewhere_a_sentence_says_where_the_file_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.chdir(tmp_path)
    facts = gathered(row(small_model(words=60)), model="not examined.")
    dps.RunReport(facts).show()
    place = tmp_path / "report-r1.html"
    assert capsys.readouterr().out == f"This is no notebook, so the report is in {place.resolve()}\n"
    assert place.read_text(encoding="utf-8") == page(facts)
