"""Which words of the packaged lexicon CusText's bound stands between, and what its output sets reveal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from docs.generate.references import table
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.samplers.table import TableSummary
from dptext_spark.rounding import percent_up, rounded_down, rounded_up

EPSILON = 2.0


@cache
def _at() -> Callable[[float], Any]:
    return CusText(epsilon=EPSILON, k=30, mapping="clustered").over_epsilons(Lexicon.default())


@cache
def summary(epsilon: float = EPSILON) -> TableSummary:
    """Return the figures of CusText on the packaged lexicon, with the output sets of the style `balanced`."""
    figures = _at()(epsilon).summary
    assert isinstance(figures, TableSummary)
    return figures


def output_sets() -> str:
    """Return a table: who shares an output set, and how many bits the set reveals."""
    law = summary()
    shared, words = law.class_size_of_words, law.words
    assert shared is not None
    assert shared.mean is not None
    assert words is not None
    pairs = (shared.mean - 1) / (words - 1)
    rows = [
        ("words of the lexicon", f"{words:,}"),
        ("other words with the same set, median", f"{shared.p50 - 1:,.0f}"),
        ("other words with the same set, least", f"{shared.min - 1:,.0f}"),
        ("words that have no other", percent_up(law.alone_share or 0.0)),
        ("pairs of words that share a set", f"{rounded_down(100 * pairs, 3)} %"),
        ("bits that a word has", rounded_down(math.log2(words), 2)),
        (f"bits about the word that a draw reveals, ε = {EPSILON:g}", rounded_up(law.told_bits or 0.0, 2)),
        (
            "bits about the word that the set alone reveals (a draw at ε = 0)",
            rounded_up(summary(0.0).told_bits or 0.0, 2),
        ),
    ]
    return table(("with all words equally likely", ""), rows)
