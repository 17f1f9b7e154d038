"""One line in a terminal, a table in a notebook, nothing private; and who is told steps where no callback is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dptext_spark as dp
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.model.compile import prepare
from dptext_spark.report import run_plan
from dptext_spark.runtime import display
from dptext_spark.runtime.display import VARIABLE, OnStderr, Progress, by_default, counted, silent
from tests.core.names import beginning

PAGE = '<!doctype html>\n<p class="a">1 &lt; 2 & "q"</p><script>alert(1)</script>'


@dataclass(frozen=True, repr=False)
class Settings:
    needed: float
    words: tuple[str, ...] | None = None
    extra: list[int] = field(default_factory=list)
    hidden: str = field(default="", repr=False)


def test_a_line_is_short_and_shows_of_a_list_its_length_alone() -> None:
    assert display.line("Name", "3 words", "", "cosine") == "Name(3 words, cosine)"
    assert len(display.line("Name", "x" * 500)) == display.MOST
    assert display.cut("abcd", 4) == "abcd"
    assert display.cut("abcde", 4) == "abc…"
    given = [("ada", "grace"), ["ada"], "join"]
    assert [display.brief(value) for value in given] == ["<2 entries>", "<1 entry>", "'join'"]
    assert len(display.brief("x" * 500)) == display.MOST_VALUE


def test_settings_show_what_differs_from_their_defaults() -> None:
    assert display.settings_line(Settings(1.0)) == "Settings(needed=1.0)"
    assert display.settings_line(Settings(1.0), always=("words",)) == "Settings(needed=1.0, words=None)"
    given = Settings(1.0, ("ada", "grace"), [1], "secret")
    assert display.settings_line(given) == "Settings(needed=1.0, words=<2 entries>, extra=<1 entry>)"


class Elements(HTMLParser):
    """The elements of a piece of HTML with their attributes, its cells as text, and what stands in <mark>."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open, self.cells, self.marked = list[str](), list[str](), list[str]()
        self.feed(html)
        self.close()
        assert self.open == []
        self.rows = dict(zip(self.cells[::2], self.cells[1::2], strict=False))  # of two cells, by their heads

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag in ("th", "td"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"th", "td"} & {*self.open}:
            self.cells[-1] += data
        if "mark" in self.open:
            self.marked.append(data)


def test_tables_are_escaped() -> None:
    html = display.table("A & B", [("<i>", '"q"')], pair=("a cat", "a <b>"), note="1 < 2")
    assert Elements(html).cells == ["<i>", '"q"', "before", "a cat", "after", "a <b>"]
    assert "<strong>A &amp; B</strong>" in html
    assert ">a <mark>&lt;b&gt;</mark></td>" in html
    assert "<p>" not in display.table("A", [])
    pairs = [("1 & 2", "a\n<script>", "a\n<b>"), ("lost", "a <i>", None), ("empty", "", "")]
    html = display.side_by_side("A & B", pairs)
    cells = ["1 & 2", "a\n<script>", "a\n<b>", "lost", "a <i>", "NULL", "empty", "", ""]
    assert Elements(html).cells[3:] == cells
    assert not {"script", "b", "i"} & {tag for tag, _ in Elements(html).found}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Send the x.", "Send the letter.", ("Send the <mark>x</mark>.", "Send the <mark>letter</mark>.")),
        ("same & same", "same & same", ("same &amp; same", "same &amp; same")),
        ("a", "", ("<mark>a</mark>", "")),
        ("to Ada L now", "to [NAME] now", ("to <mark>Ada L</mark> now", "to <mark>[NAME]</mark> now")),
    ],
)
def test_words_that_differ_are_marked(before: str, after: str, expected: tuple[str, str]) -> None:
    assert display.marked(before, after) == expected


def test_of_many_and_long_texts_the_first_is_shown_and_said() -> None:
    pairs = [(f"row {i}", "x" * display.MOST_TEXT, "y") for i in range(display.MOST_TEXTS)]
    whole = display.side_by_side("A", pairs)
    assert "<p>" not in whole
    assert "…" not in whole
    many = display.side_by_side("A", [(f"row {i}", "x", "y") for i in range(display.MOST_TEXTS + 1)])
    assert many.count('<th scope="row"') == display.MOST_TEXTS
    assert f"<p>This shows the first {display.MOST_TEXTS} of {display.MOST_TEXTS + 1} " in many
    long = display.side_by_side("A", [("row", None, "y" * (display.MOST_TEXT + 1))])
    assert f">{'y' * (display.MOST_TEXT - 1)}…</td>" in long
    assert "<p>" in long


