"""Notebooks as pages: their text, code and kept outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def as_markdown(name: str) -> str:
    """Return a notebook of notebooks/ as Markdown: pictures inside, nothing run.

    Args:
        name: such as `1_quickstart`.
    """
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell) if part)


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [re.sub(r"(\]\([\w/.]+)\.ipynb", r"\1.md", source)]
    return [f"```python\n{source}\n```", *(_output(one) for one in cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _plain("".join(output["text"]))
    data: dict[str, Any] = output["data"]
    if "image/png" in data:
        encoded = "".join(data["image/png"]).replace("\n", "")
        return f'<img class="output" alt="the chart that is explained below" src="data:image/png;base64,{encoded}">'
    if "text/markdown" in data:
        # One level down: a page has one title.
        return re.sub(r"^#", "##", "".join(data["text/markdown"]), flags=re.MULTILINE)
    if "text/html" in data:
        bare = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        lines = [line for line in bare.splitlines() if line.strip()]
        return '<div class="output">\n' + "\n".join(lines) + "\n</div>"
    return _plain("".join(data["text/plain"]))


def _plain(text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}text\n{ANSI.sub('', text).rstrip()}\n{fence}"
