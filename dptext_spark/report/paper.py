"""How much of a printed sheet text takes, in points: an estimate for the print style of `page.html`, rather too large.

What a browser sets differs by its fonts; these figures are those of a wide one, on the narrower and the shorter of A4 and Letter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

SHEET = 697.0  # Letter, less the margins
WIDTH = 514.0  # A4, less the margins
BODY, SMALL = 10.0, 8.5  # sizes of letters
_LETTER, _BOLD = 0.57, 0.66  # widths of a letter, to its size
_LINE = 1.38  # height of a line, to the size
_LATIN = 0x1100  # letters beyond may be twice as wide


def text_height(
    said: str,
    size: float = BODY,
    *,
    width: float = WIDTH,
    bold: bool = False,
    line: float = _LINE,
    around: float = 0.0,
) -> float:
    """Return the height of a paragraph.

    Args:
        said: its text.
        size: of its letters.
        width: that it has.
        bold: whether it is.
        line: the height of a line, to the size.
        around: what stands above and below it.
    """
    letters = sum(1 if ord(letter) < _LATIN else 2 for letter in said)
    lines = max(1, math.ceil(letters * size * (_BOLD if bold else _LETTER) / width))
    return lines * size * line + around


def heading_height() -> float:
    """Return the height of a heading of the first two pages."""
    return 31.5


def list_height(sentences: Iterable[str], *, width: float = WIDTH - 16.0) -> float:
    """Return the height of a list; of one sentence, of the paragraph."""
    return sum(text_height(one, width=width, around=3.6) for one in sentences) + 9.6


def pairs_height(rows: Iterable[tuple[str, str]]) -> float:
    """Return the height of a table of names and values."""
    return sum(text_height(value, SMALL, width=WIDTH - 84.0, around=6.8) for _, value in rows) + 14.4
