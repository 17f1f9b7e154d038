"""Modules with providers, as users write them: files that driver and workers import, and a plain reading of what they find."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = """
import re

from dptext_spark.text.identifiers.provider import TypedSpans


class Toy:
    name, version, types = "toy", "{version}", ("ticket", "animal")

    def find(self, texts):
        found = [
            (row, *(len(text[:at].encode()) for at in match.span()), int(match[0].startswith("z")))
            for row, text in enumerate(texts.to_pylist())
            for match in re.finditer(r"{pattern}", text or "")
        ]
        return TypedSpans(*zip(*found)) if found else TypedSpans([], [], [], [])


class Second(Toy):
    name, types = "second", ("tool",)

    def find(self, texts):
        found = super().find(texts)
        return TypedSpans(found.rows, found.starts, found.ends, [0] * len(found.rows))
"""
PATTERN = r"T-\d+|zebra[sé]"
# How a provider may be wrong in a text that holds the word `secret`: the rest of `find`.
WRONG = {
    "raises": "raise ValueError(texts.to_pylist()[0])",
    "says": "raise DataError(texts.to_pylist()[0])",
    "exits": "raise SystemExit(texts.to_pylist()[0])",
    "overlaps": "return TypedSpans([0, 0], [0, 2], [3, 5], [0, 0])",
    "unordered": "return TypedSpans([0, 0], [4, 0], [5, 1], [0, 0])",
    "outside": "return TypedSpans([0], [0], [9999], [0])",
    "overflows": "return TypedSpans([0], [2**63 - 1], [2**63 - 1], [0])",
    "row": "return TypedSpans([9999], [0], [1], [0])",
    "floats": "return TypedSpans([0], [0.5], [1.5], [0])",
    "mutated": "found = TypedSpans([0], [0], [1], [0]); found.starts = [0]; return found",
    "type": "return TypedSpans([0], [0], [1], [7])",
    "lengths": "return TypedSpans([0, 0], [0], [1], [0])",
    "nothing": "return None",
    "tuple": "return [0], [0], [1], [0]",
    "keeps": "import numpy; return TypedSpans([0], [0], [1], [0], numpy.array([True]))",
    "character": "return TypedSpans([0], [len('secret ') + 1], [len('secret ') + 2], [0])",
}
FAILS = ("raises", "says", "exits", "floats")  # the others give what are no spans
WRONG_TEXT = "secret é and more of it"


def write(folder: Path, module: str, version: str = "1", pattern: str = PATTERN) -> str:
    """Write a module with the toy provider; return its import path."""
    (folder / f"{module}.py").write_text(SOURCE.format(version=version, pattern=pattern))
    return f"{module}:Toy"


def write_wrong(folder: Path, module: str, how: str) -> str:
    """Write a module with a provider that is right about texts without the word `secret`; return its import path."""
    (folder / f"{module}.py").write_text(
        "from dptext_spark.errors import DataError\n"
        "from dptext_spark.text.identifiers.provider import TypedSpans\n\n\n"
        "class Wrong:\n"
        "    version, types = '1', ('ticket',)\n\n"
        "    def find(self, texts):\n"
        "        if not any('secret' in (text or '') for text in texts.to_pylist()):\n"
        "            return TypedSpans([], [], [], [])\n"
        f"        {WRONG[how]}\n"
    )
    return f"{module}:Wrong"


def plain(text: str) -> str:
    """A text with what the toy provider finds in it replaced, by reading it."""
    return re.sub(PATTERN, lambda match: "[ANIMAL]" if match[0].startswith("z") else "[TICKET]", text)
