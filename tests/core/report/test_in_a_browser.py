"""The page in a real browser: nothing is fetched, nothing overflows at three widths, and each printed page is marked."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark.report.comparison_page import comparison_page
from dptext_spark.report.facts import Example, gathered
from dptext_spark.report.page import page
from tests.core.report.accounts import AUDITED, METRICS, row, small_model
from tests.core.report.browser import Browser, found
from tests.core.report.test_comparison import comparison, points
from tests.core.report.test_decision import standings

PROGRAM = found()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")
WIDTHS = (360, 800, 1400)
# What sticks out of the page, and is in nothing that scrolls.
OVERFLOWING = """[...document.querySelectorAll('body *')].filter(one => {
  const box = one.getBoundingClientRect();
  return box.width && !one.closest('.table') && !one.closest('svg')
    && (box.right > document.documentElement.clientWidth + 1 || box.left < -1);
}).map(one => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = small_model(words=100)
    long = [Example("body", "x" * 600, "word " * 100)]
    facts = gathered(row(model, output="/" + "long" * 60), model=model, metrics=METRICS, examples=long)
    place = tmp_path_factory.mktemp("page") / "report.html"
    place.write_text(page(facts), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ["custext", "diffractor", "diffractor:form=tem:lists=3", "santext", "tem", "mvc"]
    found = [points(name, (1, 0.02, 0.1 + n / 50), (2, 0.9, 0.8 + n / 50)) for n, name in enumerate(names)]
    many = [point for pair in found for point in pair]
    place = tmp_path_factory.mktemp("page") / "compare.html"
    place.write_text(comparison_page(comparison(*many)), encoding="utf-8")
    return place


@pytest.fixture(params=["file", "compared"])
def either(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_fetched_and_nothing_overflows(browser: Browser, either: Path, width: int) -> None:
    browser.open(either.as_uri(), width)
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OVERFLOWING) == []
    assert browser.requested() == [either.as_uri()]
    complaints = [event["params"] for event in browser.events if event["method"] == "Log.entryAdded"]
    assert complaints == []


# Words of tiles and of the verdict that stand in two lines.
BROKEN_WORDS = """[...document.querySelectorAll('.tile p, .verdict p')].flatMap(one => {
  const found = [];
  const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    for (const word of text.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
})"""


@pytest.mark.parametrize("width", [360, 390, 800, 1280])
def test_no_tile_breaks_a_word(browser: Browser, file: Path, width: int) -> None:
    browser.open(file.as_uri(), width)
    assert browser.evaluate("document.querySelectorAll('.tile').length") > 1
    assert browser.evaluate(BROKEN_WORDS) == []


def test_the_probes_see_what_they_look_for(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><meta name='viewport' content='width=device-width, initial-scale=1, minimum-scale=1'>"
        "<img src='picture.png'><p style='width: 900px'>wide</p>"
        "<div class='tile'><p style='width: 3em; overflow-wrap: anywhere'>confirmed beyond</p></div>",
        encoding="utf-8",
    )
    browser.open(bad.as_uri(), 360)
    assert len(browser.requested()) == 2
    assert len(browser.evaluate(OVERFLOWING)) == 1
    assert "confirmed" in browser.evaluate(BROKEN_WORDS)


def test_the_summary_stands_on_one_screen(browser: Browser, file: Path) -> None:
    for width, height in ((360, 800), (1400, 900)):
        browser.open(file.as_uri(), width, height)
        assert browser.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom") <= height


def test_text_in_charts_is_large_enough_on_a_phone(browser: Browser, either: Path) -> None:
    browser.open(either.as_uri(), 360)
    heights = "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)"
    least = browser.evaluate(f"Math.min(...{heights})")
    assert least >= 8


def test_tables_stay_within_their_charts_in_print(browser: Browser, either: Path) -> None:
    browser.open(either.as_uri(), 690)  # what is left of a sheet of A4
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        wide = browser.evaluate(
            "[...document.querySelectorAll('details')].forEach(one => { one.open = true; });"
            "[...document.querySelectorAll('figure, section > .table')].filter(one => one.querySelector('table')"
            ".getBoundingClientRect().right > one.getBoundingClientRect().right + 1).map(one => one.textContent.slice(0, 60))"
        )
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    assert wide == []


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext here")
def test_every_printed_page_is_marked_and_tables_behind_charts_are_printed(
    browser: Browser, file: Path, tmp_path: Path
) -> None:
    browser.open(file.as_uri(), 800)
    (tmp_path / "report.pdf").write_bytes(browser.pdf())
    command = ["pdftotext", str(tmp_path / "report.pdf"), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pages = text.rstrip("\f").split("\f")
    assert len(pages) > 3
    assert [number for number, said in enumerate(pages) if "RESTRICTED" not in said] == []
    assert "found: the worst pair" in text
    headings = set(browser.evaluate("[...document.querySelectorAll('h2, h3')].map(one => one.textContent)"))
    last = [[line for line in said.splitlines() if line.strip()][-2] for said in pages]  # before the mark
    assert headings.isdisjoint(last)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext here")
@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("counts", [(4, 4, 4), (10, 12, 8), (0, 60, 0)])
def test_two_pages(browser: Browser, tmp_path: Path, counts: tuple[int, int, int], restricted: bool) -> None:
    """However many requirements there are; the annex begins on the third sheet."""
    model = small_model(words=60)
    metrics = AUDITED if restricted else None
    facts = replace(gathered(row(model), model=model, metrics=metrics), verdict=standings(*counts))
    place = tmp_path / "report.html"
    place.write_text(page(facts), encoding="utf-8")
    browser.open(place.as_uri(), 800)
    (tmp_path / "report.pdf").write_bytes(browser.pdf())
    command = ["pdftotext", str(tmp_path / "report.pdf"), "-"]
    sheets = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\f")
    assert [n for n, said in enumerate(sheets) if "Annex: what was released" in said] == [2]
    assert "signature" in sheets[1]