@pytest.mark.parametrize("shell", [None, SimpleNamespace(), SimpleNamespace(kernel=object())])
def test_a_kernel_is_a_notebook(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert display.in_notebook() is hasattr(shell, "kernel")
    monkeypatch.delitem(sys.modules, "IPython")
    assert not display.in_notebook()
    assert "IPython" not in sys.modules  # nothing is imported to find out


def test_a_frame_holds_the_whole_page_and_runs_no_script() -> None:
    ((tag, attributes),) = Elements(display.frame(PAGE, 'Run "<a>"')).found
    assert (tag, attributes["srcdoc"], attributes["sandbox"]) == ("iframe", PAGE, "")
    assert attributes["title"] == 'Run "<a>"'


def test_html_is_displayed_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[dict[str, str], bool]] = []
    shell = SimpleNamespace(display=lambda data, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=shell))
    display.show_html("<p>a</p>")
    assert [(data["text/html"], raw) for data, raw in shown] == [("<p>a</p>", True)]


SETTINGS = {"input": {"path": "/none/in"}, "columns": ["body"], "output": {"path": "/none/out"}}


def test_each_new_step_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say = OnStderr()
    for step, share in (("reading", 0.1), ("reading", 0.5), ("writing", None), ("reading", 0.9)):
        say(step, share)
    say("reading")
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "reading\nwriting\nreading\n")


def test_a_count_is_told_as_a_share_of_its_step() -> None:
    told = list[tuple[str, float | None]]()
    say = counted("reading", lambda step, share: told.append((step, share)))
    say(1, 4)
    say(4, 4)
    say(3, 0)  # how much there is, is not known
    assert told == [("reading", 0.25), ("reading", 1.0), ("reading", None)]


@pytest.mark.parametrize("notebook", [False, True])
@pytest.mark.parametrize("terminal", [False, True, None])
@pytest.mark.parametrize("variable", [None, "on", "off"])
def test_a_terminal_or_a_notebook_is_told_steps(
    notebook: bool, terminal: bool | None, variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program without a console has no stderr (None)."""
    shell = SimpleNamespace(kernel=object()) if notebook else None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    stderr = None if terminal is None else SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv(VARIABLE, variable or "")
    if variable is None:
        monkeypatch.delenv(VARIABLE)
    told = variable != "off" and (notebook or terminal)
    assert isinstance(by_default(), OnStderr) if told else by_default() is silent


def preparing(config: RunConfig, say: Progress) -> object:
    say("planning", 0.5)
    return prepare(config, lambda *_: None)  # where the model is cached, it has nothing to tell


@pytest.mark.parametrize(
    "step", ["reading the lexicon", "compiling custext for 200 words", "certifying", "planning"]
)
def test_a_terminal_is_told_and_a_pipe_is_not(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, words = tmp_path / "vectors.txt", beginning(dp.Lexicon.default(), 200)
    file.write_text("cat 1 0 0\ndog 0 1 0\ntree 0 0 1\n", encoding="utf-8")
    act: Callable[..., object] = {
        "reading": partial(dp.Lexicon.read, file),
        "compiling": partial(dp.compile, dp.CusText(epsilon=1.0, k=10), words),
        "certifying": partial(dp.certify, dp.compile(dp.TEM(epsilon=5.0), words)),
        "planning": partial(dp.plan, parse_config(SETTINGS)),
    }[step.split()[0]]
    monkeypatch.setattr(run_plan, "prepare", preparing)
    monkeypatch.delenv(VARIABLE, raising=False)
    told = list[tuple[Any, ...]]()
    act()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    act()
    assert capsys.readouterr() == ("", f"{step}\n")
    act(progress=lambda *what: told.append(what))
    assert told
    monkeypatch.setenv(VARIABLE, "off")
    act()
    assert capsys.readouterr() == ("", "")
