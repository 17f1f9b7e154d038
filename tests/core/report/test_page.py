"""The page: offline, marked where it is restricted, complete where figures are missing, and without a private word."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")


from dptext_spark.guarantee import Guarantee
from dptext_spark.model.certificate import Certificate
from dptext_spark.report.deniability_section import Model
from dptext_spark.report.facts import Example, ReportFacts, gathered
from dptext_spark.report.page import page
from tests.core.report.accounts import METRICS, row, small_model

EXAMPLES = [Example("body", "marker <b>before</b>", "marker after")]
OPENING = ["What somebody can find", "What that means", "An example, of public text"]
OPENING += ["What it rests on", "To sign"]
HEADINGS = [
    *OPENING, "Annex: what was released, in figures", "Guarantee and certificate",
    "What is disclosed", "Attacks", "Plausible deniability", "Utility", "Names", "Data quality",
    "Configuration and fingerprints", "Glossary",
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Model:
    return small_model(words=60)


@pytest.fixture(scope="module")
def internal(model: Model) -> ReportFacts:
    return gathered(row(model), model=model, metrics=METRICS)


class Read(HTMLParser):
    """The elements of a page, its text by element, and whether every element is closed."""

    VOID = ("meta", "path", "use", "stop")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.said.append((self.open[-1], " ".join(data.split())))


def test_it_fetches_nothing_and_runs_nothing(internal: ReportFacts) -> None:
    text = page(replace(internal, examples=EXAMPLES))
    assert "://" not in text
    assert "@import" not in text
    assert "url(#" in text
    read = Read(text)
    assert read.open == []
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in read.tags}
    for tag, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    policy = [a["content"] for tag, a in read.tags if tag == "meta" and a.get("http-equiv")]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_every_section_is_there_and_the_page_repeats(facts: ReportFacts) -> None:
    json.dumps(facts.as_dict())
    text = page(facts)
    assert text == page(facts)
    read = Read(text)
    assert [text for tag, text in read.said if tag == "h2"] == HEADINGS
    assert [text for tag, text in read.said if tag == "h1"] == ["Decision on run r1"]
    ids = [a["id"] for _, a in read.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {str(a["href"])[1:] for tag, a in read.tags if tag == "a"} <= set(ids)


def test_every_chart_says_what_it_shows_how_it_is_read_and_has_a_table(internal: ReportFacts) -> None:
    text = page(internal)
    figures = re.findall(r"<figure.*?</figure>", text, flags=re.DOTALL)
    assert len(figures) >= 7
    for figure in figures:
        assert re.search(r"<figcaption><strong>[^<]+</strong>[^<]{20,}</figcaption>", figure)
        assert re.search(r'<p class="quiet">[^<]{20,}</p>', figure)
        assert "<svg" in figure
        assert re.search(r"<details>.*<table.*<td>.*</details>", figure, flags=re.DOTALL)


def test_what_may_be_shared_holds_no_restricted_figure(facts: ReportFacts, internal: ReportFacts) -> None:
    shared, whole = (re.sub("<svg.*?</svg>", "", page(one), flags=re.DOTALL) for one in (facts, internal))
    for figure in ("12.4", "81.3", "original_share", "44 %"):
        assert figure in whole
        assert figure not in shared
    assert "RESTRICTED" not in shared
    assert not shared.startswith("<!doctype html><!--")


def test_restricted_figures_mark_the_file_and_every_page(internal: ReportFacts) -> None:
    text = page(internal)
    assert text.splitlines()[0].startswith("<!doctype html><!-- RESTRICTED: ")
    assert text.count("RESTRICTED: this report") == 4
    assert "<title>RESTRICTED: " in text


@pytest.mark.long
def test_examples_mark_the_file_in_its_first_line_and_are_escaped(facts: ReportFacts) -> None:
    text = page(replace(facts, examples=EXAMPLES))
    assert "RESTRICTED: this report holds private text" in text.splitlines()[0]
    assert "marker &lt;b&gt;before&lt;/b&gt;" in text
    assert "<b>before" not in text
    assert "marker" not in page(facts)


UNKNOWN = ("disclosure", "output_version", "rows", "seconds", "tokens_per_second")
UNFINISHED = {"status": "failed", **dict.fromkeys(UNKNOWN)}
REFUTED = Certificate("refuted", Guarantee("epsilon_dp", 1.0), None, "Refuted: told.", seconds=1.0)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "the lexicon is gone."),
        (UNFINISHED, "There is no statement"),
        ({"settings": {"policy": {"oov": "keep"}}}, "UNKNOWN WORDS ARE RELEASED IN CLEAR"),
        ({"input": "<script>marker</script>"}, "&lt;script&gt;marker"),
    ],
)
def test_without_a_model_it_has_all_sections(model: Model, changes: dict[str, Any], shown: str) -> None:
    record = row(model, **changes)
    text = page(gathered(record, model="the lexicon is gone."))
    assert [heading for tag, heading in Read(text).said if tag == "h2"] == HEADINGS
    assert text.count("the lexicon is gone.") >= 3
    assert shown in text
    assert "<script" not in text
    if "settings" in changes:  # warnings stand at the top
        assert text.index(shown) < text.index("<nav")


def test_a_certificate_that_the_account_holds_is_taken_as_it_is(model: Model) -> None:
    record = row(model, certificate=json.dumps(REFUTED.as_dict()))
    assert "Refuted: told." in page(gathered(record, model=model))


@pytest.mark.long
def test_it_says_what_to_install_and_nothing_of_it_is_imported_before() -> None:
    import subprocess
    import sys

    modules = "sys, dptext_spark.report.page, dptext_spark.report.facts, dptext_spark.cli.app"
    program = f"import {modules}; print(sorted({{'jinja2', 'matplotlib'}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_print_rules_keep_parts_on_one_sheet(internal: ReportFacts) -> None:
    css = page(internal).split("@media print {", 1)[1].split("@media screen", 1)[0]
    rules: dict[str, set[str]] = {}
    for selectors, body in re.findall(r"([^{};]+)\{([^{}]*)\}", css):
        for selector in selectors.split(","):
            rules.setdefault(selector.strip(), set()).update(part.strip() for part in body.split(";"))
    assert "margin: 16mm 14mm" in rules["@page"]
    assert "break-before: page" in rules["main"]
    wholes = (".verdict", ".required li", ".whole", ".example", ".sign", ".tile", ".warned", "figure")
    for whole in (*wholes, "figcaption", "tr"):
        assert "break-inside: avoid" in rules[whole], whole
    for heading in ("h2", "h3", "figcaption"):
        assert "break-after: avoid" in rules[heading], heading
    assert {"orphans: 3", "widows: 3"} <= rules["p"]
    assert "display: table-header-group" in rules[".sheet-head"]
    assert "display: table-footer-group" in rules[".sheet-foot"]
