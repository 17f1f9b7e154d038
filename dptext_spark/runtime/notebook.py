"""Whether this process is a notebook's kernel, and how it shows HTML. Without IPython nothing is imported."""

from __future__ import annotations

import sys
from html import escape

_HEIGHT = 720  # pixels


def in_notebook() -> bool:
    """Whether cells are run by a kernel, which shows HTML; not in a terminal, IPython's included."""
    module = sys.modules.get("IPython")  # a kernel has imported it
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


def frame(page: str, title: str) -> str:
    """Return HTML that holds a whole page in a frame of its own, whose styles touch nothing else and which runs no script."""
    held = escape(page)
    style = f"width:100%;height:{_HEIGHT}px;border:1px solid #999"
    return f'<iframe sandbox="" title="{escape(title)}" style="{style}" srcdoc="{held}"></iframe>'


def show_html(html: str) -> None:
    """Show HTML below the cell that runs; only where :func:`in_notebook`."""
    sys.modules["IPython"].display.display(
        {"text/html": html, "text/plain": "(shown in a notebook)"}, raw=True
    )
