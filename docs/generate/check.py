"""`python -m docs.generate.check site`: nothing is loaded from another host, and every formula and mark was filled in."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# Attributes whose address a browser fetches by itself. A link that is followed by a click may lead anywhere.
FETCHED = {"src", "srcset", "poster", "data", "background", "action", "formaction"}
LINKS_FETCHED = {
    "stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest", "apple-touch-icon",
}  # fmt: skip
OUTSIDE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
IN_A_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
# Scripts of the theme load this where a page has a diagram; none has.
ON_DEMAND = re.compile(r'class="mermaid"')
LEFT = re.compile(r'class="arithmatex"|<!-- generate:')


class Addresses(HTMLParser):
    """Collects what a page would fetch from another host."""

    def __init__(self) -> None:
        """Start with nothing found."""
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Look at the attributes of a tag."""
        given = {name: value or "" for name, value in attributes}
        fetched = [value for name, value in given.items() if name in FETCHED]
        if tag == "link" and LINKS_FETCHED & set(given.get("rel", "").split()):
            fetched.append(given.get("href", ""))
        self.found += [address for address in fetched if OUTSIDE.match(address)]


def problems_of(site: Path) -> list[str]:
    """Return what is wrong with a built site, a line each."""
    problems = []
    for file in sorted(site.rglob("*")):
        if file.suffix not in (".html", ".css"):
            continue
        text, name = file.read_text(encoding="utf-8"), file.relative_to(site)
        found = IN_A_STYLE.findall(text)
        if file.suffix == ".html":
            page = Addresses()
            page.feed(text)
            found = [*found, *page.found]
            if ON_DEMAND.search(text):
                problems.append(f"{name}: holds a diagram, whose script comes from another host")
            if LEFT.search(text):
                problems.append(f"{name}: a formula or a mark was not filled in")
        problems += [f"{name}: loads {address}" for address in found]
    return problems


def main() -> int:
    """Print what is wrong with the site that the command line names; return 1 if anything is."""
    site = Path(sys.argv[1])
    problems = problems_of(site)
    sys.stdout.writelines(f"{line}\n" for line in problems)
    pages = sum(1 for _ in site.rglob("*.html"))
    sys.stdout.write(f"{site}: {pages} pages, {len(problems)} problems\n")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
