"""The papers' figures beside ours, and the reason where they differ."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import paper_custext, paper_diffractor
from benchmarks.measure import Section
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure with the papers' kind of lexicon where it is here (GloVe, all its entries), else with the packaged one."""
    section = Section(
        "papers", "Speed of a word, string to string, ε = 10: how much longer others take than 1-Diffractor"
    )
    found, section.skipped = lexicons(sizes.lexicon_words, tokenizer="whitespace")
    name, lexicon = found[-1]
    section.facts = {"lexicon": name, "words": len(lexicon), "dimensions": lexicon.dimensions}
    for paper in (paper_custext, paper_diffractor):
        paper.measure(section, name, lexicon, sizes, say)
    return section
