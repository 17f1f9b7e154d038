"""Make the packaged names of months anew: `make months`, or `python -m tools.months` where Babel is installed.

Babel holds the data of Unicode's CLDR. See cldr/NOTICE.

A line is a language, a kind (`name`, or `short` for abbreviations), what comes first in its long dates (`day` or `month`), and
the words of all its regions: within a date (genitives, where a language has them) and alone, in lower case, without full stops.
Names of two words are left out.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

from dptext_spark.text.policy import LANGUAGES

PACKAGED = Path(__file__).parents[1] / "dptext_spark" / "text" / "identifiers" / "cldr" / "months.txt"


def build(target: Path) -> None:
    """Write the file, a language and a kind a line."""
    from babel import Locale

    lines = []
    for language in LANGUAGES:
        order = _first(Locale.parse(language).date_formats["long"].pattern)
        names = _words(language, "wide")
        for kind, words in (("name", names), ("short", _words(language, "abbreviated") - names)):
            if words:
                lines.append(f"{language} {kind} {order} {' '.join(sorted(words))}\n")
    target.write_text("".join(lines), encoding="utf-8")


def _words(language: str, width: str) -> set[str]:
    """Return the names of a width, of all regions that write the language in its usual script."""
    from babel import Locale, localedata

    found = set()
    for name in localedata.locale_identifiers():
        locale = Locale.parse(name)
        if locale.language != language or locale.script is not None or locale.variant is not None:
            continue
        for use in ("format", "stand-alone"):
            for written in locale.months[use][width].values():
                word = unicodedata.normalize("NFC", written.lower().removesuffix("."))
                letters = unicodedata.normalize("NFD", word)
                if all(unicodedata.category(one)[0] in "LM" for one in letters):
                    found.add(word)
    return found


def _first(pattern: str) -> str:
    """Return which comes first in a pattern of CLDR, the day or the month."""
    return "day" if pattern.index("d") < pattern.index("M") else "month"


if __name__ == "__main__":
    build(PACKAGED)
