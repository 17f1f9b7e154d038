"""What MkDocs calls while it builds: marks are filled, and formulas become MathML, so that no script draws them."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from latex2mathml.converter import convert

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.generate.fill import filled

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

# What pymdownx.arithmatex leaves of $...$ and $$...$$.
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Fill the marks of a page."""
    return filled(markdown, page.file.src_uri)


def on_page_content(html: str, **_: object) -> str:
    """Turn the formulas of a page into MathML."""

    def formula(found: re.Match[str]) -> str:
        display = "inline" if found["open"] == "(" else "block"
        made = convert(unescape(found["tex"]).strip(), display=display)
        return f'<{found["tag"]} class="formula">{made}</{found["tag"]}>'

    return FORMULA.sub(formula, html)
