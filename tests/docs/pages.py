"""The README and the pages of docs/, as they are written: what their tests read."""

from __future__ import annotations

import re
import shlex
import unicodedata
from decimal import Decimal
from pathlib import Path

from dptext_spark.config.requirements import Metric

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
README = CHECKOUT / "README.md"
# The README first: its settings are those that the commands of other pages name.
WRITTEN = [README, *sorted(DOCS.rglob("*.md"))]
_FIGURE = re.compile(r"(\w+) +([\d.,]+)( %)?(?: \(([\d.]+) to ([\d.]+)\))?(?= |$)", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text(name: str) -> str:
    """Return a file of the project, such as `README.md` or `docs/security.md`."""
    return (CHECKOUT / name).read_text(encoding="utf-8")


def name_of(file: Path) -> str:
    """Return how a test calls a page."""
    return file.relative_to(CHECKOUT).as_posix()


def blocks(file: Path, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return [found[2] for found in FENCE.finditer(file.read_text(encoding="utf-8")) if found[1] == language]


def commands(program: str) -> list[tuple[str, list[str]]]:
    """Return (page, words) of every command line in a block that begins with `program`; nothing behind `>` or `#`."""
    found = []
    for file in WRITTEN:
        for block in blocks(file, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == [program]:
                    found.append((name_of(file), words[1 : words.index(">") if ">" in words else None]))
    return found


def figures(block: str) -> list[Metric]:
    """Return the figures that a block of text shows as an audit prints them: shares, scores and counts, with intervals."""
    found = []
    for name, value, share, lower, upper in _FIGURE.findall(block):
        shown = [part for part in (value, lower, upper) if part]
        numbers = [Decimal(part.replace(",", "")) / (100 if share else 1) for part in shown]
        found.append(Metric(name, *map(float, numbers)))
    return found


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as Python-Markdown makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", FENCE.sub("", page), flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        while slug in found:
            number = re.search(r"_(\d+)$", slug)
            slug = f"{slug[: number.start()]}_{int(number[1]) + 1}" if number else f"{slug}_1"
        found.add(slug)
    return found


def links(page: str) -> list[str]:
    """Return where a page's links and pictures lead."""
    return re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page))
