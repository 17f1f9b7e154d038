"""A page holds marks, `<!-- generate: NAME -->`; here each becomes what the code says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.generate import floors, notebooks, records, references, sample, sets

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
MARK = re.compile(r"^<!-- generate: ([a-z-]+)(?: ([\w.]+))? -->$", re.MULTILINE)
# Where a file beside docs/ stands in the site.
IN_THE_SITE = {
    "docs/": "",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "SECURITY.md": "development/reporting.md",
}
GENERATORS: dict[str, Callable[..., str]] = {
    "settings": references.settings,
    "mechanism-parameters": references.mechanism_parameters,
    "examples": references.examples,
    "command-line": references.command_line,
    "tables": references.tables,
    "metrics-of-a-run": references.metrics_of_a_run,
    "metrics-of-an-audit": references.metrics_of_an_audit,
    "exit-codes": references.exit_codes,
    "api": references.api,
    "records": records.newest_sections,
    "grids": records.grids_of,
    "output-sets": sets.output_sets,
    "before-and-after": sample.before_and_after,
    "floors": floors.picture,
    "rooms": floors.rooms,
    "notebook": notebooks.as_markdown,
}


def filled(page: str, source: str) -> str:
    """Return a page with what its marks name.

    Args:
        page: Markdown.
        source: its path below docs/.
    """

    def generated(mark: re.Match[str]) -> str:
        name, argument = mark[1], mark[2]
        if name == "file":
            return moved(CHECKOUT / argument, source)
        return GENERATORS[name](*([] if argument is None else [argument])).strip()

    return MARK.sub(generated, page)


def moved(file: Path, source: str) -> str:
    """Return a Markdown file of the project's root with its links as they must be in the site.

    Args:
        file: such as README.md.
        source: the page that holds it, below docs/.
    """
    up = "../" * source.count("/")
    text = re.sub(
        r"(\]\()notebooks/(\w+)\.ipynb", rf"\1{up}tutorials/\2.md", file.read_text(encoding="utf-8")
    )
    for there, here in IN_THE_SITE.items():
        text = re.sub(rf"(\]\(){re.escape(there)}", rf"\1{up}{here}", text)
    return text


def pages() -> Iterator[tuple[str, str]]:
    """Yield (path below docs/, Markdown as it is built) of every page of the site."""
    for file in sorted(DOCS.rglob("*.md")):
        source = file.relative_to(DOCS).as_posix()
        yield source, filled(file.read_text(encoding="utf-8"), source)
