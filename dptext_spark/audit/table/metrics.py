"""Metrics of a written table against its source, from counts of aligned words, for tables of any tool."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.requirements import FORM, Requirement
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.table.labelled import MEANING as LABELLED_MEANING
from dptext_spark.audit.table.names import KINDS, LISTED_COUNTS, NAME_COUNTS
from dptext_spark.errors import SettingsError, did_you_mean
from dptext_spark.runtime.record import Json

COUNTS = (
    "rows", "rows_not_aligned", "words", "words_not_aligned", "same", "drawn", "drawn_same", "unknown", "unknown_same",
    "numbers", "numbers_same", *NAME_COUNTS, *LISTED_COUNTS,
)  # fmt: skip
# Each figure in one sentence. "Words" are the source's, as far as they could be aligned with the table's.
MEANING = {
    "rows": "rows that are in both tables",
    "missing_in_table": "rows of the source that the table lacks",
    "missing_in_source": "rows of the table that the source lacks",
    "rows_not_aligned": "texts with another number of pieces between spaces than their source; left out of the words",
    "unchanged_rows": "rows with a word to draw whose texts are those of the source, byte for byte",
    "unchanged_rows_share": "share of the rows with a word to draw that are unchanged",
    "words": "words of the source that were aligned with the table's",
    "aligned_share": "share of all words of the source that were aligned with the table's",
    "original_share": "share of the lexicon's words that are in the table as they were (stop words that the policy keeps aside)",
    "original_share_all": "share of all words (also kept stop words, unknown words, numbers) that are in the table as they were",
    "changed_share": "share of all words that were replaced by others",
    "oov_share": "share of words that the lexicon does not hold",
    "oov_kept_share": "share of the words that the lexicon does not hold that are in the table as they were",
    "numbers_kept_share": "share of the numbers that are in the table as they were",
    "names_found": "words of names that public lists and rules find in the source (more may be there), and that were aligned",
    "names_kept": "share of these words that are in the table as they were",
    "persons_kept": "the same of names of persons",
    "persons_kept_whole": "share of the names of persons of which every word is in the table as it was",
    "locations_kept": "the same of towns, countries and states, word by word",
    "locations_kept_whole": "of which every word is in the table as it was",
    "listed_found": "entries of the list of --names in the source that were aligned",
    "listed_kept": "share of these of which every word is in the table as it was",
    "capitals_found": "capitalised words within the source's sentences (no single letters, no stop words) that were aligned",
    "capitals_kept": "share of these that are in the table as they were",
    **LABELLED_MEANING,
    "record_groups": "words that occur more than once in a record of the sample",
    "record_broken_groups": "of those, how many have more than one replacement within the record",
    "dataset_groups": "words that occur more than once in the sample",
    "dataset_broken_groups": "of those, how many have more than one replacement",
    "bayes_success": "share of the drawn words that are guessed from their replacements alone, by a public prior",
    "context_success": "share of the drawn words that are guessed from their replacements and the words around them",
    "frequency_success": "dataset level: share of the drawn words that are guessed by how often replacements occur, and where",
    "attacked_words": "drawn words of the sample that the contextual adversary guesses; the other records taught it",
    "cosine": "semantic similarity: mean cosine of the mean word vectors of a row's texts in both tables, -1 to 1",
    "rouge_1": "overlap in words of a row's texts in both tables, mean F1 of ROUGE-1, 0 to 1",
    "rouge_2": "the same in pairs of words",
    "rouge_l": "the same in the longest common sequence of words",
    "bleu": "overlap of the whole sample, 0 to 100",
    "distinct_words_share": "different words of the lexicon in the table's texts, for each different one in the source's",
    "embedding_cosine": "semantic similarity to an encoder: mean cosine of the sentence embeddings of a row's texts, -1 to 1",
    "bert_precision": "mean similarity of each sub-word of the table's text to the nearest of the source's (BERTScore), -1 to 1",
    "bert_recall": "the same of each sub-word of the source's text to the table's",
    "bert_f1": "both as their harmonic mean in each row, 0 to 1",
    "masked_success": "share of drawn words that a masked language model names from the rest of the table's text",
    "masked_unprotected": "share of drawn words that a masked language model names from the rest of the source's text",
    "masked_words": "drawn words that it was asked for",
    "accuracy_plain_plain": "share of rows whose label is predicted: learnt from the source's text, reading the source's",
    "accuracy_plain_private": "share of rows whose label is predicted: learnt from the source's text, reading the table's",
    "accuracy_private_plain": "share of rows whose label is predicted: learnt from the table's text, reading the source's",
    "accuracy_private_private": "share of rows whose label is predicted: learnt from the table's text, reading the table's",
    "accuracy_majority": "accuracy of always predicting the commonest label",
    "label_rows": "rows with a label that the classifiers learnt from or were tried on",
    "label_missing": "rows of that sample without a label; they were left out",
    "membership_auc": "how well a record's part in the training of such a classifier is told from its answers; 0.5 by guessing",
    "membership_unprotected": "the same for a classifier that learnt from the source's text",
    "attribute_success": "share of rows whose attribute is guessed: learnt from the source's text, reading the table's",
    "attribute_adaptive": "share of rows whose attribute is guessed: learnt from the table's text, reading the table's",
    "attribute_unprotected": "share of rows whose attribute is guessed: learnt from the source's text, reading the source's",
    "attribute_majority": "accuracy of always guessing the commonest attribute",
    "attribute_rows": "rows with an attribute that this was learnt from or tried on",
    "attribute_missing": "rows of that sample without an attribute; they were left out",
}
LISTED = ("listed_found", "listed_kept")
ANNOTATED = tuple(LABELLED_MEANING)
# Figures of names and of capitalised words, which are shown to whoever asks for private figures only.
NAMED = (
    *("names_found", "names_kept", *(f"{kind}_kept{whole}" for kind in KINDS for whole in ("", "_whole"))),
    *(*LISTED, "capitals_found", "capitals_kept", *ANNOTATED),
)
_OF_NAMES = (
    "names of persons, by public lists",
    "names of places, by public lists",
    "capitalised words within sentences",
)
ATTACKS = ("bayes_success", "context_success", "attacked_words")
FREQUENCY = ("frequency_success",)
SIMILARITY = tuple(name for name in MEANING if name.startswith(("cosine", "rouge_", "bleu", "distinct_")))
ENCODED = tuple(name for name in MEANING if name.startswith(("embedding_", "bert_")))
MASKED = tuple(name for name in MEANING if name.startswith("masked_"))
LABEL = tuple(name for name in MEANING if name.startswith(("accuracy_", "label_", "membership_")))
ATTRIBUTE = tuple(name for name in MEANING if name.startswith("attribute_"))


def described(figure: Metric) -> dict[str, Json]:
    """Return a figure and what it means, JSON-able."""
    return {**figure.as_dict(), "meaning": MEANING[figure.name]}


def table_requirement(text: str, names: Collection[str]) -> Requirement[str]:
    """Read a requirement of a table.

    Args:
        text: such as `original_share <= 0.6`.
        names: of the figures that this audit has.

    Raises:
        SettingsError: another form, or a figure that this audit does not have.
    """

    def read(name: str) -> str | None:
        if name in names:
            return name
        if re.fullmatch(r"\w+", name) is None:
            return None
        raise SettingsError(
            f"require: {name!r} is no figure of this audit; valid: {', '.join(names)}.{did_you_mean(name, names)}"
        )

    return Requirement.parse(text, read, f"a figure, {FORM}, as in 'original_share <= 0.6'")


def holds(requirement: Requirement[str], figures: Iterable[Metric]) -> bool:
    """Whether the whole table meets a requirement: by an estimate's cautious bound; never by what could not be counted."""
    for figure in figures:
        if figure.name == requirement.subject and figure.column is None:
            bound = figure.upper if requirement.caps else figure.lower
            judged = figure.value if bound is None else bound
            return judged is not None and requirement.holds(judged)
    return False


