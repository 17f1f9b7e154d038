"""What a written table keeps of its source: figures from counts of aligned words (MECHANISMS §15), for tables of any tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

COUNTS = (
    "rows", "rows_not_aligned", "words", "words_not_aligned", "same", "drawn", "drawn_same", "unknown", "unknown_same",
    "numbers", "numbers_same",
)  # fmt: skip
# Each figure in one sentence. "Words" are the source's, as far as they could be aligned with the table's.
MEANING = {
    "rows": "rows that are in both tables",
    "missing_in_table": "rows of the source that the table lacks",
    "missing_in_source": "rows of the table that the source lacks",
    "rows_not_aligned": "texts with another number of pieces between spaces than their source; left out of the words",
    "unchanged_rows": "rows with a word to draw whose texts are those of the source, byte for byte",
    "unchanged_rows_share": "their share of the rows with a word to draw",
    "words": "words of the source that were aligned with the table's",
    "aligned_share": "their share of all words of the source",
    "original_share": "share of the lexicon's words that are in the table as they were (stop words that the policy keeps aside)",
    "original_share_all": "the same over all words: kept stop words, unknown words and numbers among them",
    "changed_share": "share of all words that were replaced by others",
    "oov_share": "share of words that the lexicon does not hold",
    "oov_kept_share": "share of those that are in the table as they were",
    "numbers_kept_share": "share of the numbers that are in the table as they were",
    "record_groups": "words that occur more than once in a record of the sample",
    "record_broken_groups": "of those, how many have more than one replacement within the record",
    "dataset_groups": "words that occur more than once in the sample",
    "dataset_broken_groups": "of those, how many have more than one replacement",
    "bayes_success": "share of the drawn words that are guessed from their replacements alone, by a public prior",
    "context_success": "share of the drawn words that are guessed from their replacements and the words around them",
    "attacked_words": "drawn words of the sample that the contextual adversary guesses; the other records taught it",
}
ATTACKS = ("bayes_success", "context_success", "attacked_words")


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        name: a key of `MEANING`.
        value: None where nothing could be counted.
        lower: of its interval; None where it was counted, not estimated. And `upper`.
        column: the text column; None for the whole table.
    """

    name: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    column: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and what the figure means, JSON-able."""
        return {**asdict(self), "meaning": MEANING[self.name]}


def text_figures(counts: Mapping[str, int], column: str | None = None) -> list[Figure]:
    """Return the figures that follow from counts.

    Args:
        counts: of each name in `COUNTS`; `words` and what follows are of aligned words.
        column: that they are of.
    """
    words, drawn, unknown = counts["words"], counts["drawn"], counts["unknown"]
    found: dict[str, float | None] = {
        "rows_not_aligned": counts["rows_not_aligned"],
        "words": words,
        "aligned_share": _share(words, words + counts["words_not_aligned"]),
        "original_share": _share(counts["drawn_same"], drawn),
        "original_share_all": _share(counts["same"], words),
        "changed_share": _share(words - counts["same"], words),
        "oov_share": _share(unknown, words),
        "oov_kept_share": _share(counts["unknown_same"], unknown),
        "numbers_kept_share": _share(counts["numbers_same"], counts["numbers"]),
    }
    return [Figure(name, value, column=column) for name, value in found.items()]


def row_figures(rows: int, in_table: int, in_source: int, unchanged: int, with_words: int) -> list[Figure]:
    """Return the figures of whole rows.

    Args:
        rows: that are in both.
        in_table: rows of the table.
        in_source: rows of the source.
        unchanged: rows with a word to draw whose texts are the source's.
        with_words: rows with a word to draw.
    """
    return [
        Figure("rows", rows),
        Figure("missing_in_table", in_source - rows),
        Figure("missing_in_source", in_table - rows),
        Figure("unchanged_rows", unchanged),
        Figure("unchanged_rows_share", _share(unchanged, with_words)),
    ]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
