"""Show values and progress: a `repr` in one line, a small table in a notebook, and a line for each step of long work.

No table and no `repr` shows arrays, keys, entries of lists, or figures of private text. Texts before and after appear in HTML
only, and all text there is escaped. Progress holds no data. Without IPython no part of IPython is imported.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from difflib import SequenceMatcher
from html import escape
from typing import Any

MOST = 180  # characters of a line
MOST_VALUE = 80  # characters of a value in it
_PIECES = re.compile(r"\w+|\W")
_LEFT = ' style="text-align:left"'
_TEXT = ' style="text-align:left;vertical-align:top;white-space:pre-wrap"'
_NULL = "<em>NULL</em>"
MOST_TEXT = 1_000  # characters of a text in a pair
MOST_TEXTS = 20  # such pairs


def line(name: str, *parts: str) -> str:
    """Return the `repr` of a value in at most `MOST` characters.

    Empty parts are left out.
    """
    return f"{name}({cut(', '.join(filter(None, parts)), MOST - len(name) - 2)})"


def cut(text: str, most: int = MOST_VALUE) -> str:
    """Return a text in at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def brief(value: object) -> str:
    """Return a setting in a few characters: of a list, its length alone."""
    if isinstance(value, list | tuple):
        return f"<{len(value):,} {'entry' if len(value) == 1 else 'entries'}>"
    return cut(repr(value))


def settings_line(value: Any, always: Sequence[str] = ()) -> str:
    """Return the `repr` of a dataclass of settings: the fields that differ from their defaults.

    The fields in `always` are named even with their defaults.
    """
    pairs = ((field, getattr(value, field.name)) for field in fields(value) if field.repr)
    parts = [
        f"{field.name}={brief(current)}"
        for field, current in pairs
        if field.name in always
        or current != (field.default if field.default_factory is MISSING else field.default_factory())
    ]
    return line(type(value).__name__, *parts)


def table(
    title: str, rows: Sequence[tuple[str, str]], *, pair: tuple[str, str] | None = None, note: str = ""
) -> str:
    """Return HTML for a notebook: a title over names and values. Every text is escaped.

    `pair` is a text before and after, whose differing words are marked. `note` is a sentence below.
    """
    cells = [(escape(name), escape(value)) for name, value in rows]
    if pair is not None:
        cells += zip(("before", "after"), marked(*pair), strict=True)
    body = "".join(
        f'<tr><th scope="row"{_LEFT}>{name}</th><td{_LEFT}>{value}</td></tr>' for name, value in cells
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<div><strong>{escape(title)}</strong><table><tbody>{body}</tbody></table>{below}</div>"


def side_by_side(title: str, rows: Sequence[tuple[str, str | None, str | None]], *, note: str = "") -> str:
    """Return HTML for a notebook: texts before and after, with differing words marked. Every text is escaped.

    Args:
        title: what it is.
        rows: (name, before, after); None is a NULL. Only the first `MOST_TEXTS` are shown, and `MOST_TEXT` characters of each. A
            sentence below reports the cut.
        note: a sentence below; empty for none.
    """
    body = "".join(
        f'<tr><th scope="row"{_LEFT}>{escape(name)}</th><td{_TEXT}>{first}</td><td{_TEXT}>{second}</td></tr>'
        for name, (first, second) in ((row[0], _pair(*row[1:])) for row in rows[:MOST_TEXTS])
    )
    heads = "".join(f'<th scope="col"{_LEFT}>{head}</th>' for head in ("", "before", "after"))
    few = f"This shows the first {MOST_TEXTS:,} of {len(rows):,} texts." if len(rows) > MOST_TEXTS else ""
    long = any(len(text or "") > MOST_TEXT for row in rows[:MOST_TEXTS] for text in row[1:])
    short = f"A text is cut after {MOST_TEXT:,} characters (…), and marked up to there." if long else ""
    below = "".join(f"<p>{escape(sentence)}</p>" for sentence in (few, short, note) if sentence)
    inner = f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
    return f"<div><strong>{escape(title)}</strong><table>{inner}</table>{below}</div>"


def _pair(before: str | None, after: str | None) -> tuple[str, str]:
    """Return two texts as HTML, with a mark for a NULL."""
    if before is None or after is None:
        first, second = (_NULL if text is None else escape(cut(text, MOST_TEXT)) for text in (before, after))
        return first, second
    return marked(cut(before, MOST_TEXT), cut(after, MOST_TEXT))


def marked(before: str, after: str) -> tuple[str, str]:
    """Return two texts as HTML, escaped, with the words in which they differ in `<mark>`."""
    shown: tuple[list[str], list[str]] = ([], [])
    for same, *pieces in differences(before, after):
        for out, piece in zip(shown, pieces, strict=True):
            text = escape(piece)
            out.append(text if same or not text else f"<mark>{text}</mark>")
    return "".join(shown[0]), "".join(shown[1])


def differences(before: str, after: str) -> Iterator[tuple[bool, str, str]]:
    """Yield two texts in stretches of words and marks: (whether both are equal there, the first's, the second's)."""
    first, second = _PIECES.findall(before), _PIECES.findall(after)
    for action, i, j, k, m in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        yield action == "equal", "".join(first[i:j]), "".join(second[k:m])


_HEIGHT = 720  # pixels


def in_notebook() -> bool:
    """Check whether a kernel that shows HTML runs the cells. A terminal, IPython's included, does not."""
    module = sys.modules.get("IPython")  # a kernel has imported it
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


def frame(page: str, title: str) -> str:
    """Return HTML that holds a whole page in its own frame: its styles touch nothing else, and it runs no script."""
    escaped = escape(page)
    style = f"width:100%;height:{_HEIGHT}px;border:1px solid #999"
    return f'<iframe sandbox="" title="{escape(title)}" style="{style}" srcdoc="{escaped}"></iframe>'


def show_html(html: str) -> None:
    """Show HTML below the cell that runs; only where :func:`in_notebook`."""
    sys.modules["IPython"].display.display(
        {"text/html": html, "text/plain": "(shown in a notebook)"}, raw=True
    )


Progress = Callable[[str, float | None], None]
"""Called with each step, and the share of it that is done, 0 to 1; None where that is not known."""

Steps = Callable[[str], None]
"""Called with each step."""

Counted = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""


def silent(*_: object) -> None:
    """Ignore a step."""


VARIABLE = "DPTEXT_PROGRESS"


class OnStderr:
    """Progress callback that prints each new step as a line on stderr."""

    _last = ""

    def __call__(self, step: str, share: float | None = None) -> None:  # noqa: ARG002  (a line for each share is too many)
        """Print a step, unless it is the current one."""
        if step != self._last:
            self._last = step
            sys.stderr.write(f"{step}\n")
            sys.stderr.flush()


def by_default() -> Callable[..., None]:
    """Choose the progress callback of long work where the caller gives none.

    Returns:
        :class:`OnStderr` in a notebook, and where stderr is a terminal; else, and where the variable `DPTEXT_PROGRESS` is `off`,
        :func:`silent`.
    """
    if os.environ.get(VARIABLE) == "off":
        return silent
    terminal = sys.stderr is not None and sys.stderr.isatty()  # a program without a console has no stderr
    return OnStderr() if in_notebook() or terminal else silent


def counted(step: str, progress: Progress | None = None) -> Counted:
    """Return a callback that reports the finished share of a step.

    Without `progress` it takes :func:`by_default`.
    """
    say = progress or by_default()

    def tell(done: int, whole: int) -> None:
        say(step, done / whole if whole else None)

    return tell