def text_figures(counts: Mapping[str, int], column: str | None = None) -> list[Metric]:
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
        "names_found": sum(counts[kind] for kind in KINDS),
        "names_kept": _share(
            sum(counts[f"{kind}_same"] for kind in KINDS), sum(counts[kind] for kind in KINDS)
        ),
    }
    for kind in KINDS:
        found[f"{kind}_kept"] = _share(counts[f"{kind}_same"], counts[kind])
        found[f"{kind}_kept_whole"] = _share(counts[f"{kind}_whole_same"], counts[f"{kind}_whole"])
    found["capitals_found"] = counts["capitals"]
    found["capitals_kept"] = _share(counts["capitals_same"], counts["capitals"])
    return [Metric(name, value, column=column) for name, value in found.items()]


def listed_figures(counts: Mapping[str, int], column: str | None = None) -> list[Metric]:
    """Return the figures of the list that was given, from `LISTED_COUNTS`."""
    found = counts["listed"]
    values = (found, _share(counts["listed_same"], found))
    return [Metric(name, value, column=column) for name, value in zip(LISTED, values, strict=True)]


def row_figures(rows: int, in_table: int, in_source: int, unchanged: int, with_words: int) -> list[Metric]:
    """Return the figures of whole rows.

    Args:
        rows: that are in both.
        in_table: rows of the table.
        in_source: rows of the source.
        unchanged: rows with a word to draw whose texts are the source's.
        with_words: rows with a word to draw.
    """
    return [
        Metric("rows", rows),
        Metric("missing_in_table", in_source - rows),
        Metric("missing_in_source", in_table - rows),
        Metric("unchanged_rows", unchanged),
        Metric("unchanged_rows_share", _share(unchanged, with_words)),
    ]


@dataclass(frozen=True, kw_only=True)
class KeptWords(AuditResult):
    """What of a text is as it was.

    Attributes:
        unit: what the figures are.
        figures: shares, by the kind of words.
        words: that were aligned.
    """

    name: str = "kept words"
    measures: str = "The share of words that are in the table as they were in its source, of all rows."
    exact: bool = True
    unit: str = "share of the words"
    figures: Mapping[str, float]
    words: int | None = field()

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> KeptWords:
        """Return it from counts, as :func:`text_figures` takes them."""
        parts = {
            "the lexicon's words (kept stop words aside)": (counts["drawn_same"], counts["drawn"]),
            "all words": (counts["same"], counts["words"]),
            "words that the lexicon lacks": (counts["unknown_same"], counts["unknown"]),
            "numbers": (counts["numbers_same"], counts["numbers"]),
            **{
                said: (counts[f"{what}_same"], counts[what])
                for said, what in zip(_OF_NAMES, (*KINDS, "capitals"), strict=True)
            },
        }
        shares = {name: _share(*part) for name, part in parts.items()}
        return cls(figures={n: one for n, one in shares.items() if one is not None}, words=counts["words"])

    def without_names(self) -> KeptWords:
        """Return it without names and capitalised words."""
        return replace(
            self, figures={name: one for name, one in self.figures.items() if name not in _OF_NAMES}
        )

    def shown(self) -> Shown:
        """Show the shares, and of how many words they are."""
        words = {} if self.words is None else {"words": self.words}
        return Shown((Group("", self.figures, self.unit),), singles=words)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
