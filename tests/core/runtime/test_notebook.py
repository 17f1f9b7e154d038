"""A kernel is told from a terminal, and a page stands in a frame that touches nothing."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.runtime.display import frame, in_notebook, show_html

PAGE = '<!doctype html>\n<p class="a">1 &lt; 2 & "q"</p><script>alert(1)</script>'


class Frame(HTMLParser):
    """The elements of a piece of HTML with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    ("shell", "expected"),
    [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=object()), True)],
)
def test_a_kernel_is_a_notebook_and_a_terminal_is_none(
    shell: Any, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook() is expected


def test_without_ipython_there_is_none_and_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    assert "IPython" not in sys.modules


def test_a_frame_holds_the_whole_page_and_runs_no_script() -> None:
    ((tag, attributes),) = Frame(frame(PAGE, 'Run "<a>"')).found
    assert tag == "iframe"
    assert attributes["srcdoc"] == PAGE
    assert attributes["sandbox"] == ""
    assert attributes["title"] == 'Run "<a>"'


def test_html_is_displayed_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[dict[str, str], bool]] = []
    display = SimpleNamespace(display=lambda data, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=display))
    show_html("<p>a</p>")
    assert shown == [({"text/html": "<p>a</p>", "text/plain": "(shown in a notebook)"}, True)]
