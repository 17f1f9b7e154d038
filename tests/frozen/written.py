"""Texts that stay as they were: `DPTEXT_FREEZE=1 pytest FILE` writes those of a test file anew, to be read as text."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "texts"
_BLOCK = re.compile(r"^## ([^:\n]+): ([^\n]+)\n\n(.*?)\n(?=\n## |\Z)", re.DOTALL | re.MULTILINE)


def assert_as_frozen(name: str, group: str, texts: Mapping[str, str]) -> None:
    """Compare texts with those of a file of `texts/`.

    Args:
        name: of the file, without `.md`; several tests share one.
        group: of the texts of a test, which begins their headings.
        texts: by heading.
    """
    file = FOLDER / f"{name}.md"
    blocks = _BLOCK.findall(file.read_text(encoding="utf-8")) if file.exists() else []
    frozen = {heading: text for of, heading, text in blocks if of == group}
    now = {heading: text.strip("\n") for heading, text in texts.items()}
    if os.environ.get("DPTEXT_FREEZE"):
        others = [block for block in blocks if block[0] != group]
        written = [*others, *((group, heading, text) for heading, text in now.items())]
        lines = (
            f"## {of}: {heading}\n\n{text}\n"
            for of, heading, text in sorted(written, key=lambda block: block[0])
        )
        FOLDER.mkdir(exist_ok=True)
        file.write_text("\n".join(lines), encoding="utf-8")
        return
    assert now == frozen, f"DPTEXT_FREEZE=1 writes {file} anew, to be read"


def beyond(text: str, *plain: str) -> str:
    """Return the lines of a text that the plain ones have not."""
    shared = {line for other in plain for line in other.splitlines()}
    return "\n".join(line for line in text.splitlines() if line not in shared)
